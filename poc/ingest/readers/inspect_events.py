"""What an Inspect sample holds, as typed records, and its events put in reach of its messages.

Events are the only place with times, tokens of single calls and the calls of
agents that a tool started. They stand in one list, inside spans (older:
between ``step`` events, and inside the events of a tool or subtask). What a
scorer did is left out: it is not the agent's. Knows no run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest.readers.assembly import word
from poc.ingest.readers.decoding import loads

_ATTACHED = "attachment://"
_SCORING = ("scorers", "scorer")


class Call(msgspec.Struct, gc=False):
    """A call in an answer."""

    id: Any = None
    function: Any = None
    arguments: Raw = Raw(b"")


class ChatMessage(msgspec.Struct, gc=False):
    """A message of any role."""

    id: Any = None
    role: Any = None
    content: Any = None
    source: Any = None
    tool_calls: list[Call] | None = None
    tool_call_id: Any = None
    function: Any = None
    error: Any = None
    tool_error: Any = None


class Choice(msgspec.Struct, gc=False):
    """One of a model's answers."""

    message: ChatMessage | None = None


class Output(msgspec.Struct, gc=False):
    """What a model call gave back."""

    model: Any = None
    choices: list[Choice] = []
    usage: Any = None
    time: Any = None


class Event(msgspec.Struct, gc=False):
    """An event of any kind; what a kind lacks stays None."""

    event: Any = None
    timestamp: Any = None
    completed: Any = None
    pending: Any = None
    span_id: Any = None
    parent_id: Any = None
    id: Any = None
    name: Any = None
    type: Any = None
    action: Any = None
    function: Any = None
    arguments: Raw = Raw(b"")
    result: Any = None
    error: Any = None
    failed: Any = None
    events: list[Event] | None = None
    output: Raw = Raw(b"")
    tools: Raw = Raw(b"")
    message: Any = None
    limit: Any = None


class Sample(msgspec.Struct, gc=False):
    """A sample of a log."""

    id: Any = None
    epoch: Any = None
    uuid: Any = None
    input: Any = None
    choices: Any = None
    target: Any = None
    messages: list[ChatMessage] = []
    output: Any = None
    scores: Any = None
    score: Any = None
    metadata: Any = None
    events: list[Event] = []
    model_usage: Any = None
    role_usage: Any = None
    started_at: Any = None
    completed_at: Any = None
    total_time: Any = None
    working_time: Any = None
    error: Any = None
    limit: Any = None
    invalidation: Any = None
    attachments: dict[str, Any] = {}


class Happening(msgspec.Struct):
    """A model or tool event. `depth` counts the tools around it; `agent` names who spoke where a tool started it."""

    position: int
    event: Event
    depth: int = 0
    agent: str | None = None
    output: Output | None = None
    said: ChatMessage | None = None


class Attachments:
    """Values with what was put apart (``attachment://<hash>``) in its place again."""

    def __init__(self, known: dict[str, Any]) -> None:
        self._known = known

    def __call__(self, value: Any) -> Any:
        """The value, resolved."""
        if isinstance(value, str):
            return self._known.get(value[len(_ATTACHED) :], value) if value.startswith(_ATTACHED) else value
        if isinstance(value, list):
            return [self(item) for item in value]
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        return value

    def raw(self, raw: Raw) -> bytes:
        """The JSON text of a member; as it stands where nothing of it was put apart."""
        text = bytes(raw)
        if _ATTACHED.encode() not in text:
            return text
        return msgspec.json.encode(self(msgspec.json.decode(text)))


def happenings(events: list[Event]) -> list[Happening]:
    """The model and tool events that are the agents', in the order of the log."""
    spans = {word(event.id): event for event in events if event.event == "span_begin"}
    found: list[Happening] = []
    scoring = 0
    for event, inner in _flat(events, 0):
        if event.event == "step" and event.type in _SCORING:
            scoring += 1 if event.action == "begin" else -1
        if event.event not in ("model", "tool") or scoring > 0:
            continue
        depth, agent, scored = _around(event, spans)
        if scored:
            continue
        happening = Happening(len(found), event, depth + inner, agent if depth + inner else None)
        if event.event == "model":
            output = loads(event.output)
            happening.output = None if not isinstance(output, dict) else _output(event.output)
            if happening.output is None or not happening.output.choices:
                continue  # an attempt that failed
            happening.said = happening.output.choices[0].message
        found.append(happening)
    return found


def _output(raw: Raw) -> Output | None:
    try:
        return msgspec.json.decode(raw, type=Output)
    except msgspec.ValidationError:
        return None


def _flat(events: list[Event], depth: int) -> Iterator[tuple[Event, int]]:
    for event in events:
        yield event, depth
        if event.events:
            yield from _flat(event.events, depth + (event.event == "tool"))


def _around(event: Event, spans: dict[str | None, Event]) -> tuple[int, str | None, bool]:
    """How many tools run around an event, the innermost agent, and whether a scorer does."""
    depth, agent, seen = 0, None, 0
    span = spans.get(word(event.span_id))
    while span is not None and seen < len(spans):
        seen += 1
        depth += span.type == "tool"
        if span.type == "agent" and agent is None and isinstance(span.name, str):
            agent = span.name
        if span.type in _SCORING:
            return depth, agent, True
        span = spans.get(word(span.parent_id))
    return depth, agent, False


class Queues:
    """Happenings by a key, each given once; those that no tool started first."""

    def __init__(self) -> None:
        self._waiting: dict[Any, deque[Happening]] = {}

    def add(self, key: Any, happening: Happening) -> None:
        """One more for a key."""
        self._waiting.setdefault(key, deque()).append(happening)

    def take(self, key: Any) -> Happening | None:
        """The next for a key."""
        waiting = self._waiting.get(key)
        if not waiting:
            return None
        first = min(waiting, key=lambda happening: (happening.depth, happening.position))
        waiting.remove(first)
        return first
