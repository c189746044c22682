"""OpenAI Responses: items and responses in every holder, one run however often requests repeat it."""

import json

import pytest
from trace_tools import brief, read, read_one

from poc.ingest import import_logs
from poc.ingest.readers import READERS
from poc.ingest.readers.histories import Histories
from poc.trajectory import Usage


def words(role, text, **more):
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}], **more}


def call(name, call_id, arguments="{}"):
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id, text):
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def reasoning(number):
    return {"type": "reasoning", "id": f"rs_{number}", "summary": []}


USER = words("user", "天気は?")
ITEMS = [
    USER,
    reasoning(1),
    call("look", "c1", '{"city": "東京"}'),
    call("look", "c2", '{"city": "大阪"}'),
    output("c2", "雨"),
    output("c1", "晴れ"),
    call("book", "c3"),
    words("assistant", "終わりました", id="msg_9"),
]
STEPS = [
    ("look", "c1", {"city": "東京"}, "晴れ", "ok", "result"),
    ("look", "c2", {"city": "大阪"}, "雨", "ok", "result"),
    ("book", "c3", {}, None, "no_result", "none"),
]
TURNS = [(0, 0), (0, 1), (1, 0)]


def easy(items):
    """The same with people's messages in their short form."""
    return [{"role": one["role"], "content": one["content"][0]["text"]} if one is USER else one for one in items]


HELD = {
    "a list": (json.dumps(ITEMS), 1),
    "a list with short messages": (json.dumps(easy(ITEMS)), 1),
    "an object of the API": (json.dumps({"object": "list", "data": ITEMS, "has_more": False}), 1),
    "newest first": (json.dumps({"object": "list", "data": ITEMS[::-1]}), 1),
    "a request": (json.dumps({"model": "m-1", "input": ITEMS}), 1),
    "items of a run": (json.dumps({"id": "run-1", "items": ITEMS}), 1),
    "lines": ("\n".join(map(json.dumps, easy(ITEMS))), len(ITEMS)),
    "lines of lists": ("\n".join([json.dumps(ITEMS)] * 2), 1),
}


@pytest.mark.parametrize("name", HELD)
def test_items_in_every_holder(write, name):
    text, records = HELD[name]
    runs, rejects = read(write("r.json", text), "openai_responses")
    assert (len(runs), rejects) == (2 if name == "lines of lists" else 1, [])
    for run in runs:
        assert [brief(step) for step in run.steps] == STEPS
        assert [(step.turn, step.ordinal) for step in run.steps] == TURNS
        assert (run.task_text, run.messages[-1].content) == ("天気は?", "終わりました")
        assert (run.records, run.usage, run.started_at, run.outcome) == (records, None, None, None)


# Responses -----------------------------------------------------------------------------------------------


def response(number, made, *, before=None, read=10, written=5, cached=4, thought=2, **more):
    return {
        "id": f"resp_{number:032d}",
        "object": "response",
        "created_at": 1_770_000_000 + number,
        "model": "m-1",
        "status": "completed",
        "previous_response_id": None if before is None else f"resp_{before:032d}",
        "output": made,
        "tools": [{"type": "function", "name": "look", "description": "Look.", "parameters": {"type": "object"}}],
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": thought},
        },
        **more,
    }


FIRST, SECOND, THIRD = ITEMS[1:4], ITEMS[6:7], ITEMS[7:8]
ANSWERS = ITEMS[4:6]
LEAN = [{key: value for key, value in one.items() if key not in ("id", "status")} for one in FIRST[1:]]
"""The model's items as clients send them back."""


def chained():
    """What the server keeps is named, not repeated."""
    return [
        {"request": {"input": "天気は?"}, "response": response(1, FIRST)},
        {"request": {"input": ANSWERS, "previous_response_id": f"resp_{1:032d}"}, "response": response(2, SECOND)},
        {"request": {"input": [output("c3", "booked")]}, "response": response(3, THIRD, before=2)},
    ]


def repeated():
    """Every request repeats all that was said."""
    return [
        {"request": {"input": [USER]}, "response": response(1, FIRST)},
        {"request": {"input": [USER, *LEAN, *ANSWERS]}, "response": response(2, SECOND)},
        {
            "request": {"input": [USER, *LEAN, *ANSWERS, *SECOND, output("c3", "booked")]},
            "response": response(3, THIRD),
        },
    ]


def shared():
    """A conversation that the server keeps."""
    return [{**pair, "request": {**pair["request"], "conversation": {"id": "conv_1"}}} for pair in chained()]


