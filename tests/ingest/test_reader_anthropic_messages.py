"""Anthropic messages: real requests in every wrapper that people keep them in, and made ones with all that may come."""

import json

import pytest
from trace_tools import brief, read, read_one

from poc.ingest import import_logs
from poc.ingest.readers import READERS
from poc.trajectory import Usage

# Real requests and responses -----------------------------------------------------------------------------


@pytest.fixture
def exchanges(shared_log):
    """Two attempts at one task, as requests and responses in the order in which they were sent."""
    log = json.loads(shared_log("anthropic_messages/docent_ctf_inspect_with_anthropic_blocks.json").read_text())
    calls = [
        (event["timestamp"], number, event["call"]["request"], event["call"]["response"])
        for number, sample in enumerate(log["samples"])
        for event in sample["events"]
        if event["event"] == "model"
    ]
    return sorted(calls, key=lambda call: call[0])


WRAPPED = {
    "side by side": lambda at, q, a: {"timestamp": at, "request": q, "response": a},
    "bodies": lambda at, q, a: {"timestamp": at, "request": {"body": q}, "response": {"status": 200, "body": a}},
    "text": lambda at, q, a: {"ts": at, "request_body": json.dumps(q), "response_body": json.dumps(a), "success": True},
    "one object": lambda at, q, a: {**q, "timestamp": at, "response": a},
    "input and output": lambda at, q, a: {"id": a["id"], "created_at": at, "input": q, "output": a},
}


@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.parametrize("lines", [True, False])
def test_real_exchanges_in_every_wrapper(write, exchanges, name, lines):
    dumped = [WRAPPED[name](at, request, response) for at, _, request, response in exchanges]
    path = write("d.json", dumped if lines else json.dumps(dumped))
    runs, rejects = read(path, "anthropic_messages")
    assert (len(runs), rejects) == (2, [])
    for number, run in enumerate(runs):
        mine = [(request, response) for _, of, request, response in exchanges if of == number]
        assert run.records == len(mine)
        last = mine[-1][0]["messages"]
        calls = [block for _, response in mine for block in response["content"] if block["type"] == "tool_use"]
        results = {
            block["tool_use_id"]: block["content"][0]["text"]
            for message in last
            for block in message["content"]
            if isinstance(block, dict) and block["type"] == "tool_result"
        }
        assert len(calls) == (3, 8)[number]
        assert [(step.tool, step.call_id, json.loads(step.arguments_json), step.result) for step in run.steps] == [
            (call["name"], call["id"], call["input"], results.get(call["id"])) for call in calls
        ]
        # The run ends with the call that submits: what came of it is in no request.
        assert [step.status for step in run.steps] == ["ok"] * (len(calls) - 1) + ["no_result"]
        spent = [response["usage"] for _, response in mine]
        read_from_cache = sum(usage["cache_read_input_tokens"] for usage in spent)
        assert run.usage == Usage(
            input_tokens=sum(usage["input_tokens"] + usage["cache_creation_input_tokens"] for usage in spent)
            + read_from_cache,
            output_tokens=sum(usage["output_tokens"] for usage in spent),
            cached_tokens=read_from_cache,
        )
        assert (run.model, run.zone_in_log, run.outcome) == (mine[0][0]["model"], True, None)
        assert [tool.name for tool in run.tools] == [tool["name"] for tool in mine[0][0]["tools"]]
        assert [message.role for message in run.messages].count("system") == 1
        assert run.task_text == mine[0][0]["messages"][0]["content"][0]["text"]


def test_real_requests_alone(write, exchanges):
    runs, rejects = read(write("d.jsonl", [request for _, _, request, _ in exchanges]), "anthropic_messages")
    assert ([len(run.steps) for run in runs], rejects) == ([2, 7], [])  # the last answers are in no request
    assert [run.usage for run in runs] == [None, None]


def test_a_real_conversation_as_a_list(write, exchanges):
    messages = exchanges[-1][2]["messages"]
    for content in (json.dumps(messages), json.dumps([messages]), json.dumps({"messages": messages}), messages):
        run = read_one(write("d.json", content), "anthropic_messages")
        assert (len(run.steps), {step.status for step in run.steps}) == (7, {"ok"})
        assert (run.usage, run.model, run.started_at) == (None, None, None)
        assert run.records == (len(messages) if content is messages else 1)


# Made messages -------------------------------------------------------------------------------------------


