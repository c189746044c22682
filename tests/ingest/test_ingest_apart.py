"""A large file read by several processes gives the very tables that reading it in one go gives."""

import json
import os
import threading

import pytest

from poc.errors import InputError
from poc.ingest import apart, import_logs
from poc.ingest.readers import READERS
from poc.ingest.sources import Source
from poc.workspace import Workspace

TABLES = ("runs", "messages", "steps", "tasks", "tools", "rejects", "outcomes", "sources")


def line(number: int, **more) -> str:
    call = {"id": f"c{number}", "function": {"name": f"tool_{number % 3}", "arguments": json.dumps({"n": number})}}
    messages = [
        {"role": "user", "content": f"日本 task {number % 40}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "Error: no" if number % 5 == 0 else "fine"},
    ]
    return json.dumps({"task_id": number % 40, "reward": number % 2, "messages": messages, **more}, ensure_ascii=False)


def broken_lines() -> list[str]:
    """Runs that come twice, a global id with other content, broken and empty lines, NaN."""
    lines = [line(number) for number in range(120)]
    uid = "3f2b1c9e-0000-4000-8000-00000000000"
    lines += [line(1), line(119), line(119), line(7, id=uid + "1"), line(7, id=uid + "1"), line(8, id=uid + "1")]
    lines[30] = lines[30][:-20]
    lines[60] = "\n  "
    lines[61] = line(61, note=float("nan"))
    lines[90] = "not JSON at all"
    lines += [line(7, id=uid + "1"), line(8, id=uid + "1"), line(3)]
    return lines


def contents(path, file):
    """What an import of the file leaves behind, and what it says."""
    workspace = Workspace.open(path)
    result = import_logs(workspace, file)
    rows = {table: workspace.rows(f"SELECT * FROM {table}") for table in TABLES}
    for source in rows["sources"]:
        source.pop("imported_at")
    counts = {key: getattr(result, key) for key in ("read", "imported", "rejected", "skipped", "runs", "steps")}
    return {table: sorted(map(repr, found)) for table, found in rows.items()}, counts, result.sources[0]["reasons"]


@pytest.fixture
def several(monkeypatch):
    """Files of a few kilobytes are worth several processes, on any machine."""

    def switch(on: bool) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)), raising=False)
        monkeypatch.setattr(apart, "SMALLEST", 8_000 if on else 1 << 40)

    return switch


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_tables_are_the_same(tmp_path, several, end):
    file = tmp_path / "log.jsonl"
    file.write_text(end.join(broken_lines()), encoding="utf-8", newline="")
    several(True)
    used = apart.read_apart(Source(file), READERS["openai_chat"], tmp_path, report=lambda _: None)
    assert used is not None
    assert (len(used[1]), used[0].read) == (3, 128)
    together = contents(tmp_path / "apart.duckdb", file)
    several(False)
    assert together == contents(tmp_path / "whole.duckdb", file)


def test_single_messages_far_down_the_file_are_one_run_again(tmp_path, several):
    """A file whose first lines are runs and whose later ones are loose messages cannot be read apart."""
    file = tmp_path / "log.jsonl"
    loose = [json.dumps({"role": role, "content": "x" * 50}) for role in ("user", "assistant")]
    file.write_text("\n".join([*(line(n) for n in range(120)), *loose]), encoding="utf-8")
    several(True)
    assert apart.read_apart(Source(file), READERS["openai_chat"], tmp_path, report=lambda _: None) is None
    together = contents(tmp_path / "apart.duckdb", file)
    several(False)
    assert together == contents(tmp_path / "whole.duckdb", file)
    assert together[1]["runs"] == 121


def test_stopping_ends_the_processes_and_leaves_the_workspace_as_it_was(tmp_path, several):
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(broken_lines()), encoding="utf-8")
    several(True)

    class Stopped(Exception):
        pass

    def stop(done, total, what):
        raise Stopped

    workspace = Workspace.open(tmp_path / "w.duckdb")
    with pytest.raises(Stopped):
        import_logs(workspace, file, progress=stop)
    assert workspace.value("SELECT count(*) FROM runs") == 0
    assert not list(workspace.files.glob("import-*"))
    assert threading.active_count() == 1


def test_strict_mode_names_the_first_bad_line(tmp_path, several):
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(broken_lines()), encoding="utf-8")
    several(True)
    with pytest.raises(InputError) as caught:
        import_logs(Workspace.open(tmp_path / "w.duckdb"), file, strict=True)
    assert "line 31" in str(caught.value.where)
