"""The sample world against the simulated agent's own server: the line that a newcomer sees first."""

import asyncio

from poc.ingest import import_logs
from poc.models import ModelSettings
from poc.progress import score
from poc.replay import BudgetLimits, make_plan, run, store_plan
from poc.sample import running_server
from poc.sample.files import data_dir
from poc.subgoals import load_sets, store_sets


def test_a_few_tasks_of_the_sample_world(workspace):
    data = data_dir()
    import_logs(workspace, [data / "logs" / "orders.jsonl"])
    store_sets(workspace, load_sets(data / "subgoals"))
    score(workspace)
    with running_server() as base_url:
        plan = make_plan(
            workspace,
            mode="closed_loop",
            environment="poc.sample.world:World",
            model=ModelSettings(name="simulated-agent", base_url=base_url),
            tasks=4,
            budget=BudgetLimits(tokens=5_000_000),
        )
        experiment = store_plan(workspace, plan)
        summary = asyncio.run(run(workspace, experiment.experiment_id))
    assert (summary.state, summary.done, summary.simulated) == ("finished", 12, True)
    trials = workspace.rows("SELECT * FROM trials")
    assert {trial["success_provenance"] for trial in trials} == {"environment"}
    assert {trial["success"] for trial in trials} <= {0.0, 1.0}
    shown = [(trial["stop_reason"], trial["turns"], trial["input_tokens"], trial["error"]) for trial in trials]
    assert all(turns >= 1 and tokens and tokens > 0 for _, turns, tokens, _ in shown), shown
    # Tasks that the subgoals were made from are not replayed with them.
    made_from = {key for one in load_sets(data / "subgoals") for key in one.made_from.all_tasks}
    assert made_from
    assert not made_from & {task.task_key for task in plan.tasks}
    # The simulated agent knows these tools: nothing marks the experiment.
    assert workspace.value("SELECT count(*) FROM judgements") == 0


def test_the_simulated_agent_marks_tools_that_it_does_not_know(desk):
    import replay_bench as bench

    with running_server() as base_url:
        model = ModelSettings(name="simulated-agent", base_url=base_url)
        experiment = bench.planned(desk, base_url, tasks=1, arms=("none", "progress"), model=model)
        summary = asyncio.run(run(desk, experiment.experiment_id))
    assert (summary.done, summary.simulated) == (2, True)
    marks = desk.rows("SELECT judge, value, count(*) AS n FROM judgements GROUP BY ALL")
    assert marks == [{"judge": "simulated_unknown_tools", "value": True, "n": 2}]
