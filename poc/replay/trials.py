"""What the trials of an experiment need from the workspace, loaded once: subgoal sets, environment or logged runs.

After loading nothing touches the workspace any more, so that a replay never
waits for it. Knows no journal and no order of trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poc.errors import InputError
from poc.ingest import iter_runs
from poc.replay.attempt import Shared
from poc.replay.environments.python import PythonEnvironments
from poc.replay.experiment import Plan, TrialKey
from poc.replay.loop import EnvironmentFactory, run_closed_loop
from poc.replay.nextstep import run_next_step
from poc.replay.past import Past
from poc.replay.records import TrialDone
from poc.replay.toolbox import tools_of_source
from poc.subgoals import SubgoalSet, set_by_hash
from poc.trajectory import Run, ToolSchema
from poc.workspace import Workspace


@dataclass(frozen=True)
class Trials:
    """Runs single trials of one plan."""

    plan: Plan
    sets: Mapping[str, SubgoalSet]
    environments: EnvironmentFactory | None = None
    runs: Mapping[str, Run] = field(default_factory=dict)
    tools: Mapping[str, list[ToolSchema]] = field(default_factory=dict)
    """Per run id: the tools of the agent that made the run."""

    @classmethod
    def load(cls, workspace: Workspace, plan: Plan) -> Trials:
        """Everything that the plan names. Raises `InputError` for what is no longer there."""
        sets = {task.set_hash: set_by_hash(workspace, task.set_hash) for task in plan.tasks}
        if plan.mode == "closed_loop":
            if plan.environment.target is None:
                raise InputError("The plan names no environment.", todo="Plan again with an environment.")
            return cls(plan, sets, environments=PythonEnvironments(plan.environment.target))
        run_ids = sorted({run_id for task in plan.tasks for run_id, _ in task.cuts})
        rows = workspace.rows("SELECT run_id, source_id FROM runs WHERE list_contains(?, run_id)", [run_ids])
        known = {row["run_id"]: row for row in rows}
        if missing := [run_id for run_id in run_ids if run_id not in known]:
            raise InputError(
                f"A logged run of the plan is no longer in the workspace: {missing[0]}.",
                where=str(workspace.path),
                todo="Import its log again, or plan anew.",
            )
        per_source = {row["source_id"]: tools_of_source(workspace, row["source_id"]) for row in rows}
        runs = dict(iter_runs(workspace, where="list_contains(?, run_id)", parameters=[run_ids]))
        tools = {run_id: per_source[known[run_id]["source_id"]] for run_id in run_ids}
        return cls(plan, sets, runs=runs, tools=tools)

    async def run(self, key: TrialKey, shared: Shared, past: Past | None) -> TrialDone:
        """Run one attempt at one trial; see `run_closed_loop` and `run_next_step` for what is raised."""
        subgoal_set = self.sets[key.task.set_hash]
        if key.cut is None:
            assert self.environments is not None
            return await run_closed_loop(key, shared, subgoal_set, self.environments, past)
        run_id = key.cut[0]
        return await run_next_step(key, shared, subgoal_set, self.runs[run_id], self.tools[run_id], past)
