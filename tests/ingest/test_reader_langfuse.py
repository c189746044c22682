"""Langfuse: real traces against a plain look at them, one trace in every kind of export, tools of all ages."""

import csv
import datetime as dt
import io
import json

import pytest
from trace_tools import brief, read, read_one, same_json

from poc.ingest import import_logs
from poc.trajectory import Outcome, Usage

# Real files ----------------------------------------------------------------------------------------------


def attributes(observation):
    """OpenTelemetry attributes, which stand as JSON texts in JSON texts."""
    extra = json.loads(observation["metadata"])
    said = extra.get("attributes", {})
    return json.loads(said) if isinstance(said, str) else said


REAL = {
    # file: model
    "langfuse_google-adk-2025-08-28.trace.json": "gemini-2.0-flash",
    "langfuse_openai-agents-2025-09-30.trace.json": "gpt-4.1-2025-04-14",
    "langfuse_beeai-2025-08-01.trace.json": "gpt-4o-mini",
}


def look_at(path):
    raw = json.loads(path.read_text())
    return raw["trace"], raw["observations"]


@pytest.mark.parametrize("name", REAL)
def test_real_files(shared_log, name):
    path = shared_log(f"langfuse/{name}")
    trace, observations = look_at(path)
    run = read_one(path, "langfuse")
    assert (run.native_id, run.native_id_is_global, run.model) == (trace["id"], True, REAL[name])
    assert (run.records, run.zone_in_log, run.outcome) == (len(observations), True, None)
    assert run.started_at == min(dt.datetime.fromisoformat(o["startTime"]) for o in observations)
    assert run.ended_at == max(dt.datetime.fromisoformat(o["endTime"]) for o in observations)
    details = [o["usageDetails"] for o in observations if o["type"] == "GENERATION" and o["usageDetails"]]
    assert run.usage.input_tokens == sum(told["input"] for told in details)
    written = [told.get("output") for told in details]
    assert run.usage.output_tokens == (None if None in written else sum(written))
    scores = trace["scores"] if isinstance(trace["scores"], list) else json.loads(trace["scores"])
    told = [(score["name"], score["source"]) for score in scores]
    assert [(score["name"], score["source"]) for score in run.metadata.get("scores", [])] == told
    assert run.metadata["trace_name"] == trace["name"]


@pytest.mark.parametrize(
    "name", ["langfuse_google-adk-2025-08-28.trace.json", "langfuse_openai-agents-2025-09-30.trace.json"]
)
def test_tools_of_real_files(shared_log, name):
    path = shared_log(f"langfuse/{name}")
    (tool,) = [o for o in look_at(path)[1] if o["type"] == "TOOL"]
    said = attributes(tool)
    (step,) = read_one(path, "langfuse").steps
    assert step.tool == said["tool.name"]
    assert same_json(step.arguments_json, json.loads(tool["input"]))
    if "adk" in name:  # Langfuse has only {} there, the framework's own attribute the real answer
        assert same_json(step.result, json.loads(said["gcp.vertex.agent.tool_response"]))
        assert step.call_id == said["gen_ai.tool.call.id"]
    else:
        assert step.result == tool["output"]
        asked = [o for o in look_at(path)[1] if o["type"] == "GENERATION" and "get_weather" in o["output"]]
        assert step.call_id in min(asked, key=lambda o: o["startTime"])["output"]
    # Level DEFAULT does not say that it went well.
    assert (step.status, step.status_evidence, step.caller) == ("ok", "result", "agent")
    assert step.started_at == dt.datetime.fromisoformat(tool["startTime"])
    assert (step.ended_at, step.execution_id) == (dt.datetime.fromisoformat(tool["endTime"]), tool["id"])


