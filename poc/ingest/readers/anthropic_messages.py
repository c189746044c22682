"""Anthropic Messages API: message lists with content blocks, and requests with their responses.

Read here: a bare message list, a list of such, JSONL of lists or of objects;
run objects with ``messages``; requests ``{model, system, tools, messages}``
with or without the response that came (``{type: "message", content, usage,
stop_reason}``), side by side or in wrappers (``request`` / ``response``, their
``body``, also as JSON text); a batch's results; JSONL of single messages;
claude.ai's export (``chat_messages[].{sender, content}``). Requests that repeat
what was said before are one run with it, in which each message counts once.
Input tokens are normalised to include what was read from and written to the
cache. There are no times unless a wrapper adds them. Records are top-level
values and elements of lists that hold more than messages.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest import jsonstream
from poc.ingest.readers import anthropic_blocks as blocks
from poc.ingest.readers.anthropic_blocks import Content
from poc.ingest.readers.anthropic_dumps import Parts, likeness, parts_of
from poc.ingest.readers.assembly import Assembly, anthropic_usage, blocks_text, is_uuid, word
from poc.ingest.readers.chat_runs import common
from poc.ingest.readers.decoding import decode, elements, glimpse, loads, members
from poc.ingest.readers.histories import Histories
from poc.ingest.readers.responses_items import schemas
from poc.ingest.sources import Source
from poc.trajectory import Reject, Role, Run

NAME = "anthropic_messages"
VERSION = 2

_ROLES: dict[Any, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_ENDED = ("completed_at", "response_time", "ended_at", "end_time", "finished_at")
_STARTED = ("started_at", "request_time", "start_time", "created_at", "timestamp", "time", "ts")
_OF_REQUESTS = (*_STARTED, *_ENDED, "usage", "success", "outcome", "duration", "duration_s", "cost", "cost_usd")


class Said(msgspec.Struct, gc=False):
    """One message; unknown fields are passed over."""

    role: Any = None
    sender: Any = None
    content: Content = None
    text: Any = None
    model: Any = None
    usage: Any = None
    stop_reason: Any = None
    timestamp: Any = None
    created_at: Any = None
    at: Any = None


_message = msgspec.json.Decoder(Said).decode
_messages = msgspec.json.Decoder(list[Said]).decode
_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def sniff(sample: bytes, name: str) -> float:
    """How sure these are messages with Anthropic's blocks, 0..1."""
    if b'"loglines"' in sample[:200]:
        return 0.0
    seen = glimpse(sample)
    return likeness(seen.records, single=seen.listed or len(seen.records) > 1)


def read(source: Source) -> Iterator[Run | Reject]:
    """The runs of the file; those that later requests may still go on with come at the end."""
    reading = _Reading()
    for value in jsonstream.values(source):
        yield from reading.top(value.place, value.raw, 0)
    yield from reading.end()


