"""Anthropic managed agents: a real session against a plain look at its events, and made ones of every layout."""

import datetime as dt
import json

import pytest
from trace_tools import brief, read, read_one

from poc.ingest import import_logs
from poc.ingest.readers import READERS
from poc.trajectory import Usage

# Real file -----------------------------------------------------------------------------------------------


def test_a_real_session(shared_log):
    path = shared_log("anthropic_managed_agents/anthropic_managed_mcp_tools_reject.jsonl")
    pairs = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    events = [event for method, event in pairs if method.endswith("stream")]
    run = read_one(path, "anthropic_managed")
    calls = [event for event in events if event["type"] in ("agent.tool_use", "agent.mcp_tool_use")]
    answers = {
        event.get("tool_use_id") or event["mcp_tool_use_id"]: event
        for event in events
        if "tool_result" in event["type"]
    }
    assert len(calls) == 2
    assert [(step.tool, step.call_id) for step in run.steps] == [(event["name"], event["id"]) for event in calls]
    for step, event in zip(run.steps, calls, strict=True):
        answer = answers[event["id"]]
        (block,) = answer["content"]
        assert json.loads(step.arguments_json) == event["input"]
        assert step.result == (block["text"] if block["type"] == "text" else block["source"]["data"])
        assert (step.status, step.status_evidence) == ("error" if answer["is_error"] else "ok", "flag")
        times = [dt.datetime.fromisoformat(one["processed_at"]) for one in (event, answer)]
        assert [step.started_at, step.ended_at] == times
    assert [(step.turn, step.ordinal) for step in run.steps] == [(0, 0), (1, 0)]
    spent = [event["model_usage"] for event in events if event["type"] == "span.model_request_end"]
    cached = sum(usage["cache_read_input_tokens"] for usage in spent)
    assert run.usage == Usage(
        input_tokens=sum(usage["input_tokens"] + usage["cache_creation_input_tokens"] for usage in spent) + cached,
        output_tokens=sum(usage["output_tokens"] for usage in spent),
        cached_tokens=cached,
    )
    session = pairs[0][1]
    assert (run.native_id, run.native_id_is_global, run.records) == (session["id"], True, len(pairs))
    assert (run.model, run.outcome, run.zone_in_log) == (session["agent"]["model"]["id"], None, True)
    sent = pairs[1][1][1]["events"][0]["content"][0]["text"]
    assert (run.task_text, [m.content for m in run.messages].count(sent)) == (sent, 1)  # sent, and streamed back
    assert [m.content for m in run.messages if m.role == "assistant"] == [
        event["content"][0]["text"] for event in events if event["type"] == "agent.message"
    ]


# Made sessions -------------------------------------------------------------------------------------------

SESSION = "sesn_014fc5Q6rWwrXD3vWBfPRUes"
AGENT = {
    "id": SESSION,
    "type": "session",
    "created_at": "2026-02-03T04:05:00Z",
    "title": "Desk",
    "agent": {
        "name": "Helper",
        "model": {"id": "m-1"},
        "system": "Be brief.",
        "tools": [
            {"type": "agent_toolset_20260401"},
            {"type": "custom", "name": "look", "description": "Look.", "input_schema": {"type": "object"}},
        ],
    },
    "usage": {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0},
}


def event(number, kind, **more):
    return {"id": f"sevt_{number}", "type": kind, "processed_at": f"2026-02-03T04:05:{number:02d}.000000Z", **more}


def words(text):
    return {"content": [{"type": "text", "text": text}]}


def spent(read, written, cached, stored=0):
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return {"model_usage": dict(zip(names, (read, written, cached, stored), strict=True))}


