"""OpenAI Responses: items, and the response objects that hold them.

Read here: a list of items (the ``input`` of the next request, which is the
history so far), also as ``{object: "list", data[]}``, newest first or last;
JSONL of items; response objects ``{object: "response", id, model, output[],
usage, previous_response_id, created_at}`` alone, listed or as JSONL; pairs
``{request | input, response | output}``; a batch's output; the events of a
stream. Responses of one file that name each other by ``previous_response_id``,
share a conversation or repeat what was said so far are one run, in which each
item counts once however often a later request repeats it. Totals of tokens
include cached input and reasoning. Records are top-level values and elements
of lists that hold more than items.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest import jsonstream
from poc.ingest.readers.assembly import Assembly, word
from poc.ingest.readers.chat_messages import usage_of
from poc.ingest.readers.decoding import DECODE_ERRORS, Head, decode, elements, glimpse, members, text
from poc.ingest.readers.histories import Histories
from poc.ingest.readers.responses_items import CALLS, TYPES, Item, Items, mark, schemas
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "openai_responses"
VERSION = 2

_LISTS = ("items", "output", "input", "data", "responses")
_HOLDERS = ("data", "responses")
_WRAPPERS = ("response", "request", "body")
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.done"})


class Record(msgspec.Struct, gc=False):
    """A response, a request, a pair of them, or an item list under a name; unknown fields are passed over."""

    object: Any = None
    type: Any = None
    id: Any = None
    custom_id: Any = None
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
    heads = [*seen.heads, *(members(part) for record in seen.records for part in elements(record)[:20])]
    return max((_likeness(head, 0) for head in heads), default=0.0)


def _likeness(head: Head, depth: int) -> float:
    kind = text(head.get("type"))
    if kind in TYPES:
        return 0.95
    if text(head.get("object")) == "response" and ("output" in head or "previous_response_id" in head):
        return 0.95
    if kind == "message" and "role" in head and "usage" not in head:
        parts = elements(head.get("content", b""))
        kinds = {text(members(part).get("type")) for part in parts}
        return 0.95 if kinds & {"input_text", "output_text", "refusal"} else 0.0
    if depth >= 2:
        return 0.0
    for name in _LISTS:
        parts = elements(head.get(name, b""))
        found = max((_likeness(members(part), depth + 1) for part in parts[:20]), default=0.0)
        if found:
            return found
    for name in (*_WRAPPERS, "item") if (kind or "").startswith("response.") else _WRAPPERS:
        if head.get(name, b"")[:1] == b"{":
            found = _likeness(members(head[name]), depth + 1)
            if found:
                return found
    return 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """The runs of the file; those that later records may still belong to come at the end."""
    reading = _Reading()
    for value in jsonstream.values(source):
        yield from reading.top(value.place, value.raw)
    yield from reading.end()


class _Thread:
    """One run that responses are added to."""

    def __init__(self, place: str, *, repeats: bool, records: int = 0) -> None:
        self.run = Run(place=place, records=records)
        self.assembly = Assembly(self.run)
        self.items = Items(self.assembly, repeats=repeats)
        self.marks: list[Hashable] = []
        self.untold = False
        """Whether it holds answers whose responses are not in the log, so that their tokens are not known."""

    def finish(self) -> Run:
        self.items.finish()
        run = self.assembly.finish()
        run.usage = None if self.untold else run.usage
        return run


class _Stream(msgspec.Struct):
    """A response that comes event by event."""

    place: str
    records: int = 0
    items: list[bytes] = []
    head: bytes = b"{}"


class _Reading:
    """What must be remembered across the records of one file."""

    def __init__(self) -> None:
        self.loose: _Thread | None = None
        self.threads: list[_Thread] = []
        self.by_key: dict[str, _Thread] = {}
        self.histories: Histories[_Thread] = Histories()
        self.stream: _Stream | None = None

    def top(self, place: str, raw: bytes, depth: int = 0) -> Iterator[Run | Reject]:
        """One top-level value, or an element of a list of such."""
        head = members(raw)
        held = next((name for name in _HOLDERS if head.get(name, b"")[:1] == b"["), None)
        if held is not None and "output" not in head and depth < 3:
            place, raw = f"{place} .{held}", head[held]
        if raw[:1] == b"[" and depth < 3:
            parts, broken = jsonstream.elements(raw)
            if any(_is_item(members(bytes(part).strip())) for _, part in parts[:20]):
                yield from self._list(place, raw)
                return
            for index, (_, part) in enumerate(parts):
                yield from self.top(f"{place} [{index}]", bytes(part).strip(), depth + 1)
            if broken is not None:
                yield _cut(place, raw, broken)
        elif _is_item(head) or (self.loose is not None and _may_be_item(head)):
            item, reject = decode(place, raw, _item)
            if reject is not None:
                yield reject
            if item is not None:
                self.loose = self.loose or _Thread(place, repeats=False)
                self.loose.run.records += 1
                self.loose.items.add(item)
        elif (text(head.get("type")) or "").startswith("response."):
            yield from self._event(place, raw, head)
        else:
            record, reject = decode(place, raw, _record)
            if reject is not None:
                yield reject
            if record is not None:
                yield from self._record(place, raw, record, 1)

    def end(self) -> Iterator[Run | Reject]:
        """The runs."""
        yield from self._cut_stream()
        if self.loose is not None:
            yield self.loose.finish()
        for thread in self.threads:
            yield thread.finish()

    def _list(self, place: str, raw: bytes) -> Iterator[Run | Reject]:
        """A list of items: one run, without the items that cannot be read."""
        items, reject = decode(place, raw, _items)
        if items is not None and reject is not None:
            yield reject
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
                yield _cut(place, raw, broken, records=0 if items else 1)
            elif not items:
                yield Reject(place=place, reason="no items that could be read", raw=jsonstream.excerpt(raw))
        if items:
            thread = _Thread(place, repeats=False, records=1)
            for item in reversed(items) if _newest_first(items) else items:
                thread.items.add(item)
            yield thread.finish()

    def _event(self, place: str, raw: bytes, head: Head) -> Iterator[Run | Reject]:
        """An event of a stream. The last one has the whole response; where it never came, the items that are done."""
        kind = text(head.get("type"))
        if kind == "response.created":
            yield from self._cut_stream()
        stream = self.stream = self.stream or _Stream(place, items=[])
        stream.records += 1
        inside = head.get("response", b"")
        if kind == "response.created" and inside[:1] == b"{":
            stream.head = inside
        elif kind == "response.output_item.done" and head.get("item", b"")[:1] == b"{":
            stream.items.append(head["item"])
        elif kind in _ENDS and inside[:1] == b"{":
            self.stream = None
            record, reject = decode(stream.place, inside, _record)
            if reject is not None:
                yield Reject(
                    place=place, reason=reject.reason, raw=reject.raw, records=stream.records if record is None else 0
                )
            if record is not None:
                if bytes(record.output)[:2] in (b"", b"[]") and stream.items:
                    record.output = Raw(b"[" + b",".join(stream.items) + b"]")
                yield from self._record(stream.place, raw, record, stream.records)

    def _cut_stream(self) -> Iterator[Run | Reject]:
        """A stream that broke off."""
        stream, self.stream = self.stream, None
        if stream is None:
            return
        record, _ = decode(stream.place, stream.head, _record)
        record = record or Record()
        record.output = Raw(b"[" + b",".join(stream.items) + b"]")
        record.status = "cut off"
        yield from self._record(stream.place, stream.head, record, stream.records)

    def _record(self, place: str, raw: bytes, record: Record, records: int) -> Iterator[Run | Reject]:
        """A response or a request with it."""
        request, response = record, record
        try:
            for part in (record.request, record.body):
                if bytes(part)[:1] == b"{":
                    request = _record(part)
            if bytes(request.body)[:1] == b"{" and request is not record:
                request = _record(request.body)
            if bytes(record.response)[:1] == b"{":
                response = _record(record.response)
                if bytes(response.body)[:1] == b"{":  # a line of a batch's output
                    response = _record(response.body)
            listed = record.items if bytes(record.items)[:1] == b"[" else request.input
            asked = _items(listed) if bytes(listed)[:1] == b"[" else []
            if bytes(listed)[:1] == b'"':
                asked = [Item(role="user", content=msgspec.json.decode(listed, type=str))]
            made = _items(response.output) if bytes(response.output)[:1] == b"[" else []
        except DECODE_ERRORS as error:
            reason = f"the record is not as this format has it: {error}"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw), records=records)
            return
        if not asked and not made and response.error is None:
            reason = "no items: neither input nor output of a response"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw), records=records)
            return
        thread, asked = self._thread(place, record, request, response, asked)
        thread.run.records += records
        self._describe(thread, record, request, response)
        for item in asked:
            thread.untold |= item.role == "assistant" or item.type in CALLS
            thread.items.add(item)
        if made:
            at = thread.assembly.time(response.completed_at or response.created_at or record.timestamp)
            thread.items.begin(response.id or place, usage_of(response.usage))
            for item in made:
                thread.items.add(item, at=at)
            thread.items.end()
        thread.marks += [found for found in map(mark, [*asked, *made]) if found is not None]
        self.histories.stands(thread, thread.marks)

    def _thread(
        self, place: str, record: Record, request: Record, response: Record, asked: list[Item]
    ) -> tuple[_Thread, list[Item]]:
        """The run that a response belongs to, and what of its input is new there."""
        conversation = request.conversation or response.conversation
        if isinstance(conversation, dict):
            conversation = conversation.get("id")
        shared = word(conversation) or word(record.conversation_id) or word(record.session_id)
        before = word(request.previous_response_id) or word(response.previous_response_id)
        thread = self.by_key.get(shared or "") or self.by_key.get(before or "")
        marks = [mark(item) for item in asked]
        told = [found for found in marks if found is not None]
        repeated = 0
        if thread is not None:
            if thread.marks and told[: len(thread.marks)] == thread.marks:
                repeated = len(thread.marks)
        elif shared is None and before is None and (found := self.histories.find(told)) is not None:
            thread, repeated = found
        if thread is None:
            thread = _Thread(place, repeats=True)
            thread.run.native_id = shared or word(response.id) or word(record.id)
            # Response and conversation ids are random and long.
            thread.run.native_id_is_global = (thread.run.native_id or "").startswith(("resp_", "conv_"))
            self.threads.append(thread)
        for key in (shared, word(response.id)):
            if key:
                self.by_key[key] = thread
        return thread, _after(asked, marks, repeated)

    def _describe(self, thread: _Thread, record: Record, request: Record, response: Record) -> None:
        run = thread.run
        run.model = run.model or word(response.model) or word(request.model)
        run.task_key = run.task_key or word(record.custom_id)
        instructions = request.instructions or response.instructions
        if isinstance(instructions, str) and not run.messages:
            thread.assembly.message("system", instructions)
        known = {tool.name for tool in run.tools}
        run.tools += [tool for tool in schemas(response.tools or request.tools) if tool.name not in known]
        for name in ("status", "error"):
            value = getattr(response, name)
            if value is not None:
                run.metadata[name] = value
        if isinstance(response.metadata, dict) and response.metadata:
            run.metadata["metadata"] = response.metadata
        thread.assembly.time(response.created_at)


def _after(items: list[Item], marks: list[Hashable], repeated: int) -> list[Item]:
    """The items after the first so many that bear a mark."""
    for index, found in enumerate(marks):
        if repeated == 0:
            return items[index:]
        repeated -= found is not None
    return []


def _newest_first(items: list[Item]) -> bool:
    """Whether results stand before their calls: the API lists the newest item first unless asked otherwise."""
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    for index, item in enumerate(items):
        if isinstance(item.call_id, str):
            places = results if str(item.type).endswith("_call_output") else calls
            places.setdefault(item.call_id, index)
    both = calls.keys() & results.keys()
    return sum(results[call_id] < calls[call_id] for call_id in both) * 2 > len(both)


def _is_item(head: Head) -> bool:
    kind = text(head.get("type"))
    if kind in TYPES:
        return True
    return kind in ("message", None) and {"role", "content"} <= head.keys() and "usage" not in head


def _may_be_item(head: Head) -> bool:
    """Whether a line among items is one of a type that is not known here."""
    kind = text(head.get("type"))
    return kind is not None and not kind.startswith("response.") and not head.keys() & {"output", "response", "input"}


def _cut(place: str, raw: bytes, offset: int, *, records: int = 1) -> Reject:
    return Reject(
        place=f"{place} +{offset}",
        reason="broken JSON: from here on nothing could be read",
        raw=jsonstream.excerpt(raw[offset:]) or None,
        records=records,
    )
