"""Anthropic Messages API: message lists with content blocks, and requests with their responses.

Read here: a bare message list, a list of such, JSONL of lists or of objects;
run objects with ``messages``; requests ``{model, system, tools, messages}``
with or without the ``response`` / ``output`` that came (``{type: "message",
content, usage, stop_reason}``); JSONL of single messages. Requests of one
file that repeat the history of the one before are one run. Input tokens are
normalised to include what was read from and written to the cache. There are
no times unless a wrapper adds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest import jsonstream
from poc.ingest.outcome_values import read_outcome
from poc.ingest.readers import anthropic_blocks as blocks
from poc.ingest.readers.anthropic_blocks import Block, Content
from poc.ingest.readers.assembly import Assembly, anthropic_usage, blocks_text, word
from poc.ingest.readers.decoding import DECODE_ERRORS, Head, decode, elements, glimpse, members, text
from poc.ingest.readers.responses_items import schemas
from poc.ingest.sources import Source
from poc.trajectory import Outcome, Reject, Run

NAME = "anthropic_messages"
VERSION = 1

_MESSAGE_KEYS = ("messages", "conversation", "trajectory", "history")
_OWN = frozenset({"tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "thinking"})


class Said(msgspec.Struct, gc=False):
    """One message; unknown fields are passed over."""

    role: Any = None
    content: Content = None
    id: Any = None
    type: Any = None
    model: Any = None
    usage: Any = None
    stop_reason: Any = None
    timestamp: Any = None
    created_at: Any = None


class Record(msgspec.Struct, gc=False):
    """A run object or a request with its response."""

    id: Any = None
    run_id: Any = None
    session_id: Any = None
    conversation_id: Any = None
    task_id: Any = None
    type: Any = None
    model: Any = None
    system: Any = None
    tools: Any = None
    usage: Any = None
    reward: Any = None
    outcome: Any = None
    success: Any = None
    timestamp: Any = None
    created_at: Any = None
    started_at: Any = None
    ended_at: Any = None
    messages: Raw = Raw(b"")
    conversation: Raw = Raw(b"")
    trajectory: Raw = Raw(b"")
    history: Raw = Raw(b"")
    request: Raw = Raw(b"")
    response: Raw = Raw(b"")
    output: Raw = Raw(b"")
    body: Raw = Raw(b"")


_message = msgspec.json.Decoder(Said).decode
_messages = msgspec.json.Decoder(list[Said]).decode
_record = msgspec.json.Decoder(Record).decode


def sniff(sample: bytes, name: str) -> float:
    """How sure these are messages with Anthropic's blocks, 0..1."""
    if b'"loglines"' in sample[:200]:
        return 0.0
    seen = glimpse(sample)
    if seen.listed and any("role" in head for head in seen.heads):
        return _like_messages(seen.records)
    best = 0.0
    for record in seen.records:
        best = max(best, _likeness(record, 0))
    if not best and any("role" in head and "content" in head for head in seen.heads):
        best = _like_messages(seen.records)
    return best


def read(source: Source) -> Iterator[Run | Reject]:
    """The runs of the file."""
    reading = _Reading()
    for value in jsonstream.values(source):
        yield from reading.top(value.place, value.raw, 0)
    yield from reading.end()


class _Reading:
    """What must be remembered across the records of one file."""

    def __init__(self) -> None:
        self.loose: list[Said] = []
        self.loose_place = ""
        self.request: tuple[Run, list[Said]] | None = None

    def top(self, place: str, raw: bytes, depth: int) -> Iterator[Run | Reject]:
        """One top-level value, or an element of a list of such."""
        if raw[:1] == b"[" and depth < 4:
            parts, broken = jsonstream.elements(raw)
            if parts and "role" in members(bytes(parts[0][1]).strip()):
                yield from self._run(place, raw, Record(), raw)
                return
            for index, (_, part) in enumerate(parts):
                yield from self.top(f"{place} [{index}]", bytes(part).strip(), depth + 1)
            if broken is not None:
                reason = "broken JSON: from here on nothing could be read"
                yield Reject(place=f"{place} +{broken}", reason=reason, raw=jsonstream.excerpt(raw[broken:]))
            return
        head = members(raw)
        if "role" in head and "content" in head and not any(key in head for key in _MESSAGE_KEYS):
            said, reject = decode(place, raw, _message)
            if reject is not None:
                yield reject
            if said is not None:
                self.loose_place = self.loose_place or place
                self.loose.append(said)
            return
        record, reject = decode(place, raw, _record)
        if reject is not None:
            yield reject
        if record is not None:
            listed = next(
                (bytes(part) for key in _MESSAGE_KEYS if bytes(part := getattr(record, key))[:1] == b"["), b""
            )
            yield from self._run(place, raw, record, listed)

    def end(self) -> Iterator[Run | Reject]:
        """The run made of single messages, and the last request."""
        if self.loose:
            yield _build(Run(place=self.loose_place, records=len(self.loose)), self.loose)
        yield from self._flush()

    def _run(self, place: str, raw: bytes, record: Record, listed: bytes) -> Iterator[Run | Reject]:
        try:
            request = _record(record.request) if bytes(record.request)[:1] == b"{" else record
            if bytes(request.body)[:1] == b"{":
                request = _record(request.body)
            said = _messages(listed or (bytes(request.messages) or b"[]"))
            answer = None
            for part in (record.response, record.output, record.body):
                if answer is None and bytes(part)[:1] == b"{" and "content" in members(bytes(part)):
                    answer = _message(bytes(part))
        except DECODE_ERRORS as error:
            reason = f"the messages are not as this format has them: {error}"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw))
            return
        if not said and answer is None:
            yield Reject(place=place, reason="no list of messages here", raw=jsonstream.excerpt(raw))
            return
        run = Run(place=place)
        _describe(run, record, request)
        if answer is None:
            yield from self._flush()
            yield _build(run, said, request.system, record)
            return
        answer.role = answer.role or "assistant"
        if answer.timestamp is None:
            answer.timestamp = record.timestamp or record.created_at
        # A request that repeats what the one before held goes on with that run.
        before = self.request
        if before is not None and _goes_on(before[1], said):
            run = before[0]
            run.records += 1
            said = [*before[1], *said[len(before[1]) :]]
        else:
            yield from self._flush()
            if isinstance(request.system, str | list):
                run.metadata["system"] = blocks_text(request.system)
        self.request = (run, [*said, answer])

    def _flush(self) -> Iterator[Run]:
        if self.request is not None:
            run, said = self.request
            self.request = None
            yield _build(run, said, run.metadata.pop("system", None))


