"""Workspaces for the pages: one that is evaluated to the end, built once with the sample's own logs and world."""

import asyncio
import shutil
from pathlib import Path

import pytest

from poc import api
from poc.sample import data_dir, running_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def evaluated_once(tmp_path_factory) -> Path:
    """A workspace with logs, sets, scores, a finished small replay and its verdict."""
    path = tmp_path_factory.mktemp("evaluated") / "team.duckdb"
    workspace = api.open(path)
    data = data_dir()
    api.import_logs(workspace, [data / "logs" / "orders.jsonl"])
    api.readiness(workspace)
    api.load_subgoals(workspace, data / "subgoals")
    api.score(workspace)
    with running_server() as base_url:
        experiment = api.plan(
            workspace,
            name="small",
            mode="closed_loop",
            model=api.ModelSettings(name="simulated-agent", base_url=base_url),
            environment="poc.sample.world:World",
            tasks=3,
        )
        asyncio.run(api.arun(workspace, experiment.experiment_id))
    api.decide(workspace)
    return path


@pytest.fixture
def evaluated(evaluated_once, tmp_path, monkeypatch) -> Path:
    """A copy of the evaluated workspace, chosen as the app's."""
    path = tmp_path / "team.duckdb"
    shutil.copy(evaluated_once, path)
    shutil.copytree(f"{evaluated_once}.files", f"{path}.files", dirs_exist_ok=True)
    monkeypatch.setenv("POC_WORKSPACE", str(path))
    return path


@pytest.fixture
def fresh(tmp_path, monkeypatch) -> Path:
    """An empty workspace, chosen as the app's."""
    path = tmp_path / "fresh.duckdb"
    api.open(path)
    monkeypatch.setenv("POC_WORKSPACE", str(path))
    return path
