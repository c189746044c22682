"""Everything the report shows, read from the workspace: one named query for each kind of fact.

The same queries, with the experiment's id filled in, are printed in the
report's last section, so that anybody can run them again. Reads only; knows
no wording.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pandas as pd

from poc.errors import InputError, did_you_mean
from poc.progress import Validity, validity
from poc.readiness import Readiness, stored
from poc.replay.experiment import Plan
from poc.verdict import Verdict, load_verdict
from poc.workspace import Connection, Workspace

_PER_TASK_AND_STEP = """\
WITH mine AS (SELECT trial_id, arm, task_id FROM trials WHERE experiment_id = $experiment),
reach AS (
    SELECT least(40, coalesce(quantile_disc(steps, 0.95), 0)) AS last FROM trials WHERE experiment_id = $experiment
),
grid AS (SELECT mine.*, unnest(range(0, last + 1)) AS step FROM mine, reach),
known AS (SELECT trial_id, step + 1 AS step, progress FROM replay_steps WHERE progress IS NOT NULL),
held AS (
    SELECT g.arm, g.task_id, g.trial_id, g.step, coalesce(k.progress, 0) AS progress
    FROM grid g ASOF LEFT JOIN known k ON g.trial_id = k.trial_id AND g.step >= k.step
),
per_task AS (SELECT arm, task_id, step, avg(progress) AS progress, count(*) AS trials FROM held GROUP BY ALL)
SELECT arm, step, avg(progress) AS progress,
       greatest(0, avg(progress) - 1.96 * stddev_samp(progress) / sqrt(count(*))) AS low,
       least(1, avg(progress) + 1.96 * stddev_samp(progress) / sqrt(count(*))) AS high,
       sum(trials) AS trials, count(*) AS tasks
FROM per_task GROUP BY arm, step ORDER BY arm, step"""

QUERIES: dict[str, str] = {
    "verdict": """\
SELECT verdict, simulated, reasons, numbers, verdict_hash, decided_at
FROM verdicts WHERE experiment_id = $experiment ORDER BY decided_at DESC LIMIT 1""",
    "criteria": """\
SELECT * FROM criteria WHERE experiment_id = $experiment AND verdict_hash = (
    SELECT arg_max(verdict_hash, decided_at) FROM verdicts WHERE experiment_id = $experiment
) ORDER BY position""",
    "experiment": """\
SELECT experiment_id, name, plan, plan_hash, mode, created_at, estimate, status, simulated, merged_at
FROM experiments WHERE experiment_id = $experiment""",
    "totals": """\
SELECT count(*) AS trials, count_if(status = 'finished') AS finished, count_if(status = 'failed') AS failed,
       sum(attempt - 1) AS restarts, count(success) AS judged,
       min(started_at) AS started_at, max(ended_at) AS ended_at, count(cost_usd) AS priced, sum(cost_usd) AS cost_usd
FROM trials WHERE experiment_id = $experiment""",
    "requests": """\
SELECT count(*) AS requests, count_if(r.error IS NOT NULL) AS failed, sum(r.retries) AS retries,
       sum(r.backoff_s) AS backoff_s, count_if(r.input_tokens IS NULL OR r.output_tokens IS NULL) AS without_usage,
       sum(r.input_tokens) AS input_tokens, sum(r.output_tokens) AS output_tokens,
       sum(r.cached_tokens) AS cached_tokens, sum(r.reasoning_tokens) AS reasoning_tokens,
       sum(r.context_tokens) AS context_tokens,
       sum(r.input_tokens) + sum(r.output_tokens) AS tokens, min(r.sent_at) AS first_sent, max(r.sent_at) AS last_sent
FROM requests r JOIN trials t USING (trial_id) WHERE t.experiment_id = $experiment""",
    "costs": """\
SELECT arm, count(*) AS trials, count(cost_usd) AS priced,
       CASE WHEN count(cost_usd) = count(*) THEN 1000 * avg(cost_usd) END AS usd_per_1000,
       1000 * avg(input_tokens + output_tokens) AS tokens_per_1000,
       1000 * avg(model_latency_s) / 3600 AS hours_per_1000
FROM trials WHERE experiment_id = $experiment GROUP BY arm ORDER BY arm""",
    "latency": """\
SELECT arm, count(model_latency_s) AS n, quantile_cont(model_latency_s, 0.05) AS p05,
       quantile_cont(model_latency_s, 0.25) AS p25, median(model_latency_s) AS median,
       quantile_cont(model_latency_s, 0.75) AS p75, quantile_cont(model_latency_s, 0.95) AS p95
FROM trials WHERE experiment_id = $experiment GROUP BY arm ORDER BY arm""",
    "progress_steps": _PER_TASK_AND_STEP,
    "endings": """\
SELECT arm, coalesce(stop_reason, status) AS ending, count(*) AS trials
FROM trials WHERE experiment_id = $experiment GROUP BY ALL ORDER BY arm, trials DESC, ending""",
    "judgements": """\
SELECT t.arm, j.judge, count(j.value) AS n, avg(j.value::INTEGER) AS share
FROM judgements j JOIN trials t USING (trial_id) WHERE t.experiment_id = $experiment
GROUP BY ALL ORDER BY j.judge, t.arm""",
    "findings": "SELECT check_id, unit, present, total, level, assessed_at FROM findings ORDER BY unit DESC, check_id",
    "sets": """\
WITH used AS (
    SELECT DISTINCT unnest(from_json(plan->'$.tasks', '[{"set_hash":"VARCHAR"}]')).set_hash AS set_hash
    FROM experiments WHERE experiment_id = $experiment
)
SELECT g.set_hash, g.category, g.spec, json_array_length(g.spec, '$.subgoals') AS subgoals, g.active,
       (SELECT count(*) FROM assignments a WHERE a.set_hash = g.set_hash) AS runs
