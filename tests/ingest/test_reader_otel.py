"""OpenTelemetry GenAI: real files against what a plain look at their JSON says, and how each span is understood."""

import json

import pytest
from trace_tools import brief, micros, read, read_one, same_json, walk

from poc.trajectory import Outcome, Usage

# Real files ----------------------------------------------------------------------------------------------


def plain_spans(path):
    """Spans in any of the seen containers, as (id, parent, name, start us, end us, attributes, status)."""
    spans = []
    for value in walk(json.loads(path.read_text())):
        if "spanID" in value and "operationName" in value:  # Jaeger
            tags = {tag["key"]: tag["value"] for tag in value["tags"]}
            parent = next((ref["spanID"] for ref in value["references"]), None)
            start, end = value["startTime"], value["startTime"] + value["duration"]
            code = {"ERROR": 2, "OK": 1}.get(tags.get("otel.status_code"), 0)
            spans.append((value["spanID"], parent, value["operationName"], start, end, tags, code))
        elif "spanId" in value and "startTimeUnixNano" in value:  # OTLP, Tempo
            flat = {pair["key"]: next(iter(pair["value"].values())) for pair in value.get("attributes", [])}
            times = int(value["startTimeUnixNano"]) // 1000, int(value["endTimeUnixNano"]) // 1000
            code = value.get("status", {}).get("code", 0)
            spans.append((value["spanId"], value.get("parentSpanId"), value["name"], *times, flat, code))
        elif "span_id" in value and "attributes" in value:  # flat
            times = value["start_time"] // 1000, value["end_time"] // 1000
            code = {"ERROR": 2, "OK": 1, "UNSET": 0}[value["status"]["code"]]
            spans.append((value["span_id"], value["parent_span_id"], value["name"], *times, value["attributes"], code))
    return spans


