"""The one door to DuckDB: creation, versions, sharing between threads and processes, errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from poc.errors import WorkspaceBusy, WorkspaceError
from poc.workspace import SCHEMA_VERSION, Workspace


def test_a_new_workspace_has_its_tables_and_version(workspace: Workspace) -> None:
    assert workspace.value("SELECT value FROM meta WHERE key = 'schema_version'") == str(SCHEMA_VERSION)
    tables = {row["table_name"] for row in workspace.rows("SELECT table_name FROM information_schema.tables")}
    assert {"sources", "runs", "steps", "trials", "requests", "verdicts", "outcomes"} <= tables


def test_opening_again_changes_nothing(workspace: Workspace) -> None:
    with workspace.write() as db:
        db.execute("INSERT INTO tasks (task_id, text) VALUES ('t', 'x')")
    again = Workspace.open(workspace.path)
    assert again.value("SELECT text FROM tasks") == "x"


def test_an_error_rolls_back(workspace: Workspace) -> None:
    def broken() -> None:
        with workspace.write() as db:
            db.execute("INSERT INTO tasks (task_id) VALUES ('t')")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert workspace.value("SELECT count(*) FROM tasks") == 0


def test_a_newer_workspace_is_refused(workspace: Workspace) -> None:
    with workspace.write() as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(SCHEMA_VERSION + 1)])
    with pytest.raises(WorkspaceError, match="schema version") as caught:
        Workspace.open(workspace.path)
    assert str(workspace.path) in str(caught.value)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"these are notes, not a database\n" * 300)
    with pytest.raises(WorkspaceError, match="not a DuckDB database"):
        Workspace.open(path)
    assert path.read_bytes().startswith(b"these are notes")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="directory"):
        Workspace.open(tmp_path)


def test_a_missing_workspace_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="no workspace at this path"):
        Workspace.open(tmp_path / "none.duckdb", create=False)


def test_threads_share_the_file(workspace: Workspace) -> None:
    def work(number: int) -> None:
        for _ in range(5):
            with workspace.write() as db:
                db.execute("INSERT INTO tasks (task_id) VALUES (?)", [f"{number}-{os.urandom(6).hex()}"])
            assert workspace.value("SELECT count(*) FROM tasks") >= 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert workspace.value("SELECT count(*) FROM tasks") == 30


WORKER = textwrap.dedent(
    """
    import sys
    from poc.workspace import Workspace
    workspace = Workspace.open(sys.argv[1], wait_s=30)
    for number in range(10):
        with workspace.write() as db:
            db.execute("INSERT INTO tasks (task_id) VALUES (?)", [f"{sys.argv[2]}-{number}"])
        workspace.value("SELECT count(*) FROM tasks")
    """
)


def test_three_processes_work_on_one_workspace(tmp_path: Path) -> None:
    """The app, a notebook and the shell at once: none holds the file idle, nothing is lost."""
    path = tmp_path / "shared.duckdb"
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(path), name], stderr=subprocess.PIPE, text=True)
        for name in ("app", "notebook", "shell")
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
    assert Workspace.open(path).value("SELECT count(*) FROM tasks") == 30


HOLDER = textwrap.dedent(
    """
    import sys, duckdb
    db = duckdb.connect(sys.argv[1])
    print("held", flush=True)
    sys.stdin.read()
    """
)


def test_a_held_workspace_names_the_file_and_the_process(workspace: Workspace) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(workspace.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WorkspaceBusy) as caught:
            Workspace.open(workspace.path, wait_s=0.2)
        assert str(workspace.path) in str(caught.value)
        assert str(holder.pid) in str(caught.value)
    finally:
        holder.communicate("")
    assert Workspace.open(workspace.path).value("SELECT count(*) FROM tasks") == 0


READER = textwrap.dedent(
    """
    import sys
    from poc.errors import WorkspaceError
    from poc.workspace import Workspace
    workspace = Workspace.open(sys.argv[1])
    print(workspace.value("SELECT count(*) FROM tasks"))
    try:
        with workspace.write():
            pass
    except WorkspaceError as error:
        print(error)
    """
)


def test_a_read_only_workspace_can_be_read_but_not_written(workspace: Workspace) -> None:
    command = [sys.executable, "-c", READER, str(workspace.path)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write anywhere, and setpriv is not here to give that up")
        command = ["setpriv", "--bounding-set=-dac_override", *command]
    workspace.path.chmod(0o444)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("0\nThe workspace cannot be opened for this: no permission")
    assert str(workspace.path) in done.stdout


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(workspace: Workspace) -> None:
    """A real ENOSPC, made with a file size limit in a process of its own."""
    with workspace.write() as db:
        db.execute("INSERT INTO tasks (task_id, text) VALUES ('kept', 'x')")
    script = textwrap.dedent(
        """
        import resource, signal, sys
        from poc.errors import WorkspaceError
        from poc.workspace import Workspace
        workspace = Workspace.open(sys.argv[1])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = workspace.path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 65536, size + 65536))
        try:
            with workspace.write() as db:
                db.execute(
                    "INSERT INTO tasks (task_id, text) SELECT i::VARCHAR, md5(i::VARCHAR) FROM range(2000000) t(i)"
                )
        except WorkspaceError as error:
            print(error)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(workspace.path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "What to do" in done.stdout, done.stdout + done.stderr
    assert Workspace.open(workspace.path).value("SELECT string_agg(task_id) FROM tasks") == "kept"
