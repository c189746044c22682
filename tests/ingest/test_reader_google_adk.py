"""Google ADK: a real session against plain parsing, both spellings, missing ids, results of evaluations, eval sets."""

import json

import pytest

from poc.ingest import import_logs, load_run
from poc.ingest.detect import detect
from poc.ingest.readers import google_adk
from poc.ingest.sources import Source
from poc.trajectory import ReferenceCall, Reject, Run, TaskReference, Usage


def read(path):
    items = list(google_adk.read(Source(path)))
    return [[item for item in items if isinstance(item, kind)] for kind in (Run, Reject, TaskReference)]


def test_a_session_against_plain_parsing(workspace, shared_log):
    path = shared_log("google_adk/adk_shopping_text_search.session.json")
    raw = json.loads(path.read_text())
    parts = [
        (event["timestamp"], part) for event in raw["events"] for part in event.get("content", {}).get("parts", ())
    ]
    calls = [(at, part["function_call"]) for at, part in parts if "function_call" in part]
    answers = {
        part["function_response"]["id"]: (at, part["function_response"])
        for at, part in parts
        if "function_response" in part
    }
    assert (len(calls), len(answers)) == (12, 12)
    result = import_logs(workspace, path)
    assert (result.read, result.runs, result.steps, result.rejected) == (1, 1, 12, 0)
    run = load_run(workspace, workspace.value("SELECT run_id FROM runs"))
    assert (run.native_id, run.category, run.zone_in_log) == (raw["id"], raw["app_name"], True)
    for step, (at, call) in zip(run.steps, calls, strict=True):
        ended, answer = answers[call["id"]]
        assert (step.tool, step.call_id, json.loads(step.arguments_json)) == (call["name"], call["id"], call["args"])
        assert step.result == answer["response"]["result"]
        assert step.duration_s == pytest.approx(ended - at, abs=1e-5)
        assert step.status == "ok"
    said = [part["text"] for _, part in parts if "text" in part]
    assert [m.content for m in run.messages if m.role != "tool" and m.content] == said
    assert run.task_text == said[0]


@pytest.mark.parametrize(
    ("name", "calls", "first"),
    [("adk_order_query.test.json", 7, "send_email"), ("adk_travel_intrip.test.json", 12, "transfer_to_agent")],
)
def test_eval_sets_are_no_runs_but_references(workspace, shared_log, name, calls, first):
    path = shared_log(f"google_adk/{name}")
    (case,) = json.loads(path.read_text())["eval_cases"]
    uses = [use for turn in case["conversation"] for use in turn["intermediate_data"]["tool_uses"]]
    assert len(uses) == calls
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected, result.skipped, result.runs) == (1, 0, 1, 0, 0)
    assert result.sources[0]["reasons"] == {"expected calls, not a run": 1}
    (task,) = workspace.rows("SELECT task_key, text, reference FROM tasks")
    assert (task["task_key"], task["text"]) == (
        case["eval_id"],
        case["conversation"][0]["user_content"]["parts"][0]["text"],
    )
    kept = json.loads(task["reference"])
    assert [(call["tool"], call["arguments"]) for call in kept] == [(use["name"], use["args"]) for use in uses]
    assert kept[0]["tool"] == first
    again = import_logs(workspace, path)
    assert (again.read, again.rejected, workspace.value("SELECT count(*) FROM tasks")) == (1, 1, 1)


def event(second, author, *parts, **more):
    return {
        "id": f"e{second}",
        "invocation_id": "i1",
        "author": author,
        "timestamp": 1767261600.0 + second,
        "content": {"role": "user" if author == "user" else "model", "parts": list(parts)},
        **more,
    }


def camel(value):
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for key, inner in value.items():
        first, *rest = key.split("_")
        # What a tool was given and gave back is the tool's own.
        inside = inner if key in ("args", "response") else camel(inner)
        renamed[first + "".join(part.capitalize() for part in rest)] = inside
    return renamed


def session(**more):
    usage = {
        "prompt_token_count": 100,
        "candidates_token_count": 10,
        "thoughts_token_count": 5,
        "cached_content_token_count": 40,
        "total_token_count": 115,
    }
    events = [
        event(0, "user", {"text": "two lamps please"}),
        event(1, "desk", {"text": "let me th"}, partial=True),
        event(
            2,
            "desk",
            {"text": "planning", "thought": True},
            {"text": "let me look"},
            {"function_call": {"name": "find", "args": {"a_b": 1}}},
            {"function_call": {"name": "find", "args": {"a_b": 2}}},
            {"function_call": {"name": "stock", "args": {}}},
            usage_metadata=usage,
            model_version="gemini-x",
        ),
        event(
            5,
            "desk",
            {"function_response": {"name": "stock", "response": {"error": "no such store"}}},
            {"function_response": {"name": "find", "response": {"result": "one"}}},
            {"function_response": {"name": "find", "response": {"status": "ok", "n": 2}}},
        ),
        event(
            6,
            "desk",
            {"executable_code": {"language": "PYTHON", "code": "1+1"}},
            {"code_execution_result": {"outcome": "OUTCOME_FAILED", "output": "boom"}},
        ),
        event(7, "desk", {"inline_data": {"mime_type": "image/png"}}, {"function_call": {"name": "pay", "args": {}}}),
    ]
    return {"id": "s1", "app_name": "shop", "user_id": "u", "state": {"k": 1}, "events": events, **more}


