"""A team's own tables in SQLite and Parquet, events, gaps, mappings kept and used again."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.errors import InputError
from poc.ingest import describe, import_logs, iter_runs, load_mapping, save_mapping, suggest_mapping
from poc.ingest.column_values import side
from poc.ingest.detect import detect
from poc.ingest.readers.table_events import Call, EventJoin
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run


def read(path, mapping=None):
    source = Source(path, mapping=mapping)
    items = list(detect(source, format="table").reader.read(source))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def by_native(workspace):
    return {run.native_id: run for _, run in iter_runs(workspace)}


# SQLite ---------------------------------------------------------------------------------------------------


def test_a_teams_database(workspace, shared_log):
    path = shared_log("own_tables/infinite-loop_agent_debug_db.sqlite")
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        calls = db.execute(
            "SELECT run_id, tool_name, tool_args, tool_response, start_time FROM call_tool ORDER BY run_id, start_time"
        ).fetchall()
        said = dict(db.execute("SELECT run_id, status FROM agent_runs").fetchall())
        statuses = db.execute("SELECT count(tool_status) FROM call_tool").fetchone()[0]
    assert (len(calls), len(said), statuses) == (66, 10, 0)
    assert Counter(said.values()) == {"success": 5, "error": 5}
    assert detect(Source(path)).format == "table"
    before = sorted(file.name for file in path.parent.iterdir())
    result = import_logs(workspace, path)
    assert sorted(file.name for file in path.parent.iterdir()) == before  # nothing is written beside the file
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (66, 66, 0, 10, 66)
    mapping = result.sources[0]["mapping"]
    assert (mapping["table"], mapping["outcome"]) == ("call_tool", "agent_runs.status")
    runs = by_native(workspace)
    assert {name: run.outcome.value for name, run in runs.items()} == {
        name: float(status == "success") for name, status in said.items()
    }
    # Step numbers count inside parts of a run and come again: time orders the calls.
    assert [
        (name, step.tool, step.arguments_raw, step.result) for name in sorted(runs) for step in runs[name].steps
    ] == [call[:4] for call in calls]
    steps = [step for run in runs.values() for step in run.steps]
    # No status is ever logged: what came back decides, and a call without an answer is none that failed.
    assert Counter(step.status for step in steps) == {
        "ok": sum(call[3] is not None for call in calls),
        "no_result": sum(call[3] is None for call in calls),
    }
    assert Counter(step.arguments_status for step in steps) == Counter(
        "repaired" if call[2][:1] == '"' else "parsed" for call in calls
    )
    assert all(isinstance(json.loads(step.arguments_json), dict) for step in steps)
    first = runs["019a8a38-efa3-7792-a399-2030b26bf979"]
    assert (first.task_text, first.cost_usd, first.zone_in_log) == (
        "Explain what a quantum computing is",
        0.255596,
        False,
    )
    assert first.started_at == datetime(2025, 11, 16, 1, 12, 59, 43591, tzinfo=UTC)


@pytest.fixture
def database(tmp_path):
    def make(*script, name="log.db"):
        path = tmp_path / name
        with closing(sqlite3.connect(path)) as db:
            for statement in script:
                db.execute(statement)
            db.commit()
        return path

    return make


CALLS = [
    'CREATE TABLE "odd ""table" (x INTEGER)',
    "CREATE TABLE calls (run_id TEXT, tool TEXT, args TEXT, result TEXT)",
    "INSERT INTO calls VALUES ('a', 'look', '{}', 'fine'), ('b', 'look', NULL, NULL), ('a', NULL, NULL, NULL)",
]


def test_runs_without_calls_are_runs(database):
    path = database(
        *CALLS,
        "CREATE TABLE runs (run_id TEXT, success INTEGER, total_cost REAL, question TEXT)",
        "INSERT INTO runs VALUES ('a', 1, 0.5, 'q1'), ('b', 0, 0.25, 'q2'), ('c', 0, NULL, 'q3')",
    )
    runs, rejects = read(path)
    assert [(run.native_id, len(run.steps), run.outcome.value, run.cost_usd, run.task_text) for run in runs] == [
        ("a", 1, 1.0, 0.5, "q1"),
        ("b", 1, 0.0, 0.25, "q2"),
        ("c", 0, 0.0, None, "q3"),
    ]
    assert [(reject.place, reject.reason) for reject in rejects] == [("calls row 3", "no tool name in column 'tool'")]


def test_a_table_of_runs_with_repeated_ids_is_not_joined(database):
    path = database(
        *CALLS,
        "CREATE TABLE runs (run_id TEXT, success INTEGER)",
        "INSERT INTO runs VALUES ('a', 1), ('a', 0)",
    )
    runs, _ = read(path)
    assert [(run.native_id, len(run.steps), run.outcome) for run in runs] == [("a", 1, None), ("b", 1, None)]


def test_the_mapping_names_the_table(database):
    more = "CREATE TABLE other (run_id TEXT, tool TEXT, result TEXT)"
    path = database(*CALLS, more, "INSERT INTO other VALUES ('z', 'peek', 'x')")
    assert [run.native_id for run in read(path)[0]] == ["a", "b"]
    runs, _ = read(path, {"table": "other", "tool": "tool", "run_id": "run_id", "result": "result"})
    assert [(run.native_id, run.steps[0].result) for run in runs] == [("z", "x")]
    with pytest.raises(InputError, match=r"no table 'othr'.*Did you mean \"other\""):
        read(path, {"table": "othr", "tool": "tool"})
    with pytest.raises(InputError, match="'tol', which the file does not have"):
        read(path, {"table": "other", "tool": "tol"})


def test_what_lies_in_the_write_ahead_log_is_read(tmp_path):
    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute(CALLS[1])
        writer.commit()
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer.execute(CALLS[2])
        writer.commit()
        runs, _ = read(path)
    assert [run.native_id for run in runs] == ["a", "b"]


def test_text_and_blobs_that_are_no_utf8(database):
    path = database(
        CALLS[1],
        "INSERT INTO calls VALUES ('a', 'look', NULL, CAST(x'636166e9' AS TEXT)), ('a', 'look', NULL, x'ff00')",
    )
    ((run,), rejects) = read(path)
    assert [step.result for step in run.steps] == ["caf\ufffd", "\ufffd\x00"]
    assert [(reject.place, reject.records) for reject in rejects] == [("calls row 1", 0), ("calls row 2", 0)]


def test_a_large_database_is_known_by_its_first_pages(database):
    path = database(*CALLS, "CREATE TABLE filler (x BLOB)", *["INSERT INTO filler VALUES (zeroblob(200000))"] * 3)
    source = Source(path)
    assert not source.whole
    assert detect(source).format == "table"
    facts = describe(path)
    assert (facts.format, facts.columns, facts.mapping["table"]) == (
        "table",
        ["run_id", "tool", "args", "result"],
        "calls",
    )


def test_damaged_and_foreign_databases(workspace, database):
    path = database("CREATE TABLE people (name TEXT, age INTEGER)")
    with pytest.raises(InputError, match="SQLite database"):
        import_logs(workspace, path)
    good = database(*CALLS, *["INSERT INTO calls SELECT * FROM calls"] * 12, name="big.db")
    data = bytearray(good.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    broken = good.with_name("broken.db")
    broken.write_bytes(data)
    runs, rejects = read(broken)
    assert "cannot be read on from here" in rejects[-1].reason
    assert 0 < sum(run.records for run in runs) < 3 * 2**12


# Parquet --------------------------------------------------------------------------------------------------


def test_parquet(workspace, tmp_path):
    start = datetime(2025, 1, 1, tzinfo=UTC)
    count = 30_000
    table = pa.table(
        {
            "session_id": [f"s{n % 3}" for n in range(count)],
            "tool_name": ["look", "peek"] * (count // 2),
            "args": [{"n": n, "m": n * 7919} for n in range(count)],
            "output": [None if n % 10 == 0 else f"{n * 31337}" for n in range(count)],
            "start_time": pa.array([start + timedelta(seconds=n) for n in range(count)], pa.timestamp("us", "UTC")),
            "latency_ms": [float(n) for n in range(count)],
            "note": ["not mapped"] * count,
        }
    )
    path = tmp_path / "calls.parquet"
    pq.write_table(table, path)
    source = Source(path)
    assert not source.whole
    assert detect(source).format == "table"
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (count, count, 0, 3, count)
    run = by_native(workspace)["s1"]
    assert [json.loads(step.arguments_json)["n"] for step in run.steps[:3]] == [1, 4, 7]
    assert [step.status for step in run.steps[:4]] == ["ok", "ok", "ok", "no_result"]
    assert (run.steps[0].duration_s, run.started_at, run.zone_in_log) == (0.001, start + timedelta(seconds=1), True)


def test_damaged_parquet(workspace, tmp_path):
    path = tmp_path / "calls.parquet"
    pq.write_table(pa.table({"tool": ["look"], "result": ["x"]}), path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InputError, match="Parquet file"):
        import_logs(workspace, path)
    with pytest.raises(InputError, match="cannot be read"):
        import_logs(workspace, path, format="table")


# Events ---------------------------------------------------------------------------------------------------


def event(second, kind, session="s", **more):
    return {"ts": 1735689600000 + second * 1000, "event": kind, "sessionKey": session, **more}


def test_starts_and_ends_without_ids(workspace, write):
    rows = [
        event(0, "tool.start", toolName="look", args={"x": 1}),
        event(1, "tool.start", session="other", toolName="look", args={"x": 9}),
        event(2, "tool.start", toolName="peek", args={}),
        event(3, "tool.end", toolName="peek", resultSize=5),
        event(5, "tool.end", toolName="look", resultSize=7, result="fine"),
        event(6, "tool.start", toolName="look", args={"x": 2}),
        event(6, "tool.start", toolName="look", args={"x": 2}),
        event(7, "tool.error", toolName="look", result="boom"),
        event(8, "tool.start", toolName="slow", args={}),
        event(9, "heartbeat"),
        event(10, "tool.end", toolName="lost", result="found"),
    ]
    path = write("events.jsonl", rows)
    assert suggest_mapping(list(rows[3]), rows)["event"] == "event"
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (11, 10, 1, 2, 6)
    run = by_native(workspace)["s"]
    assert [(step.tool, step.result, step.status, step.duration_s) for step in run.steps if step.tool != "lost"] == [
        ("look", "fine", "ok", 5.0),
        ("peek", None, "no_result", 1.0),
        ("look", "boom", "error", 1.0),
        ("slow", None, "no_result", None),
    ]
    lost = next(step for step in run.steps if step.tool == "lost")
    assert (lost.started_at, lost.ended_at.second, lost.result, lost.status) == (None, 10, "found", "ok")
    rejects = workspace.rows("SELECT reason, records FROM rejects ORDER BY records")
    assert [(row["reason"], row["records"]) for row in rejects] == [
        ("a start that was logged twice; it counts once", 0),
        ("an event that neither starts nor ends a call", 1),
    ]
    assert by_native(workspace)["other"].steps[0].status == "no_result"


def test_events_with_ids_may_overlap_in_any_order(write):
    rows = [event(n, "started", tool="look", call_id=f"c{n}", args={"n": n}) for n in range(3)]
    rows += [event(5 + n, "finished", tool="look", call_id=f"c{n}", result=f"r{n}") for n in (2, 0, 1)]
    ((run,), rejects) = read(write("events.jsonl", rows))
    assert rejects == []
    assert [(step.call_id, step.result, step.duration_s) for step in run.steps] == [
        ("c0", "r0", 5.0),
        ("c1", "r1", 5.0),
        ("c2", "r2", 5.0),
    ]
    assert run.records == 6


def test_equal_calls_at_once_are_both_calls(write):
    rows = [event(0, "start", tool="look", args={}), event(0, "start", tool="look", args={})]
    rows += [event(1, "end", tool="look", result="a"), event(2, "end", tool="look", result="b")]
    ((run,), rejects) = read(write("events.jsonl", rows))
    assert ([step.result for step in run.steps], rejects) == (["a", "b"], [])


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["start", "end", "error", "other"]),
            st.sampled_from(["look", "peek", None]),
            st.sampled_from(["1", "2", None]),
        ),
        max_size=30,
    )
)
def test_every_event_counts_once(events):
    join = EventJoin()
    refused = 0
    for number, (kind, tool, call_id) in enumerate(events):
        cell = {"event": kind, "tool": tool, "call_id": call_id, "started_at": 1735689600 + number * 0.2}
        refused += join.add(f"line {number}", cell) is not None
    calls = [item for item in join.finish() if isinstance(item, Call)]
    assert sum(call.records for call in calls) + refused == len(events)
    assert all(call.cell["tool"] for call in calls)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("tool_start", "start"),
        ("toolCallCompleted", "end"),
        ("TOOL_CALL_STARTED", "start"),
        ("tool_call", "start"),
        ("tool_result", "end"),
        ("call failed", "error"),
        ("message", None),
        (3, None),
    ],
)
def test_words_of_events(word, expected):
    assert side(word) == expected


def test_other_kinds_of_types_are_no_events():
    rows = [{"tool": "look", "type": "function", "args": "{}"}, {"tool": "peek", "type": "function", "args": "{}"}]
    assert "event" not in suggest_mapping(["tool", "type", "args"], rows)


# Gaps -----------------------------------------------------------------------------------------------------


def test_runs_are_cut_by_gaps_where_no_run_is_named(workspace, write):
    seconds = [5000, 0, 10, 1790, 5010, 10000]
    rows = [{"tool": "look", "args": {"n": n}, "ts": 1735689600 + n} for n in seconds]
    result = import_logs(workspace, write("rows.jsonl", rows))
    assert result.sources[0]["mapping"]["gap_s"] == "1800"
    assert (result.read, result.imported, result.runs, result.steps) == (6, 6, 3, 6)
    runs = sorted((run for _, run in iter_runs(workspace)), key=lambda run: run.started_at)
    assert [[json.loads(step.arguments_json)["n"] for step in run.steps] for run in runs] == [
        [0, 10, 1790],
        [5000, 5010],
        [10000],
    ]
    assert {run.native_id for run in runs} == {None}
    assert runs[0].metadata == {"cut": "where nothing happened for 1800 s"}


def test_a_gap_cuts_a_run_id_that_is_used_again(write):
    rows = [{"ticket_id": "t", "tool": "look", "ts": f"2025-01-0{day}T10:00:00"} for day in (1, 3, 3)]
    mapping = {"tool": "tool", "run_id": "ticket_id", "started_at": "ts", "gap_s": "3600"}
    path = write("rows.jsonl", rows)
    assert [(run.native_id, len(run.steps)) for run in read(path, mapping)[0]] == [("t/0", 1), ("t/1", 2)]
    del mapping["gap_s"]
    assert [(run.native_id, len(run.steps)) for run in read(path, mapping)[0]] == [("t", 3)]


@pytest.mark.parametrize("epoch", ["1735689600", "1735689600000", "1735689600000000", "1735689600000000000"])
def test_the_unit_of_an_epoch_is_told_by_its_size(write, epoch):
    ((run,), _) = read(write("rows.csv", f"tool,ts,run_id\nlook,{epoch},a\n"))
    assert run.started_at == datetime(2025, 1, 1, tzinfo=UTC)


# Mappings -------------------------------------------------------------------------------------------------


def test_a_mapping_is_kept_and_used_again(workspace, write, tmp_path):
    rows = [{"who": "r1", "was macht": "look", "wann": 1735689600}]
    mapping = {"tool": "was macht", "run_id": "who", "started_at": "wann", "gap_s": "60"}
    path = save_mapping(mapping, tmp_path / "map.yaml")
    assert load_mapping(path) == mapping
    path.write_text(path.read_text().replace("'60'", "60"))  # as a person would write it
    assert load_mapping(path) == mapping
    result = import_logs(workspace, write("rows.jsonl", rows), mapping=path)
    assert (result.runs, result.sources[0]["mapping"]) == (1, mapping)


@pytest.mark.parametrize("gap", ["soon", "0", "-5"])
def test_a_gap_that_is_no_time(write, gap):
    with pytest.raises(InputError, match="number of seconds"):
        read(write("rows.csv", "tool,result\nlook,x\n"), {"tool": "tool", "gap_s": gap})


def test_a_mapping_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        save_mapping({"tool": "t"}, tmp_path / "no" / "map.yaml")


def test_values_decide_between_names():
    rows = [{"tool": 7, "tool_name": "look", "status": None, "success": True, "start": 3, "ts": "2025-01-01T00:00:00"}]
    mapping = suggest_mapping(list(rows[0]), rows)
    assert (mapping["tool"], mapping["status"], mapping["started_at"]) == ("tool_name", "success", "ts")
