"""Does the control arm behave like the logged agent? Success, steps and tool mix on the same tasks.

Where it does not, the experiment is about another agent than the team's, and
no verdict carries over. A difference counts only when it is both shown (the
interval leaves 0 out) and large; the tool mix, which has no simple interval,
by its size alone. Knows no thresholds of the plan.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Literal

from poc.stats import Interval, mean_difference
from poc.verdict.numbers import Fidelity
from poc.verdict.trials import Stored, by_task_mean, mean
from poc.workspace import Workspace

SUCCESS_MARGIN = 0.10
"""Difference of success up to which arms pass as alike."""
STEPS_FACTOR = 1.5
"""Ratio of mean steps up to which they pass as alike."""
TOOLS_MARGIN = 0.30
"""Total variation distance of the tool mixes up to which they pass as alike."""

_NONE = Interval(None, None, None, 0, "no logged runs")


def fidelity(workspace: Workspace, stored: Stored) -> Fidelity:
    """Compare the control arm with the logged runs of the plan's tasks.

    `not_applicable` for next-step replays (they follow the log by design) and
    where the control is not the arm that adds nothing; `unknown` without
    logged runs of these tasks.
    """
    plan, confidence = stored.plan, stored.plan.thresholds.confidence
    control = plan.primary[1]
    if plan.mode == "next_step" or control != "none":
        return no_fidelity("not_applicable")
    mine = [trial for trial in stored.trials if trial.arm == control]
    tasks = sorted({trial.task_id for trial in mine})
    logged = workspace.rows(
        """
        SELECT o.run_id, o.task_id, o.outcome,
               (SELECT count(*) FROM steps s WHERE s.run_id = o.run_id AND s.caller = 'agent') AS steps
        FROM outcomes o WHERE list_contains(?, o.task_id) ORDER BY o.run_id
        """,
        [tasks],
    )
    if not mine or not logged:
        return no_fidelity("unknown")
    logged_tools = _shares(
        workspace.rows(
            """
            SELECT r.task_id, s.tool, count(*) AS calls FROM steps s JOIN runs r USING (run_id)
            WHERE list_contains(?, r.task_id) AND s.caller = 'agent' GROUP BY ALL ORDER BY ALL
            """,
            [tasks],
        )
    )
    with_log = {row["task_id"] for row in logged}
    replayed_tools = _shares(
        row
        for row in workspace.rows(
            """
            SELECT t.task_id, s.tool, count(*) AS calls FROM replay_steps s JOIN trials t USING (trial_id)
            WHERE t.experiment_id = ? AND t.arm = ? GROUP BY ALL ORDER BY ALL
            """,
            [stored.experiment_id, control],
        )
        if row["task_id"] in with_log
    )
    logged_outcome = _means((row["task_id"], row["outcome"]) for row in logged)
    logged_steps = _means((row["task_id"], row["steps"]) for row in logged)
    replayed_outcome = by_task_mean(mine, lambda trial: trial.outcome)
    replayed_steps = by_task_mean(mine, lambda trial: trial.steps)
    judged = sorted(logged_outcome.keys() & replayed_outcome.keys())
    common = sorted(logged_steps.keys() & replayed_steps.keys())
    success = mean_difference([replayed_outcome[k] - logged_outcome[k] for k in judged], confidence=confidence)
    steps = mean_difference([replayed_steps[k] - logged_steps[k] for k in common], confidence=confidence, bound=None)
    mean_logged, mean_replayed = mean(logged_steps[k] for k in common), mean(replayed_steps[k] for k in common)
    distance = _distance(logged_tools, replayed_tools)
    differs: list[str] = []
    unclear: list[str] = []
    if abs(success.estimate or 0.0) > SUCCESS_MARGIN:
        (differs if _shown(success) else unclear).append("success")
    if _far(mean_logged, mean_replayed):
        (differs if _shown(steps) else unclear).append("steps")
    if distance is not None and distance > TOOLS_MARGIN:
        differs.append("tools")
    return Fidelity(
        finding="different" if differs else "alike",
        differs_in=tuple(differs),
        unclear_in=tuple(unclear),
        tasks=len(common),
        logged_runs=len(logged),
        logged_success=mean(logged_outcome[k] for k in judged),
        replayed_success=mean(replayed_outcome[k] for k in judged),
        success=success,
        logged_steps=mean_logged,
        replayed_steps=mean_replayed,
        steps=steps,
        tool_distance=distance,
        logged_tools=logged_tools,
        replayed_tools=replayed_tools,
    )


def no_fidelity(finding: Literal["unknown", "not_applicable"]) -> Fidelity:
    """The record when there was nothing to compare."""
    return Fidelity(
        finding=finding,
        differs_in=(),
        unclear_in=(),
        tasks=0,
        logged_runs=0,
        logged_success=None,
        replayed_success=None,
        success=_NONE,
        logged_steps=None,
        replayed_steps=None,
        steps=_NONE,
        tool_distance=None,
        logged_tools={},
        replayed_tools={},
    )


def _means(pairs: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for task, value in pairs:
        if value is not None:
            values[task].append(float(value))
    return {task: sum(known) / len(known) for task, known in values.items()}


def _shares(rows: Iterable[dict[str, object]]) -> dict[str, float]:
    """The mean over tasks of each tool's share of the calls, so that long tasks do not speak for all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[str(row["task_id"])][str(row["tool"])] += int(row["calls"])  # type: ignore[call-overload]
    tools = sorted({tool for counter in counts.values() for tool in counter})
    return {tool: sum(counter[tool] / counter.total() for counter in counts.values()) / len(counts) for tool in tools}


def _distance(a: dict[str, float], b: dict[str, float]) -> float | None:
    if not a or not b:
        return None
    return sum(abs(a.get(tool, 0.0) - b.get(tool, 0.0)) for tool in sorted(a.keys() | b.keys())) / 2


def _shown(difference: Interval) -> bool:
    return difference.above(0) or difference.below(0)


def _far(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return False
    return max(a, b) > STEPS_FACTOR * min(a, b)
