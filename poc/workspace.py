"""The one door to DuckDB: open, migrate, lock, transactions.

A workspace is one DuckDB file; the tables are in ``schema.sql``. While one
process holds a writer, DuckDB lets no other process open the file, not even
to read. So nobody keeps a connection: every read and every write opens the
file, does its work and closes it (about 30 ms), and waits for its turn.
Inside one process threads share an instance through cursors, since DuckDB
allows only one configuration per process and file.

Beside the file lies a folder ``<name>.files`` for what is not a table:
journals of running experiments, job states, staging files.

Does not know what any table means.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb

from poc.errors import WorkspaceBusy, WorkspaceError

if TYPE_CHECKING:
    import pandas as pd  # only what a frame is; it takes long to load

SCHEMA_VERSION = 2
_SCHEMA = Path(__file__).with_name("schema.sql")
_MIGRATIONS: dict[int, str] = {
    1: "CREATE TABLE run_parts (run_id VARCHAR NOT NULL, source_id VARCHAR NOT NULL, records BIGINT NOT NULL)",
}
"""SQL that lifts a workspace from version n to n + 1."""

Connection = duckdb.DuckDBPyConnection
_Mode = Literal["read", "write"]


class _Instance:
    """The open database of one file inside this process, shared by its threads."""

    def __init__(self) -> None:
        self.turn = threading.Condition()
        self.root: Connection | None = None
        self.mode: _Mode = "read"
        self.users = 0
        self.writers_waiting = 0


_instances: dict[Path, _Instance] = {}
_instances_guard = threading.Lock()


def _instance(path: Path) -> _Instance:
    with _instances_guard:
        return _instances.setdefault(path, _Instance())


class Workspace:
    """A DuckDB file with everything a team's evaluation knows.

    Open one with `Workspace.open`. The object holds no connection and may be
    shared between threads.
    """

    def __init__(self, path: Path, *, wait_s: float = 15.0) -> None:
        self.path = path
        self.wait_s = wait_s

    def __repr__(self) -> str:
        return f"Workspace({str(self.path)!r})"

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = True, wait_s: float = 15.0) -> Workspace:
        """Open a workspace file, create it when absent, lift it to the current version.

        Raises `WorkspaceError` when the file is no workspace, is newer than
        this program, or cannot be written; `WorkspaceBusy` when another
        process holds it for longer than `wait_s` seconds.
        """
        workspace = cls(Path(path).expanduser().resolve(), wait_s=wait_s)
        if workspace.path.is_dir():
            raise WorkspaceError(
                "The workspace path is a directory.",
                where=str(workspace.path),
                todo="Give the path of a file, for example workspace.duckdb.",
            )
        if not workspace.path.exists():
            if not create:
                raise WorkspaceError(
                    "There is no workspace at this path.",
                    where=str(workspace.path),
                    todo="Check the path, or import a log to create it.",
                )
            try:
                workspace.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise WorkspaceError(
                    f"The workspace's folder cannot be made: {error.strerror}.",
                    where=str(workspace.path.parent),
                    todo="Choose a folder that you may write to.",
                ) from error
            with workspace.write() as db:
                # Another process may have been first: look again under the lock.
                if workspace._version(db) is None:
                    db.execute(_SCHEMA.read_text(encoding="utf-8"))
                    db.execute("INSERT INTO meta VALUES ('schema_version', ?)", [str(SCHEMA_VERSION)])
            return workspace
        with workspace.read() as db:
            version = workspace._version(db)
        if version is None:
            raise WorkspaceError(
                "This DuckDB file is not a workspace of this program.",
                where=str(workspace.path),
                todo="Choose another path; the file was left as it is.",
            )
        if version > SCHEMA_VERSION:
            raise WorkspaceError(
                f"The workspace has schema version {version}; this program knows {SCHEMA_VERSION} and older ones.",
                where=str(workspace.path),
                todo="Update the program, or use another workspace.",
            )
        if version < SCHEMA_VERSION:
            with workspace.write() as db:
                for step in range(workspace._version(db) or version, SCHEMA_VERSION):
                    db.execute(_MIGRATIONS[step])
                db.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(SCHEMA_VERSION)])
        return workspace

    @property
    def files(self) -> Path:
        """The folder beside the workspace for journals, jobs and staging (made when asked for)."""
        folder = self.path.with_name(self.path.name + ".files")
        folder.mkdir(exist_ok=True)
        return folder

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for reading, closed at the end of the block."""
        with self._connection("read") as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: committed at the end of the block, rolled back on any error."""
        with self._connection("write") as db:
            db.execute("BEGIN")
            try:
                yield db
            except BaseException:
                # A failed COMMIT or a fatal error may have closed the transaction already.
                with suppress(duckdb.Error):
                    db.execute("ROLLBACK")
                raise
            try:
                db.execute("COMMIT")
            except duckdb.Error as error:
                raise self._explained(error) from error

    def frame(self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> pd.DataFrame:
        """The rows of one query as a pandas frame."""
        with self.read() as db:
            return db.execute(sql, parameters).df()

    def rows(self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of one query as dictionaries, with Python values and None for NULL."""
        with self.read() as db:
            result = db.execute(sql, parameters)
            names = [column[0] for column in result.description or []]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def value(self, sql: str, parameters: Sequence[Any] | dict[str, Any] | None = None) -> Any:
        """The first column of the first row of one query, or None."""
        with self.read() as db:
            row = db.execute(sql, parameters).fetchone()
        return row[0] if row else None

    @staticmethod
    def _version(db: Connection) -> int | None:
        known = db.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'main' AND table_name = 'meta'"
        ).fetchone()
        if not known or not known[0]:
            return None
        row = db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        return int(row[0]) if row else None

    @contextmanager
    def _connection(self, mode: _Mode) -> Iterator[Connection]:
        shared = _instance(self.path)
        with shared.turn:
            self._take_turn(shared, mode)
            cursor = shared.root.cursor()  # type: ignore[union-attr]  # set by _take_turn
            shared.users += 1
        try:
            yield cursor
        except duckdb.Error as error:
            raise self._explained(error) from error
        finally:
            cursor.close()
            with shared.turn:
                shared.users -= 1
                if shared.users == 0 and shared.root is not None:
                    shared.root.close()
                    shared.root = None
                shared.turn.notify_all()

    def _take_turn(self, shared: _Instance, mode: _Mode) -> None:
        """Wait until this thread may use the file, and see that it is open (called with the lock held).

        Readers share an instance; a writer has it alone. New readers stand
        back while a writer waits, so that a busy page cannot starve an import.
        """
        deadline = time.monotonic() + self.wait_s

        def free() -> bool:
            if mode == "write":
                return shared.users == 0
            return shared.users == 0 or (shared.mode == "read" and shared.writers_waiting == 0)

        shared.writers_waiting += mode == "write"
        try:
            if not shared.turn.wait_for(free, timeout=self.wait_s):
                raise WorkspaceBusy(
                    "Another task of this program is using the workspace.",
                    where=str(self.path),
                    todo="Wait until it is done, then try again.",
                )
        finally:
            shared.writers_waiting -= mode == "write"
        if shared.root is None:
            shared.root = self._connect(mode, deadline)
            shared.mode = mode

    def _connect(self, mode: _Mode, deadline: float) -> Connection:
        pause = 0.01
        while True:
            try:
                db = duckdb.connect(str(self.path), read_only=mode == "read")
            except duckdb.Error as error:
                if "lock" not in str(error).lower():
                    raise self._explained(error) from error
                if time.monotonic() >= deadline:
                    raise self._busy(error) from error
                time.sleep(pause)
                pause = min(pause * 1.5, 0.2)
            else:
                db.execute("SET TimeZone = 'UTC'")
                return db

    def _busy(self, error: duckdb.Error) -> WorkspaceBusy:
        holder = re.search(r"held in (.+?) \(PID (\d+)\)", str(error))
        who = f"process {holder[2]} ({Path(holder[1]).name})" if holder else "another process"
        return WorkspaceBusy(
            f"The workspace is held by {who}.",
            where=str(self.path),
            todo="Close that program or wait until it is done, then try again.",
        )

    def _explained(self, error: duckdb.Error) -> Exception:
        """The errors that a user can mend, as such; anything else stays what it is."""
        text = str(error)
        lower = text.lower()
        if "not a valid duckdb database" in lower or "unable to find duckdb" in lower:
            return WorkspaceError(
                "This file is not a DuckDB database.",
                where=str(self.path),
                todo="Choose another path; the file was left as it is.",
            )
        if "no space left" in lower or "disk quota" in lower or "enospc" in lower:
            return WorkspaceError(
                "The disk is full; the last change was undone.",
                where=str(self.path),
                todo="Free some space, then run the same command again.",
            )
        if any(sign in lower for sign in ("permission denied", "read-only", "cannot open file")):
            return WorkspaceError(
                "The workspace cannot be opened for this: no permission, or a read-only place.",
                where=str(self.path),
                todo="Check the permissions of the file and its folder, or copy it to a place that you may write to.",
            )
        if isinstance(error, duckdb.IOException):
            return WorkspaceError(
                f"The workspace could not be read or written: {text.splitlines()[0]}",
                where=str(self.path),
                todo="Check the disk and the file, then try again.",
            )
        return error
