"""LangGraph checkpoints: databases as SqliteSaver writes them, their bytes made here by hand.

The bytes were learnt from databases that langgraph-checkpoint-sqlite 3.1 wrote (its own writing and our reading
are compared in tests/roundtrip). Nothing of LangGraph is imported here, nor by the reader.
"""

import json
import sqlite3
import sys
from contextlib import closing

import msgspec
import pytest

from poc.ingest import import_logs
from poc.ingest.detect import detect
from poc.ingest.readers import langgraph
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage

encode = msgspec.msgpack.encode


def read(path):
    items = list(langgraph.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def ext(code, *parts):
    return msgspec.msgpack.Ext(code, encode(list(parts)))


def message(kind, content, ident, **more):
    """A LangChain message as LangGraph packs it: its class by name, its fields, and how to make it again."""
    named = {"ai": "AIMessage", "human": "HumanMessage", "tool": "ToolMessage", "system": "SystemMessage"}[kind]
    told = {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": kind, "id": ident, **more}
    return ext(5, f"langchain_core.messages.{kind}", named, told, "model_validate_json")


def calls(*made):
    return [{"name": name, "args": args, "id": ident, "type": "tool_call"} for ident, name, args in made]


HUMAN = message("human", "add up", "h1")
USAGE = {
    "input_tokens": 10,
    "output_tokens": 3,
    "total_tokens": 13,
    "input_token_details": {"cache_read": 4},
    "output_token_details": {"reasoning": 1},
}
ASKED = message(
    "ai",
    "both",
    "a1",
    tool_calls=calls(("c1", "add", {"x": 1}), ("c2", "broken", {"path": "/x"})),
    usage_metadata=USAGE,
    response_metadata={"model_name": "gpt-x"},
)
FIRST = message("tool", "3", "t1", name="add", tool_call_id="c1", status="success")
SECOND = message("tool", "no /x", "t2", name="broken", tool_call_id="c2", status="error")
DONE = message("ai", "done", "a2", usage_metadata={"input_tokens": 20, "output_tokens": 4, "total_tokens": 24})


class Database:
    """The tables of SqliteSaver."""

    def __init__(self, path, *, paths=True):
        self.path = path
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(
                "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',"
                " checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,"
                " PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"
            )
            path_column = " task_path TEXT NOT NULL DEFAULT ''," if paths else ""
            db.execute(
                "CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',"
                f" checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,{path_column} idx INTEGER NOT NULL,"
                " channel TEXT NOT NULL, type TEXT, value BLOB,"
                " PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))"
            )

    def checkpoint(self, thread, second, messages, *, space="", kind="msgpack", data=None, **channels):
        state = {
            "v": 4,
            "ts": f"2026-01-01T10:00:{second:02d}.5+00:00",
            "id": f"{second:04d}",
            "channel_values": {"messages": messages, **channels},
            "channel_versions": {},
        }
        data = encode(state) if data is None else data
        about = json.dumps({"source": "loop", "step": second}).encode()
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(
                "INSERT INTO checkpoints VALUES (?, ?, ?, NULL, ?, ?, ?)",
                [thread, space, f"{second:04d}", kind, data, about],
            )

    def write(self, thread, second, channel, value, *, kind="msgpack", task="t", idx=0, path=None, space=""):
        data = encode(value) if kind == "msgpack" else value
        names = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value"
        cells = [thread, space, f"{second:04d}", task, idx, channel, kind, data]
        if path is not None:
            names, cells = f"{names}, task_path", [*cells, path]
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(f"INSERT INTO writes ({names}) VALUES ({', '.join('?' * len(cells))})", cells)


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "graph.sqlite")


def test_the_last_checkpoint_of_a_thread_is_the_run(workspace, database):
    for number in range(2):
        database.checkpoint(f"thread {number}", 1, [HUMAN])
        database.checkpoint(f"thread {number}", 2, [HUMAN, ASKED])
        database.checkpoint(f"thread {number}", 5, [HUMAN, ASKED, FIRST, SECOND])
        database.checkpoint(f"thread {number}", 6, [HUMAN, ASKED, FIRST, SECOND, DONE], llm_calls=2, big="x" * 5000)
    assert detect(Source(database.path)).format == "langgraph"
    runs, rejects = read(database.path)
    assert rejects == []
    run = runs[1]
    assert (run.native_id, run.records, run.model, run.task_text) == ("thread 1", 4, "gpt-x", "add up")
    assert [(s.tool, s.turn, s.ordinal, s.call_id, s.status, s.status_evidence) for s in run.steps] == [
        ("add", 0, 0, "c1", "ok", "result"),
        ("broken", 0, 1, "c2", "error", "flag"),
    ]
    # The step that made the calls ended at second 2, the one that answered them at 5.
    assert [s.duration_s for s in run.steps] == [3.0, 3.0]
    assert [(m.role, m.content) for m in run.messages if m.role != "tool"] == [
        ("user", "add up"),
        ("assistant", "both"),
        ("assistant", "done"),
    ]
    assert run.messages[1].usage == Usage(input_tokens=10, output_tokens=3, cached_tokens=4, reasoning_tokens=1)
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens) == (30, 7)
    assert (run.zone_in_log, run.duration_s) == (True, 5.0)
    assert run.metadata == {"state": {"llm_calls": 2}, "last_checkpoint": {"source": "loop", "step": 6}}
    result = import_logs(workspace, database.path)
    assert (result.read, result.imported, result.runs, result.steps) == (8, 8, 2, 4)


