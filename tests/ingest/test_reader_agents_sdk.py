"""OpenAI Agents SDK: traces in every holder, and saved run states in both spellings."""

import datetime as dt
import json
import re

import pytest
from trace_tools import brief, read, read_one, walk

from poc.ingest import import_logs
from poc.ingest.readers.printed import printed
from poc.trajectory import Usage

TRACE = "trace_" + "0123456789abcdef" * 2

# Real files ----------------------------------------------------------------------------------------------


def test_a_real_trace(shared_log):
    path = shared_log("openai_agents_sdk/agents_sdk_traces_2025-06-29.json")
    (trace,) = json.loads(path.read_text())["traces"]
    run = read_one(path, "agents_sdk")
    spans = trace["spans"]
    assert (run.native_id, run.native_id_is_global, run.records) == (trace["id"], True, 1 + len(spans))
    assert run.steps == []  # no span is of type function
    times = [dt.datetime.fromisoformat(span[key]) for span in spans for key in ("started_at", "ended_at")]
    assert (run.started_at, run.ended_at, run.zone_in_log) == (min(times), max(times), True)
    # The responses are kept in their printed form only.
    told = [span["span_data_response"] for span in spans if span["span_data"]["type"] == "response"]
    figures = [[int(number) for number in re.findall(r"(?:in|out)put_tokens=(\d+)", text)] for text in told]
    assert run.usage == Usage(
        input_tokens=sum(read for read, _ in figures),
        output_tokens=sum(written for _, written in figures),
        cached_tokens=sum(int(re.findall(r"cached_tokens=(\d+)", text)[0]) for text in told),
        reasoning_tokens=sum(int(re.findall(r"reasoning_tokens=(\d+)", text)[0]) for text in told),
    )
    assert {run.model} == {re.findall(r"model='([^']+)'", text)[0] for text in told}
    searches = sum(text.count("type='web_search_call'") for text in told)
    assert run.metadata["calls_at_the_provider"] == {"web_search_call": searches}
    agents = sorted(
        (span["started_at"], span["span_data"]["name"]) for span in spans if span["span_data"]["type"] == "agent"
    )
    assert run.metadata["agents"] == [name for _, name in agents]
    assert run.metadata["workflow_name"] == trace["workflow_name"]


def test_a_real_state_that_waits_for_approval(shared_log):
    path = shared_log("openai_agents_sdk/runstate_v1_13_pending_tool_approval.json")
    state = json.loads(path.read_text())
    run = read_one(path, "agents_sdk")
    calls = [inner for inner in walk(state) if inner.get("type") == "function_call"]
    assert len(calls) == 10  # one call, ten times
    (call_id,) = {call["call_id"] for call in calls}
    assert [brief(step) for step in run.steps] == [
        ("historical_approval", call_id, {"account_id": "account-1"}, None, "no_result", "none")
    ]
    assert (run.task_text, run.native_id, run.native_id_is_global) == ("historical input", state["trace"]["id"], False)
    assert (run.usage, run.model, run.started_at, run.outcome) == (None, None, None, None)  # no request was counted
    (tool,) = run.tools
    assert tool.name == "historical_approval"
    assert tool.parameters == state["last_processed_response"]["functions"][0]["tool"]["paramsJsonSchema"]


# Made traces ---------------------------------------------------------------------------------------------


def span(number, kind, begins, ends, *, parent=None, error=None, **data):
    return {
        "object": "trace.span",
        "id": f"span_{number}",
        "trace_id": TRACE,
        "parent_id": None if parent is None else f"span_{parent}",
        "started_at": f"2026-02-03T04:05:{begins:02d}.000000+00:00",
        "ended_at": None if ends is None else f"2026-02-03T04:05:{ends:02d}.000000+00:00",
        "span_data": {"type": kind, **data},
        "error": error,
    }


