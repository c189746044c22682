"""What belongs to one trace, gathered from all over a file, or from several that are read together.

Parts of a trace may stand anywhere. In a file of lines, and in one list, each
trace is given out as soon as the last record that names it is past, so that
little is held at a time; which record that is, is told from the text alone,
before anything is parsed. Knows no format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from poc.ingest import jsonstream
from poc.ingest.readers.decoding import DECODE_ERRORS
from poc.ingest.readers.spans import hex_id
from poc.ingest.sources import Source, Unreadable
from poc.trajectory import Reject, Run

_TRACE = re.compile(rb'race(?:Id|_id|ID)"\s*:\s*"([^"\\]{1,200})"|race_([0-9a-zA-Z]{1,200})"')
_ANY = re.compile(rb'"(?:traceId|trace_id|id|dotted_order)"\s*:\s*"(?:\d{8}T\d+Z)?([^"\\.]{1,200})')

T = TypeVar("T")
Build = Callable[[str | None, list[T]], Iterator[Run | Reject]]
"""Makes the run of one trace out of all that belongs to it."""
Parse = Callable[[jsonstream.Value], Iterator[tuple[str | None, T] | Run | Reject]]
"""Reads one record of a file: the id of a trace, and what belongs to it; or a whole run."""
_parts = msgspec.json.Decoder(list[msgspec.Raw]).decode


Ids = Callable[[bytes], Iterable[bytes]]
"""Finds the ids of traces in the text of a record; it may find more than those."""


def trace_ids(record: bytes) -> list[bytes]:
    """The ids that stand under some spelling of ``trace_id``, and those of the OpenAI Agents SDK (``trace_...``)."""
    found: list[bytes] = []
    at = record.find(b"race")
    while at >= 0:  # much faster than to let the pattern search
        match = _TRACE.match(record, at)
        if match:
            found.append(match[1] or b"trace_" + match[2])
        at = record.find(b"race", at + 4)
    return found


def any_ids(record: bytes) -> list[bytes]:
    """For formats in which the trace itself, or a part of it, may stand under its own ``id`` alone."""
    return _ANY.findall(record)


def trace_keys(source: Source, ids: Ids = trace_ids) -> set[str]:
    """The ids of the traces of a text file (and maybe more than those): what a reader's ``keys`` gives."""
    found: set[bytes] = set()
    if source.magic is None:
        with source.open() as file:
            for line in file:
                found.update(ids(line))
    return {trace for raw in found if (trace := hex_id(raw.decode(errors="replace"))) is not None}


def by_trace(source: Source, parse: Parse[T], build: Build[T], ids: Ids = trace_ids) -> Iterator[Run | Reject]:
    """The runs of all traces in the file, in the order in which the traces end (else: begin).

    Of several files that are read together each trace is made of the parts in all of them; a file that is known
    gives only what belongs to the others.
    """
    files = source.parts
    several = len(files) > 1
    named = [trace_keys(file, ids) for file in files] if several else [set[str]()]
    wanted = {trace for file, its in zip(files, named, strict=True) if not file.known for trace in its}
    waiting: dict[str | None, list[T]] = {}
    shares: dict[str | None, list[int]] = {}

    def done(trace: str | None) -> Iterator[Run | Reject]:
        parts, share = waiting.pop(trace, None), shares.pop(trace, [])
        for item in build(trace, parts) if parts else ():
            if several:
                _attribute(item, share)
            yield item

    for place, file in enumerate(files):
        source.reading = place
        alone = [int(other == place) for other in range(len(files))]
        later = set[str]().union(*named[place + 1 :])
        try:
            records, last = _records(file, ids)
            due: dict[int, list[str]] = {}
            for trace, number in last.items():
                if trace not in later:
                    due.setdefault(number, []).append(trace)
            for number, value in enumerate(records):
                for item in parse(value):
                    if isinstance(item, tuple):
                        trace, part = item
                        if not file.known or trace in wanted:
                            waiting.setdefault(trace, []).append(part)
                            if several:
                                shares.setdefault(trace, [0] * len(files))[place] += 1
                    elif not file.known:
                        if several:
                            _attribute(item, alone)
                        yield item
                for trace in due.get(number, ()):
                    yield from done(trace)
        except Unreadable as error:  # this file does not cost those that are read with it
            if not several:
                raise
            file.broken = True
            reason = f"{error.what} From here on nothing was read"
            yield Reject(place=f"byte {file.consumed}", reason=reason, file=place)
        for trace in [trace for trace in waiting if trace is None or trace not in later]:
            yield from done(trace)


def _attribute(item: Run | Reject, share: list[int]) -> None:
    """Say which files an item came from, given how many records of its trace stood in which."""
    first = next(place for place, count in enumerate(share) if count)
    if isinstance(item, Reject):
        item.file = first
    elif sum(share) == item.records:
        item.shares = share
    else:  # one of several runs of the trace
        item.shares = [item.records if place == first else 0 for place in range(len(share))]


def _records(source: Source, ids: Ids) -> tuple[Iterable[jsonstream.Value], dict[str, int]]:
    """The records of a file, and for each trace the number of the last one that names it (none: not known)."""
    if jsonstream.layout(source) == "lines":
        with source.open() as file:
            return jsonstream.values(source), _last((line for line in file if line.strip()), ids)
    with source.open() as file:  # such a file is read as a whole
        data = file.read()
    try:
        parts = _parts(data)
    except DECODE_ERRORS:  # no list, or not a sound one
        return jsonstream.values(source), {}
    source.consumed = source.size
    place = f"offset {source.size - len(data)}"
    elements = (jsonstream.Value(f"{place} [{index}]", bytes(part)) for index, part in enumerate(parts))
    return elements, _last(map(bytes, parts), ids)


def _last(records: Iterable[bytes], ids: Ids) -> dict[str, int]:
    found: dict[bytes, int] = {}
    for number, record in enumerate(records):
        for trace in ids(record):
            found[trace] = number
    last: dict[str, int] = {}
    for raw, number in found.items():
        trace = hex_id(raw.decode(errors="replace"))
        if trace is not None:
            last[trace] = max(number, last.get(trace, 0))
    return last
