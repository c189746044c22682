"""Chat logs: every wrapper, real files against counts made without the reader, arguments, roles, times."""

import json
import re
from collections import Counter

import pytest

from poc.ingest import import_logs, iter_runs, load_run
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run


def read(path, format_name=None):
    source = Source(path)
    found = detect(source, format=format_name)
    items = list(found.reader.read(source))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def chat(arguments='{"a": 1}', result="fine", call_id="c1"):
    call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}
    return [
        {"role": "user", "content": "please look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
        {"role": "assistant", "content": "done"},
    ]


# Real files -----------------------------------------------------------------------------------------------


def plain_counts(messages):
    """Calls and error texts of a message list, counted without any of our code."""
    calls = sum(len(m.get("tool_calls") or []) for m in messages)
    errors = sum(m["role"] == "tool" and bool(re.match(r"Error", m["content"] or "")) for m in messages)
    return calls, errors


def test_taubench_airline(workspace, shared_log):
    path = shared_log("openai_chat/taubench_gpt-4o-airline.json")
    raw = json.loads(path.read_text())
    counts = [plain_counts(record["traj"]) for record in raw]
    assert (len(raw), sum(c for c, _ in counts), sum(e for _, e in counts)) == (200, 1164, 73)
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected, result.skipped) == (200, 200, 0, 0)
    assert (result.runs, result.steps) == (200, 1164)
    assert result.messages == sum(len(record["traj"]) for record in raw)
    assert workspace.value("SELECT count(*) FROM outcomes WHERE outcome = 1") == 84
    assert workspace.rows("SELECT status, status_evidence AS e, count(*) AS n FROM steps GROUP BY ALL ORDER BY n") == [
        {"status": "error", "e": "text_rule", "n": 73},
        {"status": "ok", "e": "result", "n": 1091},
    ]
    # Every call has the very next tool message as its result: calls never overlap in this file.
    expected = [m["content"] for record in raw for m in record["traj"] if m["role"] == "tool"]
    rows = workspace.rows("SELECT result FROM steps JOIN runs USING (run_id) ORDER BY native_id, step")
    assert Counter(row["result"] for row in rows) == Counter(expected)
    for native, run in ((run.native_id, run) for _, run in iter_runs(workspace, where="native_id IN ('3/1', '42/0')")):
        record = next(r for r in raw if f"{r['task_id']}/{r['trial']}" == native)
        tools = [m for m in record["traj"] if m["role"] == "tool"]
        assert [step.result for step in run.steps] == [m["content"] for m in tools]
        assert [message.content for message in run.messages] == [m["content"] for m in record["traj"]]


def test_taubench_tasks_scenario_and_reference(workspace, shared_log):
    path = shared_log("openai_chat/taubench_gpt-4o-airline.json")
    raw = json.loads(path.read_text())
    import_logs(workspace, path)
    tasks = {row["task_key"]: row for row in workspace.rows("SELECT * FROM tasks")}
    assert len(tasks) == len({record["task_id"] for record in raw}) == 50
    for record in raw:
        task = tasks[str(record["task_id"])]
        assert task["scenario"] == record["info"]["task"]["instruction"]
        reference = [(call["tool"], call["arguments"]) for call in json.loads(task["reference"])]
        assert reference == [(a["name"], a["kwargs"]) for a in record["info"]["task"]["actions"]]
    firsts = {
        next(m["content"] for m in record["traj"] if m["role"] == "user") for record in raw if record["task_id"] == 7
    }
    assert tasks["7"]["text"] in firsts


def test_a_task_is_the_same_in_another_file_of_the_benchmark(workspace, shared_log):
    import_logs(workspace, shared_log("openai_chat/taubench_gpt-4o-airline.json"))
    result = import_logs(workspace, shared_log("openai_chat/taubench_single_run_airline.json"))
    assert (result.runs, result.steps) == (1, 12)
    rows = workspace.rows(
        "SELECT count(*) AS runs FROM runs JOIN tasks USING (task_id) WHERE task_key = '0' GROUP BY task_id"
    )
    assert rows == [{"runs": 5}]
    assert workspace.value("SELECT count(*) FROM tasks") == 50


