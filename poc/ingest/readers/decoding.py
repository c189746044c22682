"""Records decoded as a reader wants them, and first looks at a file for `sniff`.

Text that is nearly JSON is mended and the change noted; what cannot be read
becomes a reject. Looking into a sample is done once for all readers, which
may be cut off anywhere. Knows JSON, not what the records mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from poc.ingest import jsonstream
from poc.trajectory import Reject

T = TypeVar("T")
Head = dict[str, bytes]
"""The members of an object as texts; the last may be cut off."""

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LOOK_AT = 20


class Glimpse(msgspec.Struct, frozen=True):
    """The first records of a file.

    records: their texts (lines, the elements of a list, or one document).
    heads: the members of those that are objects.
    listed: whether the file is one list.
    """

    records: list[bytes]
    heads: list[Head]
    listed: bool = False

    @property
    def first(self) -> Head:
        """The members of the first object; empty where there is none."""
        return self.heads[0] if self.heads else {}


def decode(place: str, raw: bytes, decoder: Callable[[bytes], T]) -> tuple[T | None, Reject | None]:
    """The record, mended if need be, and a reject that says what was changed (0 records) or why it is lost (1)."""
    try:
        return decoder(raw), None
    except DECODE_ERRORS as error:
        wrong: Exception = error
    mended = jsonstream.mend(raw)
    if mended is not None:
        try:
            record = decoder(mended[0])
        except DECODE_ERRORS as error:
            wrong = error
        else:
            note = f"kept, with changes: {mended[1]}"
            return record, Reject(place=place, reason=note, raw=jsonstream.excerpt(raw), records=0)
    if isinstance(wrong, msgspec.ValidationError):
        reason = f"the record is not as this format has it: {wrong}"
    else:
        reason = jsonstream.why(raw)
    return None, Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw))


@lru_cache(maxsize=4)
def glimpse(sample: bytes) -> Glimpse:
    """The first records of a sample that may be cut off anywhere."""
    body = sample.removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = [line.strip() for line in body[: 1 << 18].splitlines()[: _LOOK_AT * 2]]
    lines = [line for line in lines if line][:_LOOK_AT]
    # The last line may be cut off, and one long line may be the whole sample.
    whole = [line for line in lines if line[:1] in (b"{", b"[") and _complete(line)]
    if len(whole) >= 2 and len(whole) * 2 >= len(lines) - 1:
        return Glimpse(whole, [members(line) for line in whole if line[:1] == b"{"])
    if body[:1] == b"[":
        parts = elements(body)[:_LOOK_AT]
        return Glimpse(parts, [members(part) for part in parts if part[:1] == b"{"], listed=True)
    if body[:1] == b"{":
        return Glimpse([body], [members(body)])
    return Glimpse(whole, [members(line) for line in whole if line[:1] == b"{"])


def members(raw: bytes) -> Head:
    """The members of an object that may be cut off; empty for anything else."""
    return jsonstream.members(raw)[0] if raw[:1] == b"{" else {}


def elements(raw: bytes) -> list[bytes]:
    """The elements of a list that may be cut off, the cut one last; empty for anything else."""
    if raw[:1] != b"[":
        return []
    parts, broken = jsonstream.elements(raw)
    found = [bytes(part).strip() for _, part in parts]
    if broken is not None and raw[broken : broken + 1] in (b"{", b"["):
        found.append(raw[broken:])
    return found


def text(raw: bytes | None) -> str | None:
    """The string that a member holds; None for anything else."""
    if not raw or raw[:1] != b'"':
        return None
    try:
        return msgspec.json.decode(raw, type=str)
    except DECODE_ERRORS:
        return None


def loads(raw: bytes | msgspec.Raw) -> Any:
    """The value, or None where the text is no JSON."""
    try:
        return msgspec.json.decode(raw)
    except DECODE_ERRORS:
        return None


def _complete(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except DECODE_ERRORS:
        return False
    return True
