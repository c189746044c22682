"""What a journal holds: one record for each thing that happened in a running experiment.

Everything here is data that may lie on disk: texts are as the model saw or
wrote them (redacted where the plan says so); keys are never part of it.
Times are UTC. Knows no file and no table.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from poc.models import Spent
from poc.trajectory import Status, Usage

VERSION = 1


class Header(msgspec.Struct, tag="header", kw_only=True, frozen=True):
    """First record: what the journal belongs to. `trials` is the number of planned trials in each arm."""

    experiment_id: str
    plan_hash: str
    arms: dict[str, int]
    version: int = VERSION


class Session(msgspec.Struct, tag="session", kw_only=True, frozen=True):
    """A process took up the experiment; with the hard limits that hold for it."""

    pid: int
    at: datetime
    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None


class SessionEnd(msgspec.Struct, tag="session_end", kw_only=True, frozen=True):
    """The process let go of it in an orderly way: finished, stop, budget, error."""

    at: datetime
    reason: str


class AttemptStart(msgspec.Struct, tag="attempt", kw_only=True, frozen=True):
    """A trial starts (attempt 1) or starts afresh, with the reason."""

    trial_id: str
    attempt: int
    at: datetime
    reason: str | None = None


class CallStart(msgspec.Struct, tag="call", kw_only=True, frozen=True):
    """A model call is about to leave. Without its `TurnDone` it was lost in a crash and counts as `reserved_tokens`."""

    trial_id: str
    attempt: int
    turn: int
    at: datetime
    reserved_tokens: int
    reserved_usd: float | None = None


class CallDropped(msgspec.Struct, tag="dropped", kw_only=True, frozen=True):
    """A model call that was begun did not take place (no budget, no connection, wrong key): it costs nothing."""

    trial_id: str
    attempt: int
    turn: int
    at: datetime
    reason: str


class Call(msgspec.Struct, kw_only=True, frozen=True):
    """One tool call as the model wrote it."""

    id: str
    name: str
    arguments: str


class TurnDone(msgspec.Struct, tag="turn", kw_only=True, frozen=True):
    """A finished model call: everything in a row of `requests`, and what is needed to go on from it.

    `spent` is what the budget had counted for the whole experiment when this
    was written, failed attempts included.
    """

    trial_id: str
    attempt: int
    turn: int
    sent_at: datetime
    content: str | None = None
    tool_calls: tuple[Call, ...] = ()
    finish_reason: str | None = None
    model: str | None = None
    http_status: int | None = None
    retries: int = 0
    backoff_s: float = 0.0
    first_token_s: float | None = None
    total_s: float | None = None
    usage: Usage | None = None
    context_tokens: int = 0
    cost_usd: float | None = None
    refused: bool = False
    error: str | None = None
    simulated: bool = False
    simulated_unknown_tools: bool = False
    spent: Spent | None = None


class StepDone(msgspec.Struct, tag="step", kw_only=True, frozen=True):
    """A finished tool call: everything in a row of `replay_steps`. `arguments` is None when they were unreadable."""

    trial_id: str
    attempt: int
    step: int
    turn: int
    ordinal: int
    tool: str
    arguments: str | None
    result: str | None
    status: Status
    duration_s: float | None = None
    progress: float | None = None
    context: str | None = None


class Judgement(msgspec.Struct, kw_only=True, frozen=True):
    """What one judge said of a trial. `value` is None when the question does not apply."""

    judge: str
    value: bool | None
    reason: str | None = None


class TrialDone(msgspec.Struct, tag="trial", kw_only=True, frozen=True):
    """The end of a trial: a row of `trials` without what follows from the plan, and its judgements."""

    trial_id: str
    attempt: int
    arm: str
    status: str
    stop_reason: str
    success: float | None
    success_provenance: str | None
    error: str | None = None
    final_progress: float | None = None
    turns: int
    steps: int
    errors: int
    repeated_steps: int
    repeated_irreversible: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    context_tokens: int
    cost_usd: float | None
    model_latency_s: float | None
    first_token_s: float | None
    tool_latency_s: float | None
    started_at: datetime
    ended_at: datetime
    judgements: tuple[Judgement, ...] = ()


Record = Header | Session | SessionEnd | AttemptStart | CallStart | CallDropped | TurnDone | StepDone | TrialDone

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """One JSON line, with its line end."""
    return _encoder.encode(record) + b"\n"


def decode(line: bytes) -> Record:
    """The record of one line. Raises `msgspec.DecodeError` or `msgspec.ValidationError`."""
    return _decoder.decode(line)
