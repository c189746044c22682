"""What LangSmith's client sends, recorded by a server on this machine, and its run trees as JSON, read back."""

import json
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from conversation import MODEL, check, conversation, walk

from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Run

langsmith = pytest.importorskip("langsmith", reason="langsmith is not installed (extra: dev)")
from langsmith.run_trees import RunTree  # noqa: E402

INFO = {"batch_ingest_config": {"use_multipart_endpoint": False, "size_limit": 100, "size_limit_bytes": 20_000_000}}
KINDS = {"agent": "chain", "llm": "llm", "tool": "tool"}


@pytest.fixture(autouse=True)
def nothing_leaves(monkeypatch):
    """No settings of this machine, and no address but the server's."""
    for name in ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT", "LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


@contextmanager
def recorder():
    """A server that keeps the bodies of what it is sent, and a client of it."""
    bodies = []

    class Keep(BaseHTTPRequestHandler):
        def _keep(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append((self.command, self.path, body))
            self.send_response(202)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_POST = do_PATCH = _keep

        def log_message(self, format, *args):  # noqa: A002  # the name is http.server's
            pass

    server = HTTPServer(("127.0.0.1", 0), Keep)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    client = langsmith.Client(url, api_key="none", info=INFO, auto_batch_tracing=False)
    try:
        yield client, bodies
    finally:
        client.session.close()
        server.shutdown()
        server.server_close()
        thread.join()


def inputs(part):
    if part.kind == "tool":
        return part.call.arguments
    if part.kind == "llm":
        return {"messages": part.asked, "model": "m"}
    return {"messages": [message for message in part.inside[0].asked if message["role"] == "user"]}


def outputs(part):
    """What came of it; None where nothing came."""
    if part.kind == "tool":
        if part.result is None:
            return None
        return {"output": {"type": "tool", "content": part.result, "tool_call_id": part.call.id, "status": "success"}}
    if part.kind == "agent":
        return {"answer": part.name}
    usage = {
        "input_tokens": part.tokens.input,
        "output_tokens": part.tokens.output,
        "total_tokens": part.tokens.input + part.tokens.output,
        "input_token_details": {"cache_read": part.tokens.cached},
        "output_token_details": {"reasoning": part.tokens.reasoning},
    }
    choice = {"index": 0, "message": part.answer, "finish_reason": "stop"}
    return {"id": f"r-{part.at}", "model": MODEL, "choices": [choice], "usage_metadata": usage}


def tree(part, client=None, above=None):
    """The conversation as the client's run trees."""
    about = {"name": part.name, "run_type": KINDS[part.kind], "inputs": inputs(part), "start_time": part.start}
    if part.kind == "tool":
        about["extra"] = {"metadata": {"tool_call_id": part.call.id}}
    run = RunTree(**about, client=client, id=uuid.uuid4()) if above is None else above.create_child(**about)
    for inner in part.inside:
        tree(inner, client, run)
    found = outputs(part)
    if part.error is not None:
        run.end(error=part.error, end_time=part.end)
    elif found is not None:
        run.end(outputs=found, end_time=part.end)
    return run


def all_of(run):
    yield run
    for child in run.child_runs:
        yield from all_of(child)


def as_sent_one_by_one():
    """A request for each beginning and each end."""
    with recorder() as (client, bodies):
        for run in all_of(tree(conversation(), client)):
            run.post(exclude_child_runs=True)
            if run.end_time is not None:
                run.patch()
    assert {method for method, _, _ in bodies} == {"POST", "PATCH"}
    return b"\n".join(body for _, _, body in bodies).decode()


def as_sent_in_batches():
    """A body with all beginnings, then one with all ends."""
    with recorder() as (client, bodies):
        runs = [*all_of(tree(conversation(), client))]
        begun, ended = [], []
        for run in runs:
            told = run.model_dump(exclude={"child_runs", "parent_run", "ls_client", "end_time", "outputs", "error"})
            begun.append({**told, "parent_run_id": run.parent_run_id})
            if run.end_time is not None:
                ids = {"id": run.id, "trace_id": run.trace_id, "dotted_order": run.dotted_order}
                ended.append({**ids, "end_time": run.end_time, "outputs": run.outputs, "error": run.error})
        client.batch_ingest_runs(create=begun)
        client.batch_ingest_runs(update=ended)
    sent = [body.decode() for _, path, body in bodies if path.endswith("/runs/batch")]
    assert [sorted(key for key, value in json.loads(body).items() if value) for body in sent] == [["post"], ["patch"]]
    return "\n".join(sent)


def as_trees():
    """The objects themselves, dumped."""
    return "\n".join(
        run.model_dump_json(exclude={"child_runs", "parent_run", "ls_client"}) for run in all_of(tree(conversation()))
    )


WRITERS = {write.__name__: write for write in (as_sent_one_by_one, as_sent_in_batches, as_trees)}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_was_told_comes_back(tmp_path, writer):
    path = tmp_path / "runs.jsonl"
    path.write_text(WRITERS[writer](), encoding="utf-8")
    source = Source(path)
    detected = detect(source)
    assert detected.format == "langsmith"
    (run,) = detected.reader.read(source)
    assert isinstance(run, Run)
    parts = len(list(walk(conversation())))
    assert run.records == (parts if writer == "as_trees" else 2 * parts - 1)  # one has no end
    check(run, cut=True)
    assert run.usage.reasoning_tokens == 6
    assert run.native_id_is_global
