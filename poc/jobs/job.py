"""One piece of work as its folder tells it. Reads; starts and stops nothing."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from poc.errors import ExitCode, PocError
from poc.jobs.files import last_object, text_of
from poc.jobs.process import alive, signal_name
from poc.jobs.progress import Progress

State = Literal["running", "done", "failed", "cancelled", "lost"]

_ANSWERS = {ExitCode.OK, ExitCode.NO_GO, ExitCode.INCONCLUSIVE, ExitCode.SIMULATED, ExitCode.NOT_READY}
"""Exit codes that are an answer rather than a failure."""
_BIRTH_S = 10.0
"""A job without a pid counts as starting for so long."""


class Record(msgspec.Struct):
    """What ``job.json`` holds."""

    verb: str
    argv: list[str]
    started_at: str
    pid: int | None = None
    pid_started: str | None = None


class Job(msgspec.Struct, frozen=True):
    """One piece of work. Its properties read the folder anew each time, so an object never goes stale."""

    job_id: str
    folder: Path
    verb: str
    argv: tuple[str, ...]
    started_at: datetime

    @property
    def state(self) -> State:
        """Running, done (it gave an answer), failed (it said why), cancelled, or lost (it died without a word)."""
        code = self.exit_code
        if code is None:
            record = record_of(self.folder)
            if record is not None and record.pid is None and _age_s(self.folder) < _BIRTH_S:
                return "running"
            if record is not None and alive(record.pid, record.pid_started):
                return "running"
            # It may have ended between the two looks.
            code = self.exit_code
        if self.cancel_requested:
            return "cancelled"
        if code is None:
            return "lost"
        if code not in _ANSWERS or self.result is None or "error" in self.result:
            return "failed"
        return "done"

    @property
    def running(self) -> bool:
        """Whether its process is still there."""
        return self.state == "running"

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody asked it to stop."""
        return (self.folder / "cancel").exists()

    @property
    def exit_code(self) -> int | None:
        """The verb's exit code; minus the signal's number when one ended it; None while running or when lost."""
        text = text_of(self.folder / "exit")
        return int(text) if text else None

    @property
    def ended_at(self) -> datetime | None:
        """When it ended (UTC); None while running or when lost."""
        with suppress(FileNotFoundError):
            return datetime.fromtimestamp((self.folder / "exit").stat().st_mtime, UTC)
        return None

    @property
    def progress(self) -> Progress | None:
        """What the child last reported, or None."""
        text = text_of(self.folder / "progress.json")
        return msgspec.json.decode(text, type=Progress) if text else None

    @property
    def result(self) -> dict[str, Any] | None:
        """The JSON object that the verb printed; None when it printed none (yet)."""
        return last_object(text_of(self.folder / "stdout"))

    @property
    def error(self) -> PocError | None:
        """Why there is no result: what, where, what to do. None while running and after success."""
        state = self.state
        if state not in {"failed", "lost"}:
            return None
        said = self.result or last_object(text_of(self.folder / "stderr"))
        if said and said.get("error"):
            return PocError(str(said.get("what")), where=said.get("where"), todo=said.get("todo"))
        log = str(self.folder / "stderr")
        code = self.exit_code
        if state == "lost":
            return PocError(
                f"'{self.verb}' ended without a word: it was killed, ran out of memory, or the machine was restarted.",
                where=log,
                todo="Start it again; what it had stored by then is kept.",
            )
        if code is not None and code < 0:
            return PocError(
                f"'{self.verb}' was ended by {signal_name(-code)}.",
                where=log,
                todo="Start it again; check free memory.",
            )
        lines = [line for line in text_of(self.folder / "stderr").splitlines() if line.strip()]
        return PocError(
            f"'{self.verb}' failed: {lines[-1].strip() if lines else f'exit code {code}'}",
            where=log,
            todo="Look into that file; if it is a fault of this program, please report it.",
        )


def load(folder: Path) -> Job | None:
    """The job in this folder, or None where there is none."""
    record = record_of(folder)
    if record is None:
        return None
    return Job(
        job_id=folder.name,
        folder=folder,
        verb=record.verb,
        argv=tuple(record.argv),
        started_at=datetime.fromisoformat(record.started_at),
    )


def record_of(folder: Path) -> Record | None:
    """What was noted when the job was started; None where there is no job."""
    text = text_of(folder / "job.json")
    return msgspec.json.decode(text, type=Record) if text else None


def _age_s(folder: Path) -> float:
    return time.time() - (folder / "job.json").stat().st_mtime