HEADER = {"object": "trace", "id": TRACE, "workflow_name": "Desk", "group_id": "chat-7", "metadata": {"team": "東"}}


def asked(name, call_id, arguments):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


USER = {"role": "user", "content": "天気は?"}
FIRST = {
    "role": "assistant",
    "content": None,
    "tool_calls": [asked("look", "c1", {"city": "東京"}), asked("ask", "c2", {})],
}
ANSWERS = [
    {"role": "tool", "tool_call_id": "c1", "content": "晴れ"},
    {"role": "tool", "tool_call_id": "c2", "content": "An error occurred: no one is there"},
]
LAST = {"role": "assistant", "content": "晴れです"}
NO_ONE = {"message": "Error running tool (non-fatal)", "data": {"tool_name": "ask", "error": "no one is there"}}


def spans():
    return [
        span(1, "agent", 0, 20, name="Desk", tools=["look", "ask"], handoffs=["Other"]),
        span(
            2,
            "generation",
            1,
            3,
            parent=1,
            input=[USER],
            output=[FIRST],
            model="m-1",
            usage={"input_tokens": 10, "output_tokens": 4},
        ),
        span(3, "function", 3, 5, parent=1, name="look", input='{"city": "東京"}', output="晴れ"),
        span(
            4,
            "function",
            3,
            9,
            parent=1,
            name="ask",
            input="{}",
            output="An error occurred: no one is there",
            error=NO_ONE,
        ),
        # The tool "ask" is an agent itself.
        span(5, "agent", 4, 8, parent=4, name="Helper"),
        span(
            6,
            "generation",
            4,
            5,
            parent=5,
            input=[{"role": "user", "content": "help"}],
            output=[{"role": "assistant", "content": None, "tool_calls": [asked("search", "c9", {"q": 1})]}],
            model="m-2",
            usage={"input_tokens": 5, "output_tokens": 1},
        ),
        span(
            7,
            "function",
            5,
            6,
            parent=5,
            name="search",
            input='{"q": 1}',
            output=None,
            error={"message": "Error running tool", "data": {"error": "timed out"}},
        ),
        span(
            8,
            "generation",
            10,
            12,
            parent=1,
            input=[USER, FIRST, *ANSWERS],
            output=[LAST],
            model="m-1",
            usage={"input_tokens": 30, "output_tokens": 6},
        ),
        span(9, "guardrail", 12, 13, parent=1, name="polite", triggered=True),
        span(10, "handoff", 13, 14, parent=1, from_agent="Desk", to_agent="Other"),
    ]


HELD = {
    "nested": [{"traces": [{**HEADER, "spans": spans()}], "count": 1}],
    "beside": [{"trace": HEADER, "spans": spans()}],
    "lines": [HEADER, *spans()],
    "lines, header last": [*spans(), HEADER],
    "batches": [{"data": [HEADER, *spans()[:4]]}, {"data": spans()[4:]}],
    "lists": [[HEADER, *spans()]],
    "no header": spans(),
}


@pytest.mark.parametrize("name", HELD)
def test_a_trace_in_every_holder(write, workspace, name):
    path = write("t.jsonl", HELD[name])
    run = read_one(path, "agents_sdk")
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", {"city": "東京"}, "晴れ", "ok", "result"),
        ("ask", "c2", {}, "An error occurred: no one is there", "error", "flag"),
        ("search", "c9", {"q": 1}, "timed out", "error", "flag"),
    ]
    assert [(step.turn, step.ordinal, step.caller, step.duration_s, step.execution_id) for step in run.steps] == [
        (0, 0, "agent", 2.0, "span_3"),
        (0, 1, "agent", 6.0, "span_4"),
        (1, 0, "subagent", 1.0, "span_7"),
    ]
    assert (run.native_id, run.native_id_is_global, run.task_text, run.model) == (TRACE, True, "天気は?", "m-1")
    assert run.usage == Usage(input_tokens=45, output_tokens=11)
    assert (run.duration_s, run.framework) == (20.0, "openai-agents")
    assert run.metadata["handoffs"] == [{"from": "Desk", "to": "Other"}]
    assert run.metadata["guardrails_triggered"] == ["polite"]
    if name != "no header":
        assert (run.metadata["workflow_name"], run.metadata["metadata"]) == ("Desk", {"team": "東"})
    said = [(message.role, message.content) for message in run.messages if message.content]
    assert said.count(("user", "天気は?")) == 1  # the second request repeats it
    assert said[-1] == ("assistant", "晴れです")
    result = import_logs(workspace, path)
    held = 10 if name == "no header" else 11
    assert (result.read, result.imported, result.rejected, result.steps) == (held, held, 0, 3)


