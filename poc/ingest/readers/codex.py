"""Codex CLI rollouts (``rollout-*.jsonl``), one session a file.

Lines are ``{timestamp, type, payload}``; the first is ``session_meta``. A call
is a ``response_item`` of type ``function_call`` or ``custom_tool_call`` (raw
text input, as for patches), its result the ``*_output`` with the same
``call_id``. Outputs of commands say how they went: a JSON string with
``metadata.exit_code`` and ``duration_seconds`` (to about 0.65), later plain
text ``Exit code: N`` / ``Wall time: ..``. Call and output lines often share a
time, so a duration comes from there only. ``turn_context`` names the model.
Tokens come in ``event_msg/token_count``, cumulative. ``event_msg`` copies of
messages are not counted; ``user_message`` is the task without the environment
text around it. Old rollouts begin with a bare ``{id, timestamp,
instructions}``, then bare items and ``record_type`` lines without times.
There is no outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest import jsonstream
from poc.ingest.readers.assembly import Assembly, count, word
from poc.ingest.readers.decoding import decode, glimpse, text
from poc.ingest.readers.responses_items import TYPES, Items, decode_item
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage

NAME = "codex"
VERSION = 1

_KINDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_EXIT = re.compile(r"(?:\A|\n)(?:Process exited with code|Exit code:) ?(-?\d+)")
_WALL = re.compile(r"(?:\A|\n)Wall time: ([\d.]+) ?s")
_CONTEXT = re.compile(r"\s*(?:<environment_context>|<user_instructions>|# AGENTS\.md)")


class Line(msgspec.Struct, gc=False):
    """One line of either layout."""

    timestamp: Any = None
    type: Any = None
    payload: Raw = Raw(b"")
    id: Any = None
    instructions: Any = None
    record_type: Any = None
    git: Any = None


class Event(msgspec.Struct, gc=False):
    """The payload of an ``event_msg``, ``turn_context`` or ``session_meta`` line."""

    type: Any = None
    message: Any = None
    info: Any = None
    reason: Any = None
    id: Any = None
    cwd: Any = None
    git: Any = None
    cli_version: Any = None
    model: Any = None
    effort: Any = None
    source: Any = None


class _Outcome(msgspec.Struct, gc=False):
    """The JSON string that older versions write as a command's output."""

    output: Any = None
    metadata: Any = None


_line = msgspec.json.Decoder(Line).decode
_event = msgspec.json.Decoder(Event).decode
_wrapped = msgspec.json.Decoder(_Outcome).decode


def sniff(sample: bytes, name: str) -> float:
    """How sure this is a rollout, 0..1."""
    heads = glimpse(sample).heads
    if not heads:
        return 0.0
    if any("payload" in head and text(head.get("type")) in _KINDS for head in heads):
        return 0.97
    first = heads[0]
    old = {"id", "timestamp"} <= first.keys() and "instructions" in first and "type" not in first
    return 0.95 if old and (len(heads) == 1 or any(_old(head) for head in heads[1:])) else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """The session, with broken lines as rejects."""
    session = _Session()
    for value in jsonstream.values(source):
        line, reject = decode(value.place, value.raw, _line)
        if reject is not None:
            yield reject
        if line is not None:
            reject = session.line(value, line)
            if reject is not None:
                yield reject
    if session.run.records:
        yield session.finish()