def test_what_the_unfinished_step_wrote(database):
    """Each call was sent as a task: one answered, one failed; which one, its path says."""
    sent = [
        ext(1, "langgraph.types", "Send", ["tools", {"tool_call": {"id": "c1"}}]),
        ext(1, "langgraph.types", "Send", ["tools", {"tool_call": {"id": "c2"}}]),
    ]
    database.checkpoint("t", 1, [HUMAN])
    database.checkpoint("t", 2, [HUMAN, ASKED], __pregel_tasks=sent)
    push = "~__pregel_push, {:010d}, 0000000000".format
    database.write("t", 2, "messages", [FIRST], task="a", path=push(0))
    database.write("t", 2, "__error__", "RuntimeError('disk gone')", task="b", idx=-1, path=push(1))
    ((run,), rejects) = read(database.path)
    assert rejects == []
    assert [(s.call_id, s.status, s.status_evidence, s.result) for s in run.steps] == [
        ("c1", "ok", "result", "3"),
        ("c2", "error", "error_field", None),
    ]
    assert run.metadata["errors"] == ["RuntimeError('disk gone')"]
    assert run.outcome is None


@pytest.mark.parametrize("waiting", [1, 2])
def test_an_error_of_a_step_without_tasks(tmp_path, waiting):
    """The only call that waits failed; of two that wait, nothing says which."""
    database = Database(tmp_path / "old.sqlite", paths=False)
    database.checkpoint("t", 2, [HUMAN, ASKED, *([FIRST] if waiting == 1 else [])])
    database.write("t", 2, "__error__", "boom", idx=-1)
    ((run,), _) = read(database.path)
    assert [s.status for s in run.steps] == (["ok", "error"] if waiting == 1 else ["no_result", "no_result"])
    assert run.metadata["errors"] == ["boom"]


def test_an_error_that_was_resumed_from_is_past(database):
    database.checkpoint("t", 2, [HUMAN, ASKED])
    database.write("t", 2, "__error__", "boom", idx=-1)
    database.checkpoint("t", 3, [HUMAN, ASKED, FIRST, SECOND])
    ((run,), _) = read(database.path)
    assert "errors" not in run.metadata


def test_an_interrupted_call_has_no_result(database):
    asked = message("ai", "", "a1", tool_calls=calls(("c1", "ask", {})))
    database.checkpoint("t", 2, [HUMAN, asked])
    stop = ext(2, "langgraph.types", "Interrupt", {"value": {"question": "sure?"}})
    database.write("t", 2, "__interrupt__", [stop], idx=-3, path="p")
    ((run,), _) = read(database.path)
    assert [s.status for s in run.steps] == ["no_result"]
    assert run.metadata["interrupt"] == [{"value": {"question": "sure?"}}]


def test_a_subgraph_is_a_subagent_and_what_both_have_counts_once(database):
    inner = message("ai", "sub adds", "s1", tool_calls=calls(("k1", "add", {"x": 2})))
    answer = message("tool", "5", "s2", name="add", tool_call_id="k1")
    database.checkpoint("t", 1, [HUMAN])
    space = "helper:c3914c79"
    database.checkpoint("t", 2, [message("human", "please", "s0"), inner], space=space)
    database.checkpoint("t", 4, [message("human", "please", "s0"), inner, answer, FIRST, ASKED], space=space)
    database.checkpoint("t", 6, [HUMAN, ASKED, FIRST, SECOND])
    ((run,), _) = read(database.path)
    assert run.records == 4
    assert [(s.call_id, s.caller, s.duration_s) for s in run.steps] == [
        ("k1", "subagent", 2.0),
        ("c1", "agent", 0.0),
        ("c2", "agent", 0.0),
    ]
    assert [(m.role, m.name, m.content) for m in run.messages if m.role != "tool"] == [
        ("user", None, "add up"),
        ("user", "helper", "please"),
        ("assistant", "helper", "sub adds"),
        ("assistant", None, "both"),
    ]


