"""The sample's files: made again they are the same, they can be read, and the split between tasks is kept."""

from __future__ import annotations

import csv
import json
import runpy
from pathlib import Path

import pytest

from poc.ingest import import_logs
from poc.progress import score, validity
from poc.readiness import assess
from poc.sample import files
from poc.sample.files import data_dir
from poc.sample.tasks import all_tasks, task_of, tasks_of
from poc.sample.tools import TOOLS
from poc.subgoals import load_sets, store_sets
from poc.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
LOGS = data_dir() / "logs"


def test_the_program_makes_the_same_bytes(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "data" / "make_sample.py"))["main"](tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(made) == {path.name for path in LOGS.iterdir()}
    for name, content in made.items():
        assert content == (LOGS / name).read_bytes(), f"{name} differs: run data/make_sample.py again"


def test_the_data_is_small() -> None:
    size = sum(path.stat().st_size for path in data_dir().rglob("*") if path.is_file())
    assert size < 3_000_000


def test_the_data_is_found_in_a_checkout_and_in_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_dir() == ROOT / "data"
    installed = tmp_path / "poc" / "sample" / "data"
    (installed / "world").mkdir(parents=True)
    (installed / "world" / "shop.yaml").write_text("today: 2025-06-16")
    monkeypatch.setattr(files, "_PLACES", (tmp_path / "nothing", installed))
    assert data_dir() == installed


def test_imported_the_counts_add_up_and_the_broken_records_are_shown(workspace: Workspace) -> None:
    chat = import_logs(workspace, [LOGS / "orders.jsonl"])
    assert (chat.read, chat.imported, chat.rejected, chat.skipped, chat.runs) == (122, 120, 2, 0, 120)
    table = import_logs(workspace, [LOGS / "orders.csv"], mapping=LOGS / "mapping.yaml", outcomes=LOGS / "outcomes.csv")
    assert (table.runs, table.rejected, table.skipped) == (60, 1, 0)
    assert table.read == table.imported + table.rejected
    reasons = [row["reason"] for row in workspace.rows("SELECT reason FROM rejects ORDER BY place")]
    assert len(reasons) == 3
    assert any("no tool name" in reason for reason in reasons)

    # Both formats speak of the same tasks, three runs each.
    assert workspace.value("SELECT count(*) FROM tasks") == 60
    per_task = workspace.rows("SELECT task_id, count(*) AS runs FROM runs GROUP BY task_id")
    assert {row["runs"] for row in per_task} == {3}
    # One run broke off at a call: no result and no outcome, which is not a failure.
    lost = workspace.rows("SELECT run_id FROM steps WHERE status = 'no_result'")
    assert len(lost) == 1
    outcome = "SELECT outcome FROM outcomes WHERE run_id = ?"
    assert workspace.value(outcome, [lost[0]["run_id"]]) is None
    assert workspace.value("SELECT count(*) FROM outcomes WHERE outcome IS NULL") == 1
    assert assess(workspace).level == "PARTIAL"

    # Every outcome in the workspace is the one that the world gave.
    logged = {(run["task_id"], str(run["trial"])): run["reward"] for run in chat_runs()}
    with (LOGS / "orders.csv").open(encoding="utf-8", newline="") as file:
        sessions = {row["session"]: (row["ticket"], row["attempt"]) for row in csv.DictReader(file)}
    with (LOGS / "outcomes.csv").open(encoding="utf-8", newline="") as file:
        logged |= {sessions[row["run_id"]]: float(row["outcome"]) for row in csv.DictReader(file)}
    sql = (
        "SELECT t.task_key, r.trial, o.outcome FROM outcomes o JOIN runs r USING (run_id)"
        " JOIN tasks t ON t.task_id = r.task_id"
    )
    stored = {(row["task_key"], row["trial"]): row["outcome"] for row in workspace.rows(sql)}
    assert stored == logged


def test_the_subgoal_sets_claim_every_run_and_track_success(workspace: Workspace) -> None:
    import_logs(workspace, [LOGS / "orders.jsonl"])
    store_sets(workspace, load_sets(data_dir() / "subgoals"))
    summary = score(workspace)
    assert (summary.scored, summary.unassigned, summary.overlapping) == (120, 0, 0)
    overall = next(one for one in validity(workspace) if one.category is None)
    assert overall.auroc is not None
    assert 0.65 < overall.auroc.low < overall.auroc.estimate < 0.95
    # No subgoal is idle: each is achieved in some run and open in another.
    rows = workspace.rows(
        "SELECT set_hash, subgoal, count(DISTINCT run_id) AS runs FROM achievements"
        " WHERE event = 'achieved' GROUP BY ALL"
    )
    achieved = {(row["set_hash"], row["subgoal"]): row["runs"] for row in rows}
    for one in load_sets(data_dir() / "subgoals"):
        for subgoal in one.subgoals:
            assert 3 <= achieved[(one.hash, subgoal.id)] <= 24, (one.category, subgoal.id)


def test_subgoal_sets_were_made_from_all_development_tasks_and_no_other() -> None:
    made_from = {key for one in load_sets(data_dir() / "subgoals") for key in one.made_from.tasks}
    assert made_from == {task.key for task in tasks_of("development")}
    for one in load_sets(data_dir() / "subgoals"):
        assert {task_of(key).category for key in made_from if key in one.made_from.tasks} == {one.category}


def chat_runs() -> list[dict]:
    runs = []
    for line in (LOGS / "orders.jsonl").read_text(encoding="utf-8").splitlines():
        try:
            runs.append(json.loads(line))
        except ValueError:
            continue
    return runs


def test_logs_carry_no_end_state_and_no_reference() -> None:
    for run in chat_runs():
        assert set(run) <= {"task_id", "trial", "category", "model", "reward", "messages", "tools"}
        assert run["task_id"] in all_tasks()
    called = {
        call["function"]["name"] for run in chat_runs() for m in run["messages"] for call in m.get("tool_calls", ())
    }
    assert called == set(TOOLS)


def test_logged_times_have_a_zone_and_never_go_back() -> None:
    for run in chat_runs():
        times = [message["timestamp"] for message in run["messages"]]
        assert times == sorted(times)
        assert all(time.endswith("+01:00") for time in times)
