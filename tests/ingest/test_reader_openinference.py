"""OpenInference: real files against a plain look at them, every container of Phoenix, what attributes mean."""

import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trace_tools import brief, micros, read, read_one, same_json

from poc.ingest import import_logs
from poc.trajectory import Outcome, Usage

# Real files ----------------------------------------------------------------------------------------------

REAL = {
    # file: model, who made each call in order of time
    "strands_openai_agents_openinference_live_spans.json": (
        "gpt-4o-mini-2024-07-18",
        ["agent", "subagent", "subagent", "subagent"],
    ),
    "strands_smolagents_live_spans.json": (
        "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0",
        ["agent", "agent"],
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(shared_log, name):
    path = shared_log(f"openinference/{name}")
    model, callers = REAL[name]
    spans = json.loads(path.read_text())
    kinds = {span["span_id"]: span["attributes"].get("openinference.span.kind") for span in spans}
    tools = sorted((s for s in spans if kinds[s["span_id"]] == "TOOL"), key=lambda s: s["start_time"])
    calls = [s["attributes"] for s in spans if kinds[s["span_id"]] == "LLM"]
    run = read_one(path, "openinference")
    assert {run.native_id} == {span["trace_id"] for span in spans}
    assert (run.records, run.model, run.outcome, run.zone_in_log) == (len(spans), model, None, True)
    assert run.started_at == micros(min(s["start_time"] for s in spans) // 1000)
    assert run.ended_at == micros(max(s["end_time"] for s in spans) // 1000)
    assert run.usage.input_tokens == sum(said["llm.token_count.prompt"] for said in calls)
    assert run.usage.output_tokens == sum(said["llm.token_count.completion"] for said in calls)
    for part, key in {
        "cached_tokens": "llm.token_count.prompt_details.cache_read",
        "reasoning_tokens": "llm.token_count.completion_details.reasoning",
    }.items():
        told = [said.get(key) for said in calls]
        assert getattr(run.usage, part) == (None if None in told else sum(told))
    assert [step.execution_id for step in run.steps] == [tool["span_id"] for tool in tools]
    assert [step.caller for step in run.steps] == callers
    for step, tool in zip(run.steps, tools, strict=True):
        said = tool["attributes"]
        given = json.loads(said["input.value"])
        if "kwargs" in given:  # smolagents: a Python call, by name or by position
            names = list(json.loads(said["tool.parameters"]))
            given = {**dict(zip(names, given["args"], strict=False)), **given["kwargs"]}
        assert same_json(step.arguments_json, given)
        assert (step.tool, step.result) == (said["tool.name"], said["output.value"])
        assert (step.status, step.status_evidence) == ("ok", "flag")
        assert step.started_at == micros(tool["start_time"] // 1000)
        assert step.duration_s == pytest.approx((tool["end_time"] - tool["start_time"]) / 1e9, abs=2e-6)


def test_call_ids_of_a_real_file_come_from_the_answers(shared_log):
    path = shared_log("openinference/strands_openai_agents_openinference_live_spans.json")
    asked = {}
    for span in json.loads(path.read_text()):
        for key, value in span["attributes"].items():
            if key.startswith("llm.output_messages") and key.endswith("tool_call.id"):
                called = key.removesuffix("id") + "function."
                said = span["attributes"]
                asked[value] = (said[called + "name"], json.loads(said[called + "arguments"]))
    run = read_one(path, "openinference")
    assert {step.call_id: (step.tool, json.loads(step.arguments_json)) for step in run.steps} == asked
    assert [(step.turn, step.ordinal) for step in run.steps] == [(0, 0), (1, 0), (1, 1), (2, 0)]


# One trace in the containers of Phoenix -----------------------------------------------------------------

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = dt.datetime(2026, 2, 3, 4, 5, 6, 7, tzinfo=dt.UTC)


def trace():
    """An agent, a model call with two calls, two tools of which one fails, and the answer."""
    asked = "東京の天気は?"
    call = "llm.output_messages.0.message.tool_calls"
    first = {
        "llm.model_name": "m-1",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": asked,
        "llm.output_messages.0.message.role": "assistant",
        f"{call}.0.tool_call.id": "c1",
        f"{call}.0.tool_call.function.name": "look",
        f"{call}.0.tool_call.function.arguments": '{"city": "東京"}',
        f"{call}.1.tool_call.id": "c2",
        f"{call}.1.tool_call.function.name": "peek",
        f"{call}.1.tool_call.function.arguments": "{}",
        "llm.token_count.prompt": 100,
        "llm.token_count.completion": 20,
        "llm.token_count.total": 120,
        "llm.token_count.prompt_details.cache_read": 60,
        "llm.token_count.completion_details.reasoning": 5,
    }
    last = {
        **{key: value for key, value in first.items() if "tool_call" not in key},
        "llm.output_messages.0.message.content": "晴れ",
    }
    json_type = {"input.mime_type": "application/json"}
    look = {"tool.name": "look", "input.value": '{"city": "東京"}', "output.value": "晴れ", **json_type}
    peek = {"tool.name": "peek", "input.value": "{}", "tool_call.id": "c2", **json_type}
    wrong = {"exception.type": "KeyError", "exception.message": "窓", "exception.escaped": False}
    at = START + dt.timedelta(seconds=3)
    events = [{"name": "exception", "timestamp": at.isoformat(), "attributes": wrong}]
    return [
        row(1, None, "clerk", "AGENT", 0, 9, {"agent.name": "clerk", "session.id": "s1", "user.id": "u1"}),
        row(2, 1, "ChatCompletion", "LLM", 0.5, 1, first),
        row(3, 1, "look", "TOOL", 2, 1, look, "OK"),
        row(4, 1, "peek", "TOOL", 2.5, 1, peek, "ERROR", events, "KeyError: 窓"),
        row(5, 1, "ChatCompletion", "LLM", 5, 1, last),
    ]


def row(number, parent, name, kind, at, seconds, said, code="UNSET", events=(), message=""):
    begin = START + dt.timedelta(seconds=at)
    return {
        "id": f"U3Bhbjo{number}",
        "name": name,
        "context": {"trace_id": TRACE, "span_id": f"{number:016x}"},
        "span_kind": kind,
        "parent_id": None if parent is None else f"{parent:016x}",
        "start_time": begin.isoformat(),
        "end_time": (begin + dt.timedelta(seconds=seconds)).isoformat(),
        "status_code": code,
        "status_message": message,
        "attributes": {"openinference.span.kind": kind, **said},
        "events": list(events),
    }


def nested(said):
    """Flat attributes as objects and lists in one another, as frames hold them (list items keep dotted names)."""
    out = {}
    for key, value in said.items():
        for holder in ("llm.input_messages", "llm.output_messages"):
            if key.startswith(holder):
                message = out.setdefault(holder, [{}])[0]
                rest = key.removeprefix(f"{holder}.0.")
                if "tool_calls" in rest:
                    number, inner = rest.removeprefix("message.tool_calls.").split(".", 1)
                    calls = message.setdefault("message.tool_calls", [])
                    calls.extend({} for _ in range(int(number) + 1 - len(calls)))
                    calls[int(number)][inner] = value
                else:
                    message[rest] = value
                break
        else:
            out[key] = value
    return out


def frame_rows():
    """Rows of Phoenix's data frame."""
    for span in trace():
        said = nested(span["attributes"])
        kept = ("name", "span_kind", "parent_id", "start_time", "end_time", "status_code", "status_message", "events")
        values = {key: span[key] for key in kept}
        values |= {f"context.{key}": value for key, value in span["context"].items()}
        yield values | {f"attributes.{key}": value for key, value in said.items() if key != "openinference.span.kind"}


def as_rest():
    return json.dumps({"data": trace(), "next_cursor": None})


def as_lines():
    return "".join(json.dumps(span, ensure_ascii=False) + "\n" for span in trace())


def as_nested():
    """Attributes in one another all the way down."""
    spans = trace()
    for span in spans:
        root = {}
        for key, value in span["attributes"].items():
            at = root
            *path, last = key.split(".")
            for part in path:
                at = at.setdefault(part, {})
            at[last] = value
        span["attributes"] = root
    return json.dumps(spans)


def as_frame_lines():
    return "".join(json.dumps(values) + "\n" for values in frame_rows())


def as_frame_list():
    """``to_json(orient="records")``: times are milliseconds."""
    rows = list(frame_rows())
    for values in rows:
        for key in ("start_time", "end_time"):
            values[key] = int(dt.datetime.fromisoformat(values[key]).timestamp() * 1000)
    return json.dumps(rows)


def as_otlp():
    """Phoenix's OTLP answer: snake_case inside ``data``."""
    spans = []
    for span in trace():
        said = [
            {"key": key, "value": {"int_value": value} if isinstance(value, int) else {"string_value": value}}
            for key, value in span["attributes"].items()
        ]
        events = [
            {
                "name": event["name"],
                "time_unix_nano": 1,
                "attributes": [{"key": k, "value": {"string_value": str(v)}} for k, v in event["attributes"].items()],
            }
            for event in span["events"]
        ]
        times = {key: ns(dt.datetime.fromisoformat(span[key])) for key in ("start_time", "end_time")}
        spans.append(
            {
                "trace_id": TRACE,
                "span_id": span["context"]["span_id"],
                "parent_span_id": span["parent_id"],
                "name": span["name"],
                "start_time_unix_nano": times["start_time"],
                "end_time_unix_nano": times["end_time"],
                "attributes": said,
                "events": events,
                "status": {"code": {"UNSET": 0, "OK": 1, "ERROR": 2}[span["status_code"]]},
            }
        )
    return json.dumps({"data": spans, "next_cursor": "abc"})


def ns(time):
    return round((time - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(microseconds=1)) * 1000


CONTAINERS = {make.__name__: make for make in (as_rest, as_lines, as_nested, as_frame_lines, as_frame_list, as_otlp)}


def parquet(write_to, *, text_cells):
    """A frame as Parquet; `text_cells`: lists as JSON texts, as some exports have them."""
    columns = {}
    rows = list(frame_rows())
    for name in dict.fromkeys(key for values in rows for key in values):
        cells = [values.get(name) for values in rows]
        if name in ("start_time", "end_time"):
            cells = [dt.datetime.fromisoformat(cell) for cell in cells]
        if name == "events":
            cells = [json.dumps(cell) for cell in cells] if text_cells else cells
        elif text_cells:
            cells = [json.dumps(cell) if isinstance(cell, list) else cell for cell in cells]
        columns[name] = cells
    pq.write_table(pa.table(columns), write_to)
    return write_to


def check(run, *, rounded=False):
    assert (run.native_id, run.native_id_is_global, run.records, run.model) == (TRACE, True, 5, "m-1")
    assert run.usage == Usage(input_tokens=200, output_tokens=40, cached_tokens=120, reasoning_tokens=10)
    assert [(m.role, m.content) for m in run.messages] == [
        ("user", "東京の天気は?"),
        ("assistant", None),
        ("assistant", "晴れ"),
    ]
    look, peek = run.steps
    assert brief(look) == ("look", "c1", {"city": "東京"}, "晴れ", "ok", "flag")
    assert brief(peek) == ("peek", "c2", {}, "KeyError: 窓", "error", "flag")
    assert [(s.turn, s.ordinal, s.caller, s.duration_s) for s in run.steps] == [
        (0, 0, "agent", 1.0),
        (0, 1, "agent", 1.0),
    ]
    start = START.replace(microsecond=0) if rounded else START
    assert (run.started_at, run.ended_at) == (start, start + dt.timedelta(seconds=9))
    assert look.started_at == start + dt.timedelta(seconds=2)
    assert (run.zone_in_log, run.task_text, run.metadata["session_id"]) == (True, "東京の天気は?", "s1")


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers(write, container):
    check(read_one(write("a.json", CONTAINERS[container]()), "openinference"), rounded=container == "as_frame_list")


@pytest.mark.parametrize("text_cells", [True, False])
def test_parquet(tmp_path, text_cells):
    check(read_one(parquet(tmp_path / "spans.parquet", text_cells=text_cells), "openinference"))


def test_parquet_that_is_larger_than_the_sample(tmp_path):
    """The columns stand at the end of the file; the sniffer sees them even so."""
    rows = [{**values, "attributes.noise": "x" * 70_000 + str(n)} for n, values in enumerate([*frame_rows()] * 20)]
    names = dict.fromkeys(key for values in rows for key in values)
    for number, values in enumerate(rows):
        values["context.trace_id"] = f"{number // 5:032x}"
    table = pa.table({name: [values.get(name) for values in rows] for name in names})
    pq.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=False)
    runs, rejects = read(tmp_path / "a.parquet", "openinference")
    assert (len(runs), len(rejects)) == (20, 0)
    assert {len(run.steps) for run in runs} == {2}


def test_a_parquet_row_without_ids_is_a_reject(workspace, tmp_path):
    rows = list(frame_rows())
    rows[2]["context.span_id"] = None
    names = dict.fromkeys(key for values in rows for key in values)
    pq.write_table(pa.table({name: [values.get(name) for values in rows] for name in names}), tmp_path / "a.parquet")
    runs, rejects = read(tmp_path / "a.parquet", "openinference")
    assert [(reject.place, reject.records) for reject in rejects] == [("row 3", 1)]
    assert (len(runs), runs[0].records) == (1, 4)
    result = import_logs(workspace, tmp_path / "a.parquet")
    assert (result.read, result.imported, result.rejected) == (5, 4, 1)


@pytest.mark.parametrize("container", CONTAINERS)
def test_import_adds_up(workspace, write, container):
    result = import_logs(workspace, write("a.json", CONTAINERS[container]()))
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (5, 5, 0, 1, 2)


# What attributes mean ------------------------------------------------------------------------------------


def one(write, said, **more):
    spans = [row(1, None, "SomeTool", said.pop("kind", "TOOL"), 0, 1, said, **more)]
    return read_one(write("a.json", json.dumps(spans)), "openinference")


@pytest.mark.parametrize("kind", ["TOOL", "tool", "Tool"])
def test_kinds_in_any_case(write, kind):
    (step,) = one(write, {"kind": kind, "tool.name": "look"}).steps
    assert brief(step) == ("look", None, None, None, "no_result", "none")


@pytest.mark.parametrize(
    ("said", "tool", "given"),
    [
        ({"input.value": '{"a": 1}'}, "SomeTool", {"a": 1}),  # the span's name is the last resort
        ({"tool.name": "look", "tool.parameters": '{"a": 1}'}, "look", {"a": 1}),
        # A schema is no argument.
        ({"tool.name": "look", "tool.parameters": '{"a": {"type": "string"}}'}, "look", None),
        ({"tool.name": "look", "tool.parameters": '{"type": "object", "properties": {}}'}, "look", None),
        ({"tool.name": "look", "input.value": "{'a': 1}"}, "look", {"a": 1}),
        ({"tool.name": "look", "input.value": '{"args": [], "kwargs": {"a": 1}}'}, "look", {"a": 1}),
        (
            {
                "tool.name": "look",
                "input.value": '{"args": [2], "kwargs": {"b": 1}}',
                "tool.parameters": '{"a": {"type": "x"}, "b": {"type": "x"}}',
            },
            "look",
            {"a": 2, "b": 1},
        ),
        ({"tool.name": "look", "input.value": '{"args": [2], "kwargs": {}}'}, "look", {"args": [2]}),
    ],
)
def test_arguments(write, said, tool, given):
    (step,) = one(write, said).steps
    assert step.tool == tool
    assert (step.arguments_json is None) if given is None else same_json(step.arguments_json, given)


def test_arguments_that_are_no_json_stay_as_they_are(write):
    (step,) = one(write, {"input.value": "weather in 東京"}).steps
    assert (step.arguments_raw, step.arguments_json, step.arguments_status) == ("weather in 東京", None, "unparsed")


def test_a_schema_among_the_parameters_describes_the_tool(write):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    run = one(write, {"tool.name": "look", "tool.description": "looks", "tool.parameters": json.dumps(schema)})
    assert [(t.name, t.description, t.parameters) for t in run.tools] == [("look", "looks", schema)]


@pytest.mark.parametrize(
    ("result", "text", "status", "evidence"),
    [
        ('{"content": "done", "type": "tool", "tool_call_id": "c7", "status": "error"}', "done", "error", "flag"),
        ('{"output": "fine"}', "fine", "ok", "result"),
        ('{"error": "no such file"}', '{"error": "no such file"}', "error", "error_field"),
    ],
)
def test_results(write, result, text, status, evidence):
    (step,) = one(write, {"tool.name": "look", "output.value": result}).steps
    assert (step.result, step.status, step.status_evidence) == (text, status, evidence)
    assert step.call_id == ("c7" if "c7" in result else None)


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        # Anthropic's input as it came, without what the cache gave: the figures say so.
        (
            {
                "llm.token_count.prompt": 10,
                "llm.token_count.completion": 5,
                "llm.token_count.prompt_details.cache_read": 90,
                "llm.token_count.prompt_details.cache_write": 20,
            },
            Usage(input_tokens=120, output_tokens=5, cached_tokens=90),
        ),
        ({"llm.token_count.total": 7}, None),
        ({"llm.token_count.prompt": 0, "llm.token_count.completion": 0}, None),
    ],
)
def test_tokens(write, said, usage):
    assert one(write, {"kind": "LLM", **said}).usage == usage


def test_cost(write):
    assert one(write, {"kind": "LLM", "llm.cost.total": 0.25, "llm.model_name": "m"}).cost_usd == 0.25


def test_retrievers_and_chains_are_no_steps(write):
    run = one(write, {"kind": "RETRIEVER", "input.value": "x", "output.value": "y"})
    assert (run.steps, run.metadata["other_spans"]) == ([], {"SomeTool": 1})


@pytest.mark.parametrize("holder", ["evaluation", "annotation"])
@pytest.mark.parametrize("prefix", ["", "trace."])
def test_outcome_by_an_evaluation_on_a_span(write, holder, prefix):
    key = f"{prefix}{holder}s"
    said = {
        "kind": "AGENT",
        f"{key}.0.{holder}.name": "tone",
        f"{key}.0.{holder}.score": 0.25,
        f"{key}.1.{holder}.name": "correctness",
        f"{key}.1.{holder}.label": "incorrect",
        f"{key}.1.{holder}.annotator_kind": "HUMAN",
    }
    run = one(write, said)
    assert run.outcome == Outcome(value=0.0, provenance="log:correctness (HUMAN)")
    assert [score["name"] for score in run.metadata["scores"]] == ["tone", "correctness"]


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ({"llm.request.model_name": "a", "llm.response.model_name": "b"}, "b"),
        ({"llm.model_name": "c"}, "c"),
        ({"llm.request.model_name": "a"}, "a"),
    ],
)
def test_model(write, said, model):
    assert one(write, {"kind": "LLM", **said}).model == model


@pytest.mark.parametrize("number", ["²", "9" * 5000, "x", "", "-1"])
def test_odd_numbers_in_names(write, number):
    said = {"kind": "LLM", f"llm.input_messages.{number}.message.role": "user", "llm.model_name": "m"}
    assert one(write, said).model == "m"


def test_more_than_ten_messages_keep_their_order(write):
    said = {f"llm.input_messages.{n}.message.content": f"text {n}" for n in range(12)}
    run = one(write, {"kind": "LLM", **dict(reversed(said.items()))})
    assert [message.content for message in run.messages] == [f"text {n}" for n in range(12)]