def test_constant_ids_are_paired_in_order(workspace, shared_log):
    path = shared_log("openai_chat/taubench_single_run_airline.json")
    raw = json.loads(path.read_text())
    calls = [call for m in raw["traj"] for call in m.get("tool_calls") or []]
    assert {call["id"] for call in calls} == {"0"}
    runs, _ = read(path)
    assert [step.result for step in runs[0].steps] == [m["content"] for m in raw["traj"] if m["role"] == "tool"]
    assert [json.loads(step.arguments_json) for step in runs[0].steps] == [c["function"]["arguments"] for c in calls]
    assert all(step.arguments_status == "parsed" for step in runs[0].steps)


def test_invariant_sample(workspace, shared_log):
    path = shared_log("openai_chat/invariant_sample_data.jsonl")
    raw = [json.loads(line) for line in path.read_text().splitlines()]
    calls = [sum(len(m.get("tool_calls") or []) for m in record["messages"]) for record in raw]
    assert calls == [1, 3, 2]
    runs, rejects = read(path)
    assert [len(run.steps) for run in runs] == calls
    assert not rejects
    assert "annotations" in runs[1].metadata
    # The first of two calls was left without a result; the one result belongs to the second.
    assert [step.status for step in runs[2].steps] == ["no_result", "ok"]
    assert runs[2].steps[0].result is None


