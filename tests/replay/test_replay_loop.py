"""Closed-loop replays against a real server over loopback."""

import asyncio
import json
import math

import pytest
import replay_bench as bench
from scripted_server import USAGE, Say, scripted_server

from poc.replay import Limits, RunSummary, run, status
from poc.replay.records import Header
from poc.workspace import Workspace


def go(workspace: Workspace, experiment_id: str, **options) -> RunSummary:
    return asyncio.run(run(workspace, experiment_id, **options))


def test_a_whole_experiment(desk):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url)
        seen = []
        summary = go(desk, experiment.experiment_id, progress=seen.append)
    assert (summary.state, summary.reason, summary.done, summary.total) == ("finished", "finished", 12, 12)
    counts = [one.done for one in seen]
    assert (counts[0], counts[-1], len(counts)) == (0, 12, 13)
    assert counts == sorted(counts)
    trials = desk.rows("SELECT * FROM trials ORDER BY position")
    assert len(trials) == 12
    assert {trial["arm"] for trial in trials} == {"none", "plan", "progress"}
    for trial in trials:
        assert trial["status"] == "finished"
        assert trial["stop_reason"] == "answered"
        assert (trial["success"], trial["success_provenance"]) == (1.0, "environment")
        assert (trial["turns"], trial["steps"], trial["errors"], trial["repeated_steps"]) == (4, 3, 0, 0)
        assert trial["final_progress"] == 1.0
        assert trial["input_tokens"] == 4 * USAGE["prompt_tokens"]
        assert trial["output_tokens"] == 4 * USAGE["completion_tokens"]
        assert (trial["cached_tokens"], trial["reasoning_tokens"]) == (160, 16)
        assert trial["cost_usd"] is None
    assert desk.value("SELECT count(*) FROM requests") == 48 == summary.requests == len(server.bodies)
    assert summary.tokens == 48 * 110
    assert desk.value("SELECT status FROM experiments") == "finished"
    assert desk.value("SELECT simulated FROM experiments") is False
    state = status(desk, experiment.experiment_id)
    assert (state.state, state.done, state.pid) == ("finished", 12, None)
    assert {arm.arm: arm.success for arm in state.arms} == {"none": 1.0, "plan": 1.0, "progress": 1.0}


def test_arms_differ_in_nothing_but_the_added_text(desk):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1, concurrency=1)
        go(desk, experiment.experiment_id)
    keys = {key.nonce: key for key in experiment.plan.trials()}
    per_arm = {arm: [] for arm in experiment.plan.arms}
    for body in server.bodies:
        nonce = body["messages"][0]["content"].split()[1]
        key = keys[nonce]
        assert body["messages"][0]["content"] == f"Session {nonce}\n\nYou work at a paint desk."
        added = [m for m in body["messages"] if m["role"] == "user"][1:]
        kept = [m for m in body["messages"] if m not in added]
        if added:
            assert body["messages"][-1] == added[0]
            assert len(added) == 1
        # A seed of its own each trial and the nonce are the plan's; the rest must be equal.
        assert (body["seed"] - key.model_seed) & 0x7FFFFFFF == len(bench.called(body))
        plain = {**body, "seed": None, "messages": kept}
        per_arm[key.arm].append((json.dumps(plain).replace(nonce, "NONCE"), [m["content"] for m in added]))
    requests = {arm: [request for request, _ in its] for arm, its in per_arm.items()}
    texts = {arm: [text for _, text in its] for arm, its in per_arm.items()}
    assert requests["none"] == requests["plan"] == requests["progress"]
    assert len(requests["none"]) == 4
    assert texts["none"] == [[], [], [], []]
    plan = "Subgoals of this task:\n- Item looked up\n- Item painted red\n- Item sent"
    assert texts["plan"] == [[plan]] * 4
    assert [text[0].splitlines()[-1] for text in texts["progress"]] == [f"{n} of 3 done." for n in range(4)]
    assert texts["progress"][2] == [
        "Progress on this task so far:\n[x] Item looked up\n[x] Item painted red\n[ ] Item sent\n2 of 3 done."
    ]