@pytest.mark.parametrize("pairs", [chained, repeated, shared])
def test_requests_of_one_conversation_are_one_run(write, workspace, pairs):
    other = [{"request": {"input": "別の話"}, "response": response(7, [words("assistant", "はい")])}]
    content = [*pairs()[:1], *other, *pairs()[1:]]
    path = write("r.jsonl", content)
    (run, alone), rejects = read(path, "openai_responses")
    assert rejects == []
    assert [brief(step) for step in run.steps] == [*STEPS[:2], ("book", "c3", {}, "booked", "ok", "result")]
    assert [(step.turn, step.ordinal) for step in run.steps] == TURNS
    assert run.usage == Usage(input_tokens=30, output_tokens=15, cached_tokens=12, reasoning_tokens=6)
    assert (run.records, run.model, [tool.name for tool in run.tools]) == (3, "m-1", ["look"])
    assert run.native_id == ("conv_1" if pairs is shared else f"resp_{1:032d}")
    assert (run.native_id_is_global, run.zone_in_log) == (True, True)
    assert (run.started_at.timestamp(), run.duration_s) == (1_770_000_001, 2.0)
    assert [message.content for message in run.messages if message.role == "user"] == ["天気は?"]
    assert (alone.task_text, alone.steps) == ("別の話", [])
    told = import_logs(workspace, path)
    assert (told.read, told.imported, told.runs, told.steps) == (4, 4, 2, 3)


def test_a_log_that_begins_midway_does_not_know_all_tokens(write):
    run = read_one(write("r.jsonl", repeated()[1:]), "openai_responses")
    assert ([step.call_id for step in run.steps], run.usage) == (["c1", "c2", "c3"], None)


def test_responses_alone_and_in_lists(write):
    listed = [response(1, FIRST), response(2, SECOND, before=1), response(3, THIRD, before=2)]
    for content in (listed, json.dumps(listed), json.dumps({"responses": listed})):
        run = read_one(write("r.json", content), "openai_responses")
        assert [(step.call_id, step.status) for step in run.steps] == [(f"c{n}", "no_result") for n in (1, 2, 3)]
        assert run.records == 3


def test_a_batch(write):
    def entry(number):
        return {
            "id": f"batch_req_{number}",
            "custom_id": f"task-{number}",
            "response": {"status_code": 200, "request_id": "x", "body": response(number, FIRST)},
            "error": None,
        }

    runs, rejects = read(write("r.jsonl", [entry(1), entry(2)]), "openai_responses")
    assert ([(run.task_key, len(run.steps), run.model) for run in runs], rejects) == (
        [("task-1", 2, "m-1"), ("task-2", 2, "m-1")],
        [],
    )


def events():
    bare = {**response(1, []), "usage": None, "status": "in_progress"}
    found = [{"type": "response.created", "response": bare}, {"type": "response.in_progress", "response": bare}]
    for place, item in enumerate(FIRST):
        found.append({"type": "response.output_item.added", "output_index": place, "item": {**item, "arguments": ""}})
        found.append({"type": "response.function_call_arguments.delta", "delta": "{"})
        found.append({"type": "response.output_item.done", "output_index": place, "item": item})
    return [*found, {"type": "response.completed", "response": response(1, FIRST)}]


def test_a_stream_counts_its_items_once(write):
    path = write("r.jsonl", [*events(), *events()[:-1]])
    (run, cut), rejects = read(path, "openai_responses")
    assert rejects == []
    assert [(step.call_id, step.arguments_status) for step in run.steps] == [("c1", "parsed"), ("c2", "parsed")]
    assert (run.records, run.usage.input_tokens, run.metadata["status"]) == (len(events()), 10, "completed")
    # The second one broke off: what was done is kept.
    assert [step.call_id for step in cut.steps] == ["c1", "c2"]
    assert (cut.records, cut.usage, cut.metadata["status"]) == (len(events()) - 1, None, "cut off")