def test_events_of_a_processor_show_each_span_twice(write):
    begun = [{**one, "ended_at": None, "span_data": {"type": one["span_data"]["type"]}} for one in spans()]
    events = [{"event": "trace_start", "trace": HEADER}]
    for start, end in zip(begun, spans(), strict=True):
        events += [{"event": "span_start", "span": start}, {"event": "span_end", "span": end}]
    for content in (events, json.dumps({"events": events}, ensure_ascii=False)):
        run = read_one(write("t.json", content), "agents_sdk")
        assert [(step.tool, step.result) for step in run.steps] == [
            ("look", "晴れ"),
            ("ask", "An error occurred: no one is there"),
            ("search", "timed out"),
        ]
        assert run.records == 21


def test_two_traces_whose_spans_are_mixed(write):
    other = TRACE.replace("0", "a")
    mixed = [{**one, "trace_id": trace} for one in spans() for trace in (TRACE, other)]
    runs, rejects = read(write("t.jsonl", mixed), "agents_sdk")
    assert rejects == []
    assert [(run.native_id, len(run.steps), run.records) for run in runs] == [(TRACE, 3, 10), (other, 3, 10)]


def test_a_call_without_a_span_and_a_span_without_an_end(write):
    call = {"role": "assistant", "content": None, "tool_calls": [asked("gone", "c1", {}), asked("open", "c2", {})]}
    passed = {"role": "assistant", "content": None, "tool_calls": [asked("transfer_to_other", "c3", {})]}
    run = read_one(
        write(
            "t.jsonl",
            [
                span(1, "agent", 0, None, name="Desk"),
                span(2, "generation", 1, 2, parent=1, input=[USER], output=[call, passed], model="m-1", usage=None),
                span(3, "function", 3, None, parent=1, name="open", input="{}", output=None),
                span(4, "handoff", 4, 5, parent=1, from_agent="Desk", to_agent="Other"),
            ],
        ),
        "agents_sdk",
    )
    assert [brief(step) for step in run.steps] == [
        ("gone", "c1", {}, None, "no_result", "none"),
        ("open", "c2", {}, None, "no_result", "none"),
    ]
    assert (run.usage, run.steps[1].started_at is not None, run.steps[1].ended_at) == (None, True, None)


def test_responses_that_are_kept_with_their_spans(write):
    response = {
        "id": "resp_1",
        "model": "m-3",
        "instructions": "Be brief.",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"city":"東京"}'},
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "name": "fetch",
                "arguments": '{"u":1}',
                "output": None,
                "error": "404",
            },
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "q"}},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "晴れ"}]},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
        "usage": {
            "input_tokens": 50,
            "output_tokens": 20,
            "input_tokens_details": {"cached_tokens": 40},
            "output_tokens_details": {"reasoning_tokens": 8},
        },
    }
    run = read_one(
        write(
            "t.jsonl",
            [
                span(1, "agent", 0, 9, name="Desk"),
                span(2, "response", 1, 3, parent=1, response_id="resp_1", input=[USER], response=response),
                span(3, "function", 4, 5, parent=1, name="look", input='{"city": "東京"}', output='{"sky": "clear"}'),
            ],
        ),
        "agents_sdk",
    )
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", {"city": "東京"}, '{"sky": "clear"}', "ok", "result"),
        ("fetch", "mcp_1", {"u": 1}, "404", "error", "flag"),
        ("web_search", "ws_1", {"query": "q"}, None, "ok", "flag"),
    ]
    assert run.usage == Usage(input_tokens=50, output_tokens=20, cached_tokens=40, reasoning_tokens=8)
    assert (run.model, [tool.name for tool in run.tools]) == ("m-3", ["look"])
    assert [message.content for message in run.messages[:2]] == ["Be brief.", "天気は?"]


