"""A run out of an Inspect sample.

The conversation is ``messages``. Events with the same message or call id add
times (``timestamp`` to ``completed``; older logs lack the end), tokens, and
results that a limit kept from the conversation. Calls and answers that stand
only in the events, as those of agents that a tool started, come after the
call during which they happened. Long texts are put apart as attachments and
resolved here.

``error`` of a tool message (older: ``tool_error``) says that a call failed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from poc.ingest.arguments import ABSENT, from_raw, from_value
from poc.ingest.readers.assembly import Assembly, number, word
from poc.ingest.readers.decoding import loads
from poc.ingest.readers.inspect_events import (
    Attachments,
    Call,
    ChatMessage,
    Event,
    Happening,
    Queues,
    Sample,
    happenings,
)
from poc.ingest.readers.inspect_facts import (
    asked_for,
    content_text,
    error_text,
    metadata_of,
    outcome_of,
    spent,
    tokens_of_call,
)
from poc.ingest.readers.nodes import schemas
from poc.ingest.times import seconds_between
from poc.trajectory import Message, Role, Run, ToolSchema

_ROLES: dict[str | None, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def build(sample: Sample, header: dict[str, Any], place: str) -> Run:
    """The run that a sample is; `header` is the log's ``eval`` and what stands beside it."""
    evaluated = header.get("eval")
    evaluated = evaluated if isinstance(evaluated, dict) else {}
    run = Run(place=place, framework="inspect_ai", trial=word(sample.epoch), task_key=word(sample.id))
    run.category = word(evaluated.get("task"))
    run.model = word(evaluated.get("model"))
    run.native_id = word(sample.uuid)
    run.native_id_is_global = run.native_id is not None
    if run.native_id is None:
        parts = (evaluated.get("run_id"), sample.id, sample.epoch)
        run.native_id = "/".join(str(part) for part in parts if part is not None) or None
    resolve = Attachments(sample.attachments)
    work = _Building(run, resolve, happenings(sample.events))
    if sample.started_at is not None or sample.completed_at is not None:
        run.started_at, run.ended_at = work.assembly.time(sample.started_at), work.assembly.time(sample.completed_at)
    run.duration_s = number(sample.total_time)
    run.task_text = asked_for(resolve(sample.input))
    run.usage, run.cost_usd = spent(sample)
    work.conversation(sample.messages)
    if run.duration_s is None:
        run.duration_s = seconds_between(run.started_at, run.ended_at)
    run.outcome = outcome_of(sample)
    run.metadata = metadata_of(sample, header, evaluated, resolve)
    return run


