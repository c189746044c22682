"""ATIF: a trajectory with every field, subagents inside, results without calls, copied context, damage."""

import json

import pytest

from poc.ingest import import_logs
from poc.ingest.detect import detect
from poc.ingest.readers import atif
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage


def read(path):
    items = list(atif.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def call(ident, name="bash", **arguments):
    return {"tool_call_id": ident, "function_name": name, "arguments": arguments}


def step(number, source="agent", message="", calls=(), results=(), **more):
    made = {"step_id": number, "timestamp": f"2026-01-01T10:00:{number:02d}Z", "source": source, "message": message}
    if calls:
        made["tool_calls"] = list(calls)
    if results:
        made["observation"] = {"results": list(results)}
    return {**made, **more}


def trajectory(*steps, **more):
    agent = {
        "name": "helper",
        "version": "2.0",
        "model_name": "openai/gpt-x",
        "tool_definitions": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
    }
    return {"schema_version": "ATIF-v1.6", "session_id": "s-1", "agent": agent, "steps": list(steps), **more}


def spent(number):
    return {"prompt_tokens": number, "completion_tokens": 2, "cached_tokens": 1, "cost_usd": 0.5}


STEPS = (
    step(1, "system", "be kind"),
    step(2, "user", [{"type": "text", "text": "make hello.txt"}]),
    step(
        3,
        message="both",
        calls=[call("c1", cmd="echo"), call("c2", "read", path="x")],
        results=[
            {"source_call_id": "c2", "content": "Error: no such file"},
            {"source_call_id": "c1", "content": "made", "extra": {"exit_code": 0}},
        ],
        metrics=spent(10),
    ),
    step(4, message="not JSON", results=[{"content": "the answer could not be parsed"}], metrics=spent(20)),
    step(5, message="again", calls=[call("c1", cmd="ls")], metrics=spent(30)),
)


def test_every_field(workspace, write):
    path = write("trajectory.json", json.dumps(trajectory(*STEPS, notes="n"), indent=2))
    assert detect(Source(path)).format == "atif"
    ((run,), rejects) = read(path)
    assert rejects == []
    assert [(s.tool, s.turn, s.ordinal, s.call_id, s.status, s.status_evidence) for s in run.steps] == [
        ("bash", 0, 0, "c1", "ok", "exit_code"),
        ("read", 0, 1, "c2", "error", "text_rule"),
        ("bash", 1, 0, "c1", "no_result", "none"),
    ]
    assert {s.duration_s for s in run.steps} == {None}
    assert [m.content for m in run.messages if m.role == "tool"] == [None, None, "the answer could not be parsed"]
    assert (run.native_id, run.model, run.framework) == ("s-1", "openai/gpt-x", "helper")
    assert (run.task_text, run.zone_in_log, run.duration_s) == ("make hello.txt", True, 4.0)
    assert run.usage == Usage(input_tokens=60, output_tokens=6, cached_tokens=3)
    assert run.cost_usd == 1.5
    assert run.outcome is None
    assert [tool.name for tool in run.tools] == ["bash"]
    assert run.metadata == {"notes": "n", "schema_version": "ATIF-v1.6", "agent_version": "2.0"}
    result = import_logs(workspace, path)
    assert (result.read, result.runs, result.steps, result.messages) == (1, 1, 3, 8)


def test_totals_of_the_log_win(write):
    final = {
        "total_prompt_tokens": 100,
        "total_completion_tokens": 9,
        "total_cached_tokens": 50,
        "total_cost_usd": 0.25,
    }
    ((run,), _) = read(write("t.json", json.dumps(trajectory(*STEPS, final_metrics=final))))
    assert run.usage == Usage(input_tokens=100, output_tokens=9, cached_tokens=50)
    assert run.cost_usd == 0.25


def test_a_subagent_in_the_file_stands_between_call_and_result(write):
    inner = trajectory(
        step(1, "user", "dig"),
        step(2, message="dug", calls=[call("c1", cmd="dig")], results=[{"source_call_id": "c1", "content": "ore"}]),
        trajectory_id="t-2",
        session_id=None,
    )
    outer = trajectory(
        step(1, "user", "get ore"),
        step(
            2,
            calls=[call("c1", "delegate")],
            results=[{"source_call_id": "c1", "subagent_trajectory_ref": [{"trajectory_id": "t-2"}]}],
        ),
        subagent_trajectories=[inner],
    )
    ((run,), _) = read(write("t.json", json.dumps(outer)))
    assert [(s.tool, s.caller, s.result, s.status) for s in run.steps] == [
        ("delegate", "agent", None, "ok"),
        ("bash", "subagent", "ore", "ok"),
    ]
    assert [(m.role, m.name) for m in run.messages if m.name] == [("user", "helper"), ("assistant", "helper")]
    assert run.task_text == "get ore"


def test_copied_context_makes_no_calls(write):
    copied = {**STEPS[2], "is_copied_context": True}
    ((run,), _) = read(write("t.json", json.dumps(trajectory(STEPS[1], copied, STEPS[4]))))
    assert [s.call_id for s in run.steps] == ["c1"]
    assert [m.content for m in run.messages if m.role == "tool"] == ["Error: no such file", "made"]


@pytest.mark.parametrize("shape", ["lines", "list"])
def test_several_in_a_file_and_damage(write, shape):
    whole = [trajectory(*STEPS, session_id=f"s-{n}") for n in range(3)]
    whole[1] = trajectory(*STEPS[:2], 7)
    path = write("t.jsonl", whole) if shape == "lines" else write("t.json", json.dumps(whole))
    runs, rejects = read(path)
    assert [len(run.steps) for run in runs] == [3, 0, 3]
    assert [(reject.records, ".steps[2]" in reject.place) for reject in rejects] == [(0, True)]
    _, rejects = read(write("none.json", json.dumps({"schema_version": "ATIF-v1.0", "steps": None})))
    assert [reject.reason for reject in rejects] == ["no trajectory here: it has no steps"]