def use(name, call_id, **arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id, content, **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def by(role, *blocks, **more):
    return {
        "role": role,
        "content": [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks],
        **more,
    }


TALK = [
    {"role": "user", "content": "天気は?"},
    by(
        "assistant",
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        "見ます",
        use("look", "c1", city="東京"),
        use("look", "c2"),
    ),
    by(
        "user",
        result("c2", [{"type": "text", "text": "雨"}, {"type": "image", "source": {}}]),
        result("c1", "晴れ"),
        "and?",
    ),
    by("assistant", use("book", "c3")),
    by("user", result("c3", "no such desk", is_error=True)),
    by("assistant", use("wait", "c4")),
]
STEPS = [
    ("look", "c1", {"city": "東京"}, "晴れ", "ok", "result"),
    ("look", "c2", {}, "雨\n[image]", "ok", "result"),
    ("book", "c3", {}, "no such desk", "error", "flag"),
    ("wait", "c4", {}, None, "no_result", "none"),
]


def test_a_run_object(write, workspace):
    about = {
        "run_id": "019b04ae-b1c6-7c72-a134-a4c2de66058c",
        "task_id": "t1",
        "model": "m-1",
        "system": [{"type": "text", "text": "Be brief."}],
        "reward": 1,
        "started_at": "2026-02-03T04:05:06",
        "ended_at": "2026-02-03T04:05:16",
        "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 10},
        "tools": [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}],
        "team": "東",
    }
    path = write("r.jsonl", [{**about, "messages": TALK}])
    run = read_one(path, "anthropic_messages")
    assert [brief(step) for step in run.steps] == STEPS
    assert [(step.turn, step.ordinal) for step in run.steps] == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert [(message.role, message.content) for message in run.messages[:4]] == [
        ("system", "Be brief."),
        ("user", "天気は?"),
        ("assistant", "見ます"),
        ("tool", None),
    ]
    assert (run.native_id, run.native_id_is_global, run.task_key, run.model) == (about["run_id"], True, "t1", "m-1")
    assert (run.outcome.value, run.outcome.provenance) == (1.0, "log:reward")
    assert (run.usage, run.duration_s, run.zone_in_log) == (
        Usage(input_tokens=13, output_tokens=4, cached_tokens=10),
        10.0,
        False,
    )
    assert (run.tools[0].parameters, run.metadata) == ({"type": "object"}, {"team": "東"})
    told = import_logs(workspace, path)
    assert (told.read, told.imported, told.steps) == (1, 1, 4)


def test_lines_of_messages_with_times_and_usage(write):
    spent = {"usage": {"input_tokens": 5, "output_tokens": 2}, "model": "m-1"}
    lines = [
        {**one, "timestamp": f"2026-02-03T04:05:{number:02d}Z", **(spent if one["role"] == "assistant" else {})}
        for number, one in enumerate(TALK)
    ]
    run = read_one(write("r.jsonl", lines), "anthropic_messages")
    assert [step.duration_s for step in run.steps] == [1.0, 1.0, 1.0, None]
    assert (run.usage, run.duration_s) == (Usage(input_tokens=15, output_tokens=6), 5.0)
    # Where one answer does not say what it cost, the whole is not known.
    del lines[3]["usage"]
    assert read_one(write("s.jsonl", lines), "anthropic_messages").usage is None


def test_tools_of_the_provider(write):
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]},
        {"type": "server_tool_use", "id": "s2", "name": "web_fetch", "input": {}},
        {
            "type": "web_fetch_tool_result",
            "tool_use_id": "s2",
            "content": {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"},
        },
        {"type": "server_tool_use", "id": "s3", "name": "bash_code_execution", "input": {"command": "ls"}},
        {
            "type": "bash_code_execution_tool_result",
            "tool_use_id": "s3",
            "content": {"type": "bash_code_execution_result", "stdout": "", "stderr": "no", "return_code": 2},
        },
        {"type": "mcp_tool_use", "id": "s4", "name": "get", "server_name": "x", "input": {}},
        {
            "type": "mcp_tool_result",
            "tool_use_id": "s4",
            "is_error": False,
            "content": [{"type": "text", "text": "got"}],
        },
        {"type": "server_tool_use", "id": "s5", "name": "web_search", "input": {}},
    ]
    run = read_one(write("r.json", json.dumps([TALK[0], by("assistant", *blocks, "done")])), "anthropic_messages")
    assert [(step.tool, step.status, step.status_evidence, step.turn) for step in run.steps] == [
        ("web_search", "ok", "result", 0),
        ("web_fetch", "error", "flag", 0),
        ("bash_code_execution", "error", "exit_code", 0),
        ("get", "ok", "flag", 0),
        ("web_search", "no_result", "none", 0),
    ]
    assert (run.steps[3].result, json.loads(run.steps[0].result)) == ("got", {"type": "web_search_result", "url": "u"})
    assert run.messages[1].content == "done"


