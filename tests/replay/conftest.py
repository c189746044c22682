import shutil
from pathlib import Path

import pytest
import replay_bench

from poc.workspace import Workspace


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scored workspace that tests copy, since importing takes longer than copying."""
    folder = tmp_path_factory.mktemp("desk")
    return replay_bench.fill(Workspace.open(folder / "workspace.duckdb"), folder).path


@pytest.fixture
def desk(tmp_path: Path, filled: Path) -> Workspace:
    """A workspace with eight logged runs of four tasks, scored."""
    return Workspace.open(shutil.copy(filled, tmp_path / "workspace.duckdb"))