def test_invariant_webarena(shared_log):
    path = shared_log("openai_chat/invariant_webarena.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    runs, rejects = read(path)
    assert len(runs) == len(lines) - 1 == 2
    assert not rejects
    assert [len(run.steps) for run in runs] == [2, 7]
    assert runs[0].metadata["file"] == lines[0]
    assert [run.place for run in runs] == ["line 2", "line 3"]
    # The first observation answers no call: it stays a message. The last call has no answer.
    assert runs[0].messages[1].content == lines[1][1]["content"]
    assert [step.status for step in runs[0].steps] == ["ok", "no_result"]


def test_sap_list_of_lists(shared_log):
    path = shared_log("openai_chat/sap_single_trace_toolsandbox.json")
    raw = json.loads(path.read_text())
    runs, rejects = read(path)
    assert (len(runs), [len(run.messages) for run in runs]) == (2, [len(messages) for messages in raw])
    assert ([len(run.steps) for run in runs], rejects) == ([2, 0], [])
    assert runs[0].steps[0].result == "1711098000.0"


@pytest.mark.parametrize(
    ("name", "runs", "steps", "solved"),
    [("tau2_20260531-184109.json", 10, 15, 8), ("tau2_airline_gpt-4.1-mini_20260601-033543.json", 5, 27, 1)],
)
def test_tau2(workspace, shared_log, name, runs, steps, solved):
    path = shared_log(f"tau2/{name}")
    raw = json.loads(path.read_text())
    by_user = sum(
        call["requestor"] == "user"
        for simulation in raw["simulations"]
        for message in simulation["messages"]
        for call in message.get("tool_calls") or []
    )
    result = import_logs(workspace, path)
    assert (result.runs, result.steps, result.rejected) == (runs, steps, 0)
    assert workspace.value("SELECT count(*) FROM outcomes WHERE outcome = 1") == solved
    assert workspace.value("SELECT count(*) FROM steps WHERE caller = 'user'") == by_user
    first = raw["simulations"][0]
    run = load_run(workspace, workspace.value("SELECT run_id FROM runs WHERE native_id = ?", [first["id"]]))
    assert run.model == raw["info"]["agent_info"]["llm"]
    assert run.zone_in_log is False
    assert run.started_at.replace(tzinfo=None).isoformat() == first["start_time"]
    assert run.duration_s == first["duration"]
    agent = [m["usage"] for m in first["messages"] if m["role"] == "assistant" and m["usage"]]
    assert run.usage.input_tokens == sum(usage["prompt_tokens"] for usage in agent)
    assert run.cost_usd == first["agent_cost"]
    actions = raw["tasks"][0]["evaluation_criteria"]["actions"] or []
    assert [call.tool for call in run.reference or []] == [a["name"] for a in actions if a["requestor"] != "user"]
    assert run.scenario
    # The tool that only the simulated user called is none of the agent's tools.
    only_user = workspace.rows("SELECT tool FROM steps GROUP BY tool HAVING bool_and(caller = 'user')")
    assert not {row["tool"] for row in only_user} & {row["tool"] for row in workspace.rows("SELECT tool FROM tools")}


def test_tau2_cached_tokens_come_from_the_provider(shared_log):
    path = shared_log("tau2/tau2_airline_gpt-4.1-mini_20260601-033543.json")
    raw = json.loads(path.read_text())["simulations"][1]["messages"]
    expected = sum(
        m["raw_data"]["usage"]["prompt_tokens_details"]["cached_tokens"]
        for m in raw
        if m["role"] == "assistant" and m["usage"]
    )
    runs, _ = read(path)
    assert runs[1].usage.cached_tokens == expected > 0


def test_parallel_calls_of_one_turn(shared_log):
    runs, _ = read(shared_log("tau2/tau2_airline_gpt-4.1-mini_20260601-033543.json"))
    turns = Counter(step.turn for step in runs[1].steps)
    assert sorted(turns.values()) == [1, 1, 5]
    assert [step.ordinal for step in runs[1].steps if turns[step.turn] == 5] == [0, 1, 2, 3, 4]


def test_voice_simulation_is_rejected_with_its_reason(workspace, shared_log):
    result = import_logs(workspace, shared_log("tau2/tau2_voice_ticks_49b22f0c.json"))
    assert (result.read, result.rejected, result.runs) == (1, 1, 0)
    reject = workspace.rows("SELECT * FROM rejects")[0]
    assert "973 audio ticks" in reject["reason"]


# Wrappers -------------------------------------------------------------------------------------------------

LIST = chat()
WRAPPERS = {
    "a bare list": (json.dumps(LIST), 1),
    "a bare list, pretty": (json.dumps(LIST, indent=2), 1),
    "a list of lists": (json.dumps([LIST, LIST]), 2),
    "JSONL of bare lists": ("\n".join([json.dumps(LIST)] * 3), 3),
    "JSONL of messages objects": ("\n".join([json.dumps({"messages": LIST})] * 3), 3),
    "JSONL with CRLF and blank lines": ("\r\n\r\n".join([json.dumps({"messages": LIST})] * 3) + "\r\n", 3),
    "one object": (json.dumps({"messages": LIST}), 1),
    "one object, pretty": (json.dumps({"messages": LIST}, indent=1), 1),
    "a list of objects": (json.dumps([{"messages": LIST}] * 2), 2),
    "concatenated pretty objects": ("\n".join([json.dumps({"messages": LIST}, indent=2)] * 3), 3),
    "tau-bench": (json.dumps([{"task_id": 1, "trial": t, "reward": 1, "traj": LIST} for t in range(2)], indent=2), 2),
    "tau-bench lines": ("\n".join(json.dumps({"task_id": 1, "trial": t, "traj": LIST}) for t in range(2)), 2),
    "metadata first": ("\n".join([json.dumps({"metadata": {"a": 1}}), json.dumps(LIST), json.dumps(LIST)]), 2),
    "an object with runs": (json.dumps({"runs": [{"messages": LIST}, {"messages": LIST}]}), 2),
    "a message a line": ("\n".join(json.dumps(message) for message in LIST), 1),
    "a byte-order mark": ("\ufeff" + json.dumps(LIST), 1),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrappers(write, wrapper):
    text, count = WRAPPERS[wrapper]
    runs, rejects = read(write("log.anything", text))
    assert rejects == []
    assert len(runs) == count
    for run in runs:
        assert [message.role for message in run.messages] == ["user", "assistant", "tool", "assistant"]
        step = run.steps[0]
        assert (step.tool, step.call_id, step.result, step.status) == ("look", "c1", "fine", "ok")
        assert run.task_text == "please look"
        # The text of a result is kept once.
        assert run.messages[2].content is None
        assert (step.message_seq, step.result_seq) == (1, 2)


def test_single_messages_count_a_record_each(workspace, write):
    result = import_logs(workspace, write("log.jsonl", LIST))
    assert (result.read, result.imported, result.runs) == (4, 4, 1)


def test_what_a_run_object_says(write):
    record = {
        "id": "0b0f7a52-54a4-4f0c-8c9e-3c2f2a1d9b11",
        "task_id": "t1",
        "trial": 2,
        "category": "refund",
        "model": "m-1",
        "success": True,
        "start_time": "2025-01-02T03:04:05+09:00",
        "end_time": "2025-01-02T03:04:15+09:00",
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}},
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}
        ],
        "customer": "C-1",
        "messages": LIST,
    }
    (run,), _ = read(write("log.jsonl", [record]))
    assert run.native_id_is_global
    assert (run.task_key, run.trial, run.category, run.model) == ("t1", "2", "refund", "m-1")
    assert (run.outcome.value, run.outcome.provenance) == (1.0, "log:success")
    assert (run.duration_s, run.zone_in_log) == (10.0, True)
    assert run.started_at.isoformat() == "2025-01-01T18:04:05+00:00"
    assert (run.usage.input_tokens, run.usage.cached_tokens, run.usage.reasoning_tokens) == (10, 3, None)
    assert (run.tools[0].name, run.tools[0].origin) == ("look", "logged")
    assert run.metadata == {"customer": "C-1"}


