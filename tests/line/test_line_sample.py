"""The sample: built in one go, complete, and every number of its report a query away."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import poc
from poc.sample import ensure_sample, is_sample
from poc.workspace import Workspace

Shell = Callable[..., tuple[int, dict[str, Any]]]


def test_the_sample_is_a_finished_evaluation(sample: Path) -> None:
    workspace = poc.open(sample)
    assert is_sample(workspace)
    counts = poc.frames.counts(workspace)
    assert counts["tasks"] == 60
    assert counts["rejects"] > 0
    assert counts["sets"] == 5
    assert counts["verdicts"] == 1
    experiment = poc.frames.experiments(workspace).iloc[0]
    assert experiment["status"] == "finished"
    assert experiment["simulated"]
    trials = poc.frames.trials(workspace, experiment["experiment_id"])
    assert set(trials["arm"]) == {"none", "plan", "progress"}
    assert trials.groupby("arm")["task_id"].nunique().nunique() == 1
    assert set(trials["success_provenance"].dropna()) == {"environment"}


def test_tasks_behind_the_subgoals_are_never_replayed(sample: Path) -> None:
    workspace = poc.open(sample)
    used = workspace.value(
        """
        SELECT count(*) FROM trials t JOIN tasks k USING (task_id)
        JOIN subgoal_sets g ON g.category = t.category AND g.active
        WHERE list_contains(from_json(g.spec->'$.made_from.tasks', '["VARCHAR"]'), k.task_key)
        """
    )
    assert used == 0


def test_success_follows_by_hand_from_the_trials(sample: Path) -> None:
    """The difference of success, recomputed with nothing but SQL, is the one in the verdict."""
    workspace = poc.open(sample)
    by_hand = workspace.value(
        """
        SELECT avg(p - n) FROM (
            SELECT task_id, avg(success) FILTER (arm = 'progress') AS p, avg(success) FILTER (arm = 'none') AS n
            FROM trials GROUP BY task_id)
        """
    )
    stored = workspace.value("SELECT value FROM criteria WHERE criterion = 'success'")
    assert abs(by_hand - stored) < 1e-12


def test_building_again_does_nothing(sample: Path) -> None:
    workspace = Workspace.open(sample)
    trials = workspace.value("SELECT count(*) FROM trials")
    assert ensure_sample(sample)["verdict"] in {"GO", "NO-GO", "INCONCLUSIVE"}
    assert workspace.value("SELECT count(*) FROM trials") == trials
    assert workspace.value("SELECT count(*) FROM verdicts") == 1


def test_the_sample_is_kept_apart_from_a_teams_logs(tmp_path: Path, shell: Shell) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}\n')
    workspace = tmp_path / "team.duckdb"
    assert shell("import", log, "--workspace", workspace)[0] == 0
    code, error = shell("sample", "--workspace", workspace)
    assert code == 2
    assert "other logs" in error["what"]


def test_the_console_script_prints_one_object_and_nothing_else(sample: Path, tmp_path: Path) -> None:
    """The real program in a process of its own, as a scheduler would start it."""
    path = shutil.copy(sample, tmp_path / "copy.duckdb")
    done = subprocess.run(
        [sys.executable, "-m", "poc.cli", "decide", "--workspace", str(path), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert done.stdout.startswith("{")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_copied_workspace_keeps_its_results_and_pays_for_nothing_again(
    sample: Path, tmp_path: Path, shell: Shell
) -> None:
    """The journal stays behind when only the workspace file is copied."""
    at = ("--workspace", shutil.copy(sample, tmp_path / "copy.duckdb"))
    whole = shell("replay", "status", "--workspace", sample)[1]
    code, copied = shell("replay", "status", *at)
    assert code == 0
    same = ("state", "done", "total", "arms", "requests", "tokens", "simulated")
    assert {key: copied[key] for key in same} == {key: whole[key] for key in same}
    code, error = shell("replay", "run", *at)
    assert code == 2
    assert "cannot go on" in error["what"]
    assert shell("decide", *at)[0] == 5
