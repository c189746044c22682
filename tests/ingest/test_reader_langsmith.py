"""LangSmith: real payloads against a plain look at them, one trace in every container, runs that come in parts."""

import ast
import datetime as dt
import json
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trace_tools import brief, read, read_one, same_json

from poc.ingest import import_logs
from poc.trajectory import Usage

# Real files ----------------------------------------------------------------------------------------------

FIRST = "langsmith/langsmith_webhook_trace_2025-11-15T17-38-05.316920.json"
SECOND = "langsmith/langsmith_webhook_trace_2025-11-15T17-39-08.334291.json"


def naive(text):
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def test_a_real_webhook(shared_log):
    path = shared_log(FIRST)
    parts = json.loads(path.read_text())["runs"]
    run = read_one(path, "langsmith")
    tools = sorted((part for part in parts if part["run_type"] == "tool"), key=lambda part: part["dotted_order"])
    calls = [part for part in parts if part["run_type"] == "llm"]
    assert ({run.native_id}, run.native_id_is_global) == ({part["trace_id"] for part in parts}, True)
    assert (run.records, run.zone_in_log, run.usage, run.outcome) == (len(parts), False, None, None)
    assert run.model == calls[0]["extra"]["metadata"]["ls_model_name"]
    assert run.started_at == min(naive(part["start_time"]) for part in parts)
    assert run.ended_at == max(naive(part["end_time"]) for part in parts)
    for step, part in zip(run.steps, tools, strict=True):
        output = part["outputs"]["output"]
        assert same_json(step.arguments_json, ast.literal_eval(part["inputs"]["input"]))
        assert (step.tool, step.call_id, step.result) == (part["name"], output["tool_call_id"], output["content"])
        assert (step.started_at, step.ended_at) == (naive(part["start_time"]), naive(part["end_time"]))
        assert (step.execution_id, step.caller) == (part["id"], "agent")
    # LangSmith says "success" to both; the first result itself says that it failed.
    assert [json.loads(step.result)["success"] for step in run.steps] == [False, True]
    assert [(s.status, s.status_evidence) for s in run.steps] == [("error", "error_field"), ("ok", "flag")]


def test_the_part_of_a_real_trace_that_came_later(shared_log):
    path = shared_log(SECOND)
    parts = json.loads(path.read_text())["runs"]
    run = read_one(path, "langsmith")
    assert (run.records, run.steps) == (len(parts), [])
    assert run.native_id == json.loads(shared_log(FIRST).read_text())["runs"][0]["trace_id"]
    assert run.task_text == parts[0]["inputs"]["messages"][0][1] == "What is Machine Learning?"
    assert run.metadata["calls_before_this_trace"] == 2


def test_a_real_ingest_batch(shared_log):
    path = shared_log("langsmith/langsmith_ingest_batch_wrap_openai_reasoning.json")
    body = json.loads(path.read_text())
    answer = body["patch"][0]["outputs"]
    run = read_one(path, "langsmith")
    usage = answer["usage_metadata"] if "usage_metadata" in answer else answer["usage"]
    assert (run.records, run.native_id, run.zone_in_log) == (2, body["post"][0]["trace_id"], True)
    assert run.usage == Usage(
        input_tokens=usage.get("input_tokens", usage.get("prompt_tokens")),
        output_tokens=usage.get("output_tokens", usage.get("completion_tokens")),
        cached_tokens=0,
        reasoning_tokens=1408,
    )
    assert run.model == answer["model"]
    assert [message.content for message in run.messages] == [
        body["post"][0]["inputs"]["messages"][0]["content"],
        answer["choices"][0]["message"]["content"],
    ]
    assert run.ended_at == dt.datetime.fromisoformat(body["patch"][0]["end_time"])


# One trace in every container ---------------------------------------------------------------------------

IDS = [str(uuid.UUID(int=(0x1234_5678_9ABC << 76) | 0x4000 << 64 | 0x8000 << 48 | n)) for n in range(1, 9)]
START = dt.datetime(2026, 2, 3, 4, 5, 6, 7)


def lc(kind, content, **more):
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {"content": content, **more},
    }


