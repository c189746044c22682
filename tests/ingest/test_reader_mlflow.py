"""MLflow: a real trace against a plain look at it, versions 3 and 2 in every holder, values that are JSON texts."""

import base64
import json

import pytest
from trace_tools import brief, micros, read, read_one, same_json

from poc.ingest import import_logs
from poc.trajectory import Outcome, Usage

REAL = "mlflow/SELFMADE_mlflow3_trace.json"


def test_a_real_trace(shared_log):
    path = shared_log(REAL)
    raw = json.loads(path.read_text())
    spans = raw["data"]["spans"]
    said = [{key: json.loads(value) for key, value in span["attributes"].items()} for span in spans]
    tools = [(span, own) for span, own in zip(spans, said, strict=True) if own["mlflow.spanType"] == "TOOL"]
    run = read_one(path, "mlflow")
    assert (run.native_id, run.native_id_is_global, run.records) == (raw["info"]["trace_id"], True, len(spans))
    assert (run.model, run.outcome, run.zone_in_log) == (None, None, True)
    usage = next(own["mlflow.chat.tokenUsage"] for own in said if "mlflow.chat.tokenUsage" in own)
    assert run.usage == Usage(input_tokens=usage["input_tokens"], output_tokens=usage["output_tokens"])
    assert run.started_at == micros(min(span["start_time_unix_nano"] for span in spans) // 1000)
    assert run.ended_at == micros(max(span["end_time_unix_nano"] for span in spans) // 1000)
    assert [step.tool for step in run.steps] == [span["name"] for span, _ in tools]
    for step, (span, _) in zip(run.steps, tools, strict=True):
        assert step.execution_id == base64.b64decode(span["span_id"]).hex()
        assert step.started_at == micros(span["start_time_unix_nano"] // 1000)
        assert step.caller == "agent"
    paris, atlantis = run.steps
    # The model called without the unit; the tool's own span has its default.
    assert same_json(paris.arguments_json, {"city": "Paris"})
    assert tools[0][1]["mlflow.spanInputs"] == {"city": "Paris", "unit": "C"}
    assert (paris.call_id, paris.status, paris.status_evidence) == ("call_1", "ok", "flag")
    assert same_json(paris.result, tools[0][1]["mlflow.spanOutputs"])
    wrong = tools[1][0]["events"][0]["attributes"]
    assert brief(atlantis) == (
        "get_weather",
        None,
        tools[1][1]["mlflow.spanInputs"],
        f"{wrong['exception.type']}: {wrong['exception.message']}",
        "error",
        "flag",
    )


# One trace, both versions, every holder -----------------------------------------------------------------

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_760_000_000_000_000_000


def spans():
    """An agent, a model call with two calls, two tools of which one fails, and the answer: (.., values)."""
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"city": "東京"}'}},
        {"id": "c2", "type": "function", "function": {"name": "peek", "arguments": "{}"}},
    ]
    asked = {
        "model": "m-1",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "天気は?"}],
    }
    first = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}
    last = {"choices": [{"message": {"role": "assistant", "content": "晴れ"}}]}
    spent = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120, "cache_read_input_tokens": 60}
    wrong = {"exception.type": "KeyError", "exception.message": "窓", "exception.stacktrace": "..."}
    return [
        (
            1,
            None,
            "clerk",
            "AGENT",
            0,
            9.0,
            {"mlflow.spanInputs": {"q": "天気は?"}, "mlflow.spanOutputs": "晴れ"},
            "OK",
            None,
        ),
        (2, 1, "chat", "CHAT_MODEL", 0.5, 1.0, chat(asked, first, spent), "OK", None),
        (
            3,
            1,
            "look",
            "TOOL",
            2.0,
            1.0,
            {"mlflow.spanInputs": {"city": "東京"}, "mlflow.spanOutputs": "晴れ"},
            "OK",
            None,
        ),
        (4, 1, "peek", "TOOL", 2.5, 1.0, {"mlflow.spanInputs": {}}, "ERROR", wrong),
        (5, 1, "chat", "CHAT_MODEL", 5.0, 1.0, chat(asked, last, spent), "OK", None),
    ]


