"""Jobs are real processes here: a small program stands in for the shell, so that each way to end can be provoked."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from poc import jobs
from poc.errors import InputError
from poc.jobs import control, progress
from poc.workspace import Workspace

PROGRAM = """
import json, os, signal, sys
verb, arguments = sys.argv[1], sys.argv[sys.argv.index("--json") + 1:]
def wait_for_signal():
    print("ready", file=sys.stderr, flush=True)
    while True:
        signal.pause()
if verb == "answer":
    from poc.jobs import report_progress
    report_progress(3, 4, "almost")
    report_progress(4, 4, "there")
    print(json.dumps({"arguments": arguments, "key": os.environ.get("TEST_KEY") == "s3cret"}))
    sys.exit(int(arguments[0]))
if verb == "refuse":
    print(json.dumps({"error": "InputError", "what": "No such file.", "where": "x.json", "todo": "Check it."}))
    sys.exit(2)
if verb == "stumble":
    raise RuntimeError("a fault of ours")
if verb == "wait":
    try:
        wait_for_signal()
    except KeyboardInterrupt:
        print(json.dumps({"stopped": True}))
if verb == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wait_for_signal()
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setattr(control, "_PROGRAM", (sys.executable, str(program)))
    made = Workspace(tmp_path / "w.duckdb")
    yield made
    for job in jobs.jobs(made):
        if job.running:
            os.killpg(_pid(job), signal.SIGKILL)


def _pid(job: jobs.Job) -> int:
    return json.loads((job.folder / "job.json").read_text())["pid"]


def _until(condition, timeout_s: float = 20.0) -> None:
    """Look again and again, not after a fixed time."""
    tick = threading.Event()
    for _ in range(int(timeout_s / 0.02)):
        if condition():
            return
        tick.wait(0.02)
    pytest.fail("did not happen in time")


def _ended(job: jobs.Job) -> jobs.Job:
    _until(lambda: not job.running)
    return job


def _ready(job: jobs.Job) -> jobs.Job:
    _until(lambda: "ready" in (job.folder / "stderr").read_text())
    return job


@pytest.mark.parametrize("code", [0, 3, 6])
def test_an_answer_is_done_whatever_it_says(workspace, code):
    job = _ended(jobs.start(workspace, "answer", [str(code), "x"]))
    assert job.state == "done"
    assert job.exit_code == code
    assert job.result == {"arguments": [str(code), "x"], "key": False}
    assert job.error is None
    assert job.progress is not None
    assert (job.progress.done, job.progress.total, job.progress.note) == (4, 4, "there")
    assert job.progress.fraction == 1.0
    assert job.ended_at is not None
    assert job.ended_at >= job.started_at


def test_a_key_reaches_the_child_and_no_file(workspace):
    job = _ended(jobs.start(workspace, "answer", ["0"], secrets={"TEST_KEY": "s3cret"}))
    assert job.result is not None
    assert job.result["key"] is True
    for file in workspace.files.rglob("*"):
        assert not file.is_file() or "s3cret" not in file.read_text()


def test_a_key_among_the_arguments_is_refused(workspace):
    with pytest.raises(InputError, match="argument"):
        jobs.start(workspace, "answer", ["--key=s3cret"], secrets={"TEST_KEY": "s3cret"})
    assert jobs.jobs(workspace) == []


def test_a_refusal_keeps_what_where_and_todo(workspace):
    job = _ended(jobs.start(workspace, "refuse"))
    assert job.state == "failed"
    assert job.error is not None
    assert (job.error.what, job.error.where, job.error.todo) == ("No such file.", "x.json", "Check it.")


def test_an_unexpected_failure_shows_its_last_line_not_a_traceback(workspace):
    job = _ended(jobs.start(workspace, "stumble"))
    assert job.state == "failed"
    assert job.error is not None
    assert "a fault of ours" in job.error.what
    assert "Traceback" not in str(job.error)
    assert Path(job.error.where or "").name == "stderr"


def test_cancel_lets_the_verb_say_goodbye(workspace):
    job = _ready(jobs.start(workspace, "wait"))
    assert jobs.cancel(job)
    _ended(job)
    assert job.state == "cancelled"
    assert job.result == {"stopped": True}
    assert not jobs.cancel(job)


def test_a_verb_that_is_deaf_to_the_first_signal_gets_the_next(workspace):
    job = _ready(jobs.start(workspace, "deaf"))
    assert jobs.cancel(job, grace_s=0.3)
    _ended(job)
    assert job.state == "cancelled"
    assert job.exit_code == -signal.SIGTERM


def test_force_skips_the_first_signal(workspace):
    job = _ready(jobs.start(workspace, "wait"))
    assert jobs.cancel(job, force=True)
    _ended(job)
    assert job.state == "cancelled"
    assert job.result is None


