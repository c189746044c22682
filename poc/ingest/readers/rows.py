"""Rows out of a CSV file or JSON objects, with their places. Knows cells, not what they mean."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.sources import Source
from poc.trajectory import Reject

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

csv.field_size_limit(1 << 30)  # a result can be longer than the module's own limit of 128 KB

FIRST = 50
"""Rows that are looked at to tell what columns hold."""


class JsonText(str):
    """A cell that holds a JSON object or list, as it stands in the file: numbers keep every digit."""

    __slots__ = ()


class Row(msgspec.Struct, gc=False):
    """One row: cells by column name; an empty cell of a CSV is None."""

    place: str
    cells: dict[str, Any]


def is_csv(sample: bytes) -> bool:
    """Whether the text is delimited, not JSON."""
    return sample.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"[")


def is_one_object(sample: bytes) -> bool:
    """Whether the text is a single JSON object that goes over more than one line, or the only line."""
    body = sample.removeprefix(b"\xef\xbb\xbf").strip()
    first = body.split(b"\n", 1)[0].strip()
    return body[:1] == b"{" and (first == body or not first.endswith(b"}"))


def columns_of(sample: bytes) -> list[str]:
    """The column names that the first part of a file shows; empty if it is no table."""
    if is_csv(sample):
        try:
            header = next(csv.reader(io.StringIO(_text(sample), newline=None), delimiter=_delimiter(sample)), [])
        except csv.Error:
            return []  # no table
        names = [name.strip() for name in header]
        return names if len(names) > 1 and all(names) and len(set(names)) == len(names) else []
    seen: dict[str, None] = {}
    for record in _first_objects(sample):
        seen.update(dict.fromkeys(record))
    return list(seen)


def first_rows(sample: bytes) -> list[dict[str, Any]]:
    """The first rows that a sample of a text file shows."""
    if not is_csv(sample):
        return [*_first_objects(sample)]
    columns = columns_of(sample)
    text = io.StringIO(_text(sample), newline=None)
    found: list[dict[str, Any]] = []
    try:
        for cells in list(zip(range(FIRST + 1), csv.reader(text, delimiter=_delimiter(sample)), strict=False))[1:]:
            if len(cells[1]) == len(columns):
                found.append({name: cell or None for name, cell in zip(columns, cells[1], strict=True)})
    except csv.Error:
        return found  # no table, or a row that is cut off: what came before it will do
    return found


def rows(source: Source, exact: str | None = None) -> Iterator[Row | Reject]:
    """The rows of the file in order, and a reject for each that is none.

    exact: a column whose objects are wanted as `JsonText`, not parsed.
    """
    yield from _csv_rows(source) if is_csv(source.sample) else _json_rows(source, exact)


def _csv_rows(source: Source) -> Iterator[Row | Reject]:
    with source.open() as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", errors="surrogateescape", newline="")
        reader = csv.reader(text, delimiter=_delimiter(source.sample))
        header = [name.strip() for name in next(reader, [])]
        before = reader.line_num
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield Reject(place=f"line {before + 1}", reason=f"broken CSV: {error}")
                before = reader.line_num
                continue
            if cells is None:
                break
            place, before = f"line {before + 1}", reader.line_num
            source.consumed = min(source.size, max(source.consumed, binary.tell()))
            if not cells:
                continue
            if len(cells) != len(header):
                reason = f"{len(cells)} cells, but the header names {len(header)} columns"
                yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(_line(cells)))
                continue
            if any(not cell.isascii() and _has_surrogate(cell) for cell in cells):
                reason = "kept, with changes: invalid UTF-8 replaced"
                yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(_line(cells)), records=0)
                cells = [cell.encode("utf-8", "surrogateescape").decode(errors="replace") for cell in cells]
            yield Row(place, {name: cell or None for name, cell in zip(header, cells, strict=True)})
        text.detach()


def _json_rows(source: Source, exact: str | None) -> Iterator[Row | Reject]:
    for value in jsonstream.values(source):
        if value.raw[:1] == b"[":
            parts, broken = jsonstream.elements(value.raw)
            for index, (_, part) in enumerate(parts):
                yield from _json_row(f"{value.place} [{index}]", bytes(part).strip(), exact)
            if broken is not None:
                yield Reject(
                    place=f"{value.place} +{broken}",
                    reason="broken JSON: from here on nothing could be read",
                    raw=jsonstream.excerpt(value.raw[broken:]),
                )
        else:
            yield from _json_row(value.place, value.raw, exact)


def _json_row(place: str, raw: bytes, exact: str | None) -> Iterator[Row | Reject]:
    try:
        cells: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        mended = jsonstream.mend(raw)
        if mended is None:
            yield Reject(place=place, reason=jsonstream.why(raw), raw=jsonstream.excerpt(raw))
            return
        raw = mended[0]
        cells = msgspec.json.decode(raw)
        note = f"kept, with changes: {mended[1]}"
        if isinstance(cells, dict):
            yield Reject(place=place, reason=note, raw=jsonstream.excerpt(raw), records=0)
    if isinstance(cells, dict):
        if exact is not None and isinstance(cells.get(exact), dict | list):
            cells[exact] = JsonText(bytes(_members(raw)[exact]).decode())
        yield Row(place, cells)
    else:
        yield Reject(place=place, reason="not a JSON object with columns", raw=jsonstream.excerpt(raw))


def _first_objects(sample: bytes) -> Iterator[dict[str, Any]]:
    body = sample.removeprefix(b"\xef\xbb\xbf").lstrip()
    if body[:1] == b"[":
        texts = [bytes(part) for _, part in jsonstream.elements(body)[0][:FIRST]]
    else:
        texts = body.splitlines()[:FIRST]
        if len(texts) == 1 or not texts[0].strip().endswith(b"}"):
            end = jsonstream.value_end(body, 0)
            texts = [body[:end]]
    for text in texts:
        try:
            record = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        if isinstance(record, dict):
            yield record


def _delimiter(sample: bytes) -> str:
    first = next(iter(_text(sample).splitlines()), "")
    return max(",;\t|", key=first.count)


def _text(sample: bytes) -> str:
    return sample.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _line(cells: list[str]) -> bytes:
    return ",".join(cells).encode("utf-8", "surrogateescape")