def chat(asked, answer, spent):
    return {
        "mlflow.spanInputs": asked,
        "mlflow.spanOutputs": answer,
        "mlflow.chat.tokenUsage": spent,
        "mlflow.llm.cost": {"input_cost": 0.1, "output_cost": 0.15, "total_cost": 0.25},
        "mlflow.chat.tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    }


def encoded(kind, values):
    values = {"mlflow.traceRequestId": f"tr-{TRACE}", "mlflow.spanType": kind, **values}
    return {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}


def b64(number, size):
    return base64.b64encode(number.to_bytes(size, "big")).decode()


def version_3():
    listed = [
        {
            "trace_id": base64.b64encode(bytes.fromhex(TRACE)).decode(),
            "span_id": b64(number, 8),
            "parent_span_id": None if parent is None else b64(parent, 8),
            "name": name,
            "start_time_unix_nano": START + int(at * 1e9),
            "end_time_unix_nano": START + int((at + seconds) * 1e9),
            "events": [{"name": "exception", "time_unix_nano": START, "attributes": wrong}] if wrong else [],
            "status": {"code": f"STATUS_CODE_{code}", "message": ""},
            "attributes": encoded(kind, values),
            "links": [],
        }
        for number, parent, name, kind, at, seconds, values, code, wrong in spans()
    ]
    info = {
        "trace_id": f"tr-{TRACE}",
        "request_time": "2025-10-09T08:53:20Z",
        "state": "OK",
        "trace_metadata": {"mlflow.trace.session": "s1", "mlflow.trace.user": "u1", "mlflow.source.name": "a.py"},
        "tags": {"mlflow.traceName": "clerk", "team": "a"},
        "assessments": [
            {
                "assessment_name": "correctness",
                "source": {"source_type": "HUMAN", "source_id": "x"},
                "feedback": {"value": True},
            },
            {"assessment_name": "expected", "expectation": {"value": "晴れ"}},
        ],
    }
    return {"info": info, "data": {"spans": listed}}


def version_2():
    listed = [
        {
            "name": name,
            "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{number:016x}"},
            "parent_id": None if parent is None else f"0x{parent:016x}",
            "start_time": START + int(at * 1e9),
            "end_time": START + int((at + seconds) * 1e9),
            "status_code": code,
            "status_message": "",
            "attributes": encoded(kind, values),
            "events": [{"name": "exception", "timestamp": START, "attributes": wrong}] if wrong else [],
        }
        for number, parent, name, kind, at, seconds, values, code, wrong in spans()
    ]
    info = {
        "request_id": f"tr-{TRACE}",
        "experiment_id": "7",
        "timestamp_ms": START // 10**6,
        "execution_time_ms": 9000,
        "status": "OK",
        "request_metadata": {"mlflow.trace.session": "s1"},
        "tags": [{"key": "mlflow.traceName", "value": "clerk"}, {"key": "team", "value": "a"}],
    }
    return {"info": info, "data": {"spans": listed, "request": "{}", "response": "{}"}}


def row(trace):
    """A row of ``search_traces``: columns, the spans as a list."""
    info = trace["info"]
    named = {key: value for key, value in info.items() if key not in ("trace_id", "request_id")}
    key = "trace_id" if "trace_id" in info else "request_id"
    return {key: info[key], **named, "spans": trace["data"]["spans"], "request": "x"}


