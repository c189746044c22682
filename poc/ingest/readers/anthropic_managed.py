"""Anthropic managed agents: the event stream of a session.

Events are ``{id, type, processed_at, ...}`` as JSONL or a list, bare, in
``{data | events: [...]}``, or as ``[api method, event]`` pairs (what a client
sent and got); the session itself ``{id, agent{model, system, tools}}`` may
stand among them. An event that a client sent comes back in the stream with an
id and counts once. Newest first or last. What the events mean: see
`managed_session`. Records are pairs, or events where they stand alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from poc.ingest import jsonstream
from poc.ingest.readers.assembly import word
from poc.ingest.readers.decoding import decode, elements, glimpse, members, text
from poc.ingest.readers.managed_session import Event, Session, decode_event
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "anthropic_managed"
VERSION = 2

_KINDS = (
    *("agent.message", "agent.tool_", "agent.mcp_tool_", "agent.custom_tool_", "agent.thinking", "agent.thread_"),
    *("session.status_", "session.thread_", "span.model_request_", "span.outcome_evaluation_"),
    *("user.message", "user.tool_", "user.custom_tool_", "user.define_outcome", "user.interrupt"),
)
_HOLDERS = ("events", "data")


def sniff(sample: bytes, name: str) -> float:
    """How sure this is an event stream, 0..1: by the names of the events."""
    found = 0
    for record in glimpse(sample).records:
        head = members(record)
        inside = [part for key in _HOLDERS for part in elements(head.get(key, b""))[:20]]
        for part in (record, *elements(record), *inside):
            head = members(part)
            kind = text(head.get("type")) or ""
            found += kind.startswith(_KINDS) and ("processed_at" in head or "id" in head)
    return min(0.97, 0.7 + 0.1 * found) if found else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """The session of the file (or several, where events name theirs), with broken records as rejects."""
    reading = _Reading()
    for value in jsonstream.values(source):
        yield from reading.top(value.place, value.raw)
    yield from reading.end()


class _Reading:
    """The sessions of one file, while its events go by."""

    def __init__(self) -> None:
        self.sessions: dict[str | None, Session] = {}
        self.current: str | None = None

    def top(self, place: str, raw: bytes) -> Iterator[Reject]:
        """A record: an event, a pair of method and event, or a list of either."""
        if raw[:1] != b"[":
            yield from self._one(place, raw, 1)
            return
        parts, broken = jsonstream.elements(raw)
        inside = [bytes(part).strip() for _, part in parts]
        if inside and inside[0][:1] == b'"':
            if broken is None and len(inside) == 2:
                yield from self._pair(place, inside[1])
            else:
                reason = jsonstream.why(raw) if broken is not None else "not a pair of a method and an event"
                yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw))
            return
        for index, part in enumerate(inside):
            yield from self.top(f"{place} [{index}]", part)
        if broken is not None:
            reason = "broken JSON: from here on nothing could be read"
            yield Reject(place=f"{place} +{broken}", reason=reason, raw=jsonstream.excerpt(raw[broken:]) or None)

    def end(self) -> Iterator[Run]:
        """The runs."""
        for session in self.sessions.values():
            yield session.finish()

    def _pair(self, place: str, raw: bytes) -> Iterator[Reject]:
        """What was sent holds the session's id and a list of events; what came is one event."""
        inside = elements(raw)
        if inside and (session_id := text(inside[0])) is not None:
            self.current = session_id
            self._session(place).run.records += 1
            for part in inside[1:]:
                yield from self._one(place, part, 0)
            return
        yield from self._one(place, raw, 1)

    def _one(self, place: str, raw: bytes, records: int) -> Iterator[Reject]:
        if raw[:1] != b"{":
            yield Reject(
                place=place, reason="not an event: no JSON object", raw=jsonstream.excerpt(raw), records=records
            )
            return
        event, reject = decode(place, raw, decode_event)
        if reject is not None:
            yield Reject(place=place, reason=reject.reason, raw=reject.raw, records=min(records, reject.records))
        if event is None:
            return
        listed = next((part for part in (event.events, event.data) if bytes(part)[:1] == b"["), None)
        if event.type is None and listed is not None:
            if word(event.session_id):
                self.current = word(event.session_id)
            self._session(place).run.records += records
            for part in elements(bytes(listed)):
                yield from self._one(place, part, 0)
        elif _is_session(event) or word(event.session_id) or event.type is not None:
            if _is_session(event) or word(event.session_id):
                self.current = word(event.id) if _is_session(event) else word(event.session_id)
            session = self._session(place)
            session.run.records += records
            session.events.append(event)
        else:
            reason = "not an event: it has no type"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw), records=records)

    def _session(self, place: str) -> Session:
        # Events that come before the session is named are the first session's.
        if self.current not in self.sessions and None in self.sessions:
            self.sessions[self.current] = self.sessions.pop(None)
        session = self.sessions.get(self.current)
        if session is None:
            session = self.sessions[self.current] = Session(place)
        session.run.native_id = self.current
        session.run.native_id_is_global = self.current is not None
        return session


def _is_session(event: Event) -> bool:
    return isinstance(event.agent, dict) and word(event.id) is not None and event.type in (None, "session")
