"""What there is to count: one row a step, a run or a result, with everything that a check asks about.

Each relation is one pass over its table in SQL. All have ``run_id``,
``native_id``, ``source_id``, ``step``, ``message_seq``, ``tool`` and
``status``, so that whatever a check finds can be pointed at. Steps of a
simulated user are not the agent's and are left out. Knows no check.
"""

from __future__ import annotations

from typing import Literal

Unit = Literal["steps", "runs", "results"]

# The step before is that of the same caller: a subagent works beside the agent, not after it.
# A step without a time stands between no two times. Numbers stand for ids and hashes for arguments, since
# sorting a million texts takes most of the time; long texts are fetched later, for what is shown.
_STEPS = """
SELECT *,
       lag(step) OVER same_call AS same_before,
       lag(step) OVER in_order AS before,
       lag(started_at IGNORE NULLS) OVER in_order AS before_started_at,
       lag(CASE WHEN started_at IS NOT NULL THEN turn END IGNORE NULLS) OVER in_order AS before_turn,
       count(*) OVER (PARTITION BY run_number, call_id) AS same_id
FROM (
    SELECT s.run_id, r.native_id, r.source_id, s.step, s.message_seq, s.tool, s.status, s.turn, s.caller,
           s.call_id, s.execution_id, s.status_evidence, s.arguments_status, s.started_at, s.ended_at, s.duration_s,
           s.result IS NOT NULL OR s.result_seq IS NOT NULL AS has_result, r.rowid AS run_number,
           hash(coalesce(s.arguments::VARCHAR, s.arguments_raw)) AS arguments_hash,
           r.started_at AS run_started_at, r.ended_at AS run_ended_at, r.zone_in_log, o.imported_at,
           json_extract_string(o.mapping, '$.step') IS NOT NULL AS numbered
    FROM steps s JOIN runs r USING (run_id) LEFT JOIN sources o USING (source_id)
    WHERE s.caller <> 'user'
)
WINDOW in_order AS (PARTITION BY run_number, caller ORDER BY step),
       same_call AS (PARTITION BY run_number, hash(caller, tool, arguments_hash) ORDER BY step)
"""

BACKWARDS = "(started_at < before_started_at AND turn <> before_turn)"
"""A step starts before the turn before it; parallel calls of one turn may start in any order."""

# The order of a run is known from its messages, a step column or start times, and times must not contradict it.
_RUNS = f"""
SELECT r.run_id, r.native_id, r.source_id, NULL::INTEGER AS step, NULL::INTEGER AS message_seq,
       NULL::VARCHAR AS tool, NULL::VARCHAR AS status, r.zone_in_log, r.input_tokens, r.output_tokens,
       t.text AS task_text, o.outcome, coalesce(p.steps, 0) AS steps, p.ordered, p.backwards
FROM runs r LEFT JOIN tasks t USING (task_id) LEFT JOIN outcomes o USING (run_id)
LEFT JOIN (
    SELECT run_id, count(*) AS steps, coalesce(bool_or{BACKWARDS}, false) AS backwards,
           bool_and(message_seq IS NOT NULL OR started_at IS NOT NULL OR numbered) AS ordered
    FROM ({_STEPS}) GROUP BY run_id
) p USING (run_id)
"""

# Results that came in a message of their own must have found their call; a table has them beside it.
_RESULTS = """
SELECT s.run_id, r.native_id, r.source_id, s.step, s.result_seq AS message_seq, s.tool, s.status,
       true AS paired
FROM steps s JOIN runs r USING (run_id)
WHERE s.caller <> 'user' AND (s.result IS NOT NULL OR s.result_seq IS NOT NULL)
UNION ALL
SELECT m.run_id, r.native_id, r.source_id, NULL, m.seq, m.name, NULL, false
FROM messages m JOIN runs r USING (run_id)
WHERE m.role = 'tool' AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.run_id = m.run_id AND s.result_seq = m.seq)
"""

RELATIONS: dict[Unit, str] = {"steps": _STEPS, "runs": _RUNS, "results": _RESULTS}
"""Unit -> the query with one row for each."""
