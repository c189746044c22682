"""Nothing internal reaches the model: marked strings in every internal field are found in no request."""

import asyncio
import json

import pytest
import replay_bench as bench
from scripted_server import scripted_server

from poc.ingest import import_logs
from poc.progress import score
from poc.replay import run
from poc.subgoals import parse_set, store_sets
from poc.workspace import Workspace

MARK = "ZQXMARK"
SUBGOALS = f"""
category: paint
title: {MARK}settitle
runs: all
made_from: {{tasks: [{MARK}made], reference_calls_of: [{MARK}ref]}}
subgoals:
  - id: {MARK}looked
    title: Item looked up
    done_when: {{tool: look_up, result: {{"$.{MARK}path": {{exists: false}}}}}}
  - id: {MARK}painted
    title: Item painted red
    weight: 7.25
    done_when: {{tool: paint, arguments: {{"$.colour": {{in: [red, {MARK}colour]}}}}}}
  - id: {MARK}sent
    title: Item sent
    required: false
    after: [{MARK}painted]
    done_when: {{tool: send, arguments: {{"$.item": {{regex: "^([0-9]+|{MARK}regex)$"}}}}}}
    undone_when: {{tool: {MARK}tool}}
"""
WORLD = f'''
from desk_world import Desk
from poc.trajectory import Outcome
class Marked(Desk):
    async def outcome(self):
        return Outcome(value=1.0, provenance="{MARK}provenance", detail="{MARK}detail")
'''


@pytest.fixture
def marked(tmp_path, workspace) -> Workspace:
    records = []
    for number in range(3):
        record = bench.logged_run(number)
        del record["reward"]
        records.append(
            {
                **record,
                "task_id": f"{MARK}task{number}",
                "reward": 1.0,
                "category": f"{MARK}category",
                "model": f"{MARK}model",
                "framework": f"{MARK}framework",
                "note": f"{MARK}metadata",
                "info": {
                    "task": {
                        "instruction": f"{MARK}scenario",
                        "actions": [{"name": f"{MARK}reference", "kwargs": {"item": f"{MARK}argument"}}],
                    },
                    "reward_info": {"why": f"{MARK}reward"},
                },
            }
        )
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(json.dumps(record) for record in records))
    import_logs(workspace, [log])
    store_sets(workspace, [parse_set(SUBGOALS)])
    score(workspace)
    return workspace


@pytest.mark.parametrize("mode", ["closed_loop", "next_step"])
@pytest.mark.parametrize("placement", ["tail", "system", "tool_result"])
def test_marks_in_internal_fields_are_in_no_request(marked, tmp_path, mode, placement):
    from poc.replay import ContextSettings

    world = tmp_path / "marked_world.py"
    world.write_text(WORLD)
    with scripted_server(bench.diligent) as server:
        experiment = bench.planned(
            marked,
            server.base_url,
            mode=mode,
            environment=f"{world}:Marked",
            context=ContextSettings(placement=placement),
            tasks=2,
            name=f"{MARK}name",
            override_readiness=f"{MARK}reason",
        )
        summary = asyncio.run(run(marked, experiment.experiment_id))
    assert summary.state == "finished"
    # The marks are really there, and the arm really spoke.
    assert MARK in experiment.plan.canonical
    assert marked.value("SELECT count(*) FROM tasks WHERE task_key LIKE ? || '%'", [MARK]) == 3
    sent = [json.dumps(body, ensure_ascii=False) for body in server.bodies]
    assert any("[x] Item looked up" in body for body in sent)
    for body in sent:
        assert MARK not in body
        assert "7.25" not in body
