"""Next-step replays: history up to a turn, one answer, four judges."""

import asyncio
import json

import pytest
import replay_bench as bench
from scripted_server import Say, scripted_server

from poc.ingest import import_logs, iter_runs
from poc.progress import Tracker, score
from poc.replay import run
from poc.replay.history import NO_RESULT, agent_turns, history, steps_before, turn_steps
from poc.replay.judge import PredictedCall, judge, quality
from poc.subgoals import load_sets, parse_set, store_sets
from poc.trajectory import Message, Run, Step
from poc.workspace import Workspace

SET = parse_set(bench.SUBGOALS)


def step(index: int, tool: str, arguments: dict | None, **more) -> Step:
    chosen = {
        "turn": index,
        "arguments_json": None if arguments is None else json.dumps(arguments),
        "status": "ok",
        "result": "{}",
        **more,
    }
    return Step(index=index, tool=tool, **chosen)


def judged(past: list[Step], calls: list[tuple[str, dict | None]], logged: list[Step], outcome: float | None):
    tracker = Tracker(SET)
    for one in past:
        tracker.observe(one)
    made = [PredictedCall(tool, None if arguments is None else json.dumps(arguments)) for tool, arguments in calls]
    judgements = judge(tracker, made, logged, outcome)
    return {one.judge: one.value for one in judgements}, quality(judgements)


LOOKED = [step(0, "look_up", {"item": "1"})]
NEXT = [step(1, "paint", {"item": "1", "colour": "red"})]


@pytest.mark.parametrize(
    ("calls", "outcome", "advances", "repeats", "stopped", "matches", "good"),
    [
        # The logged call itself, spelled otherwise.
        ([("paint", {"colour": "red", "item": "1"})], 1.0, True, False, False, True, 1.0),
        # Another item: advances (the subgoal does not name the item), matches nothing.
        ([("paint", {"item": "2", "colour": "red"})], 1.0, True, False, False, False, 1.0),
        # The wrong colour advances nothing.
        ([("paint", {"item": "1", "colour": "blue"})], 1.0, False, False, False, False, 0.0),
        # What was done already.
        ([("look_up", {"item": "1"})], 1.0, False, True, False, False, 0.0),
        # One call advances and one repeats: not good.
        ([("paint", {"item": "1", "colour": "red"}), ("look_up", {"item": "1"})], 1.0, True, True, False, True, 0.0),
        # Sending comes after painting.
        ([("send", {"item": "1"})], 1.0, False, False, False, False, 0.0),
        # Stops although two required subgoals are open.
        ([], 1.0, False, False, True, False, 0.0),
        # A failed or unknown run is no model to match.
        ([("paint", {"item": "1", "colour": "red"})], 0.0, True, False, False, None, 1.0),
        ([("paint", {"item": "1", "colour": "red"})], None, True, False, False, None, 1.0),
        # Unreadable arguments.
        ([("paint", None)], 1.0, False, False, False, False, 0.0),
    ],
)
def test_the_judges_by_hand(calls, outcome, advances, repeats, stopped, matches, good):
    values, how_good = judged(LOOKED, calls, NEXT, outcome)
    assert values == {
        "advances": advances,
        "repeats": repeats,
        "stopped_early": stopped,
        "matches_logged": matches,
    }
    assert how_good == good


def test_stopping_when_all_is_done_is_not_early():
    past = [*LOOKED, *NEXT, step(2, "send", {"item": "1"})]
    values, _ = judged(past, [], [step(3, "look_up", {"item": "1"})], 1.0)
    assert values["stopped_early"] is False


def test_a_logged_call_without_readable_arguments_cannot_be_matched():
    values, _ = judged(LOOKED, [("paint", {})], [step(1, "paint", None)], 1.0)
    assert values["matches_logged"] is None


# History ------------------------------------------------------------------------------------------------------