@pytest.mark.parametrize("placement", ["system", "tail", "tool_result"])
def test_placements_are_withdrawn_from_the_next_request(desk, placement):
    from poc.replay import ContextSettings

    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(
            desk,
            server.base_url,
            tasks=1,
            concurrency=1,
            arms=("none", "progress"),
            context=ContextSettings(placement=placement),
        )
        go(desk, experiment.experiment_id)
    shown = [json.dumps(body["messages"]).count("Progress on this task") for body in server.bodies]
    none, progress = shown.count(0), shown.count(1)
    # Before the first result there is no tool result to put a text into.
    assert (none, progress) == ((5, 3) if placement == "tool_result" else (4, 4))
    rows = desk.rows("SELECT r.* FROM trials t JOIN requests r USING (trial_id) WHERE arm = 'progress' ORDER BY r.turn")
    assert [row["context_tokens"] > 0 for row in rows] == [placement != "tool_result", True, True, True]


def test_a_request_row_by_hand(desk):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1, arms=("none", "progress"), concurrency=1)
        go(desk, experiment.experiment_id, prices={"scripted-1": {"input": 2.0, "cached": 1.0, "output": 10.0}})
    rows = desk.rows(
        "SELECT r.* FROM requests r JOIN trials t USING (trial_id) WHERE t.arm = 'progress' ORDER BY r.turn"
    )
    from poc import tokens

    text = "Progress on this task so far:\n[ ] Item looked up\n[ ] Item painted red\n[ ] Item sent\n0 of 3 done."
    first = rows[0]
    assert first["request_id"] == f"{first['trial_id']}:1:0"
    assert (first["turn"], first["model"], first["http_status"], first["finish_reason"]) == (
        0,
        "scripted-1",
        200,
        "tool_calls",
    )
    assert (first["retries"], first["backoff_s"], first["error"]) == (0, 0.0, None)
    assert (first["input_tokens"], first["output_tokens"]) == (100, 10)
    assert (first["cached_tokens"], first["reasoning_tokens"]) == (40, 4)
    assert first["context_tokens"] == tokens.count(text)
    # 60 fresh at $2, 40 cached at $1, 10 out at $10 a million.
    assert first["cost_usd"] == pytest.approx((60 * 2 + 40 * 1 + 10 * 10) / 1e6)
    assert 0 < first["first_token_s"] <= first["total_s"] < 5
    trial = desk.rows("SELECT * FROM trials WHERE arm = 'progress'")[0]
    assert trial["context_tokens"] == sum(row["context_tokens"] for row in rows)
    assert trial["model_latency_s"] == pytest.approx(math.fsum(row["total_s"] for row in rows))
    assert trial["first_token_s"] == pytest.approx(math.fsum(row["first_token_s"] for row in rows) / 4)
    assert trial["cost_usd"] == pytest.approx(4 * 260 / 1e6)
    assert trial["started_at"] <= first["sent_at"] <= trial["ended_at"]


def test_steps_are_stored_as_the_model_saw_them(desk):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, tasks=["t2"], arms=("none", "progress"), concurrency=1)
        go(desk, experiment.experiment_id)
    rows = desk.rows(
        "SELECT s.* FROM replay_steps s JOIN trials t USING (trial_id) WHERE t.arm = 'progress' ORDER BY s.step"
    )
    assert [row["tool"] for row in rows] == ["look_up", "paint", "send"]
    assert [row["progress"] for row in rows] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert json.loads(rows[1]["arguments"]) == {"colour": "red", "item": "2"}
    # The address was taken out on its way to the model, and is not in the table either.
    assert json.loads(rows[0]["result"])["owner"] == "<email_1>"
    assert rows[2]["context"].endswith("2 of 3 done.")
    assert all(row["status"] == "ok" and row["duration_s"] >= 0 for row in rows)
    assert "ann2@example.com" not in json.dumps(server.bodies)


def test_placeholders_are_restored_before_the_call(desk):
    """The model hands on a placeholder; the environment gets the value."""

    def policy(body):
        if not bench.called(body):
            return Say(calls=[("look_up", json.dumps({"item": "<email_1>"}))])
        return Say(content="Done.")

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=["t1"], arms=("none", "progress"), concurrency=1)
        go(desk, experiment.experiment_id)
    # The desk knows no such item, and says the address that it got; on the way out it is masked again.
    results = {row["result"] for row in desk.rows("SELECT result FROM replay_steps")}
    assert results == {"Error: no item <email_1>"}


