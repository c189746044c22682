"""The same trace in every container of OpenTelemetry spans, and containers that are cut, mixed or empty."""

import json

import pytest
from span_containers import CONTAINERS, SCOPE, START, TRACE
from trace_tools import brief, micros, read, read_one, walk

from poc.ingest import import_logs
from poc.ingest.readers import READERS
from poc.ingest.sources import Source
from poc.trajectory import Run, Usage

NO_SCOPE = ("python_console", "python_lines")
"""Containers that leave the scope out."""


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ["spans.json", "x.log"])
def test_every_container_says_the_same(write, container, name):
    run = read_one(write(name, CONTAINERS[container]()), "otel_genai")
    assert (run.native_id, run.native_id_is_global, run.records, run.model) == (TRACE, True, 5, "m-1")
    assert run.usage == Usage(input_tokens=250, output_tokens=25)
    assert run.framework == (None if container in NO_SCOPE else SCOPE)
    assert [(m.role, m.content) for m in run.messages] == [
        ("user", "天気は?"),
        ("assistant", None),
        ("assistant", "晴れ"),
    ]
    look, peek = run.steps
    assert brief(look) == ("look", "c1", {"city": "東京", "n": 2}, "晴れ", "ok", "flag")
    assert brief(peek) == ("peek", "c2", {}, "KeyError: 窓", "error", "flag")
    assert [(s.turn, s.ordinal, s.caller, s.execution_id) for s in run.steps] == [
        (0, 0, "agent", f"{3:016x}"),
        (0, 1, "agent", f"{4:016x}"),
    ]
    start = START // 1000
    assert (run.started_at, run.ended_at, run.zone_in_log) == (micros(start), micros(start + 1_500_000), True)
    assert [(s.started_at, s.ended_at, s.duration_s) for s in run.steps] == [
        (micros(start + 500_000), micros(start + 750_000), 0.25),
        (micros(start + 600_000), micros(start + 850_000), 0.25),
    ]
    assert {key: run.metadata[key] for key in ("agents", "conversation_id", "service")} == {
        "agents": ["clerk"],
        "conversation_id": "k1",
        "service": "desk",
    }


@pytest.mark.parametrize("container", CONTAINERS)
def test_bom_and_crlf(write, container):
    text = CONTAINERS[container]()
    run = read_one(write("a.json", b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()), "otel_genai")
    assert len(run.steps) == 2


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_file_that_is_cut_keeps_what_is_whole(write, container):
    """Only the last span stands behind the cut: all others are read, and the loss is told."""
    text = CONTAINERS[container]()
    cut = text.rindex("invoke_agent clerk")
    runs, rejects = read(write("a.json", text[:cut]), "otel_genai")
    (run,) = runs
    assert run.records == 4
    assert [(step.tool, step.status) for step in run.steps] == [("look", "ok"), ("peek", "error")]
    assert rejects
    assert sum(reject.records for reject in rejects) == 1