def test_a_killed_child_is_a_failure_that_names_the_signal(workspace):
    job = _ready(jobs.start(workspace, "wait"))
    children = Path(f"/proc/{_pid(job)}/task/{_pid(job)}/children")
    if not children.exists():
        pytest.skip("this system does not list the children of a process")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    _ended(job)
    assert job.state == "failed"
    assert "SIGKILL" in str(job.error)


def test_a_job_that_vanished_is_lost_not_running(workspace):
    job = _ready(jobs.start(workspace, "wait"))
    os.killpg(_pid(job), signal.SIGKILL)
    _ended(job)
    assert job.state == "lost"
    assert job.exit_code is None
    assert "without a word" in str(job.error)


def test_a_pid_that_now_belongs_to_another_is_left_alone(workspace):
    job = _ready(jobs.start(workspace, "wait"))
    os.killpg(_pid(job), signal.SIGKILL)
    _ended(job)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as stranger:
        record = json.loads((job.folder / "job.json").read_text())
        record["pid"] = stranger.pid
        (job.folder / "job.json").write_text(json.dumps(record))
        assert job.state == "lost"
        assert not jobs.cancel(job)
        assert stranger.poll() is None
        stranger.communicate()


def test_the_same_work_is_not_started_twice(workspace):
    first = _ready(jobs.start(workspace, "wait", ["a"]))
    assert jobs.start(workspace, "wait", ["a"]).job_id == first.job_id
    other = jobs.start(workspace, "wait", ["b"])
    assert other.job_id != first.job_id
    for job in (first, _ready(other)):
        jobs.cancel(job, force=True)
        _ended(job)
    assert jobs.start(workspace, "wait", ["a"]).job_id != first.job_id


def test_another_process_sees_and_stops_a_job_whose_starter_is_gone(workspace, tmp_path):
    starter = (
        "import sys; from pathlib import Path; from poc import jobs; from poc.workspace import Workspace\n"
        f"from poc.jobs import control; control._PROGRAM = {control._PROGRAM!r}\n"
        f"print(jobs.start(Workspace(Path({str(workspace.path)!r})), 'wait').job_id)"
    )
    said = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=True)
    job = _ready(jobs.get(workspace, said.stdout.strip()))
    assert job.state == "running"
    assert jobs.latest(workspace, "wait") == job
    assert jobs.cancel(job)
    _ended(job)
    assert job.state == "cancelled"
    assert job.result == {"stopped": True}


def test_a_starter_that_died_before_it_knew_the_pid_leaves_a_lost_job(workspace):
    job = _ended(jobs.start(workspace, "answer", ["0"]))
    record = json.loads((job.folder / "job.json").read_text()) | {"pid": None, "pid_started": None}
    (job.folder / "exit").unlink()
    (job.folder / "job.json").write_text(json.dumps(record))
    assert job.state == "running"
    os.utime(job.folder / "job.json", (0, 0))
    assert job.state == "lost"


def test_an_unknown_job_is_named(workspace):
    with pytest.raises(InputError, match="nowhere"):
        jobs.get(workspace, "nowhere")


def test_old_jobs_are_tidied_away(workspace, monkeypatch):
    monkeypatch.setattr(control, "_KEEP_FINISHED", 2)
    for number in range(4):
        _ended(jobs.start(workspace, "refuse", [str(number)]))
    assert [job.argv[0] for job in jobs.jobs(workspace)] == ["3", "2", "1"]


def test_progress_is_only_reported_inside_a_job(tmp_path, monkeypatch):
    monkeypatch.delenv(jobs.JOB_DIRECTORY, raising=False)
    jobs.report_progress(1, 2)
    monkeypatch.setenv(jobs.JOB_DIRECTORY, str(tmp_path))
    monkeypatch.setattr(progress, "_last_report", 0.0)
    jobs.report_progress(1, None, "counting")
    left = msgspec.json.decode((tmp_path / "progress.json").read_bytes(), type=jobs.Progress)
    assert (left.done, left.total, left.fraction) == (1, None, None)
    assert [file.name for file in tmp_path.iterdir()] == ["progress.json"]


def test_progress_tells_the_pace_and_the_time_left(tmp_path, monkeypatch):
    """Measured from the first report on; too early to tell at first, and nothing is left at the end."""
    monkeypatch.setenv(jobs.JOB_DIRECTORY, str(tmp_path))
    monkeypatch.setattr(progress, "_last_report", 0.0)
    monkeypatch.setattr(progress, "_first", None)
    clock = iter([100.0, 100.5, 104.0, 110.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))

    def told(done):
        jobs.report_progress(done, 100, unit="bytes")
        return msgspec.json.decode((tmp_path / "progress.json").read_bytes(), type=jobs.Progress)

    assert (told(10).per_s, told(11).per_s) == (None, None)
    word = told(50)
    assert (word.unit, word.per_s, word.seconds_left) == ("bytes", 10.0, 5.0)
    assert told(100).seconds_left is None
