"""Codex rollouts: real sessions against a plain look at their lines; outputs, tokens and layouts of all ages."""

import datetime as dt
import json
import re

import pytest
from trace_tools import brief, read, read_one

from poc.ingest import import_logs
from poc.trajectory import Usage

# Real files ----------------------------------------------------------------------------------------------


def look_at(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    items = [(line["timestamp"], line["payload"]) for line in lines if line["type"] == "response_item"]
    outputs = {item["call_id"]: (at, item["output"]) for at, item in items if item["type"].endswith("_call_output")}
    calls = [(at, item) for at, item in items if item["type"] in ("function_call", "custom_tool_call")]
    return lines, calls, outputs


def plain_output(output):
    """Text, exit code and seconds of a call's output, as either age of the program writes them."""
    if output.startswith("{"):
        value = json.loads(output)
        return value["output"], value["metadata"]["exit_code"], value["metadata"]["duration_seconds"]
    code = re.match(r"Exit code: (\d+)\nWall time: ([\d.]+) seconds\n", output)
    return output, None if code is None else int(code[1]), None if code is None else float(code[2])


@pytest.mark.parametrize("name", ["agtrace_codex_session.jsonl", "codex-pomodor-timer.jsonl"])
def test_real_files(shared_log, name):
    path = shared_log(f"codex_rollout/{name}")
    lines, calls, outputs = look_at(path)
    run = read_one(path, "codex")
    payload = {line["type"]: line["payload"] for line in reversed(lines)}
    assert (run.native_id, run.native_id_is_global) == (payload["session_meta"]["id"], True)
    assert (run.model, run.records, run.outcome) == (payload["turn_context"]["model"], len(lines), None)
    times = [dt.datetime.fromisoformat(line["timestamp"]) for line in lines]
    assert (run.started_at, run.ended_at, run.zone_in_log) == (min(times), max(times), True)
    events = [line["payload"] for line in lines if line["type"] == "event_msg"]
    assert run.task_text == next(event["message"] for event in events if event["type"] == "user_message")
    counts = [event["info"] for event in events if event["type"] == "token_count" and event["info"]]
    total = counts[-1]["total_token_usage"]
    assert run.usage == Usage(
        input_tokens=total["input_tokens"],
        output_tokens=total["output_tokens"],
        cached_tokens=total["cached_input_tokens"],
        reasoning_tokens=total["reasoning_output_tokens"],
    )
    assert [(step.tool, step.call_id) for step in run.steps] == [(item["name"], item["call_id"]) for _, item in calls]
    for step, (called_at, item) in zip(run.steps, calls, strict=True):
        answered_at, output = outputs[item["call_id"]]
        text, code, seconds = plain_output(output)
        assert step.arguments_raw == item.get("arguments", item.get("input"))
        if item["type"] == "custom_tool_call":  # a patch, not JSON
            assert (step.arguments_json, step.arguments_status) == (None, "unparsed")
        else:
            assert json.loads(step.arguments_json) == json.loads(item["arguments"])
        assert (step.result, step.caller) == (text, "agent")
        if code is None:
            assert (step.status, step.status_evidence) == ("ok", "result")
        else:
            assert (step.status, step.status_evidence) == ("error" if code else "ok", "exit_code")
        assert (step.started_at, step.ended_at) == tuple(map(dt.datetime.fromisoformat, (called_at, answered_at)))
        took = (step.ended_at - step.started_at).total_seconds()
        # Two lines written at once say nothing of how long it took.
        assert step.duration_s == (seconds if seconds is not None else took or None)
    assert [step.ordinal for step in run.steps] == [0] * len(calls)  # each was answered before the next was made


def test_copies_of_messages_are_not_counted(shared_log):
    path = shared_log("codex_rollout/codex-pomodor-timer.jsonl")
    lines, calls, _ = look_at(path)
    said = [
        line["payload"] for line in lines if line["type"] == "response_item" and line["payload"]["type"] == "message"
    ]
    run = read_one(path, "codex")
    # A message for each that was said, for each call and for each result.
    assert len(run.messages) == len(said) + 2 * len(calls)


# Made sessions -------------------------------------------------------------------------------------------


def line(second, kind, **payload):
    return {"timestamp": f"2026-02-03T04:05:{second:02d}.000Z", "type": kind, "payload": payload}


def message(role, text):
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "input_text" if role == "user" else "output_text", "text": text}],
    }