def test_what_is_no_span_is_a_reject_and_the_rest_is_kept(write):
    lines = [json.dumps(one, ensure_ascii=False) for one in spans()]
    lines[6] = lines[6][:40]
    lines.insert(3, '{"no": "span"}')
    lines[-1] = lines[-1][:-9]
    runs, rejects = read(write("t.jsonl", "\n".join(lines)), "agents_sdk")
    assert [reject.place for reject in rejects] == ["line 4", "line 8", "line 11"]
    (run,) = runs
    assert run.records + 3 == len(lines)
    assert [step.tool for step in run.steps] == ["look", "ask", "search"]


def test_a_cut_document_gives_the_whole_spans_before_the_cut(write):
    text = json.dumps({"traces": [{**HEADER, "spans": spans()}]}, ensure_ascii=False)
    runs, rejects = read(write("t.json", text[: text.index('"span_7"')]), "agents_sdk")
    ((run,), (reject,)) = runs, rejects
    assert (run.records, run.metadata["workflow_name"]) == (7, "Desk")
    assert "broken JSON" in reject.reason


# Printed objects -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["", "x", "f(1)", "f(x)", "f(a=g(1))", "f(a=1", "f(a=__import__('os').getcwd())", "(" * 5000 + ")", "f(a=<X: 1>)"],
)
def test_what_is_no_printed_object(text):
    assert printed(text) is None


def test_a_printed_object():
    text = "R(id='x', n=-1, f=1.5, on=True, none=None, by={'k': U(name='東')}, at=(1, 2), raw=b'z')"
    assert printed(text) == {
        "id": "x",
        "n": -1,
        "f": 1.5,
        "on": True,
        "none": None,
        "by": {"k": {"name": "東"}},
        "at": [1, 2],
        "raw": "b'z'",
    }


# Run states ----------------------------------------------------------------------------------------------


def wrapped(kind, raw, **more):
    return {"type": kind, "raw_item": raw, "agent": {"name": "Desk"}, **more}


def call(name, call_id, arguments):
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}


def result(call_id, output):
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def words(number, text):
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


def usage(read, written, cached):
    return {
        "requests": 1,
        "input_tokens": read,
        "input_tokens_details": [{"cached_tokens": cached}],
        "output_tokens": written,
        "output_tokens_details": [{"reasoning_tokens": 0}],
    }


