"""What a journal says of the past: how far each trial is, and what has been spent.

Knows records only; no file, no table, no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from poc.models import Spent
from poc.replay.records import (
    AttemptStart,
    CallDropped,
    CallStart,
    Record,
    Session,
    StepDone,
    TrialDone,
    TurnDone,
)


@dataclass
class Past:
    """What the journal holds of one trial: its latest attempt, and its end if it has one.

    `started_at` None: nothing yet; `reason` then says why it starts afresh.
    """

    attempt: int = 1
    started_at: datetime | None = None
    reason: str | None = None
    turns: dict[int, TurnDone] = field(default_factory=dict)
    steps: dict[int, StepDone] = field(default_factory=dict)
    done: TrialDone | None = None


def pasts(records: Sequence[Record]) -> dict[str, Past]:
    """The past of every trial that the journal knows, by trial id."""
    found: dict[str, Past] = {}
    for record in records:
        match record:
            case AttemptStart():
                found[record.trial_id] = Past(attempt=record.attempt, started_at=record.at)
            case TurnDone() | StepDone() | TrialDone():
                past = found.setdefault(record.trial_id, Past(attempt=record.attempt))
                if record.attempt != past.attempt:
                    continue
                if isinstance(record, TurnDone):
                    past.turns[record.turn] = record
                elif isinstance(record, StepDone):
                    past.steps[record.step] = record
                else:
                    past.done = record
            case _:
                pass
    return found


def spent_so_far(records: Sequence[Record]) -> Spent:
    """What earlier sessions of an experiment spent. A call that a crash cut off counts as its worst case."""
    spent = Spent()
    open_calls: dict[tuple[str, int, int], CallStart] = {}
    for record in records:
        match record:
            case CallStart():
                open_calls[record.trial_id, record.attempt, record.turn] = record
            case CallDropped() | TurnDone():
                open_calls.pop((record.trial_id, record.attempt, record.turn), None)
                if isinstance(record, TurnDone) and record.spent is not None:
                    spent = record.spent
            case Session() if open_calls:
                # The session before this one was killed: nobody knows what its calls in flight came to.
                spent = _with_lost(spent, open_calls.values())
                open_calls = {}
            case _:
                pass
    return _with_lost(spent, open_calls.values())


def _with_lost(spent: Spent, lost: Iterable[CallStart]) -> Spent:
    for call in lost:
        usd = None if spent.usd is None or call.reserved_usd is None else spent.usd + call.reserved_usd
        spent = Spent(tokens=spent.tokens + call.reserved_tokens, usd=usd, seconds=spent.seconds, calls=spent.calls + 1)
    return spent
