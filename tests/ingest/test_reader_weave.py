"""W&B Weave: one trace of calls in each holder, how tools and models are told, usage that is summed upwards."""

import datetime as dt
import json

import pytest
from trace_tools import brief, read, read_one

from poc.ingest import import_logs
from poc.trajectory import Outcome, Usage

TRACE = "01931e3b-0d4d-7d51-8d5e-000000000001"
START = dt.datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=dt.UTC)


def call(number, parent, name, at, seconds, **more):
    begin = START + dt.timedelta(seconds=at)
    return {
        "id": f"c-{number}",
        "project_id": "acme/desk",
        "op_name": f"weave:///acme/desk/op/{name}:8a7b6c",
        "trace_id": TRACE,
        "parent_id": None if parent is None else f"c-{parent}",
        "started_at": begin.isoformat().replace("+00:00", "Z"),
        "ended_at": (begin + dt.timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z"),
        "exception": None,
        "attributes": {},
        "inputs": {},
        "output": None,
        "summary": {"weave": {"status": "success"}},
        **more,
    }


def spent(into, out, *, status="success", model="m-1-2026"):
    usage = {
        model: {
            "requests": 1,
            "prompt_tokens": into,
            "completion_tokens": out,
            "total_tokens": into + out,
            "prompt_tokens_details": {"cached_tokens": 6},
            "completion_tokens_details": {"reasoning_tokens": 3},
        }
    }
    return {"usage": usage, "weave": {"status": status}}


def calls():
    """An agent's operation, a model call with two calls, two tools of which one raises, and the answer."""
    asked = {
        "self": "weave:///acme/desk/object/Completions:1",
        "model": "m-1",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "天気は?"}],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    }
    made = [
        {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"city": "東京"}'}},
        {"id": "t2", "type": "function", "function": {"name": "peek", "arguments": "{}"}},
    ]
    first = {"id": "r1", "model": "m-1-2026", "choices": [{"message": {"role": "assistant", "tool_calls": made}}]}
    last = {"id": "r2", "model": "m-1-2026", "choices": [{"message": {"role": "assistant", "content": "晴れ"}}]}
    wrong = {"exception": "KeyError: 窓", "summary": {"weave": {"status": "error"}}}
    create = "openai.chat.completions.create"
    return [
        call(1, None, "Clerk.answer", 0, 9, inputs={"question": "天気は?"}, output="晴れ", summary=spent(200, 40)),
        call(2, 1, create, 0.5, 1, inputs=asked, output=first, summary=spent(100, 20)),
        call(3, 1, "look", 2, 1, inputs={"self": "x", "city": "東京"}, output="晴れ"),
        call(4, 1, "Clerk.peek", 2.5, 1, **wrong),
        call(5, 1, create, 5, 1, inputs=asked, output=last, summary=spent(100, 20)),
    ]


HOLDERS = {
    "lines": lambda listed: "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in listed),
    "list": lambda listed: json.dumps(listed, indent=1),
    "calls": lambda listed: json.dumps({"calls": listed}),
    "backwards": lambda listed: json.dumps(listed[::-1]),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_holders(write, holder):
    run = read_one(write("a.json", HOLDERS[holder](calls())), "weave")
    assert (run.native_id, run.native_id_is_global, run.records, run.framework) == (TRACE, True, 5, "weave")
    # Usage is summed upwards: only the lowest calls that have it count.
    assert run.usage == Usage(input_tokens=200, output_tokens=40, cached_tokens=12, reasoning_tokens=6)
    assert run.model == "m-1-2026"
    assert [(m.role, m.content) for m in run.messages] == [
        ("system", "be brief"),
        ("user", "天気は?"),
        ("assistant", None),
        ("assistant", "晴れ"),
    ]
    look, peek = run.steps
    assert brief(look) == ("look", "t1", {"city": "東京"}, "晴れ", "ok", "flag")
    assert brief(peek) == ("peek", "t2", {}, "KeyError: 窓", "error", "flag")
    assert [(s.turn, s.ordinal, s.caller, s.execution_id, s.duration_s) for s in run.steps] == [
        (0, 0, "agent", "c-3", 1.0),
        (0, 1, "agent", "c-4", 1.0),
    ]
    assert (run.started_at, run.ended_at, run.zone_in_log) == (START, START + dt.timedelta(seconds=9), True)
    assert (run.metadata["project_id"], [tool.name for tool in run.tools]) == ("acme/desk", ["look"])
    assert run.outcome is None


@pytest.mark.parametrize("holder", HOLDERS)
def test_import_adds_up(workspace, write, holder):
    result = import_logs(workspace, write("a.json", HOLDERS[holder](calls())))
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (5, 5, 0, 1, 2)


@pytest.mark.parametrize("holder", ["lines", "list", "calls"])
def test_a_file_that_is_cut(write, holder):
    text = HOLDERS[holder](calls())
    runs, rejects = read(write("a.json", text[: text.index('"c-5"') + 80]), "weave")
    assert [run.records for run in runs] == [4]
    assert sum(reject.records for reject in rejects) == 1


def alone(write, name="look", **said):
    root = call(1, None, "main", 0, 9)
    return read_one(write("a.json", json.dumps([root, call(2, 1, name, 1, 1, **said)])), "weave")


@pytest.mark.parametrize(
    ("name", "attributes", "tool"),
    [
        ("call_tool", {}, "call_tool"),
        ("Desk.search_tool", {}, "Desk.search_tool"),
        ("look", {"kind": "tool"}, "look"),
        ("look", {"weave": {"kind": "tool"}}, "look"),
        ("run", {"kind": "tool", "tool_name": "look"}, "look"),
        ("toolbox", {}, None),
        ("look", {}, None),
        ("look", {"kind": "other"}, None),
    ],
)
def test_what_is_a_tool(write, name, attributes, tool):
    steps = alone(write, name, attributes=attributes).steps
    assert [step.tool for step in steps] == ([] if tool is None else [tool])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"output": "x"}, ("look", None, {}, "x", "ok", "flag")),
        ({"output": {"n": 1}}, ("look", None, {}, '{"n":1}', "ok", "flag")),
        ({"output": None}, ("look", None, {}, None, "ok", "flag")),
        ({"output": "x", "summary": {}}, ("look", None, {}, "x", "ok", "result")),
        ({"output": "x", "summary": None}, ("look", None, {}, "x", "ok", "result")),
        (
            {"summary": {"weave": {"status": "running"}}, "ended_at": None},
            ("look", None, {}, None, "no_result", "none"),
        ),
        ({"exception": "E", "summary": {}}, ("look", None, {}, "E", "error", "flag")),
        # One below it failed; it itself went well.
        ({"output": "x", "summary": {"weave": {"status": "descendant_error"}}}, ("look", None, {}, "x", "ok", "flag")),
        ({"output": {"error": "no such file"}}, ("look", None, {}, '{"error":"no such file"}', "error", "error_field")),
        ({"inputs": {"a": 1, "self": "x"}, "output": "x"}, ("look", None, {"a": 1}, "x", "ok", "flag")),
    ],
)
def test_tools(write, said, expected):
    (step,) = alone(write, attributes={"kind": "tool"}, **said).steps
    assert brief(step) == expected


