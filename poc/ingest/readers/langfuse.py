"""Langfuse: traces with their observations, as the app, the API and the exports give them.

Told by ``{trace, observations[]}``, a trace object with ``observations[]``, or
rows (JSON, lines, CSV) with a trace id, a type and a parent observation; rows
of traces and of scores may stand among them. Names are camelCase or
snake_case. Types are SPAN, GENERATION, EVENT, newer AGENT, TOOL, CHAIN, ...
Older SDKs type tools as SPAN: then ``metadata.attributes`` (often as JSON text)
tells, by the names of OpenInference and OpenTelemetry. ``input`` and
``output`` are text or objects. Tokens: ``usageDetails`` holds cached and
reasoning tokens as buckets of their own, beside input and output where the
total says so (older: ``promptTokens``, ``completionTokens``). An observation
of level ERROR failed; other levels do not say that it went well.

Run: a trace id. ``sessionId`` groups traces and is kept in the metadata.
Outcome: a score whose name says that it is about success. Records are
observations.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from poc.ingest import jsonstream
from poc.ingest.readers.assembly import number, word
from poc.ingest.readers.by_trace import any_ids, by_trace
from poc.ingest.readers.decoding import Head, elements, glimpse, members
from poc.ingest.readers.nodes import Kind, Node, Score, answered, called_with, tokens, tokens_in
from poc.ingest.readers.pieces import Piece, objects
from poc.ingest.readers.rows import columns_of, is_csv, rows
from poc.ingest.readers.said import Asked, Said, messages, opened, unquoted
from poc.ingest.readers.span_facts import about, node_of
from poc.ingest.readers.spans import Span
from poc.ingest.readers.trace_runs import build
from poc.ingest.sources import Source
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Reject, Run, Usage

NAME = "langfuse"
VERSION = 1

_TYPES = frozenset(
    ("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)
_KINDS: dict[str, Kind] = {"GENERATION": "llm", "TOOL": "tool", "AGENT": "agent"}
_HOLDERS = ("observations", "data", "traces", "scores")
_ABOUT = ("sessionId", "userId", "tags", "release", "version", "environment")
Item = tuple[str, str, dict[str, Any]]
"""Place; "observation", "trace" or "score"; the fields, camelCase."""


def sniff(sample: bytes, name: str) -> float:
    """By a trace beside its observations, or by the columns of an observation."""
    if is_csv(sample):
        return 0.97 if _is_observation(dict.fromkeys(columns_of(sample), b"")) else 0.0
    for head in glimpse(sample).heads[:5]:
        if "trace" in head and "observations" in head:
            return 0.97
        if _is_observation(head) or (_type_of(head) and ("traceId" in head or "trace_id" in head)):
            return 0.97
        for key in _HOLDERS:
            inside = elements(head.get(key, b"").strip())[:2]
            if any(_is_observation(members(part)) for part in inside):
                return 0.97
        if "observations" in head and "timestamp" in head and ("projectId" in head or "htmlPath" in head):
            return 0.9
    return 0.0


def _is_observation(head: Head) -> bool:
    if {"traceId", "parentObservationId", "type"} <= head.keys():
        return True
    return {"trace_id", "parent_observation_id", "type"} <= head.keys()


def _type_of(head: Head) -> bool:
    kind = head.get("type", b"").strip(b'"').decode(errors="replace")
    return kind in _TYPES and ("startTime" in head or "start_time" in head)


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace."""
    if is_csv(source.sample):
        yield from _csv(source)
    else:
        yield from by_trace(source, _parse, _build, any_ids)


def _csv(source: Source) -> Iterator[Run | Reject]:
    waiting: dict[str | None, list[Item]] = {}
    for row in rows(source):
        if isinstance(row, Reject):
            yield row
            continue
        value = {key: cell for key, cell in row.cells.items() if cell is not None}
        for found in _sorted_out(Piece(row.place, value), None):
            if isinstance(found, Reject):
                yield found
            else:
                waiting.setdefault(found[0], []).append(found[1])
    for trace, items in waiting.items():
        yield from _build(trace, items)