def test_nothing_is_invented(write):
    (run,), _ = read(write("log.json", json.dumps(LIST)))
    for field in ("native_id", "task_key", "trial", "category", "model", "framework", "outcome", "usage", "started_at"):
        assert getattr(run, field) is None
    assert run.zone_in_log is None
    assert run.steps[0].started_at is None
    assert run.steps[0].duration_s is None


def test_an_outcome_out_of_range_is_no_outcome(write):
    (run,), _ = read(write("log.jsonl", [{"reward": 7.5, "messages": LIST}]))
    assert run.outcome is None
    assert run.metadata["reward"] == 7.5


# Calls ----------------------------------------------------------------------------------------------------


def test_legacy_function_call(write):
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "look", "content": "Error: no"},
    ]
    (run,), _ = read(write("log.json", json.dumps(messages)))
    step = run.steps[0]
    assert (step.tool, step.call_id, step.status, step.status_evidence) == ("look", None, "error", "text_rule")
    assert run.messages[2].role == "tool"


@pytest.mark.parametrize(
    ("logged", "raw", "value", "status"),
    [
        ({"a": 1.0}, None, {"a": 1.0}, "parsed"),
        ('{"a": 1}', '{"a": 1}', {"a": 1}, "parsed"),
        ('"{\\"a\\": 1}"', '"{\\"a\\": 1}"', {"a": 1}, "repaired"),
        ("{'a': None, 'b': True}", "{'a': None, 'b': True}", {"a": None, "b": True}, "repaired"),
        ("*** Begin Patch", "*** Begin Patch", None, "unparsed"),
        ('{"a": 1', '{"a": 1', None, "unparsed"),
        ("", "", None, "absent"),
        (None, None, None, "absent"),
    ],
)
def test_arguments(write, logged, raw, value, status):
    (run,), _ = read(write("log.json", json.dumps(chat(arguments=logged))))
    step = run.steps[0]
    assert step.arguments_status == status
    if raw is not None or status == "absent":
        assert step.arguments_raw == raw
    assert (json.loads(step.arguments_json) if step.arguments_json else None) == value


def test_numbers_keep_every_digit(workspace, write):
    text = '{"big": 123456789012345678901234567890, "one": 1.0, "small": 0.1000000000000000055}'
    body = json.dumps(chat()).replace(json.dumps('{"a": 1}'), text)
    import_logs(workspace, write("log.json", body))
    assert workspace.value("SELECT arguments::VARCHAR FROM steps") == text


def test_a_call_without_a_name_is_kept(write):
    messages = chat()
    del messages[1]["tool_calls"][0]["function"]["name"]
    (run,), _ = read(write("log.json", json.dumps(messages)))
    assert run.steps[0].tool == "(unnamed)"