def test_calls_that_are_told_by_events_only(shared_log):
    """BeeAI: a span for each event of one call, all open till the run ends; the second call has no tool span at all."""
    path = shared_log("langfuse/langfuse_beeai-2025-08-01.trace.json")
    updates = []
    for observation in sorted(look_at(path)[1], key=lambda o: o["startTime"]):
        said = attributes(observation)
        given = json.loads(said.get("tool.parameters") or "null")
        if str(said.get("target")).startswith("agent.react.update") and isinstance(given, dict):
            updates.append((said["tool.name"], given, observation["startTime"]))
    first = {}
    for tool, given, start in updates:
        first.setdefault(tool, (tool, given, dt.datetime.fromisoformat(start)))
    run = read_one(path, "langfuse")
    assert [(s.tool, json.loads(s.arguments_json), s.started_at) for s in run.steps] == list(first.values())
    assert [step.status for step in run.steps] == ["ok", "ok"]
    assert all(step.duration_s < 2 for step in run.steps)


# One trace in every kind of export -----------------------------------------------------------------------

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = dt.datetime(2026, 2, 3, 4, 5, 6, 7000, tzinfo=dt.UTC)


def observation(number, parent, name, kind, at, seconds, **more):
    begin = START + dt.timedelta(seconds=at)
    end = begin + dt.timedelta(seconds=seconds)
    return {
        "id": f"o{number}",
        "traceId": TRACE,
        "parentObservationId": None if parent is None else f"o{parent}",
        "type": kind,
        "name": name,
        "startTime": begin.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "endTime": end.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": "DEFAULT",
        "statusMessage": None,
        "input": None,
        "output": None,
        "metadata": {},
        **more,
    }


def observations():
    """An agent: a generation that calls two tools at once, of which one fails, a remark, and the answer."""
    call = {"type": "function", "id": "c1", "function": {"name": "look", "arguments": '{"city": "東京"}'}}
    other = {"type": "function", "id": "c2", "function": {"name": "peek", "arguments": "{}"}}
    asked = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "天気は?"}]
    spent = {"input": 40, "input_cached_tokens": 60, "output": 15, "output_reasoning_tokens": 5, "total": 120}
    said = {"role": "assistant", "content": None, "tool_calls": [call, other]}
    model = {"model": "m-1", "usageDetails": spent, "costDetails": {"total": 0.5}}
    return [
        observation(1, None, "clerk", "AGENT", 0, 9),
        observation(2, 1, "chat", "GENERATION", 0.5, 1, input=asked, output=said, **model),
        observation(3, 1, "look", "TOOL", 2, 1, input={"city": "東京"}, output="晴れ"),
        observation(4, 1, "peek", "TOOL", 2.5, 1, input={}, level="ERROR", statusMessage="窓 is broken"),
        {**observation(5, 1, "a remark", "EVENT", 4, 0), "endTime": None},
        observation(
            6, 1, "chat", "GENERATION", 5, 1, input=asked, output={"role": "assistant", "content": "晴れ"}, **model
        ),
    ]


def trace():
    return {
        "id": TRACE,
        "projectId": "p",
        "name": "desk",
        "timestamp": observations()[0]["startTime"],
        "sessionId": "s1",
        "userId": "u1",
        "tags": ["t"],
        "input": "天気は?",
        "output": None,
        "metadata": {"team": "a"},
    }


def scores():
    common = {"traceId": TRACE, "projectId": "p", "timestamp": observations()[0]["startTime"], "dataType": "NUMERIC"}
    return [
        {"id": "s1", "name": "toxicity", "value": 0.5, "source": "EVAL", **common},
        {"id": "s2", "name": "task_success", "value": 1, "source": "ANNOTATION", **common},
    ]


def as_app():
    """What the app's download button gives."""
    return json.dumps({"trace": {**trace(), "scores": scores()}, "observations": observations()})


def as_app_texts():
    """The same, with inputs, outputs and metadata as JSON texts."""
    listed = [
        {k: json.dumps(v) if k in ("input", "output", "metadata") and v is not None else v for k, v in o.items()}
        for o in observations()
    ]
    return json.dumps({"trace": {**trace(), "scores": json.dumps(scores())}, "observations": listed})


