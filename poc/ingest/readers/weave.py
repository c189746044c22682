"""W&B Weave calls.

Told by ``op_name`` ("weave:///team/project/op/NAME:hash") beside ``trace_id``
and ``started_at``; a list, lines, or ``{calls[]}``. Weave has no type for
tools: a call is one where its attributes say so (``kind``), where its
operation bears the name of a tool that a model of the same trace called, or
where that name itself says "tool". A call of a model is one whose
``summary.usage`` names a model and under which no other such call lies (usage
is summed upwards), or that looks like one by its name or its answer.
``exception`` is the error; ``summary.weave.status`` the flag. A call without
an end got no result. Outcome: ``summary.weave.feedback`` or ``feedback`` whose
name says that it is about success. Records are calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from poc.ingest import jsonstream
from poc.ingest.readers.assembly import word
from poc.ingest.readers.by_trace import by_trace
from poc.ingest.readers.decoding import Head, elements, glimpse, members
from poc.ingest.readers.nodes import Node, Score, answered, called_with, tokens_of
from poc.ingest.readers.pieces import Piece, objects
from poc.ingest.readers.said import Said, messages
from poc.ingest.readers.trace_runs import build
from poc.ingest.sources import Source
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Reject, Run

NAME = "weave"
VERSION = 1

_HOLDERS = ("calls",)
_MODELS = re.compile(
    r"(^|\.)(chat\.completions\.(create|parse)|completions\.create|responses\.create|messages\.create"
    r"|generate_content|acompletion|completion|converse|chat)$",
    re.IGNORECASE,
)
_TOOL = re.compile(r"(^|[._])(tool|execute_tool|call_tool|run_tool)([._]|$)", re.IGNORECASE)
Told = tuple[list[Said], list[Said]]
_NO_ARGUMENTS = ("self", "cls")


def sniff(sample: bytes, name: str) -> float:
    """By the fields of a first call."""
    for head in glimpse(sample).heads[:3]:
        inside = elements(head.get("calls", b"").strip())[:1]
        if _is_call(head) or any(_is_call(members(part)) for part in inside):
            return 0.97
    return 0.0


def _is_call(head: Head) -> bool:
    return {"op_name", "trace_id", "started_at"} <= head.keys()


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace."""
    yield from by_trace(source, _parse, _build)


def _parse(value: jsonstream.Value) -> Iterator[tuple[str | None, Piece] | Reject]:
    for item in objects(value.place, value.raw, _HOLDERS):
        if isinstance(item, Reject):
            yield item
        elif word(item.value.get("id")) is None or word(item.value.get("op_name")) is None:
            yield item.reject("no id and operation of a Weave call here")
        else:
            yield word(item.value.get("trace_id")) or word(item.value["id"]), item


def operation(op_name: str) -> str:
    """The name of an operation out of its reference.

    >>> operation("weave:///acme/bot/op/look_up:8a7b")
    'look_up'
    """
    return op_name.rsplit("/", 1)[-1].split(":", 1)[0]


def _build(trace: str | None, items: list[Piece]) -> Iterator[Run | Reject]:
    calls = [item.value for item in items]
    above = {str(call["id"]): word(call.get("parent_id")) for call in calls}
    around: set[str] = set()
    for call in calls:  # usage is summed upwards: only the lowest call that has any made it
        if _usage(call):
            at, seen = above.get(str(call["id"])), set()
            while at is not None and at not in seen:
                seen.add(at)
                around.add(at)
                at = above.get(at)
    nodes = [_node(call, position, around) for position, call in enumerate(calls)]
    called: set[str | None] = set()
    for node in nodes:
        if node.kind == "llm" and node.content is not None:
            content = node.content()
            node.content = partial(_same, content)
            called |= {asked.name for said in content[1] for asked in said.calls}
    for node, call in zip(nodes, calls, strict=True):
        short = node.name.rsplit(".", 1)[-1]
        if node.kind != "llm" and (node.name in called or short in called):
            node.kind, node.name = "tool", node.name if node.name in called else short
        if node.kind == "tool":
            _tool(node, call)
    metadata: dict[str, Any] = {}
    scores: list[Score] = []
    for call in calls:
        for key in ("project_id", "thread_id", "wb_user_id", "wb_run_id"):
            if call.get(key):
                metadata.setdefault(key, call[key])
        scores += _scores(call)
    yield build(
        nodes,
        place=items[0].place,
        native_id=trace,
        records=len(items),
        metadata=metadata,
        scores=scores,
        framework="weave",
    )


