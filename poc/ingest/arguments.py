"""Arguments of a call, whatever form the log keeps them in.

Seen in real logs: an object, a JSON string, a JSON string of a JSON string,
a Python repr, raw text (patches, queries) and redacted text. The original
text is always kept; valid JSON is stored as it stands, so numbers keep every
digit. Knows no format and no table.
"""

from __future__ import annotations

import ast
import json
from typing import Any

import msgspec

from poc.trajectory import ParseStatus

Arguments = tuple[str | None, str | None, ParseStatus]
"""The text as logged, the JSON text (None when it cannot be parsed), and how it was got."""

_decode = msgspec.json.Decoder().decode
_decode_text = msgspec.json.Decoder(str).decode

ABSENT: Arguments = (None, None, "absent")
_REPR_LIMIT = 200_000
"""Longest text that is tried as a Python repr; the parser's memory grows with its input."""


def from_raw(raw: bytes | msgspec.Raw) -> Arguments:
    """Arguments from the JSON text of the field, exactly as it stands in the file.

    Raises `UnicodeDecodeError` or `msgspec.DecodeError` when that text is broken.
    """
    data = bytes(raw).strip()
    if data[:1] == b'"':
        return from_text(_decode_text(data))
    if not data or data == b"null":
        return ABSENT
    text = data.decode()
    if _is_json(text):
        return text, text, "parsed"
    return text, None, "unparsed"


def from_text(text: str) -> Arguments:
    """Arguments from a string: JSON, JSON in JSON, a Python repr, or raw text."""
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return _from_repr(text) if text.strip() else (text, None, "absent")
    if isinstance(value, str):
        inner = value.strip()
        if inner[:1] in ("{", "[") and _is_json(inner):
            return text, inner, "repaired"
        if inner[:1] == "{":
            _, repaired, _ = _from_repr(inner)
            if repaired is not None:
                return text, repaired, "repaired"
    return text, text, "parsed"


def from_value(value: Any) -> Arguments:
    """Arguments from a value that is parsed already (a table's cell)."""
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return from_text(value)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return (text, text, "parsed") if _is_json(text) else (text, None, "unparsed")


def from_parsed(value: Any) -> Arguments:
    """Arguments from a value that a JSON parser gave."""
    if value is None or isinstance(value, str):
        return from_value(value)
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return from_value(value)
    return text, text, "parsed"


def _is_json(text: str) -> bool:
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    return True


def _from_repr(text: str) -> Arguments:
    stripped = text.strip()
    if stripped[:1] != "{" or len(stripped) > _REPR_LIMIT:
        return text, None, "unparsed"
    try:
        value = ast.literal_eval(stripped)
        repaired = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text, None, "unparsed"
    if not isinstance(value, dict) or not _is_json(repaired):
        return text, None, "unparsed"
    return text, repaired, "repaired"
