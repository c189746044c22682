"""JSON records out of a file: one a line, or documents one after the other.

Files lie about their type, so the layout is told from the content. Lines and
offsets are counted here. A broken line costs that line; in a broken document
everything before the break is still found (`elements`, `members`). Text that
is nearly JSON (invalid UTF-8, NaN, lone surrogates) is mended by `mend`, which
says what it changed. Knows JSON, not what the records mean.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from poc.ingest.sources import Source

Layout = Literal["lines", "documents"]
EXCERPT = 500
"""Bytes of a rejected record that are kept."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
_BLANK = re.compile(rb"[\s,]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SCALAR = re.compile(rb"[^\s,\[\]{}\"]+")
_BETWEEN = re.compile(rb"[^\[{]+")
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_LONGEST = 1 << 28
_OPEN = {ord("["): ord("]"), ord("{"): ord("}")}
_JSON_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError)


class Value(msgspec.Struct, gc=False):
    """One JSON text and where it stands: ``line 7`` or ``offset 1024``."""

    place: str
    raw: bytes


def layout(source: Source) -> Layout:
    """Whether each line is a record of its own. Decided on the first lines; one line alone is a document."""
    lines = [line for line in source.sample.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    if not source.whole:
        lines = lines[:-1]  # the last one is cut
    if len(lines) < 2:
        return "lines" if not source.whole and _is_long_line(source) else "documents"
    looked_at = lines[:50]
    complete = sum(_is_record(line) for line in looked_at)
    return "lines" if complete * 2 >= len(looked_at) else "documents"


def _is_long_line(source: Source) -> bool:
    """Whether the file's first line, longer than the sample, is a record and another one follows."""
    with source.open() as file:
        first, then = file.readline(_LONGEST), file.read(1 << 16)
    return bool(then.strip()) and then.lstrip()[:1] in (b"{", b"[") and _is_record(first)


def values(source: Source) -> Iterator[Value]:
    """The top-level values of the file in order, unparsed. Progress is kept in ``source.consumed``."""
    if layout(source) == "lines":
        yield from _lines(source)
    else:
        yield from _documents(source)


def _lines(source: Source) -> Iterator[Value]:
    with source.open() as file:
        for number, line in enumerate(file, source.first_line):
            source.consumed += len(line)
            record = line.strip()
            if record:
                yield Value(f"line {number}", record)


def _documents(source: Source) -> Iterator[Value]:
    with source.open() as file:
        data = file.read()
    shift = source.size - len(data)
    if _is_complete(data):  # the usual case: one document
        source.consumed = source.size
        yield Value(f"offset {shift}", data)
        return
    position = _skip(data, 0)
    while position < len(data):
        if data[position] in _OPEN:
            stop = value_end(data, position) or len(data)
        else:  # text between documents is one piece
            text = _BETWEEN.match(data, position)
            stop = text.end() if text else len(data)
        source.consumed = shift + stop
        yield Value(f"offset {shift + position}", data[position:stop])
        position = _skip(data, stop)
    source.consumed = source.size


def value_end(data: bytes, start: int) -> int | None:
    """Where the value that starts at `start` ends; None when it is cut. Only brackets and strings are looked at."""
    if data[start] not in b'[{"':
        scalar = _SCALAR.match(data, start)
        return scalar.end() if scalar else start + 1
    if data[start] in _OPEN:
        try:
            msgspec.json.decode(memoryview(data)[start:], type=msgspec.Raw)
            return len(data.rstrip())
        except _JSON_ERRORS as error:  # the parser finds the end of a sound value much faster than we do
            told = _TRAILING.search(str(error))
            end = start + len(data[start : start + int(told[1]) - 1].rstrip()) if told else 0
            if end > start and data[end - 1] == _OPEN[data[start]]:
                return end
    expected: list[int] = []
    for token in _TOKEN.finditer(data, start):
        first = data[token.start()]
        if first == 0x22:
            if token.end() - token.start() == 1:
                return None  # a string that never ends
            if not expected:
                return token.end()
        elif first in _OPEN:
            expected.append(_OPEN[first])
        else:
            if not expected or expected.pop() != first:
                return None
            if not expected:
                return token.end()
    return None


def elements(raw: bytes) -> tuple[list[tuple[int, msgspec.Raw | bytes]], int | None]:
    """The elements of a JSON array as (offset, text), and the offset of the break if it is broken.

    In an unbroken array the offsets are not looked for and are -1.
    An element that is itself malformed but whose brackets close is among them.
    """
    try:
        return [(-1, part) for part in msgspec.json.decode(raw, type=list[msgspec.Raw])], None
    except _JSON_ERRORS:
        pass
    found: list[tuple[int, msgspec.Raw | bytes]] = []
    position = _skip(raw, raw.index(b"[") + 1)
    while position < len(raw):
        if raw[position] == 0x5D:
            rest = _skip(raw, position + 1)
            return found, rest if rest < len(raw) else None
        end = value_end(raw, position)
        if end is None:
            return found, position
        found.append((position, raw[position:end]))
        position = _skip(raw, end)
    return found, position


def members(raw: bytes) -> tuple[dict[str, bytes], int | None]:
    """The members of a JSON object as texts, and the offset of the break if it is broken.

    The member in which the break lies is given as far as it goes.
    """
    try:
        return {key: bytes(part) for key, part in msgspec.json.decode(raw, type=dict[str, msgspec.Raw]).items()}, None
    except _JSON_ERRORS:
        pass
    found: dict[str, bytes] = {}
    position = _skip(raw, raw.index(b"{") + 1)
    while position < len(raw):
        if raw[position] == 0x7D:
            rest = _skip(raw, position + 1)
            return found, rest if rest < len(raw) else None
        end = value_end(raw, position) if raw[position] == 0x22 else None
        if end is None:
            return found, position
        colon = re.compile(rb"\s*:\s*").match(raw, end)
        try:
            key = msgspec.json.decode(raw[position:end], type=str)
        except _JSON_ERRORS:
            return found, position
        if colon is None or colon.end() >= len(raw):
            return found, position
        stop = value_end(raw, colon.end())
        found[key] = raw[colon.end() : stop]
        if stop is None:
            return found, colon.end()
        position = _skip(raw, stop)
    return found, position


def mend(raw: bytes) -> tuple[bytes, str] | None:
    """The record as strict JSON and what was changed to make it so; None when it is past mending."""
    changes: list[str] = []
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        text = raw.decode(errors="replace")
        changes.append(f"invalid UTF-8 at byte {error.start} replaced")

    def constant(name: str) -> None:
        changes.append(f"{name} replaced by null")

    def number(digits: str) -> float | None:
        value = float(digits)
        if math.isfinite(value):
            return value
        changes.append(f"number {digits} too large, replaced by null")
        return None

    try:
        value = json.loads(text, parse_constant=constant, parse_float=number, strict=False)
        mended = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    try:
        clean = mended.encode()
    except UnicodeEncodeError:
        clean = _SURROGATE.sub("\ufffd", mended).encode()
        changes.append("lone surrogate replaced")
    if not changes:
        changes.append("control characters inside strings")
    return clean, "; ".join(dict.fromkeys(changes))


def why(raw: bytes) -> str:
    """What is wrong with a text that is no JSON, with the place inside it."""
    try:
        json.loads(raw.decode(errors="replace"))
    except json.JSONDecodeError as error:
        return f"broken JSON at character {error.pos}: {error.msg}"
    except RecursionError:
        return "the JSON is nested too deeply"
    except ValueError as error:
        return f"broken JSON: {error}"
    return "broken JSON"


def excerpt(raw: bytes) -> str:
    """The first part of a record as text, for the list of rejects."""
    text = raw[:EXCERPT].decode(errors="replace").replace("\x00", "\ufffd")
    return text + (" …" if len(raw) > EXCERPT else "")


def _skip(data: bytes, position: int) -> int:
    blank = _BLANK.match(data, position)
    return blank.end() if blank else position


def _is_record(line: bytes) -> bool:
    record = line.strip()
    return record[:1] in (b"{", b"[") and _is_complete(record)


def _is_complete(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except _JSON_ERRORS:
        return False
    return True


def compact(value: Any) -> str:
    """A parsed value as JSON text without blanks; what JSON cannot say is written as text."""
    return _compact(value)
