"""Anthropic managed agents: the event stream of a session.

Events are ``{id, type, processed_at, ...}`` as JSONL or a list, bare or as
``[api method, event]`` pairs (what a client sent and got). Calls:
``agent.tool_use``, ``agent.mcp_tool_use``, ``agent.custom_tool_use`` with
``name`` and ``input``; their results name the call's event id in
``tool_use_id``, ``mcp_tool_use_id`` or ``custom_tool_use_id``
(``user.custom_tool_result``). A denied ``user.tool_confirmation`` fails its
call. Tokens stand in ``span.model_request_end`` and leave out cached input,
which is added here. An event that was sent and then streamed back counts once.
Other event types are passed over. There is no outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest import jsonstream
from poc.ingest.arguments import from_raw
from poc.ingest.readers import anthropic_blocks as blocks
from poc.ingest.readers.assembly import Assembly, anthropic_usage, word
from poc.ingest.readers.decoding import decode, elements, glimpse, members, text
from poc.ingest.readers.responses_items import schemas
from poc.ingest.sources import Source
from poc.trajectory import Message, Reject, Run

NAME = "anthropic_managed"
VERSION = 1

_KINDS = ("agent.", "session.", "span.model_request", "user.message", "user.tool_", "user.custom_tool", "user.define_")
_CALLS = frozenset({"agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"})
_RESULTS = frozenset({"agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result"})


class Event(msgspec.Struct, gc=False):
    """One event, or the session that it belongs to; unknown fields are passed over."""

    type: Any = None
    id: Any = None
    session_id: Any = None
    processed_at: Any = None
    created_at: Any = None
    content: Any = None
    name: Any = None
    input: Raw = Raw(b"")
    tool_use_id: Any = None
    mcp_tool_use_id: Any = None
    custom_tool_use_id: Any = None
    mcp_server_name: Any = None
    is_error: Any = None
    result: Any = None
    deny_message: Any = None
    model_usage: Any = None
    session_thread_id: Any = None
    stop_reason: Any = None
    error: Any = None
    agent: Any = None
    events: Raw = Raw(b"")


_event = msgspec.json.Decoder(Event).decode


def sniff(sample: bytes, name: str) -> float:
    """How sure this is an event stream, 0..1: by the names of the events."""
    seen = glimpse(sample)
    found = 0
    for record in seen.records:
        for part in [record, *(elements(record) if record[:1] == b"[" else ())]:
            head = members(part)
            kind = text(head.get("type")) or ""
            found += kind.startswith(_KINDS) and ("processed_at" in head or "id" in head)
    return min(0.96, 0.6 + 0.2 * found) if found else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """The session of the file (or several, where events name theirs), with broken records as rejects."""
    reading = _Reading()
    for value in jsonstream.values(source):
        yield from reading.top(value.place, value.raw)
    yield from reading.end()


class _Reading:
    """The sessions of one file, while its events go by."""

    def __init__(self) -> None:
        self.sessions: dict[str | None, _Session] = {}
        self.current: str | None = None
        self.before: list[tuple[str, Event]] = []

    def top(self, place: str, raw: bytes) -> Iterator[Reject]:
        """A record: an event, a pair of method and event, or a list of events."""
        if raw[:1] == b"[":
            parts, broken = jsonstream.elements(raw)
            inside = [bytes(part).strip() for _, part in parts]
            if len(inside) == 2 and inside[0][:1] == b'"' and broken is None:
                yield from self._pair(place, inside[1])
                return
            for index, part in enumerate(inside):
                yield from self.top(f"{place} [{index}]", part)
            if broken is not None:
                reason = "broken JSON: from here on nothing could be read"
                yield Reject(place=f"{place} +{broken}", reason=reason, raw=jsonstream.excerpt(raw[broken:]))
            return
        yield from self._one(place, raw, 1)

    def end(self) -> Iterator[Run]:
        """The runs."""
        for session in self.sessions.values():
            yield session.finish()

    def _pair(self, place: str, raw: bytes) -> Iterator[Reject]:
        """What was sent holds the session's id and a list of events; what came is one event."""
        if raw[:1] == b"[":
            parts, _ = jsonstream.elements(raw)
            inside = [bytes(part).strip() for _, part in parts]
            if inside and inside[0][:1] == b'"':
                self.current = msgspec.json.decode(inside[0], type=str)
                self._session(place).run.records += 1
                for part in inside[1:]:
                    yield from self._one(place, part, 0)
                return
        yield from self._one(place, raw, 1)

    def _one(self, place: str, raw: bytes, records: int) -> Iterator[Reject]:
        event, reject = decode(place, raw, _event) if raw[:1] == b"{" else (None, None)
        if reject is not None:
            yield reject
        if event is None:
            if reject is None:
                yield Reject(place=place, reason="not an event: no JSON object", raw=jsonstream.excerpt(raw))
            return
        if event.type is None and bytes(event.events)[:1] == b"[":
            parts, _ = jsonstream.elements(bytes(event.events))
            self._session(place).run.records += records
            for _, part in parts:
                yield from self._one(place, bytes(part).strip(), 0)
            return
        if isinstance(event.agent, dict) and word(event.id) and event.processed_at is None:
            self.current = word(event.id)  # the session itself
        elif word(event.session_id):
            self.current = word(event.session_id)
        elif event.type is None:
            yield Reject(place=place, reason="not an event: it has no type", raw=jsonstream.excerpt(raw))
            return
        session = self._session(place)
        session.run.records += records
        session.event(event)

    def _session(self, place: str) -> _Session:
        # Events that come before the session is named are the first session's.
        if self.current not in self.sessions and None in self.sessions:
            self.sessions[self.current] = self.sessions.pop(None)
            self.sessions[self.current].name(self.current)
        session = self.sessions.get(self.current)
        if session is None:
            session = self.sessions[self.current] = _Session(place)
            session.name(self.current)
        return session