REAL = {
    # file: how the spans of model calls are named, the model, who made each call
    "jaeger_kagent_helm_3.json": ("openai.chat", "gpt-5-mini-2025-08-07", ["agent"]),
    "tempo_export_with_batches.json": ("openai.chat", "gpt-4.1-mini-2025-04-14", ["agent"]),
    "strands_openai_agents_genai_live_spans.json": (
        "openai.response",
        "gpt-4o-mini-2024-07-18",
        ["agent", "subagent", "agent", "subagent", "subagent"],
    ),
    "strands_otel_genai_convention_spans.json": ("chat ", "gpt-4o", ["agent", "agent"]),
    "strands_pydantic_ai_live_spans.json": ("chat ", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", ["agent"]),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files(shared_log, name):
    path = shared_log(f"otel_genai/{name}")
    model_calls, model, callers = REAL[name]
    spans = plain_spans(path)
    tools = sorted((s for s in spans if s[5].get("gen_ai.operation.name") == "execute_tool"), key=lambda s: s[3])
    calls = [s for s in spans if s[2].startswith(model_calls)]
    run = read_one(path, "otel_genai")
    traces = {
        v for o in walk(json.loads(path.read_text())) for k, v in o.items() if k in ("traceId", "traceID", "trace_id")
    }
    assert {run.native_id} == traces
    assert run.native_id_is_global
    assert (run.records, run.model, run.outcome, run.zone_in_log) == (len(spans), model, None, True)
    assert (run.started_at, run.ended_at) == (micros(min(s[3] for s in spans)), micros(max(s[4] for s in spans)))

    assert [step.execution_id for step in run.steps] == [tool[0] for tool in tools]
    assert [step.caller for step in run.steps] == callers
    for step, (_, _, _, start, end, said, code) in zip(run.steps, tools, strict=True):
        assert step.tool == said["gen_ai.tool.name"]
        given = said.get("gen_ai.tool.call.arguments", said.get("gcp.vertex.agent.tool_call_args"))
        assert same_json(step.arguments_json, json.loads(given))
        result = said.get("gen_ai.tool.call.result", said.get("gcp.vertex.agent.tool_response"))
        if result is not None:
            assert step.result == result
        assert step.call_id is not None
        assert step.call_id == said.get("gen_ai.tool.call.id", step.call_id)
        assert (step.started_at, step.ended_at) == (micros(start), micros(end))
        assert step.duration_s == pytest.approx((end - start) / 1e6, abs=2e-6)
        if code:
            assert (step.status, step.status_evidence) == ("error" if code == 2 else "ok", "flag")
    for part, keys in {
        "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        "cached_tokens": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        "reasoning_tokens": ("gen_ai.usage.reasoning_tokens", "llm.usage.reasoning_tokens"),
    }.items():
        counted = [next((int(s[5][key]) for key in keys if key in s[5]), None) for s in calls]
        assert getattr(run.usage, part) == (None if None in counted else sum(counted)), part


def test_calls_without_an_id_on_the_span_get_it_from_the_answer(shared_log):
    path = shared_log("otel_genai/strands_openai_agents_genai_live_spans.json")
    asked = {}
    for _, _, _, _, _, said, _ in plain_spans(path):
        for message in json.loads(said.get("gen_ai.output.messages", "[]")):
            for part in message["parts"]:
                if part["type"] == "tool_call":
                    arguments = part["arguments"]
                    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
                    asked[part["name"], json.dumps(arguments, sort_keys=True)] = part["id"]
    run = read_one(path, "otel_genai")
    assert len(asked) == len(run.steps) == 5
    for step in run.steps:
        assert step.call_id == asked[step.tool, json.dumps(json.loads(step.arguments_json), sort_keys=True)]
    assert [step.turn for step in run.steps] == [0, 1, 2, 3, 4]


def test_status_of_real_steps(shared_log):
    run = read_one(shared_log("otel_genai/strands_otel_genai_convention_spans.json"), "otel_genai")
    paris, london = run.steps
    assert (paris.turn, paris.ordinal, london.turn, london.ordinal) == (0, 0, 0, 1)
    assert (london.status, london.status_evidence, london.result) == ("error", "flag", "Error: TimeoutError")
    assert run.task_text == "What's the weather in Paris and London?"
    # Status "unset": that a result came is all that is known.
    (step,) = read_one(shared_log("otel_genai/strands_pydantic_ai_live_spans.json"), "otel_genai").steps
    assert (step.status, step.status_evidence) == ("ok", "result")


def test_cost_of_real_model_calls(shared_log):
    path = shared_log("otel_genai/strands_pydantic_ai_live_spans.json")
    costs = [said["operation.cost"] for _, _, _, _, _, said, _ in plain_spans(path) if "operation.cost" in said]
    run = read_one(path, "otel_genai")
    assert run.cost_usd == pytest.approx(sum(costs))
    assert [m.cost_usd for m in run.messages if m.cost_usd is not None] == costs


def test_a_real_file_without_agents(shared_log):
    path = shared_log("otel_genai/otlp_resourceSpans_file.json")
    runs, rejects = read(path, "otel_genai")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    traces = [value["traceId"] for value in walk(lines) if "traceId" in value]
    assert [(run.native_id, run.records, run.steps, run.usage) for run in runs] == [(t, 1, [], None) for t in traces]
    assert rejects == []


# Made spans: how each is understood --------------------------------------------------------------------

T = "0af7651916cd43dd8448eb211c80319c"
START = 1_760_000_000_000_000_000


def span(number, name, attributes, *, parent=None, code="UNSET", at=0, seconds=1.0, events=(), trace=T, message=None):
    begin = START + int(at * 1e9)
    return {
        "trace_id": trace,
        "span_id": f"{number:016x}",
        "parent_span_id": None if parent is None else f"{parent:016x}",
        "name": name,
        "start_time": begin,
        "end_time": begin + int(seconds * 1e9),
        "attributes": attributes,
        "status": {"code": code, "message": message},
        "span_events": list(events),
    }


def tool(**said):
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", **said}


@pytest.mark.parametrize(
    "said",
    [
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"},
        {"gen_ai.tool.name": "look"},
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "look"},
        {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "look", "gen_ai.system": "x"},
        {"mcp.method.name": "tools/call", "gen_ai.tool.name": "look"},
        {"gen_ai.system": "x"},  # the name of the span alone says it
    ],
)
def test_what_is_a_tool_span(write, said):
    name = "execute_tool look" if said == {"gen_ai.system": "x"} else "something else"
    path = write("a.json", json.dumps([span(1, name, said)]))
    (step,) = read_one(path, "vercel_ai_sdk" if "ai.operationId" in said else "otel_genai").steps
    # Content is off by default: a call without arguments and result is a step all the same.
    assert brief(step) == ("look", None, None, None, "no_result", "none")
    assert (step.arguments_status, step.arguments_raw, step.duration_s) == ("absent", None, 1.0)


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
        ("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
        ("tool_arguments", "tool_response"),
        ("traceloop.entity.input", "traceloop.entity.output"),
        ("input.value", "output.value"),
    ],
)
@pytest.mark.parametrize("as_text", [True, False])
def test_where_arguments_and_results_stand(write, arguments, result, as_text):
    given = {"city": "東京", "n": 12345678901234567890}
    said = tool(**{arguments: json.dumps(given) if as_text else given, result: "晴れ", "gen_ai.tool.call.id": "c1"})
    (step,) = read_one(write("a.json", json.dumps([span(1, "x", said)])), "otel_genai").steps
    assert brief(step) == ("look", "c1", given, "晴れ", "ok", "result")