def trace():
    """A graph: a model that calls two tools at once, of which one fails, and the answer."""
    calls = [
        {"name": "look", "args": {"city": "東京"}, "id": "c1", "type": "tool_call"},
        {"name": "peek", "args": {}, "id": "c2", "type": "tool_call"},
    ]
    asked = [lc("SystemMessage", "be brief"), lc("HumanMessage", "天気は?")]
    said = lc("AIMessage", "", tool_calls=calls, usage_metadata=spent(100, 20))
    results = [
        lc("ToolMessage", "晴れ", tool_call_id="c1"),
        lc("ToolMessage", "Error: no", tool_call_id="c2", status="error"),
    ]
    done = lc("AIMessage", "晴れです", usage_metadata=spent(150, 5))
    about = {"metadata": {"ls_model_name": "m-1", "thread_id": "t1"}}
    look = {"content": "晴れ", "type": "tool", "name": "look", "tool_call_id": "c1", "status": "success"}
    return [
        part(
            0, None, "LangGraph", "chain", 0, 9, {"messages": [["user", "天気は?"]]}, {"messages": [done]}, tags=["t"]
        ),
        part(1, 0, "model", "chain", 0.1, 2, {"messages": asked}, {"messages": [said]}),
        part(2, 1, "ChatModel", "llm", 0.2, 1, {"messages": [asked]}, answer(said), extra=about),
        part(3, 0, "tools", "chain", 3, 2, {"messages": asked}, {"messages": results}),
        part(4, 3, "look", "tool", 3.1, 1, {"input": "{'city': '東京'}"}, {"output": look}),
        part(5, 3, "peek", "tool", 3.2, 1, {"input": "{}"}, None, error="KeyError('窓')", status="error"),
        part(6, 0, "ChatModel", "llm", 6, 1, {"messages": [[*asked, said, *results]]}, answer(done), extra=about),
    ]


def spent(into, out):
    details = {"input_token_details": {"cache_read": 60}, "output_token_details": {"reasoning": 3}}
    return {"input_tokens": into, "output_tokens": out, "total_tokens": into + out, **details}


def answer(said):
    return {"generations": [[{"text": "", "message": said}]], "llm_output": None}


PARENTS = {4: 3, 5: 3, 3: 0, 2: 1, 1: 0, 6: 0}


def part(number, parent, name, kind, at, seconds, inputs, outputs, *, status="success", **more):
    begin = START + dt.timedelta(seconds=at)
    return {
        "id": IDS[number],
        "trace_id": IDS[0],
        "parent_run_id": None if parent is None else IDS[parent],
        "name": name,
        "run_type": kind,
        "start_time": begin.isoformat(),
        "end_time": (begin + dt.timedelta(seconds=seconds)).isoformat(),
        "status": status,
        "inputs": inputs,
        "outputs": outputs,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
        **more,
    }


def order(number):
    path = [number]
    while path[-1] in PARENTS:
        path.append(PARENTS[path[-1]])
    return ".".join(f"20260203T040506{n:06d}Z{IDS[n]}" for n in reversed(path))


def with_order(parts):
    """Parents told by ``dotted_order`` alone."""
    return [
        {k: v for k, v in p.items() if k != "parent_run_id"} | {"dotted_order": order(IDS.index(p["id"]))}
        for p in parts
    ]


def with_path(parts):
    """Parents told as the webhook does: all of them, from the root down."""

    def above(number):
        return [] if number not in PARENTS else [*above(PARENTS[number]), IDS[PARENTS[number]]]

    return [
        {k: v for k, v in p.items() if k != "parent_run_id"} | {"parent_run_ids": above(IDS.index(p["id"]))}
        for p in parts
    ]


def as_list():
    return json.dumps(trace(), indent=1)


def as_lines():
    return "".join(json.dumps(p, ensure_ascii=False) + "\n" for p in with_order(trace()))


def as_webhook():
    return json.dumps({"rule_id": "r", "start_time": "x", "end_time": "y", "runs": with_path(trace())})


def as_tree():
    """One run with those below it inside, as the client's objects are dumped."""
    parts = {p["id"]: {**p, "child_runs": []} for p in trace()}
    for p in parts.values():
        if p["parent_run_id"] is not None:
            parts[p["parent_run_id"]]["child_runs"].append(p)
    return json.dumps(parts[IDS[0]])


LATER = ("end_time", "outputs", "error", "status")


def batch():
    parts = with_order(trace())
    post = [{k: v for k, v in p.items() if k not in LATER} for p in parts]
    patch = [{k: p[k] for k in ("id", "trace_id", "dotted_order", *LATER) if k in p} for p in parts]
    return post, patch


def as_ingest():
    post, patch = batch()
    return json.dumps({"post": post, "patch": patch})


def as_ingest_lines():
    """A body a line: what a proxy or a recorder keeps."""
    post, patch = batch()
    bodies = [{"post": post[:3], "patch": []}, {"post": post[3:], "patch": patch[:4]}, {"post": [], "patch": patch[4:]}]
    return "".join(json.dumps(body) + "\n" for body in bodies)