FROM subgoal_sets g JOIN used USING (set_hash) ORDER BY g.category""",
    "log": """\
SELECT (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM steps) AS steps,
       (SELECT count(DISTINCT task_id) FROM runs) AS tasks,
       (SELECT count(*) FROM outcomes WHERE outcome IS NOT NULL) AS outcomes,
       (SELECT count(*) FROM rejects) AS rejects""",
    "effects": """\
SELECT count(DISTINCT s.tool) AS tools, count(DISTINCT s.tool) FILTER (coalesce(k.effect_is_guess, true)) AS guessed
FROM replay_steps s JOIN trials t USING (trial_id) LEFT JOIN tools k USING (tool)
WHERE t.experiment_id = $experiment""",
}
"""Name -> SQL, with ``$experiment`` for the experiment's id."""

_FRAMES = ("latency", "progress_steps")
"""Queries whose result is drawn."""


class Facts(msgspec.Struct, kw_only=True):
    """What the report is made of. Frames and rows are the results of `QUERIES` of the same name."""

    workspace_name: str
    experiment: dict[str, Any]
    plan: Plan
    estimate: dict[str, Any] | None
    verdict: Verdict
    totals: dict[str, Any]
    requests: dict[str, Any]
    costs: dict[str, dict[str, Any]]
    """Per arm."""
    latency: pd.DataFrame
    progress_steps: pd.DataFrame
    endings: list[dict[str, Any]]
    judgements: list[dict[str, Any]]
    readiness: Readiness | None
    """The stored assessment; None when the logs were never assessed."""
    validity: dict[str | None, Validity]
    """Per category; the only figures that no single query gives (see `poc.progress.validity`)."""
    sets: list[dict[str, Any]]
    log: dict[str, Any]
    effects: dict[str, Any]

    @property
    def complete(self) -> bool:
        """Whether every planned trial is in the verdict's figures."""
        return self.verdict.comparison.complete

    @property
    def stale(self) -> bool:
        """Whether trials were stored after the verdict was made."""
        merged = self.experiment["merged_at"]
        return isinstance(merged, dt.datetime) and merged > self.verdict.decided_at + dt.timedelta(seconds=1)


def read_facts(workspace: Workspace, experiment_id: str) -> Facts:
    """Read everything; raises `InputError` when there is no such experiment, or no verdict on it yet."""
    verdict = load_verdict(workspace, experiment_id)
    if verdict is None:
        raise _nothing(workspace, experiment_id)
    with workspace.read() as db:
        frames = {name: db.execute(QUERIES[name], {"experiment": experiment_id}).df() for name in _FRAMES}
        rows = {name: _rows(db, sql, experiment_id) for name, sql in QUERIES.items() if name not in _FRAMES}
    experiment = rows["experiment"][0]
    plan = Plan.model_validate_json(experiment["plan"])
    order = {arm: place for place, arm in enumerate(plan.arms)}
    for name, frame in frames.items():
        frames[name] = frame.sort_values("arm", key=lambda arms: arms.map(order), kind="stable").reset_index(drop=True)
    return Facts(
        workspace_name=workspace.path.name,
        experiment=experiment,
        plan=plan,
        estimate=msgspec.json.decode(experiment["estimate"]) if experiment["estimate"] else None,
        verdict=verdict,
        totals=rows["totals"][0],
        requests=rows["requests"][0],
        costs={row["arm"]: row for row in rows["costs"]},
        latency=frames["latency"],
        progress_steps=frames["progress_steps"],
        endings=rows["endings"],
        judgements=rows["judgements"],
        readiness=stored(workspace),
        validity={found.category: found for found in validity(workspace, confidence=plan.thresholds.confidence)},
        sets=rows["sets"],
        log=rows["log"][0],
        effects=rows["effects"][0],
    )


def _nothing(workspace: Workspace, experiment_id: str) -> InputError:
    """Why there is nothing to report: no such experiment, not run, not finished, or not decided."""
    rows = workspace.rows(
        """
        SELECT e.status, (SELECT count(*) FROM trials t WHERE t.experiment_id = e.experiment_id) AS trials
        FROM experiments e WHERE e.experiment_id = ?
        """,
        [experiment_id],
    )
    where = f"{workspace.path}, experiment {experiment_id}"
    if not rows:
        known = [row["experiment_id"] for row in workspace.rows("SELECT experiment_id FROM experiments")]
        return InputError(
            f"There is no experiment '{experiment_id}' in this workspace.{did_you_mean(experiment_id, known)}",
            where=str(workspace.path),
            todo="Name one that is there, or plan one: poc replay plan",
        )
    if not rows[0]["trials"]:
        return InputError(
            "This experiment has no finished trial yet, so there is nothing to report.",
            where=where,
            todo="Run it (poc replay run), then decide (poc decide).",
        )
    trials = rows[0]["trials"]
    finish = "" if rows[0]["status"] == "finished" else "Resume it (poc replay resume) if it should go on. "
    return InputError(
        f"This experiment has {trials} finished {'trial' if trials == 1 else 'trials'}, but no verdict yet.",
        where=where,
        todo=finish + "Decide first: poc decide",
    )


def printed(name: str, experiment_id: str) -> str:
    """A query as it can be run again: the id stands in it, quoted."""
    return QUERIES[name].replace("$experiment", "'" + experiment_id.replace("'", "''") + "'")


def _rows(db: Connection, sql: str, experiment_id: str) -> list[dict[str, Any]]:
    result = db.execute(sql, {"experiment": experiment_id}) if "$experiment" in sql else db.execute(sql)
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