def chat(turns: int = 3) -> Run:
    messages = [Message(seq=0, role="system", content="Rules"), Message(seq=1, role="user", content="Do it")]
    steps: list[Step] = []
    seq = 2
    for turn in range(turns):
        for ordinal in range(2):
            steps.append(
                step(
                    2 * turn + ordinal,
                    f"tool{ordinal}",
                    {"t": turn},
                    turn=turn,
                    ordinal=ordinal,
                    message_seq=seq,
                    result_seq=seq + 1 + ordinal,
                    result=f"r{turn}{ordinal}",
                )
            )
        messages += [Message(seq=seq, role="assistant", content=f"turn {turn}")]
        messages += [Message(seq=seq + 1 + ordinal, role="tool", content=f"r{turn}{ordinal}") for ordinal in range(2)]
        messages += [
            Message(seq=seq + 3, role="assistant", content="Shall I?"),
            Message(seq=seq + 4, role="user", content="Yes"),
        ]
        seq += 5
    return Run(place="x", task_text="Do it", messages=messages, steps=steps)


def test_a_cut_lies_before_the_message_whose_calls_are_predicted():
    run = chat()
    assert agent_turns(run) == [0, 1, 2]
    assert [m["role"] for m in history(run, 0)] == ["system", "user"]
    roles = [m["role"] for m in history(run, 1)]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    whole = history(run)
    for turn in agent_turns(run):
        part = history(run, turn)
        assert whole[: len(part)] == part
        assert [s.index for s in steps_before(run, turn)] == list(range(2 * turn))
        assert [s.index for s in turn_steps(run, turn)] == [2 * turn, 2 * turn + 1]


def test_calls_and_results_are_paired_with_ids_of_their_own():
    run = chat()
    for one in run.steps:
        one.call_id = "0"  # logs repeat ids
    messages = history(run)
    made = [call["id"] for m in messages for call in m.get("tool_calls") or ()]
    answered = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert made == answered
    assert len(set(made)) == 6
    assert [m["content"] for m in messages if m["role"] == "tool"] == ["r00", "r01", "r10", "r11", "r20", "r21"]


def test_rows_without_messages_become_a_chat():
    steps = [
        step(0, "a", {"x": 1}, turn=0, result="one"),
        step(1, "b", None, turn=1, arguments_raw="x=1", result=None, status="no_result"),
        step(2, "c", {}, turn=2),
    ]
    run = Run(place="x", task_text="Do it", steps=steps)
    messages = history(run, 2)
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert messages[0]["content"] == "Do it"
    assert messages[3]["tool_calls"][0]["function"]["arguments"] == '{"_raw": "x=1"}'
    assert messages[4]["content"] == NO_RESULT


def test_calls_of_the_simulated_user_are_not_the_agents():
    run = chat()
    run.steps[1].caller = "user"
    names = [call["function"]["name"] for m in history(run) for call in m.get("tool_calls") or ()]
    assert names == ["tool0", "tool0", "tool1", "tool0", "tool1"]
    assert [s.index for s in steps_before(run, 1)] == [0, 1]


# Whole experiments --------------------------------------------------------------------------------------------


def test_a_next_step_experiment(desk):
    """The scripted agent makes the right next call, from a history that is another agent's."""
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, mode="next_step", cuts_per_run=2)
        asyncio.run(run(desk, experiment.experiment_id))
    trials = desk.rows("SELECT * FROM trials ORDER BY position")
    cuts = sum(len(task.cuts) for task in experiment.plan.tasks)
    assert len(trials) == 3 * cuts == len(server.bodies)
    assert cuts == 16  # eight runs with three or two turns each, two drawn
    runs = dict(iter_runs(desk))
    judgements = desk.rows("SELECT * FROM judgements")
    steps = desk.rows("SELECT * FROM replay_steps")
    for trial in trials:
        assert (trial["turns"], trial["stop_reason"], trial["success"]) == (1, "judged", 1.0)
        assert trial["success_provenance"] == "next_step_quality"
        logged = runs[trial["cut_run_id"]]
        values = {row["judge"]: row["value"] for row in judgements if row["trial_id"] == trial["trial_id"]}
        assert logged.outcome is not None
        matches = True if logged.outcome.value == 1 else None
        assert values == {"advances": True, "repeats": False, "stopped_early": False, "matches_logged": matches}
        made = [row for row in steps if row["trial_id"] == trial["trial_id"]]
        assert [row["tool"] for row in made] == [turn_steps(logged, trial["cut_turn"])[0].tool]
        assert (made[0]["result"], made[0]["status"]) == (None, "no_result")
    # The tools come from the log.
    assert {tool["function"]["name"] for tool in server.bodies[0]["tools"]} == {"look_up", "paint", "send"}
    # A history of n turns holds n calls, and nothing of the turn that is asked for.
    by_nonce = {key.nonce: key for key in experiment.plan.trials()}
    for body in server.bodies:
        key = by_nonce[body["messages"][0]["content"].split()[1]]
        assert key.cut is not None
        assert len(bench.called(body)) == key.cut[1]
        last = body["messages"][-1]["content"]
        assert ("Progress on this task" in last) == (key.arm == "progress")
        if key.arm == "progress":
            assert last.endswith(f"{key.cut[1]} of 3 done.")


