"""DeepEval traces (as its tracing writes them, for LangGraph and others).

One object a trace: ``uuid``, ``threadId``, ``name``, ``input``, ``output``,
``status``, ``startTime``, ``endTime``, and its spans in groups by kind:
``agentSpans``, ``llmSpans``, ``toolSpans``, ``retrieverSpans``, ``baseSpans``.
Spans have ``uuid, parentUuid, name, status SUCCESS|ERRORED|IN_PROGRESS,
startTime, endTime, input, output, error``; those of models also ``model``,
``inputTokenCount``, ``outputTokenCount``. Messages are LangChain's or ``{role,
content}``; tools stand among a model's input as ``{role: "Tool Input"}`` with
a Python repr. ``toolsCalled`` repeats the tool spans and is not counted. The
run's task is the trace's own input: what a model read before is history of the
thread. Records are traces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest.arguments import from_text
from poc.ingest.readers.assembly import count, plain, word
from poc.ingest.readers.decoding import Head, glimpse
from poc.ingest.readers.nodes import Kind, Node, Score, answered, called_with
from poc.ingest.readers.records import Record, records
from poc.ingest.readers.said import Said, messages
from poc.ingest.readers.trace_runs import build
from poc.ingest.sources import Source
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Reject, Run, Usage

NAME = "deepeval"
VERSION = 1

_GROUPS: dict[str, Kind] = {
    "agentSpans": "agent",
    "llmSpans": "llm",
    "toolSpans": "tool",
    "retrieverSpans": "other",
    "baseSpans": "other",
}
_DEFINED = "Tool Input"
_ABOUT = {"name": "trace_name", "threadId": "thread_id", "userId": "user_id", "tags": "tags", "metadata": "metadata"}


def sniff(sample: bytes, name: str) -> float:
    """By the groups of spans."""
    return 0.97 if any(_is_trace(head) for head in glimpse(sample).heads[:3]) else 0.0


def _is_trace(head: Head) -> bool:
    return "uuid" in head and ("llmSpans" in head or "toolSpans" in head or {"baseSpans", "agentSpans"} <= head.keys())


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace."""
    for record in records(source, flat=True):
        if isinstance(record, Reject):
            yield record
        elif not isinstance(record.value, dict) or not record.value.keys() & _GROUPS.keys():
            yield record.reject("no trace of DeepEval here: it has no spans")
        else:
            yield from _run(record, record.value)


def _run(record: Record, value: dict[str, Any]) -> Iterator[Run | Reject]:
    spans: list[tuple[Kind, dict[str, Any]]] = []
    for group, kind in _GROUPS.items():
        listed = value.get(group)
        for index, span in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(span, dict):
                spans.append((kind, span))
            else:
                reason = "a span that is no object; the run is kept without it"
                yield Reject(place=f"{record.place} .{group}[{index}]", reason=reason, records=0)
    spans.sort(key=lambda item: str(item[1].get("startTime") or ""))
    metadata = {name: value[key] for key, name in _ABOUT.items() if value.get(key) not in (None, "", [], {})}
    run = build(
        [_node(kind, span, position) for position, (kind, span) in enumerate(spans)],
        place=record.place,
        native_id=word(value.get("uuid")),
        records=1,
        metadata=metadata,
        scores=list(_scores(value.get("metricsData"))),
    )
    asked = [said.content for said in messages(value.get("input")) if said.role == "user" and said.content]
    run.task_text = asked[-1] if asked else run.task_text
    if run.framework is None:
        run.framework = next((word(span.get("integration")) for _, span in spans if span.get("integration")), None)
    if value.get("status") == "ERRORED":
        run.metadata["status"] = value["status"]
    yield run


def _node(kind: Kind, span: dict[str, Any], position: int) -> Node:
    (start, zone), (end, _) = parse_time(span.get("startTime")), parse_time(span.get("endTime"))
    status = span.get("status")
    node = Node(
        position=position,
        kind=kind,
        name=str(span.get("name") or ""),
        id=word(span.get("uuid")),
        parent=word(span.get("parentUuid")),
        start=start,
        end=end,
        zone=zone,
        duration_s=seconds_between(start, end),
        failed=True if status == "ERRORED" else (False if status == "SUCCESS" else None),
        error=plain(span.get("error")),
    )
    asked, answer = span.get("input"), span.get("output")
    if kind == "tool":
        node.arguments = called_with(asked)
        if answer is not None:
            found = answered(answer)
            node.result, node.has_result, node.call_id = found.text, True, found.call_id
            node.failed = found.failed if found.failed is not None else node.failed
    elif kind != "other":
        node.content = lambda: _content(asked, answer)
        if kind == "agent":
            node.agent = node.name or None
        else:
            node.model = word(span.get("model"))
            usage = Usage(
                input_tokens=count(span.get("inputTokenCount")), output_tokens=count(span.get("outputTokenCount"))
            )
            node.usage = usage if usage != Usage() else None
            node.schemas = _tools(asked) or None
    return node


def _content(asked: Any, answer: Any) -> tuple[list[Said], list[Said]]:
    if isinstance(asked, list):
        asked = [item for item in asked if not _defines(item)]
    said = [message for message in messages(answer, "assistant") if message.role == "assistant"]
    # In what a model read, the calls of earlier answers are left out; such an answer is then empty.
    heard = [message for message in messages(asked) if message.content or message.calls or message.role != "assistant"]
    return heard, said[-1:]


def _defines(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == _DEFINED


def _tools(asked: Any) -> list[Any]:
    """The tools that a model was offered, each a Python repr."""
    found: list[Any] = []
    for item in asked if isinstance(asked, list) else ():
        if _defines(item) and isinstance(item.get("content"), str):
            parsed = from_text(item["content"])[1]
            if parsed is not None:
                found.append(msgspec.json.decode(parsed))
    return found


def _scores(listed: Any) -> Iterator[Score]:
    for score in listed if isinstance(listed, list) else ():
        if isinstance(score, dict) and word(score.get("name")) is not None:
            yield Score(str(score["name"]), score.get("score"))
