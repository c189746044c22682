"""What a plan can and cannot show: detectable differences and the tasks that are needed.

Works on the spread of per-task differences (treated minus control, repeats
averaged), so that a plan with repeats is priced rightly: repeats shrink the
noise of the draws, never the differences between tasks. Knows no plans.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import scipy  # loads its parts when they are first used

from poc.errors import InputError

_MOST_TASKS = 10_000_000


class Variance(msgspec.Struct, frozen=True):
    """The two parts of the spread of a per-task difference.

    `trial`: variance of one trial's outcome within one task and arm (for
    yes/no outcomes the mean of p(1-p) over tasks, at most 0.25).
    `effect`: variance over tasks of the true difference between the arms.
    """

    trial: float
    effect: float = 0.0

    def sd(self, repeats: int) -> float:
        """Standard deviation of a task's difference with `repeats` trials in each arm."""
        return math.sqrt(self.effect + 2 * self.trial / repeats)


TYPICAL = Variance(trial=0.15, effect=0.0025)
"""A guess for planning without data: tool-calling agents that are right about half of the time and moderately
consistent (two thirds of the 0.25 of a fair coin), with an effect that varies by 5 points between tasks."""


def variance_of_rates(success_rate: float, consistency: float = 0.4, effect_sd: float = 0.05) -> Variance:
    """The parts from a success rate and how alike repeats of one task are.

    `consistency` is the intraclass correlation of the outcome within tasks:
    0 when a task's repeats are like coin throws at the overall rate, 1 when
    every task always ends the same way.
    """
    if not 0 <= success_rate <= 1 or not 0 <= consistency <= 1 or effect_sd < 0:
        raise InputError(
            f"No such rates: success {success_rate}, consistency {consistency}, effect sd {effect_sd}.",
            todo="Give a success rate and a consistency from 0 to 1.",
        )
    return Variance(success_rate * (1 - success_rate) * (1 - consistency), effect_sd**2)


def variance_of_runs(outcomes_by_task: Iterable[Sequence[float]], effect_sd: float = 0.05) -> Variance | None:
    """The parts from logged outcomes (0..1), one list of repeats per task; None when no task has two runs.

    The within-task variance is pooled over tasks by their degrees of freedom
    (one-way analysis of variance); how much the effect will vary between
    tasks cannot be seen in a log and is taken from `effect_sd`.
    """
    squares, freedom = 0.0, 0
    for repeats in outcomes_by_task:
        if len(repeats) > 1:
            values = np.asarray(repeats, dtype=float)
            squares += float(((values - values.mean()) ** 2).sum())
            freedom += len(repeats) - 1
    return Variance(squares / freedom, effect_sd**2) if freedom else None


def power_of(
    difference: float, n_tasks: int, repeats: int = 1, *, variance: Variance = TYPICAL, alpha: float = 0.05
) -> float:
    """The chance that a two-sided paired t test at level `alpha` shows a true `difference` in its direction.

    Source: Cohen (1988), "Statistical Power Analysis for the Behavioral
    Sciences", ch. 2, by the noncentral t distribution.
    """
    _check(repeats, alpha)
    if n_tasks < 2:
        return 0.0
    sd = variance.sd(repeats)
    if sd == 0:
        return 1.0 if difference else alpha / 2
    edge = float(scipy.stats.t.ppf(1 - alpha / 2, n_tasks - 1))
    shift = abs(difference) / sd * math.sqrt(n_tasks)
    if shift > 37:  # the noncentral t of SciPy gives up there; the power is 1 to double precision
        return 1.0
    return float(scipy.stats.nct.sf(edge, n_tasks - 1, shift))


def detectable_difference(
    n_tasks: int,
    repeats: int = 1,
    *,
    variance: Variance = TYPICAL,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float | None:
    """The smallest true difference that `n_tasks` tasks show with the given power.

    In the unit of the outcome (0.11 is 11 points of success). None when not
    even the largest possible difference of a share, 1, would be shown.
    """
    _check(repeats, alpha, power)
    if n_tasks < 2 or power_of(1.0, n_tasks, repeats, variance=variance, alpha=alpha) < power:
        return None

    def short(difference: float) -> float:
        return power_of(difference, n_tasks, repeats, variance=variance, alpha=alpha) - power

    return float(scipy.optimize.brentq(short, 0.0, 1.0, xtol=1e-6))  # type: ignore[arg-type]


def tasks_needed(
    difference: float,
    repeats: int = 1,
    *,
    variance: Variance = TYPICAL,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int:
    """How many tasks show a true `difference` with the given power; at least 2.

    Raises `InputError` for a difference of 0, and for one so small that ten
    million tasks would not do.
    """
    _check(repeats, alpha, power)

    def enough(n: int) -> bool:
        return power_of(difference, n, repeats, variance=variance, alpha=alpha) >= power

    if difference == 0 or not enough(_MOST_TASKS):
        raise InputError(
            f"No affordable number of tasks shows a difference of {difference:g}.",
            todo="Ask for a larger difference.",
        )
    high = 2
    while not enough(high):
        high *= 2
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _check(repeats: int, alpha: float, power: float = 0.8) -> None:
    if repeats < 1 or not 0 < alpha < 1 or not 0 < power < 1:
        raise InputError(
            f"Power cannot be worked out with repeats {repeats}, alpha {alpha}, power {power}.",
            todo="Give at least one repeat, and alpha and power between 0 and 1.",
        )