def events():
    return [
        event(1, "user.message", **words("天気は?")),
        event(2, "span.model_request_start"),
        event(3, "agent.message", **words("見ます")),
        event(3, "agent.custom_tool_use", name="look", input={"city": "東京"})
        | {"id": "c1", "processed_at": "2026-02-03T04:05:03.5Z"},
        event(4, "agent.tool_use", name="bash", input={"command": "rm"}) | {"id": "c2"},
        event(4, "agent.mcp_tool_use", name="find", input={}, mcp_server_name="x") | {"id": "c3"},
        event(5, "span.model_request_end", **spent(2, 50, 100, 7)),
        event(6, "session.status_idle", stop_reason={"type": "requires_action"}),
        event(7, "user.tool_confirmation", tool_use_id="c2", result="deny", deny_message="No."),
        event(8, "user.custom_tool_result", custom_tool_use_id="c1", is_error=False, **words("晴れ")),
        event(9, "agent.mcp_tool_result", mcp_tool_use_id="c3", is_error=True, **words("gone")),
        event(10, "span.model_request_start"),
        event(11, "agent.tool_use", name="bash", input={"command": "ls"}) | {"id": "c4"},
        event(12, "span.model_request_end", **spent(3, 20, 200)),
        event(13, "session.status_of_tomorrow"),
        event(14, "session.status_idle", stop_reason={"type": "end_turn"}),
    ]


def as_pairs():
    """What a client sent and got: its own events once without and once with an id."""
    found = [["client.beta.sessions.create", AGENT]]
    for one in events():
        if one["type"].startswith("user."):
            bare = {key: value for key, value in one.items() if key not in ("id", "processed_at", "is_error")}
            found.append(["client.beta.sessions.events.send", [SESSION, {"events": [bare]}]])
        found.append(["client.beta.sessions.events.stream", one])
    return found


