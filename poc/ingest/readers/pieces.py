"""The objects in a JSON text, out of lists and known holders; where the text is broken, those in its whole parts.

Knows JSON, not what the objects mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.readers.decoding import DECODE_ERRORS, loads
from poc.trajectory import Reject

_DEPTH = 6


class Piece(msgspec.Struct):
    """One object and where it stands. `holds` says that it is what stood around the objects that follow."""

    place: str
    value: dict[str, Any]
    holds: bool = False

    def reject(self, reason: str, *, records: int = 1) -> Reject:
        """This object as a reject."""
        raw = jsonstream.excerpt(jsonstream.compact(self.value).encode("utf-8", "replace"))
        return Reject(place=self.place, reason=reason, raw=raw, records=records)


def objects(place: str, raw: bytes, holders: tuple[str, ...], depth: int = 0) -> Iterator[Piece | Reject]:
    """The objects of a text in order.

    An object whose member in `holders` is a list of objects is given first,
    without that member, if anything is left of it, then the members one by one.
    """
    try:
        yield from _within(place, msgspec.json.decode(raw), holders, depth)
        return
    except DECODE_ERRORS:
        pass
    mended = jsonstream.mend(raw)
    if mended is not None:
        note = f"kept, with changes: {mended[1]}"
        yield Reject(place=place, reason=note, raw=jsonstream.excerpt(raw), records=0)
        yield from _within(place, msgspec.json.decode(mended[0]), holders, depth)
    elif raw[:1] == b"[" and depth < _DEPTH:
        parts, cut = jsonstream.elements(raw)
        for index, (_, part) in enumerate(parts):
            yield from objects(f"{place} [{index}]", bytes(part).strip(), holders, depth + 1)
        rest = b"" if cut is None else raw[cut:].strip()
        inner = jsonstream.members(rest)[0] if rest[:1] == b"{" else {}
        if any(inner.get(key, b"")[:1] == b"[" for key in holders):  # the break lies inside: what is before it is whole
            yield from objects(f"{place} [{len(parts)}]", rest, holders, depth + 1)
        elif cut is not None:
            reason = "broken JSON: from here on nothing could be read"
            if not rest:
                reason = "the file ends in the middle of a value"
            yield Reject(place=f"{place} +{cut}", reason=reason, raw=jsonstream.excerpt(rest) or None)
    elif raw[:1] == b"{" and depth < _DEPTH:
        known, cut = jsonstream.members(raw)
        held = [key for key in holders if known.get(key, b"").strip()[:1] == b"["]
        rest = {key: loads(text) for key, text in known.items() if key not in held}
        if held and rest:
            yield Piece(place, rest, holds=True)
        for key in held:
            yield from objects(f"{place} .{key}", known[key].strip(), holders, depth + 1)
        if not held:
            yield Reject(place=place, reason=jsonstream.why(raw), raw=jsonstream.excerpt(raw))
        elif next(reversed(known)) not in held and cut is not None:
            reason = "broken JSON: what stood around the records is lost from here on"
            yield Reject(place=f"{place} +{cut}", reason=reason, raw=jsonstream.excerpt(raw[cut:]), records=0)
    else:
        yield Reject(place=place, reason=jsonstream.why(raw), raw=jsonstream.excerpt(raw))


def _within(place: str, value: Any, holders: tuple[str, ...], depth: int) -> Iterator[Piece | Reject]:
    if isinstance(value, list) and depth < _DEPTH:
        for index, item in enumerate(value):
            yield from _within(f"{place} [{index}]", item, holders, depth + 1)
    elif isinstance(value, dict):
        held = [key for key in holders if isinstance(value.get(key), list) and depth < _DEPTH]
        rest = {key: item for key, item in value.items() if key not in held} if held else value
        if rest:
            yield Piece(place, rest, holds=bool(held))
        for key in held:
            yield from _within(f"{place} .{key}", value[key], holders, depth + 1)
    else:
        reason = "not an object or a list of objects"
        yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(msgspec.json.encode(value)))