def test_an_agent_that_stops_is_judged_so(desk):
    with scripted_server(lambda body: Say(content="Done.")) as server:
        experiment = bench.planned(desk, server.base_url, mode="next_step", runs=2, arms=("none", "progress"))
        asyncio.run(run(desk, experiment.experiment_id))
    values = desk.rows("SELECT DISTINCT judge, value FROM judgements WHERE judge IN ('stopped_early', 'advances')")
    assert sorted((row["judge"], row["value"]) for row in values) == [("advances", False), ("stopped_early", True)]
    assert {row["success"] for row in desk.rows("SELECT success FROM trials")} == {0.0}


def test_a_table_log_can_be_replayed(tmp_path, workspace):
    rows = ["run_id,tool,arguments,result,status,task,outcome"]
    for number in range(3):
        item = f'"{{""item"": ""{number}""}}"'
        rows += [
            f"r{number},look_up,{item},{{}},ok,Paint item {number} in red,1",
            f'r{number},paint,"{{""item"": ""{number}"", ""colour"": ""red""}}",{{}},ok,Paint item {number} in red,1',
            f"r{number},send,{item},{{}},ok,Paint item {number} in red,1",
        ]
    log = tmp_path / "calls.csv"
    log.write_text("\n".join(rows) + "\n")
    mapping = {"run_id": "run_id", "tool": "tool", "arguments": "arguments", "result": "result", "status": "status"}
    import_logs(workspace, [log], mapping={**mapping, "task_text": "task", "outcome": "outcome"})
    store_sets(workspace, [SET])
    score(workspace)
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(workspace, server.base_url, mode="next_step", arms=("none", "progress"))
        asyncio.run(run(workspace, experiment.experiment_id))
    assert {row["success"] for row in workspace.rows("SELECT success FROM trials")} == {1.0}
    first = next(body for body in server.bodies if not bench.called(body))
    assert [m["role"] for m in first["messages"][:2]] == ["system", "user"]
    assert first["messages"][1]["content"].startswith("Paint item")


def test_real_airline_runs(real_logs, tmp_path):
    """Twenty real runs in three arms: every request is well-formed, and the history's own next call matches it."""
    workspace = Workspace.open(tmp_path / "airline.duckdb")
    import_logs(workspace, [real_logs / "openai_chat" / "taubench_gpt-4o-airline.json"])
    folder = bench.Path(__file__).resolve().parents[1] / "data" / "airline"
    store_sets(workspace, load_sets(folder))
    score(workspace)

    def policy(body):
        roles = [message["role"] for message in body["messages"]]
        assert roles[0] == "system"
        ids = [call["id"] for m in body["messages"] for call in m.get("tool_calls") or ()]
        assert ids == [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]
        return Say(calls=[("get_user_details", '{"user_id": "nobody_0"}')])

    with scripted_server(policy) as server:
        experiment = bench.planned(
            workspace, server.base_url, mode="next_step", runs=20, cuts_per_run=1, override_readiness="no times"
        )
        summary = asyncio.run(run(workspace, experiment.experiment_id))
    assert (summary.done, summary.total, len(server.bodies)) == (60, 60, 60)
    assert workspace.value("SELECT count(*) FROM trials WHERE status = 'finished' AND success IS NOT NULL") == 60
    kept_out = {"0", "11", "34"}
    assert not kept_out & {task.task_key for task in experiment.plan.tasks}
    sampling = experiment.plan.sampling
    assert sampling.runs == 20 < (sampling.runs_frame or 0)
    assert len(server.bodies[0]["tools"]) > 10
