"""From stored trials to every figure: `compare`.

Reads nothing but the workspace, so that the same stored trials always give
the same figures. Knows no thresholds and makes no judgement.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from poc.replay.experiment import Plan
from poc.stats import Interval, Variance, detectable_difference, mean_difference
from poc.verdict.contrast import contrast, difference_measure, ratio_measure, secondary
from poc.verdict.fidelity import fidelity
from poc.verdict.numbers import ArmSummary, CategoryRow, Comparison, Fidelity, Outcome, Split
from poc.verdict.splitting import splitting
from poc.verdict.tokens import split
from poc.verdict.trials import Pairs, Stored, Trial, by_task_mean, load, mean, pair
from poc.workspace import Workspace


def compare(workspace: Workspace, experiment_id: str) -> Comparison:
    """Every figure of an experiment, paired by task, from its stored trials.

    Works on an unfinished experiment too (`Comparison.complete` tells).
    Raises `InputError` when there is no such experiment.
    """
    stored = load(workspace, experiment_id)
    return comparison_of(stored, fidelity(workspace, stored), splitting(workspace, stored.plan))


def comparison_of(stored: Stored, likeness: Fidelity, split_by_task: Split) -> Comparison:
    """The same for trials that are already read, given what only the log and the subgoal sets can tell."""
    plan, trials = stored.plan, stored.trials
    confidence = plan.thresholds.confidence
    outcome: Outcome = "next_step_quality" if plan.mode == "next_step" else "success"
    primary = contrast(trials, *plan.primary, outcome, confidence)
    pairs = pair(trials, *plan.primary)
    spread = primary.outcome.spread
    variance = None if spread is None else Variance(trial=0.0, effect=spread**2)
    return Comparison(
        experiment_id=stored.experiment_id,
        plan_hash=plan.hash,
        mode=plan.mode,
        simulated=stored.simulated,
        models=stored.models,
        outcome=outcome,
        provenance=tuple(sorted({trial.provenance for trial in trials if trial.provenance and not trial.failed})),
        confidence=confidence,
        repeats=plan.repeats,
        planned_tasks=len(plan.tasks),
        planned_trials=stored.planned,
        stored_trials=len(trials),
        foreign_trials=stored.foreign,
        primary=primary,
        secondary=secondary(trials, plan.arms, plan.primary, outcome, confidence),
        arms=tuple(_summary(arm, [trial for trial in trials if trial.arm == arm], confidence) for arm in plan.arms),
        tokens=split(pairs),
        categories=_categories(plan, pairs, outcome, confidence),
        fidelity=likeness,
        split=split_by_task,
        expected_flips=_expected_flips([trial for trial in trials if trial.arm == plan.primary[1]]),
        detectable=None
        if variance is None
        else detectable_difference(primary.tasks, variance=variance, alpha=1 - confidence),
        tools_known=stored.tools_known,
    )


def _summary(arm: str, trials: Sequence[Trial], confidence: float) -> ArmSummary:
    outcomes = by_task_mean(trials, lambda trial: trial.outcome)
    costs = [trial.cost_usd for trial in trials]
    cost = math.fsum(value for value in costs if value is not None) if costs and None not in costs else None
    successes = math.fsum(trial.outcome for trial in trials)
    inputs = [(trial.cached_tokens, trial.input_tokens) for trial in trials]
    cached = [(part, whole) for part, whole in inputs if part is not None and whole is not None]
    input_total = sum(whole for _, whole in cached)

    def average(field: str) -> float | None:
        return mean(by_task_mean(trials, lambda trial: getattr(trial, field)).values())

    return ArmSummary(
        arm=arm,
        tasks=len(outcomes),
        trials=len(trials),
        failed=sum(trial.failed for trial in trials),
        ungraded=sum(trial.ungraded for trial in trials),
        outcome=_share(list(outcomes.values()), confidence),
        successes=successes,
        turns=average("turns"),
        steps=average("steps"),
        errors=average("errors"),
        repeated_steps=average("repeated_steps"),
        repeated_irreversible=average("repeated_irreversible"),
        final_progress=average("final_progress"),
        tokens=average("tokens"),
        context_tokens=average("context_tokens"),
        cached_share=sum(part for part, _ in cached) / input_total if input_total else None,
        missing_usage=sum(trial.tokens is None for trial in trials),
        latency_s=average("latency_s"),
        first_token_s=average("first_token_s"),
        retries=sum(trial.retries for trial in trials),
        backoff_s=math.fsum(trial.backoff_s for trial in trials),
        cost_usd=cost,
        cost_per_success=cost / successes if cost is not None and successes > 0 else None,
    )


def _share(task_means: list[float], confidence: float) -> Interval:
    """A mean share over tasks: the adjusted interval with one imagined success and one imagined failure."""
    scaled = mean_difference([2 * value - 1 for value in task_means], confidence=confidence)

    def back(value: float | None) -> float | None:
        return None if value is None else (value + 1) / 2

    return Interval(mean(task_means), back(scaled.low), back(scaled.high), scaled.n, scaled.method)


def _categories(plan: Plan, pairs: Pairs, outcome: str, confidence: float) -> tuple[CategoryRow, ...]:
    of_task = {task.task_id: task.category for task in plan.tasks}
    groups: dict[str, dict[str, list[tuple[Trial, Trial]]]] = defaultdict(dict)
    for task, units in pairs.by_task.items():
        groups[of_task[task]][task] = units
    rows: list[CategoryRow] = []
    for category in sorted(groups):
        group = Pairs(groups[category], 0)
        share = difference_measure(group, outcome, lambda trial: trial.outcome, "share", confidence)
        latency = ratio_measure(group, "latency", lambda trial: trial.latency_s, "seconds", confidence)
        tokens = ratio_measure(group, "tokens", lambda trial: trial.tokens, "tokens", confidence)
        rows.append(
            CategoryRow(
                category=category,
                tasks=len(group.by_task),
                treated=share.treated,
                control=share.control,
                outcome=share.interval,
                latency=latency.interval,
                tokens=tokens.interval,
            )
        )
    return tuple(rows)


def _expected_flips(control: Sequence[Trial]) -> float | None:
    """Mean over tasks of the chance that two of the task's trials differ: 2 p (1 - p), without bias from few repeats.

    For yes/no outcomes this is the share of its pairs of trials that differ.
    None when no task has two trials of the same kind (one repeat).
    """
    groups: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for trial in control:
        groups[trial.task_id, trial.unit[1], trial.unit[2]].append(trial.outcome)
    per_group: dict[str, list[float]] = defaultdict(list)
    for (task, _, _), outcomes in sorted(groups.items()):
        n = len(outcomes)
        if n > 1:
            centre = math.fsum(outcomes) / n
            per_group[task].append(2 * math.fsum((value - centre) ** 2 for value in outcomes) / (n - 1))
    return mean(math.fsum(values) / len(values) for values in per_group.values())
