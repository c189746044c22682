"""The sample workspace: a finished evaluation, built through the same verbs that a team uses.

Nothing is prepared in advance: the logs are imported, scored, replayed against
the simulated model over loopback, judged and reported like any others. The
workspace carries a mark, so that it is never taken for a team's own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from poc.errors import InputError
from poc.ingest import import_logs
from poc.models.settings import ModelSettings
from poc.progress import score
from poc.readiness import assess
from poc.replay import ReplayStatus, make_plan, run, store_plan
from poc.replay.experiment import BudgetLimits
from poc.sample.files import data_dir
from poc.sample.server import running_server
from poc.subgoals import load_sets, store_sets
from poc.verdict import decide
from poc.workspace import Workspace

Progress = Callable[[int, int | None, str], None]

_MARK = "sample"
_STAGES = 100


def is_sample(workspace: Workspace) -> bool:
    """Whether this workspace holds the sample and not a team's own logs."""
    return workspace.value("SELECT count(*) FROM meta WHERE key = ?", [_MARK]) == 1


def ensure_sample(path: str | os.PathLike[str], *, progress: Progress | None = None) -> dict[str, Any]:
    """Build the sample workspace at `path`, go on where an earlier build stopped, or do nothing when it is whole.

    Returns its path, the experiment and the verdict. Raises `InputError` when
    the file is a workspace with other logs in it.
    """

    def tell(done: int, note: str) -> None:
        if progress is not None:
            progress(done, _STAGES, note)

    workspace = Workspace.open(path)
    if not is_sample(workspace):
        if workspace.value("SELECT count(*) FROM sources"):
            raise InputError(
                "This workspace holds other logs; the sample is kept apart from them.",
                where=str(workspace.path),
                todo="Give the path of a new file for the sample.",
            )
        with workspace.write() as db:
            db.execute("INSERT INTO meta VALUES (?, '1')", [_MARK])
    data = data_dir()
    tell(2, "Importing the logs")
    import_logs(workspace, [data / "logs" / "orders.jsonl"])
    import_logs(
        workspace,
        [data / "logs" / "orders.csv"],
        mapping=data / "logs" / "mapping.yaml",
        outcomes=data / "logs" / "outcomes.csv",
    )
    tell(10, "Judging the logs")
    assess(workspace)
    store_sets(workspace, load_sets(data / "subgoals"))
    tell(14, "Scoring the runs")
    score(workspace)
    experiment_id = _replayed(workspace, tell)
    tell(97, "Deciding")
    verdict = decide(workspace, experiment_id)
    tell(100, "Ready")
    return {"path": str(workspace.path), "experiment_id": experiment_id, "verdict": verdict.verdict}


def _replayed(workspace: Workspace, tell: Callable[[int, str], None]) -> str:
    """The finished experiment of the sample; it is run, or gone on with, where it is not there yet."""
    done = workspace.value(
        "SELECT experiment_id FROM experiments WHERE status = 'finished' ORDER BY created_at LIMIT 1"
    )
    if done is not None:
        return done
    with running_server() as base_url:
        plan = make_plan(
            workspace,
            name="sample",
            mode="closed_loop",
            model=ModelSettings(name="simulated-agent", base_url=base_url),
            environment="poc.sample.world:World",
            budget=BudgetLimits(tokens=20_000_000),
            seed=1,
            concurrency=16,
        )
        experiment_id = store_plan(workspace, plan).experiment_id

        def tick(state: ReplayStatus) -> None:
            tell(16 + round(80 * state.done / max(state.total, 1)), "Replaying tasks")

        asyncio.run(run(workspace, experiment_id, progress=tick))
    return experiment_id
