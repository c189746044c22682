"""Planning: which tasks, under which limits, what it will cost and send. Nothing is called."""

import json

import pytest
import replay_bench as bench
from scripted_server import scripted_server

from poc import tokens
from poc.errors import ExitCode, InputError, NotReady
from poc.ingest import import_logs, iter_runs
from poc.progress import score
from poc.replay import (
    BudgetLimits,
    ContextSettings,
    Limits,
    estimate,
    load_experiment,
    make_plan,
    preview,
    spoken_notes,
    status,
)
from poc.replay.experiment import Sampling
from poc.replay.history import agent_turns
from poc.subgoals import parse_set, store_sets
from poc.workspace import Workspace

NOWHERE = "http://127.0.0.1:9/v1"


def plan(workspace: Workspace, **options):
    chosen = {"mode": "closed_loop", "environment": bench.DESK, "model": bench.settings(NOWHERE), "seed": 1, **options}
    if chosen["mode"] == "next_step":
        chosen["environment"] = None
    return make_plan(workspace, **chosen)


def test_the_same_arguments_give_the_same_plan(desk):
    one, other = plan(desk, tasks=2), plan(desk, tasks=2)
    assert one.hash == other.hash
    assert one.trials() == other.trials()
    assert plan(desk, tasks=2, seed=2).hash != one.hash


def test_how_tasks_were_chosen_is_said(desk):
    assert plan(desk).sampling == Sampling(frame=4)
    assert plan(desk, tasks=2).sampling == Sampling(how="random", frame=4)
    assert plan(desk, tasks=9).sampling == Sampling(frame=4)
    assert plan(desk, categories=["paint"]).sampling == Sampling(frame=4, categories=("paint",))
    named = plan(desk, tasks=["t2", "t0"])
    assert named.sampling == Sampling(how="named", frame=4)
    assert sorted(str(task.task_key) for task in named.tasks) == ["t0", "t2"]
    drawn = {tuple(sorted(str(task.task_key) for task in plan(desk, tasks=2, seed=seed).tasks)) for seed in range(5)}
    assert len(drawn) > 1


def test_tasks_that_subgoals_were_made_from_are_left_out(tmp_path, workspace):
    subgoals = bench.SUBGOALS + "made_from: {tasks: [t0], reference_calls_of: [t3]}\n"
    bench.fill(workspace, tmp_path, subgoals=subgoals)
    made = plan(workspace)
    assert sorted(str(task.task_key) for task in made.tasks) == ["t1", "t2"]
    assert made.sampling.made_from == 2
    with pytest.raises(InputError, match="subgoals were made from it"):
        plan(workspace, tasks=["t0"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"arms": ("none", "progres")}, 'Did you mean "progress"'),
        ({"primary": ("wrong", "none")}, "primary contrast"),
        ({"arms": ("none",), "primary": ("none", "none")}, "compares an arm with itself"),
        ({"tasks": ["t99"]}, "cannot be replayed"),
        ({"tasks": 0}, "cannot be replayed"),
        ({"categories": ["pain"]}, 'Did you mean "paint"'),
        ({"environment": None}, "needs an environment"),
        ({"environment": "nonsense"}, "does not name an environment"),
        ({"runs": 3}, "next-step"),
        ({"mode": "next_step", "runs": 0}, "at least one run"),
        ({"repeats": 0}, "greater than 0"),
        ({"budget": BudgetLimits(usd=1.0)}, "price of 'scripted-1' is unknown"),
    ],
)
def test_what_cannot_be_planned(desk, options, told):
    with pytest.raises(InputError, match=told):
        plan(desk, **options)


def test_without_sets_or_scores_nothing_can_be_planned(tmp_path, workspace):
    import_logs(workspace, [_log(tmp_path)])
    with pytest.raises(InputError, match="no subgoal sets"):
        plan(workspace)
    store_sets(workspace, [parse_set(bench.SUBGOALS)])
    with pytest.raises(InputError, match="poc score"):
        plan(workspace)
    score(workspace)
    assert len(plan(workspace).tasks) == 1


def _log(folder, **more):
    path = folder / "one.jsonl"
    path.write_text(json.dumps({**bench.logged_run(1), **more}) + "\n")
    return path


def test_a_log_that_is_not_ready_needs_a_reason(tmp_path, workspace):
    """Calls without results: nobody can tell what was done."""
    rows = ["run,tool"] + [f"r{n},look_up" for n in range(3)]
    (tmp_path / "bare.csv").write_text("\n".join(rows) + "\n")
    import_logs(workspace, [tmp_path / "bare.csv"], mapping={"run_id": "run", "tool": "tool"})
    store_sets(workspace, [parse_set(bench.SUBGOALS)])
    score(workspace)
    with pytest.raises(NotReady, match="not ready") as caught:
        plan(workspace)
    assert caught.value.exit_code == ExitCode.NOT_READY == 6