def _parse(value: jsonstream.Value) -> Iterator[tuple[str | None, Item] | Reject]:
    around: str | None = None
    for item in objects(value.place, value.raw, _HOLDERS):
        if isinstance(item, Reject):
            yield item
            continue
        if "trace" in item.value and isinstance(item.value["trace"], dict):
            item = Piece(f"{item.place} .trace", item.value["trace"])
        if not (item.value.keys() & {"traceId", "trace_id"}) and _is_trace(item.value):
            around = word(item.value.get("id"))
        yield from _sorted_out(item, around)


def _is_trace(value: dict[str, Any]) -> bool:
    named = bool(value.keys() & {"timestamp", "createdAt", "created_at", "name"})
    return named and word(value.get("id")) is not None and value.get("type") not in _TYPES


def _sorted_out(item: Piece, around: str | None) -> Iterator[tuple[str | None, Item] | Reject]:
    value = {_camel(key): inner for key, inner in item.value.items()}
    trace = word(value.get("traceId"))
    kind = word(value.get("type"))
    if trace is None and kind in _TYPES and around is not None:
        trace = around
    if trace is not None and kind in _TYPES and word(value.get("id")) is not None:
        yield trace, (item.place, "observation", value)
    elif trace is not None and "name" in value and value.keys() & {"value", "stringValue"}:
        yield trace, (item.place, "score", value)
    elif trace is None and _is_trace(value):
        yield word(value["id"]), (item.place, "trace", value)
    elif value.keys() <= {"meta", "page", "totalItems", "nextCursor"}:
        return  # how the API says where it stands
    else:
        yield item.reject("no observation, trace or score of Langfuse here")


@lru_cache(maxsize=512)
def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest) if rest else key


def _build(trace: str | None, items: list[Item]) -> Iterator[Run | Reject]:
    observations = [(place, value) for place, kind, value in items if kind == "observation"]
    told = next((value for _, kind, value in items if kind == "trace"), {})
    metadata: dict[str, Any] = {_snake(key): told[key] for key in _ABOUT if told.get(key) not in (None, "", [])}
    if told.get("name"):
        metadata["trace_name"] = told["name"]
    extra = opened(told.get("metadata"))
    if isinstance(extra, dict) and "attributes" not in extra:
        metadata["trace_metadata"] = extra
    nodes: list[Node] = []
    for position, (place, value) in enumerate(observations):
        node, said = _node(place, value, position)
        nodes.append(node)
        for key, inner in said.items():
            metadata.setdefault(key, inner)
    if not nodes and not told:
        for place, _, value in items:
            yield Piece(place, value).reject("a score of a trace that is not in this file")
        return
    listed = opened(told.get("scores"))
    scores = [_score(value) for _, kind, value in items if kind == "score"]
    scores += [_score(value) for value in (listed if isinstance(listed, list) else ()) if isinstance(value, dict)]
    yield build(
        nodes,
        place=items[0][0],
        native_id=trace,
        records=max(1, len(observations)),
        metadata=metadata,
        scores=scores,
        task_text=lambda: _task(told.get("input")),
    )


def _snake(key: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in key)


def _task(value: Any) -> str | None:
    said = messages(value)
    return next((message.content for message in said if message.role == "user" and message.content), None)


def _score(value: dict[str, Any]) -> Score:
    text = value.get("stringValue")
    return Score(str(value.get("name")), value.get("value") if text is None else text, word(value.get("source")))