@pytest.mark.parametrize(
    ("code", "result", "status", "evidence"),
    [
        ("OK", "fine", "ok", "flag"),
        ("OK", "Error? none of them", "ok", "flag"),
        ("OK", '{"isError": true}', "error", "flag"),
        ("OK", '{"error": "no such file"}', "error", "error_field"),
        ("UNSET", "Error: no", "error", "text_rule"),
        ("UNSET", '{"exit_code": 1}', "error", "exit_code"),
        ("UNSET", "", "ok", "result"),
        ("ERROR", "fine", "error", "flag"),
        ("ERROR", None, "error", "flag"),
        ("UNSET", None, "no_result", "none"),
        (2, None, "error", "flag"),
        ("STATUS_CODE_ERROR", None, "error", "flag"),
        (1, "fine", "ok", "flag"),
        ("STATUS_CODE_UNSET", "fine", "ok", "result"),
    ],
)
def test_status(write, code, result, status, evidence):
    said = tool() if result is None else tool(**{"gen_ai.tool.call.result": result})
    (step,) = read_one(write("a.json", json.dumps([span(1, "x", said, code=code)])), "otel_genai").steps
    assert (step.status, step.status_evidence, step.result) == (status, evidence, result)


@pytest.mark.parametrize(
    ("events", "attributes", "message", "text"),
    [
        (
            [{"name": "exception", "attributes": {"exception.type": "KeyError", "exception.message": "x"}}],
            {},
            "m",
            "KeyError: x",
        ),
        ([], {"error.type": "TimeoutError"}, None, "TimeoutError"),
        ([], {"error.type": "TimeoutError"}, "took too long", "took too long"),
    ],
)
def test_what_went_wrong_stands_for_the_result(write, events, attributes, message, text):
    made = span(1, "x", tool(**attributes), code="ERROR", events=events, message=message)
    (step,) = read_one(write("a.json", json.dumps([made])), "otel_genai").steps
    assert (step.result, step.status, step.status_evidence) == (text, "error", "flag")


