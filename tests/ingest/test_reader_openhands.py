"""OpenHands: real runs against plain parsing, both kinds of events, old pairs, and what steers the app."""

import json
from collections import Counter

import pytest

from poc.ingest import import_logs
from poc.ingest.detect import detect
from poc.ingest.readers import openhands
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage

OUTPUT = "openhands/openhands_multi_swe_bench_output.jsonl"


def read(path):
    items = list(openhands.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def test_an_evaluation_against_plain_parsing(workspace, shared_log):
    path = shared_log(OUTPUT)
    raw = [json.loads(line) for line in path.read_text().splitlines()]
    calls = [[e for e in r["history"] if "action" in e and e.get("tool_call_metadata")] for r in raw]
    assert [len(made) for made in calls] == [23, 33, 49]
    result = import_logs(workspace, path)
    assert (result.read, result.runs, result.steps, result.rejected) == (3, 3, 105, 0)
    runs, _ = read(path)
    for run, record, made in zip(runs, raw, calls, strict=True):
        assert run.native_id == run.task_key == record["instance_id"]
        assert run.task_text == record["instruction"]
        metadata = [event["tool_call_metadata"] for event in made]
        assert [(s.tool, s.call_id) for s in run.steps] == [(m["function_name"], m["tool_call_id"]) for m in metadata]
        written = [m["model_response"]["choices"][0]["message"]["tool_calls"][0]["function"] for m in metadata]
        assert [step.arguments_raw for step in run.steps] == [function["arguments"] for function in written]
        answers = {event["cause"]: event for event in record["history"] if event.get("cause") is not None}
        assert [step.result for step in run.steps] == [
            answers[event["id"]]["content"] if event["id"] in answers else None for event in made
        ]
        spent = record["metrics"]["accumulated_token_usage"]
        assert run.usage is not None
        assert (run.usage.input_tokens, run.usage.output_tokens) == (spent["prompt_tokens"], spent["completion_tokens"])
        assert sum(m.usage.input_tokens for m in run.messages if m.usage) == spent["prompt_tokens"]
        assert (run.cost_usd, run.outcome, run.zone_in_log) == (None, None, False)
        assert run.model == "meta-llama/llama-4-maverick"
        assert "api_key" not in json.dumps(run.metadata)
    # Ids start again in every run.
    assert {run.steps[0].call_id for run in runs} == {"toolu_01"}
    assert "maximum iteration" in runs[2].metadata["error"]


def test_how_the_calls_of_the_evaluation_went(shared_log):
    path = shared_log(OUTPUT)
    observed = [
        event
        for line in path.read_text().splitlines()
        for event in json.loads(line)["history"]
        if "observation" in event and event.get("tool_call_metadata")
    ]
    codes = [event["extras"]["metadata"]["exit_code"] for event in observed if event["observation"] == "run"]
    refused = [event for event in observed if event["content"].startswith("ERROR:\n")]
    assert (sum(code != 0 for code in codes), len(refused)) == (19, 24)
    runs, _ = read(path)
    found = Counter((step.status, step.status_evidence) for run in runs for step in run.steps)
    assert found[("error", "exit_code")] == 19
    assert found[("ok", "exit_code")] == len(codes) - 19
    assert found[("error", "text_rule")] == len(refused)
    # Two runs end with `finish`, which nothing answers; the third was cut after its last result.
    assert found[("no_result", "none")] == 2
    # An answer of the model that could not be understood answers no call: a message, in two of the runs.
    others = [message for run in runs for message in run.messages if message.role == "other"]
    assert [message.name for message in others] == ["error", "error"]


def test_a_list_of_events(shared_log):
    path = shared_log("openhands/openhands_traj_basic.json")
    ((run,), rejects) = read(path)
    assert rejects == []
    assert [(s.tool, s.status) for s in run.steps] == [("str_replace_editor", "ok"), ("finish", "no_result")]
    assert run.steps[0].duration_s == pytest.approx(0.036897)
    # The answer is repeated in action and observation and counts once.
    assert run.usage == Usage(input_tokens=3486 + 4646, output_tokens=1135 + 177, cached_tokens=3482)
    assert [message.role for message in run.messages] == ["user", "assistant", "tool", "assistant"]
    assert (run.zone_in_log, run.metadata) == (False, {"ended_by": "finish"})


def action(ident, kind, source="agent", meta=None, **args):
    event = {"id": ident, "timestamp": f"2025-01-01T10:00:{ident:02d}", "source": source, "action": kind, "args": args}
    return event if meta is None else {**event, "tool_call_metadata": meta}


def observation(ident, cause, kind, content, **more):
    at = f"2025-01-01T10:00:{ident:02d}"
    return {"id": ident, "timestamp": at, "cause": cause, "observation": kind, "content": content, **more}


def asked(response, *calls):
    listed = [{"id": ident, "function": {"name": name, "arguments": args}} for ident, name, args in calls]
    answer = {"id": response, "choices": [{"message": {"content": "so", "tool_calls": listed}}]}
    return [{"function_name": name, "tool_call_id": ident, "model_response": answer} for ident, name, _ in calls]


def test_calls_of_the_app_with_their_quirks(write):
    first, second = asked("r1", ("t1", "execute_bash", '{"command": "ls"}'), ("t1", "execute_bash", '{"command": "x"}'))
    events = [
        action(1, "message", "user", content="tidy up"),
        action(2, "recall", "user", query="tidy up"),
        observation(3, 2, "recall", "context"),
        action(4, "run", meta=first, command="ls", thought="so"),
        action(5, "run", meta=second, command="x", thought="so"),
        observation(6, 5, "error", "no such command"),
        observation(7, 4, "run", "a b", extras={"metadata": {"exit_code": -1}}),
        action(8, "run", "user", command="pwd"),
        observation(9, 8, "run", "/w", extras={"exit_code": 0}),
        action(10, "edit", path="/w/a", thought="now edit", content="x"),
        observation(11, 10, "edit", "done", success=False),
        action(12, "change_agent_state", agent_state="finished"),
        action(13, "finish", thought="all done"),
        7,
    ]
    ((run,), rejects) = read(write("events.json", json.dumps(events)))
    assert [(s.tool, s.turn, s.call_id, s.status, s.status_evidence, s.caller) for s in run.steps] == [
        ("execute_bash", 0, "t1", "ok", "result", "agent"),
        ("execute_bash", 0, "t1", "error", "flag", "agent"),
        ("run", 1, None, "ok", "exit_code", "user"),
        ("edit", 2, None, "error", "flag", "agent"),
    ]
    assert [step.result for step in run.steps] == ["a b", "no such command", "/w", "done"]
    assert [step.duration_s for step in run.steps] == [3.0, 1.0, 1.0, 1.0]
    assert json.loads(run.steps[3].arguments_json) == {"path": "/w/a", "content": "x"}
    said = [(m.role, m.content) for m in run.messages if m.role != "tool"]
    assert said == [("user", "tidy up"), ("assistant", "so"), ("assistant", "now edit"), ("assistant", "all done")]
    assert (run.task_text, run.metadata["ended_by"]) == ("tidy up", "finish")
    assert [(reject.place, reject.records) for reject in rejects] == [("offset 0 [13]", 0)]


def test_old_pairs_without_ids(write):
    def plain(kind, **args):
        return {"action": kind, "source": "agent", "args": args}

    history = [
        [
            {"action": "message", "source": "user", "args": {"content": "go"}},
            {"observation": "null", "content": "", "extras": {}},
        ],
        [plain("run", command="ls"), {"observation": "run", "content": "a", "extras": {"exit_code": 2}}],
        [plain("run", command="pwd"), {"observation": "run", "content": "/", "extras": {"exit_code": 0}}],
        [plain("finish", thought="ok"), {"observation": "null", "content": "", "extras": {}}],
    ]
    record = {"instance_id": "a__b-1", "instruction": "go", "history": history, "report": {"resolved": True}}
    path = write("output.jsonl", [record, {**record, "instance_id": "a__b-2"}])
    assert detect(Source(path)).format == "openhands"
    runs, rejects = read(path)
    assert rejects == []
    assert [(s.status, s.result) for s in runs[1].steps] == [("error", "a"), ("ok", "/")]
    assert (runs[1].native_id, runs[1].outcome.value) == ("a__b-2", 1.0)
    assert runs[1].outcome.provenance == "log:report.resolved"


def sdk_events():
    def at(second):
        return f"2026-01-01T10:00:{second:02d}.5"

    def call(ident, native, name, arguments, response):
        return {
            "kind": "ActionEvent",
            "id": ident,
            "timestamp": at(2),
            "source": "agent",
            "thought": [{"type": "text", "text": "look"}],
            "action": {"kind": "TerminalAction", "command": "ls"},
            "tool_name": name,
            "tool_call_id": native,
            "tool_call": {"id": native, "name": name, "arguments": arguments},
            "llm_response_id": response,
        }

    def answer(ident, native, action_id, **observation):
        return {
            "kind": "ObservationEvent",
            "id": ident,
            "timestamp": at(4),
            "source": "environment",
            "tool_name": "terminal",
            "tool_call_id": native,
            "action_id": action_id,
            "observation": observation,
        }

    said = {"role": "user", "content": [{"type": "text", "text": "please look"}]}
    tool = {"type": "function", "function": {"name": "terminal", "parameters": {"type": "object"}}}
    return [
        {"kind": "SystemPromptEvent", "id": "s", "system_prompt": {"type": "text", "text": "be kind"}, "tools": [tool]},
        {"kind": "MessageEvent", "id": "m", "timestamp": at(1), "source": "user", "llm_message": said},
        call("a1", "c1", "terminal", '{"command": "ls"}', "r1"),
        call("a2", "c2", "terminal", '{"command": "x"}', "r1"),
        answer("o2", "c2", "a2", content=[{"type": "text", "text": "gone"}], is_error=False, exit_code=127),
        answer("o1", "c1", "a1", content=[{"type": "text", "text": "a b"}], is_error=False),
        {"kind": "ConversationStateUpdateEvent", "id": "u", "source": "environment", "key": "x", "value": 1},
        call("a3", "c3", "nothing", "{}", "r2"),
        {"kind": "AgentErrorEvent", "id": "e", "source": "agent", "tool_call_id": "c3", "error": "no such tool"},
        call("a4", "c4", "terminal", "{}", "r3"),
        {"kind": "UserRejectObservation", "id": "j", "tool_call_id": "c4", "action_id": "a4", "rejection_reason": "no"},
        call("a5", "c5", "finish", '{"message": "done"}', "r4"),
    ]


@pytest.mark.parametrize("shape", ["list", "lines", "record"])
def test_events_of_the_sdk(write, shape):
    events = sdk_events()
    if shape == "lines":
        path = write("events.jsonl", events)
    else:
        around = events if shape == "list" else {"instance_id": "i", "instruction": "go", "history": events}
        path = write("events.json", json.dumps(around))
    assert detect(Source(path)).format == "openhands"
    ((run,), rejects) = read(path)
    assert rejects == []
    assert run.records == (len(events) if shape == "lines" else 1)
    assert [(s.tool, s.turn, s.ordinal, s.call_id, s.status, s.status_evidence) for s in run.steps] == [
        ("terminal", 0, 0, "c1", "ok", "flag"),
        ("terminal", 0, 1, "c2", "error", "exit_code"),
        ("nothing", 1, 0, "c3", "error", "flag"),
        ("terminal", 2, 0, "c4", "error", "flag"),
        ("finish", 3, 0, "c5", "no_result", "none"),
    ]
    assert [s.result for s in run.steps] == ["a b", "gone", "no such tool", "no", None]
    assert [tool.name for tool in run.tools] == ["terminal"]
    assert run.task_text == ("go" if shape == "record" else "please look")
    assert run.zone_in_log is False


def test_damage_costs_a_line(write):
    record = {"instance_id": "a__b-1", "instruction": "go", "history": [action(1, "message", "user", content="go")]}
    text = "\n".join([json.dumps(record), json.dumps(record)[:-20], json.dumps({**record, "instance_id": "a__b-3"})])
    runs, rejects = read(write("output.jsonl", text))
    assert [run.native_id for run in runs] == ["a__b-1", "a__b-3"]
    assert [(reject.place, reject.records) for reject in rejects] == [("line 2", 1)]
    _, rejects = read(write("none.json", json.dumps({"history": [1, 2]})))
    assert [reject.records for reject in rejects] == [0, 0, 1]
