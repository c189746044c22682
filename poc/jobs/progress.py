"""How far a job is: written by the child, read by whoever watches. Knows no process."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from poc.jobs.files import write

JOB_DIRECTORY = "POC_JOB_DIR"
"""Environment variable that tells a child where to leave its progress."""


class Progress(msgspec.Struct, frozen=True):
    """How far a job is: `done` of `total` (None: unknown), what it is at, and when it said so (UTC).

    unit: what is counted, where that is worth saying. per_s: how much of it was
    done in a second on average; None while it is too early to tell.
    """

    done: float
    total: float | None
    note: str | None
    at: str
    unit: Literal["bytes"] | None = None
    per_s: float | None = None

    @property
    def fraction(self) -> float | None:
        """0..1, or None when the total is unknown."""
        if not self.total:
            return None
        return min(max(self.done / self.total, 0.0), 1.0)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this rate; None when that cannot be told."""
        if not self.total or not self.per_s or self.done >= self.total:
            return None
        return (self.total - self.done) / self.per_s


_EARLY_S = 1.0
_last_report = 0.0
_first: tuple[float, float] | None = None
"""When the first report came, and how much was done then."""


def report_progress(
    done: float, total: float | None = None, note: str | None = None, *, unit: Literal["bytes"] | None = None
) -> None:
    """Leave word of how far this process is; does nothing outside a job. Cheap enough to call for every record.

    A progress file that cannot be written is no reason to stop the work.
    """
    global _last_report, _first
    folder = os.environ.get(JOB_DIRECTORY)
    now = time.monotonic()
    if _first is None or done < _first[1]:
        _first = (now, done)
    if not folder or (now - _last_report < 0.1 and (total is None or done < total)):
        return
    _last_report = now
    elapsed = now - _first[0]
    per_s = (done - _first[1]) / elapsed if elapsed >= _EARLY_S else None
    with suppress(OSError):
        at = datetime.now(UTC).isoformat()
        word = Progress(done=done, total=total, note=note, at=at, unit=unit, per_s=per_s or None)
        write(Path(folder) / "progress.json", msgspec.json.encode(word).decode())
