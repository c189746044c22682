from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verdict_bench import NOW, Bench

from poc.errors import InputError
from poc.replay.experiment import PlannedTask
from poc.verdict import Comparison, compare
from poc.verdict.tokens import split
from poc.verdict.trials import Pairs, Trial


def better(key) -> dict[str, Any]:
    return {"success": float(key.arm == "progress")}


def test_an_unknown_experiment_is_named(bench: Bench) -> None:
    bench.design()
    with pytest.raises(InputError, match=r"no experiment 'x2'.*Known: x1"):
        compare(bench.workspace, "x2")


def test_failed_and_unjudged_trials_are_failures_with_bounds(bench: Bench) -> None:
    bench.design(4)

    def make(key):
        row: dict[str, Any] = {"success": 1.0}
        if key.arm == "progress" and key.task.task_id == "t0":
            row = {"success": None, "success_provenance": None, "status": "failed", "stop_reason": "timeout"}
        if key.arm == "none" and key.task.task_id == "t1":
            row = {"success": None, "success_provenance": None}
        return row

    bench.fill(make)
    found = compare(bench.workspace, "x1")
    # Differences: t0 -1, t1 +1, others 0. Worst: t1's control had succeeded, (-1 + 0) / 4; best: t0 too, (0 + 1) / 4.
    assert found.primary.tasks == 4
    assert found.primary.outcome.interval.estimate == 0
    bounds = found.primary.bounds
    assert bounds is not None
    assert (bounds.trials, bounds.low, bounds.high) == (2, -0.25, 0.25)
    assert (bounds.ungraded, bounds.ungraded_low) == (1, -0.25)
    none, progress = found.arms
    assert (none.failed, none.ungraded, progress.failed, progress.ungraded) == (0, 1, 1, 0)


def test_a_failed_trial_counts_as_failure_whatever_was_stored(bench: Bench) -> None:
    bench.design(2)
    bench.fill(lambda key: {"success": 1.0, "status": "failed" if key.arm == "progress" else "finished"})
    assert compare(bench.workspace, "x1").primary.outcome.treated == 0


def test_missing_usage_is_reported_and_too_much_of_it_gives_no_interval(bench: Bench) -> None:
    bench.design(10)
    bench.fill(lambda key: {"tokens": None if key.task.task_id == "t0" else 90 + key.position})
    tokens = compare(bench.workspace, "x1").primary.tokens
    assert (tokens.missing, tokens.interval.n) == (1, 9)
    assert tokens.interval.bounded


def test_too_much_missing_usage_gives_no_interval(bench: Bench) -> None:
    bench.design(10)
    lost = ("t0", "t1", "t2")
    bench.fill(lambda key: {"tokens": None if key.task.task_id in lost and key.arm == "none" else 90 + key.position})
    tokens = compare(bench.workspace, "x1").primary.tokens
    assert tokens.missing == 3
    assert tokens.interval.estimate is not None
    assert tokens.interval.low is None
    assert "7 of 10 tasks" in tokens.interval.method
    assert compare(bench.workspace, "x1").arms[0].missing_usage == 3


def test_usage_is_paired_by_repeat(bench: Bench) -> None:
    # The control lacks its second repeat; the treated second repeat, ten times as large, must not count either.
    bench.design(2, repeats=2)

    def make(key):
        if key.repeat == 1:
            return {"tokens": None if key.arm == "none" else 9990}
        return {"tokens": 90 if key.arm == "none" else 190}

    bench.fill(make)
    assert compare(bench.workspace, "x1").primary.tokens.interval.estimate == pytest.approx(2.0)


