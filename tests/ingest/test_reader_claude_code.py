"""Claude Code sessions: real ones against a plain look at their lines, and the ways that lines may differ."""

import datetime as dt
import json
from collections import Counter

import pytest
from trace_tools import brief, read, read_one

from poc.ingest import import_logs
from poc.trajectory import Usage

# Real files ----------------------------------------------------------------------------------------------


def blocks(line, kind):
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content or () if isinstance(block, dict) and block.get("type") == kind]


def words(content):
    """The text of a result: a string, or blocks of text and images."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] if block["type"] == "text" else f"[{block['type']}]" for block in content)


def agree(run, lines):
    """Steps against calls and results as they stand in the lines."""
    calls = [(line, block) for line in lines for block in blocks(line, "tool_use")]
    answers = {block["tool_use_id"]: (line, block) for line in lines for block in blocks(line, "tool_result")}
    assert [(step.tool, step.call_id) for step in run.steps] == [(block["name"], block["id"]) for _, block in calls]
    for step, (line, block) in zip(run.steps, calls, strict=True):
        assert json.loads(step.arguments_json) == block["input"]
        assert step.started_at == dt.datetime.fromisoformat(line["timestamp"])
        came, result = answers[block["id"]]
        assert step.ended_at == dt.datetime.fromisoformat(came["timestamp"])
        assert step.duration_s == (step.ended_at - step.started_at).total_seconds()
        assert (step.result, step.caller) == (words(result["content"]), "agent")
        if "is_error" in result:
            assert (step.status, step.status_evidence) == ("error" if result["is_error"] else "ok", "flag")
        else:
            assert (step.status, step.status_evidence) == ("ok", "result")
    return calls


def test_a_real_session(shared_log):
    path = shared_log("claude_code/7acd37a8-2745-4b58-a8a9-46164b22ad9e.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    run = read_one(path, "claude_code")
    calls = agree(run, lines)
    assert len(calls) == 71
    assert (run.native_id, run.native_id_is_global) == (path.stem, True)
    assert (run.records, run.outcome, run.zone_in_log) == (len(lines), None, True)
    # Lines of one API message repeat its usage.
    messages = {line["message"]["id"]: line["message"] for line in lines if line["type"] == "assistant"}
    assert {message["model"] for message in messages.values()} == {run.model}
    spent = Counter()
    for message in messages.values():
        spent.update({name: value for name, value in message["usage"].items() if isinstance(value, int)})
    assert run.usage == Usage(
        input_tokens=spent["input_tokens"] + spent["cache_read_input_tokens"] + spent["cache_creation_input_tokens"],
        output_tokens=spent["output_tokens"],
        cached_tokens=spent["cache_read_input_tokens"],
    )
    # Calls of one API message are one turn.
    turns = {}
    for line, _ in calls:
        turns.setdefault(line["message"]["id"], len(turns))
    assert [step.turn for step in run.steps] == [turns[line["message"]["id"]] for line, _ in calls]
    rejections = [
        block
        for line in lines
        for block in blocks(line, "tool_result")
        if words(block["content"]).startswith("The user doesn't want to proceed")
    ]
    assert run.metadata["calls_rejected_by_user"] == len(rejections) == 2


def test_a_real_web_export(shared_log):
    path = shared_log("claude_code/simonw_sample_session_web_export.json")
    lines = json.loads(path.read_text())["loglines"]
    run = read_one(path, "claude_code")
    assert len(agree(run, lines)) == 12
    assert (run.native_id, run.records, run.model, run.usage) == (None, len(lines), None, None)
    assert run.task_text == lines[0]["message"]["content"]


def test_real_edge_cases(shared_log):
    path = shared_log("claude_code/daaain_edge_cases.jsonl")
    (run, other), rejects = read(path, "claude_code")
    assert [reject.place for reject in rejects] == ["line 13", "line 14", "line 15", "line 16"]
    assert run.records + other.records + 4 == len(path.read_text().splitlines())
    assert [(step.tool, step.status) for step in run.steps] == [("FailingTool", "error"), ("MultiEdit", "ok")]
    assert [(step.tool, step.status) for step in other.steps] == [("TodoWrite", "no_result")]
    # The message is misspelt; the copy beside it tells what came.
    assert run.steps[1].result == "File created successfully at: /tmp/complex_example.py"


# Made sessions -------------------------------------------------------------------------------------------

SESSION = "019b04ae-b1c6-7c72-a134-a4c2de66058c"


def line(number, kind, content, *, parent=..., message=None, **more):
    """A line; each follows the one before unless told otherwise."""
    told = {"role": kind, "content": content}
    if kind == "assistant":
        told = {"id": message or f"msg_{number}", "type": "message", "model": "m-1", **told, **more.pop("said", {})}
    return {
        "parentUuid": (f"u{number - 1}" if number else None) if parent is ... else parent,
        "isSidechain": False,
        "sessionId": SESSION,
        "uuid": f"u{number}",
        "timestamp": f"2026-02-03T04:05:{number:02d}.500Z",
        "cwd": "/w",
        "version": "2.1.0",
        "type": kind,
        "message": told,
        **more,
    }


def use(name, call_id, **arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id, content, **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def spent(read, written, cached=0, stored=0):
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return {"usage": dict(zip(names, (read, written, cached, stored), strict=True))}


def say(text):
    return [{"type": "text", "text": text}]


def session():
    return [
        {"type": "permission-mode", "permissionMode": "default", "sessionId": SESSION},
        line(0, "user", "<command-name>/clear</command-name>"),
        line(1, "user", "Caveat: The messages below were generated by the user", isMeta=True),
        line(2, "user", say("天気は?")),
        line(3, "assistant", [{"type": "thinking", "thinking": "hm"}], message="m1", said=spent(3, 1, 10, 5)),
        line(4, "assistant", say("見ます"), message="m1", said=spent(3, 40, 10, 5)),
        line(5, "assistant", [use("look", "c1", city="東京")], message="m1", said=spent(3, 40, 10, 5)),
        line(6, "assistant", [use("look", "c2", city="大阪")], message="m1", said=spent(3, 40, 10, 5)),
        line(7, "user", [result("c2", [{"type": "text", "text": "雨"}, {"type": "image", "source": {}}])]),
        line(8, "user", [result("c1", "晴れ", is_error=False)], parent="u5", toolUseResult={"stdout": "晴れ"}),
        line(9, "assistant", [use("rm", "c3"), use("wait", "c4")], said=spent(4, 2)),
        line(10, "user", [result("c3", "The user doesn't want to proceed with this tool use. No.", is_error=True)]),
        line(11, "user", say("[Request interrupted by user for tool use]")),
        line(12, "assistant", say("No response requested."), said={"model": "<synthetic>", **spent(0, 0)}),
        {"type": "file-history-snapshot", "messageId": "u2", "snapshot": {}},
        {"type": "a-type-of-tomorrow", "sessionId": SESSION, "what": 1},
    ]


def test_a_session(write, workspace):
    path = write("s.jsonl", session())
    run = read_one(path, "claude_code")
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", {"city": "東京"}, "晴れ", "ok", "flag"),
        ("look", "c2", {"city": "大阪"}, "雨\n[image]", "ok", "result"),
        ("rm", "c3", {}, "The user doesn't want to proceed with this tool use. No.", "error", "flag"),
        ("wait", "c4", {}, None, "no_result", "none"),
    ]
    assert [(step.turn, step.ordinal, step.duration_s) for step in run.steps] == [
        (0, 0, 3.0),
        (0, 1, 1.0),
        (1, 0, 1.0),
        (1, 1, None),
    ]
    # Cached and newly cached input is part of the input; the last figure of a message counts, once.
    assert run.usage == Usage(input_tokens=22, output_tokens=42, cached_tokens=10)
    assert (run.task_text, run.model, run.native_id_is_global) == ("天気は?", "m-1", True)
    assert (run.duration_s, run.zone_in_log, run.outcome) == (12.0, True, None)
    assert run.metadata == {"cwd": "/w", "version": "2.1.0", "calls_rejected_by_user": 1}
    told = import_logs(workspace, path)
    assert (told.read, told.imported, told.rejected, told.steps) == (16, 16, 0, 4)


def test_lines_that_stand_in_the_file_twice_are_said_once(write):
    lines = session()
    once = read_one(write("a.jsonl", lines), "claude_code")
    twice = read_one(write("b.jsonl", [*lines, *lines]), "claude_code")
    assert twice.records == 2 * once.records
    assert (twice.steps, twice.usage) == (once.steps, once.usage)
    assert [message.content for message in twice.messages] == [message.content for message in once.messages]


def aside(lines, agent=None):
    return [{**one, "isSidechain": True} | ({} if agent is None else {"agentId": agent}) for one in lines]


def delegated():
    """What a subagent does for the call c1."""
    return [
        line(20, "user", "Find it.", parent=None),
        line(21, "assistant", [use("grep", "s1")], said={"model": "m-2", **spent(7, 3)}),
        line(22, "user", [result("s1", "found")]),
    ]


def main():
    return [
        line(0, "user", "Where?"),
        line(1, "assistant", [use("Task", "c1", prompt="Find it.")], said=spent(5, 2)),
        line(
            30, "user", [result("c1", "found")], parent="u1", toolUseResult={"agentId": "ab12", "status": "completed"}
        ),
    ]


def test_a_subagent_among_the_lines(write):
    lines = [*main()[:2], *aside(delegated()), main()[2]]
    run = read_one(write("s.jsonl", lines), "claude_code")
    assert [(step.tool, step.caller, step.status, step.execution_id) for step in run.steps] == [
        ("Task", "agent", "ok", "ab12"),
        ("grep", "subagent", "ok", None),
    ]
    assert (run.task_text, run.model, run.native_id) == ("Where?", "m-1", SESSION)
    assert run.metadata["models"] == ["m-1", "m-2"]
    assert run.usage == Usage(input_tokens=12, output_tokens=5, cached_tokens=0)


@pytest.mark.parametrize(
    ("agent", "name"), [("ab12", "agent-ab12.jsonl"), ("ab12", "x.jsonl"), (None, "agent-ab12.jsonl")]
)
def test_a_subagent_in_a_file_of_its_own(write, workspace, agent, name):
    path = write(name, aside(delegated(), agent))
    run = read_one(path, "claude_code")
    assert (run.native_id, run.native_id_is_global) == (f"{SESSION}/agent-ab12", True)
    assert (run.metadata["session"], run.metadata["agent"]) == (SESSION, "ab12")
    assert [(step.tool, step.caller) for step in run.steps] == [("grep", "subagent")]
    assert (run.task_text, run.model) == ("Find it.", "m-2")
    told = import_logs(workspace, [path, write("main.jsonl", main())])
    assert (told.runs, told.imported, told.skipped, told.steps) == (2, 6, 0, 2)


def test_what_a_rewind_left_behind_stays_and_is_named(write):
    lines = [
        line(0, "user", "Start"),
        line(1, "assistant", say("Ready")),
        line(2, "user", "First attempt", parent="u1"),
        line(3, "assistant", [use("look", "c1")]),
        line(4, "user", [result("c1", "a")]),
        line(5, "user", "Second attempt", parent="u1"),
        line(6, "assistant", [use("look", "c2"), use("look", "c3")]),
        line(7, "user", [result("c2", "b")], parent="u6"),
        line(8, "user", [result("c3", "c")], parent="u6"),  # two results of one message are no branches
    ]
    run = read_one(write("s.jsonl", lines), "claude_code")
    assert [(step.call_id, step.result) for step in run.steps] == [("c1", "a"), ("c2", "b"), ("c3", "c")]
    assert (run.metadata["rewound_prompts"], run.metadata["rewound_steps"]) == (1, [0])


def test_parents_that_go_round_in_a_ring(write):
    lines = [line(1, "user", "a", parent="u3"), line(2, "assistant", [use("look", "c1")], parent="u1")]
    lines += [line(3, "user", "b", parent="u2"), line(4, "user", "c", parent="u3")]
    run = read_one(write("s.jsonl", lines), "claude_code")
    assert (run.metadata["rewound_prompts"], len(run.steps)) == (1, 1)


def test_a_message_sent_while_the_agent_was_at_work(write):
    sent = {"type": "queued_command", "prompt": "also Osaka", "commandMode": "prompt"}
    run = read_one(write("s.jsonl", [*main(), line(31, "attachment", None, attachment=sent)]), "claude_code")
    assert [message.content for message in run.messages if message.role == "user"] == ["Where?", "also Osaka"]


def test_a_printed_stream(write):
    ended = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "session_id": SESSION,
        "duration_ms": 4500,
        "num_turns": 2,
        "total_cost_usd": 0.25,
        "result": "晴れ",
        **spent(30, 12, 20, 5),
    }
    printed = [
        {"type": "system", "subtype": "init", "session_id": SESSION, "model": "m-1", "cwd": "/w", "tools": ["look"]}
    ]
    for one in session()[3:10]:
        bare = {key: one[key] for key in ("type", "message", "uuid")}
        printed.append({**bare, "session_id": SESSION, "parent_tool_use_id": None})
    below = {"type": "assistant", "session_id": SESSION, "parent_tool_use_id": "c1"}
    printed.insert(-2, {**below, "message": {"id": "x", "model": "m-2", "content": [use("grep", "s1")]}})
    run = read_one(write("s.jsonl", [*printed, ended]), "claude_code")
    assert [(step.tool, step.caller, step.result) for step in run.steps] == [
        ("look", "agent", "晴れ"),
        ("look", "agent", "雨\n[image]"),
        ("grep", "subagent", None),
    ]
    assert (run.usage, run.cost_usd) == (Usage(input_tokens=55, output_tokens=12, cached_tokens=20), 0.25)
    assert (run.model, run.duration_s, run.started_at, run.native_id) == ("m-1", 4.5, None, SESSION)
    assert run.metadata["ended_by"] == "success"


def test_broken_lines_cost_themselves_only(write):
    text = [json.dumps(one, ensure_ascii=False) for one in session()]
    text[8] = text[8][: len(text[8]) // 2]
    text[14] = "noise"
    text[-1] = text[-1][:-3]
    runs, rejects = read(write("s.jsonl", "\n".join(text)), "claude_code")
    assert [reject.place for reject in rejects] == ["line 9", "line 15", "line 16"]
    (run,) = runs
    assert [(step.call_id, step.status) for step in run.steps] == [
        ("c1", "ok"),
        ("c2", "no_result"),
        ("c3", "error"),
        ("c4", "no_result"),
    ]
    assert run.records == 13


def test_two_sessions_in_one_file_and_summaries_alone(write):
    other = [{**one, "sessionId": SESSION.replace("019b", "aaaa")} for one in main()]
    mixed = [one for pair in zip(main(), other, strict=True) for one in pair]
    runs, rejects = read(write("s.jsonl", mixed), "claude_code")
    assert [(run.records, len(run.steps), run.steps[0].status) for run in runs] == [(3, 1, "ok")] * 2
    runs, rejects = read(write("t.jsonl", [{"type": "summary", "summary": "x", "leafUuid": "u"}] * 2), "claude_code")
    assert (runs, [reject.records for reject in rejects]) == ([], [2])


def test_a_web_export_that_is_cut(write):
    text = json.dumps({"loglines": main()})
    runs, rejects = read(write("s.json", text[: text.index('"u30"')]), "claude_code")
    assert [(run.records, run.steps[0].status) for run in runs] == [(2, "no_result")]
    assert [reject.records for reject in rejects] == [1]
