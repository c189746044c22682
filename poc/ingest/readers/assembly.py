"""A run put together from what a log says, in its order: messages, calls, results, times and tokens.

For formats whose calls and results stand apart. Pairs them, numbers turns,
judges each result, and draws from the parts what a run says as a whole where
the log has not said it. Knows no format.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from poc.ingest.arguments import Arguments
from poc.ingest.evidence import judge
from poc.ingest.pairing import Pairing
from poc.ingest.readers.chat_messages import UNNAMED
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Caller, Message, Role, Run, Step, Usage

_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")


class _Answer(msgspec.Struct, gc=False):
    """What came back from a call, before it is known which call."""

    message: Message
    failed: bool | None
    exit_code: Any
    error: Any
    duration_s: float | None
    started_at: datetime | None
    has_result: bool


class Assembly:
    """Feed it in the order of the log, then call `finish`. `run` is filled as it goes."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._pairing = Pairing()
        self._answers: dict[int, _Answer] = {}
        self._turns: dict[Hashable, int] = {}
        self._made: dict[int, int] = {}
        self._native: list[tuple[Step, str | None]] = []
        self._zones: set[bool] = set()
        self._earliest: datetime | None = None
        self._latest: datetime | None = None

    def time(self, value: Any) -> datetime | None:
        """The time that `value` means; it counts for the run's start, end and zone flag."""
        if value is None:
            return None
        time, zone = parse_time(value)
        if time is not None and zone is not None:
            self._zones.add(zone)
            if self._earliest is None or time < self._earliest:
                self._earliest = time
            if self._latest is None or time > self._latest:
                self._latest = time
        return time

    def message(
        self,
        role: Role,
        content: str | None,
        *,
        name: str | None = None,
        at: datetime | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
    ) -> Message:
        """A message comes next."""
        message = Message(
            seq=len(self.run.messages),
            role=role,
            content=content,
            name=name,
            sent_at=at,
            usage=usage,
            cost_usd=cost_usd,
        )
        self.run.messages.append(message)
        return message

    def call(
        self,
        tool: Any,
        arguments: Arguments,
        *,
        turn: Hashable,
        call_id: str | None = None,
        message: Message | None = None,
        at: datetime | None = None,
        caller: Caller = "agent",
        execution_id: str | None = None,
        key: str | None = None,
    ) -> Step:
        """A call was made. Calls of one `turn` are parallel; any value names a turn.

        key: what the result will name as its ``call_id``, where that is not the call's own id.
        """
        number = self._turns.setdefault(turn, len(self._turns))
        ordinal = self._made.get(number, 0)
        self._made[number] = ordinal + 1
        step = Step(
            index=len(self.run.steps),
            turn=number,
            ordinal=ordinal,
            tool=tool if isinstance(tool, str) and tool else UNNAMED,
            call_id=key or call_id,
            arguments_raw=arguments[0],
            arguments_json=arguments[1],
            arguments_status=arguments[2],
            started_at=at,
            caller=caller,
            execution_id=execution_id,
            message_seq=None if message is None else message.seq,
        )
        self.run.steps.append(step)
        if key is not None:
            self._native.append((step, call_id))
        self._pairing.call(step)
        return step

    def result(
        self,
        text: str | None,
        *,
        call_id: str | None = None,
        name: str | None = None,
        at: datetime | None = None,
        started_at: datetime | None = None,
        failed: bool | None = None,
        exit_code: Any = None,
        error: Any = None,
        duration_s: float | None = None,
        has_result: bool = True,
    ) -> Message:
        """A result came: its text stays with the message until the call that it answers is known.

        failed, exit_code, error: evidence of how the call went, as for `judge`.
        has_result: False when only the evidence came and no answer.
        """
        message = self.message("tool", text, name=name, at=at)
        answer = _Answer(message, failed, exit_code, error, duration_s, started_at, has_result)
        self._answers[message.seq] = answer
        self._pairing.result(message.seq, call_id, name)
        return message

    def finish(self) -> Run:
        """Nothing more comes: pair, judge, and conclude."""
        self._pairing.finish()
        for step, seq in self._pairing.pairs:
            self._answer(step, self._answers[seq])
        for step, native in self._native:
            step.call_id = native
        run = self.run
        if run.task_text is None:
            run.task_text = next((m.content for m in run.messages if m.role == "user" and m.content), None)
        run.started_at = run.started_at or self._earliest
        run.ended_at = run.ended_at or self._latest
        if run.zone_in_log is None and self._zones:
            run.zone_in_log = False not in self._zones
        if run.duration_s is None:
            run.duration_s = seconds_between(run.started_at, run.ended_at)
        if run.usage is None:
            run.usage = total(m.usage for m in run.messages if m.role == "assistant" and m.usage is not None)
        if run.native_id is not None and not run.native_id_is_global:
            run.native_id_is_global = is_uuid(run.native_id)
        return run

    def _answer(self, step: Step, answer: _Answer) -> None:
        message = answer.message
        if answer.has_result:
            step.result, message.content = message.content, None
        step.status, step.status_evidence = judge(
            has_result=answer.has_result,
            text=step.result,
            failed=answer.failed,
            exit_code=answer.exit_code,
            error=answer.error,
        )
        step.result_seq = message.seq
        step.ended_at = message.sent_at
        step.started_at = answer.started_at or step.started_at
        step.duration_s = answer.duration_s
        if step.duration_s is None:
            step.duration_s = seconds_between(step.started_at, step.ended_at)


def total(parts: Iterable[Usage]) -> Usage | None:
    """The sum of usages; a figure that is missing in one of them is unknown for all. None without any."""
    listed = list(parts)
    if not listed:
        return None

    def add(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return Usage(
        input_tokens=add([part.input_tokens for part in listed]),
        output_tokens=add([part.output_tokens for part in listed]),
        cached_tokens=add([part.cached_tokens for part in listed]),
        reasoning_tokens=add([part.reasoning_tokens for part in listed]),
    )


def anthropic_usage(usage: Any) -> Usage | None:
    """Tokens as Anthropic reports them: its input leaves out what was read from or written to the cache."""
    if not isinstance(usage, dict):
        return None
    fresh = count(usage.get("input_tokens"))
    read, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    details = usage.get("output_tokens_details")
    found = Usage(
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        output_tokens=count(usage.get("output_tokens")),
        cached_tokens=read,
        reasoning_tokens=count(details.get("reasoning_tokens")) if isinstance(details, dict) else None,
    )
    return found if found != Usage() else None


def count(value: Any) -> int | None:
    """A number of tokens; None for what is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def number(value: Any) -> float | None:
    """A number that is not negative (seconds, dollars); None for what is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def word(value: Any) -> str | None:
    """A name or id as text: numbers are ids too, an empty string is none."""
    if value is None:
        return None
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def is_uuid(value: str | None) -> bool:
    """Whether an id is one that no other run in the world has."""
    return value is not None and len(value) >= 32 and _UUID.fullmatch(value) is not None


def plain(value: Any) -> str | None:
    """A result or content as text: a string as it is, None as None, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def blocks_text(content: Any) -> str | None:
    """The text of a content that is a string or a list of blocks; blocks without text stay as JSON."""
    if not isinstance(content, list):
        return plain(content)
    parts: list[str] = []
    for block in content:
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            parts.append(block["text"])
        elif isinstance(block, dict) and block.get("type") in ("image", "input_image", "image_url"):
            parts.append("[image]")
        else:
            parts.append(plain(block) or "")
    return "\n".join(parts)
