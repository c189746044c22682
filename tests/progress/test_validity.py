"""Final progress against outcomes, on cases that can be worked out by hand."""

import pytest

from poc.progress import score, validity
from poc.subgoals import parse_set, store_sets
from poc.workspace import Workspace

SETS = [
    parse_set(
        f"""
category: {name}
runs: {{category: {name}}}
subgoals:
  - {{id: a, title: A, done_when: {{tool: a}}, undone_when: {{tool: undo}}}}
  - {{id: b, title: B, done_when: {{tool: b}}}}
"""
    )
    for name in ("one", "two", "three")
]


def workspace_with(tmp_path, runs: list[tuple[str, str | None, float | None, str]]) -> Workspace:
    """Runs as (category, task, outcome, tools in order)."""
    workspace = Workspace.open(tmp_path / "w.duckdb")
    with workspace.write() as db:
        for number, (category, task, outcome, tools) in enumerate(runs):
            run_id = f"r{number}"
            db.execute(
                "INSERT INTO runs (run_id, source_id, place, task_id, category, outcome) VALUES (?, 's', 'p', ?, ?, ?)",
                [run_id, task, category, outcome],
            )
            for step, tool in enumerate(tools.split()):
                db.execute(
                    "INSERT INTO steps (run_id, step, turn, ordinal, tool, arguments_status, status, status_evidence,"
                    " caller) VALUES (?, ?, ?, 0, ?, 'absent', 'ok', 'flag', 'agent')",
                    [run_id, step, step, tool],
                )
    store_sets(workspace, SETS)
    score(workspace)
    return workspace


def test_validity_by_hand(tmp_path):
    workspace = workspace_with(
        tmp_path,
        [
            # Successes end at 1, 1/2 (high-water: undone later) and failures at 1/2, 0 (no step at all).
            ("one", "t1", 1, "a b"),
            ("one", "t2", 1, "a undo"),
            ("one", "t3", 0, "b"),
            ("one", "t4", 0, ""),
            ("one", "t5", None, "a b"),
            ("one", "t6", 0.5, "a b"),
            ("two", "t7", 1, "a"),
            ("two", "t7", 1, "a b"),
            ("two", "t8", 0, ""),
            ("three", "t9", None, "a"),
        ],
    )
    one, three, two, overall = validity(workspace)
    assert (one.category, one.runs, one.tasks, one.successes, one.unknown) == ("one", 5, 5, 2, 1)
    # Pairs (success, failure): 1 against 1/2, 0, 1 -> 1, 1, 1/2; 1/2 against 1/2, 0, 1 -> 1/2, 1, 0. Mean 4/6.
    assert one.auroc is not None
    assert one.auroc.estimate == pytest.approx(4 / 6)
    assert one.auroc.n == 5
    assert one.refusal is None
    assert one.reason() is None
    # Two successful runs of one task are not two tasks.
    assert two.auroc is None
    assert (two.runs, two.tasks, two.successes) == (3, 2, 2)
    assert "Successful runs come from 1 task(s)" in str(two.reason())
    assert "成功" in str(two.reason("ja"))
    assert three.auroc is None
    assert "known outcome" in str(three.reason())
    assert (overall.category, overall.runs, overall.unknown) == (None, 8, 2)
    assert overall.auroc is not None
    lenient = validity(workspace, success_from=0.5)[0]
    assert lenient.successes == 3


def test_failures_may_lack_too(tmp_path):
    workspace = workspace_with(tmp_path, [("one", "t1", 1, "a"), ("one", "t2", 1, "b"), ("one", None, 0, "b")])
    assert "Failed runs come from 1 task(s)" in str(validity(workspace)[0].reason())


def test_a_label_wins_over_the_log(tmp_path):
    workspace = workspace_with(tmp_path, [("one", f"t{n}", 0, "a" if n < 2 else "") for n in range(4)])
    with workspace.write() as db:
        db.execute("INSERT INTO labels VALUES ('r0', 1, 'person:x', now()), ('r1', 1, 'person:x', now())")
    found = validity(workspace)[0]
    assert found.auroc is not None
    assert (found.successes, found.auroc.estimate) == (2, 1.0)


def test_before_scoring_there_is_nothing(tmp_path):
    assert validity(Workspace.open(tmp_path / "w.duckdb")) == []
