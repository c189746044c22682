"""How far a job is: written by the child, read by whoever watches. Knows no process."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from poc.jobs.files import write

JOB_DIRECTORY = "POC_JOB_DIR"
"""Environment variable that tells a child where to leave its progress."""


class Progress(msgspec.Struct, frozen=True):
    """How far a job is: `done` of `total` (None: unknown), what it is at, and when it said so (UTC)."""

    done: float
    total: float | None
    note: str | None
    at: str

    @property
    def fraction(self) -> float | None:
        """0..1, or None when the total is unknown."""
        if not self.total:
            return None
        return min(max(self.done / self.total, 0.0), 1.0)


_last_report = 0.0


def report_progress(done: float, total: float | None = None, note: str | None = None) -> None:
    """Leave word of how far this process is; does nothing outside a job. Cheap enough to call for every record.

    A progress file that cannot be written is no reason to stop the work.
    """
    global _last_report
    folder = os.environ.get(JOB_DIRECTORY)
    now = time.monotonic()
    if not folder or (now - _last_report < 0.1 and (total is None or done < total)):
        return
    _last_report = now
    with suppress(OSError):
        word = Progress(done=done, total=total, note=note, at=datetime.now(UTC).isoformat())
        write(Path(folder) / "progress.json", msgspec.json.encode(word).decode())
