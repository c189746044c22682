"""How each measure of a comparison is written: its level in an arm, its difference or ratio, its unit.

Knows the units of `poc.verdict.numbers.Measure` and no language.
"""

from __future__ import annotations

from collections.abc import Callable

from poc.report.numbers import DASH, decimal, percent, points, ratio, seconds, usd, whole
from poc.verdict import Criterion, Measure

Write = Callable[[float | None], str]


def signed(value: float | None) -> str:
    """A difference of counts.

    >>> signed(0.25)
    '+0.25'
    """
    return decimal(value, 2, sign=True)


def level_of(measure: Measure) -> Write:
    """How the mean of one arm is written."""
    match measure.unit:
        case "share":
            return lambda value: percent(value, 1)
        case "seconds":
            return seconds
        case "tokens":
            return whole
        case "usd":
            return usd
        case _:
            return lambda value: decimal(value, 2)


def value_of(measure: Measure) -> Write:
    """How the difference or the ratio is written."""
    if measure.kind == "ratio":
        return ratio
    return points if measure.unit == "share" else signed


def signed_per_100(value: float | None) -> str:
    """A difference per trial, written per 100 trials."""
    return DASH if value is None else decimal(value * 100, 1, sign=True)


def level_per_100(value: float | None) -> str:
    """A count per trial, written per 100 trials."""
    return DASH if value is None else decimal(value * 100, 1)


def write_of(criterion: Criterion) -> Write:
    """How a criterion's figures are written."""
    return {"points": points, "ratio": ratio}.get(criterion.unit, signed)
