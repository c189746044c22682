"""Vercel AI SDK: messages as apps store them, stream chunks, and telemetry spans.

UI messages of version 5 and later: ``parts[] {type "tool-<name>" or
"dynamic-tool", toolCallId, state, input, output, errorText}`` (states
input-streaming, input-available, approval-requested, output-available,
output-error, output-denied); of version 4: ``toolInvocations[] {toolCallId,
toolName, args, result, state}``, also as parts. Core (model) messages:
``content[] {type "tool-call" | "tool-result"}``. Held in a list (one run), in
an object with ``messages``, one such object a line, or one message a line.
Chunks of a stream (``tool-input-available``, ``tool-output-available``, ...)
make one run. Parts between two ``step-start`` are one turn.

Telemetry: ``ai.*`` spans in the containers of OpenTelemetry, read as in
`otel_genai`: ``ai.toolCall`` are the tools, ``ai.*.doGenerate`` and
``ai.*.doStream`` the model calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.arguments import ABSENT, from_value
from poc.ingest.readers.assembly import Assembly, word
from poc.ingest.readers.by_trace import trace_keys
from poc.ingest.readers.decoding import Head, elements, glimpse, members, text
from poc.ingest.readers.nodes import called_with, tokens_of
from poc.ingest.readers.otel_genai import run_of
from poc.ingest.readers.records import Record, records
from poc.ingest.readers.said import Said, messages
from poc.ingest.readers.span_files import first_span, traces
from poc.ingest.sources import Source
from poc.trajectory import Reject, Role, Run

NAME = "vercel_ai_sdk"
VERSION = 1

_SPAN_MARKS = (b'"ai.operationId"', b'"ai.toolCall.', b'"ai.telemetry.')
_UI_PARTS = frozenset({"step-start", "reasoning", "source-url", "source-document", "tool-invocation", "dynamic-tool"})
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
    "data": "other",
}
_OPEN = ("input-streaming", "input-available", "approval-requested", "approval-responded", "partial-call", "call")
_DROPPED = ("parts", "messages", "content", "toolInvocations")


def sniff(sample: bytes, name: str) -> float:
    """By the parts of a first message, the type of a first chunk, or the attributes of telemetry."""
    if any(mark in sample for mark in _SPAN_MARKS) and first_span(sample):
        return 0.97
    look = glimpse(sample)
    heads = look.heads[:12]
    if heads and sum(_is_chunk(head) for head in heads) * 2 > len(heads):
        return 0.95
    listed = [elements(head.get("messages", b"").strip()) for head in heads]
    listed += [elements(record) for record in look.records[:3]]  # a list of chats, each a list
    inside = [members(part) for parts in listed for part in parts[:12]]
    return max((_likeness(message) for message in (*heads, *inside)), default=0.0)


def _likeness(message: Head) -> float:
    if "role" not in message:
        return 0.0
    if "toolInvocations" in message:
        return 0.95
    for part in map(members, elements(message.get("parts", b"").strip())[:12]):
        kind = text(part.get("type")) or ""
        if kind in _UI_PARTS or (kind.startswith("tool-") and "toolCallId" in part) or kind.startswith("data-"):
            return 0.95
        if kind == "text" and "text" in part and "id" in message:
            return 0.92
    for part in map(members, elements(message.get("content", b"").strip())[:12]):
        if text(part.get("type")) in ("tool-call", "tool-result") and "toolCallId" in part:
            return 0.95
    return 0.0


def _is_chunk(head: Head) -> bool:
    kind = text(head.get("type")) or ""
    return kind.startswith(
        ("tool-input-", "tool-output-", "text-delta", "text-start", "start-step", "finish-step")
    ) or (kind in ("start", "finish", "text-end") and "role" not in head and len(head) < 6)


def keys(source: Source) -> set[str]:
    """The traces of a file of spans: other files may hold more of them."""
    return trace_keys(source) if first_span(source.sample) else set()


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace, chat or stream."""
    if first_span(source.sample):
        yield from traces(source, run_of)
        return
    loose: list[Record] = []
    for record in records(source):
        if isinstance(record, Reject):
            yield record
        elif isinstance(record.value, list):
            yield from _list(record)
        elif isinstance(record.value, dict) and ("role" in record.value or _is_chunk_value(record.value)):
            loose.append(record)
        else:
            yield from _chat(record, record.value)
    if loose:
        yield from _run(loose[0], [record.value for record in loose], {}, records=len(loose))