class _Session:
    """One session."""

    def __init__(self, place: str) -> None:
        self.run = Run(place=place, records=0, framework="anthropic-managed-agents")
        self.assembly = Assembly(self.run)
        self.seen: set[str] = set()
        self.sent: list[str | None] = []
        self.request = 0
        self.message: Message | None = None
        self.denied: dict[str, str | None] = {}
        self.answered: set[str] = set()
        self.threads: set[str] = set()

    def name(self, session_id: str | None) -> None:
        """The session's id is known."""
        self.run.native_id = session_id
        self.run.native_id_is_global = session_id is not None

    def event(self, event: Event) -> None:
        """The next event; one that came before, by its id, is passed over."""
        event_id = word(event.id)
        if event_id is not None:
            if event_id in self.seen:
                return
            self.seen.add(event_id)
        at = self.assembly.time(event.processed_at or event.created_at)
        kind = word(event.type)
        if isinstance(event.agent, dict) and kind in (None, "session"):
            self._agent(event.agent)
        elif kind in ("user.message", "system.message"):
            content = blocks.result_text(event.content)
            # What the client sent has no id; it comes back in the stream with one.
            if event_id is None:
                self.sent.append(content)
            elif content in self.sent:
                self.sent.remove(content)
                sent = next(m for m in reversed(self.run.messages) if m.role == "user" and m.content == content)
                sent.sent_at = at
                return
            self.assembly.message("user" if kind == "user.message" else "system", content, at=at)
            self.message = None
        elif kind == "agent.message":
            self.message = self.assembly.message("assistant", blocks.result_text(event.content), at=at)
        elif kind == "span.model_request_start":
            self.request += 1
            self.message = None
        elif kind == "span.model_request_end":
            self._tokens(event)
        elif kind in _CALLS:
            self._call(event, event_id, at)
        elif kind in _RESULTS:
            self._result(event, at)
        elif kind == "user.tool_confirmation" and event.result == "deny" and word(event.tool_use_id):
            self.denied[str(event.tool_use_id)] = word(event.deny_message)
        elif kind == "session.error":
            self.run.metadata["error"] = event.error
        elif kind == "session.status_idle" and isinstance(event.stop_reason, dict):
            self.run.metadata["stop_reason"] = event.stop_reason.get("type")

    def finish(self) -> Run:
        """The run; a call that was denied without a result of its own has failed."""
        for call_id, message in self.denied.items():
            if call_id not in self.answered:
                self.assembly.result(message, call_id=call_id, failed=True, has_result=message is not None)
        return self.assembly.finish()

    def _call(self, event: Event, event_id: str | None, at: Any) -> None:
        if self.message is None:
            self.message = self.assembly.message("assistant", None, at=at)
        self.assembly.call(
            event.name,
            from_raw(event.input),
            turn=("request", self.request) if self.request else ("message", self.message.seq),
            call_id=event_id,
            message=self.message,
            at=at,
        )

    def _result(self, event: Event, at: Any) -> None:
        call_id = word(event.tool_use_id) or word(event.mcp_tool_use_id) or word(event.custom_tool_use_id)
        if call_id is not None:
            self.answered.add(call_id)
        failed = event.is_error if isinstance(event.is_error, bool) else None
        self.assembly.result(blocks.result_text(event.content), call_id=call_id, at=at, failed=failed)

    def _tokens(self, event: Event) -> None:
        usage = anthropic_usage(event.model_usage)
        if usage is None:
            return
        message = self.message or self.assembly.message("assistant", None)
        if message.usage is None:
            message.usage = usage
        else:
            self.assembly.message("assistant", None, usage=usage)

    def _agent(self, agent: dict[str, Any]) -> None:
        model = agent.get("model")
        self.run.model = word(model.get("id")) if isinstance(model, dict) else word(model)
        if isinstance(agent.get("system"), str):
            self.assembly.message("system", agent["system"])
        self.run.tools = schemas(agent.get("tools"))
        if word(agent.get("name")):
            self.run.metadata["agent"] = agent["name"]
