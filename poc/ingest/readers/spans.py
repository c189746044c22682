"""One OpenTelemetry span, however its exporter writes it.

OTLP JSON (camelCase or snake_case, attributes as key/value pairs), Tempo and
Jaeger (tags, microseconds), the console exporters of Python, Node and Go, and
flat objects come out as `Span`. Ids are lower-case hex: base64 (24 or 12
signs that end in ``=``) and ``0x`` are turned into it, other ids stay. Knows
no meaning of any attribute and no file layout.
"""

from __future__ import annotations

import binascii
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from poc.ingest.readers.assembly import number, word
from poc.ingest.times import parse_time, seconds_between

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{22}==|[A-Za-z0-9+/_-]{11}=)")
_NOTHING = re.compile(r"0*")
_CODES: dict[Any, bool | None] = {"ERROR": True, "2": True, 2: True, "OK": False, "1": False, 1: False, "UNSET": None}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 10**17
TRACE_KEYS = ("traceId", "trace_id", "traceID", "TraceID", "context.trace_id")
SPAN_KEYS = ("spanId", "span_id", "spanID", "SpanID", "context.span_id")
_NAMES, _TRACES, _SPANS = frozenset(("name", "operationName", "Name")), frozenset(TRACE_KEYS), frozenset(SPAN_KEYS)
_PARENT_KEYS = ("parentSpanId", "parent_span_id", "parentId", "parent_id", "parentSpanID", "parentID")
_CONTEXTS = ("context", "spanContext", "SpanContext", "span_context", "_spanContext")
_INFERENCE = frozenset(
    ("LLM", "TOOL", "AGENT", "CHAIN", "RETRIEVER", "RERANKER", "EMBEDDING", "GUARDRAIL", "EVALUATOR", "PROMPT")
)
_STARTS = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime", "StartTime")
_ENDS = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime", "EndTime")


class Event(msgspec.Struct):
    """Something that a span noted."""

    name: str
    attributes: dict[str, Any]
    time: datetime | None = None


class Span(msgspec.Struct, kw_only=True):
    """`failed` is what the span's own status says; `message` is the text beside it."""

    place: str
    trace_id: str | None
    span_id: str | None
    parent_id: str | None
    name: str
    start: datetime | None
    end: datetime | None
    zone: bool | None
    duration_s: float | None
    attributes: dict[str, Any]
    failed: bool | None
    message: str | None
    events: list[Event]
    scope: str | None
    resource: dict[str, Any]


def is_span(value: Any) -> bool:
    """Whether an object has the ids of a span and a name."""
    if not isinstance(value, dict):
        return False
    if _NAMES.isdisjoint(value):
        return False
    if not _TRACES.isdisjoint(value) and not _SPANS.isdisjoint(value):
        return True
    inner = _context(value)
    return not (_TRACES.isdisjoint(inner) and _TRACES.isdisjoint(value)) and not (
        _SPANS.isdisjoint(inner) and _SPANS.isdisjoint(value)
    )


def read_span(
    value: dict[str, Any],
    place: str,
    *,
    scope: Any = None,
    resource: dict[str, Any] | None = None,
) -> Span:
    """The span that an object describes. `is_span` must hold."""
    inner = _context(value) if _TRACES.isdisjoint(value) or _SPANS.isdisjoint(value) else {}
    attributes = pairs(_first(value, "attributes", "tags", "Attributes"))
    if "context.span_id" in value or not attributes:  # a row of a data frame
        attributes |= {k[11:]: v for k, v in value.items() if k.startswith("attributes.") and v is not None}
    told = value.get("span_kind")
    if told is not None and "openinference.span.kind" not in attributes and str(told).upper() in _INFERENCE:
        attributes = {**attributes, "openinference.span.kind": told}  # Phoenix keeps it in a column of its own
    start, zone = _time(_first(value, *_STARTS))
    end, zone_of_end = _time(_first(value, *_ENDS))
    if zone is None or zone_of_end is False:
        zone = zone_of_end if zone is None else False
    duration = seconds_between(start, end)
    if end is None and start is not None and "operationName" in value:  # Jaeger: microseconds
        length = number(value.get("duration"))
        if length is not None:
            duration = length / 1e6
            end = parse_time(round(start.timestamp() * 1e6 + length))[0]
    failed, message = _status(value, attributes)
    own_scope = _first(value, "scope", "instrumentationLibrary", "instrumentationScope", "InstrumentationScope")
    return Span(
        place=place,
        trace_id=hex_id(_first(value, *TRACE_KEYS) or _first(inner, *TRACE_KEYS)),
        span_id=hex_id(_first(value, *SPAN_KEYS) or _first(inner, *SPAN_KEYS)),
        parent_id=_parent(value),
        name=str(_first(value, "name", "operationName", "Name") or ""),
        start=start,
        end=end,
        zone=zone,
        duration_s=duration,
        attributes=attributes,
        failed=failed,
        message=message,
        events=[_event(item) for item in _events(value) if isinstance(item, dict)],
        scope=_scope(own_scope) or _scope(scope) or word(attributes.get("otel.scope.name")),
        resource=resource or _resource(value),
    )


def hex_id(value: Any) -> str | None:
    """An id in hex where it is one; an id of zeros or blanks is none."""
    text = value if isinstance(value, str) else word(value)
    if not text:
        return None
    if len(text) in (16, 32) and text.isalnum():  # the usual case: hex already
        return text.lower() if text.strip("0") else None
    text = text.strip()
    if text[:2] in ("0x", "0X"):
        text = text[2:]
    if text[-1:] == "=" and _BASE64.fullmatch(text):
        try:
            text = binascii.a2b_base64(text.replace("-", "+").replace("_", "/")).hex()
        except (binascii.Error, ValueError):
            return text
    if _NOTHING.fullmatch(text):
        return None
    return text.lower() if len(text) in (16, 32) else text


