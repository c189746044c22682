"""Outcomes joined from a CSV: by every kind of name, refused where they are ambiguous."""

import pytest

from poc.errors import InputError
from poc.ingest import import_logs, join_outcomes


def record(task, trial, **more):
    messages = [
        {"role": "user", "content": f"do {task} for the {trial}th time"},
        {"role": "assistant", "content": "done"},
    ]
    return {
        "task_id": task,
        "trial": trial,
        "info": {"task": {"instruction": f"scenario {task}"}},
        "traj": messages,
        **more,
    }


@pytest.fixture
def filled(workspace, write):
    import_logs(workspace, write("log.jsonl", [record(task, trial) for task in ("a", "b") for trial in (0, 1)]))
    return workspace


def outcomes(workspace):
    rows = workspace.rows(
        "SELECT native_id, o.outcome, o.provenance FROM outcomes o JOIN runs USING (run_id) ORDER BY 1"
    )
    return {row["native_id"]: row["outcome"] for row in rows}


def test_by_native_id(filled, write):
    result = join_outcomes(filled, write("o.csv", "id,success\na/0,yes\na/1,no\nz/9,yes\n"))
    assert (result.rows, result.matched, result.unmatched, result.key) == (3, 2, 1, "native_id")
    assert (result.unmatched_examples, result.runs_without_outcome) == (["z/9"], 2)
    assert outcomes(filled) == {"a/0": 1.0, "a/1": 0.0, "b/0": None, "b/1": None}
    assert filled.value("SELECT DISTINCT provenance FROM labels") == "joined:o.csv"


def test_by_task_and_trial(filled, write):
    result = join_outcomes(filled, write("o.csv", "task_id;trial;outcome\na;1;0.5\nb;0;1\n"))
    assert (result.matched, result.key) == (2, "task_key")
    assert outcomes(filled) == {"a/0": None, "a/1": 0.5, "b/0": 1.0, "b/1": None}


def test_by_run_id_and_a_label_wins_over_the_log(workspace, write):
    import_logs(workspace, write("log.jsonl", [record("a", 0, reward=1), record("a", 1, reward=1)]))
    run_id = workspace.value("SELECT run_id FROM runs WHERE native_id = 'a/0'")
    join_outcomes(workspace, write("o.csv", f"run_id,outcome\n{run_id},0\n"))
    assert outcomes(workspace) == {"a/0": 0.0, "a/1": 1.0}


def test_named_columns_and_joining_again(filled, write):
    join_outcomes(filled, write("o.csv", "case,verdict\na/0,1\n"), key="case", value="verdict")
    join_outcomes(filled, write("o.csv", "case,verdict\na/0,0\n"), key="case", value="verdict")
    assert outcomes(filled)["a/0"] == 0.0


def test_together_with_the_import(workspace, write):
    csv = write("o.csv", "native_id,outcome\na/0,1\n")
    result = import_logs(workspace, write("log.jsonl", [record("a", 0), record("b", 0)]), outcomes=csv)
    assert (result.outcomes.matched, result.outcomes.runs_without_outcome) == (1, 1)


@pytest.mark.parametrize(
    ("text", "message", "arguments"),
    [
        ("task_id,outcome\na,1\n", "fits 2 runs", {}),
        ("native_id,outcome\na/0,1\na/0,0\n", "two different outcomes", {}),
        ("native_id,outcome\na/0,splendid\n", "is no outcome", {}),
        ("native_id,outcome\na/0,5\n", "is no outcome", {}),
        ("native_id,outcome\na/0\n", "1 cells", {}),
        ("x,outcome\na/0,1\n", "No column names the runs", {}),
        ("native_id,y\na/0,1\n", "No column holds the outcomes", {}),
        ("native_id,outcome\na/0,1\n", 'Did you mean "outcome"', {"value": "outcom"}),
        ("native_id,outcome\na/0,1\n", 'Did you mean "native_id"', {"key": "nativ_id"}),
        ("", "holds no rows", {}),
        ("native_id,outcome\n", "holds no rows", {}),
    ],
)
def test_what_is_refused_stores_nothing(filled, write, text, message, arguments):
    with pytest.raises(InputError, match=message):
        join_outcomes(filled, write("o.csv", text), **arguments)
    assert filled.value("SELECT count(*) FROM labels") == 0


def test_a_file_that_is_not_there(filled, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        join_outcomes(filled, tmp_path / "none.csv")