def test_states_as_json_with_messages_serialised_by_langchain(database):
    def serialised(name, **told):
        path = ["langchain", "schema", "messages", name]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": "", **told}}

    talk = [
        serialised("HumanMessage", content="add up"),
        serialised("AIMessage", tool_calls=calls(("c1", "add", {"x": 1})), id="a1"),
        serialised("ToolMessage", content="3", tool_call_id="c1"),
    ]
    state = {"ts": "2026-01-01T10:00:00+00:00", "channel_values": {"chat": talk}}
    database.checkpoint("t", 1, [], kind="json", data=json.dumps(state))
    ((run,), rejects) = read(database.path)
    assert rejects == []
    assert [(s.tool, s.result, s.arguments_json) for s in run.steps] == [("add", "3", '{"x":1}')]
    assert run.task_text == "add up"


def test_calls_whose_arguments_could_not_be_parsed(database):
    odd = [{"name": "add", "args": '{"x": ', "id": "c9", "error": "cut", "type": "invalid_tool_call"}]
    database.checkpoint("t", 1, [HUMAN, message("ai", "", "a1", invalid_tool_calls=odd)])
    ((run,), _) = read(database.path)
    assert [(s.call_id, s.arguments_raw, s.arguments_status, s.status) for s in run.steps] == [
        ("c9", '{"x": ', "unparsed", "no_result")
    ]


def test_nothing_is_imported_or_unpickled(database, tmp_path):
    trap = tmp_path / "sprung"
    pickled = (
        b"\x80\x04cbuiltins\nopen\n(X"
        + len(str(trap)).to_bytes(4, "little")
        + str(trap).encode()
        + b"X\x01\x00\x00\x00wtR."
    )
    sys.modules.pop("antigravity", None)
    hostile = ext(0, "antigravity", "fly", {"content": "boo", "type": "human", "id": "x"})
    database.checkpoint("t", 1, [HUMAN, hostile], secret=ext(3, "os", "system", "true", "call"))
    database.checkpoint("t", 2, [], kind="pickle", data=pickled)
    database.checkpoint("u", 1, [], kind="pickle", data=pickled)
    ((run,), rejects) = read(database.path)
    assert [m.content for m in run.messages] == ["add up", "boo"]
    assert "antigravity" not in sys.modules
    assert not trap.exists()
    assert [(reject.place, reject.records) for reject in rejects] == [
        ("checkpoint 0002 of thread t", 1),
        ("checkpoint 0001 of thread u", 1),
    ]
    assert all("pickled" in reject.reason for reject in rejects)


def test_damage_costs_a_checkpoint(workspace, database):
    whole = encode({"ts": "2026-01-01T10:00:00Z", "channel_values": {"messages": [HUMAN, ASKED]}})
    database.checkpoint("t", 1, [HUMAN])
    database.checkpoint("t", 2, [], data=whole[:-9])
    database.checkpoint("t", 3, [], data=encode([1, 2]))
    database.checkpoint("t", 4, [], kind="msgpack+aes", data=b"xx")
    database.checkpoint("empty", 1, [], answer="42")
    result = import_logs(workspace, database.path)
    assert (result.read, result.imported, result.rejected, result.runs) == (5, 1, 4, 1)
    reasons = [row["reason"] for row in workspace.rows("SELECT reason FROM rejects ORDER BY place")]
    assert [
        word in reason
        for word, reason in zip(("broken", "channel values", "msgpack+aes", "no messages"), reasons, strict=True)
    ] == [True] * 4


def test_it_wins_over_a_table(database):
    """A team's own table of calls may stand in the same database."""
    database.checkpoint("t", 1, [HUMAN])
    with closing(sqlite3.connect(database.path)) as db, db:
        db.execute("CREATE TABLE calls (run_id TEXT, tool TEXT, args TEXT, result TEXT, started_at TEXT)")
    assert detect(Source(database.path)).format == "langgraph"
