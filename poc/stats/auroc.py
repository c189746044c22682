"""How well a score tells successes from failures, with an interval that knows runs of one task are alike.

Knows nothing of what the score is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import scipy  # loads its parts when they are first used

from poc.errors import InputError
from poc.stats.interval import Interval, checked_confidence, finite


def auroc(
    scores: Iterable[float],
    outcomes: Iterable[bool | int | float],
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
) -> Interval:
    """The chance that a random success scores above a random failure (ties count one half).

    `scores`: any finite numbers; `outcomes`: 1 or True for success, 0 or
    False for failure; `clusters`: the task of each run (None: every run its
    own). 0.5 means that the score tells nothing. `n` counts clusters.

    Variance: DeLong, DeLong & Clarke-Pearson (1988), "Comparing the areas
    under two or more correlated receiver operating characteristic curves",
    Biometrics 44:837-845, for clusters as in Obuchowski (1997), "Nonparametric
    analysis of clustered ROC curve data", Biometrics 53:567-578. The interval
    is taken on the logit scale, so it stays inside 0 to 1, with a t quantile
    for the number of clusters. A score that separates perfectly (or is
    constant) has no such variance; then it is the score-type interval of
    Newcombe (2006), "Confidence intervals for an effect size measure based on
    the Mann-Whitney statistic. Part 2", Stat. Med. 25:559-573 (method 5),
    counting clusters in place of runs.

    Raises `InputError` when successes or failures come from fewer than two
    clusters: nothing could then say how much another task would change.
    """
    confidence = checked_confidence(confidence)
    score = finite(scores, "scores")
    outcome = finite((float(value) for value in outcomes), "outcomes")
    groups = list(range(score.size)) if clusters is None else list(clusters)
    if not score.size == outcome.size == len(groups):
        raise InputError(
            f"{score.size} scores, {outcome.size} outcomes and {len(groups)} clusters do not belong together.",
            todo="Give one of each per run.",
        )
    if not np.all((outcome == 0) | (outcome == 1)):
        raise InputError(
            "An outcome between 0 and 1 is neither a success nor a failure.",
            todo="Say first from which value on a run counts as a success.",
        )
    names: dict[Hashable, int] = {}
    code = np.array([names.setdefault(group, len(names)) for group in groups], dtype=int)
    hit = outcome == 1
    holding = {name: len(set(code[mask].tolist())) for name, mask in (("success", hit), ("failure", ~hit))}
    for name, count in holding.items():
        if count < 2:
            raise InputError(
                f"Too few runs with a {name}: they come from {count} task(s), and at least 2 are needed.",
                todo="Import more runs of both outcomes, or merge this category with a similar one.",
            )
    m, n = int(hit.sum()), int((~hit).sum())
    # Structural components by midranks: Sun & Xu (2014), IEEE Signal Process. Lett. 21:1389-1393.
    ranks = scipy.stats.rankdata(score)
    v10 = (ranks[hit] - scipy.stats.rankdata(score[hit])) / n
    v01 = 1 - (ranks[~hit] - scipy.stats.rankdata(score[~hit])) / m
    area = float(v10.mean())
    size = len(names)
    per10 = np.bincount(code[hit], weights=v10 - area, minlength=size)
    per01 = np.bincount(code[~hit], weights=v01 - area, minlength=size)
    i10, i01 = holding["success"], holding["failure"]
    variance = (
        i10 / (i10 - 1) * float(per10 @ per10) / m**2
        + i01 / (i01 - 1) * float(per01 @ per01) / n**2
        + 2 * size / (size - 1) * float(per10 @ per01) / (m * n)
    )
    df = min(i10, i01) - 1
    if 0 < area < 1 and variance > 1e-12:
        centre = math.log(area / (1 - area))
        half = float(scipy.stats.t.ppf((1 + confidence) / 2, df)) * math.sqrt(variance) / (area * (1 - area))
        return Interval(
            area, _expit(centre - half), _expit(centre + half), size, "clustered DeLong, logit (Obuchowski)"
        )
    low, high = _newcombe(area, i10, i01, float(scipy.stats.norm.ppf((1 + confidence) / 2)))
    return Interval(area, low, high, size, "Newcombe method 5 on clusters")


def _expit(value: float) -> float:
    return 1 / (1 + math.exp(-min(max(value, -700.0), 700.0)))


def _newcombe(area: float, m: int, n: int, z: float) -> tuple[float, float]:
    """The areas at which the estimate lies z standard errors away; widths never vanish."""
    middle = (m + n) / 2 - 1

    def error(true: float) -> float:
        spread = (1 - true) / (2 - true) + true / (1 + true)
        return math.sqrt(true * (1 - true) * (1 + middle * spread) / (m * n))

    def gap_low(true: float) -> float:
        return area - true - z * error(true)

    def gap_high(true: float) -> float:
        return true - area - z * error(true)

    low = 0.0 if area <= 0 else float(scipy.optimize.brentq(gap_low, 0.0, area - 1e-12))  # type: ignore[arg-type]
    high = 1.0 if area >= 1 else float(scipy.optimize.brentq(gap_high, area + 1e-12, 1.0))  # type: ignore[arg-type]
    return max(0.0, low), min(1.0, high)