def test_an_override_is_part_of_the_plan(desk):
    made = plan(desk, override_readiness="times are not needed here")
    assert made.readiness.override_reason == "times are not needed here"
    assert made.readiness.level in ("READY", "PARTIAL", "NOT READY")


def test_cuts_are_drawn_among_turns_with_an_open_subgoal(desk):
    made = plan(desk, mode="next_step", cuts_per_run=99)
    cuts = [cut for task in made.tasks for cut in task.cuts]
    # Every run opens with nothing done; after the second turn two of three are: all turns count.
    expected = {(run_id, turn) for run_id, run in iter_runs(desk) for turn in agent_turns(run)}
    assert set(cuts) == expected
    few = plan(desk, mode="next_step", cuts_per_run=1, runs=5)
    its = [cut for task in few.tasks for cut in task.cuts]
    assert len(its) == 5 == len({run_id for run_id, _ in its})
    assert (few.sampling.runs, few.sampling.runs_frame) == (5, 8)
    assert set(its) <= expected


def test_turns_after_which_nothing_was_open_are_not_drawn(tmp_path, workspace):
    record = bench.logged_run(1)
    extra = {"id": "c9", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    record["messages"][-1:] = [
        {"role": "assistant", "content": None, "tool_calls": [extra]},
        {"role": "tool", "tool_call_id": "c9", "content": "{}"},
    ]
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(record) + "\n")
    import_logs(workspace, [path])
    store_sets(workspace, [parse_set(bench.SUBGOALS)])
    score(workspace)
    made = plan(workspace, mode="next_step", cuts_per_run=99)
    assert [turn for task in made.tasks for _, turn in task.cuts] == [0, 1, 2]


def test_a_task_goes_with_the_set_of_most_of_its_runs(tmp_path, workspace):
    other = bench.SUBGOALS.replace("category: paint", "category: sending").replace("runs: all", "runs: {tool: send}")
    bench.fill(workspace, tmp_path)
    store_sets(workspace, [parse_set(other), parse_set(bench.SUBGOALS)])
    score(workspace)
    made = {str(task.task_key): task.category for task in plan(workspace).tasks}
    # Odd tasks send in both trials; even ones fail once, so their runs are split one to one: the hash decides.
    assert made["t1"] == made["t3"] == "sending"
    assert made["t0"] == made["t2"]
    cuts = plan(workspace, mode="next_step", cuts_per_run=99)
    assigned = {row["run_id"]: row["set_hash"] for row in workspace.rows("SELECT * FROM assignments")}
    assert all(assigned[run_id] == task.set_hash for task in cuts.tasks for run_id, _ in task.cuts)


# Estimate and preview -----------------------------------------------------------------------------------------


def test_an_estimate_by_hand(desk):
    """Next-step in two arms, one run, one cut: the request is known to the letter."""
    made = plan(
        desk, mode="next_step", runs=1, cuts_per_run=1, arms=("none", "progress"), budget=BudgetLimits(tokens=9999)
    )
    found = estimate(desk, made).estimate
    from poc.replay.history import chat_tools, history
    from poc.replay.toolbox import tools_of_source

    (run_id, turn) = made.tasks[0].cuts[0]
    run = dict(iter_runs(desk))[run_id]
    source = desk.value("SELECT source_id FROM runs LIMIT 1")
    request = tokens.count_request(history(run, turn), chat_tools(tools_of_source(desk, source)), "scripted-1")
    text = "Progress on this task so far:\n[x] Item looked up\n[x] Item painted red\n[ ] Item sent\n2 of 3 done."
    assert (found.trials, found.requests) == (2, 2)
    assert found.context_tokens == tokens.count(text)
    assert found.input_tokens == 2 * request + tokens.count(text)
    assert found.worst_tokens == round(1.2 * 2 * (request + made.context.token_budget)) + 2 * 64
    assert (found.usd, found.worst_usd, found.seconds, found.detectable) == (None, None, None, None)
    assert found.hosts == ("127.0.0.1:9",)
    assert found.encoding == "o200k_base"
    notes = {note["key"] for note in found.notes}
    assert {"estimate.price_unknown", "estimate.next_step_quality", "estimate.tokens_are_estimates"} <= notes