def as_api_trace():
    """``GET /api/public/traces/{id}``."""
    inner = [{k: v for k, v in o.items() if k != "traceId"} for o in observations()]
    return json.dumps({**trace(), "htmlPath": "/x", "scores": scores(), "observations": inner}, indent=1)


def as_api_list():
    """``GET /api/public/observations``: no trace, no scores."""
    return json.dumps({"data": observations(), "meta": {"page": 1, "limit": 50, "totalItems": 6, "totalPages": 1}})


def as_lines():
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in [trace(), *observations(), *scores()])


def snake(row):
    def name(key):
        return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in key)

    row = {name(key): value for key, value in row.items()}
    for key in ("start_time", "end_time", "timestamp"):
        if row.get(key):
            row[key] = row[key].replace("T", " ").replace("Z", "")
    if "model" in row:
        row["provided_model_name"] = row.pop("model")
    return row


def as_blob_lines():
    """Exports to a bucket: snake_case, times without zone, JSON in texts."""
    rows = [snake(row) for row in [*observations(), *scores()]]
    for row in rows:
        for key in ("input", "output", "metadata"):
            if row.get(key) is not None:
                row[key] = json.dumps(row[key], ensure_ascii=False)
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(rows):
    names = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {k: json.dumps(v, ensure_ascii=False) if isinstance(v, dict | list) else v for k, v in row.items()}
        )
    return out.getvalue()


def as_csv():
    return table(observations())


def as_blob_csv():
    return table([snake(row) for row in observations()])


CONTAINERS = {
    make.__name__: make
    for make in (as_app, as_app_texts, as_api_trace, as_api_list, as_lines, as_blob_lines, as_csv, as_blob_csv)
}
SCORED = ("as_app", "as_app_texts", "as_api_trace", "as_lines", "as_blob_lines")
TOLD = ("as_app", "as_app_texts", "as_api_trace", "as_lines")
"""Where the trace itself is told."""


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers(write, container):
    run = read_one(write("a.csv" if "csv" in container else "a.json", CONTAINERS[container]()), "langfuse")
    assert (run.native_id, run.native_id_is_global, run.records, run.model) == (TRACE, True, 6, "m-1")
    assert run.usage == Usage(input_tokens=200, output_tokens=40, cached_tokens=120, reasoning_tokens=10)
    assert run.cost_usd == 1.0
    assert [(m.role, m.content) for m in run.messages] == [
        ("system", "be brief"),
        ("user", "天気は?"),
        ("assistant", None),
        ("assistant", "晴れ"),
    ]
    look, peek = run.steps
    assert brief(look) == ("look", "c1", {"city": "東京"}, "晴れ", "ok", "result")
    assert brief(peek) == ("peek", "c2", {}, "窓 is broken", "error", "flag")
    assert [(s.turn, s.ordinal, s.caller, s.execution_id, s.duration_s) for s in run.steps] == [
        (0, 0, "agent", "o3", 1.0),
        (0, 1, "agent", "o4", 1.0),
    ]
    assert (run.started_at, run.ended_at) == (START, START + dt.timedelta(seconds=9))
    assert run.zone_in_log is ("blob" not in container)
    if container in SCORED:
        assert run.outcome == Outcome(value=1.0, provenance="log:task_success (ANNOTATION)")
        assert [score["name"] for score in run.metadata["scores"]] == ["toxicity", "task_success"]
    else:
        assert run.outcome is None
    if container in TOLD:
        told = {key: run.metadata[key] for key in ("session_id", "user_id", "tags", "trace_name", "trace_metadata")}
        assert told == {
            "session_id": "s1",
            "user_id": "u1",
            "tags": ["t"],
            "trace_name": "desk",
            "trace_metadata": {"team": "a"},
        }


@pytest.mark.parametrize("container", CONTAINERS)
def test_import_adds_up(workspace, write, container):
    result = import_logs(workspace, write("a.csv" if "csv" in container else "a.json", CONTAINERS[container]()))
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (6, 6, 0, 1, 2)


