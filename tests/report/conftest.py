"""The workbench as a fixture, and one report that several tests read."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_bench import Bench, Page

from poc.readiness import assess
from poc.report import build_report
from poc.verdict import decide


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty workbench."""
    return Bench(tmp_path / "report.duckdb")


@pytest.fixture(scope="session")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The standard experiment, assessed and decided; not to be changed."""
    made = Bench(tmp_path_factory.mktemp("report") / "decided.duckdb").build()
    assess(made.workspace)
    decide(made.workspace, "x1")
    return made


@pytest.fixture(scope="session")
def english(decided: Bench) -> Page:
    """Its report in English."""
    return Page(build_report(decided.workspace, "x1"))


@pytest.fixture(scope="session")
def japanese(decided: Bench) -> Page:
    """Its report in Japanese."""
    return Page(build_report(decided.workspace, "x1", "ja"))