def _list(record: Record) -> Iterator[Run | Reject]:
    """A list of messages is one run; a list of chats, or of lists, is many."""
    value: list[Any] = record.value
    if any(isinstance(item, dict) and ("role" in item or _is_chunk_value(item)) for item in value):
        yield from _run(record, value, {})
        return
    for index, item in enumerate(value):
        place = f"{record.place} [{index}]"
        inner = Record(place, item, msgspec.json.encode(item))
        if isinstance(item, list):
            yield from _run(inner, item, {})
        else:
            yield from _chat(inner, item)
    if not value:
        yield record.reject("an empty list: no messages")


def _chat(record: Record, value: Any) -> Iterator[Run | Reject]:
    listed = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        yield record.reject("no messages of the AI SDK here")
        return
    yield from _run(record, listed, value)


def _is_chunk_value(value: dict[str, Any]) -> bool:
    return "role" not in value and isinstance(value.get("type"), str) and "messages" not in value


def _run(record: Record, listed: list[Any], around: dict[str, Any], *, records: int = 1) -> Iterator[Run | Reject]:
    run = Run(place=record.place, framework="vercel_ai_sdk", records=records)
    run.native_id = word(around.get("id")) or word(around.get("chatId"))
    chat = _Chat(run)
    used = 0
    for index, item in enumerate(listed):
        if isinstance(item, dict) and isinstance(item.get("role"), str):
            chat.message(item)
            used += 1
        elif isinstance(item, dict) and isinstance(item.get("type"), str):
            chat.chunk(item)
            used += 1
        else:
            reason = "an entry that is no message; the run is kept without it"
            raw = jsonstream.excerpt(msgspec.json.encode(item))
            yield Reject(place=f"{record.place} [{index}]", reason=reason, raw=raw, records=0)
    if not used:
        yield record.reject("no messages of the AI SDK here", records=records)
        return
    run.model = word(around.get("model")) or chat.model
    for key in ("createdAt", "created_at", "updatedAt"):
        chat.assembly.time(around.get(key))
    run.metadata = {key: item for key, item in around.items() if key not in _DROPPED and item is not None}
    yield chat.assembly.finish()


