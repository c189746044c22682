"""What counts as an outcome: a value from 0 to 1, or a word that says success or failure."""

from __future__ import annotations

import math
from typing import Any

_GOOD = frozenset(
    {"1", "true", "yes", "success", "succeeded", "successful", "pass", "passed", "correct", "solved", "resolved"}
)
_BAD = frozenset({"0", "false", "no", "failure", "failed", "fail", "incorrect", "wrong", "unsolved", "unresolved"})


def read_outcome(value: Any) -> float | None:
    """The outcome 0..1 that `value` means, or None when it means none.

    >>> read_outcome("passed"), read_outcome(0.5), read_outcome(7)
    (1.0, 0.5, None)
    """
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        number = float(value)
        return number if math.isfinite(number) and 0.0 <= number <= 1.0 else None
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    if word in _GOOD:
        return 1.0
    if word in _BAD:
        return 0.0
    try:
        return read_outcome(float(word))
    except ValueError:
        return None