def _build(run: Run, said: list[Said], system: Any = None, wrapper: Record | None = None) -> Run:
    """The run of a list of messages."""
    assembly = Assembly(run)
    if wrapper is not None:
        run.started_at = assembly.time(wrapper.started_at or wrapper.created_at or wrapper.timestamp)
        run.ended_at = assembly.time(wrapper.ended_at)
    if isinstance(system, str | list) and system:
        assembly.message("system", blocks_text(system))
    for index, item in enumerate(said):
        at = assembly.time(item.timestamp if item.timestamp is not None else item.created_at)
        listed = blocks.blocks_of(item.content)
        role = item.role if item.role in ("user", "assistant", "system") else "other"
        text_blocks = [block for block in listed if not blocks.is_result(block)]
        content = blocks.words(text_blocks)
        if role == "assistant":
            message = assembly.message("assistant", content, at=at, usage=anthropic_usage(item.usage))
            run.model = run.model or word(item.model)
            blocks.calls(assembly, listed, message, turn=("message", index), at=at)
            continue
        for block in listed:
            if blocks.is_result(block):
                blocks.result(assembly, block, at=at)
        if content is not None or not listed:
            assembly.message(role, content, at=at)
    return assembly.finish()


def _describe(run: Run, record: Record, request: Record) -> None:
    for name in ("run_id", "session_id", "conversation_id", "id"):
        run.native_id = run.native_id or word(getattr(record, name))
    run.task_key = word(record.task_id)
    run.model = word(request.model) or word(record.model)
    run.tools = schemas(request.tools or record.tools)
    if run.usage is None and request is record:
        run.usage = anthropic_usage(record.usage)
    for name in ("reward", "outcome", "success"):
        value = read_outcome(getattr(record, name))
        if value is not None:
            run.outcome = Outcome(value=value, provenance=f"log:{name}")
            break


def _goes_on(before: list[Said], now: list[Said]) -> bool:
    """Whether a later request's messages begin with all that was said before."""
    return len(now) >= len(before) and all(_same(a, b) for a, b in zip(before, now, strict=False))


def _same(a: Said, b: Said) -> bool:
    if a.role != b.role:
        return False
    return [_key(block) for block in blocks.blocks_of(a.content)] == [
        _key(block) for block in blocks.blocks_of(b.content)
    ]


def _key(block: Block) -> tuple[Any, ...]:
    return block.type, block.text, block.id, block.tool_use_id


def _likeness(raw: bytes, depth: int) -> float:
    if raw[:1] == b"[" and depth < 3:
        parts = elements(raw)
        if parts and "role" in members(parts[0]):
            return _like_messages(parts)
        return _likeness(parts[0], depth + 1) if parts else 0.0
    head = members(raw)
    if _is_response(head):
        return 0.9
    for key in ("request", "response", "body", "output"):
        inside = members(head.get(key, b""))
        if inside and _is_response(inside):
            return 0.9
    for key in _MESSAGE_KEYS:
        inside = head.get(key, b"")
        if inside[:1] == b"[":
            return _like_messages(elements(inside))
    inside = members(head.get("request", b""))
    if inside.get("messages", b"")[:1] == b"[":
        return _like_messages(elements(inside["messages"]))
    return 0.0


def _is_response(head: Head) -> bool:
    return text(head.get("type")) == "message" and "usage" in head and "stop_reason" in head


def _like_messages(parts: list[bytes]) -> float:
    for part in parts[:60]:
        head = members(part)
        if "tool_calls" in head or head.get("role") == b'"tool"':
            return 0.0
        for block in elements(head.get("content", b"")):
            if text(members(block).get("type")) in _OWN:
                return 0.94
    return 0.0
