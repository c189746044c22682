"""Stopping and going on: killed, interrupted, out of budget, with a broken journal. Nothing is paid twice."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
import replay_bench as bench
from scripted_server import Say, call_of, scripted_server

from poc.errors import InputError, ModelError, WorkspaceBusy
from poc.replay import BudgetLimits, RunSummary, merge_journal, run, status
from poc.replay.journal import journal_path, read_journal
from poc.replay.records import AttemptStart, CallStart, TrialDone, TurnDone
from poc.workspace import Workspace

RUN = """
import asyncio, json, sys
from poc.replay import run
from poc.workspace import Workspace
summary = asyncio.run(run(Workspace.open(sys.argv[1]), sys.argv[2]))
print(json.dumps({"reason": summary.reason, "done": summary.done}))
"""
ROOT = Path(__file__).resolve().parents[2]
# What differs between two runs of the same plan although nothing went wrong: the clock.
CLOCK = (
    "started_at",
    "ended_at",
    "sent_at",
    "duration_s",
    "total_s",
    "first_token_s",
    "model_latency_s",
    "tool_latency_s",
)
TABLES = {
    "trials": "trial_id",
    "requests": "request_id",
    "replay_steps": "trial_id, step",
    "judgements": "trial_id, judge",
}


def go(workspace: Workspace, experiment_id: str, **options) -> RunSummary:
    return asyncio.run(run(workspace, experiment_id, **options))


def totals(workspace: Workspace) -> dict[str, list[dict]]:
    """Everything stored of the replays, without the clock."""
    return {
        table: [
            {name: value for name, value in row.items() if name not in CLOCK}
            for row in workspace.rows(f"SELECT * FROM {table} ORDER BY {order}")
        ]
        for table, order in TABLES.items()
    }


def copy_of(workspace: Workspace, folder: Path) -> Workspace:
    folder.mkdir()
    return Workspace.open(shutil.copy(workspace.path, folder / "workspace.duckdb"))


def finished_calls(workspace: Workspace, experiment_id: str) -> set[tuple[str, int]]:
    records = read_journal(journal_path(workspace, experiment_id)).records
    return {(record.trial_id[:8], record.turn) for record in records if isinstance(record, TurnDone)}


def start(workspace: Workspace, experiment_id: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(workspace.path), experiment_id],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_killed_in_the_middle_then_resumed(desk, tmp_path):
    with scripted_server(bench.forgetful) as server:
        experiment = bench.planned(desk, server.base_url, repeats=2)
        undisturbed = copy_of(desk, tmp_path / "undisturbed")
        whole = go(undisturbed, experiment.experiment_id)
        server.bodies.clear()
        server.answered = 0
        server.gate, server.gate_after, server.gate_waits_for = threading.Event(), 25, 4
        child = start(desk, experiment.experiment_id)
        try:
            assert server.reached_gate.wait(60), child.communicate()
            # While it runs: seen from here without waiting, and nobody else may run it.
            seen = status(desk, experiment.experiment_id)
            assert (seen.state, seen.pid, seen.requests) == ("running", child.pid, 25)
            assert 0 < seen.done < seen.total == 24
            with pytest.raises(WorkspaceBusy, match=str(child.pid)):
                go(desk, experiment.experiment_id)
            assert desk.value("SELECT status FROM experiments") == "running"
        finally:
            child.kill()
            child.communicate()
        assert status(desk, experiment.experiment_id).state == "stopped"
        before = finished_calls(desk, experiment.experiment_id)
        assert len(before) == 25
        server.gate.set()
        resumed = go(desk, experiment.experiment_id)
        asked = Counter(call_of(body) for body in server.bodies)
    assert (resumed.state, resumed.done, resumed.requests) == ("finished", 24, whole.requests)
    assert resumed.tokens == whole.tokens
    assert totals(desk) == totals(undisturbed)
    # Not one finished call was asked for again; only the four that were in flight were.
    assert all(asked[call] == 1 for call in before)
    assert sorted(asked.values())[-5:] == [1, 2, 2, 2, 2]
    assert len(asked) == whole.requests


def test_an_interrupt_lets_the_calls_in_flight_finish(desk):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, concurrency=2)
        server.gate, server.gate_after, server.gate_waits_for = threading.Event(), 9, 2
        child = start(desk, experiment.experiment_id)
        assert server.reached_gate.wait(60), child.communicate()
        child.send_signal(signal.SIGINT)
        # Signals are handled before the answer can come: it is behind the gate.
        server.gate.set()
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        told = json.loads(out)
        before = finished_calls(desk, experiment.experiment_id)
        assert told["reason"] == "stop"
        assert len(before) == len(server.bodies) < 48
        assert desk.value("SELECT status FROM experiments") == "stopped"
        assert desk.value("SELECT count(*) FROM trials") == told["done"]
        summary = go(desk, experiment.experiment_id)
        asked = Counter(call_of(body) for body in server.bodies)
    assert (summary.reason, len(asked), set(asked.values())) == ("finished", 48, {1})


def test_a_stop_on_request(desk):
    async def work() -> RunSummary:
        stop = asyncio.Event()
        return await run(desk, experiment.experiment_id, stop=stop, progress=lambda s: s.done >= 2 and stop.set())

    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, concurrency=1)
        first = asyncio.run(work())
        assert (first.state, first.reason, first.done) == ("stopped", "stop", 2)
        assert go(desk, experiment.experiment_id).done == 12
        again = go(desk, experiment.experiment_id)
    assert (again.done, len(server.bodies)) == (12, 48)


def test_the_budget_is_never_exceeded_and_can_be_raised(desk):
    limit = 3000
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, budget=BudgetLimits(tokens=limit))
        short = go(desk, experiment.experiment_id)
        assert (short.state, short.reason) == ("stopped", "budget")
        assert short.message
        assert "tokens" in short.message
        assert limit - 900 < short.tokens == 110 * len(server.bodies) <= limit
        # Going on under the same limit asks for nothing more.
        paid = len(server.bodies)
        again = go(desk, experiment.experiment_id)
        assert again.reason == "budget"
        assert 110 * len(server.bodies) <= limit
        assert len(server.bodies) - paid <= 1
        rest = go(desk, experiment.experiment_id, budget=BudgetLimits(tokens=100_000))
        asked = Counter(call_of(body) for body in server.bodies)
    assert (rest.reason, rest.done) == ("finished", 12)
    assert set(asked.values()) == {1}


def test_a_lost_call_counts_as_its_worst_case(desk):
    from poc.replay.past import spent_so_far

    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1, arms=("none", "progress"), concurrency=1)
        go(desk, experiment.experiment_id)
    records = read_journal(journal_path(desk, experiment.experiment_id)).records
    assert spent_so_far(records).tokens == 8 * 110
    last = max(place for place, record in enumerate(records) if isinstance(record, CallStart))
    cut_off = records[: last + 1]
    lost = cut_off[-1]
    assert isinstance(lost, CallStart)
    assert lost.reserved_tokens > 64
    assert spent_so_far(cut_off).tokens == 7 * 110 + lost.reserved_tokens


@pytest.mark.parametrize("share", [0.31, 0.62, 0.999])
def test_a_journal_cut_anywhere_is_gone_on_with(desk, tmp_path, share):
    with scripted_server(bench.forgetful) as server:
        experiment = bench.planned(desk, server.base_url, tasks=2, arms=("none", "progress"))
        undisturbed = copy_of(desk, tmp_path / "undisturbed")
        go(undisturbed, experiment.experiment_id)
        go(desk, experiment.experiment_id)
        path = journal_path(desk, experiment.experiment_id)
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])
        before = finished_calls(desk, experiment.experiment_id)
        server.bodies.clear()
        summary = go(desk, experiment.experiment_id)
        asked = Counter(call_of(body) for body in server.bodies)
    assert summary.state == "finished"
    assert summary.torn <= 1
    assert totals(desk) == totals(undisturbed)
    assert set(asked.values()) <= {1}
    assert not before & set(asked)


def test_without_its_journal_a_merged_experiment_is_not_paid_for_again(desk):
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1)
        go(desk, experiment.experiment_id)
        journal_path(desk, experiment.experiment_id).unlink()
        server.bodies.clear()
        with pytest.raises(InputError, match="cannot go on"):
            go(desk, experiment.experiment_id)
        assert not server.bodies


def test_where_the_world_moved_on_the_trial_starts_afresh(desk):
    restless = bench.DESK.replace("Desk", "Restless")
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(
            desk, server.base_url, environment=restless, tasks=1, arms=("none", "progress"), concurrency=1
        )
        go(desk, experiment.experiment_id)
        path = journal_path(desk, experiment.experiment_id)
        lines = path.read_bytes().splitlines(keepends=True)
        last = max(place for place, line in enumerate(lines) if b'"type":"trial"' in line)
        path.write_bytes(b"".join(lines[:last]))
        summary = go(desk, experiment.experiment_id)
    records = read_journal(path).records
    afresh = [record for record in records if isinstance(record, AttemptStart) and record.attempt == 2]
    assert len(afresh) == 1
    assert "another result" in str(afresh[0].reason)
    trial = desk.rows("SELECT * FROM trials WHERE attempt = 2")[0]
    assert (trial["trial_id"], trial["turns"]) == (afresh[0].trial_id, 4)
    # The first attempt was paid too: it is counted, but in no trial's figures.
    assert summary.requests == desk.value("SELECT count(*) FROM requests") == 12
    assert desk.value("SELECT count(*) FROM requests JOIN trials USING (trial_id)") == 8
    assert summary.tokens == 12 * 110


def test_merging_twice_changes_nothing(desk):
    with scripted_server(bench.forgetful) as server:
        experiment = bench.planned(desk, server.base_url, tasks=2)
        go(desk, experiment.experiment_id)
    once = totals(desk)
    assert all(once[table] for table in ("trials", "requests", "replay_steps"))
    merge_journal(desk, experiment.experiment_id)
    merge_journal(desk, experiment.experiment_id)
    assert totals(desk) == once
    assert desk.value("SELECT status FROM experiments") == "finished"
    records = read_journal(journal_path(desk, experiment.experiment_id)).records
    assert len(once["trials"]) == sum(isinstance(record, TrialDone) for record in records)


@pytest.mark.parametrize("wrong", [401, 404, 500])
def test_a_server_that_never_answered_stops_everything_and_costs_nothing(desk, wrong):
    broken = True

    def policy(body):
        return Say(status=wrong) if broken else bench.diligent(body)

    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1)
        with pytest.raises(ModelError, match=str(wrong)):
            go(desk, experiment.experiment_id)
        assert desk.value("SELECT count(*) FROM trials") == 0
        assert desk.value("SELECT status FROM experiments") == "stopped"
        broken = False
        summary = go(desk, experiment.experiment_id)
    assert (summary.done, summary.tokens) == (3, 12 * 110)


def test_a_key_that_stops_working_stops_everything(desk):
    def policy(body):
        return Say(status=401) if broken and bench.called(body) else bench.diligent(body)

    broken = True
    with scripted_server(policy) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1)
        with pytest.raises(ModelError, match="401"):
            go(desk, experiment.experiment_id)
        broken = False
        assert go(desk, experiment.experiment_id).done == 3
    assert {row["success"] for row in desk.rows("SELECT success FROM trials")} == {1.0}


def test_an_environment_that_cannot_start_a_task_stops_before_anything_is_paid(desk, tmp_path):
    world = tmp_path / "picky.py"
    source = Path(bench.desk_world.__file__).read_text()
    broken = source.replace("self.item, self.seed = ", 'raise KeyError("shelf")\n        self.item, self.seed = ')
    world.write_text(broken)
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, tasks=1, environment=f"{world}:Desk")
        with pytest.raises(InputError, match=r"cannot start task 't\d': KeyError: 'shelf'"):
            go(desk, experiment.experiment_id)
    assert server.bodies == []


def test_the_key_is_nowhere_on_disk(desk, monkeypatch):
    secret = "sk-test-4f9a8b7c6d5e4f3a2b1c"
    monkeypatch.setenv("DESK_KEY", secret)
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(
            desk, server.base_url, tasks=1, model=bench.settings(server.base_url, api_key_env="DESK_KEY")
        )
        go(desk, experiment.experiment_id)
        assert server.keys == [f"Bearer {secret}"] * 12
    files = [path for path in desk.path.parent.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" for path in files)
    for path in files:
        assert secret.encode() not in path.read_bytes(), path


def test_a_full_disk_stops_before_the_next_call(desk, monkeypatch):
    """The journal cannot take another line: nothing more may be asked, since it could not be recorded."""
    real = os.write
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(desk, server.base_url, concurrency=1, tasks=1)

        def full(handle: int, data: bytes) -> int:
            if data.startswith(b'{"type":"turn"') and len(server.bodies) >= 3:
                raise OSError(28, "No space left on device")
            return real(handle, data)

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(Exception, match="No space left on device"):
            go(desk, experiment.experiment_id)
        assert len(server.bodies) == 3
        monkeypatch.setattr(os, "write", real)
        summary = go(desk, experiment.experiment_id)
    assert (summary.done, summary.requests) == (3, 12)
    assert len(server.bodies) == 13