def as_ingest_backwards():
    """Patches may overtake their posts."""
    post, patch = batch()
    return json.dumps({"patch": patch}) + "\n" + json.dumps({"post": post}) + "\n"


CONTAINERS = {
    make.__name__: make
    for make in (as_list, as_lines, as_webhook, as_tree, as_ingest, as_ingest_lines, as_ingest_backwards)
}


def parquet(path):
    """A bulk export: JSON texts in the cells."""
    rows = [
        {k: json.dumps(v) if k in ("inputs", "outputs", "extra", "tags") else v for k, v in p.items()}
        for p in with_path(with_order(trace()))
    ]
    names = dict.fromkeys(key for row in rows for key in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    for name in ("start_time", "end_time"):
        columns[name] = [dt.datetime.fromisoformat(cell) for cell in columns[name]]
    pq.write_table(pa.table(columns), path)
    return path


def check(run):
    assert (run.native_id, run.native_id_is_global, run.framework, run.model) == (IDS[0], True, "langsmith", "m-1")
    assert run.usage == Usage(input_tokens=250, output_tokens=25, cached_tokens=120, reasoning_tokens=6)
    assert [(m.role, m.content) for m in run.messages] == [
        ("system", "be brief"),
        ("user", "天気は?"),
        ("assistant", None),
        ("tool", None),
        ("tool", None),
        ("assistant", "晴れです"),
    ]
    look, peek = run.steps
    assert brief(look) == ("look", "c1", {"city": "東京"}, "晴れ", "ok", "flag")
    # The tool raised; what the model was told of it is the result.
    assert brief(peek) == ("peek", "c2", {}, "Error: no", "error", "flag")
    assert [(s.turn, s.ordinal, s.caller, s.duration_s, s.execution_id) for s in run.steps] == [
        (0, 0, "agent", 1.0, IDS[4]),
        (0, 1, "agent", 1.0, IDS[5]),
    ]
    start = START.replace(tzinfo=dt.UTC)
    assert (run.started_at, run.ended_at, run.zone_in_log) == (start, start + dt.timedelta(seconds=9), False)
    assert look.started_at == start + dt.timedelta(seconds=3.1)
    assert (run.task_text, run.metadata["thread_id"], run.metadata["tags"]) == ("天気は?", "t1", ["t"])


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers(write, container):
    run = read_one(write("a.json", CONTAINERS[container]()), "langsmith")
    check(run)
    assert run.records == (14 if "ingest" in container else 7)


def test_parquet(tmp_path):
    run = read_one(parquet(tmp_path / "runs.parquet"), "langsmith")
    check(run)
    assert run.records == 7


@pytest.mark.parametrize("container", CONTAINERS)
def test_import_adds_up(workspace, write, container):
    result = import_logs(workspace, write("a.json", CONTAINERS[container]()))
    records = 14 if "ingest" in container else 7
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (records, records, 0, 1, 2)


@pytest.mark.parametrize("container", ["as_list", "as_lines", "as_webhook", "as_ingest"])
def test_a_file_that_is_cut(write, container):
    """What is whole is kept, the loss is told."""
    text = CONTAINERS[container]()
    whole = read_one(write("a.json", text), "langsmith").records
    runs, rejects = read(write("b.json", text[: int(len(text) * 0.9)]), "langsmith")
    assert 0 < runs[0].records < whole
    assert sum(reject.records for reject in rejects) == 1


# What single runs mean -----------------------------------------------------------------------------------


def alone(write, **said):
    base = part(0, None, "look", "tool", 0, 1, {"input": "{}"}, {"output": "x"})
    return read_one(write("a.json", json.dumps([{**base, **said}])), "langsmith")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"outputs": {"output": "fine"}}, ("look", None, {}, "fine", "ok", "flag")),
        ({"outputs": {"output": "fine"}, "status": None}, ("look", None, {}, "fine", "ok", "result")),
        ({"outputs": None, "status": "pending"}, ("look", None, {}, None, "no_result", "none")),
        ({"outputs": {}, "status": None}, ("look", None, {}, None, "no_result", "none")),
        ({"outputs": {"output": {"n": 1}}}, ("look", None, {}, '{"n":1}', "ok", "flag")),
        ({"inputs": {"a": 1, "b": [2]}}, ("look", None, {"a": 1, "b": [2]}, "x", "ok", "flag")),
        ({"inputs": {"input": '{"a": 1}'}}, ("look", None, {"a": 1}, "x", "ok", "flag")),
        ({"inputs": {"input": {"a": 1}}}, ("look", None, {"a": 1}, "x", "ok", "flag")),
        # Large values live elsewhere: the call is known, its arguments and result are not.
        ({"inputs": None, "outputs": None, "inputs_s3_urls": {"ROOT": {}}}, ("look", None, None, None, "ok", "flag")),
        (
            {"outputs": {"output": lc("ToolMessage", "no", tool_call_id="c9", status="error")}},
            ("look", "c9", {}, "no", "error", "flag"),
        ),
        (
            {"error": "ValueError('x')", "status": "error", "outputs": None},
            ("look", None, {}, "ValueError('x')", "error", "flag"),
        ),
    ],
)
def test_tools(write, said, expected):
    (step,) = alone(write, **said).steps
    assert brief(step) == expected


