from pathlib import Path

import pytest
import replay_bench

from poc.workspace import Workspace


@pytest.fixture
def desk(tmp_path: Path, workspace: Workspace) -> Workspace:
    """A workspace with eight logged runs of four tasks, scored."""
    return replay_bench.fill(workspace, tmp_path)
