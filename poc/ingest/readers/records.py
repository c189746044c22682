"""Parsed JSON records out of a file, for readers that look at whole values.

Text that is nearly JSON is mended and the change noted; what is past mending
becomes a reject with its place. Knows JSON, not what the records mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.readers.decoding import DECODE_ERRORS, decode
from poc.ingest.sources import Source
from poc.trajectory import Reject


class Record(msgspec.Struct, gc=False):
    """One parsed JSON value, where it stands, and its text."""

    place: str
    value: Any
    raw: bytes

    def reject(self, reason: str, *, records: int = 1) -> Reject:
        """This record as a reject; `records` 0 notes a fault in a record that is kept."""
        return Reject(place=self.place, reason=reason, raw=jsonstream.excerpt(self.raw), records=records)


def records(source: Source, *, flat: bool = False) -> Iterator[Record | Reject]:
    """The JSON values of the file in order; with `flat`, the elements of a top-level list one by one."""
    for value in jsonstream.values(source):
        if not flat or value.raw[:1] != b"[":
            try:  # the usual case without the detour
                yield Record(value.place, msgspec.json.decode(value.raw), value.raw)
            except DECODE_ERRORS:
                yield from parsed(value.place, value.raw)
            continue
        parts, broken = jsonstream.elements(value.raw)
        for index, (_, part) in enumerate(parts):
            yield from parsed(f"{value.place} [{index}]", bytes(part).strip())
        if broken is not None:
            yield Reject(
                place=f"{value.place} +{broken}",
                reason="broken JSON: from here on nothing could be read",
                raw=jsonstream.excerpt(value.raw[broken:]),
            )


def parsed(place: str, raw: bytes) -> Iterator[Record | Reject]:
    """The value of one JSON text, after a note where it had to be mended; a reject where it could not be."""
    value, fault = decode(place, raw, msgspec.json.decode)
    if fault is not None:
        yield fault
    if fault is None or fault.records == 0:
        yield Record(place, value, raw)


def left_over(values: dict[str, Any], *used: str) -> dict[str, Any]:
    """What of an object no field of the run holds, for its metadata."""
    return {key: value for key, value in values.items() if key not in used and value is not None}
