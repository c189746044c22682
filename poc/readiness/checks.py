"""What is counted, in SQL, and how much each gap matters.

A check counts how many steps, runs or results have something. Steps of a
simulated user are not the agent's and are left out. Knows the tables and
thresholds, no sentences.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from poc.ingest import UNNAMED

Unit = Literal["steps", "runs", "results"]
Weight = Literal["essential", "needed", "helpful"]
"""Without an essential one nothing can be judged; without a needed one some later stage is closed."""

OK_FROM = 0.95
"""From this share on a few holes do not matter: the check is ok."""
MISSING_BELOW = 0.05
"""Below this share what is there is an exception: the check is missing; between the two it is a gap."""
ESSENTIAL_FROM = 0.5
"""An essential thing must be there in at least half of the cases."""

_AGENT_STEPS = "steps s WHERE s.caller <> 'user'"
_HAS_RESULT = "(s.result IS NOT NULL OR s.result_seq IS NOT NULL)"


class Counted(msgspec.Struct, frozen=True):
    """A check: its query gives (present, total)."""

    check_id: str
    unit: Unit
    weight: Weight
    sql: str


def _steps(check_id: str, weight: Weight, condition: str) -> Counted:
    sql = f"SELECT count(*) FILTER (WHERE {condition}), count(*) FROM {_AGENT_STEPS}"
    return Counted(check_id, "steps", weight, sql)


def _runs(check_id: str, weight: Weight, condition: str) -> Counted:
    sql = (
        f"SELECT count(*) FILTER (WHERE {condition}), count(*) FROM runs r"
        " LEFT JOIN tasks t USING (task_id) LEFT JOIN outcomes o USING (run_id)"
    )
    return Counted(check_id, "runs", weight, sql)


# A call id that comes again in its run does not tell one execution from another.
_EXECUTION = """
SELECT count(*) FILTER (WHERE execution_id IS NOT NULL OR (call_id IS NOT NULL AND same = 1)), count(*)
FROM (SELECT execution_id, call_id, count(*) OVER (PARTITION BY run_id, call_id) AS same
      FROM steps WHERE caller <> 'user')
"""

# The order of a run is known from its messages, a step column or start times, and times must not contradict it.
_ORDER = """
WITH placed AS (
    SELECT s.run_id,
           s.message_seq IS NOT NULL OR s.started_at IS NOT NULL
               OR json_extract_string(src.mapping, '$.step') IS NOT NULL AS known,
           s.started_at < lag(s.started_at) OVER (PARTITION BY s.run_id ORDER BY s.step) AS backwards
    FROM steps s JOIN runs r USING (run_id) JOIN sources src USING (source_id)
    WHERE s.caller <> 'user'),
per_run AS (SELECT bool_and(known) AND NOT coalesce(bool_or(backwards), false) AS fine FROM placed GROUP BY run_id)
SELECT count(*) FILTER (WHERE fine), count(*) FROM per_run
"""

# Results that came in a message of their own must have found their call; a table has them beside it.
_PAIRED = """
WITH answered AS (SELECT count(*) AS n FROM steps WHERE result IS NOT NULL OR result_seq IS NOT NULL),
orphans AS (SELECT count(*) AS n FROM messages m WHERE m.role = 'tool'
            AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.run_id = m.run_id AND s.result_seq = m.seq))
SELECT answered.n, answered.n + orphans.n FROM answered, orphans
"""

CHECKS: tuple[Counted, ...] = (
    _steps("tool", "essential", f"s.tool <> '{UNNAMED}'"),
    _steps("arguments", "essential", "s.arguments_status IN ('parsed', 'repaired')"),
    _steps("result", "needed", _HAS_RESULT),
    _steps("status", "essential", "s.status <> 'no_result'"),
    _steps("status_evidence", "helpful", "s.status_evidence IN ('flag', 'exit_code', 'error_field', 'text_rule')"),
    Counted("order", "runs", "needed", _ORDER),
    _steps("start_time", "needed", "s.started_at IS NOT NULL"),
    _steps("duration", "needed", "s.duration_s IS NOT NULL"),
    _runs("run_id", "needed", "r.native_id IS NOT NULL"),
    Counted("execution_id", "steps", "helpful", _EXECUTION),
    _runs("task_text", "essential", "t.text IS NOT NULL"),
    _runs("outcome", "needed", "o.outcome IS NOT NULL"),
    _runs("tokens", "needed", "r.input_tokens IS NOT NULL AND r.output_tokens IS NOT NULL"),
    Counted("paired_results", "results", "needed", _PAIRED),
)
"""All checks, in the order in which they are shown."""