LAYOUTS = {
    "pairs": (as_pairs(), 20),
    "lines": ([AGENT, *events()], 17),
    "a list": (json.dumps([AGENT, *events()]), 17),
    "pages, newest first": ([AGENT, {"data": events()[::-1]}], 2),
    "a page by session": ([{"session_id": SESSION, "events": events()}], 1),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_session_in_every_layout(write, workspace, name):
    content, records = LAYOUTS[name]
    path = write("m.jsonl", content)
    run = read_one(path, "anthropic_managed")
    assert [brief(step) for step in run.steps] == [
        ("look", "c1", {"city": "東京"}, "晴れ", "ok", "flag"),
        ("bash", "c2", {"command": "rm"}, "No.", "error", "flag"),
        ("find", "c3", {}, "gone", "error", "flag"),
        ("bash", "c4", {"command": "ls"}, None, "no_result", "none"),
    ]
    assert [(step.turn, step.ordinal) for step in run.steps] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert [step.duration_s for step in run.steps] == [4.5, None, 5.0, None]
    assert run.usage == Usage(input_tokens=312, output_tokens=70, cached_tokens=300)
    assert (run.native_id, run.records, run.task_text) == (SESSION, records, "天気は?")
    assert run.metadata["stop_reason"] == "end_turn"
    if name != "a page by session":
        assert (run.model, [tool.name for tool in run.tools]) == ("m-1", ["look"])
        assert (run.metadata["agent"], run.messages[0].content) == ("Helper", "Be brief.")
    assert [message.content for message in run.messages].count("天気は?") == 1
    told = import_logs(workspace, path)
    assert (told.read, told.imported, told.rejected, told.steps) == (records, records, 0, 4)


def test_what_was_sent_and_never_came_back_is_kept(write):
    pairs = [pair for pair in as_pairs() if pair[1] != events()[9]]
    run = read_one(write("m.jsonl", pairs), "anthropic_managed")
    assert (run.steps[0].result, run.steps[0].status, run.steps[0].ended_at) == ("晴れ", "ok", None)


def test_a_result_of_a_denied_call_is_the_streams_own(write):
    answer = event(8, "agent.tool_result", tool_use_id="c2", is_error=True, **words("rejected: No."))
    run = read_one(write("m.jsonl", [AGENT, *events()[:9], answer, *events()[9:]]), "anthropic_managed")
    assert (run.steps[1].result, run.steps[1].status) == ("rejected: No.", "error")


@pytest.mark.parametrize(
    ("results", "value"),
    [
        (["needs_revision", "satisfied"], 1.0),
        (["needs_revision"], 0.0),
        (["max_iterations_reached"], 0.0),
        (["needs_revision", "failed"], None),
        (["interrupted"], None),
    ],
)
def test_the_verdict_of_a_grader_is_the_outcome(write, results, value):
    goal = event(0, "user.define_outcome", description="Write it.", rubric={"type": "text", "content": "x"})
    verdicts = [
        event(20 + number, "span.outcome_evaluation_end", result=result, explanation=f"why {number}", iteration=number)
        for number, result in enumerate(results)
    ]
    run = read_one(write("m.jsonl", [AGENT, goal, *events()[1:], *verdicts]), "anthropic_managed")
    assert run.task_text == "Write it."
    if value is None:
        assert run.outcome is None
    else:
        assert (run.outcome.value, run.outcome.provenance, run.outcome.detail) == (
            value,
            "log:outcome_evaluation",
            f"why {len(results) - 1}",
        )


def test_subagents_have_threads_of_their_own(write):
    below = {"session_thread_id": "sthr_2"}
    lines = [
        AGENT,
        *events()[:4],
        event(20, "session.thread_created", agent_name="Finder", **below),
        event(21, "span.model_request_start", **below),
        event(22, "agent.tool_use", name="grep", input={}, **below),
        event(23, "span.model_request_end", **spent(1, 1, 0), **below),
        *events()[4:7],
        event(24, "agent.tool_use", name="top", input={}, session_thread_id="sthr_1"),
    ]
    run = read_one(write("m.jsonl", lines), "anthropic_managed")
    assert [(step.tool, step.caller, step.turn) for step in run.steps] == [
        ("look", "agent", 0),
        ("grep", "subagent", 1),
        ("bash", "agent", 0),
        ("find", "agent", 0),
        ("top", "agent", 0),
    ]
    assert run.metadata["subagents"] == ["Finder"]
    assert run.usage == Usage(input_tokens=110, output_tokens=51, cached_tokens=100)


def test_the_sessions_own_totals_where_no_request_says_what_it_took(write):
    totals = {**AGENT, "usage": {"input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 40}}
    lines = [AGENT, *(one for one in events() if "model_request" not in one["type"]), totals]
    run = read_one(write("m.jsonl", lines), "anthropic_managed")
    assert run.usage == Usage(input_tokens=45, output_tokens=9, cached_tokens=40)
    assert [message.role for message in run.messages].count("system") == 1


def test_two_sessions_in_one_file(write):
    other = {"session_id": "sesn_2"}
    mixed = [
        one
        for pair in zip(events(), events(), strict=True)
        for one in ({**pair[0], "session_id": SESSION}, {**pair[1], **other})
    ]
    runs, rejects = read(write("m.jsonl", mixed), "anthropic_managed")
    assert rejects == []
    assert [(run.native_id, len(run.steps), run.records) for run in runs] == [(SESSION, 4, 16), ("sesn_2", 4, 16)]


def test_broken_lines_cost_themselves_only(write):
    text = [json.dumps(pair, ensure_ascii=False) for pair in as_pairs()]
    text[3] = text[3][:-9]
    text.insert(5, "noise")
    text.insert(6, '["a method alone"]')
    text.insert(7, '{"no": "type"}')
    text[-1] = text[-1][:-1]
    runs, rejects = read(write("m.jsonl", "\n".join(text)), "anthropic_managed")
    assert [reject.place for reject in rejects] == ["line 4", "line 6", "line 7", "line 8", f"line {len(text)}"]
    (run,) = runs
    assert run.records + 5 == len(text)
    assert [(step.call_id, step.status) for step in run.steps] == [
        ("c1", "ok"),
        ("c2", "error"),
        ("c3", "error"),
        ("c4", "no_result"),
    ]


@pytest.mark.parametrize(
    "value", [{"type": "session.created", "id": 1}, ["a", {"type": "message", "id": "x"}], [["a"]]]
)
def test_what_is_not_told_as_a_session(value):
    assert READERS["anthropic_managed"].sniff(json.dumps(value).encode(), "x") == 0.0
