"""Files as they come: empty, binary, folders, unknown formats; imports again, stopped, on a full disk."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from poc.errors import InputError, WorkspaceError
from poc.ingest import READERS, import_logs
from poc.ingest.detect import THRESHOLD
from poc.ingest.sources import Source
from poc.workspace import Workspace


def run_record(number, tool="look"):
    function = {"name": tool, "arguments": json.dumps({"n": number})}
    return {
        "task_id": f"t{number}",
        "reward": number % 2,
        "traj": [
            {"role": "user", "content": f"do {number}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]},
            {"role": "tool", "tool_call_id": "1", "content": "ok"},
        ],
    }


def contents(workspace):
    """Every row of every table that an import writes."""
    tables = ("sources", "rejects", "tasks", "runs", "messages", "steps", "tools", "labels")
    return {table: sorted(map(repr, workspace.rows(f"SELECT * FROM {table}"))) for table in tables}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.json", b"", "The file is empty"),
        ("blank.json", b"\xef\xbb\xbf \n\t", "nothing but blanks"),
        ("db.json", b"SQLite format 3\x00" + bytes(100), "SQLite database"),
        ("z.json", b"PK\x03\x04" + bytes(100), "zip archive"),
        ("g.jsonl", b"\x1f\x8b" + bytes(100), "gzip"),
        ("p.parquet", b"PAR1" + bytes(100), "Parquet"),
        ("b.json", bytes(range(256)) * 40, "binary file"),
        ("prose.txt", b"Dear all,\n\nhere are the logs.\n", "format is not known"),
        ("config.json", b'{"name": "x", "version": 3}', "format is not known"),
    ],
)
def test_what_can_be_no_log(workspace, write, name, content, message):
    path = write(name, content)
    with pytest.raises(InputError, match=message) as caught:
        import_logs(workspace, path)
    assert caught.value.where == str(path)
    assert caught.value.todo
    assert contents(workspace)["sources"] == []


def test_a_path_that_is_not_there(workspace, write):
    path = write("airline.json", [run_record(1)])
    with pytest.raises(InputError, match=r'Did you mean "airline\.json"'):
        import_logs(workspace, path.with_name("airlin.json"))


def test_a_format_that_is_not_there(workspace, write):
    with pytest.raises(InputError, match='Did you mean "openai_chat"'):
        import_logs(workspace, write("a.jsonl", [run_record(1)]), format="openai-chat")


def test_one_bad_file_among_several_stores_nothing(workspace, write):
    good = write("good.jsonl", [run_record(1), run_record(2)])
    with pytest.raises(InputError, match="The file is empty"):
        import_logs(workspace, [good, write("bad.jsonl", b"")])
    assert contents(workspace)["runs"] == []


def test_a_folder_reads_what_it_can_and_says_what_it_could_not(workspace, tmp_path, write):
    (tmp_path / "logs" / "deep").mkdir(parents=True)
    write("logs/a.jsonl", [run_record(1), run_record(2)])
    write("logs/deep/b.jsonl", [run_record(3), run_record(4), run_record(5)])
    write("logs/README.md", "These are logs.")
    write("logs/empty.json", b"")
    write("logs/.hidden.jsonl", [run_record(9)])
    result = import_logs(workspace, tmp_path / "logs")
    assert (result.runs, result.read, result.rejected, result.imported) == (5, 7, 2, 5)
    rejects = workspace.rows("SELECT path, reason FROM rejects JOIN sources USING (source_id) ORDER BY path")
    assert [os.path.basename(row["path"]) for row in rejects] == ["README.md", "empty.json"]
    again = import_logs(workspace, tmp_path / "logs")
    assert (again.read, again.rejected, again.imported, again.skipped) == (7, 2, 0, 5)


def test_an_empty_folder(workspace, tmp_path):
    (tmp_path / "logs").mkdir()
    with pytest.raises(InputError, match="holds no files"):
        import_logs(workspace, tmp_path / "logs")


def test_the_same_file_again_changes_nothing(workspace, write):
    records = [run_record(n) for n in range(4)] + [{"nothing": "here"}]
    path = write("a.jsonl", records)
    first = import_logs(workspace, path)
    assert (first.read, first.imported, first.rejected, first.skipped) == (5, 4, 1, 0)
    before = contents(workspace)
    copy = write("elsewhere.txt", path.read_bytes())
    for again in (path, copy, [copy, path]):
        result = import_logs(workspace, again)
        assert result.read == result.rejected + result.skipped == 5 * len(result.sources)
        assert (result.imported, result.runs, result.steps) == (0, 0, 0)
    assert contents(workspace) == before


def test_the_same_runs_in_another_layout_are_skipped(workspace, write):
    records = [run_record(n) for n in range(4)]
    import_logs(workspace, write("a.jsonl", records))
    before = contents(workspace)
    result = import_logs(workspace, write("b.json", json.dumps([*records, run_record(9)], indent=2)))
    assert (result.read, result.imported, result.skipped, result.runs) == (5, 1, 4, 1)
    after = contents(workspace)
    assert set(before["runs"]) < set(after["runs"])
    assert len(after["steps"]) == 5


def test_equal_runs_in_one_file_are_trials_of_their_own(workspace, write):
    result = import_logs(workspace, write("a.jsonl", [run_record(1)] * 3))
    assert (result.imported, result.runs) == (3, 3)
    assert workspace.value("SELECT count(DISTINCT run_id) FROM runs") == 3
    assert workspace.value("SELECT count(*) FROM tasks") == 1


def test_a_worldwide_id_twice(workspace, write):
    record = {"id": "0b0f7a52-54a4-4f0c-8c9e-3c2f2a1d9b11", "messages": run_record(1)["traj"]}
    other = {**record, "messages": run_record(2)["traj"]}
    result = import_logs(workspace, write("a.jsonl", [record, record, other]))
    # The very same record is a repeat; another content under the same id is kept.
    assert (result.read, result.imported, result.skipped) == (3, 2, 1)


def test_runs_that_two_files_of_one_import_share(workspace, write):
    paths = [write("a.jsonl", [run_record(1), run_record(2)]), write("b.jsonl", [run_record(2), run_record(3)])]
    result = import_logs(workspace, paths)
    assert (result.read, result.imported, result.skipped) == (4, 3, 1)
    assert [(s["imported"], s["skipped"]) for s in result.sources] == [(2, 0), (1, 1)]


def test_strict_fails_on_the_first_reject(workspace, write):
    path = write("a.jsonl", [run_record(1), run_record(2), {"nothing": "here"}])
    with pytest.raises(InputError) as caught:
        import_logs(workspace, path, strict=True)
    assert "line 3" in caught.value.where
    assert contents(workspace)["runs"] == []
    import_logs(workspace, path)
    with pytest.raises(InputError, match="cannot be read"):
        import_logs(workspace, path, strict=True)


def test_progress_counts_bytes_and_can_stop(workspace, write):
    big = [{**run_record(n), "note": "x" * 50_000} for n in range(120)]
    path = write("a.jsonl", big)
    size = path.stat().st_size
    seen = []
    import_logs(workspace, path, progress=lambda done, total, note: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (size, size)
    assert len(seen) >= size // (1 << 20)

    class Stop(Exception):
        pass

    def stop(done, total, note):
        if done > size // 2:
            raise Stop

    other = Workspace.open(path.with_name("other.duckdb"))
    with pytest.raises(Stop):
        import_logs(other, path, progress=stop)
    assert contents(other)["runs"] == []
    assert list(other.files.iterdir()) == []


def test_a_full_disk_leaves_the_workspace_as_it_was(workspace, tmp_path, write):
    path = write("a.jsonl", [{**run_record(n), "note": "x" * 100_000} for n in range(60)])
    import_logs(workspace, write("small.jsonl", [run_record(1), run_record(2)]))
    before = contents(workspace)
    code = """
        import resource, sys
        from poc.errors import WorkspaceError
        from poc.ingest import import_logs
        from poc.workspace import Workspace
        workspace = Workspace.open(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            import_logs(workspace, sys.argv[2])
        except WorkspaceError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(workspace.path), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "The disk is full" in done.stdout, done.stderr
    assert "Traceback" not in done.stderr
    assert contents(workspace) == before
    assert import_logs(workspace, path).runs == 58  # two were there already


def test_a_killed_import_leaves_the_workspace_as_it_was(workspace, write):
    path = write("a.jsonl", [{**run_record(n), "note": "x" * 50_000} for n in range(200)])
    code = """
        import os, signal, sys
        from poc.ingest import import_logs
        from poc.workspace import Workspace
        def kill(done, total, note):
            if note == "storing" or done > total // 2:
                os.kill(os.getpid(), signal.SIGKILL)
        import_logs(Workspace.open(sys.argv[1]), sys.argv[2], progress=kill)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(workspace.path), str(path)], capture_output=True, check=False
    )
    assert done.returncode == -9
    assert contents(workspace)["runs"] == []
    assert import_logs(workspace, path).runs == 200


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(workspace, write):
    path = write("a.jsonl", [run_record(1), run_record(2)])
    os.chmod(workspace.path.parent, 0o500)
    try:
        with pytest.raises(WorkspaceError, match="no permission"):
            import_logs(workspace, path)
    finally:
        os.chmod(workspace.path.parent, 0o700)


def test_other_families_are_not_mistaken_for_chats(real_logs):
    """Trace, session and evaluation formats hold messages too: the chat reader leaves them to their own readers."""
    for family in ("otel_genai", "langsmith", "langfuse", "claude_code", "codex_rollout", "google_adk", "openhands"):
        for path in sorted((real_logs / family).iterdir()):
            source = Source(path)
            assert READERS["openai_chat"].sniff(source.sample, source.name) < THRESHOLD, path.name