def _same(content: Told) -> Told:
    return content


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _usage(call: dict[str, Any]) -> dict[str, Any]:
    return _dict(_dict(call.get("summary")).get("usage"))


def _node(call: dict[str, Any], position: int, around: set[str]) -> Node:
    (start, zone), (end, _) = parse_time(call.get("started_at")), parse_time(call.get("ended_at"))
    own = _dict(_dict(call.get("summary")).get("weave"))
    error, status = word(call.get("exception")), own.get("status")
    name = operation(str(call["op_name"]))
    node = Node(
        position=position,
        kind="other",
        name=name,
        id=word(call["id"]),
        parent=word(call.get("parent_id")),
        start=start,
        end=end,
        duration_s=seconds_between(start, end),
        zone=zone,
        failed=True if error or status == "error" else False if status in ("success", "descendant_error") else None,
        error=error,
    )
    attributes = _dict(call.get("attributes"))
    kind = attributes.get("kind") or _dict(attributes.get("weave")).get("kind")
    answer, asked = _dict(call.get("output")), _dict(call.get("inputs"))
    usage = {} if node.id in around else _usage(call)
    if kind == "tool" or (kind is None and _TOOL.search(name)):
        node.kind = "tool"
        node.name = word(attributes.get("tool_name")) or name
    elif kind == "llm" or usage or (_MODELS.search(name) and node.id not in around) or answer.get("choices"):
        node.kind = "llm"
        model = next(iter(usage), None)
        node.model = word(answer.get("model")) or model or word(asked.get("model"))
        spent = usage.get(model) if model is not None else answer.get("usage")
        node.usage = tokens_of(spent) or tokens_of(answer.get("usage"))
        node.schemas = asked.get("tools")
        node.response_id = word(answer.get("id"))
    elif kind == "agent" or node.parent is None:
        node.kind, node.agent = "agent", name
    if node.kind in ("llm", "agent"):
        inputs = {key: value for key, value in asked.items() if key not in _NO_ARGUMENTS}
        last = node.kind == "agent"

        def content():
            said = [s for s in messages(call.get("output"), "assistant") if s.role in ("assistant", "tool")]
            return messages(inputs), said[-1:] if last else said

        node.content = content
    return node


def _tool(node: Node, call: dict[str, Any]) -> None:
    inputs = call.get("inputs")
    if isinstance(inputs, dict):
        inputs = {key: value for key, value in inputs.items() if key not in _NO_ARGUMENTS}
    node.arguments = called_with(inputs)
    node.call_id = word(_dict(call.get("attributes")).get("tool_call_id"))
    # An operation that gave back nothing is one whose end is logged; its result is then null.
    output = call.get("output")
    if output is not None:
        found = answered(output)
        node.result, node.has_result = found.text, True
        node.call_id = node.call_id or found.call_id
        node.failed = True if found.failed else node.failed


def _scores(call: dict[str, Any]) -> list[Score]:
    given = call.get("feedback") or _dict(_dict(call.get("summary")).get("weave")).get("feedback")
    found: list[Score] = []
    for item in given if isinstance(given, list) else ():
        if isinstance(item, dict):
            payload = _dict(item.get("payload"))
            value = payload.get("output", payload.get("value", payload.get("score")))
            value = next(iter(value.values()), None) if isinstance(value, dict) else value
            name = str(item.get("feedback_type") or "").rsplit(".", 1)[-1]
            found.append(Score(name, value, word(item.get("creator"))))
    return found
