"""One proportion with its interval. Knows nothing of what was counted."""

from __future__ import annotations

import scipy  # loads its parts when they are first used

from poc.errors import InputError
from poc.stats.interval import Interval, checked_confidence


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> Interval:
    """A share of independent units with Wilson's score interval.

    Source: Wilson (1927), "Probable inference, the law of succession, and
    statistical inference", J. Am. Stat. Assoc. 22:209-212. No unit gives
    None throughout. Not for repeats of one task: they are not independent.
    """
    confidence = checked_confidence(confidence)
    if n < 0 or not 0 <= successes <= n:
        raise InputError(f"{successes} successes of {n} cannot be.", todo="Give 0 <= successes <= n.")
    if n == 0:
        return Interval(None, None, None, 0, "no units")
    ends = scipy.stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")
    return Interval(successes / n, float(ends.low), float(ends.high), n, "Wilson score")


def clopper_pearson(successes: int, n: int, *, confidence: float = 0.95) -> Interval:
    """A share of independent units with the exact interval, never too narrow.

    Source: Clopper & Pearson (1934), "The use of confidence or fiducial
    limits illustrated in the case of the binomial", Biometrika 26:404-413.
    """
    confidence = checked_confidence(confidence)
    if n < 0 or not 0 <= successes <= n:
        raise InputError(f"{successes} successes of {n} cannot be.", todo="Give 0 <= successes <= n.")
    if n == 0:
        return Interval(None, None, None, 0, "no units")
    ends = scipy.stats.binomtest(successes, n).proportion_ci(confidence, method="exact")
    return Interval(successes / n, float(ends.low), float(ends.high), n, "Clopper-Pearson exact")