def counted(into, out, cached=0, thought=0):
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_output_tokens")
    return dict(zip(names, (into, out, cached, thought), strict=True))


def session(*, output=None):
    output = output or "Exit code: 0\nWall time: 1.5 seconds\nOutput:\n晴れ"
    return [
        line(0, "session_meta", id="019b04ae-b1c6-7c72-a134-a4c2de66058c", cwd="/w", cli_version="0.80.0"),
        line(1, "turn_context", model="m-1", effort="high"),
        line(1, "response_item", **message("user", "<environment_context>x</environment_context>")),
        line(1, "response_item", **message("user", "天気は?")),
        line(1, "event_msg", type="user_message", message="天気は?"),
        line(1, "event_msg", type="token_count", info=None),
        line(2, "response_item", type="reasoning", summary=[]),
        line(2, "response_item", type="function_call", name="look", arguments='{"city": "東京"}', call_id="c1"),
        line(
            2,
            "response_item",
            type="custom_tool_call",
            name="apply_patch",
            input="*** Begin",
            call_id="c2",
            status="completed",
        ),
        line(4, "response_item", type="function_call_output", call_id="c1", output=output),
        line(5, "response_item", type="custom_tool_call_output", call_id="c2", output="Error: no"),
        line(5, "event_msg", type="token_count", info={"total_token_usage": counted(100, 20, 60, 5)}),
        line(6, "response_item", type="function_call", name="look", arguments="{}", call_id="c3"),
        line(7, "response_item", **message("assistant", "晴れ")),
        line(7, "event_msg", type="agent_message", message="晴れ"),
        line(7, "event_msg", type="token_count", info={"total_token_usage": counted(250, 25, 120, 5)}),
        line(8, "event_msg", type="task_complete"),
        line(9, "something_new", what="x"),
    ]


def test_a_session(write, workspace):
    path = write("rollout.jsonl", session())
    run = read_one(path, "codex")
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", {"city": "東京"}, "Exit code: 0\nWall time: 1.5 seconds\nOutput:\n晴れ", "ok", "exit_code"),
        ("apply_patch", "c2", None, "Error: no", "error", "text_rule"),
        ("look", "c3", {}, None, "no_result", "none"),
    ]
    assert [(step.turn, step.ordinal, step.duration_s) for step in run.steps] == [
        (0, 0, 1.5),
        (0, 1, 3.0),
        (1, 0, None),
    ]
    assert run.usage == Usage(input_tokens=250, output_tokens=25, cached_tokens=120, reasoning_tokens=5)
    assert (run.task_text, run.model, run.records, run.duration_s) == ("天気は?", "m-1", 18, 9.0)
    assert (run.metadata["effort"], run.metadata["ended_by"]) == ("high", "task_complete")
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected, result.steps) == (18, 18, 0, 3)


