"""Vercel AI SDK: real telemetry against a plain look at it, messages of versions 4 to 6, chunks, tools in telemetry."""

import json

import pytest
from trace_tools import brief, micros, read, read_one

from poc.ingest import import_logs
from poc.trajectory import Usage

# Real telemetry ------------------------------------------------------------------------------------------


def test_a_real_file(shared_log):
    path = shared_log("vercel_ai_sdk/aisdk_v6_all-spans.json")
    spans = json.loads(path.read_text())
    runs, rejects = read(path, "vercel_ai_sdk")
    assert rejects == []
    assert [run.native_id for run in runs] == [span["spanContext"]["traceId"] for span in spans]  # one span a trace
    for run, span in zip(runs, spans, strict=True):
        said = span["attributes"]
        start, end = (s * 1_000_000 + ns // 1000 for s, ns in (span["startTime"], span["endTime"]))
        assert (run.started_at, run.ended_at, run.zone_in_log) == (micros(start), micros(end), True)
        assert (run.records, run.steps, run.outcome, run.metadata["root"]) == (1, [], None, span["name"])
        if "ai.embed" in span["name"]:
            assert (run.model, run.usage, run.messages) == (None, None, [])
            continue
        assert run.model == said.get("ai.response.model", said["ai.model.id"])
        spent = [
            next((said[key] for key in keys if key in said), None)
            for keys in (
                ("ai.usage.inputTokens", "ai.usage.promptTokens"),
                ("ai.usage.outputTokens", "ai.usage.completionTokens"),
            )
        ]
        assert [run.usage.input_tokens, run.usage.output_tokens] == spent
        assert run.usage.cached_tokens == said.get("ai.usage.cachedInputTokens")
        assert run.usage.reasoning_tokens == said.get("ai.usage.reasoningTokens")
        answer = said.get("ai.response.text", said.get("ai.response.object"))
        assert run.messages[-1].content == answer
        prompt = json.loads(said.get("ai.prompt.messages", said.get("ai.prompt", "{}")))
        last = prompt[-1]["content"][0]["text"] if isinstance(prompt, list) else json.dumps(prompt)
        assert run.messages[-2].role == "user"
        assert run.messages[-2].content in last


# Messages as apps store them -----------------------------------------------------------------------------

ASKED = "天気は?"
LOOK = {"city": "東京"}


def v5(states=("output-available", "output-error")):
    """Version 5 and 6: each tool is a part of its own type."""
    look = {"type": "tool-look", "toolCallId": "c1", "state": states[0], "input": LOOK, "output": {"sky": "晴れ"}}
    peek = {
        "type": "dynamic-tool",
        "toolName": "peek",
        "toolCallId": "c2",
        "state": states[1],
        "input": {},
        "errorText": "窓",
    }
    told = {"createdAt": "2026-02-03T04:05:08Z", "model": "m-1", "usage": {"inputTokens": 100, "outputTokens": 20}}
    return [
        {
            "id": "m1",
            "role": "user",
            "metadata": {"createdAt": "2026-02-03T04:05:06Z"},
            "parts": [{"type": "text", "text": ASKED}],
        },
        {
            "id": "m2",
            "role": "assistant",
            "metadata": told,
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": "let me see"},
                look,
                peek,
                {"type": "step-start"},
                {"type": "tool-look", "toolCallId": "c3", "state": "input-available", "input": {"city": "京都"}},
                {"type": "step-start"},
                {"type": "text", "text": "晴れ"},
            ],
        },
    ]


def v4(as_parts):
    """Version 4: invocations beside the text, later also as parts."""
    look = {
        "state": "result",
        "step": 0,
        "toolCallId": "c1",
        "toolName": "look",
        "args": LOOK,
        "result": {"sky": "晴れ"},
    }
    other = {"state": "call", "step": 1, "toolCallId": "c3", "toolName": "look", "args": {"city": "京都"}}
    peek = {
        "state": "result",
        "step": 0,
        "toolCallId": "c2",
        "toolName": "peek",
        "args": {},
        "result": {"error": "no such window"},
    }
    asked = {"id": "m1", "role": "user", "content": ASKED, "createdAt": "2026-02-03T04:05:06Z"}
    told = {"id": "m2", "role": "assistant", "content": "晴れ", "createdAt": "2026-02-03T04:05:08Z"}
    if not as_parts:
        return [asked, {**told, "toolInvocations": [look, peek, other]}]
    steps = [[look, peek], [other]]
    parts = [{"type": "text", "text": "let me see"}]
    for step in steps:
        parts += [{"type": "step-start"}, *({"type": "tool-invocation", "toolInvocation": call} for call in step)]
    parts += [{"type": "step-start"}, {"type": "text", "text": "晴れ"}]
    return [
        {**asked, "parts": [{"type": "text", "text": ASKED}]},
        {**told, "parts": parts, "toolInvocations": [look, peek, other]},
    ]