class _Session:
    """What is gathered while the lines go by."""

    def __init__(self) -> None:
        self.run = Run(place="", records=0, framework="codex")
        self.assembly = Assembly(self.run)
        self.items = Items(self.assembly)
        self.models: list[str] = []
        self.totals: Any = None
        self.timed: set[int] = set()
        self.started = False
        self.asked = False

    def line(self, value: jsonstream.Value, line: Line) -> Reject | None:
        """One line; unknown types are passed over but count as read."""
        at = self.assembly.time(line.timestamp)
        raw, kind = bytes(line.payload), line.type
        if raw[:1] == b"{" and isinstance(kind, str) and kind in _KINDS:
            decoder = decode_item if kind == "response_item" else _event
            payload, reject = decode(value.place, raw, decoder)
            if payload is None:
                return reject
            if kind == "response_item":
                self._item(payload, at)
            elif isinstance(payload, Event):
                self._event(kind, payload)
        elif kind is None and line.record_type is None and line.id is not None and not self.started:
            self.run.native_id = word(line.id)
            if isinstance(line.git, dict):
                self.run.metadata["git"] = line.git
        elif not raw and line.record_type is None:
            item, reject = decode(value.place, value.raw, decode_item)
            if item is None:
                return reject
            self._item(item, None)
        self.started = True
        self.run.place = self.run.place or value.place
        self.run.records += 1
        return None

    def finish(self) -> Run:
        """The run, with the tokens of its last count."""
        self.items.finish()
        if isinstance(self.totals, dict):
            self.run.usage = _usage(self.totals)
        if self.models:
            self.run.model = self.models[0]
            if len(set(self.models)) > 1:
                self.run.metadata["models"] = list(dict.fromkeys(self.models))
        self.assembly.finish()
        for step in self.run.steps:
            if step.result_seq not in self.timed and step.started_at == step.ended_at:
                step.duration_s = None  # both lines were written at once: how long it took is not known
        return self.run

    def _item(self, item: Any, at: datetime | None) -> None:
        exit_code: Any = None
        duration: float | None = None
        if isinstance(item.type, str) and item.type.endswith("_call_output"):
            item.output, exit_code, duration = _outcome(item.output)
        if self.run.task_text is None and item.role == "user" and isinstance(item.content, list):
            said = next((part.get("text") for part in item.content if isinstance(part, dict)), None)
            if isinstance(said, str) and not _CONTEXT.match(said):
                self.run.task_text = said
        self.items.add(item, at=at, exit_code=exit_code, duration_s=duration)
        if duration is not None:
            self.timed.add(len(self.run.messages) - 1)

    def _event(self, kind: str, event: Event) -> None:
        run = self.run
        if kind == "session_meta":
            run.native_id = run.native_id or word(event.id)
            for name in ("cli_version", "cwd", "git", "source"):
                value = getattr(event, name)
                if value is not None:
                    run.metadata[name] = value
        elif kind == "turn_context":
            if isinstance(event.model, str):
                self.models.append(event.model)
            if event.effort is not None:
                run.metadata["effort"] = event.effort
        elif event.type == "token_count" and isinstance(event.info, dict):
            # Which response a count belongs to cannot be told: it comes before or after the response's items.
            self.totals = event.info.get("total_token_usage", self.totals)
        elif event.type == "turn_aborted":
            run.metadata["ended_by"] = f"turn_aborted: {word(event.reason) or 'no reason given'}"
        elif event.type == "task_complete":
            run.metadata["ended_by"] = "task_complete"
        elif event.type == "user_message" and isinstance(event.message, str) and event.message and not self.asked:
            # The same text without the environment around it.
            self.asked = True
            run.task_text = event.message


def _usage(counts: dict[str, Any]) -> Usage | None:
    found = Usage(
        input_tokens=count(counts.get("input_tokens")),
        output_tokens=count(counts.get("output_tokens")),
        cached_tokens=count(counts.get("cached_input_tokens")),
        reasoning_tokens=count(counts.get("reasoning_output_tokens")),
    )
    return found if found != Usage() else None


def _outcome(output: Any) -> tuple[Any, Any, float | None]:
    """The output of a call, its exit code and its seconds, in whichever way this version writes them."""
    if isinstance(output, dict):  # newer still: {content, success}
        flag = output.get("success")
        return output.get("content", output), (None if not isinstance(flag, bool) else int(not flag)), None
    if not isinstance(output, str):
        return output, None, None
    if output[:10].lstrip()[:1] == "{":
        try:
            wrapped = _wrapped(output)
        except (msgspec.DecodeError, RecursionError):
            return output, None, None
        if isinstance(wrapped.output, str) and isinstance(wrapped.metadata, dict):
            seconds = wrapped.metadata.get("duration_seconds")
            duration = float(seconds) if isinstance(seconds, int | float) and not isinstance(seconds, bool) else None
            return wrapped.output, wrapped.metadata.get("exit_code"), duration
        return output, None, None
    head = output[:400]
    code, wall = _EXIT.search(head), _WALL.search(head)
    return output, (int(code[1]) if code and wall else None), (float(wall[1]) if wall else None)


def _old(head: dict[str, bytes]) -> bool:
    return "record_type" in head or text(head.get("type")) in {"message", *TYPES}
