"""MCP logs in each layout: pairing across directions and sessions, failures, noise."""

import json

import pytest

from poc.ingest import import_logs
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run


def read(path):
    source = Source(path)
    assert detect(source).format == "mcp_jsonrpc"
    items = list(detect(source).reader.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def ask(ident, method="tools/call", **params):
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def tell(ident, result=None, error=None):
    return {"jsonrpc": "2.0", "id": ident, **({"error": error} if error else {"result": result})}


def said(text, **more):
    return {"content": [{"type": "text", "text": text}], **more}


START = ask(0, "initialize", protocolVersion="2025-06-18")
TOOLS = {"tools": [{"name": "look", "description": "looks", "inputSchema": {"type": "object"}}]}

TRAFFIC = [
    ("client", START),
    ("server", tell(0, {"serverInfo": {"name": "x"}})),
    ("client", {"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ("client", ask(1, "tools/list")),
    ("server", tell(1, TOOLS)),
    ("client", ask(2, name="look", arguments={"x": 1})),
    ("server", ask(2, "roots/list")),
    ("client", tell(2, {"roots": []})),
    ("client", ask(3, name="peek", arguments={})),
    ("server", tell(3, said("no such file", isError=True))),
    ("server", tell(2, said("fine", isError=False))),
    ("client", ask(4, name="peek")),
    ("server", tell(4, error={"code": -32602, "message": "unknown tool"})),
    ("client", ask(5, name="slow", arguments={"n": 2})),
]
ARGUMENTS = ['{"x": 1}', "{}", None, '{"n": 2}']
STEPS = [
    ("look", "fine", "ok", "flag"),
    ("peek", "no such file", "error", "flag"),
    ("peek", '{"code":-32602,"message":"unknown tool"}', "error", "error_field"),
    ("slow", None, "no_result", "none"),
]


def stamp(number):
    return f"2025-07-01T10:00:{number:02d}.500Z"


def as_lines(number, sender, message):
    return json.dumps(message)


def as_envelope(number, sender, message):
    other = "server" if sender == "client" else "client"
    way = f"{sender}_to_{other}"
    return json.dumps({"timestamp": stamp(number), "direction": way, "session_id": "s1", "message": message})


def as_text_envelope(number, sender, message):
    way = "->" if sender == "client" else "<-"
    return json.dumps({"ts": stamp(number), "dir": way, "raw": json.dumps(message)})


def as_server_log(number, sender, message):
    return f"{stamp(number)} [things] [info] Message from {sender}: {json.dumps(message)} {{ metadata: undefined }}"


def as_desktop_log(number, sender, message):
    return f"{stamp(number)} [info] [things] Message from {sender}: {json.dumps(message)}"


def as_proxy_log(number, sender, message):
    return f"{stamp(number)} pid=77 {'-->' if sender == 'client' else '<--'} {json.dumps(message)}"


LAYOUTS = [as_lines, as_envelope, as_text_envelope, as_server_log, as_desktop_log, as_proxy_log]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(workspace, write, layout):
    lines = [layout(number, sender, message) for number, (sender, message) in enumerate(TRAFFIC)]
    path = write("mcp.log", "\n".join(lines) + "\n")
    (run,), rejects = read(path)
    assert rejects == []
    assert [(step.tool, step.result, step.status, step.status_evidence) for step in run.steps] == STEPS
    assert (run.records, [tool.name for tool in run.tools], run.outcome) == (14, ["look"], None)
    written = [given and given.replace(" ", "") for given in ARGUMENTS] if layout is as_envelope else ARGUMENTS
    assert [step.arguments_raw for step in run.steps] == written
    assert [step.call_id for step in run.steps] == ["2", "3", "4", "5"]
    assert [(step.turn, step.ordinal) for step in run.steps] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    if layout is as_lines:
        assert (run.started_at, run.zone_in_log) == (None, None)
    else:
        assert [step.duration_s for step in run.steps] == [5.0, 1.0, 1.0, None]
        assert (run.started_at.isoformat(), run.zone_in_log) == ("2025-07-01T10:00:00.500000+00:00", True)
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.runs, result.steps) == (14, 14, 1, 4)


def test_ids_begin_anew_in_each_session_and_connection(write):
    once = [("client", START), ("client", ask(1, name="look")), ("server", tell(1, said("one")))]
    twice = [*once, ("client", ask(2, name="late")), ("client", START), ("server", tell(2, said("whose?")))]
    twice += [("client", ask(1, name="look")), ("server", tell(1, said("two")))]
    lines = [as_server_log(number, *packet) for number, packet in enumerate(twice)]
    lines += [line.replace("[things]", "[others]") for line in lines[:3]]
    runs, rejects = read(write("mcp.log", "\n".join(lines)))
    assert rejects == []
    assert [[(step.tool, step.result) for step in run.steps] for run in runs] == [
        [("look", "one"), ("late", None)],
        [("look", "two")],
        [("look", "one")],
    ]
    assert [run.records for run in runs] == [4, 4, 3]
    assert [run.metadata["connection"] for run in runs] == ["things", "things", "others"]


def test_noise_is_no_record_and_a_message_twice_counts_once(write):
    call, answer = ask("a-1", name="look", arguments={}), tell("a-1", {"structuredContent": {"n": 1}, "content": []})
    lines = [
        "Starting server {",
        "  metadata: { args: [] }",
        "}",
        as_server_log(0, "client", call),
        as_server_log(1, "client", call),
        "[07/20/25 19:42:07] INFO Processing request of type CallToolRequest",
        as_server_log(2, "server", answer),
        as_server_log(3, "server", answer)[:-40],
    ]
    (run,), rejects = read(write("mcp-server-things.log", "\n".join(lines)))
    assert [(step.result, step.duration_s, step.call_id) for step in run.steps] == [('{"n":1}', 2.0, "a-1")]
    assert (run.records, [reject.place for reject in rejects]) == (3, ["line 8"])


def test_conversations_and_sessions_without_calls(write):
    def call(ident, conversation):
        return ask(ident, name="look", arguments={}, _meta={"vscode.conversationId": conversation})

    packets = [START, call(1, "c1"), tell(1, said("a")), call(2, "c2"), tell(2, said("b")), call(3, "c1")]
    runs, rejects = read(write("mcp.jsonl", packets))
    assert [(run.native_id, len(run.steps), run.records) for run in runs] == [("c1", 2, 3), ("c2", 1, 2)]
    assert [(reject.reason, reject.records) for reject in rejects] == [("a session without any tool call", 1)]


def test_a_fault_without_a_flag(write):
    packets = [ask(1, name="look"), tell(1, said("Error: no")), ask(1, name="look"), tell(1, said("again"))]
    ((run,), _) = read(write("mcp.jsonl", packets))
    assert [(step.status, step.status_evidence, step.result) for step in run.steps] == [
        ("error", "text_rule", "Error: no"),
        ("ok", "result", "again"),
    ]