@pytest.mark.parametrize("container", ["as_app", "as_api_trace", "as_api_list", "as_lines"])
def test_a_file_that_is_cut(write, container):
    text = CONTAINERS[container]()
    runs, rejects = read(write("a.json", text[: text.index('"o6"') + 60]), "langfuse")
    assert [run.records for run in runs] == [5]
    assert [step.status for step in runs[0].steps] == ["ok", "error"]
    assert sum(reject.records for reject in rejects) == 1


# How tools are told --------------------------------------------------------------------------------------


def alone(write, **said):
    base = observation(1, None, "look", "TOOL", 0, 1)
    return read_one(write("a.json", json.dumps({"trace": trace(), "observations": [{**base, **said}]})), "langfuse")


def old(said, *, as_text=True):
    return {"metadata": {"attributes": json.dumps(said) if as_text else said, "scope": {"name": "inst"}}}


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize(
    "said",
    [
        {"openinference.span.kind": "TOOL", "tool.name": "look"},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"},
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "look"},
    ],
)
def test_tools_that_are_typed_as_spans(write, said, as_text):
    run = alone(write, type="SPAN", name="x", input='{"a": 1}', output='"r"', **old(said, as_text=as_text))
    (step,) = run.steps
    assert (step.tool, json.loads(step.arguments_json), step.status) == ("look", {"a": 1}, "ok")
    assert run.framework == "inst"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ("look", None, None, None, "no_result", "none")),
        ({"input": {"a": 1}}, ("look", None, {"a": 1}, None, "no_result", "none")),
        ({"input": {"a": 1}, "output": {"b": 2}}, ("look", None, {"a": 1}, '{"b":2}', "ok", "result")),
        ({"output": ""}, ("look", None, None, "", "ok", "result")),
        ({"output": "x", "level": "WARNING"}, ("look", None, None, "x", "ok", "result")),
        ({"output": "x", "level": "ERROR"}, ("look", None, None, "x", "error", "flag")),
        ({"output": {"exit_code": 3}}, ("look", None, None, '{"exit_code":3}', "error", "exit_code")),
        (
            {"output": {"type": "tool", "content": "no", "tool_call_id": "c9", "status": "error"}},
            ("look", "c9", None, "no", "error", "flag"),
        ),
    ],
)
def test_tools(write, said, expected):
    (step,) = alone(write, **said).steps
    assert brief(step) == expected


def test_a_span_that_says_nothing_of_a_tool_is_none(write):
    run = alone(write, type="SPAN", input={"a": 1}, output="x")
    assert (run.steps, run.metadata["other_spans"]) == ([], {"look": 1})


def test_calls_that_newer_generations_hold_apart(write):
    run = alone(
        write,
        type="GENERATION",
        name="chat",
        output="let me see",
        toolCalls=[json.dumps({"id": "c1", "name": "look", "arguments": '{"a": 1}'}), {"id": "c2", "arguments": "{}"}],
        toolCallNames=["look", "peek"],
        toolDefinitions={"look": json.dumps({"description": "looks", "parameters": {"type": "object"}})},
    )
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", {"a": 1}, None, "no_result", "none"),
        ("peek", "c2", {}, None, "no_result", "none"),
    ]
    assert [(tool.name, tool.description) for tool in run.tools] == [("look", "looks")]


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"usageDetails": {"input": 10, "output": 2, "total": 12}}, Usage(input_tokens=10, output_tokens=2)),
        ({"usageDetails": '{"input": 10, "output": 2}'}, Usage(input_tokens=10, output_tokens=2)),
        ({"promptTokens": 10, "completionTokens": 2, "totalTokens": 12}, Usage(input_tokens=10, output_tokens=2)),
        ({"usage": {"input": 10, "output": 2, "total": 12, "unit": "TOKENS"}}, Usage(input_tokens=10, output_tokens=2)),
        ({"usageDetails": {}, "inputUsage": 0, "outputUsage": 0}, None),
        # Buckets beside input and output: the total says that they are.
        (
            {"usageDetails": {"input": 10, "cache_read_input_tokens": 90, "output": 2, "total": 102}},
            Usage(input_tokens=100, output_tokens=2, cached_tokens=90),
        ),
        # Details inside input and output: the total says that, too.
        (
            {"usageDetails": {"input": 100, "prompt_details.cache_read": 90, "output": 2, "total": 102}},
            Usage(input_tokens=100, output_tokens=2, cached_tokens=90),
        ),
    ],
)
def test_tokens(write, said, usage):
    assert alone(write, type="GENERATION", **said).usage == usage