def pairs(raw: Any) -> dict[str, Any]:
    """Attributes as one flat object, from an object or from a list of keys and values."""
    if isinstance(raw, dict):
        nested = raw.get("openinference") or raw.get("gen_ai") or raw.get("llm")
        return _flat(raw) if isinstance(nested, dict) else raw
    found: dict[str, Any] = {}
    for item in raw if isinstance(raw, list) else ():
        if not isinstance(item, dict):
            continue
        key, value = item.get("key"), item.get("value")
        if key is None:
            key, value = item.get("Key"), item.get("Value")
        if isinstance(key, str):
            text = value.get("stringValue") if isinstance(value, dict) else None  # by far the commonest
            found[key] = any_value(value) if text is None else text
    return found


def any_value(value: Any) -> Any:
    """The plain value of an OTLP ``AnyValue`` (or of Go's typed value); other values as they are."""
    if not isinstance(value, dict) or not value:
        return value
    if "Type" in value and "Value" in value:
        return value["Value"]
    if len(value) != 1:
        return value
    key, inner = next(iter(value.items()))
    kind = key.replace("_", "").lower()
    if kind in ("stringvalue", "boolvalue", "doublevalue", "bytesvalue"):
        return inner
    if kind == "intvalue":
        try:
            return int(inner)
        except (TypeError, ValueError):
            return inner
    if kind == "arrayvalue" and isinstance(inner, dict):
        return [any_value(item) for item in inner.get("values") or ()]
    if kind == "kvlistvalue" and isinstance(inner, dict):
        return pairs(inner.get("values") or [])
    return value


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested attributes with dotted names, as their conventions write them."""
    found: dict[str, Any] = {}
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, dict):
            found |= _flat(inner, f"{name}.")
        elif isinstance(inner, list) and any(isinstance(item, dict) for item in inner):
            for index, item in enumerate(inner):
                found |= _flat(item, f"{name}.{index}.") if isinstance(item, dict) else {f"{name}.{index}": item}
        else:
            found[name] = inner
    return found


def _context(value: dict[str, Any]) -> dict[str, Any]:
    for key in _CONTEXTS:
        inner = value.get(key)
        if isinstance(inner, dict):
            return inner
    return {}


def _parent(value: dict[str, Any]) -> str | None:
    given = _first(value, *_PARENT_KEYS)
    if given is not None:
        return hex_id(given)
    for key in ("parentSpanContext", "Parent", "parent"):
        inner = value.get(key)
        if isinstance(inner, dict):
            return hex_id(_first(inner, *SPAN_KEYS))
    references = value.get("references")
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict) and reference.get("refType", "CHILD_OF") == "CHILD_OF":
            return hex_id(_first(reference, *SPAN_KEYS))
    return None


def _time(value: Any) -> tuple[datetime | None, bool | None]:
    if type(value) is str and len(value) == 19 and value.isdigit():
        value = int(value)
    if type(value) is int and value > _NANOSECONDS:  # the usual case, without detour
        return _EPOCH + timedelta(microseconds=value // 1000), True
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, int) for part in value):
        return parse_time(value[0] * 1_000_000_000 + value[1])  # Node: seconds, nanoseconds
    return parse_time(value)


def _status(value: dict[str, Any], attributes: dict[str, Any]) -> tuple[bool | None, str | None]:
    status = value.get("status", value.get("Status"))
    code: Any = value.get("status_code")
    message: Any = value.get("status_message")
    if isinstance(status, dict):
        code = _first(status, "code", "status_code", "Code", "statusCode")
        message = _first(status, "message", "description", "Description")
    elif isinstance(status, str):
        code = status
    if code is None:
        code = attributes.get("otel.status_code", value.get("statusCode"))
        message = message or attributes.get("otel.status_description")
    plain = isinstance(code, str | int | float) and code in _CODES
    failed = _CODES[code] if plain else _CODES.get(str(code).upper().removeprefix("STATUS_CODE_"))
    if failed is None and attributes.get("error") is True:
        failed = True
    return failed, message if isinstance(message, str) and message else None


def _events(value: dict[str, Any]) -> list[Any]:
    events = _first(value, "events", "span_events", "Events", "logs")
    if isinstance(events, str) and events[:1] == "[":
        try:
            events = msgspec.json.decode(events)
        except msgspec.DecodeError:
            return []
    return events if isinstance(events, list) else []


def _event(item: dict[str, Any]) -> Event:
    attributes = pairs(_first(item, "attributes", "fields", "Attributes"))
    name = _first(item, "name", "event_name", "Name") or attributes.get("event") or ""
    stamp = _first(item, "timeUnixNano", "time_unix_nano", "timestamp", "time", "Time")
    return Event(str(name), attributes, _time(stamp)[0])


def _scope(value: Any) -> str | None:
    if isinstance(value, dict):
        return word(value.get("name")) or word(value.get("Name"))
    return word(value)


def _resource(value: dict[str, Any]) -> dict[str, Any]:
    given = _first(value, "resource", "Resource")
    if isinstance(given, dict):
        return pairs(given.get("attributes", given))
    return pairs(given)


def _first(value: dict[str, Any], *keys: str) -> Any:
    for key in keys:
        found = value.get(key)
        if found is not None:
            return found
    return None
