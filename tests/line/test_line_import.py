"""Import and rejects through the shell: patterns, pipes, archives, filters, and excerpts that are only text."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from poc.cli import app

Shell = Callable[..., tuple[int, dict[str, Any]]]


def run(number: int) -> str:
    messages = [{"role": "user", "content": f"Order {number}"}, {"role": "assistant", "content": "Done."}]
    return json.dumps({"task_id": number, "messages": messages}) + "\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    bad = "".join(f'{{"broken {number}": \n' for number in range(12))
    good = "".join(run(number) for number in range(10, 30))
    (folder / "a.jsonl").write_text(run(1) + run(2) + bad + good, encoding="utf-8")
    (folder / "b.jsonl").write_text(run(3) + '{"messages": 7}\n' + run(4), encoding="utf-8")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(run(5).encode()))
    return folder


def test_rejects_are_narrowed_down(shell: Shell, tmp_path: Path, logs: Path) -> None:
    at = ("--workspace", tmp_path / "w.duckdb")
    code, done = shell("import", f"{logs}/*", *at)
    assert (code, done["runs"], done["rejected"]) == (0, 25, 13)
    _, every = shell("rejects", *at)
    assert (every["total"], len(every["rejects"])) == (13, 13)
    # In the order of the file: line 10 comes after line 9.
    assert [row["place"] for row in every["rejects"][:12]] == [f"line {number}" for number in range(3, 15)]
    assert every["rejects"][0]["path"] == str(logs / "a.jsonl")
    assert every["rejects"][0]["raw"] == '{"broken 0":'
    _, some = shell("rejects", "--limit", "2", "--source", "A.JSONL", *at)
    assert (some["total"], [row["place"] for row in some["rejects"]]) == (12, ["line 3", "line 4"])
    _, others = shell("rejects", "--source", "b.jsonl", *at)
    assert (others["total"], others["rejects"][0]["place"]) == (1, "line 2")
    kind = every["rejects"][0]["reason"].split(":")[0]
    _, of_kind = shell("rejects", "--reason", kind[:8].upper(), *at)
    assert of_kind["total"] >= 12
    _, none = shell("rejects", "--reason", "nothing says this", *at)
    assert none == {"rejects": [], "total": 0}


def test_excerpts_are_text_and_nothing_else(tmp_path: Path) -> None:
    workspace = str(tmp_path / "w.duckdb")
    (tmp_path / "a.jsonl").write_text(run(1) * 20 + "[/bold] [red]\x1b[2J\x1b]0;title\x07 {\n", encoding="utf-8")
    assert CliRunner().invoke(app, ["import", str(tmp_path / "a.jsonl"), "--workspace", workspace]).exit_code == 0
    done = CliRunner().invoke(app, ["rejects", "--workspace", workspace], env={"COLUMNS": "400"})
    assert done.exit_code == 0, done.output
    assert "[red]" in done.output
    assert "\x1b" not in done.output
    assert "\x07" not in done.output


def test_standard_input_and_archives(shell: Shell, tmp_path: Path, logs: Path) -> None:
    at = ["--workspace", str(tmp_path / "w.duckdb")]
    command = [sys.executable, "-m", "poc.cli", "import", "-", *at, "--json"]
    done = subprocess.run(command, input=gzip.compress((run(1) + run(2)).encode()), capture_output=True, check=False)
    result = json.loads(done.stdout)
    assert (done.returncode, result["runs"], result["sources"][0]["path"]) == (0, 2, "<stdin>")
    empty = subprocess.run(command, input=b"", capture_output=True, check=False)
    error = json.loads(empty.stdout)
    assert (empty.returncode, error["what"], error["where"]) == (2, "The file is empty.", "<stdin>")
    code, again = shell("import", logs / "a.jsonl", logs / "c.jsonl.gz", *at)
    assert (code, again["imported"], again["skipped"], again["rejected"]) == (0, 21, 2, 12)


def test_the_first_bad_record_stops_a_strict_import(shell: Shell, tmp_path: Path, logs: Path) -> None:
    code, error = shell("import", logs, "--strict", "--workspace", tmp_path / "w.duckdb")
    assert code == 2
    assert error["where"] == f"{logs / 'a.jsonl'}, line 3"
    assert "without the strict mode" in error["todo"]
    _, left = shell("rejects", "--workspace", tmp_path / "w.duckdb")
    assert left["total"] == 0


def test_what_grew_is_said(tmp_path: Path) -> None:
    workspace = str(tmp_path / "w.duckdb")
    path = tmp_path / "chat.json"
    messages = [{"role": "user", "content": "Order 1"}, {"role": "assistant", "content": "Done."}]
    for count in (1, 2):
        path.write_text(json.dumps([{"task_id": "t", "messages": messages * count}]), encoding="utf-8")
        done = CliRunner().invoke(app, ["import", str(path), "--workspace", workspace])
    assert "1 imported, 0 rejected, 0 already there. 0 runs" in done.output
    assert "1 runs took the place of a shorter version" in done.output
