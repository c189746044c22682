"""Inspect: real logs against plain parsing, archives whole, packed, cut, damaged and hostile, and the events' share."""

import json
import struct
import zipfile
import zlib
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest

from poc.ingest import import_logs, load_run
from poc.ingest.detect import detect
from poc.ingest.readers import inspect_ai
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage

CTF = "inspect_ai/docent_intercode_ctf_gpt-4o.eval"
BLOCKS = "anthropic_messages/docent_ctf_inspect_with_anthropic_blocks.json"


def read(path):
    items = list(inspect_ai.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def plain_samples(path):
    if path.suffix == ".json":
        return json.loads(path.read_text())["samples"]
    with zipfile.ZipFile(path) as archive:
        return [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")]


def calls_in(messages):
    return [call for message in messages if message["role"] == "assistant" for call in message.get("tool_calls") or []]


@pytest.mark.parametrize(
    ("name", "runs", "calls", "told", "errors", "correct"),
    [
        (CTF, 15, 121, 120, 6, 9),
        (BLOCKS, 2, 11, 11, 0, 1),
        ("inspect_ai/scout_websearch-addition_sonnet-4-5.eval", 1, 0, 0, 0, 1),
        ("inspect_ai/inspect_log_tool_call_error.json", 1, 0, 11, 11, 0),
    ],
)
def test_real_logs_against_plain_parsing(workspace, shared_log, name, runs, calls, told, errors, correct):
    path = shared_log(name)
    samples = plain_samples(path)
    results = [message for sample in samples for message in sample["messages"] if message["role"] == "tool"]
    assert len(samples) == runs
    assert sum(len(calls_in(sample["messages"])) for sample in samples) == calls
    assert len(results) == told
    assert sum(bool(message.get("error")) for message in results) == errors
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected) == (runs, runs, 0)
    assert (result.runs, result.steps) == (runs, calls)
    values = Counter(score["value"] for sample in samples for score in (sample.get("scores") or {}).values())
    assert values["C"] == correct
    assert workspace.value("SELECT count(*) FROM runs WHERE outcome = 1.0") == correct
    assert workspace.value("SELECT count(*) FROM runs WHERE outcome = 0.0") == values["I"]


def test_calls_of_the_ctf_log(shared_log):
    path = shared_log(CTF)
    runs, rejects = read(path)
    assert rejects == []
    by_id = {str(sample["id"]): sample for sample in plain_samples(path)}
    assert Counter(step.status for run in runs for step in run.steps) == {"ok": 115, "error": 6}
    for run in runs:
        sample = by_id[run.task_key]
        asked = calls_in(sample["messages"])
        assert [(step.tool, step.call_id) for step in run.steps] == [(call["function"], call["id"]) for call in asked]
        assert [json.loads(step.arguments_json) for step in run.steps] == [call["arguments"] for call in asked]
        assert (run.model, run.trial, run.framework) == ("openai/gpt-4o", "1", "inspect_ai")
        assert run.category == "inspect_evals/luce_intercode_ctf"
        assert run.outcome is not None
        assert run.outcome.provenance == "log:scores.includes"
        spent = sample["model_usage"]["openai/gpt-4o"]
        assert run.usage == Usage(input_tokens=spent["input_tokens"], output_tokens=spent["output_tokens"])
        # Each answer's own tokens stand in its event; the calls that were answered add up to the sample's.
        said = [message.usage for message in run.messages if message.role == "assistant"]
        assert sum(usage.input_tokens for usage in said if usage) == spent["input_tokens"]
        assert {tool.name for tool in run.tools} == {"bash", "python", "submit"}
        assert run.zone_in_log is True
        assert all(step.started_at is not None and step.ended_at is None for step in run.steps)
        assert all(before.started_at <= after.started_at for before, after in pairwise(run.steps))
    assert {run.task_key for run in runs if "limit" in run.metadata} == {"56", "78", "86"}


def test_a_result_that_the_message_limit_kept_from_the_model_is_in_the_event(shared_log):
    """120 of 121 results were told to the model; the log holds the last one of sample 78 as well."""
    runs, _ = read(shared_log(CTF))
    (run,) = [run for run in runs if run.task_key == "78"]
    last = run.steps[-1]
    assert last.result == "oq}yWMEe}=:}~k#w-4/)`Uy/iI!|2*{<?(e\n"
    assert (last.status, last.status_evidence) == ("ok", "result")
    assert last.result_seq == len(run.messages) - 1


def test_errors_and_results_of_the_ctf_log(shared_log):
    runs, _ = read(shared_log(CTF))
    failed = [step for run in runs for step in run.steps if step.status == "error"]
    assert {step.status_evidence for step in failed} == {"error_field"}
    assert Counter(step.result.split(":")[0] for step in failed) == {
        "Command timed out before completing.": 5,
        "Error decoding bytes to utf-8": 1,
    }


def test_results_without_calls_stay_messages(shared_log):
    ((run,), rejects) = read(shared_log("inspect_ai/inspect_log_tool_call_error.json"))
    assert rejects == []
    assert [message.role for message in run.messages] == ["tool"] * 11
    assert {message.content for message in run.messages[:10]} == {"..."}
    assert run.outcome is None
    assert run.trial == "4"


# Made logs ------------------------------------------------------------------------------------------------

AT = "2026-01-01T10:00:{:02d}+00:00".format
EVAL = {"run_id": "R", "eval_id": "E", "task": "sums", "model": "openai/gpt-x", "dataset": {"name": "d"}}
HEADER = {"version": 2, "status": "success", "eval": EVAL}


def call(number, function="add", **arguments):
    return {"id": f"c{number}", "function": function, "arguments": arguments, "type": "function"}


def model_event(span, at, *calls, text="", ident=None):
    message = {"id": ident, "role": "assistant", "content": text, "tool_calls": list(calls)}
    usage = {
        "input_tokens": 10,
        "output_tokens": 3,
        "total_tokens": 17,
        "input_tokens_cache_read": 4,
        "reasoning_tokens": 1,
    }
    return {
        "event": "model",
        "span_id": span,
        "timestamp": AT(at),
        "completed": AT(at + 1),
        "tools": [{"name": "add", "description": "adds", "parameters": {"type": "object", "properties": {}}}],
        "output": {"model": "gpt-x-1", "choices": [{"message": message}], "usage": usage},
    }


def tool_event(span, at, number, **more):
    event = {"event": "tool", "span_id": span, "timestamp": AT(at), "id": f"c{number}", "function": "add"}
    return {**event, "arguments": {"x": number}, "result": "", **more}


def span(ident, kind, parent=None, name=None):
    return {"event": "span_begin", "id": ident, "parent_id": parent, "type": kind, "name": name or kind}


def sample(**more):
    messages = [
        {"id": "m1", "role": "user", "content": "add up", "source": "input"},
        {"id": "m2", "role": "assistant", "content": "so", "tool_calls": [call(1, x=1), call(2, "helper", q="?")]},
        {"id": "m3", "role": "tool", "tool_call_id": "c1", "function": "add", "content": "attachment://a1"},
        {"id": "m4", "role": "tool", "tool_call_id": "c2", "function": "helper", "content": "3"},
        {"id": "m5", "role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"}, {"text": "done"}]},
    ]
    return {
        "id": 7,
        "epoch": 2,
        "input": "add up",
        "target": "3",
        "messages": messages,
        "scores": {"match": {"value": "C", "answer": "3"}},
        "attachments": {"a1": "a long text", "a2": "long words"},
        **more,
    }


