"""The cheapest next step after a verdict, and the notes that belong beside it. Knows no tables."""

from __future__ import annotations

import math

from poc.errors import InputError
from poc.language import Sentence
from poc.replay.experiment import Plan
from poc.stats import Variance, tasks_needed
from poc.verdict.criteria import Criterion, figure, points
from poc.verdict.numbers import Comparison

FLOOR, CEILING = 0.05, 0.95
MOST_TASKS = 20_000
"""Beyond this nobody replays; the value is then called too close to the limit."""


def next_step(comparison: Comparison, plan: Plan, verdict: str, criteria: tuple[Criterion, ...]) -> Sentence:
    """What to do next: the cheapest thing that could change or confirm the verdict.

    How many tasks settle the outcome is planned with the smallest gain that
    matters and the spread seen, never with the gain seen; Hoenig & Heisey
    (2001), "The abuse of power", Am. Stat. 55:19-24, say why.
    """
    state = {line.criterion: line.status for line in criteria}
    if state["complete"] == "broken":
        return Sentence("next.resume", {"missing": comparison.planned_trials - comparison.stored_trials})
    if state["known_tools"] == "broken":
        return Sentence("next.real_model")
    if state["fidelity"] == "broken":
        return Sentence("next.fidelity")
    if verdict == "NO-GO":
        return Sentence("next.leave")
    if state["independent_outcome"] == "broken":
        bounds = comparison.primary.bounds
        partly = "environment" in comparison.provenance and bounds is not None and bounds.ungraded
        return Sentence("next.judge" if partly else "next.environment")
    if state["split_by_task"] == "broken":
        return Sentence("next.split")
    if verdict == "GO":
        return Sentence("next.real_model" if comparison.simulated else "next.canary")
    if state[comparison.outcome] == "open":
        return _for_outcome(comparison, plan)
    for line in criteria:
        if line.status == "open" and not line.is_gate:
            return _for_cost(comparison, line)
    return Sentence("next.real_model" if comparison.simulated else "next.canary")


def _for_outcome(comparison: Comparison, plan: Plan) -> Sentence:
    thresholds, measure, tasks = plan.thresholds, comparison.primary.outcome, comparison.primary.tasks
    worthwhile = points(thresholds.gain_worthwhile, signed=False)
    if measure.spread is None or measure.interval.estimate is None:
        variance = Variance(trial=0.15, effect=0.0025)
        spread = variance.sd(plan.repeats)
    else:
        spread = measure.spread
    needed = _needed(thresholds.gain_worthwhile - thresholds.gain_above, spread, 1 - thresholds.confidence)
    if needed is not None and needed > tasks:
        return Sentence(
            "next.tasks", {"needed": needed, "tasks": tasks, "repeats": plan.repeats, "worthwhile": worthwhile}
        )
    # The plan was large enough, yet the interval holds the limit: only the distance to it is left to go by.
    distance = (measure.interval.estimate or 0.0) - thresholds.gain_worthwhile
    needed = _needed(distance, spread, 1 - thresholds.confidence)
    if needed is None:
        return Sentence(f"next.too_close.{comparison.outcome}")
    return Sentence("next.close_call", {"needed": max(needed, tasks + 1), "tasks": tasks, "worthwhile": worthwhile})


def _for_cost(comparison: Comparison, line: Criterion) -> Sentence:
    measure = {each.name: each for each in comparison.primary.measures()}[line.criterion]
    if line.value is None or line.low is None or measure.spread is None or line.threshold is None:
        return Sentence(f"next.{'constant' if measure.constant else 'usage'}.{line.criterion}")
    distance = math.log(line.value / line.threshold) if measure.kind == "ratio" else line.value - line.threshold
    needed = _needed(distance, measure.spread, 1 - comparison.confidence)
    if needed is None:
        return Sentence(f"next.too_close.{line.criterion}")
    tasks = comparison.primary.tasks
    return Sentence(f"next.cost_tasks.{line.criterion}", {"needed": max(needed, tasks + 1), "tasks": tasks})


def _needed(difference: float, spread: float, alpha: float) -> int | None:
    try:
        needed = tasks_needed(difference, variance=Variance(trial=0.0, effect=spread**2), alpha=alpha)
    except InputError:
        return None
    return needed if needed <= MOST_TASKS else None


def notes(comparison: Comparison, plan: Plan) -> list[Sentence]:
    """What a reader must know beside the criteria."""
    found: list[Sentence] = []
    if comparison.simulated:
        found.append(Sentence("note.simulated"))
    if plan.readiness.override_reason is not None:
        found.append(
            Sentence("note.override", {"level": plan.readiness.level, "reason": plan.readiness.override_reason})
        )
    if comparison.mode == "next_step":
        found.append(Sentence("note.next_step"))
    baseline = comparison.primary.outcome.control
    if baseline is not None and not FLOOR < baseline < CEILING:
        key = "note.floor" if baseline <= FLOOR else "note.ceiling"
        found.append(Sentence(key, {"rate": figure(100 * baseline, 0)}))
    bounds = comparison.primary.bounds
    if bounds is not None and bounds.trials:
        found.append(
            Sentence("note.unjudged", {"trials": bounds.trials, "low": points(bounds.low), "high": points(bounds.high)})
        )
    tokens = comparison.primary.tokens
    if tokens.missing:
        found.append(
            Sentence("note.missing_usage", {"missing": tokens.missing, "tasks": tokens.missing + tokens.interval.n})
        )
    found.extend(sampling_sentences(plan))
    if comparison.expected_flips is not None:
        found.append(Sentence("note.flips", {"share": figure(100 * comparison.expected_flips, 0)}))
    return found


def sampling_sentences(plan: Plan) -> list[Sentence]:
    """How the plan's tasks were chosen, and for which tasks the result therefore holds."""
    sampling, tasks = plan.sampling, len(plan.tasks)
    frame = tasks if sampling.frame is None else sampling.frame
    if sampling.categories:
        values = {"tasks": tasks, "frame": frame, "categories": ", ".join(sampling.categories)}
        found = [Sentence(f"sampling.{sampling.how}_of_categories", values)]
    else:
        found = [Sentence(f"sampling.{sampling.how}", {"tasks": tasks, "frame": frame})]
    if sampling.made_from:
        found.append(Sentence("sampling.made_from", {"tasks": sampling.made_from}))
    if sampling.textless:
        found.append(Sentence("sampling.textless", {"tasks": sampling.textless}))
    if sampling.runs is not None:
        values = {"runs": sampling.runs, "frame": sampling.runs_frame, "turns": sampling.cuts_per_run}
        found.append(Sentence("sampling.turns", values))
    return found