def state():
    calls = [call("look", "c1", '{"city":"東京"}'), call("book", "c2", "{}"), call("send", "c3", '{"to":"bob"}')]
    handed = call("transfer_to_other", "c4", "{}")
    items = [
        wrapped("message_output_item", words(1, "見ます")),
        wrapped("tool_call_item", calls[0]),
        wrapped("tool_call_item", calls[1]),
        wrapped("tool_call_output_item", result("c1", None), output="晴れ"),
        wrapped("tool_call_output_item", result("c2", "Tool execution was not approved.")),
        wrapped("handoff_call_item", handed),
        wrapped(
            "handoff_output_item",
            result("c4", '{"assistant": "Other"}'),
            source_agent={"name": "Desk"},
            target_agent={"name": "Other"},
        ),
        wrapped("tool_call_item", calls[2]),
        wrapped("tool_approval_item", {**calls[2], "arguments": '{"to":"eve"}'}),
    ]
    return {
        "$schemaVersion": "1.16",
        "current_turn": 3,
        "current_agent": {"name": "Other"},
        "original_input": [{"role": "user", "content": "天気は?"}],
        "model_responses": [
            {"output": [words(1, "見ます"), *calls[:2]], "usage": usage(10, 4, 2), "response_id": "r1"},
            {"output": [handed], "usage": usage(20, 5, 3), "response_id": "r2"},
            {"output": [calls[2]], "usage": usage(30, 6, 4), "response_id": "r3"},
        ],
        "context": {
            "usage": {**usage(60, 15, 9), "requests": 3},
            "approvals": {"book": {"approved": [], "rejected": ["c2"]}},
        },
        "generated_items": items[5:],
        "session_items": items,
        "current_step": {
            "type": "next_step_interruption",
            "data": {"interruptions": [wrapped("tool_approval_item", {**calls[2], "arguments": '{"to":"eve"}'})]},
        },
        "trace": {"object": "trace", "id": TRACE, "workflow_name": "Desk"},
    }


STEPS = [
    ("look", "c1", {"city": "東京"}, "晴れ", "ok", "result"),
    ("book", "c2", {}, "Tool execution was not approved.", "error", "flag"),
    ("send", "c3", {"to": "bob"}, None, "no_result", "none"),
]


def test_a_state_counts_each_call_once(write):
    run = read_one(write("s.json", json.dumps(state(), ensure_ascii=False)), "agents_sdk")
    assert [brief(step) for step in run.steps] == STEPS
    assert [(step.turn, step.ordinal) for step in run.steps] == [(0, 0), (0, 1), (1, 0)]
    assert run.usage == Usage(input_tokens=60, output_tokens=15, cached_tokens=9, reasoning_tokens=0)
    assert run.metadata["handoffs"] == [{"from": "Desk", "to": "Other"}]
    assert (run.task_text, run.records, run.metadata["current_step"]) == ("天気は?", 1, "next_step_interruption")
    spoken = [message for message in run.messages if message.role == "assistant"]
    assert [message.content for message in spoken] == ["見ます", None]
    assert spoken[0].usage == Usage(input_tokens=10, output_tokens=4, cached_tokens=2, reasoning_tokens=0)


def test_calls_that_no_item_shows_come_from_the_responses(write):
    bare = {**state(), "session_items": [], "generated_items": [], "current_step": None}
    run = read_one(write("s.json", json.dumps(bare)), "agents_sdk")
    assert [(step.tool, step.status) for step in run.steps] == [
        ("look", "no_result"),
        ("book", "no_result"),
        ("transfer_to_other", "no_result"),
        ("send", "no_result"),
    ]


def in_javascript(value):
    """The same state as the JavaScript SDK spells it."""
    if isinstance(value, list):
        return [in_javascript(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "function_call_output":
        value = {**value, "type": "function_call_result", "output": {"type": "text", "text": value["output"] or "晴れ"}}
    return {re.sub(r"_([a-z])", lambda m: m[1].upper(), key): in_javascript(item) for key, item in value.items()}


def test_a_state_of_the_javascript_sdk(write):
    run = read_one(write("s.json", json.dumps(in_javascript(state()), ensure_ascii=False)), "agents_sdk")
    assert [brief(step) for step in run.steps] == STEPS
    assert run.usage == Usage(input_tokens=60, output_tokens=15, cached_tokens=9, reasoning_tokens=0)


def test_several_states_of_one_trace_are_runs_of_their_own(write, workspace):
    first = state()
    later = {**state(), "current_turn": 4}
    later["session_items"] = [*later["session_items"], wrapped("tool_call_output_item", result("c3", "sent"))]
    path = write("s.jsonl", [first, later])
    result_of = import_logs(workspace, path)
    assert (result_of.read, result_of.imported, result_of.runs, result_of.steps) == (2, 2, 2, 6)
