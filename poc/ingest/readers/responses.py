"""OpenAI Responses: items, and the response objects that hold them.

Read here: a list of items (the ``input`` of the next request, which is the
history so far); JSONL of items; response objects ``{object: "response", id,
model, output[], usage, previous_response_id, created_at}`` alone, listed or as
JSONL; pairs ``{request | input, response | output}``. Responses of one file
that name each other by ``previous_response_id`` (or share a conversation) are
one run, in which each item counts once however often a later request repeats
it. Totals of tokens include cached input and reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest import jsonstream
from poc.ingest.readers.assembly import Assembly, word
from poc.ingest.readers.chat_messages import usage_of
from poc.ingest.readers.decoding import DECODE_ERRORS, Head, decode, elements, glimpse, members, text
from poc.ingest.readers.responses_items import TYPES, Item, Items, schemas
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "openai_responses"
VERSION = 1

_LISTS = ("items", "output", "input", "data", "responses")
_WRAPPERS = ("response", "request", "body", "result")


class Record(msgspec.Struct, gc=False):
    """A response, a request, a pair of them, or an item list under a name; unknown fields are passed over."""

    object: Any = None
    type: Any = None
    id: Any = None
    created_at: Any = None
    completed_at: Any = None
    timestamp: Any = None
    model: Any = None
    status: Any = None
    error: Any = None
    instructions: Any = None
    conversation: Any = None
    conversation_id: Any = None
    session_id: Any = None
    previous_response_id: Any = None
    usage: Any = None
    tools: Any = None
    metadata: Any = None
    items: Raw = Raw(b"")
    input: Raw = Raw(b"")
    output: Raw = Raw(b"")
    request: Raw = Raw(b"")
    response: Raw = Raw(b"")
    body: Raw = Raw(b"")


_record = msgspec.json.Decoder(Record).decode
_items = msgspec.json.Decoder(list[Item]).decode
_item = msgspec.json.Decoder(Item).decode


def sniff(sample: bytes, name: str) -> float:
    """How sure these are items or responses, 0..1: by the types of the first items."""
    seen = glimpse(sample)
    if seen.first.keys() >= {"id", "timestamp", "instructions"} or b'"loglines"' in sample[:200]:
        return 0.0
    return max((_likeness(head, 0) for head in seen.heads), default=0.0)


def read(source: Source) -> Iterator[Run | Reject]:
    """The runs of the file; those that later records may still belong to come at the end."""
    reading = _Reading()
    for value in jsonstream.values(source):
        yield from reading.top(value.place, value.raw)
    yield from reading.end()


class _Thread:
    """One run that responses are added to."""

    def __init__(self, place: str, *, repeats: bool) -> None:
        self.run = Run(place=place, records=0)
        self.assembly = Assembly(self.run)
        self.items = Items(self.assembly, repeats=repeats)
        self.inputs = 0

    def finish(self) -> Run:
        self.items.finish()
        return self.assembly.finish()


class _Reading:
    """What must be remembered across the records of one file."""

    def __init__(self) -> None:
        self.loose: _Thread | None = None
        self.threads: list[_Thread] = []
        self.by_key: dict[str, _Thread] = {}

    def top(self, place: str, raw: bytes, depth: int = 0) -> Iterator[Run | Reject]:
        """One top-level value, or an element of a list of such."""
        if raw[:1] == b"[" and depth < 3:
            parts, broken = jsonstream.elements(raw)
            first = members(bytes(parts[0][1]).strip()) if parts else {}
            if _is_item(first):
                yield from self._list(place, raw)
                return
            for index, (_, part) in enumerate(parts):
                yield from self.top(f"{place} [{index}]", bytes(part).strip(), depth + 1)
            if broken is not None:
                yield _cut(place, raw, broken)
            return
        if _is_item(members(raw)):
            item, reject = decode(place, raw, _item)
            if reject is not None:
                yield reject
            if item is not None:
                self.loose = self.loose or _Thread(place, repeats=False)
                self.loose.run.records += 1
                self.loose.items.add(item)
            return
        record, reject = decode(place, raw, _record)
        if reject is not None:
            yield reject
        if record is not None:
            yield from self._record(place, raw, record)

    def end(self) -> Iterator[Run | Reject]:
        """The runs."""
        if self.loose is not None:
            yield self.loose.finish()
        for thread in self.threads:
            yield thread.finish()

    def _list(self, place: str, raw: bytes) -> Iterator[Run | Reject]:
        items, reject = decode(place, raw, _items)
        if items is None:
            parts, broken = jsonstream.elements(raw)
            items = []
            for index, (_, part) in enumerate(parts):
                item, lost = decode(f"{place} [{index}]", bytes(part).strip(), _item)
                if lost is not None:
                    yield Reject(place=lost.place, reason=lost.reason, raw=lost.raw, records=0)
                if item is not None:
                    items.append(item)
            if broken is not None:
                yield Reject(place=f"{place} +{broken}", reason="broken JSON: the rest is lost", records=0)
        elif reject is not None:
            yield reject
        thread = _Thread(place, repeats=False)
        thread.run.records = 1
        for item in items:
            thread.items.add(item)
        yield thread.finish()

    def _record(self, place: str, raw: bytes, record: Record) -> Iterator[Run | Reject]:
        """A response or a request with it."""
        request, response = record, record
        try:
            for part in (record.request, record.body):
                if bytes(part)[:1] == b"{":
                    request = _record(part)
            if bytes(record.response)[:1] == b"{":
                response = _record(record.response)
                if bytes(response.body)[:1] == b"{":  # a line of a batch's output
                    response = _record(response.body)
            items = record.items if bytes(record.items)[:1] == b"[" else request.input
            asked = _items(items) if bytes(items)[:1] == b"[" else []
            said = msgspec.json.decode(items, type=str) if bytes(items)[:1] == b'"' else None
            made = _items(response.output) if bytes(response.output)[:1] == b"[" else []
        except DECODE_ERRORS as error:
            reason = f"the record is not as this format has it: {error}"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw))
            return
        if not asked and said is None and not made:
            reason = "no items: neither input nor output of a response"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw))
            return
        thread = self._thread(place, record, request, response)
        thread.run.records += 1
        self._describe(thread, request, response)
        if said is not None:
            thread.assembly.message("user", said)
        # A later request repeats the history that came before it.
        for item in asked[thread.inputs :] if _bare(asked) else asked:
            thread.items.add(item)
        thread.inputs = max(thread.inputs, len(asked)) if _bare(asked) else 0
        if made:
            at = thread.assembly.time(response.completed_at or response.created_at or record.timestamp)
            thread.items.begin(response.id or place, usage_of(response.usage))
            for item in made:
                thread.items.add(item, at=at)
            thread.items.end()

    def _thread(self, place: str, record: Record, request: Record, response: Record) -> _Thread:
        conversation = request.conversation or response.conversation
        if isinstance(conversation, dict):
            conversation = conversation.get("id")
        shared = word(conversation) or word(record.conversation_id) or word(record.session_id)
        before = word(request.previous_response_id) or word(response.previous_response_id)
        thread = self.by_key.get(shared or "") or self.by_key.get(before or "")
        if thread is None:
            thread = _Thread(place, repeats=True)
            thread.run.native_id = shared or word(response.id) or word(record.id)
            # Response and conversation ids are random and long.
            thread.run.native_id_is_global = (thread.run.native_id or "").startswith(("resp_", "conv_"))
            self.threads.append(thread)
        for key in (shared, word(response.id)):
            if key:
                self.by_key[key] = thread
        return thread

    def _describe(self, thread: _Thread, request: Record, response: Record) -> None:
        run = thread.run
        run.model = run.model or word(response.model) or word(request.model)
        instructions = request.instructions or response.instructions
        if isinstance(instructions, str) and not run.messages:
            thread.assembly.message("system", instructions)
        run.tools = run.tools or schemas(response.tools or request.tools)
        for name in ("status", "error"):
            value = getattr(response, name)
            if value is not None:
                run.metadata[name] = value
        if isinstance(response.metadata, dict) and response.metadata:
            run.metadata["metadata"] = response.metadata
        thread.assembly.time(response.created_at)


def _bare(items: list[Item]) -> bool:
    """Whether the items can only be told apart by their place: messages without ids."""
    return any(item.role is not None and item.id is None for item in items)


def _is_item(head: Head) -> bool:
    kind = text(head.get("type"))
    if kind in TYPES:
        return True
    return kind == "message" and "role" in head and "usage" not in head


def _likeness(head: Head, depth: int) -> float:
    kind = text(head.get("type"))
    if kind in TYPES:
        return 0.85 if kind == "reasoning" else 0.93
    if text(head.get("object")) == "response" and "output" in head:
        return 0.95
    if kind == "message" and "role" in head and "usage" not in head:
        parts = elements(head.get("content", b""))
        kinds = {text(members(part).get("type")) for part in parts}
        return 0.92 if kinds & {"input_text", "output_text", "refusal"} else 0.0
    if depth >= 2:
        return 0.0
    for name in _LISTS:
        parts = elements(head.get(name, b""))
        found = max((_likeness(members(part), depth + 1) for part in parts[:20]), default=0.0)
        if found:
            return found
    for name in _WRAPPERS:
        if head.get(name, b"")[:1] == b"{":
            found = _likeness(members(head[name]), depth + 1)
            if found:
                return found
    return 0.0


def _cut(place: str, raw: bytes, offset: int) -> Reject:
    return Reject(
        place=f"{place} +{offset}",
        reason="broken JSON: from here on nothing could be read",
        raw=jsonstream.excerpt(raw[offset:]),
    )