@pytest.mark.parametrize("spelling", [lambda value: value, camel])
@pytest.mark.parametrize("shape", ["session", "list", "lines"])
def test_sessions_in_both_spellings_without_ids(write, spelling, shape):
    value = spelling(session())
    if shape == "lines":
        path = write("events.jsonl", value["events"])
    else:
        path = write("session.json", json.dumps(value if shape == "session" else value["events"]))
    assert detect(Source(path)).format == "google_adk"
    ((run,), rejects, _) = read(path)
    assert rejects == []
    assert [(s.tool, s.turn, s.ordinal, s.status, s.status_evidence) for s in run.steps] == [
        ("find", 0, 0, "ok", "result"),
        ("find", 0, 1, "ok", "result"),
        ("stock", 0, 2, "error", "error_field"),
        ("code_execution", 1, 0, "error", "flag"),
        ("pay", 2, 0, "no_result", "none"),
    ]
    assert [s.result for s in run.steps] == ["one", '{"status":"ok","n":2}', '{"error":"no such store"}', "boom", None]
    assert run.steps[0].arguments_json == '{"a_b":1}'
    assert run.steps[0].duration_s == 3.0
    assert run.usage == Usage(input_tokens=100, output_tokens=15, cached_tokens=40, reasoning_tokens=5)
    assert run.model == "gemini-x"
    assert [(m.role, m.name, m.content) for m in run.messages if m.role != "tool"] == [
        ("user", None, "two lamps please"),
        ("assistant", "desk", "let me look"),
        ("assistant", "desk", None),
        ("assistant", "desk", "[file]"),
    ]
    if shape == "session":
        assert (run.native_id, run.category, run.metadata) == ("s1", "shop", {"user_id": "u", "state": {"k": 1}})


def test_results_of_an_evaluation_are_runs_of_the_case(workspace, write):
    turn = {
        "user_content": {"parts": [{"text": "two lamps please"}]},
        "intermediate_data": {"tool_uses": [{"name": "find", "args": {"x": 1}}]},
    }
    cases = {"eval_set_id": "set", "eval_cases": [{"eval_id": "case 1", "conversation": [turn]}]}
    results = {
        "eval_set_result_id": "r",
        "eval_case_results": [
            {"eval_id": "case 1", "final_eval_status": 1, "session_details": session()},
            {"eval_id": "case 1", "final_eval_status": 2, "session_details": session(id="s2")},
            {"eval_id": "case 2", "final_eval_status": 3, "session_details": None},
        ],
    }
    # ADK writes them as JSON in a JSON text.
    paths = [write("a.evalset.json", json.dumps(camel(cases))), write("b.json", json.dumps(json.dumps(results)))]
    result = import_logs(workspace, paths)
    assert [source["format"] for source in result.sources] == ["google_adk"] * 2
    assert (result.read, result.imported, result.rejected) == (4, 2, 2)
    assert workspace.rows("SELECT native_id, outcome, outcome_provenance FROM runs ORDER BY 1") == [
        {"native_id": "s1", "outcome": 1.0, "outcome_provenance": "log:final_eval_status"},
        {"native_id": "s2", "outcome": 0.0, "outcome_provenance": "log:final_eval_status"},
    ]
    for run_id in [row["run_id"] for row in workspace.rows("SELECT run_id FROM runs")]:
        run = load_run(workspace, run_id)
        assert (run.task_key, run.reference) == ("case 1", [ReferenceCall(tool="find", arguments_json='{"x":1}')])


def test_older_eval_sets(write):
    turns = [
        {"query": "hello", "expected_tool_use": [], "reference": "hi"},
        {"query": "lamp", "expected_tool_use": [{"tool_name": "find", "tool_input": {"x": 1}}], "reference": "here"},
    ]
    for path in (
        write("bare.test.json", json.dumps(turns)),
        write("named.evalset.json", json.dumps([{"name": "n", "data": turns, "initial_session": {}}])),
    ):
        assert detect(Source(path)).format == "google_adk"
        runs, rejects, references = read(path)
        assert runs == []
        assert [reject.records for reject in rejects] == [1]
        assert [(task.task_text, [call.tool for call in task.reference]) for task in references] == [
            ("hello", ["find"])
        ]
    answers = [{"query": "hello", "expected_tool_use": [], "reference": "hi"}]
    _, rejects, references = read(write("none.test.json", json.dumps(answers)))
    assert (len(rejects), references) == (1, [])


def test_damage(write):
    broken = session()
    broken["events"].insert(1, 7)
    lines = [json.dumps(session()), json.dumps(session())[:-9], json.dumps(broken), json.dumps({"id": 1})]
    runs, rejects, _ = read(write("sessions.jsonl", "\n".join(lines)))
    assert [len(run.steps) for run in runs] == [5, 5]
    assert [(reject.place, reject.records) for reject in rejects] == [
        ("line 2", 1),
        ("line 3 .events[1]", 0),
        ("line 4", 1),
    ]