class _Chat:
    """One run in the making."""

    def __init__(self, run: Run) -> None:
        self.assembly = Assembly(run)
        self.model: str | None = None
        self._turn = 0
        self._texts: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._called: set[str] = set()

    def message(self, item: dict[str, Any]) -> None:
        role = _ROLES.get(item["role"], "other")
        about = item.get("metadata")
        about = about if isinstance(about, dict) else {}
        self.model = self.model or word(about.get("model")) or word(about.get("modelId"))
        at = self.assembly.time(item.get("createdAt") or about.get("createdAt"))
        usage = tokens_of(about.get("usage") or about.get("totalUsage") or item.get("usage"))
        parts = item.get("parts")
        content = item.get("content")
        self._turn += 1
        if isinstance(parts, list):
            self._parts(role, parts, at, usage)
        elif isinstance(item.get("toolInvocations"), list):
            told = self.assembly.message(role, content if isinstance(content, str) else None, at=at, usage=usage)
            for call in item["toolInvocations"]:
                if isinstance(call, dict):
                    self._invoked(call, told, word(call.get("toolName")))
        else:
            for said in messages({"role": item["role"], "content": content}):
                self._said(said, at, usage)

    def _said(self, said: Said, at: Any, usage: Any) -> None:
        if said.role == "tool":
            self.assembly.result(said.content, call_id=said.call_id, name=said.name, at=at, failed=said.failed)
            return
        told = self.assembly.message(said.role, said.content, name=said.name, at=at, usage=usage)
        for call in said.calls:
            self.assembly.call(
                call.name, called_with(call.arguments), turn=self._turn, call_id=call.call_id, message=told, at=at
            )

    def _parts(self, role: Role, parts: list[Any], at: Any, usage: Any) -> None:
        """A UI message holds all steps of an answer: a message of ours for each stretch between steps."""
        told = None
        for part in parts:
            if not isinstance(part, dict):
                continue
            kind = str(part.get("type"))
            if kind == "step-start":
                told = None
                self._turn += 1
            elif kind == "text":
                if told is None:
                    told = self.assembly.message(role, None, at=at, usage=usage)
                    usage = None
                told.content = f"{told.content}\n{part.get('text')}" if told.content else part.get("text")
            elif kind == "tool-invocation" or kind == "dynamic-tool" or kind.startswith("tool-"):
                if told is None:
                    told = self.assembly.message(role, None, at=at, usage=usage)
                    usage = None
                inner = part.get("toolInvocation")
                call = inner if isinstance(inner, dict) else part
                name = word(call.get("toolName")) or kind.removeprefix("tool-")
                self._invoked(call, told, name)
            elif kind == "file" or (kind in ("source-url", "source-document") and told is None):
                if told is None:
                    told = self.assembly.message(role, None, at=at, usage=usage)
                    usage = None
                told.content = f"{told.content}\n[{kind}]" if told.content else f"[{kind}]"
        if not any(isinstance(part, dict) for part in parts):
            self.assembly.message(role, None, at=at, usage=usage)

    def _invoked(self, call: dict[str, Any], told: Any, name: str | None) -> None:
        """A call and, if it has come, its result in one object."""
        given = next((call[key] for key in ("input", "args", "rawInput") if call.get(key) is not None), None)
        arguments = ABSENT if given is None else from_value(given)
        state, call_id = str(call.get("state")), word(call.get("toolCallId"))
        self.assembly.call(name, arguments, turn=self._turn, call_id=call_id, message=told, at=told.sent_at)
        error = word(call.get("errorText"))
        result = next((call[key] for key in ("output", "result") if call.get(key) is not None), None)
        if state == "output-error" or error is not None:
            self.assembly.result(error, call_id=call_id, name=name, failed=True, has_result=error is not None)
        elif state == "output-denied":
            self.assembly.result(None, call_id=call_id, name=name, failed=True, has_result=False)
        elif state in ("output-available", "result") or (result is not None and state not in _OPEN):
            self.assembly.result(_plain(result), call_id=call_id, name=name)

    def chunk(self, item: dict[str, Any]) -> None:
        """One chunk of a stream."""
        kind, call_id = item["type"], word(item.get("toolCallId"))
        if kind == "start-step":
            self._turn += 1
            self._texts.clear()
        elif kind in ("text-start", "text-delta"):
            key = str(item.get("id"))
            if key not in self._texts:
                self._texts[key] = self.assembly.message("assistant", None)
            told = self._texts[key]
            delta = item.get("delta", item.get("text"))
            if isinstance(delta, str):
                told.content = (told.content or "") + delta
        elif kind == "tool-input-start" and call_id is not None:
            self._names[call_id] = str(item.get("toolName"))
        elif kind in ("tool-input-available", "tool-input-error", "tool-call"):
            name = word(item.get("toolName")) or self._names.get(call_id or "")
            given = item.get("input", item.get("args"))
            arguments = ABSENT if given is None else from_value(given)
            self._called.add(call_id or "")
            self.assembly.call(name, arguments, turn=self._turn, call_id=call_id)
            if kind == "tool-input-error":
                error = word(item.get("errorText"))
                self.assembly.result(error, call_id=call_id, failed=True, has_result=error is not None)
        elif kind in ("tool-output-available", "tool-result"):
            if not item.get("preliminary"):
                self.assembly.result(_plain(item.get("output", item.get("result"))), call_id=call_id)
        elif kind == "tool-output-error":
            self.assembly.result(word(item.get("errorText")), call_id=call_id, failed=True)
        elif kind == "tool-output-denied":
            self.assembly.result(None, call_id=call_id, failed=True, has_result=False)


def _plain(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else jsonstream.compact(value)
