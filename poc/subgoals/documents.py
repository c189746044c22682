"""JSON texts as DuckDB reads them, for the live check.

Logs are scored in SQL and live steps in Python, so both must agree on what
JSON a text is. Python's reader does nearly all of the work; DuckDB's differs
in corners, and the corners are settled by asking DuckDB itself:

- DuckDB also takes trailing commas, NaN and Infinity, and any depth; it
  refuses escapes of lone surrogates. A text that starts like JSON but that
  Python refuses, or that holds such escapes, is put to an in-memory DuckDB.
- Of a repeated key the first one counts.
- Numbers of any length are numbers; whole ones are exact.

Knows nothing of operators, steps or workspaces.
"""

from __future__ import annotations

import json
import re
import threading
from functools import cache
from typing import Any

import duckdb

from poc.subgoals.paths import JsonPath

CONTAINER = object()
"""Stands for an array or object that was found but not read."""

_SPACE = " \t\r\n"
_local = threading.local()
# What DuckDB may take at the top level although Python's strict reader does not.
_ODD_START = re.compile(r"[ \t\r\n]*(?:[\[{]|-?(?:nan|inf)|-?\d{300})", re.IGNORECASE)


class Document:
    """The text of arguments or of a result, read when first asked."""

    __slots__ = ("_ask", "_json", "_read", "text")

    def __init__(self, text: str | None) -> None:
        self.text = None if text is None else _sound(text)
        self._read = False
        self._ask = False
        self._json: Any = None

    @property
    def is_json(self) -> bool:
        """Whether the text is JSON (None is not)."""
        self._load()
        return self._ask or self._json is not None

    def values(self, path: JsonPath) -> list[Any]:
        """The values that a path finds: str, bool, None, int, float, list, dict or `CONTAINER`."""
        self._load()
        if self._ask:
            return _asked(self.text or "", path)
        return [] if self._json is None else path.walk(self._json[0])

    def _load(self) -> None:
        if self._read:
            return
        self._read = True
        if self.text is None:
            return
        try:
            value = json.loads(self.text, object_pairs_hook=_first_wins, parse_constant=_refused)
        except (ValueError, RecursionError):
            self._ask = bool(_ODD_START.match(self.text)) and _valid(self.text)
            return
        if ("\\ud" in self.text or "\\uD" in self.text) and not _valid(self.text):
            return
        self._json = (value,)


def _sound(text: str) -> str:
    """A text without lone surrogates, which no UTF-8 store can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) == len(pairs):
        return read
    return dict(reversed(pairs))


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def duck() -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB of this thread: a reader of JSON and regular expressions, no workspace."""
    if not hasattr(_local, "cursor"):
        _local.cursor = _root().cursor()
    return _local.cursor


@cache
def _root() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def _valid(text: str) -> bool:
    row = duck().execute("SELECT json_valid(?)", [text]).fetchone()
    return bool(row and row[0])


def _asked(text: str, path: JsonPath) -> list[Any]:
    row = duck().execute("SELECT json_extract(?::JSON, ?)", [text, path.duckdb]).fetchone()
    found = row[0] if row else None
    if found is None:
        return []
    return [_scalar(item) for item in (found if isinstance(found, list) else [found])]


def _scalar(text: str) -> Any:
    """One value in DuckDB's spelling."""
    text = text.strip(_SPACE)
    if text[:1] in "[{":
        return CONTAINER
    if text[:1] == '"' or text in ("true", "false", "null"):
        return json.loads(text)
    if re.fullmatch(r"-?\d{1,4000}", text):
        return int(text)
    try:
        return float(text)
    except ValueError:  # nan and inf in spellings that only DuckDB takes
        return float("nan")
