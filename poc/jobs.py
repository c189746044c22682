"""Long work in a process of its own: progress, cancel, survives a reload and a restart.

A job is one verb of the shell (``python -m poc.cli <verb> ... --json``),
started detached. All that is known of it lies in a folder beside the
workspace, ``<workspace>.files/jobs/<id>/``:

==================  =====================================================
``job.json``        verb, arguments, pid and its start time; never a key
``progress.json``   written by the child through `report_progress`
``stdout``          the verb's one JSON object
``stderr``          what it said besides
``cancel``          present once a stop was asked for
``exit``            the exit code, written by a small supervisor
==================  =====================================================

So any process, also one started later, can tell how a job is doing. A child
that died without a word (killed, out of memory, machine restarted) has no
``exit`` and no process with the recorded pid *and* start time: it is shown as
lost, not as running. Keys reach the child through its environment only.

Does not know what any verb does.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from poc.errors import ExitCode, InputError, PocError, WorkspaceError
from poc.workspace import Workspace

__all__ = ["JOB_DIRECTORY", "Job", "Progress", "cancel", "get", "jobs", "latest", "report_progress", "start"]

JOB_DIRECTORY = "POC_JOB_DIR"
"""Environment variable that tells a child where to leave its progress."""

State = Literal["running", "done", "failed", "cancelled", "lost"]

_PROGRAM = (sys.executable, "-m", "poc.cli")
_KEEP_FINISHED = 60
_ANSWERS = {ExitCode.OK, ExitCode.NO_GO, ExitCode.INCONCLUSIVE, ExitCode.SIMULATED, ExitCode.NOT_READY}
"""Exit codes that are an answer rather than a failure."""

# Run with -I -S, so that it starts in milliseconds and holds no memory. It resets SIGINT, which a shell that puts
# programs into the background leaves ignored, and outlives the signals that are meant for the child.
_SUPERVISOR = """
import os, signal, subprocess, sys
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
held = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, held)
unblock = lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, held)
child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, preexec_fn=unblock)
code = child.wait()
with open(sys.argv[1] + ".part", "w") as file:
    file.write(str(code))
