"""Were the subgoals made from other tasks than those replayed? Knows the plan and the stored sets, no trial."""

from __future__ import annotations

import json

from poc.replay.experiment import Plan
from poc.verdict.numbers import Split
from poc.workspace import Workspace


def splitting(workspace: Workspace, plan: Plan) -> Split:
    """Look every planned task up among the tasks that its subgoal set names as its sources (`made_from`)."""
    hashes = sorted({task.set_hash for task in plan.tasks})
    rows = workspace.rows(
        "SELECT set_hash, spec->>'made_from' AS made_from FROM subgoal_sets WHERE list_contains(?, set_hash)", [hashes]
    )
    sources: dict[str, set[str]] = {}
    for row in rows:
        stated = json.loads(row["made_from"] or "{}") or {}
        names = {str(name) for part in ("tasks", "reference_calls_of") for name in stated.get(part) or ()}
        if names:
            sources[row["set_hash"]] = names
    overlap = sorted(
        task.task_key
        for task in plan.tasks
        if task.task_key is not None and task.task_key in sources.get(task.set_hash, ())
    )
    return Split(overlapping=tuple(overlap), silent_sets=len(hashes) - len(sources))