class _Conversation:
    """One run that requests are added to."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.said: list[Said] = []
        self.marks: list[Hashable] = []
        self.system: Any = None
        self.times: list[Any] = []

    def add(self, said: list[Said]) -> None:
        self.said += said
        self.marks += map(_mark, said)

    def finish(self) -> Run:
        """The run of what was said."""
        run, assembly = self.run, Assembly(self.run)
        for value in self.times:
            assembly.time(value)
        if isinstance(self.system, str | list) and self.system:
            assembly.message("system", blocks_text(self.system))
        counted = [item.usage is not None for item in self.said if _role(item) == "assistant"]
        for index, item in enumerate(self.said):
            self._tell(assembly, index, item)
        told = run.usage
        assembly.finish()
        if told is None and not all(counted):
            run.usage = None  # what some of the answers cost is not known
        return run

    def _tell(self, assembly: Assembly, index: int, item: Said) -> None:
        run, role = self.run, _role(item)
        at = assembly.time(next((time for time in (item.timestamp, item.created_at, item.at) if time), None))
        listed = blocks.blocks_of(item.content if item.content is not None else item.text)
        content = blocks.words([block for block in listed if not blocks.is_result(block)])
        if role == "assistant":
            message = assembly.message("assistant", content, at=at, usage=anthropic_usage(item.usage))
            run.model = run.model or word(item.model)
            if item.stop_reason is not None:
                run.metadata["stop_reason"] = item.stop_reason
            blocks.calls(assembly, listed, message, turn=index, at=at)
            return
        for block in listed:
            if blocks.is_result(block):
                blocks.result(assembly, block, at=at)
        if content is not None or not listed:
            assembly.message(role, content, at=at)


class _Reading:
    """What must be remembered across the records of one file."""

    def __init__(self) -> None:
        self.loose: _Conversation | None = None
        self.open: list[_Conversation] = []
        self.histories: Histories[_Conversation] = Histories()

    def top(self, place: str, raw: bytes, depth: int) -> Iterator[Run | Reject]:
        """One top-level value, or an element of a list of such."""
        if raw[:1] == b"[" and depth < 4:
            yield from self._list(place, raw, depth)
            return
        head = members(raw)
        if "content" in head and ("role" in head or "sender" in head):
            said, reject = decode(place, raw, _message)
            if reject is not None:
                yield reject
            if said is not None:
                self.loose = self.loose or _Conversation(Run(place=place, records=0))
                self.loose.run.records += 1
                self.loose.add([said])
            return
        fields, reject = decode(place, raw, _fields)
        if reject is not None:
            yield reject
        if fields is not None:
            yield from self._object(place, raw, fields)

    def end(self) -> Iterator[Run | Reject]:
        """The run made of single messages, and those made of requests."""
        if self.loose is not None:
            yield self.loose.finish()
        for conversation in self.open:
            yield conversation.finish()

    def _list(self, place: str, raw: bytes, depth: int) -> Iterator[Run | Reject]:
        parts = elements(raw)
        if any(members(part).keys() & {"role", "sender"} for part in parts[:3]):
            conversation = _Conversation(Run(place=place))
            yield from self._fill(conversation, place, raw, lost=1)
            if conversation.said:
                yield conversation.finish()
            return
        found, broken = jsonstream.elements(raw)
        for index, (_, part) in enumerate(found):
            yield from self.top(f"{place} [{index}]", bytes(part).strip(), depth + 1)
        if broken is not None:
            yield _cut(place, raw, broken)

    def _fill(self, conversation: _Conversation, place: str, raw: bytes, *, lost: int) -> Iterator[Reject]:
        """Read a list of messages, leaving out those that cannot be read; `lost` records if that leaves none."""
        said, reject = decode(place, raw, _messages)
        if said is not None:
            if reject is not None:
                yield reject
            conversation.add(said)
            return
        found, broken = jsonstream.elements(raw)
        for index, (_, part) in enumerate(found):
            one, fault = decode(f"{place} [{index}]", bytes(part).strip(), _message)
            if fault is not None:
                yield Reject(place=fault.place, reason=fault.reason, raw=fault.raw, records=0)
            if one is not None:
                conversation.add([one])
        records = 0 if conversation.said else lost
        if broken is not None:
            yield _cut(place, raw, broken, records=records)
        elif records:
            reason = "no message that could be read"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw), records=records)

    def _object(self, place: str, raw: bytes, fields: dict[str, Raw]) -> Iterator[Run | Reject]:
        """A run object, or a request with the response that came."""
        parts = parts_of({name: bytes(part) for name, part in fields.items()})
        answer = None
        if parts.answer:
            answer, fault = decode(place, parts.answer, _message)
            if fault is not None:
                yield Reject(place=fault.place, reason=fault.reason, raw=fault.raw, records=0)
        conversation = _Conversation(Run(place=place))
        if parts.messages:
            yield from self._fill(conversation, place, parts.messages, lost=0)
        if not conversation.said and answer is None:
            reason = parts.fault or "no list of messages here"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw))
            return
        rest = {name: loads(part) for name, part in fields.items() if name not in parts.used}
        if answer is None and parts.request is None:
            _describe(conversation, parts, rest)
            yield conversation.finish()
        else:
            self._dump(conversation, parts, answer, rest)

    def _dump(self, asked: _Conversation, parts: Parts, answer: Said | None, rest: dict[str, Any]) -> None:
        """A request, with the answer that came to it: a new conversation, or what is new in one that it repeats."""
        said = asked.said
        found = self.histories.find(asked.marks)
        if found is None:
            conversation = _Conversation(Run(place=asked.run.place, records=0))
            self.open.append(conversation)
        else:
            conversation, repeated = found
            said = said[repeated:]
        conversation.run.records += 1
        conversation.times += [rest[name] for name in (*_STARTED, *_ENDED) if rest.get(name) is not None]
        conversation.add(said)
        if answer is not None:
            answer.role = answer.role or "assistant"
            answer.usage = answer.usage or rest.get("usage")
            answer.at = next((rest[name] for name in (*_ENDED, *_STARTED) if rest.get(name) is not None), None)
            conversation.add([answer])
        if found is None:
            # What one request took, and whether it went well, is not said of the run.
            own = {name: rest.pop(name) for name in _OF_REQUESTS if name in rest}
            if "id" in rest and rest.keys() & {"run_id", "session_id", "conversation_id", "trace_id"}:
                own["request_id"] = rest.pop("id")
            _describe(conversation, parts, rest)
            conversation.run.metadata |= {name: value for name, value in own.items() if value is not None}
        self.histories.stands(conversation, conversation.marks)


def _describe(conversation: _Conversation, parts: Parts, rest: dict[str, Any]) -> None:
    """What the wrapper and the request say of the run."""
    run, request = conversation.run, parts.request
    system = rest.pop("system", None) if request is None else loads(request.get("system", b"null"))
    conversation.system = system
    if request is None:
        run.usage = anthropic_usage(rest.pop("usage", None))
    for name, known in (("custom_id", "task_id"), ("uuid", "id")):
        if word(rest.get(name)) and known not in rest:
            rest[known] = rest.pop(name)
    common(run, rest)
    run.native_id_is_global = is_uuid(run.native_id)
    if request is not None:
        run.model = run.model or word(loads(request.get("model", b"null")))
        run.tools = run.tools or schemas(loads(request.get("tools", b"null")))
    run.metadata |= {name: value for name, value in rest.items() if value is not None}


def _role(item: Said) -> Role:
    role = item.role if item.role is not None else item.sender
    return _ROLES.get(role, "other") if isinstance(role, str) else "other"


def _mark(item: Said) -> Hashable:
    return blocks.mark(_role(item), blocks.blocks_of(item.content if item.content is not None else item.text))


def _cut(place: str, raw: bytes, offset: int, *, records: int = 1) -> Reject:
    return Reject(
        place=f"{place} +{offset}",
        reason="broken JSON: from here on nothing could be read",
        raw=jsonstream.excerpt(raw[offset:]) or None,
        records=records,
    )
