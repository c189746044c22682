"""OpenAI Agents SDK: trace exports and saved run states.

A trace is ``{object: "trace", id, workflow_name, group_id, metadata}`` with
``{object: "trace.span", id, trace_id, parent_id, started_at, ended_at,
span_data{type}, error}``: nested (``traces[].spans[]``), a header beside its
spans (``{trace{}, spans[]}``), listed, one a line, as the exporter's batches
(``{data: [...]}``), or as a processor's events (``{event, span{}}``, each span
twice). A step is a span of type ``function``, or a call of a model that no
such span stands for. An agent that works inside a function span is a subagent.
Passing on to another agent is a ``handoff`` span, no step. ``generation``
spans hold chat messages and usage; ``response`` spans often no more than an
id, but some tracers keep the response, or its printed form, with them. A span
that has an ``error`` has failed, with or without output. Records are traces'
headers and spans.

A run state is an object with ``$schemaVersion`` (see `agents_state`).
There is no outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from poc.ingest import jsonstream
from poc.ingest.readers import agents_state
from poc.ingest.readers.assembly import plain, word
from poc.ingest.readers.by_trace import by_trace
from poc.ingest.readers.decoding import Head, elements, glimpse, members, text
from poc.ingest.readers.nodes import Node, called_with, tokens_of
from poc.ingest.readers.pieces import objects
from poc.ingest.readers.printed import printed
from poc.ingest.readers.said import Said, messages
from poc.ingest.readers.trace_runs import build
from poc.ingest.sources import Source
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Reject, Run

NAME = "agents_sdk"
VERSION = 2

_HOLDERS = ("traces", "data", "spans", "events", "items", "batch")
_WRAPPERS = ("span", "trace", "data", "payload")
_SAID = frozenset({"message", "function_call", "custom_tool_call", None})


class _Record(msgspec.Struct):
    """A trace's header or one of its spans, and where it stands."""

    place: str
    value: dict[str, Any]
    is_span: bool


def sniff(sample: bytes, name: str) -> float:
    """By the first spans or headers, or by the fields of a run state."""
    return 0.97 if any(_is_own(head, 0) for head in glimpse(sample).heads) else 0.0