os.replace(sys.argv[1] + ".part", sys.argv[1])
"""


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


class _Record(msgspec.Struct):
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
            record = _record(self.folder)
            if record is not None and record.pid is None and _age_s(self.folder) < 10:
                return "running"
            if record is not None and _alive(record):
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
        text = _text(self.folder / "exit")
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
        text = _text(self.folder / "progress.json")
        return msgspec.json.decode(text, type=Progress) if text else None

    @property
    def result(self) -> dict[str, Any] | None:
        """The JSON object that the verb printed; None when it printed none (yet)."""
        return _last_object(_text(self.folder / "stdout"))

    @property
    def error(self) -> PocError | None:
        """Why there is no result: what, where, what to do. None while running and after success."""
        state = self.state
        if state not in {"failed", "lost"}:
            return None
        said = self.result or _last_object(_text(self.folder / "stderr"))
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
                f"'{self.verb}' was ended by {_signal_name(-code)}.",
                where=log,
                todo="Start it again; check free memory.",
            )
        lines = [line for line in _text(self.folder / "stderr").splitlines() if line.strip()]
        return PocError(
            f"'{self.verb}' failed: {lines[-1].strip() if lines else f'exit code {code}'}",
            where=log,
            todo="Look into that file; if it is a fault of this program, please report it.",
        )


def start(
    workspace: Workspace, verb: str, argv: Sequence[str] = (), *, secrets: Mapping[str, str] | None = None
) -> Job:
    """Start ``poc <verb> --workspace <file> --json <argv>`` as a process of its own.

    `secrets` are environment variables for the child (keys); they are written
    nowhere. While the very same work is still running, that job is returned
    and nothing is started, so a second click or a second tab does no harm.

    Raises `InputError` when an argument contains a secret, `WorkspaceError`
    when the folder beside the workspace cannot be written.
    """
    secrets = {name: value for name, value in (secrets or {}).items() if value}
    for value in secrets.values():
        if any(value in argument for argument in argv):
            raise InputError(
                "A key was given as an argument.", where=verb, todo="Give it in the masked key field only."
            )
    try:
        workspace.path.parent.mkdir(parents=True, exist_ok=True)
        root = _root(workspace)
        with (root / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for job in jobs(workspace):
                if job.verb == verb and job.argv == tuple(argv) and job.running:
                    return job
            _prune(workspace)
            return _launch(workspace, root, verb, list(argv), secrets)
    except OSError as error:
        raise WorkspaceError(
            f"The work cannot be started: {error.strerror}.",
            where=str(workspace.path.parent),
            todo="Check the permissions of this folder and the free space.",
        ) from error


def jobs(workspace: Workspace, verb: str | None = None) -> list[Job]:
    """All jobs of a workspace (of one verb, when given), newest first."""
    root = workspace.path.with_name(workspace.path.name + ".files") / "jobs"
    if not root.is_dir():
        return []
    found = [job for folder in root.iterdir() if (job := _load(folder)) is not None]
    found.sort(key=lambda job: (job.started_at, job.job_id), reverse=True)
    return [job for job in found if verb is None or job.verb == verb]


def latest(workspace: Workspace, verb: str) -> Job | None:
    """The newest job of one verb, or None."""
    return next(iter(jobs(workspace, verb)), None)


def get(workspace: Workspace, job_id: str) -> Job:
    """The job of this id. Raises `InputError` when there is none."""
    for job in jobs(workspace):
        if job.job_id == job_id:
            return job
    raise InputError(f"There is no job '{job_id}'.", where=str(workspace.path), todo="It may have been tidied away.")


def cancel(job: Job, *, grace_s: float = 20.0, force: bool = False) -> bool:
    """Ask a job to stop: SIGINT now, SIGTERM after `grace_s` seconds, SIGKILL after as long again.

    `force` skips the first grace. Only a process with the recorded pid and
    start time is signalled. Returns False when it was not running any more.
    """
    record = _record(job.folder)
    if record is None or not job.running:
        return False
    _write(job.folder / "cancel", datetime.now(UTC).isoformat())
    signals = [signal.SIGTERM, signal.SIGKILL] if force else [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    if not _signal(record, signals[0]):
        return False

    def insist() -> None:
        for number in signals[1:]:
            deadline = time.monotonic() + grace_s
            while time.monotonic() < deadline:
                if not _alive(record):
                    return
                time.sleep(0.1)
            _signal(record, number)

    threading.Thread(target=insist, name=f"cancel-{job.job_id}", daemon=True).start()
    return True


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
        _write(Path(folder) / "progress.json", msgspec.json.encode(word).decode())


# --- folders ---------------------------------------------------------------------------------------------------------


def _root(workspace: Workspace) -> Path:
    root = workspace.files / "jobs"
    root.mkdir(exist_ok=True)
    return root


def _launch(workspace: Workspace, root: Path, verb: str, argv: list[str], secrets: Mapping[str, str]) -> Job:
    now = datetime.now(UTC)
    folder = root / f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    record = _Record(verb=verb, argv=argv, started_at=now.isoformat())
    _write(folder / "job.json", msgspec.json.encode(record).decode())
    command = [*_PROGRAM, *verb.split(), "--workspace", str(workspace.path), "--json", *argv]
    package = str(Path(__file__).resolve().parents[1])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | dict(secrets) | {JOB_DIRECTORY: str(folder), "PYTHONPATH": os.pathsep.join(paths)}
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SUPERVISOR, str(folder / "exit"), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
        )
    record.pid = process.pid
    record.pid_started = _started(process.pid)
    _write(folder / "job.json", msgspec.json.encode(record).decode())
    # Reaps the child when it ends, so that no zombie looks alive.
    threading.Thread(target=process.wait, name=f"job-{folder.name}", daemon=True).start()
    return Job(job_id=folder.name, folder=folder, verb=verb, argv=tuple(argv), started_at=now)


def _load(folder: Path) -> Job | None:
    record = _record(folder)
    if record is None:
        return None
    return Job(
        job_id=folder.name,
        folder=folder,
        verb=record.verb,
        argv=tuple(record.argv),
        started_at=datetime.fromisoformat(record.started_at),
    )


def _record(folder: Path) -> _Record | None:
    text = _text(folder / "job.json")
    return msgspec.json.decode(text, type=_Record) if text else None


def _prune(workspace: Workspace) -> None:
    """Tidy away the oldest finished jobs."""
    finished = [job for job in jobs(workspace) if not job.running]
    for job in finished[_KEEP_FINISHED:]:
        shutil.rmtree(job.folder, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _text(path: Path) -> str:
    with suppress(FileNotFoundError, NotADirectoryError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def _age_s(folder: Path) -> float:
    return time.time() - (folder / "job.json").stat().st_mtime


def _last_object(text: str) -> dict[str, Any] | None:
    """The JSON object that is the whole of `text`, or else of its last line."""
    lines = text.strip().splitlines()
    for candidate in (text, lines[-1] if lines else ""):
        with suppress(ValueError):
            value = json.loads(candidate)
            if isinstance(value, dict):
                return value
    return None


# --- processes -------------------------------------------------------------------------------------------------------


def _alive(record: _Record) -> bool:
    """Whether the recorded process still runs: same pid and same start, since pids are used again."""
    return record.pid is not None and record.pid_started is not None and _started(record.pid) == record.pid_started


def _signal(record: _Record, number: signal.Signals) -> bool:
    """Signal the job's whole process group, which its supervisor leads."""
    if not _alive(record) or record.pid is None:
        return False
    with suppress(ProcessLookupError):
        os.killpg(record.pid, number)
        return True
    return False


def _started(pid: int) -> str | None:
    """When a process began, in a form that no other process with this pid shares; None when it is gone or a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # The name in brackets may hold spaces and brackets: the fields start after the last one.
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else f"{_boot()}:{fields[19]}"
    shown = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return None if len(shown) < 2 or shown[0].startswith("Z") else shown[1].strip()


@cache
def _boot() -> str:
    return _text(Path("/proc/sys/kernel/random/boot_id")).strip()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