@pytest.mark.parametrize(
    ("output", "text", "status", "evidence", "seconds"),
    [
        ('{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.5}}', "x", "ok", "exit_code", 0.5),
        ('{"output":"x","metadata":{"exit_code":2,"duration_seconds":0}}', "x", "error", "exit_code", 0.0),
        ("Exit code: 127\nWall time: 0.25 seconds\nOutput:\n", ..., "error", "exit_code", 0.25),
        ("Wall time: 0.5 seconds\nProcess exited with code 1\nOutput:\n", ..., "error", "exit_code", 0.5),
        ("Wall time: 2 seconds\nProcess running with session ID 7\nOutput:\n", ..., "ok", "result", 2.0),
        ("Plan updated", ..., "ok", "result", 2.0),
        ("He said: Exit code: 1", ..., "ok", "result", 2.0),
        ({"content": "x", "success": False}, "x", "error", "exit_code", 2.0),
        ({"content": "x", "success": True}, "x", "ok", "exit_code", 2.0),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", "ok", "result", 2.0),
        ('{"a": 1}', ..., "ok", "result", 2.0),
    ],
)
def test_outputs(write, output, text, status, evidence, seconds):
    step = read_one(write("a.jsonl", session(output=output)), "codex").steps[0]
    expected = output if text is ... else text
    assert (step.result, step.status, step.status_evidence, step.duration_s) == (expected, status, evidence, seconds)


def test_calls_that_the_provider_carries_out(write):
    lines = [
        *session()[:4],
        line(
            2,
            "response_item",
            type="web_search_call",
            id="w1",
            status="completed",
            action={"type": "search", "query": "東京"},
        ),
        line(3, "response_item", type="local_shell_call", call_id="s1", status="completed", action={"command": ["ls"]}),
        line(4, "response_item", type="function_call_output", call_id="s1", output="a b"),
    ]
    run = read_one(write("a.jsonl", lines), "codex")
    assert [brief(step) for step in run.steps] == [
        ("web_search", "w1", {"type": "search", "query": "東京"}, None, "ok", "flag"),
        ("local_shell", "s1", {"command": ["ls"]}, "a b", "ok", "result"),
    ]


def test_a_model_that_changes(write):
    lines = [
        *session(),
        line(10, "turn_context", model="m-2"),
        line(11, "event_msg", type="turn_aborted", reason="interrupted"),
    ]
    run = read_one(write("a.jsonl", lines), "codex")
    assert (run.model, run.metadata["models"]) == ("m-1", ["m-1", "m-2"])
    assert run.metadata["ended_by"] == "turn_aborted: interrupted"


def test_an_old_rollout(write):
    lines = [
        {"id": "6a1e2f3b-0000-4000-8000-000000000001", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
        {"record_type": "state"},
        message("user", "天気は?"),
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": '{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.1}}',
        },
        message("assistant", "晴れ"),
    ]
    run = read_one(write("a.jsonl", lines), "codex")
    assert (run.native_id, run.records, run.model, run.usage) == (lines[0]["id"], 6, None, None)
    assert [brief(step) for step in run.steps] == [("shell", "c1", {"command": ["ls"]}, "x", "error", "exit_code")]
    assert (run.steps[0].duration_s, run.steps[0].started_at) == (0.1, None)
    assert (run.task_text, run.messages[-1].content) == ("天気は?", "晴れ")


def test_ids_that_come_again(write):
    lines = session()[:3]
    for second in (2, 4):
        lines.append(
            line(second, "response_item", type="function_call", name=f"t{second}", arguments="{}", call_id="same")
        )
        lines.append(
            line(second + 1, "response_item", type="function_call_output", call_id="same", output=f"r{second}")
        )
    run = read_one(write("a.jsonl", lines), "codex")
    assert [(step.tool, step.result) for step in run.steps] == [("t2", "r2"), ("t4", "r4")]


def test_damage(write):
    lines = [json.dumps(entry, ensure_ascii=False) for entry in session()]
    lines[7] = lines[7][:90]
    lines[9] = lines[9].replace("晴れ", "\\ud800")
    runs, rejects = read(write("a.jsonl", "\n".join(lines)), "codex")
    assert [(reject.place, reject.records) for reject in rejects] == [("line 8", 1), ("line 10", 0)]
    (run,) = runs
    assert run.records == 17
    # The result whose call is lost stays as a message.
    assert [step.call_id for step in run.steps] == ["c2", "c3"]
    assert any(m.role == "tool" and m.content and m.content.startswith("Exit code: 0") for m in run.messages)
