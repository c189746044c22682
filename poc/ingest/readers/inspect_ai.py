"""Inspect AI logs: ``.eval`` archives and ``.json``.

An ``.eval`` is a zip: ``header.json`` with ``eval``, ``results``, ``status``;
``samples/<id>_epoch_<n>.json``; ``summaries.json``; ``_journal/``. A log that
was interrupted has no header; ``_journal/start.json`` then says what was
evaluated. A ``.json`` log is one object with the header's members and
``samples[]``. A sample taken out of an archive is read as well.

A run is a sample in one epoch: task `sample id`, trial `epoch`, category the
Inspect task. What a sample holds is in `inspect_sample`. Records are samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.readers import inspect_archive
from poc.ingest.readers.decoding import decode, glimpse, members
from poc.ingest.readers.inspect_archive import Archive, Unreadable
from poc.ingest.readers.inspect_sample import Sample, build
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "inspect_ai"
VERSION = 1
MAGIC = (inspect_archive.MAGIC,)

_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_decode_sample = msgspec.json.Decoder(Sample).decode


def sniff(sample: bytes, name: str) -> float:
    """By the names of an archive's entries, or by the members of the log."""
    if sample.startswith(inspect_archive.MAGIC):
        names = inspect_archive.names_in(sample)
        return 0.97 if any(name in (_HEADER, _START) or _is_sample(name) for name in names) else 0.0
    head = glimpse(sample).first
    evaluated = members(head.get("eval", b""))
    if {"task", "run_id"} <= evaluated.keys() or ("task" in evaluated and {"version", "status"} <= head.keys()):
        return 0.98
    return 0.93 if {"id", "epoch", "input", "target"} <= head.keys() else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each sample."""
    if source.magic != inspect_archive.MAGIC:
        for value in jsonstream.values(source):
            yield from _log(value)
        return
    try:
        with inspect_archive.opened(source) as archive:
            yield from _archive(archive, source)
    except Unreadable as error:
        yield Reject(place="file", reason=str(error))


def _is_sample(name: str) -> bool:
    return name.startswith(_SAMPLES) and name.endswith(".json") and "_epoch_" in name


def _archive(archive: Archive, source: Source) -> Iterator[Run | Reject]:
    if not archive.whole:
        reason = "kept in part: the archive is cut off or damaged; entries that stand whole before the break were read"
        yield Reject(place="file", reason=reason, records=0)
    header: dict[str, Any] = {}
    for name in (_HEADER, _START):
        if name in archive.entries and not header:
            try:
                header = _object(archive.read(name))
            except Unreadable as error:
                yield Reject(place=name, reason=str(error), records=0)
    names = [name for name in archive.entries if _is_sample(name)]
    if not names:
        yield _no_samples("file")
    for number, name in enumerate(names, 1):
        try:
            yield from _sample(name, archive.read(name), header)
        except Unreadable as error:
            yield Reject(place=name, reason=str(error))
        source.consumed = source.size * number // len(names)


def _log(value: jsonstream.Value) -> Iterator[Run | Reject]:
    parts, broken = jsonstream.members(value.raw) if value.raw[:1] == b"{" else ({}, None)
    if "samples" not in parts and {"epoch", "input"} <= parts.keys():
        yield from _sample(value.place, value.raw, {})
        return
    listed = parts.pop("samples", b"").strip()
    if listed[:1] == b"[":
        header = {key: _value(part) for key, part in parts.items()}
        samples, cut = jsonstream.elements(listed)
        for index, (_, raw) in enumerate(samples):
            yield from _sample(f"{value.place} .samples[{index}]", bytes(raw).strip(), header)
        if cut is not None:
            broken = None
            yield _break(f"{value.place} .samples +{cut}", listed[cut:])
        if not samples and cut is None:
            yield _no_samples(value.place)
    elif broken is None and "eval" in parts:
        yield _no_samples(value.place)
    elif broken is None:
        raw = jsonstream.excerpt(value.raw)
        yield Reject(place=value.place, reason="no log of Inspect: it has neither eval nor samples", raw=raw)
    if broken is not None:
        yield _break(f"{value.place} +{broken}", value.raw[broken:])


def _break(place: str, rest: bytes) -> Reject:
    reason = "broken JSON: from here on nothing could be read"
    return Reject(place=place, reason=reason, raw=jsonstream.excerpt(rest.strip()) or None)


def _no_samples(place: str) -> Reject:
    reason = "the log holds no samples, only results: it was written with log_samples off, or stopped before the first"
    return Reject(place=place, reason=reason)


def _sample(place: str, raw: bytes, header: dict[str, Any]) -> Iterator[Run | Reject]:
    sample, fault = decode(place, raw, _decode_sample)
    if fault is not None:
        yield fault
    if sample is not None:
        yield build(sample, header, place)


def _object(raw: bytes) -> dict[str, Any]:
    value = _value(raw)
    return value if isinstance(value, dict) else {}


def _value(raw: bytes) -> Any:
    """A part of the header; one that is broken is left out."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        mended = jsonstream.mend(raw)
        return None if mended is None else msgspec.json.decode(mended[0])