def test_a_closed_loop_estimate_is_near_what_it_takes(desk):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, repeats=1)
        import asyncio

        from poc.replay import run

        assert experiment.estimate is not None
        # Three turns and the closing answer; half of the logged runs of even tasks stop one turn earlier.
        assert 42 <= experiment.estimate.requests <= 48
        asyncio.run(run(desk, experiment.experiment_id))
        sizes = [tokens.count_request(body["messages"], body["tools"]) for body in server.bodies]
    assert experiment.estimate.input_tokens == pytest.approx(sum(sizes), rel=0.2)
    assert experiment.estimate.input_tokens < experiment.estimate.worst_tokens
    assert experiment.estimate.detectable is None or 0 < experiment.estimate.detectable <= 1
    again = estimate(desk, experiment.plan).estimate
    assert again.seconds is not None
    assert again.seconds_basis == "48 earlier calls of this model"


def test_prices_and_the_default_budget(desk):
    price = {"scripted-1": {"input": 1.0, "output": 2.0}}
    made = plan(desk, prices=price)
    found = estimate(desk, made, bench_prices(price)).estimate
    assert found.usd == pytest.approx((found.input_tokens + 2 * found.output_tokens) / 1e6)
    assert made.budget == BudgetLimits(usd=found.worst_usd)
    free = plan(desk)
    assert free.budget == BudgetLimits(tokens=estimate(desk, free).estimate.worst_tokens)
    assert "estimate.budget_default" in {note["key"] for note in estimate(desk, free).estimate.notes}
    timed = plan(desk, budget=BudgetLimits(seconds=60))
    assert (timed.budget.seconds, timed.budget.tokens) == (60, free.budget.tokens)


def bench_prices(price):
    from poc.prices import load_overrides

    return load_overrides(price)


@pytest.mark.parametrize("mode", ["closed_loop", "next_step"])
def test_every_note_can_be_said(desk, mode):
    found = estimate(desk, plan(desk, mode=mode)).estimate
    english, japanese = spoken_notes(found), spoken_notes(found, "ja")
    assert len(english) == len(japanese) == len(found.notes) > 3
    assert not set(english) & set(japanese)


@pytest.mark.parametrize("mode", ["closed_loop", "next_step"])
def test_the_preview_is_what_will_be_sent(desk, mode):
    """Compared with the first request of that trial as it really left: only the state shown differs."""
    import asyncio

    from poc.replay import run

    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, mode=mode, tasks=2)
        shown = preview(desk, experiment.experiment_id)
        assert server.bodies == []
        asyncio.run(run(desk, experiment.experiment_id))
    assert shown.hosts == (server.base_url.removeprefix("http://").removesuffix("/v1"),)
    assert (shown.leaves, shown.encrypted, shown.redacting, shown.arm) == (False, False, True, "progress")
    assert shown.redacted == {"email": 1}
    text = json.dumps(shown.request)
    assert "<email_1>" in text
    assert "@example.com" not in text
    nonce = shown.request["messages"][0]["content"].split()[1]
    sent = next(body for body in server.bodies if body["messages"][0]["content"].split()[1] == nonce)
    assert shown.request["messages"][:-1] == sent["messages"][:-1]
    assert shown.request["tools"] == sent["tools"]
    assert shown.request["messages"][-1]["content"] == shown.context
    assert shown.context == (
        "Progress on this task so far:\n[x] Item looked up\n[x] Item painted red\n[ ] Item sent\n2 of 3 done."
    )
    assert {key: sent[key] for key in ("model", "max_tokens", "seed")} == {
        key: shown.request[key] for key in ("model", "max_tokens", "seed")
    }


def test_a_stored_plan_is_frozen(desk):
    experiment = bench.planned(desk, NOWHERE, tasks=1)
    assert load_experiment(desk, experiment.experiment_id).plan == experiment.plan
    assert status(desk, experiment.experiment_id).state == "planned"
    assert status(desk, experiment.experiment_id).total == 3
    assert bench.planned(desk, NOWHERE, tasks=1).experiment_id == experiment.experiment_id
    with desk.write() as db:
        db.execute("UPDATE experiments SET plan = json_merge_patch(plan, '{\"seed\": 99}')")
    with pytest.raises(InputError, match="not the one that was frozen"):
        load_experiment(desk, experiment.experiment_id)
    with pytest.raises(InputError, match="no experiment"):
        load_experiment(desk, "nothing")


def test_a_finished_plan_is_not_stored_again(desk):
    import asyncio

    from poc.replay import run

    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1)
        asyncio.run(run(desk, experiment.experiment_id))
        with pytest.raises(InputError, match="already run"):
            bench.planned(desk, server.base_url, tasks=1)
        assert bench.planned(desk, server.base_url, tasks=1, seed=77).experiment_id != experiment.experiment_id


def test_a_plan_may_change_what_it_likes_before_it_is_frozen(desk):
    made = plan(
        desk,
        context=ContextSettings(placement="system", language="ja", token_budget=50),
        limits=Limits(max_turns=3),
        redact=False,
        name="mine",
    )
    assert (made.context.language, made.limits.max_turns, made.redact, made.name) == ("ja", 3, False, "mine")
