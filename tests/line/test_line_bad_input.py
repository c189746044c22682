"""What people get wrong, through the shell: each a clear message with its exit code, and nothing is lost."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from poc.workspace import Workspace

Shell = Callable[..., tuple[int, dict[str, Any]]]
RUN = '{"messages": [{"role": "user", "content": "Refund order 7"}, {"role": "assistant", "content": "Done."}]}'


@pytest.fixture
def at(tmp_path: Path) -> tuple[str, Path]:
    """A workspace with one run in it, which no mistake may cost."""
    path = tmp_path / "w.duckdb"
    workspace = Workspace.open(path)
    with workspace.write() as db:
        db.execute("INSERT INTO runs (run_id, source_id, place) VALUES ('kept', 's', 'line 1')")
    return "--workspace", path


@pytest.fixture(autouse=True)
def _nothing_is_lost(at: tuple[str, Path]) -> Iterator[None]:
    yield
    assert Workspace.open(at[1]).value("SELECT count(*) FROM runs WHERE run_id = 'kept'") == 1


def refused(result: tuple[int, dict[str, Any]], *parts: str) -> None:
    code, error = result
    assert code == 2, error
    assert error["todo"] or error["where"], error
    text = " ".join(str(error[key]) for key in ("what", "where", "todo"))
    for part in parts:
        assert part in text, text


def test_an_empty_file(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    refused(shell("import", path, *at), "empty", str(path))


def test_a_missing_file(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    (tmp_path / "traces.jsonl").write_text(RUN)
    refused(shell("import", tmp_path / "trace.jsonl", *at), 'Did you mean "traces.jsonl"')


def test_an_empty_directory(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    (tmp_path / "logs").mkdir()
    refused(shell("import", tmp_path / "logs", *at), "no files")


def test_a_binary(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(bytes(range(256)) * 40)
    refused(shell("import", path, *at), str(path))


def test_a_file_of_another_kind(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE shopping (item TEXT)")
    db.close()
    refused(shell("import", path, *at), str(path))


def test_broken_json_in_the_middle(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([RUN.replace("7", "1"), '{"messages": [', RUN.replace("7", "3")]) + "\n")
    code, done = shell("import", path, *at)
    assert (code, done["read"], done["imported"], done["rejected"]) == (0, 3, 2, 1)
    code, done = shell("rejects", *at)
    assert done["rejects"][0]["place"] == "line 2"


def test_strict_import_fails_at_the_first_bad_record(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(RUN + '\n{"messages": [\n')
    refused(shell("import", path, "--strict", *at), "line 2")
    assert Workspace.open(at[1]).value("SELECT count(*) FROM sources") == 0


def test_a_mapping_with_a_wrong_column(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    (tmp_path / "calls.csv").write_text("session,tool_name,args\na,find,{}\n")
    (tmp_path / "mapping.yaml").write_text("run_id: sesion\ntool: tool_name\n")
    refused(
        shell("import", tmp_path / "calls.csv", "--mapping", tmp_path / "mapping.yaml", *at), 'Did you mean "session"'
    )


def test_an_unknown_key_in_a_subgoal_set(tmp_path: Path, at: tuple[str, Path], shell: Shell) -> None:
    path = tmp_path / "refund.yaml"
    path.write_text(
        "category: refund\nsubgoals:\n  - id: found\n    titel: Find the order\n    done_when: {tool: get_order}\n"
    )
    refused(shell("subgoals", "check", path, *at), 'Did you mean "title"', "refund.yaml, line 4")


def test_a_workspace_that_is_not_there(tmp_path: Path, shell: Shell) -> None:
    refused(shell("score", "--workspace", tmp_path / "none.duckdb"), "no workspace at this path")


def test_no_experiment_yet(at: tuple[str, Path], shell: Shell) -> None:
    refused(shell("decide", *at), "no experiment yet", "poc replay plan")


def test_logs_that_are_not_ready(at: tuple[str, Path], shell: Shell) -> None:
    code, done = shell("readiness", *at)
    assert (code, done["level"]) == (6, "NOT READY")
    code, error = shell("replay", "plan", "--base-url", "http://127.0.0.1:9/v1", *at)
    assert code == 6
    assert "not ready" in error["what"]


def test_a_report_into_a_place_that_is_not_there(sample: Path, tmp_path: Path, shell: Shell) -> None:
    refused(shell("report", "-o", tmp_path / "no" / "report.html", "--workspace", sample), "cannot be written")


@pytest.fixture
def team(tmp_path: Path, sample: Path) -> Callable[..., tuple[str, Path]]:
    """A copy of the sample with a small plan of its own."""

    def planned(shell: Shell, *options: str) -> tuple[str, Path]:
        path = tmp_path / "team.duckdb"
        path.write_bytes(sample.read_bytes())
        place = ("--workspace", path)
        code, done = shell(
            "replay", "plan", "--mode", "closed_loop", "--environment", "poc.sample.world:World", "--tasks", "3",
            *options, *place,
        )  # fmt: skip
        assert code == 0, done
        return place

    return planned


def test_no_network(team: Callable[..., tuple[str, Path]], shell: Shell) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    place = team(shell, "--base-url", f"http://127.0.0.1:{port}/v1", "--budget-tokens", "1000000")
    refused(shell("replay", "run", *place), f"127.0.0.1:{port}")
    assert Workspace.open(place[1]).value("SELECT count(*) FROM trials WHERE error IS NOT NULL") == 0


def test_a_wrong_key(
    team: Callable[..., tuple[str, Path]], shell: Shell, simulated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", "wrong")
    place = team(shell, "--base-url", simulated, "--api-key-env", "TEAM_KEY", "--budget-tokens", "1000000")
    code, error = shell("replay", "run", *place)
    refused((code, error), "TEAM_KEY")
    assert "wrong" not in error["what"].split()


def test_an_exhausted_budget_stops_and_goes_on(
    team: Callable[..., tuple[str, Path]], shell: Shell, simulated: str
) -> None:
    place = team(shell, "--base-url", simulated, "--budget-tokens", "9000")
    code, done = shell("replay", "run", *place)
    assert (code, done["state"], done["reason"]) == (0, "stopped", "budget")
    assert done["tokens"] <= 9000
    assert done["message"]
    code, verdict = shell("decide", *place)
    assert verdict["verdict"] == "INCONCLUSIVE"


def test_secrets_are_in_no_file(
    team: Callable[..., tuple[str, Path]], shell: Shell, simulated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-team-" + os.urandom(12).hex()
    monkeypatch.setenv("TEAM_KEY", secret)
    place = team(shell, "--base-url", simulated, "--api-key-env", "TEAM_KEY", "--budget-tokens", "1000000")
    assert shell("replay", "run", *place)[0] == 0
    for path in place[1].parent.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
