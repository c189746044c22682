"""The vocabulary: a run, its messages and its steps, as plain typed records.

Readers make these, the ingest pipeline stores them, trackers and replays read
them back. `None` always means *not in the log*; it is never replaced by 0 or
an empty string. This module knows no format, no table and no score.

Records are `msgspec.Struct`: as cheap as tuples, typed, and encodable. Those that
hold only plain values are left out of garbage collection (``gc=False``): they can
make no cycle, and a log has millions of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool", "other"]
Status = Literal["ok", "error", "no_result"]
Caller = Literal["agent", "user", "subagent"]
ParseStatus = Literal["parsed", "repaired", "unparsed", "absent"]
EffectClass = Literal["read", "write", "irreversible"]
Evidence = Literal["flag", "exit_code", "error_field", "text_rule", "result", "none"]


class Usage(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """Tokens as the API reported them. Cached and reasoning tokens are parts of the totals."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total(self) -> int | None:
        """Input plus output; None when either is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


class Message(msgspec.Struct, kw_only=True, gc=False):
    """One message. `content` of a tool message is None when a step's `result` holds it."""

    seq: int
    role: Role
    content: str | None = None
    name: str | None = None
    usage: Usage | None = None
    sent_at: datetime | None = None
    cost_usd: float | None = None


class Step(msgspec.Struct, kw_only=True, gc=False):
    """One tool call with its result.

    `index` counts the steps of a run from 0, `turn` the model responses that
    made calls from 0, `ordinal` the calls inside one turn from 0. Durations
    are in seconds. `message_seq` is the assistant message that made the call,
    `result_seq` the message that brought the result.
    """

    index: int
    turn: int
    tool: str
    ordinal: int = 0
    call_id: str | None = None
    arguments_raw: str | None = None
    arguments_json: str | None = None
    arguments_status: ParseStatus = "absent"
    result: str | None = None
    status: Status = "no_result"
    status_evidence: Evidence = "none"
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_s: float | None = None
    execution_id: str | None = None
    caller: Caller = "agent"
    message_seq: int | None = None
    result_seq: int | None = None


class Outcome(msgspec.Struct, kw_only=True, frozen=True, gc=False):
    """Whether a run really succeeded: 0..1, and who says so (never progress)."""

    value: float
    provenance: str
    detail: str | None = None


class ToolSchema(msgspec.Struct, kw_only=True):
    """A tool as the model sees it. `origin`: logged, given or inferred."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    origin: Literal["logged", "given", "inferred"] = "logged"
    effect: EffectClass | None = None
    effect_is_guess: bool = False


class ReferenceCall(msgspec.Struct, kw_only=True, gc=False):
    """One call of the log's own reference solution, where it carries one."""

    tool: str
    arguments_json: str | None = None


class TaskReference(msgspec.Struct, kw_only=True):
    """A task with the calls that its author expects, from a file that holds no run of it.

    It counts no record: a reader says by a `Reject` why the record is no run.
    """

    task_key: str | None = None
    task_text: str | None = None
    category: str | None = None
    scenario: str | None = None
    reference: list[ReferenceCall] | None = None


class Run(msgspec.Struct, kw_only=True):
    """One attempt of an agent at one task, as logged.

    `native_id` is the log's own id; `native_id_is_global` says that the id is
    unique in the world (a UUID), not just inside its file. `records` counts
    the source records that this run stands for (1 for a chat, n for a table).
    `zone_in_log` is False when times carried no zone (they are then stored as
    if UTC), None when there were no times. `place` says where the run was read.
    `shares` are the records by file, where several files were read together.
    """

    place: str
    native_id: str | None = None
    native_id_is_global: bool = False
    records: int = 1
    task_key: str | None = None
    trial: str | None = None
    task_text: str | None = None
    category: str | None = None
    scenario: str | None = None
    framework: str | None = None
    model: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_s: float | None = None
    zone_in_log: bool | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    outcome: Outcome | None = None
    messages: list[Message] = []
    steps: list[Step] = []
    tools: list[ToolSchema] = []
    reference: list[ReferenceCall] | None = None
    metadata: dict[str, Any] = {}
    shares: list[int] = []


class Reject(msgspec.Struct, kw_only=True):
    """A record that could not be read, kept with its place and reason.

    `records` is 0 when only a part of a run was unreadable and the run itself
    was kept; then it is not counted among the rejected records. `file` counts
    from 0 where several files were read together.
    """

    place: str
    reason: str
    raw: str | None = None
    records: int = 1
    file: int = 0


Item = Run | Reject | TaskReference
"""What a reader yields."""