def test_a_batch_of_results(write):
    def entry(number, **outcome):
        return {"custom_id": f"t{number}", "result": outcome}

    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "tool_use"}
    message |= {"content": [use("look", "c1")], "usage": {"input_tokens": 5, "output_tokens": 2}}
    content = [
        entry(1, type="succeeded", message=message),
        entry(2, type="errored", error={"type": "x"}),
        entry(3, type="succeeded", message=message),
    ]
    runs, (reject,) = read(write("r.jsonl", content), "anthropic_messages")
    assert [(run.task_key, run.steps[0].status, run.usage.output_tokens) for run in runs] == [
        ("t1", "no_result", 2),
        ("t3", "no_result", 2),
    ]
    assert (reject.place, reject.reason) == ("line 2", "the request got no answer: errored")


def test_an_export_of_chats(write):
    said = [
        {"uuid": "m1", "sender": "human", "text": "天気は?", "content": [], "created_at": "2026-02-03T04:05:06Z"},
        {
            "uuid": "m2",
            "sender": "assistant",
            "text": "晴れ",
            "created_at": "2026-02-03T04:05:08Z",
            "content": [use("look", None), result(None, "sun", is_error=False), {"type": "text", "text": "晴れ"}],
        },
    ]
    said[0]["content"] = [{"type": "text", "text": "天気は?"}]
    chats = [
        {"uuid": f"{number}19b04ae-b1c6-7c72-a134-a4c2de66058c", "name": "空", "chat_messages": said}
        for number in (1, 2)
    ]
    runs, rejects = read(write("conversations.json", json.dumps(chats)), "anthropic_messages")
    assert rejects == []
    assert [(run.native_id, run.native_id_is_global) for run in runs] == [(chat["uuid"], True) for chat in chats]
    assert [brief(step) for step in runs[0].steps] == [("look", None, {}, "sun", "ok", "flag")]
    assert (runs[0].task_text, runs[0].duration_s, runs[0].metadata) == ("天気は?", 2.0, {"name": "空"})


def test_ids_that_come_again(write):
    talk = [
        TALK[0],
        by("assistant", use("a", "x")),
        by("user", result("x", "1")),
        by("assistant", use("b", "x"), use("c", "x")),
        by("user", result("x", "2"), result("x", "3")),
    ]
    run = read_one(write("r.json", json.dumps(talk)), "anthropic_messages")
    assert [(step.tool, step.result) for step in run.steps] == [("a", "1"), ("b", "2"), ("c", "3")]


def test_contents_that_the_api_does_not_know(write):
    talk = [
        {"role": "user", "content": None},
        {"role": "user", "content": {"type": "text", "text": "天気は?"}},
        {"role": 5, "content": [7, None, "x"]},
        by("assistant", {"type": "tool_use", "name": None, "input": "raw"}, {"type": "tool_use"}),
        by("user", {"type": "tool_result"}, result(None, None)),
    ]
    run = read_one(write("r.json", json.dumps(talk)), "anthropic_messages")
    assert [(step.tool, step.call_id, step.arguments_status, step.status) for step in run.steps] == [
        ("(unnamed)", None, "unparsed", "ok"),
        ("(unnamed)", None, "absent", "ok"),
    ]
    assert [message.content for message in run.messages[:3]] == [None, "天気は?", "7\nx"]


# Damage --------------------------------------------------------------------------------------------------


def test_broken_lines_cost_themselves_only(write):
    text = [json.dumps(one, ensure_ascii=False) for one in TALK]
    text[2] = text[2][:-5]
    text.insert(4, "noise")
    text[-1] = text[-1][:-1]
    runs, rejects = read(write("r.jsonl", "\n".join(text)), "anthropic_messages")
    assert [reject.place for reject in rejects] == ["line 3", "line 5", "line 7"]
    (run,) = runs
    assert [(step.call_id, step.status) for step in run.steps] == [
        ("c1", "no_result"),
        ("c2", "no_result"),
        ("c3", "error"),
    ]
    assert run.records + 3 == len(text)


def test_a_cut_list_gives_the_messages_before_the_cut(write):
    text = json.dumps(TALK)
    ((run,), (reject,)) = read(write("r.json", text[: text.index('"book"')]), "anthropic_messages")
    assert ([step.status for step in run.steps], run.records, reject.records) == (["ok", "ok"], 1, 0)


def test_what_holds_no_messages_is_a_reject(write):
    runs, rejects = read(
        write("r.jsonl", [{"messages": TALK}, {"messages": []}, {"x": 1}, 7, []]), "anthropic_messages"
    )
    assert (len(runs), [reject.place for reject in rejects]) == (1, ["line 2", "line 3", "line 4"])


# Telling -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"messages": [by("assistant", use("a", "x"), tool_calls=[])]},
        {"request": {"messages": [{"role": "user", "content": "x"}]}, "response": {"choices": []}},
        {"input": "x", "output": {"content": "y"}},
    ],
)
def test_what_is_not_told_as_anthropic(value):
    assert READERS["anthropic_messages"].sniff(json.dumps(value).encode(), "x") == 0.0