def eval_file(path, samples, *, header=HEADER, start=None, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        if start is not None:
            archive.writestr("_journal/start.json", json.dumps(start))
        for number, one in enumerate(samples, 1):
            body = one if isinstance(one, str | bytes) else json.dumps(one)
            archive.writestr(f"samples/{number}_epoch_1.json", body)
        if header is not None:
            archive.writestr("header.json", json.dumps(header))
    return path


def zip_by_hand(path, entries):
    """A zip of (name, method, packed, size, crc): what the library does not write."""
    body, listed = b"", b""
    for name, method, packed, size, crc in entries:
        fields = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0, crc, len(packed), size, len(name), 0)
        listed += struct.pack("<4sH", b"PK\x01\x02", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name
        body += b"PK\x03\x04" + fields + name + packed
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, len(entries), len(entries), len(listed), len(body), 0)
    path.write_bytes(body + listed + end)
    return path


def test_events_give_times_tokens_and_what_a_tool_started(tmp_path):
    events = [
        span("s", "solvers"),
        model_event("s", 1, call(1, x=1), call(2, "helper"), text="so", ident="m2"),
        tool_event("s", 2, 1, completed=AT(4)),
        span("t", "tool", "s", "helper"),
        tool_event("s", 5, 2, function="helper", completed=AT(12), result="3"),
        span("g", "agent", "t", "helper"),
        model_event("g", 6, call(3, x="attachment://a2"), text="inside", ident="n1"),
        tool_event("g", 8, 3, completed=AT(9), arguments={"x": "attachment://a2"}, error={"type": "timeout"}),
        model_event("s", 13, text="done", ident="m5"),
        span("j", "scorers"),
        model_event("j", 20, call(9), text="I am the judge", ident="j1"),
        tool_event("j", 21, 9, completed=AT(22)),
    ]
    usage = {"input_tokens": 50, "output_tokens": 12, "total_tokens": 82, "input_tokens_cache_read": 20}
    graded = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 17, "input_tokens_cache_read": 4}
    one = sample(events=events, model_usage={"m": usage}, role_usage={"grader": graded})
    ((run,), rejects) = read(eval_file(tmp_path / "log.eval", [one]))
    assert rejects == []
    assert [(s.tool, s.turn, s.ordinal, s.caller, s.status) for s in run.steps] == [
        ("add", 0, 0, "agent", "ok"),
        ("helper", 0, 1, "agent", "ok"),
        ("add", 1, 0, "subagent", "error"),
    ]
    assert [s.duration_s for s in run.steps] == [2.0, 7.0, 1.0]
    assert [s.result for s in run.steps] == ["a long text", "3", "timeout"]
    assert run.steps[2].arguments_json == '{"x":"long words"}'
    assert [(m.role, m.name, m.content) for m in run.messages if m.role == "assistant"] == [
        ("assistant", None, "so"),
        ("assistant", "helper", "inside"),
        ("assistant", None, "done"),
    ]
    assert run.messages[1].usage == Usage(input_tokens=14, output_tokens=3, cached_tokens=4, reasoning_tokens=1)
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens, run.usage.cached_tokens) == (56, 9, 16)
    assert [tool.name for tool in run.tools] == ["add"]
    assert (run.native_id, run.native_id_is_global, run.task_key, run.trial) == ("R/7/2", False, "7", "2")
    assert run.duration_s == 13.0
    assert run.metadata["eval"] == {"run_id": "R", "eval_id": "E", "dataset": "d"}