def chat(**said):
    return {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1", **said}


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}, (10, 2, None, None)),
        ({"gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 2}, (10, 2, None, None)),
        # Old and new names on one span are the same tokens.
        (
            {
                "gen_ai.usage.input_tokens": 10,
                "gen_ai.usage.output_tokens": 2,
                "gen_ai.usage.prompt_tokens": 10,
                "gen_ai.usage.completion_tokens": 2,
                "llm.usage.total_tokens": 12,
            },
            (10, 2, None, None),
        ),
        (
            {
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 20,
                "gen_ai.usage.cache_read.input_tokens": 60,
                "gen_ai.usage.reasoning.output_tokens": 5,
            },
            (100, 20, 60, 5),
        ),
        # More cached than input: the input was told without it (Anthropic's way).
        (
            {
                "gen_ai.usage.input_tokens": 4,
                "gen_ai.usage.output_tokens": 20,
                "gen_ai.usage.cache_read_input_tokens": 60,
                "gen_ai.usage.cache_creation_input_tokens": 6,
            },
            (70, 20, 60, None),
        ),
        ({"gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "2"}, (10, 2, None, None)),
        ({"gen_ai.usage.input_tokens": 10}, (10, None, None, None)),
        ({}, None),
    ],
)
def test_tokens(write, said, usage):
    run = read_one(write("a.json", json.dumps([span(1, "chat m-1", chat(**said))])), "otel_genai")
    names = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    assert run.usage == (None if usage is None else Usage(**dict(zip(names, usage, strict=True))))


def test_agents_repeat_sums_and_layers_repeat_calls(write):
    both = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    twice = {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 4}
    spans = [
        span(
            1, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", **twice}, seconds=9
        ),
        span(2, "chat m-1", chat(**both, **{"gen_ai.response.model": "m-1-2025"}), parent=1),
        span(3, "openai.chat", chat(**both), parent=2),  # the client library inside the framework's span
        span(4, "chat m-1", chat(**both), parent=1, at=4),
    ]
    run = read_one(write("a.json", json.dumps(spans)), "otel_genai")
    assert run.usage == Usage(input_tokens=20, output_tokens=4)
    assert (run.records, run.model) == (4, "m-1-2025")
    # Where only the agent tells tokens, they are the run's.
    run = read_one(write("b.json", json.dumps(spans[:1])), "otel_genai")
    assert run.usage == Usage(input_tokens=20, output_tokens=4)


def test_tokens_of_a_call_that_tells_none_are_not_made_up(write):
    spans = [
        span(1, "chat", chat(**{"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2})),
        span(2, "chat", chat(), at=2),
    ]
    assert read_one(write("a.json", json.dumps(spans)), "otel_genai").usage is None


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ({"gen_ai.request.model": "asked", "gen_ai.response.model": "got"}, "got"),
        ({"gen_ai.request.model": "asked"}, "asked"),
        ({"llm.request.model": "old"}, "old"),
        ({}, None),
    ],
)
def test_model(write, said, model):
    made = span(1, "x", {"gen_ai.operation.name": "chat", **said})
    assert read_one(write("a.json", json.dumps([made])), "otel_genai").model == model


def conversation(shape):
    """Two parallel calls, then an answer, told in one of the ways that conventions have had."""
    texts = ("be brief", "天気は?", "晴れ")
    calls = [("c1", "look", {"city": "東京"}), ("c2", "peek", {})]
    old = [{"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]
    if shape == "1.37":
        asked = [
            {"role": "system", "parts": [{"type": "text", "content": texts[0]}]},
            {"role": "user", "parts": [{"type": "text", "content": texts[1]}]},
        ]
        parts = [{"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a in calls]
        answer = [{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}]
        return {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(answer)}, []
    if shape == "instructions apart":
        asked = [{"role": "user", "parts": [{"type": "text", "content": texts[1]}]}]
        said, _ = conversation("1.37")
        instructions = json.dumps([{"type": "text", "content": texts[0]}])
        return {**said, "gen_ai.input.messages": json.dumps(asked), "gen_ai.system_instructions": instructions}, []
    if shape == "flattened":  # OpenLLMetry
        said = {}
        for index, (role, content) in enumerate([("system", texts[0]), ("user", texts[1])]):
            said |= {f"gen_ai.prompt.{index}.role": role, f"gen_ai.prompt.{index}.content": content}
        said["gen_ai.completion.0.role"] = "assistant"
        for index, (i, n, a) in enumerate(calls):
            key = f"gen_ai.completion.0.tool_calls.{index}"
            said |= {f"{key}.id": i, f"{key}.name": n, f"{key}.arguments": json.dumps(a)}
        return said, []
    if shape == "events":  # 1.27 to 1.36
        events = [
            {"name": "gen_ai.system.message", "attributes": {"content": texts[0]}},
            {"name": "gen_ai.user.message", "attributes": {"content": texts[1]}},
            {"name": "gen_ai.choice", "attributes": {"index": 0, "message": json.dumps({"tool_calls": old})}},
        ]
        return {}, events
    if shape == "event with details":
        said, _ = conversation("1.37")
        return {}, [{"name": "gen_ai.client.inference.operation.details", "attributes": said}]
    if shape == "content events":  # 1.25
        asked = [{"role": "system", "content": texts[0]}, {"role": "user", "content": texts[1]}]
        answer = [{"role": "assistant", "tool_calls": old}]
        return {}, [
            {"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": json.dumps(asked)}},
            {"name": "gen_ai.content.completion", "attributes": {"gen_ai.completion": json.dumps(answer)}},
        ]
    raise AssertionError(shape)


SHAPES = ["1.37", "instructions apart", "flattened", "events", "event with details", "content events"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_spans", [True, False])
def test_messages_and_calls_in_all_conventions(write, shape, with_spans):
    said, events = conversation(shape)
    spans = [span(1, "chat m-1", chat(**said), events=events)]
    if with_spans:
        spans.append(
            span(2, "execute_tool peek", tool(**{"gen_ai.tool.name": "peek", "gen_ai.tool.call.id": "c2"}), at=2)
        )
        result = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "晴れ"}
        spans.append(span(3, "execute_tool look", tool(**result), at=2, code="OK"))
    run = read_one(write("a.json", json.dumps(spans)), "otel_genai")
    assert [(m.role, m.content) for m in run.messages[:2]] == [("system", "be brief"), ("user", "天気は?")]
    assert run.task_text == "天気は?"
    ok = ("晴れ", "ok", "flag") if with_spans else (None, "no_result", "none")
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", {"city": "東京"}, *ok),
        ("peek", "c2", {}, None, "no_result", "none"),
    ]
    assert [(step.turn, step.ordinal, step.message_seq) for step in run.steps] == [(0, 0, 2), (0, 1, 2)]


def test_history_that_every_request_repeats_is_said_once(write):
    said, _ = conversation("1.37")
    history = [*json.loads(said["gen_ai.input.messages"]), *json.loads(said["gen_ai.output.messages"])]
    history += [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "晴れ"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c2", "response": "nothing"}]},
    ]
    done = [{"role": "assistant", "parts": [{"type": "text", "content": "晴れです"}]}]
    later = {"gen_ai.input.messages": json.dumps(history), "gen_ai.output.messages": json.dumps(done)}
    run = read_one(
        write("a.json", json.dumps([span(1, "c", chat(**said)), span(2, "c", chat(**later), at=5)])), "otel_genai"
    )
    assert [m.role for m in run.messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    # The results are those that the model was told.
    assert [(s.call_id, s.result, s.status, s.result_seq) for s in run.steps] == [
        ("c1", "晴れ", "ok", 3),
        ("c2", "nothing", "ok", 4),
    ]


def test_orphan_parents_are_normal(write):
    spans = [
        span(
            1,
            "invoke_agent a",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"},
            parent=77,
            seconds=9,
        ),
        span(2, "chat", chat(), parent=1),
        span(3, "x", tool(**{"gen_ai.tool.call.result": "r"}), parent=88, at=2),
    ]
    run = read_one(write("a.json", json.dumps(spans)), "otel_genai")
    assert [(step.tool, step.caller, step.result) for step in run.steps] == [("look", "agent", "r")]


def test_what_a_subagent_calls(write):
    spans = [
        span(1, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}, seconds=9),
        span(2, "chat", chat(), parent=1),
        span(3, "x", tool(**{"gen_ai.tool.name": "ask_b"}), parent=1, at=1, seconds=5),
        span(4, "b", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "b"}, parent=3, at=1.1, seconds=4),
        span(5, "chat", chat(), parent=4, at=1.2),
        span(6, "x", tool(), parent=4, at=3),
    ]
    run = read_one(write("a.json", json.dumps(spans)), "otel_genai")
    assert [(step.tool, step.caller) for step in run.steps] == [("ask_b", "agent"), ("look", "subagent")]
    assert run.metadata["agents"] == ["a", "b"]


def test_outcome_by_an_evaluation_event(write):
    def judged(name, value):
        said = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value}
        return span(1, "x", tool(), events=[{"name": "gen_ai.evaluation.result", "attributes": said}])

    run = read_one(write("a.json", json.dumps([judged("task_success", 1.0)])), "otel_genai")
    assert run.outcome == Outcome(value=1.0, provenance="log:task_success (gen_ai.evaluation)")
    run = read_one(write("b.json", json.dumps([judged("toxicity", 1.0)])), "otel_genai")
    assert run.outcome is None  # that is not about success
    assert run.metadata["scores"][0]["name"] == "toxicity"


def test_conversation_and_session_are_kept_but_do_not_join_traces(write):
    spans = [
        span(1, "chat", chat(**{"gen_ai.conversation.id": "k"}), trace=T),
        span(1, "chat", chat(**{"gen_ai.conversation.id": "k"}), trace=T[::-1]),
    ]
    runs, _ = read(write("a.json", json.dumps(spans)), "otel_genai")
    assert [(run.native_id, run.metadata["conversation_id"]) for run in runs] == [(T, "k"), (T[::-1], "k")]


def test_tool_schemas(write):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    defined = json.dumps([{"type": "function", "name": "look", "description": "looks", "parameters": schema}])
    run = read_one(
        write("a.json", json.dumps([span(1, "c", chat(**{"gen_ai.tool.definitions": defined}))])), "otel_genai"
    )
    assert [(t.name, t.description, t.parameters, t.origin) for t in run.tools] == [("look", "looks", schema, "logged")]


def test_what_langfuse_s_sdk_sends(write):
    """Its observations as spans: types, inputs, outputs and tokens under names of its own."""

    def observed(kind, **said):
        return {
            "langfuse.observation.type": kind,
            **{f"langfuse.observation.{key}": value for key, value in said.items()},
        }

    asked = json.dumps([{"role": "user", "content": "天気は?"}])
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"city": "東京"}'}}
    answer = json.dumps({"role": "assistant", "content": None, "tool_calls": [call]})
    spent = {"input": 40, "input_cached_tokens": 60, "output": 20, "total": 120}
    told = {"usage_details": json.dumps(spent), "cost_details": '{"total": 0.5}', "model.name": "m-1"}
    wrong = {"level": "ERROR", "status_message": "窓 is broken"}
    spans = [
        span(1, "clerk", {**observed("agent"), "session.id": "s1"}, seconds=9),
        span(2, "chat", observed("generation", input=asked, output=answer, **told), parent=1),
        span(3, "look", observed("tool", input='{"city": "東京"}', output="晴れ"), parent=1, at=2),
        span(4, "peek", observed("tool", input="{}", **wrong), parent=1, at=4),
        span(5, "find", observed("retriever", input="x"), parent=1, at=6),
    ]
    run = read_one(write("a.json", json.dumps(spans)), "otel_genai")
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", {"city": "東京"}, "晴れ", "ok", "result"),
        ("peek", None, {}, "窓 is broken", "error", "flag"),
    ]
    assert run.usage == Usage(input_tokens=100, output_tokens=20, cached_tokens=60)
    assert (run.model, run.cost_usd, run.task_text, run.metadata["session_id"]) == ("m-1", 0.5, "天気は?", "s1")
    assert run.metadata["other_spans"] == {"find": 1}