class _Building:
    """The messages with what the events add to them."""

    def __init__(self, run: Run, resolve: Attachments, events: list[Happening]) -> None:
        self.run = run
        self.assembly = Assembly(run)
        self.resolve = resolve
        self.events = events
        self.of_answer: dict[int, Happening] = {}
        self.of_call: dict[tuple[int, int], Happening] = {}
        self.beside: dict[tuple[int, int] | None, list[Happening]] = {}
        self.unanswered: dict[str | None, list[Happening]] = {}
        self.schemas: dict[str, ToolSchema] = {}
        self.described: set[bytes] = set()
        self.turn = 0

    def conversation(self, messages: list[ChatMessage]) -> None:
        """All messages, and in their places the events that stand in none of them."""
        self._match(messages)
        for position, message in enumerate(messages):
            if message.role == "assistant":
                self._answer(position, message)
            elif message.role == "tool":
                self._result(message)
            else:
                self.assembly.message(_ROLES.get(word(message.role), "other"), self._text(message.content))
        if None in self.beside:
            self._beside(None)
        for waiting in self.unanswered.values():
            for happening in waiting:
                self._came_back(happening)
        for happening in self.events:
            self._describe(happening.event)
        self.run.tools = list(self.schemas.values())
        self.assembly.finish()

    def _match(self, messages: list[ChatMessage]) -> None:
        """Which event belongs to which answer and call, and after which call the others happened."""
        answers, calls = Queues(), Queues()
        for happening in self.events:
            if happening.event.event == "tool":
                calls.add(word(happening.event.id), happening)
            elif happening.said is not None:
                answers.add(self._key(happening.said), happening)
        used: dict[int, tuple[int, int]] = {}
        for position, message in enumerate(messages):
            if message.role != "assistant":
                continue
            if message.source != "input" and (found := answers.take(self._key(message))):
                self.of_answer[position] = found
                used[found.position] = (position, -1)
            for ordinal, call in enumerate(message.tool_calls or ()):
                if found := calls.take(word(call.id)):
                    self.of_call[position, ordinal] = found
                    used[found.position] = (position, ordinal)
        after: tuple[int, int] | None = None
        for happening in self.events:
            if happening.position in used:
                after = used[happening.position]
            else:
                self.beside.setdefault(after, []).append(happening)

    def _key(self, message: ChatMessage) -> Any:
        if ident := word(message.id):
            return ident
        return self._text(message.content) or "", tuple(word(call.id) for call in message.tool_calls or ())

    def _answer(self, position: int, message: ChatMessage) -> None:
        if None in self.beside:
            self._beside(None)
        made = self._say(message, self.of_answer.get(position))
        turn = self._next_turn()
        for ordinal, call in enumerate(message.tool_calls or ()):
            self._call(call, made, turn, self.of_call.get((position, ordinal)))
        for ordinal in range(-1, len(message.tool_calls or ())):
            self._beside((position, ordinal))

    def _say(self, message: ChatMessage, happening: Happening | None) -> Message:
        at, usage = None, None
        if happening is not None and happening.output is not None:
            at = self._end(happening)
            usage = tokens_of_call(happening.output.usage)
            self.run.model = self.run.model or word(happening.output.model)
        name = happening.agent if happening is not None and happening.depth else None
        made = self.assembly.message("assistant", self._text(message.content), name=name, at=at, usage=usage)
        for block in message.content if isinstance(message.content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_use":
                self._at_the_provider(block, made, at)
        return made

    def _at_the_provider(self, block: dict[str, Any], made: Message, at: datetime | None) -> None:
        """A call that the provider ran itself: it stands in the answer with its result."""
        asked = self.resolve(block.get("arguments"))
        call_id, name = word(block.get("id")), block.get("name") or block.get("tool_type")
        self.assembly.call(name, from_value(asked), turn=self._next_turn(), call_id=call_id, message=made, at=at)
        if block.get("result") is not None or block.get("error") is not None:
            result = self._text(block.get("result"))
            self.assembly.result(result, call_id=call_id, name=word(name), at=at, error=block.get("error"))

    def _call(self, call: Call, made: Message | None, turn: int, happening: Happening | None) -> None:
        call_id = word(call.id)
        raw = call.arguments
        if happening is not None:
            self.unanswered.setdefault(call_id, []).append(happening)
            raw = raw or happening.event.arguments
        nested = happening is not None and happening.depth > 0
        self.assembly.call(
            call.function,
            from_raw(self.resolve.raw(raw)) if raw else ABSENT,
            turn=turn,
            call_id=call_id,
            message=made,
            at=None if happening is None else self.assembly.time(happening.event.timestamp),
            caller="subagent" if nested else "agent",
        )

    def _result(self, message: ChatMessage) -> None:
        call_id = word(message.tool_call_id)
        waiting = self.unanswered.get(call_id)
        event = waiting.pop(0).event if waiting else None
        error = error_text(message.error) or error_text(message.tool_error)
        if error is None and event is not None:
            error = error_text(event.error)
        self.assembly.result(
            # The model reads the error where the content says nothing.
            self._text(message.content) or error or "",
            call_id=call_id,
            name=word(message.function),
            at=None if event is None else self.assembly.time(event.completed),
            failed=True if event is not None and event.failed is True else None,
            error=error,
        )

    def _came_back(self, happening: Happening) -> None:
        """A result that only the event holds: a limit ended the conversation before it was told."""
        event = happening.event
        error = error_text(event.error)
        came = event.completed is not None or event.result not in (None, "") or error is not None
        if event.pending is True or not came:
            return
        self.assembly.result(
            self._text(event.result) or error or "",
            call_id=word(event.id),
            name=word(event.function),
            at=self.assembly.time(event.completed),
            failed=True if event.failed is True else None,
            error=error,
        )

    def _beside(self, after: tuple[int, int] | None) -> None:
        """What happened after a call, or before any, and stands in no message."""
        shown: dict[str | None, tuple[Message, int]] = {}
        for happening in self.beside.pop(after, ()):
            if happening.said is not None:
                made = self._say(happening.said, happening)
                turn = self._next_turn()
                shown.update({word(call.id): (made, turn) for call in happening.said.tool_calls or ()})
                continue
            event = happening.event
            made, turn = shown.get(word(event.id)) or (None, self._next_turn())
            self._call(Call(event.id, event.function), made, turn, happening)
            self.unanswered[word(event.id)].remove(happening)
            self._came_back(happening)

    def _end(self, happening: Happening) -> datetime | None:
        event, output = happening.event, happening.output
        started, ended = self.assembly.time(event.timestamp), self.assembly.time(event.completed)
        took = None if output is None else number(output.time)
        if ended is None and started is not None and took is not None and took < 1e7:
            ended = started + timedelta(seconds=took)
        return ended

    def _next_turn(self) -> int:
        self.turn += 1
        return self.turn

    def _text(self, content: Any) -> str | None:
        return content_text(self.resolve(content))

    def _describe(self, event: Event) -> None:
        raw = bytes(event.tools)
        if raw and raw not in self.described:
            self.described.add(raw)
            for tool in schemas(self.resolve(loads(raw))):
                self.schemas.setdefault(tool.name, tool)
