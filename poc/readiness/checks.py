"""What is asked of each step, run and result, and how much it matters.

A check counts how many have something that later stages need. An oddity counts
how many are free of something that looks wrong: repeated calls, clocks that
contradict the order. Both are a condition over a relation of
`poc.readiness.relations`; what does not fulfil it is the evidence. Knows
thresholds, no sentences.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from poc.ingest import UNNAMED
from poc.readiness.relations import BACKWARDS, Unit

Weight = Literal["essential", "needed", "helpful", "suspect", "note"]
"""Checks: without an essential one nothing can be judged; without a needed one some later stage is closed.
Oddities: a suspect one contradicts what the log says elsewhere; a note may be quite in order.
"""

Excerpt = Literal["arguments", "result", "call_id"]

OK_FROM = 0.95
"""From this share on a few holes do not matter: the check is ok."""
MISSING_BELOW = 0.05
"""Below this share what is there is an exception: the check is missing; between the two it is a gap."""
ESSENTIAL_FROM = 0.5
"""An essential thing must be there in at least half of the cases."""

CLOCK_SLACK_S = 1
"""Times of a run and of its steps are often written by different clocks, or cut to whole seconds."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """One check or oddity: `holds` is asked of the rows to which `applies` applies (both SQL conditions).

    `other` and `seconds` (SQL) and `excerpt` say more about a row that does not
    hold: the step that it clashes with, by how much, and what it looks like.
    """

    check_id: str
    unit: Unit
    weight: Weight
    holds: str
    applies: str = "true"
    other: str = "NULL::INTEGER"
    seconds: str = "NULL::DOUBLE"
    excerpt: Excerpt | None = None


def _steps(check_id: str, weight: Weight, holds: str, **more: Any) -> Counted:
    return Counted(check_id=check_id, unit="steps", weight=weight, holds=holds, **more)


def _runs(check_id: str, weight: Weight, holds: str, **more: Any) -> Counted:
    return Counted(check_id=check_id, unit="runs", weight=weight, holds=holds, **more)


CHECKS: tuple[Counted, ...] = (
    _steps("tool", "essential", f"tool <> '{UNNAMED}'", excerpt="arguments"),
    _steps("arguments", "essential", "arguments_status IN ('parsed', 'repaired')", excerpt="arguments"),
    _steps("result", "needed", "has_result", excerpt="arguments"),
    _steps("status", "essential", "status <> 'no_result'", excerpt="arguments"),
    _steps(
        "status_evidence",
        "helpful",
        "status_evidence IN ('flag', 'exit_code', 'error_field', 'text_rule')",
        excerpt="result",
    ),
    _runs("order", "needed", "ordered AND NOT backwards", applies="steps > 0"),
    _steps("start_time", "needed", "started_at IS NOT NULL"),
    _steps("duration", "needed", "duration_s IS NOT NULL"),
    _runs("run_id", "needed", "native_id IS NOT NULL"),
    # A call id that comes again in its run does not tell one execution from another.
    _steps(
        "execution_id",
        "helpful",
        "execution_id IS NOT NULL OR (call_id IS NOT NULL AND same_id = 1)",
        excerpt="call_id",
    ),
    _runs("task_text", "essential", "task_text IS NOT NULL"),
    _runs("outcome", "needed", "outcome IS NOT NULL"),
    _runs("tokens", "needed", "input_tokens IS NOT NULL AND output_tokens IS NOT NULL"),
    Counted(check_id="paired_results", unit="results", weight="needed", holds="paired", excerpt="result"),
)
"""All checks, in the order in which they are shown."""

_KNOWN_ARGUMENTS = "arguments_status <> 'absent'"
_BOTH_TIMES = "started_at IS NOT NULL AND before_started_at IS NOT NULL AND turn <> before_turn"
# A time without a zone is stored as if UTC and may be up to 14 hours ahead.
_LATEST = "imported_at + CASE WHEN zone_in_log THEN INTERVAL 5 MINUTE ELSE INTERVAL 14 HOUR END"
_LAST_TIME = "greatest(started_at, ended_at)"
_SLACK = f"INTERVAL {CLOCK_SLACK_S} SECOND"

ODDITIES: tuple[Counted, ...] = (
    _steps(
        "repeat_at_once",
        "note",
        "(same_before = before) IS NOT TRUE",
        applies=_KNOWN_ARGUMENTS,
        other="same_before",
        excerpt="arguments",
    ),
    _steps(
        "repeat_later",
        "note",
        "same_before IS NULL OR same_before = before",
        applies=_KNOWN_ARGUMENTS,
        other="same_before",
        excerpt="arguments",
    ),
    _steps(
        "same_start",
        "suspect",
        "started_at <> before_started_at",
        applies=_BOTH_TIMES,
        other="before",
    ),
    _steps(
        "backwards",
        "suspect",
        f"NOT {BACKWARDS}",
        applies=_BOTH_TIMES,
        other="before",
        seconds="epoch(before_started_at) - epoch(started_at)",
    ),
    _steps(
        "end_before_start",
        "suspect",
        "ended_at >= started_at",
        applies="started_at IS NOT NULL AND ended_at IS NOT NULL",
        seconds="epoch(started_at) - epoch(ended_at)",
    ),
    _steps(
        "outside_run",
        "suspect",
        f"coalesce(started_at >= run_started_at - {_SLACK}, true)"
        f" AND coalesce({_LAST_TIME} <= run_ended_at + {_SLACK}, true)",
        applies="started_at IS NOT NULL AND (run_started_at IS NOT NULL OR run_ended_at IS NOT NULL)",
        seconds=f"greatest(epoch(run_started_at) - epoch(started_at), epoch({_LAST_TIME}) - epoch(run_ended_at))",
    ),
    _steps(
        "future",
        "suspect",
        f"{_LAST_TIME} <= {_LATEST}",
        applies=f"{_LAST_TIME} IS NOT NULL",
        seconds=f"epoch({_LAST_TIME}) - epoch(imported_at)",
    ),
    _runs("no_zone", "suspect", "zone_in_log", applies="zone_in_log IS NOT NULL"),
    _runs("no_steps", "note", "steps > 0"),
)
"""All oddities, in the order in which they are shown."""

COUNTED: dict[str, Counted] = {counted.check_id: counted for counted in (*CHECKS, *ODDITIES)}
"""Every check and oddity by its id."""
