"""Spans out of a file, and the traces that they make.

Containers: OTLP JSON (one object, or one a line), Tempo (``batches``, newer
``trace``), Jaeger (``data[].spans`` with ``processes``), flat lists, lines or
concatenated objects. A break in a document costs what stands after it in that
list, no more. Knows no meaning of any attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.readers.by_trace import Build, by_trace
from poc.ingest.readers.decoding import DECODE_ERRORS, Glimpse, Head, glimpse, members
from poc.ingest.readers.decoding import elements as parts_of
from poc.ingest.readers.spans import Span, is_span, pairs, read_span
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

_LISTS = ("resourceSpans", "resource_spans", "batches", "data", "traces", "spans")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
_INSIDE = (*_LISTS, *_SCOPES, "trace")
_HOLDING = frozenset(_INSIDE)
_DEPTH = 8


class Context(msgspec.Struct):
    """What a container says for the spans in it."""

    resource: dict[str, Any] = {}
    scope: Any = None
    processes: dict[str, dict[str, Any]] = {}


def traces(source: Source, build: Build[Span]) -> Iterator[Run | Reject]:
    """The runs of all traces of spans in the file. A span that an exporter wrote twice is one span."""

    def once(trace: str | None, spans: list[Span]) -> Iterator[Run | Reject]:
        single = _once(spans)
        for item in build(trace, single):
            if isinstance(item, Run):
                item.records += len(spans) - len(single)
            yield item

    yield from by_trace(source, _spans, once)


def _once(spans: list[Span]) -> list[Span]:
    """Each span once, where it first stood; of two with one id the one that says more, in doubt the later one."""
    if len({span.span_id for span in spans if span.span_id is not None}) == len(spans):
        return spans
    known: dict[str, int] = {}
    kept: list[Span] = []
    for span in spans:
        place = known.setdefault(span.span_id, len(kept)) if span.span_id is not None else len(kept)
        if place == len(kept):
            kept.append(span)
        elif _told(span) >= _told(kept[place]):
            span.place = kept[place].place
            kept[place] = span
    return kept


def _told(span: Span) -> tuple[bool, int]:
    return span.end is not None, len(span.attributes) + len(span.events)


def _spans(value: jsonstream.Value) -> Iterator[tuple[str | None, Span] | Reject]:
    for item in _text(value.place, value.raw, Context(), 0):
        yield item if isinstance(item, Reject) else (item.trace_id, item)


def _text(place: str, raw: bytes, context: Context, depth: int) -> Iterator[Span | Reject]:
    """The spans in one JSON text; where it is broken, those in its whole parts."""
    try:
        yield from _parsed(place, msgspec.json.decode(raw), context, depth)
        return
    except DECODE_ERRORS:
        pass
    mended = jsonstream.mend(raw)
    if mended is not None:
        note = f"kept, with changes: {mended[1]}"
        yield Reject(place=place, reason=note, raw=jsonstream.excerpt(raw), records=0)
        yield from _parsed(place, msgspec.json.decode(mended[0]), context, depth)
        return
    if raw[:1] == b"[" and depth < _DEPTH:
        yield from _broken_list(place, raw, context, depth)
    elif raw[:1] == b"{" and depth < _DEPTH:
        yield from _broken_object(place, raw, context, depth)
    else:
        yield Reject(place=place, reason=jsonstream.why(raw), raw=jsonstream.excerpt(raw))


def _broken_list(place: str, raw: bytes, context: Context, depth: int) -> Iterator[Span | Reject]:
    parts, cut = jsonstream.elements(raw)
    for index, (_, part) in enumerate(parts):
        yield from _text(f"{place} [{index}]", bytes(part).strip(), context, depth + 1)
    if cut is None:
        return
    rest = raw[cut:].strip()
    inner = members(rest)
    if any(key in inner for key in _INSIDE):
        yield from _broken_object(f"{place} [{len(parts)}]", rest, context, depth + 1)
    else:
        reason = "broken JSON: from here on nothing could be read" if rest else "the file ends in the middle of a value"
        yield Reject(place=f"{place} +{cut}", reason=reason, raw=jsonstream.excerpt(rest) or None)


def _broken_object(place: str, raw: bytes, context: Context, depth: int) -> Iterator[Span | Reject]:
    known, _ = jsonstream.members(raw)
    for key in _INSIDE:
        inside = known.get(key, b"").strip()
        if inside[:1] in (b"[", b"{"):
            plain = {name: _plain(text) for name, text in known.items() if name != key}
            yield from _text(f"{place} .{key}", inside, _within(plain, context), depth + 1)
            return
    yield Reject(place=place, reason=jsonstream.why(raw), raw=jsonstream.excerpt(raw))


def _plain(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except DECODE_ERRORS:
        return None


def _parsed(place: str, value: Any, context: Context, depth: int) -> Iterator[Span | Reject]:
    if isinstance(value, list) and depth < _DEPTH:
        for index, item in enumerate(value):
            if isinstance(item, dict) and _HOLDING.isdisjoint(item) and is_span(item):  # the usual case, without detour
                yield _span(f"{place} [{index}]", item, context)
            else:
                yield from _parsed(f"{place} [{index}]", item, context, depth + 1)
        return
    if not isinstance(value, dict):
        yield Reject(place=place, reason="not a span or a list of spans", raw=_excerpt(value))
        return
    inside = None
    if not _HOLDING.isdisjoint(value):
        inside = next((key for key in _INSIDE if isinstance(value.get(key), list | dict)), None)
    if is_span(value) and (inside is None or inside == "data"):
        yield _span(place, value, context)
    elif inside is None or depth >= _DEPTH:
        if not _is_empty(value):
            reason = "no trace id, span id and name here: not a span"
            yield Reject(place=place, reason=reason, raw=_excerpt(value))
    else:
        within = _within(value, context)
        for key in _INSIDE:  # an export may have old and new names side by side
            if isinstance(value.get(key), list | dict):
                yield from _parsed(f"{place} .{key}", value[key], within, depth + 1)


def _span(place: str, value: dict[str, Any], context: Context) -> Span:
    resource = context.resource
    if "processID" in value:
        resource = context.processes.get(str(value["processID"]), resource)
    return read_span(value, place, scope=context.scope, resource=resource)


def _is_empty(value: dict[str, Any]) -> bool:
    """A container without spans is no fault."""
    return not value or any(key in value and not value[key] for key in _INSIDE) or "resource" in value


def _within(value: dict[str, Any], context: Context) -> Context:
    resource, scope, processes = context.resource, context.scope, context.processes
    if isinstance(value.get("resource"), dict):
        resource = pairs(value["resource"].get("attributes"))
    for key in ("scope", "instrumentationLibrary", "instrumentation_library"):
        scope = value.get(key) or scope
    listed = value.get("processes")
    if isinstance(listed, dict):
        processes = {
            key: {"service.name": item.get("serviceName"), **pairs(item.get("tags"))}
            for key, item in listed.items()
            if isinstance(item, dict)
        }
    return Context(resource, scope, processes)


def _excerpt(value: Any) -> str:
    return jsonstream.excerpt(msgspec.json.encode(value))


# Looking at a sample -------------------------------------------------------------------------------------


def first_span(sample: bytes) -> Head:
    """The members of the first span in a sample that may be cut off; empty where no span is."""
    return _first_in(glimpse(sample))


def _first_in(look: Glimpse) -> Head:
    # A bound on all that is looked at: nested lists would otherwise multiply at every level.
    left = [300]
    for head in look.heads[:5]:
        found = _descend(head, 0, left)
        if found:
            return found
    return {}


def _descend(head: Head, depth: int, left: list[int]) -> Head:
    left[0] -= 1
    if left[0] < 0:
        return {}
    if _has_ids(head):
        return head
    for key in _INSIDE if depth < _DEPTH else ():
        inside = head.get(key, b"").strip()
        if inside[:1] not in (b"[", b"{"):
            continue
        candidates = parts_of(inside)[:3] if inside[:1] == b"[" else [inside]
        for part in candidates:
            found = _descend(members(part), depth + 1, left)
            if found:
                return found
    return {}


def _has_ids(head: Head) -> bool:
    if "trace.span" in head.get("object", b"").decode(errors="replace"):
        return False  # a trace of the OpenAI Agents SDK
    names = any(key in head for key in ("name", "operationName", "Name"))
    plain = any(key in head for key in ("traceId", "trace_id", "traceID", "context.trace_id"))
    span = any(key in head for key in ("spanId", "span_id", "spanID", "context.span_id"))
    for key in ("context", "spanContext", "SpanContext"):
        inner = members(head.get(key, b""))
        plain = plain or any(name in inner for name in ("trace_id", "traceId", "TraceID"))
        span = span or any(name in inner for name in ("span_id", "spanId", "SpanID"))
    return names and plain and span