def test_without_redaction_texts_go_as_they_are(desk):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, tasks=["t1"], arms=("none", "progress"), redact=False)
        go(desk, experiment.experiment_id)
    assert "ann1@example.com" in json.dumps(server.bodies)


def test_bad_calls_are_told_to_the_model(desk):
    script = [
        ("look_up", '{"item": '),
        ("look_up", "[1]"),
        ("fly", "{}"),
        ("explode", "{}"),
        ("look_up", '{"item": NaN}'),
    ]

    def policy(body):
        past = len(bench.called(body))
        return Say(calls=[script[past]]) if past < len(script) else Say(content="I give up.")

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1, arms=("none", "progress"), concurrency=1)
        go(desk, experiment.experiment_id)
    rows = desk.rows("SELECT s.* FROM replay_steps s JOIN trials t USING (trial_id) WHERE arm = 'none' ORDER BY s.step")
    assert [row["status"] for row in rows] == ["error"] * 5
    assert "not valid JSON" in rows[0]["result"]
    assert "must be a JSON object" in rows[1]["result"]
    assert rows[2]["result"] == "Error: There is no tool 'fly'."
    assert rows[3]["result"] == "Error: RuntimeError: boom"
    assert "NaN" in rows[4]["result"]
    assert [row["arguments"] for row in rows[:2]] == [None, None]
    told = [m["content"] for m in server.bodies[-1]["messages"] if m["role"] == "tool"]
    assert told == [row["result"] for row in rows]
    # What goes back as history is always a JSON object: servers refuse anything else.
    sent = [c["function"]["arguments"] for m in server.bodies[-1]["messages"] for c in m.get("tool_calls") or ()]
    assert json.loads(sent[0]) == {"_raw": '{"item": '}
    trial = desk.rows("SELECT * FROM trials WHERE arm = 'none'")[0]
    assert (trial["errors"], trial["success"], trial["stop_reason"]) == (5, 0.0, "answered")


def test_repeated_steps_by_hand(desk):
    script = [
        ("look_up", '{"item": "9"}'),  # fails: no such item
        ("look_up", '{"item": "9"}'),  # the same again, but the first one failed: no repeat
        ("look_up", '{"item":"0"}'),
        ("look_up", '{ "item" : "0" }'),  # repeat, spelled otherwise
        ("send", '{"item": "0"}'),
        ("send", '{"item": "0"}'),  # repeat, irreversible
    ]

    def policy(body):
        past = len(bench.called(body))
        return Say(calls=[script[past]]) if past < len(script) else Say(content="Done.")

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=["t0"], arms=("none", "progress"))
        go(desk, experiment.experiment_id)
    for trial in desk.rows("SELECT * FROM trials"):
        assert (trial["repeated_steps"], trial["repeated_irreversible"], trial["errors"]) == (2, 1, 2)


def test_parallel_calls_stand_in_one_turn(desk):
    def policy(body):
        if bench.called(body):
            return Say(content="Done.")
        return Say(calls=[("look_up", '{"item": "1"}'), ("paint", '{"item": "1", "colour": "red"}')])

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=["t1"], arms=("none", "progress"))
        go(desk, experiment.experiment_id)
    rows = desk.rows("SELECT step, turn, ordinal FROM replay_steps ORDER BY trial_id, step")
    assert rows == [{"step": 0, "turn": 0, "ordinal": 0}, {"step": 1, "turn": 0, "ordinal": 1}] * 2


@pytest.mark.parametrize(
    ("limits", "reason", "turns", "steps"),
    [(Limits(max_turns=2), "turn_limit", 2, 2), (Limits(max_steps=2), "step_limit", 3, 2)],
)
def test_reaching_a_limit_is_a_failure(desk, limits, reason, turns, steps):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, limits=limits, tasks=1)
        go(desk, experiment.experiment_id)
    for trial in desk.rows("SELECT * FROM trials"):
        assert (trial["status"], trial["stop_reason"], trial["success"]) == ("failed", reason, 0.0)
        assert (trial["turns"], trial["steps"]) == (turns, steps)


