"""An estimate with its interval: the shape in which every statistic of this package is handed on.

Knows no method; the function that makes an `Interval` names it in `method`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from poc.errors import InputError


class Interval(msgspec.Struct, frozen=True):
    """An estimate and what the data leave open about it.

    `n` counts the independent units (tasks, clusters), not the observations.
    `estimate` is None when there were no data at all; `low` and `high` are
    None when the data give no honest bound (then `method` says why). None of
    them is ever NaN.
    """

    estimate: float | None
    low: float | None
    high: float | None
    n: int
    method: str

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    def above(self, value: float) -> bool:
        """Whether the interval lies wholly above `value`; False when it has no lower end."""
        return self.low is not None and self.low > value

    def below(self, value: float) -> bool:
        """Whether the interval lies wholly below `value`; False when it has no upper end."""
        return self.high is not None and self.high < value

    def within(self, value: float) -> bool:
        """Whether the interval lies wholly at or below `value` (a limit that may be reached)."""
        return self.high is not None and self.high <= value


def finite(values: Iterable[float], what: str) -> np.ndarray:
    """The values as a float array; refuses NaN and infinities, which would spread silently."""
    array = np.asarray(list(values), dtype=float)
    if array.ndim != 1:
        raise InputError(f"The {what} must be a flat list of numbers.", todo="Give one number per task.")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(
            f"The {what} hold a value that is not a finite number.",
            where=f"position {int(bad[0])}",
            todo="Leave the tasks out whose value is unknown and report them as missing.",
        )
    return array


def checked_confidence(confidence: float) -> float:
    """`confidence` if it is a probability that makes sense for an interval, else `InputError`."""
    if not 0.5 <= confidence < 1.0:
        raise InputError(
            f"A confidence of {confidence} cannot be used.", todo="Give a number from 0.5 to below 1, such as 0.95."
        )
    return float(confidence)
