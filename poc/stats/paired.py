"""Tests of paired data by task, and the correction for testing several contrasts.

Knows no arms: numbers in, p-values out. p-values are two-sided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import scipy  # loads its parts when they are first used

from poc.errors import InputError
from poc.stats.interval import finite

_LATTICE = 240
"""Finest fraction of an outcome that is still summed exactly (repeats averaged per task give small denominators)."""
_DRAWS = 19_999


class TestResult(msgspec.Struct, frozen=True):
    """A two-sided p-value. `n` counts the tasks that differ, the only ones that can speak."""

    __test__ = False  # not a test case, whatever its name

    p_value: float
    n: int
    method: str


def mcnemar_exact(better: int, worse: int) -> TestResult:
    """Exact McNemar test of paired yes/no outcomes: `better` pairs rose, `worse` pairs fell.

    Source: McNemar (1947), "Note on the sampling error of the difference
    between correlated proportions or percentages", Psychometrika 12:153-157,
    in its exact binomial form. Without a differing pair p is 1.
    """
    if better < 0 or worse < 0:
        raise InputError("Counts of pairs cannot be negative.", todo="Give how many pairs rose and how many fell.")
    n = better + worse
    p_value = 1.0 if n == 0 else float(scipy.stats.binomtest(better, n, 0.5).pvalue)
    return TestResult(min(p_value, 1.0), n, "exact McNemar")


def sign_flip_test(differences: Iterable[float], *, seed: int = 0) -> TestResult:
    """Permutation test that the arms are exchangeable within each task.

    Under the null each task's difference is as likely to have either sign;
    p is the share of all sign patterns whose mean is at least as far from 0.
    Source: Fisher (1935), "The Design of Experiments", ch. 3; Good (2005),
    "Permutation, Parametric and Bootstrap Tests of Hypotheses", ch. 3.

    Exact whenever the differences are fractions with a small common
    denominator (yes/no outcomes averaged over repeats are), by summing the
    distribution of the total one task at a time, and for up to 14 differing
    tasks by listing every pattern; else by 19 999 draws with `seed`, counting
    the observed pattern among them as Phipson & Smyth (2010), "Permutation
    p-values should never be zero", Stat. Appl. Genet. Mol. Biol. 9:39.
    """
    values = finite(differences, "differences")
    sizes = np.abs(values[np.abs(values) > 1e-12])
    n = int(sizes.size)
    if n == 0:
        return TestResult(1.0, 0, "exact sign flip")
    observed = abs(float(values.sum()))
    units = _lattice(sizes)
    if units is not None:
        return TestResult(_by_convolution(units, values, sizes), n, "exact sign flip")
    edge = observed - 1e-9 * max(1.0, float(sizes.sum()))
    if n <= 14:
        patterns = np.array(np.meshgrid(*[[-1.0, 1.0]] * n)).reshape(n, -1)
        return TestResult(float(np.mean(np.abs(sizes @ patterns) >= edge)), n, "exact sign flip")
    rng = np.random.default_rng(seed)
    hits = 0
    for start in range(0, _DRAWS, 1000):
        signs = rng.integers(0, 2, size=(min(1000, _DRAWS - start), n)) * 2 - 1
        hits += int(np.sum(np.abs(signs @ sizes) >= edge))
    return TestResult((hits + 1) / (_DRAWS + 1), n, f"sign flip, {_DRAWS} draws")


def _lattice(sizes: np.ndarray) -> np.ndarray | None:
    """The sizes as whole multiples of 1/q for the smallest fitting q, or None."""
    for q in range(1, _LATTICE + 1):
        scaled = sizes * q
        whole = np.rint(scaled)
        if np.all(np.abs(scaled - whole) < 1e-7) and whole.sum() <= 2_000_000 / max(1, sizes.size):
            return whole.astype(int)
    return None


def _by_convolution(units: np.ndarray, values: np.ndarray, sizes: np.ndarray) -> float:
    total = int(units.sum())
    # Sum of the units with a plus sign: signed total = 2 * plus - total.
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    reach = 0
    for unit in units:
        shifted = np.zeros(total + 1)
        shifted[unit : reach + unit + 1] = chance[: reach + 1]
        chance = 0.5 * chance + 0.5 * shifted
        reach += int(unit)
    scale = total / float(sizes.sum())
    observed = round(abs(float(values.sum())) * scale)
    totals = np.abs(2 * np.arange(total + 1) - total)
    return float(min(1.0, chance[totals >= observed].sum()))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment, in the order given.

    Source: Holm (1979), "A simple sequentially rejective multiple test
    procedure", Scand. J. Stat. 6:65-70. A contrast without a p-value stays
    None but still counts, since it was planned.
    """
    known = [(p, place) for place, p in enumerate(p_values) if p is not None]
    for p, place in known:
        if not 0 <= p <= 1:
            raise InputError(f"{p} is not a p-value.", where=f"position {place}")
    adjusted: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for rank, (p, place) in enumerate(sorted(known)):
        floor = max(floor, min(1.0, p * (len(p_values) - rank)))
        adjusted[place] = floor
    return adjusted
