"""The workbench as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest
from verdict_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An experiment to be filled by hand."""
    return Bench(tmp_path / "w.duckdb")