def test_latency_leaves_failed_calls_and_backoff_out(bench: Bench) -> None:
    bench.design(1)
    bench.fill(lambda key: {"latency": 2.0})
    trial = bench.plan.trials()[0].trial_id
    common = {"trial_id": trial, "turn": 0, "context_tokens": 0, "sent_at": NOW, "retries": 3, "backoff_s": 30.0}
    bench.insert(
        "requests",
        [
            {**common, "request_id": "ok", "http_status": 200, "total_s": 1.5, "error": None},
            {**common, "request_id": "cut", "http_status": 200, "total_s": 90.0, "error": "the stream was cut"},
            {**common, "request_id": "busy", "http_status": 500, "total_s": 80.0, "error": None},
        ],
    )
    arms = {summary.arm: summary for summary in compare(bench.workspace, "x1").arms}
    touched = arms[bench.plan.trials()[0].arm]
    assert touched.latency_s == 3.5
    assert (touched.retries, touched.backoff_s) == (9, 90.0)


def test_trials_without_partner_and_foreign_trials_are_counted_not_used(bench: Bench) -> None:
    bench.design(3)
    bench.fill(lambda key: None if key.arm == "none" and key.task.task_id == "t2" else better(key))
    bench.workspace.rows("SELECT 1")
    with bench.workspace.write() as db:
        db.execute("INSERT INTO trials SELECT * REPLACE ('alien' AS trial_id, 1.0 AS success) FROM trials LIMIT 1")
    found = compare(bench.workspace, "x1")
    assert (found.primary.tasks, found.primary.unpaired, found.foreign_trials) == (2, 1, 1)
    assert (found.stored_trials, found.planned_trials, found.complete) == (5, 6, False)


def test_before_the_first_trial_everything_is_unknown(bench: Bench) -> None:
    bench.design(3, simulated=None)
    found = compare(bench.workspace, "x1")
    assert (found.stored_trials, found.primary.tasks, found.tokens, found.detectable) == (0, 0, None, None)
    assert found.primary.outcome.interval.estimate is None
    assert found.primary.p_value is None
    assert all(measure.interval.low is None for measure in found.primary.measures())


def test_next_step_clusters_the_cuts_of_a_task(bench: Bench) -> None:
    tasks = (
        PlannedTask(task_id="t0", category="c", set_hash="s", cuts=(("r1", 0), ("r1", 1), ("r2", 0))),
        PlannedTask(task_id="t1", category="c", set_hash="s", cuts=(("r3", 2),)),
    )
    bench.design(mode="next_step", tasks=tasks)
    bench.fill(lambda key: {**better(key), "success_provenance": "next_step_quality", "turns": 1})
    found = compare(bench.workspace, "x1")
    assert found.outcome == "next_step_quality"
    assert found.primary.outcome.name == "next_step_quality"
    assert (found.primary.tasks, found.primary.pairs, found.primary.outcome.interval.n) == (2, 4, 2)
    assert found.fidelity.finding == "not_applicable"


def test_figures_do_not_depend_on_the_order_of_the_rows(bench: Bench, tmp_path) -> None:
    other = Bench(tmp_path / "other.duckdb")
    for which in (bench, other):
        which.design(12, repeats=2)
    values = {key.trial_id: (i % 3 / 3, 0.1 + i / 7) for i, key in enumerate(bench.plan.trials())}

    def make(key):
        return {"success": values[key.trial_id][0], "latency": values[key.trial_id][1]}

    bench.fill(make)
    other.fill(make)
    with other.workspace.write() as db:
        for table in ("trials", "requests"):
            db.execute(f"CREATE TABLE reversed AS SELECT * FROM {table} ORDER BY trial_id DESC")
            db.execute(f"DELETE FROM {table}")
            db.execute(f"INSERT INTO {table} SELECT * FROM reversed")
            db.execute("DROP TABLE reversed")
    assert compare(bench.workspace, "x1") == compare(other.workspace, "x1")


def test_the_record_survives_json(bench: Bench) -> None:
    bench.design(5)
    bench.fill(better)
    found = compare(bench.workspace, "x1")
    assert msgspec.json.decode(msgspec.json.encode(found), type=Comparison) == found


def log_runs(bench: Bench, tools: list[str], outcome: float, tasks: int) -> None:
    bench.insert(
        "runs",
        [
            {"run_id": f"l{i}", "source_id": "s", "place": str(i), "task_id": f"t{i}", "outcome": outcome}
            for i in range(tasks)
        ],
    )
    bench.insert(
        "steps",
        [
            {
                "run_id": f"l{i}", "step": j, "turn": j, "ordinal": 0, "tool": tool, "arguments_status": "parsed",
                "status": "ok", "status_evidence": "result", "caller": "agent",
            }
            for i in range(tasks)
            for j, tool in enumerate(tools)
        ],
    )  # fmt: skip