def test_calls_nested_in_the_events_of_a_tool(tmp_path):
    """As older versions wrote it: no spans, the inner events inside the tool's."""
    inner = [
        {"event": "subtask", "name": "s", "events": [tool_event(None, 3, 5, result="5", completed=AT(4))]},
        {"event": "step", "action": "begin", "type": "scorer"},
        tool_event(None, 4, 6, result="judged"),
        {"event": "step", "action": "end", "type": "scorer"},
    ]
    events = [tool_event(None, 1, 1, result="1"), tool_event(None, 2, 2, result="3", events=inner)]
    ((run,), _) = read(eval_file(tmp_path / "log.eval", [sample(events=events)]))
    assert [(s.call_id, s.caller) for s in run.steps] == [("c1", "agent"), ("c2", "agent"), ("c5", "subagent")]


def test_a_call_cut_by_a_limit_has_no_result(tmp_path):
    one = sample(events=[tool_event(None, 5, 2, function="helper", pending=True)])
    del one["messages"][3]
    one["limit"] = {"type": "time", "limit": 60}
    ((run,), _) = read(eval_file(tmp_path / "log.eval", [one]))
    assert [step.status for step in run.steps] == ["ok", "no_result"]
    assert run.metadata["limit"] == {"type": "time", "limit": 60}


