"""DeepEval traces: a real one of a LangGraph agent against plain parsing, failures, several in a file, damage."""

import json

from poc.ingest import import_logs, load_run
from poc.ingest.detect import detect
from poc.ingest.readers import deepeval
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage

REAL = "langgraph/deepeval_langgraph_full_flow_trace.json"


def read(path):
    items = list(deepeval.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def test_a_trace_of_langgraph_against_plain_parsing(workspace, shared_log):
    path = shared_log(REAL)
    raw = json.loads(path.read_text())
    (tool,) = raw["toolSpans"]
    first, second = sorted(raw["llmSpans"], key=lambda span: span["startTime"])
    result = import_logs(workspace, path)
    assert (result.read, result.runs, result.steps, result.rejected) == (1, 1, 1, 0)
    run = load_run(workspace, workspace.value("SELECT run_id FROM runs"))
    (step,) = run.steps
    # The call stands in the model's answer, in the tool's span and in `toolsCalled`: it counts once.
    assert step.call_id == tool["output"]["tool_call_id"] == first["output"]["tool_calls"][0]["id"]
    assert (step.tool, step.result, step.status) == (tool["name"], tool["output"]["content"], "ok")
    assert step.duration_s == 0.001
    assert run.usage == Usage(
        input_tokens=int(first["inputTokenCount"] + second["inputTokenCount"]),
        output_tokens=int(first["outputTokenCount"] + second["outputTokenCount"]),
    )
    assert (run.native_id, run.model) == (raw["uuid"], "gpt-5.4-mini-2025-08-07")
    assert run.task_text == raw["input"]["messages"][-1]["content"]
    assert run.metadata["thread_id"] == raw["threadId"]
    # What the model read first: the thread's history without the tools, and no empty answers.
    heard = [m for m in first["input"] if m["role"] != "Tool Input" and (m["role"], m["content"]) != ("ai", "")]
    said = [m.content for m in run.messages]
    assert said[: len(heard)] == [m["content"] for m in heard]
    assert [(m.role, m.content or None) for m in run.messages[len(heard) :]] == [
        ("assistant", None),
        ("tool", tool["output"]["content"]),
        ("assistant", "CONFIRMED"),
    ]
    tools = {row["tool"] for row in workspace.rows("SELECT tool FROM tools")}
    assert tools == {"add_to_cart", "remove_from_cart", "view_cart", "apply_coupon", "checkout", "confirm_order"}


def at(second):
    return f"2026-01-01T10:00:{second:02d}Z"


def trace(**more):
    made = {"role": "AI", "content": "", "tool_calls": [{"name": "look", "args": {"x": 1}, "id": "c1"}]}
    return {
        "uuid": "t1",
        "name": "desk",
        "status": "ERRORED",
        "input": "look at it",
        "agentSpans": [{"uuid": "a", "name": "desk", "status": "ERRORED", "startTime": at(0), "endTime": at(9)}],
        "llmSpans": [
            {
                "uuid": "l",
                "parentUuid": "a",
                "status": "SUCCESS",
                "startTime": at(1),
                "endTime": at(2),
                "input": [{"role": "human", "content": "look at it"}],
                "output": made,
                "model": "gpt-x",
            }
        ],
        "toolSpans": [
            {
                "uuid": "s",
                "parentUuid": "a",
                "name": "look",
                "status": "ERRORED",
                "error": "it is dark",
                "startTime": at(3),
                "endTime": at(5),
                "input": {"x": 1},
            }
        ],
        "baseSpans": [],
        "metricsData": [{"name": "Task Completion", "score": 0.25}],
        **more,
    }


def test_a_failed_call(write):
    path = write("trace.json", json.dumps(trace()))
    assert detect(Source(path)).format == "deepeval"
    ((run,), rejects) = read(path)
    assert rejects == []
    (step,) = run.steps
    assert (step.tool, step.call_id, step.status, step.status_evidence) == ("look", "c1", "error", "flag")
    assert (step.duration_s, step.arguments_json) == (2.0, '{"x":1}')
    assert (run.outcome.value, run.outcome.provenance) == (0.25, "log:Task Completion")
    assert (run.usage, run.metadata["status"]) == (None, "ERRORED")


def test_several_and_damage(write):
    lines = [json.dumps(trace()), json.dumps(trace(uuid="t2"))[:-30], json.dumps(trace(uuid="t3", baseSpans=[7])), "{}"]
    runs, rejects = read(write("traces.jsonl", "\n".join(lines)))
    assert [run.native_id for run in runs] == ["t1", "t3"]
    assert [(reject.place, reject.records) for reject in rejects] == [
        ("line 2", 1),
        ("line 3 .baseSpans[0]", 0),
        ("line 4", 1),
    ]