def core(version):
    """Model messages: calls and results in messages of their own."""
    given, got = ("args", "result") if version == 4 else ("input", "output")

    def result(call_id, name, value, failed=False):
        kind = "error-text" if failed else "json"
        wrapped = {got: {"type": kind, "value": value}} if version > 4 else {got: value, "isError": failed}
        return {"type": "tool-result", "toolCallId": call_id, "toolName": name, **wrapped}

    calls = [("c1", "look", LOOK), ("c2", "peek", {})]
    return [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "let me see"},
                *({"type": "tool-call", "toolCallId": i, "toolName": n, given: a} for i, n, a in calls),
            ],
        },
        {"role": "tool", "content": [result("c1", "look", {"sky": "晴れ"}), result("c2", "peek", "窓", failed=True)]},
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c3", "toolName": "look", given: {"city": "京都"}}],
        },
        {"role": "assistant", "content": "晴れ"},
    ]


MESSAGES = {
    "v5": v5,
    "v4": lambda: v4(False),
    "v4 parts": lambda: v4(True),
    "core v4": lambda: core(4),
    "core v5": lambda: core(5),
}
HOLDERS = {
    "list": lambda listed: json.dumps(listed, ensure_ascii=False),
    "object": lambda listed: json.dumps({"id": "chat-1", "messages": listed}, indent=1),
    "objects, one a line": lambda listed: "".join(
        json.dumps({"id": f"chat-{n}", "messages": listed}) + "\n" for n in (1, 2)
    ),
    "messages, one a line": lambda listed: "".join(json.dumps(message) + "\n" for message in listed),
    "list of objects": lambda listed: json.dumps(
        [{"id": "chat-1", "messages": listed}, {"chatId": "x", "messages": listed}]
    ),
    "list of lists": lambda listed: json.dumps([listed, listed]),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("kind", MESSAGES)
def test_messages_in_every_holder(write, workspace, holder, kind):
    listed = MESSAGES[kind]()
    path = write("a.json", HOLDERS[holder](listed))
    runs, rejects = read(path, "vercel_ai_sdk")
    assert rejects == []
    assert len(runs) == (2 if holder in ("objects, one a line", "list of objects", "list of lists") else 1)
    run = runs[0]
    assert run.records == (len(listed) if holder == "messages, one a line" else 1)
    assert run.native_id == ("chat-1" if "object" in holder else None)
    assert run.task_text == ASKED
    failed = {"v5": ("窓", "error", "flag"), "core v4": ("窓", "error", "flag"), "core v5": ("窓", "error", "flag")}
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", LOOK, '{"sky":"晴れ"}', "ok", "flag" if kind == "core v4" else "result"),
        ("peek", "c2", {}, *failed.get(kind, ('{"error":"no such window"}', "error", "error_field"))),
        ("look", "c3", {"city": "京都"}, None, "no_result", "none"),
    ]
    # Version 4 without parts does not say which calls were made together.
    turns = [(0, 0), (0, 1), (0, 2)] if kind == "v4" else [(0, 0), (0, 1), (1, 0)]
    assert [(step.turn, step.ordinal) for step in run.steps] == turns
    assert {step.caller for step in run.steps} == {"agent"}
    assert run.messages[-1].content == "晴れ" or kind == "v4"
    if kind == "v5":
        assert (run.model, run.usage) == ("m-1", Usage(input_tokens=100, output_tokens=20))
    else:
        assert (run.model, run.usage) == (None, None)
    if "core" in kind:
        assert (run.started_at, run.zone_in_log) == (None, None)
    else:
        assert (run.duration_s, run.zone_in_log) == (2.0, True)
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected, result.steps) == (
        result.read,
        result.read,
        0,
        3 * result.runs,
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"state": "input-streaming", "input": {"a": 1}}, ({"a": 1}, None, "no_result", "none")),
        ({"state": "input-streaming"}, (None, None, "no_result", "none")),
        ({"state": "input-available", "input": {}}, ({}, None, "no_result", "none")),
        ({"state": "approval-requested", "input": {}, "approval": {"id": "x"}}, ({}, None, "no_result", "none")),
        ({"state": "approval-responded", "input": {}, "approval": {"approved": True}}, ({}, None, "no_result", "none")),
        ({"state": "output-available", "input": {}, "output": None}, ({}, None, "ok", "result")),
        ({"state": "output-available", "input": {}, "output": ""}, ({}, "", "ok", "result")),
        ({"state": "output-available", "input": {}, "output": "Error: no"}, ({}, "Error: no", "error", "text_rule")),
        (
            {"state": "output-available", "input": {}, "output": {"isError": True}},
            ({}, '{"isError":true}', "error", "flag"),
        ),
        ({"state": "output-error", "input": {}, "errorText": "no"}, ({}, "no", "error", "flag")),
        ({"state": "output-error", "rawInput": "{bad", "errorText": "no"}, (None, "no", "error", "flag")),
        ({"state": "output-error", "input": {}}, ({}, None, "error", "flag")),
        ({"state": "output-denied", "input": {}, "approval": {"approved": False}}, ({}, None, "error", "flag")),
    ],
)
def test_states(write, part, expected):
    part = {"type": "tool-look", "toolCallId": "c1", **part}
    run = read_one(write("a.json", json.dumps([{"id": "m", "role": "assistant", "parts": [part]}])), "vercel_ai_sdk")
    assert [brief(step) for step in run.steps] == [("look", "c1", *expected)]