def test_a_call_that_the_provider_ran_is_a_step(tmp_path):
    block = {
        "type": "tool_use",
        "tool_type": "web_search",
        "id": "w1",
        "name": "web_search",
        "arguments": '{"query": "x"}',
        "result": "found",
    }
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "yes"}]},
    ]
    ((run,), _) = read(eval_file(tmp_path / "log.eval", [sample(messages=messages)]))
    assert [(s.tool, s.call_id, s.arguments_json, s.result) for s in run.steps] == [
        ("web_search", "w1", '{"query": "x"}', "found")
    ]
    assert [m.content for m in run.messages if m.role == "assistant"] == ["yes"]


@pytest.mark.parametrize(
    ("scores", "value", "by"),
    [
        ({"match": {"value": "C"}}, 1.0, "match"),
        ({"match": {"value": "P"}}, 0.5, "match"),
        ({"match": {"value": "N"}}, 0.0, "match"),
        ({"match": {"value": 0.25}}, 0.25, "match"),
        ({"match": {"value": True}}, 1.0, "match"),
        ({"length": {"value": 812}, "match": {"value": "I"}}, 0.0, "match"),
        ({"all": {"value": {"words": 3, "correct": "C"}}}, 1.0, "all.correct"),
        ({"length": {"value": 812}}, None, None),
        ({"match": {"value": None}}, None, None),
        (None, None, None),
    ],
)
def test_scores(tmp_path, scores, value, by):
    ((run,), _) = read(eval_file(tmp_path / "log.eval", [sample(scores=scores)]))
    if value is None:
        assert run.outcome is None
    else:
        assert (run.outcome.value, run.outcome.provenance) == (value, f"log:scores.{by}")
    assert run.metadata.get("scores") == scores


def test_json_logs_and_single_samples(workspace, write):
    whole = write("whole.json", json.dumps({**HEADER, "samples": [sample(), sample(id=8)]}))
    single = write("single.json", json.dumps(sample(id=9), indent=2))
    result = import_logs(workspace, [whole, single])
    assert (result.runs, result.steps) == (3, 6)
    assert [source["format"] for source in result.sources] == ["inspect_ai"] * 2
    assert workspace.rows("SELECT task_key, text FROM tasks ORDER BY 1") == [
        {"task_key": key, "text": "add up"} for key in ("7", "8", "9")
    ]
    stored = load_run(workspace, workspace.value("SELECT run_id FROM runs WHERE native_id = 'R/8/2'"))
    assert [step.tool for step in stored.steps] == ["add", "helper"]


def test_json_cut_off_and_with_nan(write):
    text = json.dumps({**HEADER, "samples": [sample(scores={"match": {"value": float("nan")}}), sample(id=8)]})
    (runs, rejects) = read(write("cut.json", text[:-400]))
    assert [run.task_key for run in runs] == ["7"]
    assert [reject.records for reject in rejects] == [0, 1]
    assert "NaN" in rejects[0].reason
    assert ".samples +" in rejects[1].place


def test_a_log_without_samples_is_a_reject(write, tmp_path):
    for path in (
        write("none.json", json.dumps({**HEADER, "samples": None})),
        eval_file(tmp_path / "none.eval", []),
    ):
        (runs, rejects) = read(path)
        assert runs == []
        assert "no samples" in rejects[0].reason


def test_an_interrupted_log_is_described_by_its_journal(tmp_path):
    path = eval_file(tmp_path / "log.eval", [sample()], header=None, start={"version": 2, "eval": EVAL})
    assert detect(Source(path)).format == "inspect_ai"
    ((run,), rejects) = read(path)
    assert rejects == []
    assert (run.category, run.model, run.metadata["status"]) == ("sums", "openai/gpt-x", "interrupted")


