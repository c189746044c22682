"""Paired comparisons of two arms over tasks: mean differences and ratios of geometric means.

A task is the unit: its repeats are averaged first, so that repeats never pass
for independent tasks. Knows neither arms nor tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import scipy  # loads its parts when they are first used

from poc.errors import InputError
from poc.stats.interval import Interval, checked_confidence, finite

_ADJUSTED = "adjusted paired t (Bonett-Price)"
_LOG_T = "paired t of log ratios"


def mean_difference(differences: Iterable[float], *, confidence: float = 0.95, bound: float | None = 1.0) -> Interval:
    """The mean of per-task differences with an interval that holds its level when few tasks differ.

    `differences`: one number per task, treated minus control, in the unit of
    the outcome (shares: -1 to 1). `bound` is the largest size that a
    difference can have (1 for shares); None for counts, which have no bound.

    Method: a Student t interval on the task differences to which two
    imagined tasks have been added, one better by 1 and one worse by 1. For a
    single trial per task this is the adjusted interval for paired
    proportions of Bonett & Price (2012), "Adjusted Wald confidence interval
    for a difference of binomial proportions based on paired data", J. Educ.
    Behav. Stat. 37:479-488, itself near Agresti & Min (2005), "Simple
    improved confidence intervals for comparing matched proportions", Stat.
    Med. 24:729-740; Fagerland, Lydersen & Laake (2014), "Recommended tests
    and confidence intervals for paired binomial proportions", Stat. Med.
    33:2850-2875, recommend it. The plain t interval is far too narrow when
    most tasks are ties, and has no width when all are. The t quantile (n - 1
    degrees of freedom) replaces the normal one, since 30 tasks are few.

    `estimate` is the plain mean; the interval is centred nearer to 0. All
    ties give a finite width (about 2.8/n), one task gives the whole range
    (or no bounds when `bound` is None), no task gives None throughout.
    Raises `InputError` for values beyond `bound` or not finite.
    """
    confidence = checked_confidence(confidence)
    values = finite(differences, "differences")
    n = int(values.size)
    if n == 0:
        return Interval(None, None, None, 0, "no tasks")
    if bound is not None and np.max(np.abs(values)) > bound * (1 + 1e-12):
        raise InputError(
            f"A difference of {float(values[np.argmax(np.abs(values))]):g} lies outside -{bound:g} to {bound:g}.",
            todo="Give differences of shares, or bound=None for counts.",
        )
    estimate = float(values.mean())
    if n == 1:
        if bound is None:
            return Interval(estimate, None, None, 1, "one task: no bounds")
        return Interval(estimate, -float(bound), float(bound), 1, "one task: the whole range")
    centre, error = adjusted_mean(values)
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    # At low confidence the shrunken centre could leave the estimate outside.
    low, high = min(centre - half, estimate), max(centre + half, estimate)
    if bound is not None:
        low, high = max(low, -float(bound)), min(high, float(bound))
    return Interval(estimate, low, high, n, _ADJUSTED)


def adjusted_mean(values: np.ndarray) -> tuple[float, float]:
    """Centre and standard error of the differences with one imagined +1 and one imagined -1 added."""
    padded = np.concatenate([values, [1.0, -1.0]])
    return float(padded.mean()), float(padded.std(ddof=1) / math.sqrt(padded.size))


def ratio_of_geometric_means(
    treated: Iterable[float], control: Iterable[float], *, confidence: float = 0.95
) -> Interval:
    """How many times as large the treated values are, paired by task, with an interval.

    `treated`, `control`: one positive number per task in the same order and
    unit (seconds, tokens). Method: Student t interval of the mean log ratio,
    exponentiated, the usual one for skewed positive costs; Julious & Debarnot
    (2000), "Why are pharmacokinetic data summarized by arithmetic means?",
    J. Biopharm. Stat. 10:55-71 for the geometric mean's meaning.

    `low` and `high` are None with fewer than two tasks, and when all ratios
    are equal: a ratio has no natural bound, so nothing would say how far it
    could still move. Raises `InputError` for unequal lengths and for values
    that are not positive.
    """
    confidence = checked_confidence(confidence)
    top, bottom = finite(treated, "treated values"), finite(control, "control values")
    if top.size != bottom.size:
        raise InputError(
            f"{top.size} treated and {bottom.size} control values cannot be paired.", todo="Give one of each per task."
        )
    n = int(top.size)
    if n == 0:
        return Interval(None, None, None, 0, "no tasks")
    if top.min() <= 0 or bottom.min() <= 0:
        raise InputError(
            "A ratio needs positive values.", todo="Leave the tasks out whose value is unknown and report them."
        )
    logs = np.log(top) - np.log(bottom)
    estimate = math.exp(float(logs.mean()))
    if n == 1:
        return Interval(estimate, None, None, 1, "one task: no bounds")
    error = float(logs.std(ddof=1)) / math.sqrt(n)
    if error <= 1e-12:
        return Interval(estimate, None, None, n, "all ratios equal: no bounds")
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    centre = float(logs.mean())
    # Beyond e^700 a float ends; such a bound says nothing anyway.
    if abs(centre) + half > 700:
        return Interval(estimate, None, None, n, "spread too large: no bounds")
    return Interval(estimate, math.exp(centre - half), math.exp(centre + half), n, _LOG_T)