def test_content_parts(write):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    messages = chat(result=[{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])
    messages[0]["content"] = [{"type": "text", "text": "look at"}, picture]
    (run,), _ = read(write("log.json", json.dumps(messages)))
    assert run.steps[0].result == "one\ntwo"
    first, second = run.messages[0].content.split("\n")
    assert (first, json.loads(second)) == ("look at", picture)


def test_an_empty_result_is_an_answer_and_no_result_is_none(write):
    empty, absent = chat(result=""), chat()[:2]
    null = chat(result=None)
    runs, _ = read(write("log.json", json.dumps([empty, null, absent])))
    assert [(s.result, s.status, s.status_evidence) for run in runs for s in run.steps] == [
        ("", "ok", "result"),
        (None, "ok", "result"),
        (None, "no_result", "none"),
    ]


def test_flags_on_the_message_win(write):
    messages = chat(result="Error: but it was expected")
    messages[2]["is_error"] = False
    (run,), _ = read(write("log.json", json.dumps(messages)))
    assert (run.steps[0].status, run.steps[0].status_evidence) == ("ok", "flag")


# Broken and hostile ---------------------------------------------------------------------------------------


def test_a_broken_line_is_one_reject_with_its_number(write):
    good = json.dumps({"messages": LIST})
    runs, rejects = read(write("log.jsonl", "\n".join([good, good[:40], "", good, "not json"])))
    assert [run.place for run in runs] == ["line 1", "line 4"]
    assert [reject.place for reject in rejects] == ["line 2", "line 5"]
    assert "broken JSON" in rejects[0].reason
    assert rejects[0].raw == good[:40]


def test_a_cut_document_keeps_what_came_before_the_break(write):
    text = json.dumps([{"task_id": n, "traj": LIST} for n in range(5)], indent=1)
    cut = text[: text.index('"task_id": 3') + 60]
    runs, rejects = read(write("log.json", cut))
    assert [run.task_key for run in runs] == ["0", "1", "2"]
    assert len(rejects) == 1
    assert "+" in rejects[0].place
    offset = int(rejects[0].place.rsplit("+", 1)[1])
    assert text[offset:].lstrip().startswith('{\n  "task_id": 3')


def test_a_malformed_element_does_not_take_the_others_along(write):
    text = json.dumps([{"task_id": n, "traj": LIST} for n in range(5)]).replace('"task_id": 2', '"task_id": 2 2')
    runs, rejects = read(write("log.json", text))
    assert [run.task_key for run in runs] == ["0", "1", "3", "4"]
    assert len(rejects) == 1


def test_a_cut_tau2_file_keeps_whole_simulations(write, shared_log):
    text = shared_log("tau2/tau2_20260531-184109.json").read_text()
    third = json.loads(text)["simulations"][2]["id"]
    runs, rejects = read(write("log.json", text[: text.index(third) + 2000]))
    assert len(runs) == 2
    assert sum(reject.records for reject in rejects) == 1
    assert all(run.scenario and run.model for run in runs)


@pytest.mark.parametrize(
    ("damage", "note", "expected"),
    [
        (lambda b: b.replace(b"fine", b"f\xffne"), "invalid UTF-8", "f\ufffdne"),
        (lambda b: b.replace(b"fine", b"f\\ud800ne"), "surrogate", "f\ufffdne"),
        (lambda b: b.replace(b'"fine"', b'"fine", "x": NaN'), "NaN", "fine"),
        (lambda b: b.replace(b"fine", b"fi\x01ne"), "control characters", "fi\x01ne"),
        (lambda b: b.replace(b'"fine"', b'"fine", "cost": 1e999'), "too large", "fine"),
    ],
)
def test_nearly_json_is_mended_and_says_so(workspace, write, damage, note, expected):
    good = json.dumps({"messages": LIST}).encode()
    path = write("log.jsonl", b"\n".join([good, damage(good), good]))
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected, result.runs) == (3, 3, 0, 3)
    (reject,) = workspace.rows("SELECT * FROM rejects")
    assert note in reject["reason"]
    assert (reject["place"], reject["records"]) == ("line 2", 0)
    texts = [
        row["result"] for row in workspace.rows("SELECT result FROM steps JOIN runs USING (run_id) ORDER BY place")
    ]
    assert texts == ["fine", expected, "fine"]


def test_deep_nesting_is_a_reject(write):
    good = json.dumps({"messages": LIST})
    deep = '{"messages": ' + "[" * 100_000 + "]" * 100_000 + "}"
    runs, rejects = read(write("log.jsonl", "\n".join([good, deep, good])))
    assert (len(runs), len(rejects)) == (2, 1)


def test_nul_characters_survive(workspace, write):
    import_logs(workspace, write("log.json", json.dumps(chat(result="a\x00b"))))
    assert workspace.value("SELECT result FROM steps") == "a\x00b"


@pytest.mark.parametrize(
    "value", [{"messages": []}, {"no": "messages"}, {"messages": "text"}, {"messages": [1, 2]}, 5, [], "text", None]
)
def test_what_is_no_run_is_a_reject_with_a_reason(write, value):
    good = {"messages": LIST}
    runs, rejects = read(write("log.jsonl", [good, good, value]))
    assert len(runs) == 2
    assert [reject.place.split(" [")[0] for reject in rejects] == ["line 3"]
    assert rejects[0].reason
