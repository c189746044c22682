"""One contrast of two arms: all measures, paired by task, repeats averaged within a task.

Works on trial records; knows no tables and no thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from poc.stats import Interval, holm, mean_difference, ratio_of_geometric_means, sign_flip_test
from poc.stats.means import adjusted_mean
from poc.verdict.numbers import Bounds, Contrast, Measure
from poc.verdict.trials import Pairs, Trial, mean, pair, task_means

KNOWN_SHARE = 0.8
"""Of the paired tasks, the share whose value must be known for an interval: below it, what is missing could be
what matters (trials that broke off report no usage), and no interval would be honest."""


def contrast(trials: tuple[Trial, ...], treatment: str, control: str, outcome: str, confidence: float) -> Contrast:
    """Everything about one contrast. `outcome` names the outcome measure (success or next_step_quality)."""
    pairs = pair(trials, treatment, control)
    treated, untreated, _ = task_means(pairs, lambda trial: trial.outcome)
    differences = [a - b for a, b in zip(treated, untreated, strict=True)]
    test = sign_flip_test(differences) if differences else None

    def difference(name: str, value: Callable[[Trial], float | None], unit: str = "count") -> Measure:
        return difference_measure(pairs, name, value, unit, confidence)

    def ratio(name: str, value: Callable[[Trial], float | None], unit: str) -> Measure:
        return ratio_measure(pairs, name, value, unit, confidence)

    return Contrast(
        treatment=treatment,
        control=control,
        tasks=len(pairs.by_task),
        pairs=sum(len(units) for units in pairs.by_task.values()),
        unpaired=pairs.unpaired,
        better=sum(value > 1e-12 for value in differences),
        worse=sum(value < -1e-12 for value in differences),
        equal=sum(abs(value) <= 1e-12 for value in differences),
        p_value=test.p_value if test else None,
        p_adjusted=None,
        test=test.method if test else None,
        outcome=difference(outcome, lambda trial: trial.outcome, "share"),
        latency=ratio("latency", lambda trial: trial.latency_s, "seconds"),
        first_token=ratio("first_token", lambda trial: trial.first_token_s, "seconds"),
        tokens=ratio("tokens", lambda trial: trial.tokens, "tokens"),
        cost=ratio("cost", lambda trial: trial.cost_usd, "usd"),
        turns=difference("turns", lambda trial: trial.turns),
        steps=difference("steps", lambda trial: trial.steps),
        errors=difference("errors", lambda trial: trial.errors),
        repeated_steps=difference("repeated_steps", lambda trial: trial.repeated_steps),
        repeated_irreversible=difference("repeated_irreversible", lambda trial: trial.repeated_irreversible),
        bounds=_bounds(pairs),
    )


def difference_measure(
    pairs: Pairs, name: str, value: Callable[[Trial], float | None], unit: str, confidence: float
) -> Measure:
    """Mean difference over tasks; shares are bounded by 1, counts are not."""
    treated, control, missing = task_means(pairs, value)
    differences = [a - b for a, b in zip(treated, control, strict=True)]
    interval = mean_difference(differences, confidence=confidence, bound=1.0 if unit == "share" else None)
    n = len(differences)
    return Measure(
        name=name,
        kind="difference",
        unit=unit,  # type: ignore[arg-type]
        treated=mean(treated),
        control=mean(control),
        interval=interval,
        missing=missing,
        spread=adjusted_mean(np.asarray(differences))[1] * math.sqrt(n + 2) if n > 1 else None,
    )


def ratio_measure(
    pairs: Pairs, name: str, value: Callable[[Trial], float | None], unit: str, confidence: float
) -> Measure:
    """Ratio of geometric means over tasks. A value of 0 (nothing was answered, or no price) has no ratio: missing."""
    treated, control, missing = task_means(pairs, lambda trial: value(trial) or None)
    interval = ratio_of_geometric_means(treated, control, confidence=confidence)
    tasks = len(treated) + missing
    if missing and len(treated) < KNOWN_SHARE * tasks:
        interval = Interval(
            interval.estimate, None, None, interval.n, f"known for {len(treated)} of {tasks} tasks only"
        )
    logs = [math.log(a / b) for a, b in zip(treated, control, strict=True)]
    return Measure(
        name=name,
        kind="ratio",
        unit=unit,  # type: ignore[arg-type]
        treated=_geometric(treated),
        control=_geometric(control),
        interval=interval,
        missing=missing,
        spread=float(np.std(logs, ddof=1)) if len(logs) > 1 else None,
    )


def _geometric(values: list[float]) -> float | None:
    middle = mean(math.log(value) for value in values)
    return None if middle is None else math.exp(middle)


def _bounds(pairs: Pairs) -> Bounds | None:
    if not pairs.by_task:
        return None

    def unjudged(trial: Trial) -> bool:
        return trial.failed or trial.success is None

    def extreme(doubtful: Callable[[Trial], bool], treated_as: float, control_as: float) -> float:
        per_task = [
            math.fsum(
                (treated_as if doubtful(a) else a.outcome) - (control_as if doubtful(b) else b.outcome)
                for a, b in units
            )
            / len(units)
            for units in pairs.by_task.values()
        ]
        return math.fsum(per_task) / len(per_task)

    every = [trial for units in pairs.by_task.values() for both in units for trial in both]
    return Bounds(
        trials=sum(map(unjudged, every)),
        low=extreme(unjudged, 0.0, 1.0),
        high=extreme(unjudged, 1.0, 0.0),
        ungraded=sum(trial.ungraded for trial in every),
        ungraded_low=extreme(lambda trial: trial.ungraded, 0.0, 1.0),
    )


def secondary(
    trials: tuple[Trial, ...], arms: tuple[str, ...], primary: tuple[str, str], outcome: str, confidence: float
) -> tuple[Contrast, ...]:
    """The contrasts for attribution: every other arm against control, and treatment against every other arm.

    Their p-values are Holm-corrected among themselves; the primary contrast
    stands alone, as it was frozen.
    """
    treatment, control = primary
    others = [arm for arm in arms if arm not in primary]
    planned = [(arm, control) for arm in others] + [(treatment, arm) for arm in others]
    found = [contrast(trials, a, b, outcome, confidence) for a, b in planned]
    adjusted = holm([each.p_value for each in found])
    return tuple(_with_adjusted(each, p) for each, p in zip(found, adjusted, strict=True))


def _with_adjusted(each: Contrast, p_adjusted: float | None) -> Contrast:
    fields = {name: getattr(each, name) for name in each.__struct_fields__}
    return Contrast(**{**fields, "p_adjusted": p_adjusted})
