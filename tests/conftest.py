"""What all tests share: a fresh workspace, and the folder of real logs where it exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from poc.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty workspace in a folder of its own."""
    return Workspace.open(tmp_path / "workspace.duckdb")


@pytest.fixture(scope="session")
def real_logs() -> Path:
    """The folder of real logs beside the project; skips where it does not exist."""
    folder = SHARED / "logs"
    if not folder.is_dir():
        pytest.skip("the real logs (../shared/logs) are not on this machine")
    return folder