def replay_steps(bench: Bench, tools: list[str]) -> None:
    bench.insert(
        "replay_steps",
        [
            {"trial_id": key.trial_id, "step": j, "turn": j, "ordinal": 0, "tool": tool, "status": "ok"}
            for key in bench.plan.trials()
            for j, tool in enumerate(tools)
        ],
    )


def test_fidelity_of_a_like_agent(bench: Bench) -> None:
    bench.design(12)
    bench.fill(lambda key: {"success": 1.0, "steps": 2})
    log_runs(bench, ["find", "refund"], 1.0, 12)
    replay_steps(bench, ["find", "refund"])
    found = compare(bench.workspace, "x1").fidelity
    assert (found.finding, found.differs_in, found.tasks, found.logged_runs) == ("alike", (), 12, 12)
    assert (found.logged_success, found.replayed_success, found.success.estimate) == (1.0, 1.0, 0.0)
    assert (found.logged_steps, found.replayed_steps, found.tool_distance) == (2.0, 2.0, 0.0)


def test_fidelity_of_another_agent(bench: Bench) -> None:
    bench.design(12)
    bench.fill(lambda key: {"success": 0.0, "steps": 4})
    log_runs(bench, ["find", "refund"], 1.0, 12)
    replay_steps(bench, ["find", "find", "find", "ask"])
    found = compare(bench.workspace, "x1").fidelity
    assert found.finding == "different"
    assert found.differs_in == ("success", "steps", "tools")
    assert found.success.estimate == -1.0
    # Logged: half find, half refund; replayed: 3/4 find, 1/4 ask. Half of 1/4 + 1/2 + 1/4.
    assert found.tool_distance == pytest.approx(0.5)
    assert found.logged_tools == {"find": 0.5, "refund": 0.5}


def test_fidelity_is_unknown_without_logs_of_these_tasks(bench: Bench) -> None:
    bench.design(3)
    bench.fill(better)
    assert compare(bench.workspace, "x1").fidelity.finding == "unknown"


def test_split_names_the_tasks_that_made_their_own_subgoals(bench: Bench) -> None:
    bench.design(3, made_from='["k1", "zzz"]')
    bench.fill(better)
    found = compare(bench.workspace, "x1").split
    assert (found.overlapping, found.silent_sets) == (("k1",), 0)


def _trial(arm: str, tokens: int, context: int, turns: int) -> Trial:
    return Trial(
        trial_id=arm, task_id="t", category=None, arm=arm, unit=(0, "", -1), failed=False, success=1.0,
        provenance=None, final_progress=None, turns=turns, steps=1, errors=0, repeated_steps=0,
        repeated_irreversible=0, input_tokens=tokens, output_tokens=0, cached_tokens=None, context_tokens=context,
        cost_usd=None, latency_s=None, first_token_s=None,
    )  # fmt: skip


arm_figures = st.tuples(st.integers(1, 10**6), st.integers(0, 10**4), st.integers(1, 50))


@given(st.lists(st.tuples(arm_figures, arm_figures), min_size=1, max_size=20))
@settings(deadline=None, max_examples=100)
def test_parts_of_the_token_change_sum_to_it(units: list) -> None:
    pairs = Pairs({f"t{i}": [(_trial("a", *x), _trial("b", *y))] for i, (x, y) in enumerate(units)}, 0)
    parts = split(pairs)
    assert parts is not None
    assert parts.context + parts.turns + parts.length == pytest.approx(parts.total, abs=1e-6 * (1 + parts.control))
    same = split(Pairs({"t": [(_trial("a", *units[0][0]), _trial("b", *units[0][0]))]}, 0))
    assert same is not None
    assert (same.total, same.context, same.turns, same.length) == (0, 0, 0, 0)