def test_times_without_a_zone(write):
    text = CONTAINERS["python_console"]().replace('Z"', '"')
    run = read_one(write("a.json", text), "otel_genai")
    assert (run.zone_in_log, run.started_at) == (False, micros(START // 1000))


def test_nanoseconds_that_became_floats(write):
    batches = json.loads(CONTAINERS["tempo_batches"]())
    for span in walk(batches):
        for key in {"startTimeUnixNano", "endTimeUnixNano"} & span.keys():
            span[key] = float(span[key])
    run = read_one(write("a.json", json.dumps(batches)), "otel_genai")
    assert abs((run.started_at - micros(START // 1000)).total_seconds()) <= 1e-6
    assert run.duration_s == pytest.approx(1.5, abs=2e-6)


def test_traces_that_lie_in_one_another(write):
    """Lines of three traces in turn; each run has its own."""
    lines = CONTAINERS["otlp_lines"]().splitlines()
    others = [TRACE[:-1] + sign for sign in "0123"]
    mixed = [line.replace(TRACE, other) for line in lines for other in others]
    runs, rejects = read(write("a.jsonl", "\n".join(mixed)), "otel_genai")
    assert rejects == []
    assert {run.native_id for run in runs} == set(others)
    assert all((run.records, len(run.steps), run.usage.total) == (5, 2, 275) for run in runs)


def test_a_broken_line_costs_that_line(write):
    lines = CONTAINERS["otlp_lines"]().splitlines()
    lines[1] = lines[1][:200]
    runs, rejects = read(write("a.jsonl", "\n".join(lines)), "otel_genai")
    assert [(reject.place.split(" .")[0], reject.records) for reject in rejects] == [("line 2", 1)]
    (run,) = runs
    assert run.records == 4
    # The call is known from the model's answer still.
    assert [(step.tool, step.status) for step in run.steps] == [("look", "no_result"), ("peek", "error")]


def test_requests_with_metrics_or_nothing_among_them(write):
    lines = [*CONTAINERS["otlp_lines"]().splitlines(), '{"resourceSpans": []}', "{}", '{"resourceMetrics": []}', "7"]
    runs, rejects = read(write("a.jsonl", "\n".join(lines)), "otel_genai")
    assert len(runs) == 1
    assert [(reject.place, reject.records) for reject in rejects] == [("line 8", 1), ("line 9", 1)]


def test_ids_of_zeros_name_no_parent(write):
    spans = json.loads(CONTAINERS["flat"]())
    spans[-1]["parent_span_id"] = "0" * 16
    assert len(read_one(write("a.json", json.dumps(spans)), "otel_genai").steps) == 2


def test_the_same_span_twice_counts_once(write):
    spans = json.loads(CONTAINERS["flat"]())
    running = {**spans[1], "end_time": None, "status": {"code": "UNSET"}, "attributes": {**spans[1]["attributes"]}}
    del running["attributes"]["gen_ai.tool.call.result"]
    run = read_one(write("a.json", json.dumps([running, *spans])), "otel_genai")
    assert run.records == 6
    assert [(step.tool, step.status, step.result) for step in run.steps] == [
        ("look", "ok", "晴れ"),
        ("peek", "error", "KeyError: 窓"),
    ]


def test_values_of_all_kinds(write):
    value = {
        "kvlistValue": {
            "values": [
                {"key": "city", "value": {"stringValue": "東京"}},
                {"key": "days", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"intValue": "2"}]}}},
                {"key": "deep", "value": {"kvlistValue": {"values": [{"key": "yes", "value": {"boolValue": True}}]}}},
                {"key": "none", "value": {"arrayValue": {}}},
            ]
        }
    }
    request = json.loads(CONTAINERS["otlp_json"]())
    span = request["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    for pair in span["attributes"]:
        if pair["key"] == "gen_ai.tool.call.arguments":
            pair["value"] = value
        if pair["key"] == "gen_ai.tool.call.id":
            pair["value"] = {"stringValue": "c9"}  # another call than the one the model's answer holds
    run = read_one(write("a.json", json.dumps(request)), "otel_genai")
    (step,) = [step for step in run.steps if step.call_id == "c9"]
    assert json.loads(step.arguments_json) == {"city": "東京", "days": [1, 2], "deep": {"yes": True}, "none": []}


@pytest.mark.parametrize("container", CONTAINERS)
def test_import_adds_up(workspace, write, container):
    result = import_logs(workspace, write("a.json", CONTAINERS[container]()))
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (5, 5, 0, 1, 2)


@pytest.mark.parametrize("container", ["otlp_lines", "flat"])
def test_a_trace_is_given_out_as_soon_as_it_ends(write, container):
    """Its run comes before what stands behind it is looked at, so that little is held at a time."""
    if container == "flat":
        spans = json.loads(CONTAINERS["flat"]())
        text = json.dumps([*spans, "no span", *(json.loads(json.dumps(spans).replace(TRACE, TRACE[::-1])))])
    else:
        lines = CONTAINERS["otlp_lines"]()
        text = f"{lines}7\n{lines.replace(TRACE, TRACE[::-1])}"
    items = list(READERS["otel_genai"].read(Source(write("a.json", text))))
    assert [type(item).__name__ for item in items] == ["Run", "Reject", "Run"]
    assert [item.native_id for item in items if isinstance(item, Run)] == [TRACE, TRACE[::-1]]