@pytest.mark.parametrize(
    ("score", "value"),
    [
        ({"name": "success", "value": 0}, 0.0),
        ({"name": "correct", "value": 1, "stringValue": "True", "dataType": "BOOLEAN"}, 1.0),
        ({"name": "outcome", "value": None, "stringValue": "failed", "dataType": "CATEGORICAL"}, 0.0),
        ({"name": "helpfulness", "value": 1}, None),
        ({"name": "success", "value": 7}, None),
    ],
)
def test_outcome(write, score, value):
    body = {"trace": {**trace(), "scores": [{"id": "s", "traceId": TRACE, **score}]}, "observations": observations()}
    run = read_one(write("a.json", json.dumps(body)), "langfuse")
    assert (None if run.outcome is None else run.outcome.value) == value


def test_a_subagent_inside_a_tool(write):
    listed = [
        observation(1, None, "a", "AGENT", 0, 9),
        observation(2, 1, "chat", "GENERATION", 0, 1, input="q", output="x"),
        observation(3, 1, "ask_b", "TOOL", 1, 5, input={}, output="r"),
        observation(4, 3, "b", "AGENT", 1, 4),
        observation(5, 4, "chat", "GENERATION", 2, 1, input="r", output="y"),
        observation(6, 4, "look", "TOOL", 3, 1, input={}, output="s"),
    ]
    run = read_one(write("a.json", json.dumps({"trace": trace(), "observations": listed})), "langfuse")
    assert [(step.tool, step.caller) for step in run.steps] == [("ask_b", "agent"), ("look", "subagent")]


def test_traces_in_turn_and_what_belongs_to_none(write):
    rows = []
    for row in [*observations(), *scores()]:
        for other in ("a" * 32, "b" * 32):
            rows.append({**row, "traceId": other})
    rows += [{"id": "s9", "traceId": "c" * 32, "name": "success", "value": 1}, {"hello": 1}]
    runs, rejects = read(write("a.jsonl", rows), "langfuse")
    assert [(run.native_id, run.records, run.outcome.value) for run in runs] == [("a" * 32, 6, 1.0), ("b" * 32, 6, 1.0)]
    assert sorted(reject.reason for reject in rejects) == [
        "a score of a trace that is not in this file",
        "no observation, trace or score of Langfuse here",
    ]


def test_a_trace_without_observations_is_a_run_without_steps(write):
    run = read_one(write("a.json", json.dumps({"trace": trace(), "observations": []})), "langfuse")
    assert (run.native_id, run.records, run.steps, run.task_text) == (TRACE, 1, [], "天気は?")


@pytest.mark.parametrize("as_list", [True, False])
def test_a_trace_that_is_told_after_its_observations(write, as_list):
    """A trace stands under its own id; the run is not given out before it has come."""
    rows = [*observations(), *scores(), {**observations()[0], "id": "x", "traceId": "b" * 32}, trace()]
    text = json.dumps(rows) if as_list else "".join(json.dumps(row) + "\n" for row in rows)
    runs, rejects = read(write("a.json", text), "langfuse")
    assert rejects == []
    assert sorted((run.native_id, run.records, run.metadata.get("session_id")) for run in runs) == [
        (TRACE, 6, "s1"),
        ("b" * 32, 1, None),
    ]
