"""Times as logs write them: ISO text with or without a zone, or epoch numbers of any unit.

The magnitude of a number tells its unit (about 1e9 seconds, 1e12 milli-,
1e15 micro-, 1e18 nanoseconds). A zone is never guessed: a time without one is
stored as if UTC and flagged. Knows no format and no table.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e-3), (1e14, 1e17, 1e-6), (1e17, 1e20, 1e-9))
_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\s*")
_LOOSE = re.compile(r"(\d{4})[/.](\d{1,2})[/.](\d{1,2})")


def parse_time(value: Any) -> tuple[datetime | None, bool | None]:
    """The time in UTC, and whether the log named its zone; (None, None) for what is no time.

    >>> parse_time("2024-05-15T15:00:00")[1]
    False
    >>> parse_time(1715785200000)[0].isoformat()
    '2024-05-15T15:00:00+00:00'
    """
    if value is None or isinstance(value, bool):
        return None, None
    if isinstance(value, int | float):
        return _from_epoch(value)
    if isinstance(value, datetime):
        return _zoned(value)
    if not isinstance(value, str):
        return None, None
    text = value.strip()
    if text[4:5] == "-" and text[7:8] == "-":  # ISO 8601: the usual case, without detour
        try:
            return _zoned(datetime.fromisoformat(text))
        except ValueError:
            pass
    if _NUMBER.fullmatch(text) and not (len(text) == 8 and text.isdigit()):  # 20240515 is a date
        return _from_epoch(int(text) if text.lstrip("+-").isdigit() and len(text) < 25 else float(text))
    if text.endswith(" UTC") or text.endswith(" GMT"):
        text = text[:-4] + "+00:00"
    text = _LOOSE.sub(lambda m: f"{m[1]}-{int(m[2]):02d}-{int(m[3]):02d}", text, count=1)
    try:
        return _zoned(datetime.fromisoformat(text))
    except ValueError:
        return None, None


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds from `start` to `end`; None when either is unknown or the end comes first."""
    if start is None or end is None:
        return None
    seconds = (end - start).total_seconds()
    return seconds if seconds >= 0 else None


def _zoned(time: datetime) -> tuple[datetime | None, bool | None]:
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC), False
    if time.tzinfo is UTC:
        return time, True
    try:
        return time.astimezone(UTC), True
    except OverflowError:
        return None, None


def _from_epoch(number: int | float) -> tuple[datetime | None, bool | None]:
    micros = _micros(number)
    if micros is None:
        return None, None
    try:
        return _EPOCH + timedelta(microseconds=micros), True
    except OverflowError:  # thousands of years before our era
        return None, None


def _micros(number: int | float) -> int | None:
    size = abs(number)
    if isinstance(number, int):  # integers keep their microseconds: a float of nanoseconds would lose some 256 ns
        if size >= 10**17:
            return number // 1000 if size < 10**20 else None
        if size >= 10**11:
            return number if size >= 10**14 else number * 1000
        return number * 1_000_000 if size >= 10**8 else None
    if math.isfinite(number):
        for low, high, unit in _UNITS:
            if low <= size < high:
                return round(number * 1_000_000 if unit == 1.0 else number * unit * 1e6)
    return None