def _node(place: str, value: dict[str, Any], position: int) -> tuple[Node, dict[str, Any]]:
    """An observation as a node: what its attributes say, and over it what Langfuse itself says."""
    extra = opened(value.get("metadata"))
    extra = extra if isinstance(extra, dict) else {}
    attributes = opened(extra.get("attributes"))
    resource, scope = opened(extra.get("resourceAttributes")), opened(extra.get("scope"))
    (start, zone), (end, _) = parse_time(value.get("startTime")), parse_time(value.get("endTime"))
    message = word(value.get("statusMessage"))
    span = Span(
        place=place,
        trace_id=word(value.get("traceId")),
        span_id=word(value.get("id")),
        parent_id=word(value.get("parentObservationId")),
        name=str(value.get("name") or ""),
        start=start,
        end=end,
        zone=zone,
        duration_s=seconds_between(start, end),
        attributes=attributes if isinstance(attributes, dict) else {},
        failed=True if value.get("level") == "ERROR" else None,
        message=message,
        events=[],
        scope=word(scope.get("name")) if isinstance(scope, dict) else None,
        resource=resource if isinstance(resource, dict) else {},
    )
    typed = _KINDS.get(str(value.get("type")))
    node = node_of(span, position, typed)
    asked, answer = unquoted(value.get("input")), unquoted(value.get("output"))
    if node.kind == "tool":
        if asked not in (None, ""):
            node.arguments = called_with(asked)
        if answer is not None:
            found = answered(answer)
            node.result, node.has_result = found.text, True
            node.call_id = node.call_id or found.call_id
            node.failed = found.failed if node.failed is None else node.failed
    elif node.kind in ("llm", "agent"):
        inner = node.content
        node.content = lambda: _content(value, inner)
        node.model = word(value.get("model")) or word(value.get("providedModelName")) or node.model
        node.usage = _usage(value) or node.usage
        node.cost_usd = _cost(value) or node.cost_usd
        defined = opened(value.get("toolDefinitions"))
        if isinstance(defined, dict) and defined:
            node.schemas = [{**_object(described), "name": name} for name, described in defined.items()]
        elif isinstance(asked := opened(asked), dict) and asked.get("tools"):
            node.schemas = node.schemas or asked["tools"]
    if node.kind == "agent" and node.agent is None:
        node.agent = node.name or None
    return node, about(span)


def _object(value: Any) -> dict[str, Any]:
    inner = opened(value)
    return inner if isinstance(inner, dict) else {}


def _content(value: dict[str, Any], inner: Any) -> tuple[list[Said], list[Said]]:
    asked = messages(value.get("input"))
    answer = [said for said in messages(value.get("output"), "assistant") if said.role in ("assistant", "tool")]
    if inner is not None and not (asked and answer):
        first, then = inner()
        asked, answer = asked or first, answer or then
    if not any(said.calls for said in answer):
        calls = list(_calls(value))
        if calls:
            answer = [*answer, Said("assistant", None, calls)]
    return asked, answer


def _calls(value: dict[str, Any]) -> Iterator[Asked]:
    """Calls that newer versions take out of an answer."""
    listed, names = opened(value.get("toolCalls")), opened(value.get("toolCallNames"))
    names = names if isinstance(names, list) else []
    for index, raw in enumerate(listed if isinstance(listed, list) else ()):
        call = opened(raw)
        call = call if isinstance(call, dict) else {}
        function = call.get("function")
        inner = function if isinstance(function, dict) else call
        name = word(inner.get("name")) or (word(names[index]) if index < len(names) else None)
        if name is not None:
            yield Asked(name, inner.get("arguments", inner.get("input")), word(call.get("id")))


def _usage(value: dict[str, Any]) -> Usage | None:
    details = opened(value.get("usageDetails"))
    if isinstance(details, dict) and details:
        return tokens_in(details)
    usage = opened(value.get("usage"))
    usage = usage if isinstance(usage, dict) else {}
    return tokens(
        value.get("promptTokens") or value.get("inputUsage") or usage.get("input"),
        value.get("completionTokens") or value.get("outputUsage") or usage.get("output"),
    )


def _cost(value: dict[str, Any]) -> float | None:
    details = opened(value.get("costDetails"))
    told = details.get("total") if isinstance(details, dict) else None
    return number(told) or number(value.get("totalCost")) or number(value.get("calculatedTotalCost")) or None
