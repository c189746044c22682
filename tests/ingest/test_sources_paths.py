"""What paths stand for, and files that are none, that cannot be read, or that change while they are read."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from poc.errors import InputError
from poc.ingest import import_logs


def chat(number, **more):
    function = {"name": "look", "arguments": json.dumps({"n": number})}
    return {
        "task_id": f"t{number}",
        "messages": [
            {"role": "user", "content": f"do {number}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]},
            {"role": "tool", "tool_call_id": "1", "content": "ok"},
        ],
        **more,
    }


@pytest.fixture
def logs(tmp_path, write):
    for name in ("logs/a.jsonl", "logs/deep/b.jsonl", "logs/deep/er/c.jsonl", "logs/.hidden/d.jsonl", "logs/e[1].txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(name, [chat(name)])
    return tmp_path / "logs"


def names(workspace):
    return [os.path.basename(row["path"]) for row in workspace.rows("SELECT path FROM sources ORDER BY path")]


def rejects(workspace):
    rows = workspace.rows("SELECT path, place, reason FROM rejects JOIN sources USING (source_id) ORDER BY path")
    return {os.path.basename(row["path"]): f"{row['place']}: {row['reason']}" for row in rows}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.jsonl", ["a.jsonl"]),
        ("*", ["a.jsonl", "b.jsonl", "c.jsonl", "e[1].txt"]),
        ("**/*.jsonl", ["a.jsonl", "b.jsonl", "c.jsonl"]),
        ("**/er/*", ["c.jsonl"]),
        ("deep/**", ["b.jsonl", "c.jsonl"]),
        ("d??p/[ab].jsonl", ["b.jsonl"]),
        (".hidden/*", ["d.jsonl"]),
        ("e[1].txt", ["e[1].txt"]),  # a name that is there is a name, not a pattern
    ],
)
def test_patterns(workspace, logs, pattern, expected):
    result = import_logs(workspace, f"{logs}/{pattern}")
    assert names(workspace) == expected
    assert result.runs == len(expected)


def test_a_pattern_that_nothing_fits(workspace, logs):
    with pytest.raises(InputError, match="No file fits") as caught:
        import_logs(workspace, logs / "*.parquet")
    assert caught.value.where.endswith("*.parquet")


def test_several_paths_give_each_file_once(workspace, logs):
    result = import_logs(workspace, [logs, f"{logs}/**/*.jsonl", logs / "a.jsonl"])
    assert (result.runs, result.read, len(result.sources)) == (4, 4, 4)


def test_links_that_go_round_are_not_followed(workspace, logs):
    (logs / "deep" / "up").symlink_to(logs)
    (logs / "self.jsonl").symlink_to("self.jsonl")
    (logs / "gone.jsonl").symlink_to("nowhere.jsonl")
    (logs / "again.jsonl").symlink_to("a.jsonl")
    for given in (logs, f"{logs}/**/*"):
        result = import_logs(workspace, given)
        assert (result.read, result.rejected) == (6, 2)
    assert "leads back to itself" in rejects(workspace)["self.jsonl"]
    assert "leads nowhere" in rejects(workspace)["gone.jsonl"]
    with pytest.raises(InputError, match="leads back to itself"):
        import_logs(workspace, logs / "self.jsonl")


def test_a_folder_named_like_a_file(workspace, tmp_path, write):
    (tmp_path / "traces.jsonl").mkdir()
    write("traces.jsonl/a.jsonl", [chat(1), chat(2)])
    assert import_logs(workspace, tmp_path / "traces.jsonl").runs == 2


def test_what_is_no_file_is_said(workspace, logs):
    os.mkfifo(logs / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(logs / "socket"))
        result = import_logs(workspace, logs)
    assert (result.runs, result.rejected) == (4, 2)
    assert "a named pipe" in rejects(workspace)["pipe.jsonl"]
    assert "a socket" in rejects(workspace)["socket"]
    again = import_logs(workspace, logs / "a.jsonl")
    assert again.skipped == 1
    with pytest.raises(InputError, match="a device"):
        import_logs(workspace, "/dev/null")
    with pytest.raises(InputError, match="empty"):  # nobody writes into it, and nobody is waited for
        import_logs(workspace, logs / "pipe.jsonl")


def test_two_files_that_cannot_be_read_are_both_kept(workspace, tmp_path, write):
    (tmp_path / "logs").mkdir()
    write("logs/a.jsonl", [chat(1), chat(2)])
    (tmp_path / "logs" / "x.jsonl").symlink_to("nowhere")
    import_logs(workspace, tmp_path / "logs")
    (tmp_path / "logs" / "y.jsonl").symlink_to("nowhere")
    result = import_logs(workspace, tmp_path / "logs")
    assert (result.skipped, result.rejected) == (2, 2)
    assert set(rejects(workspace)) == {"x.jsonl", "y.jsonl"}


def test_a_pipe_that_a_shell_makes(workspace):
    """``poc import <(zcat log.gz)`` gives a path like /dev/fd/63."""
    reading, writing = os.pipe()
    content = "".join(json.dumps(chat(number, note="x" * 5000)) + "\n" for number in range(50)).encode()

    def pour():
        with open(writing, "wb") as pipe:
            pipe.write(content)

    thread = threading.Thread(target=pour)
    thread.start()
    try:
        assert import_logs(workspace, f"/dev/fd/{reading}").runs == 50
    finally:
        thread.join()
        os.close(reading)


def poc(*argv, stdin):
    done = subprocess.run([sys.executable, "-m", "poc.cli", *map(str, argv)], input=stdin, capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_standard_input(workspace, write):
    content = "".join(json.dumps(chat(number)) + "\n" for number in range(3)).encode()
    code, said, _ = poc("import", "-", "--workspace", workspace.path, "--json", stdin=content + b"{broken\n")
    assert code == 0
    assert json.loads(said)["runs"] == 3
    assert names(workspace) == ["<stdin>"]
    assert rejects(workspace)["<stdin>"].startswith("line 4")
    assert import_logs(workspace, write("same.jsonl", content)).skipped == 3


def test_a_read_error_in_a_folder(workspace, tmp_path, write):
    """Memory of a process cannot be read from its start: a real input/output error."""
    (tmp_path / "logs").mkdir()
    write("logs/a.jsonl", [chat(1), chat(2)])
    (tmp_path / "logs" / "mem.jsonl").symlink_to("/proc/self/mem")
    result = import_logs(workspace, tmp_path / "logs")
    assert (result.runs, result.rejected) == (2, 1)
    assert "cannot be read" in next(iter(rejects(workspace).values()))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(workspace, logs):
    os.chmod(logs / "a.jsonl", 0)
    os.chmod(logs / "deep" / "er", 0)
    try:
        result = import_logs(workspace, logs)
        assert (result.runs, result.rejected) == (2, 2)
        with pytest.raises(InputError, match="Permission denied"):
            import_logs(workspace, logs / "a.jsonl")
        with pytest.raises(InputError, match="Permission denied"):
            import_logs(workspace, logs / "deep" / "er" / "c.jsonl")
    finally:
        os.chmod(logs / "deep" / "er", 0o700)


BIG = [chat(number, note="x" * 60_000) for number in range(60)]


def test_a_file_that_is_removed_before_its_turn(workspace, write):
    first, second = write("first.jsonl", BIG), write("second.jsonl", [chat(1000)])
    third = write("third.jsonl", [chat(2000)])
    content = second.read_bytes()

    def progress(done, total, note):
        if second.exists():
            second.unlink()

    result = import_logs(workspace, [first, second, third], progress=progress)
    assert (result.runs, result.rejected) == (61, 1)
    assert "No such file" in rejects(workspace)["second.jsonl"]
    second.write_bytes(content)
    assert import_logs(workspace, second).runs == 1


def test_a_file_that_is_cut_while_it_is_read(workspace, write):
    first, second = write("first.jsonl", BIG), write("second.jsonl", [chat(1000)])
    content = first.read_bytes()

    def progress(done, total, note):
        if done < total // 2 and first.stat().st_size == len(content):
            os.truncate(first, len(content) // 2)

    result = import_logs(workspace, [first, second], progress=progress)
    assert result.read == result.imported + result.rejected
    assert 10 < result.imported < 50
    assert "shorter while it was read" in rejects(workspace)["first.jsonl"]
    # Once it is whole again, the rest is read, and what was said of the broken reading is past.
    first.write_bytes(content)
    again = import_logs(workspace, first)
    assert (again.imported + again.skipped, again.rejected) == (60, 0)
    assert workspace.value("SELECT count(*) FROM runs") == 61
    assert rejects(workspace) == {}
