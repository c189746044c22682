"""The whole line: the shell in this process, the simulated model on loopback, the finished sample."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from poc.cli import app
from poc.sample import ensure_sample, running_server

Shell = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="session")
def shell() -> Shell:
    """Run a verb with ``--json``: its exit code and the one object on stdout."""

    def call(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments] + ["--json"])
        assert done.stdout.count("\n") == 1, done.output
        return done.exit_code, json.loads(done.stdout)

    return call


@pytest.fixture(scope="session")
def simulated() -> Iterator[str]:
    """The base URL of the simulated model."""
    with running_server() as base_url:
        yield base_url


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished sample workspace (read it, or copy it)."""
    path = tmp_path_factory.mktemp("sample") / "sample.duckdb"
    ensure_sample(path)
    return path
