"""Starting, finding and stopping jobs. Knows no verb's meaning."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from poc.errors import InputError, WorkspaceError
from poc.jobs.files import write
from poc.jobs.job import Job, Record, load, record_of
from poc.jobs.process import alive, signal_group, started
from poc.jobs.progress import JOB_DIRECTORY
from poc.workspace import Workspace

_PROGRAM = (sys.executable, "-m", "poc.cli")
_KEEP_FINISHED = 60

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
    found = [job for folder in root.iterdir() if (job := load(folder)) is not None]
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
    record = record_of(job.folder)
    if record is None or not job.running:
        return False
    write(job.folder / "cancel", datetime.now(UTC).isoformat())
    signals = [signal.SIGTERM, signal.SIGKILL] if force else [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    if not signal_group(record.pid, record.pid_started, signals[0]):
        return False

    def insist() -> None:
        for number in signals[1:]:
            deadline = time.monotonic() + grace_s
            while time.monotonic() < deadline:
                if not alive(record.pid, record.pid_started):
                    return
                time.sleep(0.1)
            signal_group(record.pid, record.pid_started, number)

    threading.Thread(target=insist, name=f"cancel-{job.job_id}", daemon=True).start()
    return True


def _root(workspace: Workspace) -> Path:
    root = workspace.files / "jobs"
    root.mkdir(exist_ok=True)
    return root


def _launch(workspace: Workspace, root: Path, verb: str, argv: list[str], secrets: Mapping[str, str]) -> Job:
    now = datetime.now(UTC)
    folder = root / f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    record = Record(verb=verb, argv=argv, started_at=now.isoformat())
    write(folder / "job.json", msgspec.json.encode(record).decode())
    command = [*_PROGRAM, *verb.split(), "--workspace", str(workspace.path), "--json", *argv]
    package = str(Path(__file__).resolve().parents[2])
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
    record.pid_started = started(process.pid)
    write(folder / "job.json", msgspec.json.encode(record).decode())
    # Reaps the child when it ends, so that no zombie looks alive.
    threading.Thread(target=process.wait, name=f"job-{folder.name}", daemon=True).start()
    return Job(job_id=folder.name, folder=folder, verb=verb, argv=tuple(argv), started_at=now)


def _prune(workspace: Workspace) -> None:
    """Tidy away the oldest finished jobs."""
    finished = [job for job in jobs(workspace) if not job.running]
    for job in finished[_KEEP_FINISHED:]:
        shutil.rmtree(job.folder, ignore_errors=True)