def _is_own(head: Head, depth: int) -> bool:
    if text(head.get("object")) in ("trace", "trace.span") and head.keys() & {"workflow_name", "span_data"}:
        return True
    if agents_state.is_state(head):
        return True
    if depth >= 3:
        return False
    inside = [members(head.get(key, b"")) for key in _WRAPPERS]
    inside += [members(part) for key in _HOLDERS for part in elements(head.get(key, b""))[:3]]
    return any(_is_own(inner, depth + 1) for inner in inside if inner)


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace and for each run state."""
    yield from by_trace(source, _parse, _build)


def _parse(value: jsonstream.Value) -> Iterator[tuple[str | None, _Record] | Run | Reject]:
    around: str | None = None
    for piece in objects(value.place, value.raw, _HOLDERS):
        if isinstance(piece, Reject):
            yield piece
            continue
        place, inner = piece.place, piece.value
        if agents_state.is_state(inner):
            yield agents_state.run_of(place, inner)
            continue
        if not _is_span(inner):
            for key in _WRAPPERS:
                held = inner.get(key)
                if isinstance(held, dict) and (_is_span(held) or _is_header(held)):
                    place, inner = f"{place} .{key}", held
                    break
        if _is_span(inner):
            yield word(inner.get("trace_id")) or around, _Record(place, inner, is_span=True)
        elif _is_header(inner):
            around = word(inner.get("id")) or word(inner.get("trace_id"))
            yield around, _Record(place, inner, is_span=False)
        elif not piece.holds:
            yield piece.reject("neither a trace, a span nor a run state")


def _is_span(value: dict[str, Any]) -> bool:
    return isinstance(value.get("span_data"), dict)


def _is_header(value: dict[str, Any]) -> bool:
    named = word(value.get("id")) or word(value.get("trace_id"))
    return named is not None and (value.get("object") == "trace" or "workflow_name" in value)


def _build(trace: str | None, records: list[_Record]) -> Iterator[Run | Reject]:
    metadata: dict[str, Any] = {}
    for record in records:
        for key in ("workflow_name", "group_id", "metadata") if not record.is_span else ():
            if record.value.get(key):
                metadata.setdefault(key, record.value[key])
    spans = [record.value for record in records if record.is_span]
    handoffs = [_data(span) for span in spans if _data(span).get("type") == "handoff"]
    if handoffs:
        metadata["handoffs"] = [{"from": data.get("from_agent"), "to": data.get("to_agent")} for data in handoffs]
    triggered = [
        data.get("name") for data in map(_data, spans) if data.get("type") == "guardrail" and data.get("triggered")
    ]
    if triggered:
        metadata["guardrails_triggered"] = triggered
    provided = [str(item["type"]) for span in spans for item in _aside(span)]
    if provided:
        metadata["calls_at_the_provider"] = {kind: provided.count(kind) for kind in dict.fromkeys(provided)}
    yield build(
        [_node(span, position, passed_on=bool(handoffs)) for position, span in enumerate(spans)],
        place=records[0].place,
        native_id=trace,
        records=len(records),
        metadata=metadata,
        framework="openai-agents",
    )


def _node(span: dict[str, Any], position: int, *, passed_on: bool) -> Node:
    data = _data(span)
    (start, zone), (end, _) = parse_time(span.get("started_at")), parse_time(span.get("ended_at"))
    error = span.get("error")
    name = word(data.get("name"))
    node = Node(
        position=position,
        kind="other",
        name=name or word(data.get("type")) or "span",
        id=word(span.get("id")) or word(span.get("span_id")),
        parent=word(span.get("parent_id")),
        start=start,
        end=end,
        duration_s=seconds_between(start, end),
        zone=zone,
        failed=True if error else None,
        error=_error(error),
    )
    kind = data.get("type")
    if kind == "agent":
        node.kind, node.agent = "agent", name
    elif kind == "function":
        node.kind = "tool"
        node.arguments = called_with(data.get("input"))
        node.result, node.has_result = plain(data.get("output")), data.get("output") is not None
    elif kind in ("generation", "response"):
        node.kind = "llm"
        _model_call(node, span, passed_on=passed_on)
    return node


def _model_call(node: Node, span: dict[str, Any], *, passed_on: bool) -> None:
    data, response = _data(span), _response(span)
    node.model = word(response.get("model")) or word(data.get("model"))
    node.usage = tokens_of(_plain_usage(data.get("usage") or response.get("usage")))
    node.response_id = word(data.get("response_id")) or word(response.get("id"))
    node.schemas = response.get("tools") or data.get("tools")
    asked = data.get("input") or span.get("span_data_input")
    aside = _aside(span)
    answer = data.get("output") or [item for item in _items(response) if item not in aside]
    instructions = response.get("instructions")

    def content() -> tuple[list[Said], list[Said]]:
        system = messages(instructions, "system") if isinstance(instructions, str) else []
        said = [message for message in messages(answer, "assistant") if message.role in ("assistant", "tool")]
        if passed_on:
            said = [replace(message, calls=[c for c in message.calls if not _is_handoff(c.name)]) for message in said]
        return system + messages(asked), said

    node.content = content


def _is_handoff(name: str | None) -> bool:
    return str(name).startswith("transfer_to_")


def _response(span: dict[str, Any]) -> dict[str, Any]:
    """The response that a tracer of one's own kept with the span, as data or printed."""
    for held in (_data(span).get("response"), span.get("span_data_response"), span.get("response")):
        found = printed(held) if isinstance(held, str) else held
        if isinstance(found, dict):
            return found
        if isinstance(held, str) and held:
            return {"output": [{"role": "assistant", "content": held}]}
    return {}


def _items(response: dict[str, Any]) -> list[dict[str, Any]]:
    output = response.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def _aside(span: dict[str, Any]) -> list[dict[str, Any]]:
    """Items of a printed response that are neither words nor calls of ours: they are counted, but make no steps."""
    if isinstance(_data(span).get("response"), dict) or isinstance(span.get("response"), dict):
        return []
    return [item for item in _items(_response(span)) if item.get("type") not in (*_SAID, "reasoning")]


def _plain_usage(usage: Any) -> Any:
    """Details that are listed (as a run state has them) as objects."""
    if not isinstance(usage, dict):
        return usage
    return {name: value[0] if isinstance(value, list) and value else value for name, value in usage.items()}


def _error(error: Any) -> str | None:
    """What a span's error says: the tool's own words where it has them."""
    if not isinstance(error, dict):
        return plain(error) if error else None
    inner = error.get("data")
    detail = inner.get("error") if isinstance(inner, dict) else None
    return plain(detail) or plain(error.get("message")) or plain(error)


def _data(span: dict[str, Any]) -> dict[str, Any]:
    data = span.get("span_data")
    return data if isinstance(data, dict) else {}
