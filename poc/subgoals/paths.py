"""A small JSON path: ``$``, ``.key``, ``["key"]``, ``[n]`` and ``[*]`` (any element).

``[-1]`` is the last element. A key on something that is no object, an index
on something that is no array, or one out of range finds nothing; ``[*]`` on
something that is no array finds nothing, too. The same path is available as
DuckDB's own spelling and as a walk over parsed JSON.

Knows nothing of operators or steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from poc.errors import InputError

ANY: Literal["*"] = "*"
Part = tuple[Literal["key"], str] | tuple[Literal["index"], int] | tuple[Literal["any"], None]

_BARE = re.compile(r"[^\W\d][\w-]*")
_INDEX = re.compile(r"-?\d{1,9}")
_HELP = 'Write paths like $.order.id, $.items[0].price, $["a key"] or $.items[*].id.'


class PathError(InputError):
    """A JSON path that cannot be read."""


@dataclass(frozen=True)
class JsonPath:
    """A parsed path. `text` is what was written."""

    text: str
    parts: tuple[Part, ...]

    @property
    def is_root(self) -> bool:
        """Whether the path is ``$``."""
        return not self.parts

    @property
    def many(self) -> bool:
        """Whether the path may find more than one value."""
        return any(kind == "any" for kind, _ in self.parts)

    @property
    def duckdb(self) -> str:
        """The path as DuckDB's json_extract reads it (keys always quoted)."""
        spelled = ["$"]
        for kind, value in self.parts:
            if kind == "key":
                escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
                spelled.append(f'."{escaped}"')
            else:
                spelled.append("[*]" if kind == "any" else f"[{value}]")
        return "".join(spelled)

    def walk(self, document: Any) -> list[Any]:
        """Every value that the path finds in parsed JSON; empty when there is none."""
        found = [document]
        for kind, value in self.parts:
            if kind == "key":
                found = [item[value] for item in found if isinstance(item, dict) and value in item]
            elif kind == "index":
                assert isinstance(value, int)
                found = [item[value] for item in found if isinstance(item, list) and -len(item) <= value < len(item)]
            else:
                found = [element for item in found if isinstance(item, list) for element in item]
        return found


def parse_path(text: str) -> JsonPath:
    """Read a path; raises `PathError` that points at the character where it goes wrong."""
    if not text.startswith("$"):
        suggestion = "$" + text if text.startswith(("[", ".")) else f"$.{text}"
        raise PathError(f"The JSON path '{text}' does not start with $.", todo=f'Did you mean "{suggestion}"?')
    parts: list[Part] = []
    at = 1
    while at < len(text):
        if text[at] == ".":
            match = _BARE.match(text, at + 1)
            if not match:
                raise _wrong(text, at + 1, "a key (letters, digits, _ or -) after '.'")
            parts.append(("key", match[0]))
            at = match.end()
        elif text[at] == "[":
            part, at = _bracket(text, at + 1)
            parts.append(part)
        else:
            raise _wrong(text, at, "'.' or '['")
    return JsonPath(text, tuple(parts))


def _bracket(text: str, at: int) -> tuple[Part, int]:
    """What stands between [ and ], and where the path goes on."""
    if text.startswith(ANY, at):
        part: Part = ("any", None)
        end = at + 1
    elif text.startswith(('"', "'"), at):
        key, end = _quoted(text, at)
        part = ("key", key)
    elif match := _INDEX.match(text, at):
        part = ("index", int(match[0]))
        end = match.end()
    else:
        raise _wrong(text, at, "a number, * or a quoted key after '['")
    if not text.startswith("]", end):
        raise _wrong(text, end, "']'")
    return part, end + 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    quote, key, index = text[at], [], at + 1
    while index < len(text) and text[index] != quote:
        if text[index] == "\\":
            index += 1
            if index == len(text):
                break
        key.append(text[index])
        index += 1
    if index >= len(text):
        raise _wrong(text, len(text), f"the closing {quote}")
    if not key:
        raise _wrong(text, at, "a key that is not empty")
    if "\0" in key:
        raise _wrong(text, at, "a key without a NUL character")
    return "".join(key), index + 1


def _wrong(text: str, at: int, expected: str) -> PathError:
    found = f"'{text[at]}'" if at < len(text) else "the end"
    return PathError(
        f"The JSON path '{text}' cannot be read: expected {expected} at character {at + 1}, found {found}.", todo=_HELP
    )