def test_a_trial_that_takes_too_long_is_a_failure_with_its_request(desk):
    def policy(body):
        return Say(hang=True) if bench.called(body) else bench.diligent(body)

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, limits=Limits(trial_timeout_s=2.5), tasks=1)
        go(desk, experiment.experiment_id)
    for trial in desk.rows("SELECT * FROM trials"):
        assert (trial["status"], trial["stop_reason"], trial["success"]) == ("failed", "timeout", 0.0)
        assert (trial["turns"], trial["input_tokens"]) == (2, None)
    lost = desk.rows("SELECT * FROM requests WHERE error IS NOT NULL")
    assert len(lost) == 3
    assert all(row["input_tokens"] is None and row["total_s"] is None for row in lost)


def test_a_refusal_and_a_server_fault_are_failures(desk):
    def policy(body):
        if not bench.called(body):
            return bench.diligent(body)
        return Say(content="No.", finish="content_filter") if bench.item_of(body) == "0" else Say(status=500)

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=["t0", "t1"])
        summary = go(desk, experiment.experiment_id)
    assert summary.done == 6
    ends = desk.rows(
        "SELECT DISTINCT task_key, t.stop_reason, t.status, t.success FROM trials t JOIN tasks USING (task_id)"
    )
    assert sorted(tuple(end.values()) for end in ends) == [
        ("t0", "refused", "failed", 0.0),
        ("t1", "model_error", "failed", 0.0),
    ]
    assert desk.value("SELECT count(*) FROM requests WHERE http_status = 500 AND error LIKE '%scripted 500%'") == 3


def test_where_the_environment_cannot_tell_the_subgoals_judge(desk):
    def policy(body):
        return Say(content="That is all.") if bench.item_of(body) == "0" else bench.diligent(body)

    with scripted_server(policy) as server:
        experiment = bench.planned(
            desk, server.base_url, environment=bench.DESK.replace("Desk", "Blind"), tasks=["t0", "t1"]
        )
        go(desk, experiment.experiment_id)
    rows = desk.rows(
        "SELECT DISTINCT task_key, success, success_provenance AS by FROM trials JOIN tasks USING (task_id)"
    )
    assert sorted(tuple(row.values()) for row in rows) == [("t0", 0.0, "subgoals"), ("t1", 1.0, "subgoals")]


def test_a_simulated_model_that_does_not_know_the_tools_is_marked(desk):
    def policy(body):
        said = bench.diligent(body)
        said.simulated = "unknown-tools" if bench.item_of(body) == "1" else "1"
        return said

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=["t0", "t1"])
        summary = go(desk, experiment.experiment_id)
    assert summary.simulated is True
    assert desk.value("SELECT simulated FROM experiments") is True
    marks = desk.rows(
        "SELECT DISTINCT judge, value, task_key FROM judgements JOIN trials USING (trial_id) JOIN tasks USING (task_id)"
    )
    assert marks == [{"judge": "simulated_unknown_tools", "value": True, "task_key": "t1"}]


def test_missing_usage_is_null_not_zero(desk):
    def policy(body):
        said = bench.diligent(body)
        if len(bench.called(body)) == 1:
            said.usage = None
        return said

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1, arms=("none", "progress"))
        go(desk, experiment.experiment_id)
        state = status(desk, experiment.experiment_id)
    assert {row["input_tokens"] for row in desk.rows("SELECT input_tokens FROM trials")} == {None}
    assert desk.value("SELECT count(*) FROM requests WHERE input_tokens IS NULL") == 2
    assert (state.requests, state.requests_without_usage, state.tokens) == (8, 2, 6 * 110)


def test_trials_run_so_many_at_a_time(desk):
    most = 0
    now = 0
    import threading

    guard = threading.Lock()

    def policy(body):
        nonlocal most, now
        with guard:
            now += 1
            most = max(most, now)
            now -= 1
        return bench.diligent(body)

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, concurrency=1, tasks=2, arms=("none", "progress"))
        go(desk, experiment.experiment_id)
        order = list(dict.fromkeys(body["messages"][0]["content"].split()[1] for body in server.bodies))
    # One at a time means: trial after trial, in the order of the plan.
    assert order == [key.nonce for key in experiment.plan.trials()]
    assert isinstance(Header(experiment_id="x", plan_hash="y", arms={}).version, int)