# Kinds of calls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (
            [{"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"}],
            ("patch", "c1", None, None, "no_result", "none"),
        ),
        (
            [call("f", "c1", "{'a': 1}"), {**output("c1", "Error: no"), "status": "completed"}],
            ("f", "c1", {"a": 1}, "Error: no", "error", "text_rule"),
        ),
        (
            [call("f", "c1"), output("c1", [{"type": "input_text", "text": "a"}, {"type": "input_image"}])],
            ("f", "c1", {}, "a\n[image]", "ok", "result"),
        ),
        (
            [{"type": "mcp_call", "id": "m1", "name": "get", "arguments": "{}", "output": None, "error": "gone"}],
            ("get", "m1", {}, "gone", "error", "flag"),
        ),
        (
            [{"type": "mcp_call", "id": "m1", "name": "get", "arguments": "{}", "output": "x", "error": None}],
            ("get", "m1", {}, "x", "ok", "result"),
        ),
        (
            [{"type": "web_search_call", "id": "w1", "status": "failed", "action": {"query": "q"}}],
            ("web_search", "w1", {"query": "q"}, None, "error", "flag"),
        ),
        (
            [{"type": "mcp_approval_request", "id": "a1", "name": "rm", "arguments": "{}"}],
            ("rm", "a1", {}, None, "no_result", "none"),
        ),
        (
            [
                {"type": "mcp_approval_request", "id": "a1", "name": "rm", "arguments": "{}"},
                {"type": "mcp_approval_response", "approval_request_id": "a1", "approve": False, "reason": "No."},
            ],
            ("rm", "a1", {}, "No.", "error", "flag"),
        ),
        (
            [
                {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
                {
                    "type": "shell_call_output",
                    "call_id": "c1",
                    "output": [{"stdout": "", "stderr": "no", "outcome": {"type": "exit", "exit_code": 2}}],
                },
            ],
            ("shell", "c1", {"commands": ["ls"]}, ..., "error", "exit_code"),
        ),
        (
            [
                {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
                {"type": "shell_call_output", "call_id": "c1", "output": [{"outcome": {"type": "timeout"}}]},
            ],
            ("shell", "c1", {"commands": ["ls"]}, ..., "error", "flag"),
        ),
        (
            [
                {"type": "computer_call", "call_id": "c1", "action": {"type": "click", "x": 1}},
                {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot"}},
            ],
            ("computer_call", "c1", {"type": "click", "x": 1}, "[image]", "ok", "result"),
        ),
    ],
)
def test_kinds_of_calls(write, items, expected):
    (step,) = read_one(write("r.json", json.dumps([USER, *items])), "openai_responses").steps
    found = brief(step)
    assert found == tuple(mine if told is ... else told for told, mine in zip(expected, found, strict=True))


def test_ids_that_come_again_in_one_list(write):
    items = [USER, call("a", "c"), output("c", "1"), call("b", "c"), output("c", "2"), call("c", "c")]
    run = read_one(write("r.json", json.dumps(items)), "openai_responses")
    assert [(step.tool, step.result) for step in run.steps] == [("a", "1"), ("b", "2"), ("c", None)]


# Damage --------------------------------------------------------------------------------------------------


def test_broken_lines_cost_themselves_only(write):
    text = [json.dumps(one, ensure_ascii=False) for one in ITEMS]
    text[4] = text[4][:-4]
    text.insert(6, '{"type": "something_new", "what": 1}')
    text.append('{"type": "function_call", "na')
    runs, rejects = read(write("r.jsonl", "\n".join(text)), "openai_responses")
    assert [reject.place for reject in rejects] == ["line 5", "line 10"]
    (run,) = runs
    assert [(step.call_id, step.status) for step in run.steps] == [
        ("c1", "ok"),
        ("c2", "no_result"),
        ("c3", "no_result"),
    ]
    assert run.records + 2 == len(text)


def test_a_cut_list_gives_the_items_before_the_cut(write):
    text = json.dumps(ITEMS)
    runs, rejects = read(write("r.json", text[: text.index('"book"')]), "openai_responses")
    ((run,), (reject,)) = runs, rejects
    assert [(step.call_id, step.result) for step in run.steps] == [("c1", "晴れ"), ("c2", "雨")]
    assert (run.records, reject.records) == (1, 0)


def test_what_holds_no_items_is_a_reject(write):
    content = [response(1, FIRST), {"object": "response", "id": "resp_2", "output": []}, 7, ["x"]]
    runs, rejects = read(write("r.jsonl", content), "openai_responses")
    assert (len(runs), [reject.place for reject in rejects]) == (1, ["line 2", "line 3", "line 4 [0]"])


# Telling ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        [{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "x"}], "usage": {}}],
        {"type": "item.completed", "item": {"type": "reasoning", "text": "x"}},
        {"input": "x", "output": "y"},
    ],
)
def test_what_is_not_told_as_responses(value):
    assert READERS["openai_responses"].sniff(json.dumps(value).encode(), "x") == 0.0


def test_the_longest_history_that_fits_is_the_one():
    histories = Histories()
    histories.stands("a", ["q"])
    histories.stands("b", ["q", "x", "y"])
    assert histories.find(["q", "x", "y", "z"]) == ("b", 3)
    assert histories.find(["q", "x"]) == ("a", 1)
    histories.stands("a", ["q", "z"])
    assert histories.find(["q", "x"]) is None
    assert histories.find([]) is None
