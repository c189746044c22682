"""Claude Code sessions: real ones against a plain look at their lines, and the ways that lines may differ."""

import datetime as dt
import json
from collections import Counter

from trace_tools import read, read_one

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