HOLDERS = {
    "one": lambda trace: json.dumps(trace),
    "pretty": lambda trace: json.dumps(trace, indent=2, ensure_ascii=False),
    "list": lambda trace: json.dumps([trace]),
    "lines": lambda trace: json.dumps(trace) + "\n" + json.dumps(trace).replace(TRACE, TRACE[::-1]) + "\n",
    "traces": lambda trace: json.dumps({"traces": [trace]}),
    "rows": lambda trace: json.dumps([row(trace)]),
    "rows, spans as texts": lambda trace: json.dumps(
        [
            {
                **row(trace),
                "spans": json.dumps(trace["data"]["spans"]),
                "assessments": json.dumps(trace["info"].get("assessments")),
            }
        ]
    ),
    "rows with the trace as text": lambda trace: json.dumps([{**row(trace), "trace": json.dumps(trace)}]),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("version", [version_2, version_3])
def test_holders(write, holder, version):
    runs, rejects = read(write("a.json", HOLDERS[holder](version())), "mlflow")
    assert rejects == []
    assert len(runs) == (2 if holder == "lines" else 1)
    run = runs[0]
    assert (run.native_id, run.native_id_is_global, run.records, run.model) == (f"tr-{TRACE}", True, 5, "m-1")
    assert run.usage == Usage(input_tokens=200, output_tokens=40, cached_tokens=120)
    assert run.cost_usd == 0.5
    assert [(m.role, m.content) for m in run.messages] == [
        ("system", "be brief"),
        ("user", "天気は?"),
        ("assistant", None),
        ("assistant", "晴れ"),
    ]
    look, peek = run.steps
    assert brief(look) == ("look", "c1", {"city": "東京"}, "晴れ", "ok", "flag")
    assert brief(peek) == ("peek", "c2", {}, "KeyError: 窓", "error", "flag")
    assert [(s.turn, s.ordinal, s.caller, s.execution_id, s.duration_s) for s in run.steps] == [
        (0, 0, "agent", f"{3:016x}", 1.0),
        (0, 1, "agent", f"{4:016x}", 1.0),
    ]
    start = START // 1000
    assert (run.started_at, run.ended_at, run.zone_in_log) == (micros(start), micros(start + 9_000_000), True)
    assert {key: run.metadata[key] for key in ("trace_name", "session_id", "team")} == {
        "trace_name": "clerk",
        "session_id": "s1",
        "team": "a",
    }
    assert [tool.name for tool in run.tools] == ["look"]
    if version is version_3:
        assert run.outcome == Outcome(value=1.0, provenance="log:correctness (HUMAN)")
    else:
        assert run.outcome is None


@pytest.mark.parametrize("version", [version_2, version_3])
def test_spans_alone(write, version):
    """The artifact ``traces.json``, and spans in a list: the id of the trace stands in the spans."""
    listed = version()["data"]["spans"]
    for text in (json.dumps({"spans": listed, "request": "{}"}), json.dumps(listed)):
        run = read_one(write("traces.json", text), "mlflow")
        assert (run.native_id, run.records, len(run.steps)) == (f"tr-{TRACE}", 5, 2)


def test_spans_in_a_container_of_opentelemetry(write):
    listed = []
    for number, parent, name, kind, at, seconds, values, code, _ in spans():
        said = [{"key": k, "value": {"stringValue": v}} for k, v in encoded(kind, values).items()]
        listed.append(
            {
                "traceId": TRACE,
                "spanId": f"{number:016x}",
                "parentSpanId": "" if parent is None else f"{parent:016x}",
                "name": name,
                "startTimeUnixNano": str(START + int(at * 1e9)),
                "endTimeUnixNano": str(START + int((at + seconds) * 1e9)),
                "attributes": said,
                "status": {"code": 2 if code == "ERROR" else 1},
            }
        )
    body = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": listed}]}]}
    run = read_one(write("a.json", json.dumps(body)), "mlflow")
    assert (run.native_id, run.records, run.model) == (f"tr-{TRACE}", 5, "m-1")
    assert [(step.tool, step.status) for step in run.steps] == [("look", "ok"), ("peek", "error")]


@pytest.mark.parametrize("version", [version_2, version_3])
def test_import_adds_up(workspace, write, version):
    result = import_logs(workspace, write("a.jsonl", HOLDERS["lines"](version())))
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (10, 10, 0, 2, 4)


def test_damage(write):
    good = json.dumps(version_3())
    runs, rejects = read(write("a.jsonl", f'{good}\n{good[:400]}\n{{"info": {{}}}}\n'), "mlflow")
    assert (len(runs), [reject.place for reject in rejects]) == (1, ["line 2", "line 3"])
    odd = version_3()
    odd["data"]["spans"][2] = {"name": "no ids"}
    runs, rejects = read(write("b.json", json.dumps(odd)), "mlflow")
    assert [(reject.place, reject.reason) for reject in rejects] == [("offset 0 .spans[2]", "not a span")]
    # The call itself is known from the model's answer.
    assert [(step.tool, step.status) for step in runs[0].steps] == [("look", "no_result"), ("peek", "error")]


# What single spans mean ----------------------------------------------------------------------------------


def alone(write, kind, values, code="UNSET"):
    trace = version_3()
    span = {**trace["data"]["spans"][2], "attributes": encoded(kind, values), "status": {"code": f"STATUS_CODE_{code}"}}
    return read_one(write("a.json", json.dumps({"info": trace["info"], "data": {"spans": [span]}})), "mlflow")


@pytest.mark.parametrize(
    ("values", "code", "expected"),
    [
        ({}, "UNSET", ("look", None, None, None, "no_result", "none")),
        ({"mlflow.spanOutputs": None}, "OK", ("look", None, None, None, "ok", "flag")),
        ({"mlflow.spanOutputs": ""}, "OK", ("look", None, None, "", "ok", "flag")),
        ({"mlflow.spanOutputs": {"n": 1}}, "OK", ("look", None, None, '{"n": 1}', "ok", "flag")),
        ({"mlflow.spanOutputs": 12}, "OK", ("look", None, None, "12", "ok", "flag")),
        (
            {"mlflow.spanInputs": {"n": 2**70}, "mlflow.spanOutputs": "x"},
            "OK",
            ("look", None, {"n": 2**70}, "x", "ok", "flag"),
        ),
        (
            {"mlflow.spanOutputs": {"type": "tool", "content": "no", "tool_call_id": "c9", "status": "error"}},
            "OK",
            ("look", "c9", None, "no", "error", "flag"),
        ),
    ],
)
def test_tools(write, values, code, expected):
    (step,) = alone(write, "TOOL", values, code).steps
    assert brief(step) == expected


@pytest.mark.parametrize("kind", ["CHAIN", "RETRIEVER", "PARSER", "UNKNOWN", "MY_OWN"])
def test_other_kinds_are_no_steps(write, kind):
    run = alone(write, kind, {"mlflow.spanInputs": {"a": 1}, "mlflow.spanOutputs": "x"})
    assert (run.steps, run.metadata["other_spans"]) == ([], {"look": 1})


def test_names_of_other_conventions_count_where_mlflow_says_nothing(write):
    said = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4}
    run = alone(write, "CHAT_MODEL", {"mlflow.llm.model": "m-2"})
    assert (run.model, run.usage) == ("m-2", None)
    trace = version_3()
    trace["data"]["spans"][1]["attributes"] = {**encoded("CHAT_MODEL", {}), **said}
    trace["data"]["spans"] = trace["data"]["spans"][1:2]
    run = read_one(write("b.json", json.dumps(trace)), "mlflow")
    assert run.usage == Usage(input_tokens=3, output_tokens=4)


