"""The simulated model on demand, and a key's way from the masked field to the server and nowhere else."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from streamlit.testing.v1 import AppTest

from poc import api, jobs
from poc.ui import server

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-only-for-this-test-7f3a"


def until(condition) -> None:
    tick = threading.Event()
    for _ in range(3000):
        if condition():
            return
        tick.wait(0.03)
    pytest.fail("did not happen in time")


@pytest.fixture
def workspace(fresh):
    opened = api.open(fresh)
    yield opened
    for job in jobs.jobs(opened):
        if jobs.cancel(job, force=True):
            until(lambda job=job: not job.running)


def test_a_healthy_server_is_used_again_and_a_lost_one_comes_back_at_its_address(workspace):
    first = server.simulated_server(workspace, heed=1.0)
    assert server.healthy(first)
    assert server.simulated_server(workspace, heed=1.0) == first
    assert len(jobs.jobs(workspace, server.VERB)) == 1

    job = jobs.latest(workspace, server.VERB)
    assert job is not None
    jobs.cancel(job, force=True)
    until(lambda: not job.running)
    assert not server.healthy(first)
    server.bring_back(workspace, first)
    assert server.healthy(first)
    revived = jobs.latest(workspace, server.VERB)
    assert revived is not None
    assert revived.argv[revived.argv.index("--heed") + 1] == "1.0"


def test_another_server_than_ours_is_never_started(workspace):
    server.bring_back(workspace, "https://models.example.com/v1")
    server.bring_back(workspace, None)
    assert jobs.jobs(workspace) == []


class _Guard(BaseHTTPRequestHandler):
    """A model server that only notes the key and turns everybody away."""

    seen: ClassVar[set[str]] = set()

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.seen.add(self.headers.get("authorization", ""))
        body = b'{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def guard():
    _Guard.seen = set()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Guard)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}/v1"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_a_key_goes_to_the_server_and_into_no_file(evaluated, guard, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    workspace = api.open(evaluated)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.query_params["lang"] = "en"
    app.run()
    app.switch_page("poc/ui/pages/replay.py").run()
    app.get_by_key("plan-source").set_value("server").run()
    app.text_input(key="plan-base-url").set_value(guard)
    app.text_input(key="api-key-plan").set_value(KEY)
    app.number_input(key="plan-runs").set_value(2)
    app.run()
    next(button for button in app.button if button.label == "Estimate and preview").click().run()
    until(lambda: (job := jobs.latest(workspace, "replay plan")) is not None and not job.running)
    planned = jobs.latest(workspace, "replay plan")
    assert planned is not None
    assert planned.state == "done", planned.error
    app.run()
    assert not app.exception
    next(button for button in app.button if button.label == "Start").click().run()
    until(lambda: (job := jobs.latest(workspace, "replay run")) is not None and not job.running)
    app.run()

    assert _Guard.seen == {f"Bearer {KEY}"}
    assert any("401" in box.value or "key" in box.value for box in app.error)
    files = [file for file in evaluated.parent.rglob("*") if file.is_file()]
    assert len(files) > 3
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []
    assert KEY not in str(app.query_params)