def test_raw_text_as_input(write):
    (step,) = alone(write, inputs={"input": "weather in 東京"}).steps
    assert (step.arguments_raw, step.arguments_json, step.arguments_status) == ("weather in 東京", None, "unparsed")


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, Usage(input_tokens=10, output_tokens=2)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),  # 0 stands for "not known"
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 4,
                "prompt_token_details": {"cache_read": 8},
                "completion_token_details": {"reasoning": 3},
            },
            Usage(input_tokens=10, output_tokens=4, cached_tokens=8, reasoning_tokens=3),
        ),
        (
            {"outputs": {"llm_output": {"token_usage": {"prompt_tokens": 7, "completion_tokens": 1}}}},
            Usage(input_tokens=7, output_tokens=1),
        ),
    ],
)
def test_tokens(write, said, usage):
    assert alone(write, run_type="llm", **said).usage == usage


@pytest.mark.parametrize(("cost", "usd"), [(0.25, 0.25), ("0.0025", 0.0025), (0, None), ("x", None), (None, None)])
def test_cost(write, cost, usd):
    assert alone(write, run_type="llm", total_cost=cost).cost_usd == usd


@pytest.mark.parametrize(
    ("stats", "value"),
    [
        ({"correctness": {"n": 2, "avg": 0.5}}, 0.5),
        ({"success": {"n": 1, "avg": 1.0}, "tone": {"n": 1, "avg": 0.0}}, 1.0),
        ({"tone": {"n": 1, "avg": 0.0}}, None),
        ({"correctness": {"n": 0, "avg": None}}, None),
        (None, None),
    ],
)
def test_outcome(write, stats, value):
    run = alone(write, feedback_stats=stats)
    assert (None if run.outcome is None else run.outcome.value) == value
    if value is not None:
        assert run.outcome.provenance.endswith("(feedback)")


def test_a_subagent_inside_a_tool(write):
    parts = [
        part(0, None, "LangGraph", "chain", 0, 9, {"messages": [["user", "q"]]}, None),
        part(1, 0, "ChatModel", "llm", 1, 1, {"messages": [["user", "q"]]}, {"content": "x"}),
        part(2, 0, "ask_expert", "tool", 3, 4, {"q": "r"}, {"output": "s"}),
        part(3, 2, "LangGraph", "chain", 3.1, 3, {"messages": [["user", "r"]]}, None),
        part(4, 3, "ChatModel", "llm", 3.2, 1, {"messages": [["user", "r"]]}, {"content": "y"}),
        part(5, 3, "look", "tool", 5, 1, {"n": 1}, {"output": "t"}),
    ]
    run = read_one(write("a.json", json.dumps(parts)), "langsmith")
    assert [(step.tool, step.caller) for step in run.steps] == [("ask_expert", "agent"), ("look", "subagent")]


def test_times_with_a_zone(write):
    run = alone(write, start_time="2026-02-03T04:05:06+09:00", end_time="2026-02-03T04:05:07+09:00")
    assert (run.zone_in_log, run.started_at) == (True, dt.datetime(2026, 2, 2, 19, 5, 6, tzinfo=dt.UTC))


def test_what_is_no_run(write):
    text = json.dumps([*trace(), {"hello": 1}, 7])
    runs, rejects = read(write("a.json", text), "langsmith")
    assert (len(runs), runs[0].records) == (1, 7)
    assert [(reject.place, reject.records) for reject in rejects] == [("offset 0 [7]", 1), ("offset 0 [8]", 1)]


@pytest.mark.parametrize("as_list", [True, False])
def test_parts_that_name_their_trace_in_the_order_alone(write, as_list):
    """One that comes last and has no ``trace_id`` belongs to the same run."""
    parts = with_order(trace())
    del parts[-1]["trace_id"]
    text = json.dumps(parts) if as_list else "".join(json.dumps(part) + "\n" for part in parts)
    check(read_one(write("a.json", text), "langsmith"))
