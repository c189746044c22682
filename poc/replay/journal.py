"""The append-only journal of a running experiment.

One JSONL file an experiment, beside the workspace. A finished call is in it
before the next one begins, so that a crash at any moment loses at most the
model calls in flight. Lines are written whole with one `write` to a file
opened for appending: they survive the death of the process at once, and the
death of the machine after each trial's end (fsync).

A line that a crash tore is passed over and reported. One process at a time
may write: a lock file beside the journal is held through `flock`, which the
system lets go when the process dies, however it dies.

Does not know what the records mean for a trial or a table.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from poc.errors import InputError, WorkspaceBusy, WorkspaceError
from poc.replay.records import VERSION, Header, Record, decode, encode
from poc.workspace import Workspace

_FOLDER = "journals"
_LOCK_PATIENCE_S = 0.3


class Journal(msgspec.Struct, frozen=True):
    """What a journal file held when it was read. `torn` are line numbers (from 1) that could not be read."""

    records: tuple[Record, ...] = ()
    torn: tuple[int, ...] = ()

    @property
    def header(self) -> Header | None:
        """The first record, or None for an empty journal."""
        return next((record for record in self.records if isinstance(record, Header)), None)


def journal_path(workspace: Workspace, experiment_id: str) -> Path:
    """Where the journal of an experiment lies, whether or not it is there yet."""
    return workspace.files / _FOLDER / f"{experiment_id}.jsonl"


def read_journal(path: Path) -> Journal:
    """All whole records of a journal; an empty one when there is no file. Safe while another process writes.

    Raises `WorkspaceError` when the file cannot be read, or was written by a
    newer version of this program.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Journal()
    except OSError as error:
        raise WorkspaceError(f"The journal cannot be read: {error.strerror}.", where=str(path)) from error
    records: list[Record] = []
    torn: list[int] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line:
            continue
        try:
            records.append(decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            torn.append(number)
    journal = Journal(tuple(records), tuple(torn))
    if journal.header is not None and journal.header.version > VERSION:
        raise WorkspaceError(
            f"The journal was written by a newer version of this program ({journal.header.version} > {VERSION}).",
            where=str(path),
            todo="Update the program.",
        )
    return journal


class JournalWriter:
    """Appends records. Open one with `open_journal`."""

    def __init__(self, handle: int, path: Path) -> None:
        self._handle = handle
        self.path = path
        self.listener: Callable[[Record], None] | None = None
        """Told of every record after it was written."""

    def write(self, record: Record, *, sync: bool = False) -> None:
        """Append one record; it is with the system when this returns, and on the disk with `sync`.

        Raises `WorkspaceError` when it could not be written whole: then the
        experiment must stop, for the next call might be paid and not recorded.
        """
        line = encode(record)
        try:
            written = os.write(self._handle, line)
            if sync:
                os.fsync(self._handle)
        except OSError as error:
            raise self._failed(error) from error
        if written != len(line):
            raise self._failed(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        if self.listener is not None:
            self.listener(record)

    def _failed(self, error: OSError) -> WorkspaceError:
        return WorkspaceError(
            f"The journal cannot be written: {error.strerror}. The experiment was stopped; what was recorded is kept.",
            where=str(self.path),
            todo="Free some space or check the permissions, then resume.",
        )


@contextmanager
def open_journal(path: Path, header: Header) -> Iterator[tuple[JournalWriter, Journal]]:
    """Take the journal for this process: a writer, and what it already held.

    Raises `WorkspaceBusy` naming the process that has it, `InputError` when
    the journal belongs to another plan.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise WorkspaceError(
            f"The journal's folder cannot be written: {error.strerror}.",
            where=str(path.parent),
            todo="Check the permissions of the workspace's folder.",
        ) from error
    try:
        if not _locked(lock):
            raise WorkspaceBusy(
                f"This experiment is already running in process {_pid_in(lock) or 'unknown'}.",
                where=str(path),
                todo="Wait until it is done, or stop that process and resume.",
            )
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield from _held(path, header)
    finally:
        os.close(lock)


def _held(path: Path, header: Header) -> Iterator[tuple[JournalWriter, Journal]]:
    journal = read_journal(path)
    if journal.header is not None and journal.header.plan_hash != header.plan_hash:
        raise InputError(
            "The journal belongs to another plan than the experiment in the workspace.",
            where=str(path),
            todo="Plan a new experiment; a plan never changes after its first call.",
        )
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise WorkspaceError(f"The journal cannot be opened: {error.strerror}.", where=str(path)) from error
    try:
        writer = JournalWriter(handle, path)
        size = os.fstat(handle).st_size
        if size and _last_byte(path, size) != b"\n":
            # A torn last line gets its line end, so that what follows stands on a line of its own.
            os.write(handle, b"\n")
        if journal.header is None:
            writer.write(header, sync=True)
        yield writer, journal
        os.fsync(handle)
    finally:
        os.close(handle)


def running_pid(path: Path) -> int | None:
    """The process that holds the journal now, or None when nobody does."""
    try:
        lock = os.open(_lock_path(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid_in(lock) or 0
    finally:
        os.close(lock)
    return None


def _locked(lock: int) -> bool:
    # A status page looks at the lock for an instant (`running_pid`): that is no reason to give up.
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _pid_in(lock: int) -> int | None:
    text = os.pread(lock, 32, 0)
    return int(text) if text.isdigit() else None


def _last_byte(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1)