def test_tokens_and_cost_of_the_trace_where_no_call_tells_them(write):
    trace = version_3()
    trace["data"]["spans"] = trace["data"]["spans"][2:3]
    trace["info"]["trace_metadata"] |= {
        "mlflow.trace.tokenUsage": '{"input_tokens": 30, "output_tokens": 9, "total_tokens": 39}',
        "mlflow.trace.cost": '{"total_cost": 0.75}',
    }
    run = read_one(write("a.json", json.dumps(trace)), "mlflow")
    assert (run.usage, run.cost_usd) == (Usage(input_tokens=30, output_tokens=9), 0.75)


@pytest.mark.parametrize(
    ("assessments", "value"),
    [
        ([{"assessment_name": "success", "feedback": {"value": 0}}], 0.0),
        ([{"assessment_name": "success", "feedback": {"value": "yes"}}], 1.0),
        ([{"assessment_name": "success", "feedback": {"error": {"error_code": "x"}}}], None),
        ([{"assessment_name": "groundedness", "feedback": {"value": True}}], None),
        ([{"assessment_name": "success", "expectation": {"value": True}}], None),
        ([], None),
    ],
)
def test_outcome(write, assessments, value):
    trace = version_3()
    trace["info"]["assessments"] = assessments
    run = read_one(write("a.json", json.dumps(trace)), "mlflow")
    assert (None if run.outcome is None else run.outcome.value) == value