def test_files_and_texts_of_a_message_are_all_kept(write):
    parts = [
        {"type": "text", "text": "see"},
        {"type": "file", "url": "x"},
        {"type": "text", "text": "and"},
        {"type": "file", "url": "y"},
    ]
    run = read_one(write("a.json", json.dumps([{"id": "m", "role": "user", "parts": parts}])), "vercel_ai_sdk")
    assert [message.content for message in run.messages] == ["see\n[file]\nand\n[file]"]


# Chunks of a stream --------------------------------------------------------------------------------------


def chunks():
    return [
        {"type": "start", "messageId": "m"},
        {"type": "start-step"},
        {"type": "text-start", "id": "0"},
        {"type": "text-delta", "id": "0", "delta": "let me "},
        {"type": "text-delta", "id": "0", "delta": "see"},
        {"type": "text-end", "id": "0"},
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "look"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"city"'},
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "look", "input": LOOK},
        {"type": "tool-input-available", "toolCallId": "c2", "toolName": "peek", "input": {}},
        {"type": "tool-output-available", "toolCallId": "c1", "output": "cloudy?", "preliminary": True},
        {"type": "tool-output-available", "toolCallId": "c1", "output": {"sky": "晴れ"}},
        {"type": "tool-output-error", "toolCallId": "c2", "errorText": "窓"},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "tool-input-available", "toolCallId": "c3", "toolName": "look", "input": {}},
        {"type": "tool-output-denied", "toolCallId": "c3"},
        {"type": "tool-input-error", "toolCallId": "c4", "toolName": "look", "input": "{", "errorText": "bad input"},
        {"type": "tool-input-available", "toolCallId": "c5", "toolName": "look", "input": {}},
        {"type": "finish-step"},
        {"type": "finish"},
    ]


@pytest.mark.parametrize("as_lines", [True, False])
def test_chunks(write, as_lines):
    text = "".join(json.dumps(chunk) + "\n" for chunk in chunks()) if as_lines else json.dumps(chunks())
    run = read_one(write("a.jsonl", text), "vercel_ai_sdk")
    assert run.records == (21 if as_lines else 1)
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", LOOK, '{"sky":"晴れ"}', "ok", "result"),
        ("peek", "c2", {}, "窓", "error", "flag"),
        ("look", "c3", {}, None, "error", "flag"),
        ("look", "c4", None, "bad input", "error", "flag"),
        ("look", "c5", {}, None, "no_result", "none"),
    ]
    assert [(step.turn, step.ordinal) for step in run.steps] == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert run.messages[0].content == "let me see"


# Telemetry of runs with tools ----------------------------------------------------------------------------

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(number, parent, name, at, seconds, said, code=0, events=()):
    begin = 1_760_000_000_000_000_000 + int(at * 1e9)

    def pair(ns):
        return list(divmod(ns, 1_000_000_000))

    return {
        "name": name,
        "spanContext": {"traceId": TRACE, "spanId": f"{number:016x}"},
        "parentSpanContext": None if parent is None else {"traceId": TRACE, "spanId": f"{parent:016x}"},
        "startTime": pair(begin),
        "endTime": pair(begin + int(seconds * 1e9)),
        "status": {"code": code},
        "attributes": {"ai.operationId": name, **said},
        "events": list(events),
    }