@pytest.mark.parametrize(
    "name", ["openai.chat.completions.create", "anthropic.Messages.create", "litellm.completion", "ChatOpenAI.chat"]
)
def test_model_calls_by_name(write, name):
    run = alone(
        write, name, inputs={"model": "m"}, output={"model": "m-2", "usage": {"input_tokens": 3, "output_tokens": 4}}
    )
    assert (run.model, run.usage) == ("m-2", Usage(input_tokens=3, output_tokens=4))


@pytest.mark.parametrize(("cached", "stored", "into"), [(90, 20, 120), (0, 0, 10), (0, 20, 30)])
def test_anthropic_counts_cached_input_apart(write, cached, stored, into):
    usage = {"input_tokens": 10, "output_tokens": 5}
    usage |= {"cache_read_input_tokens": cached, "cache_creation_input_tokens": stored}
    run = alone(write, "anthropic.Messages.create", summary={"usage": {"claude": usage}})
    assert (run.model, run.usage) == ("claude", Usage(input_tokens=into, output_tokens=5, cached_tokens=cached))


@pytest.mark.parametrize(
    ("feedback", "outcome"),
    [
        (
            [{"feedback_type": "wandb.runnable.success", "payload": {"output": True}, "creator": "judge"}],
            Outcome(value=1.0, provenance="log:success (judge)"),
        ),
        (
            [{"feedback_type": "wandb.annotation.correct", "payload": {"value": False}}],
            Outcome(value=0.0, provenance="log:correct"),
        ),
        ([{"feedback_type": "wandb.reaction.1", "payload": {"emoji": "x"}}], None),
        ([], None),
    ],
)
def test_outcome(write, feedback, outcome):
    root = call(1, None, "main", 0, 9, summary={"weave": {"feedback": feedback}})
    assert read_one(write("a.json", json.dumps([root])), "weave").outcome == outcome


def test_a_subagent_inside_a_tool(write):
    listed = [
        call(1, None, "main", 0, 9),
        call(2, 1, "openai.chat.completions.create", 0, 1, summary=spent(1, 1)),
        call(3, 1, "ask_tool", 1, 5, output="r"),
        call(4, 3, "expert", 1, 4, attributes={"kind": "agent"}),
        call(5, 4, "openai.chat.completions.create", 2, 1, summary=spent(1, 1)),
        call(6, 4, "look_tool", 3, 1, output="s"),
    ]
    run = read_one(write("a.json", json.dumps(listed)), "weave")
    assert [(step.tool, step.caller) for step in run.steps] == [("ask_tool", "agent"), ("look_tool", "subagent")]


def test_what_is_no_call(write):
    runs, rejects = read(write("a.jsonl", [*calls(), {"id": "x"}, 7]), "weave")
    assert (len(runs), [reject.place for reject in rejects]) == (1, ["line 6", "line 7"])