def test_zstd_entries(tmp_path):
    entries = []
    for name, value in (("header.json", HEADER), ("samples/1_epoch_1.json", sample())):
        text = json.dumps(value).encode()
        packed = pa.compress(text, "zstd", asbytes=True)
        entries.append((name.encode(), 93, packed, len(text), zlib.crc32(text)))
    path = zip_by_hand(tmp_path / "log.eval", entries)
    ((run,), rejects) = read(path)
    assert rejects == []
    assert (run.category, len(run.steps)) == ("sums", 2)


def test_broken_entries_cost_only_themselves(tmp_path):
    good = json.dumps(sample()).encode()
    entries = [
        (b"samples/1_epoch_1.json", 0, good, len(good), zlib.crc32(good)),
        (b"samples/2_epoch_1.json", 0, good, len(good), 1),
        (b"samples/3_epoch_1.json", 93, b"no zstd", 20, 1),
        (b"samples/4_epoch_1.json", 8, b"\xff\xff", 20, 1),
        (b"samples/5_epoch_1.json", 12, b"bzip2", 20, 1),
        (b"samples/6_epoch_1.json", 0, b"{", 1, zlib.crc32(b"{")),
        (b"samples/7_epoch_1.json", 0, b'{"messages": 7}', 15, zlib.crc32(b'{"messages": 7}')),
    ]
    (runs, rejects) = read(zip_by_hand(tmp_path / "log.eval", entries))
    assert len(runs) == 1
    assert [reject.place for reject in rejects] == [f"samples/{n}_epoch_1.json" for n in range(2, 8)]
    for reject, words in zip(
        rejects, ("checksum", "damaged", "damaged", "method 12", "broken JSON", "not as this format"), strict=True
    ):
        assert words in reject.reason
        assert reject.records == 1


def test_an_archive_cut_off_gives_what_stands_before_the_cut(tmp_path):
    path = eval_file(tmp_path / "log.eval", [sample(), sample(id=8)], start={"eval": EVAL}, method=zipfile.ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"samples/2_epoch_1.json") + 100])
    (runs, rejects) = read(path)
    assert [(run.task_key, run.category) for run in runs] == [("7", "sums")]
    assert [(reject.records, "cut off" in reject.reason) for reject in rejects] == [(0, True)]


def test_bombs_are_refused(tmp_path, monkeypatch):
    # 15 GB by its own account in some hundred bytes.
    packed = zlib.compress(bytes(1 << 20), wbits=-15)
    entries = [(b"samples/1_epoch_1.json", 8, packed, (4 << 30) - 2, 1)] * 4
    (runs, rejects) = read(zip_by_hand(tmp_path / "bomb.eval", entries))
    assert runs == []
    assert "would unpack to 17.2 GB" in rejects[0].reason
    # One that lies about its size: never more is unpacked than it says.
    (_, rejects) = read(zip_by_hand(tmp_path / "liar.eval", [(b"samples/1_epoch_1.json", 8, packed, 100, 1)]))
    assert "should hold 100 bytes" in rejects[0].reason
    monkeypatch.setattr("poc.ingest.readers.inspect_archive.ENTRY_BYTES", 50)
    (_, rejects) = read(eval_file(tmp_path / "large.eval", [sample()]))
    assert "not read at once" in rejects[-1].reason


def test_another_zip_is_not_claimed(tmp_path):
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("log.jsonl", "{}")
    assert inspect_ai.sniff(path.read_bytes(), path.name) == 0.0


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_logs_in_an_archive(workspace, tmp_path, method):
    """A zip that holds a log is not itself one, though the log's own entries stand in it to be seen."""
    inner = eval_file(tmp_path / "log.eval", [sample()])
    with zipfile.ZipFile(tmp_path / "all.zip", "w", method) as archive:
        archive.write(inner, "logs/one.eval")
    result = import_logs(workspace, tmp_path / "all.zip")
    assert (result.runs, [source["format"] for source in result.sources]) == (1, ["inspect_ai"])