def telemetry(version):
    given, got = ("args", "input")[version > 4], "result"
    tokens = {4: ("promptTokens", "completionTokens"), 5: ("inputTokens", "outputTokens")}[min(version, 5)]
    spent = {f"ai.usage.{tokens[0]}": 100, f"ai.usage.{tokens[1]}": 20}
    if version > 4:
        spent |= {"ai.usage.cachedInputTokens": 60, "ai.usage.reasoningTokens": 5}
    made = [
        {
            "toolCallType": "function",
            "toolCallId": "c1",
            "toolName": "look",
            given: json.dumps(LOOK) if version == 4 else LOOK,
        },
        {"toolCallType": "function", "toolCallId": "c2", "toolName": "peek", given: "{}" if version == 4 else {}},
    ]
    prompt = [{"role": "system", "content": "be brief"}, {"role": "user", "content": [{"type": "text", "text": ASKED}]}]
    tools = [json.dumps({"type": "function", "name": "look", "parameters": {"type": "object"}})]
    model = {"ai.model.id": "m", "ai.model.provider": "openai.chat", "ai.response.model": "m-1"}
    asked = {"ai.prompt.messages": json.dumps(prompt), "ai.prompt.tools": tools, **model, **spent}
    wrong = [
        {
            "name": "exception",
            "attributes": {"exception.type": "Error", "exception.message": "窓"},
            "time": [1_760_000_001, 0],
        }
    ]
    look = {
        "ai.toolCall.name": "look",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": json.dumps(LOOK),
        f"ai.toolCall.{got}": '"晴れ"',
    }
    peek = {"ai.toolCall.name": "peek", "ai.toolCall.id": "c2", "ai.toolCall.args": "{}"}
    return [
        span(
            1,
            None,
            "ai.generateText",
            0,
            9,
            {"ai.prompt": json.dumps({"prompt": ASKED}), **model, "ai.response.text": "晴れ", **spent},
        ),
        span(2, 1, "ai.generateText.doGenerate", 0.5, 1, {**asked, "ai.response.toolCalls": json.dumps(made)}),
        span(3, 1, "ai.toolCall", 2, 1, look),
        span(4, 1, "ai.toolCall", 2.5, 1, peek, 2, wrong),
        span(5, 1, "ai.generateText.doGenerate", 5, 1, {**asked, "ai.response.text": "晴れ"}),
    ]


@pytest.mark.parametrize("version", [4, 5, 6])
def test_telemetry(write, version):
    run = read_one(write("a.json", json.dumps(telemetry(version))), "vercel_ai_sdk")
    parts = {} if version == 4 else {"cached_tokens": 120, "reasoning_tokens": 10}
    assert run.usage == Usage(input_tokens=200, output_tokens=40, **parts)
    assert (run.native_id, run.records, run.model) == (TRACE, 5, "m-1")
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", LOOK, "晴れ", "ok", "result"),
        ("peek", "c2", {}, "Error: 窓", "error", "flag"),
    ]
    assert [(s.turn, s.ordinal, s.caller, s.execution_id, s.duration_s) for s in run.steps] == [
        (0, 0, "agent", f"{3:016x}", 1.0),
        (0, 1, "agent", f"{4:016x}", 1.0),
    ]
    assert [(m.role, m.content) for m in run.messages] == [
        ("system", "be brief"),
        ("user", ASKED),
        ("assistant", None),
        ("assistant", "晴れ"),
    ]
    assert [tool.name for tool in run.tools] == ["look"]


# What is no message --------------------------------------------------------------------------------------


def test_what_is_no_message(write):
    path = write("a.json", json.dumps([*v5(), 7, {"hello": 1}]))
    (run,), rejects = read(path, "vercel_ai_sdk")
    assert len(run.steps) == 3
    assert [(reject.place, reject.records) for reject in rejects] == [("offset 0 [2]", 0), ("offset 0 [3]", 0)]


def test_a_broken_line_costs_that_line(write):
    lines = HOLDERS["objects, one a line"](v5()).splitlines()
    runs, rejects = read(write("a.jsonl", "\n".join([lines[0], lines[1][:100], lines[1], '{"x": 1}'])), "vercel_ai_sdk")
    assert [run.native_id for run in runs] == ["chat-1", "chat-2"]
    assert [(reject.place, reject.records) for reject in rejects] == [("line 2", 1), ("line 4", 1)]
