"""Makes a frozen plan from what the workspace holds: which tasks, which cuts, under which limits.

The sampling frame is recorded in the plan, tasks from which subgoals were made
are left out, and a log that is not ready blocks planning unless somebody says
why not. Nothing is called here.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from poc.context import arm as known_arm
from poc.errors import InputError, NotReady, did_you_mean
from poc.models import ModelSettings
from poc.prices import load_overrides
from poc.readiness import assess
from poc.replay.environments.loading import absolute_target
from poc.replay.estimate import Estimated, estimate, hard_budget
from poc.replay.experiment import (
    BudgetLimits,
    ContextSettings,
    EnvironmentSettings,
    Limits,
    Mode,
    Plan,
    PlannedTask,
    Readiness,
    Sampling,
    Thresholds,
)
from poc.replay.store import Experiment, insert_experiment
from poc.subgoals import SubgoalSet, active_sets
from poc.workspace import Workspace


def make_plan(
    workspace: Workspace,
    *,
    mode: Mode,
    model: ModelSettings,
    arms: Sequence[str] = ("none", "plan", "progress"),
    primary: tuple[str, str] = ("progress", "none"),
    environment: str | EnvironmentSettings | None = None,
    tasks: int | Iterable[str] | None = None,
    categories: Sequence[str] | None = None,
    runs: int | None = None,
    cuts_per_run: int = 3,
    repeats: int = 1,
    seed: int = 0,
    budget: BudgetLimits | None = None,
    thresholds: Thresholds | None = None,
    context: ContextSettings | None = None,
    limits: Limits | None = None,
    concurrency: int = 8,
    override_readiness: str | None = None,
    redact: bool = True,
    name: str = "experiment",
    prices: Mapping[str, Any] | None = None,
) -> Plan:
    """A frozen design; the same workspace and arguments give the same plan.

    mode: closed_loop (needs `environment`) or next_step. tasks: how many at
    random, or the keys (the log's own or the workspace's) of those wanted.
    categories: only these. runs: next-step, how many logged runs at random;
    cuts_per_run: how many of a run's turns are predicted, at random among
    those before which a subgoal was still open. budget: hard limits; without
    any, the estimate's worst case is the limit. override_readiness: the reason
    to go on although the logs are NOT READY.

    Raises `NotReady`, and `InputError` for whatever cannot be planned.
    """
    level = assess(workspace).level
    if level == "NOT READY" and not override_readiness:
        raise NotReady(
            "The logs are not ready for a replay.",
            where=str(workspace.path),
            todo="See the readiness page for what is missing, or give a reason to go on (override_readiness).",
        )
    for one in arms:
        known_arm(one)
    frame = _Frame.of(workspace, categories)
    chosen, sampling = frame.choose(tasks, seed)
    if mode == "next_step":
        chosen, more = frame.with_cuts(workspace, chosen, runs, cuts_per_run, seed)
        sampling = sampling.model_copy(update=more)
    elif runs is not None:
        raise InputError("'runs' is for next-step replays.", todo="Give 'tasks' for a closed-loop replay.")
    try:
        plan = Plan(
            name=name,
            mode=mode,
            tasks=tuple(chosen),
            sampling=sampling,
            arms=tuple(arms),
            primary=primary,
            repeats=repeats,
            seed=seed,
            model=model,
            environment=_environment(environment, mode),
            context=context or ContextSettings(),
            limits=limits or Limits(),
            budget=budget or BudgetLimits(),
            thresholds=thresholds or Thresholds(),
            concurrency=concurrency,
            redact=redact,
            readiness=Readiness(level=level, override_reason=override_readiness),
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or None
        raise InputError(f"The plan does not hold together: {first['msg']}.", where=where) from error
    return hard_budget(workspace, plan, load_overrides(prices))


def store_plan(workspace: Workspace, plan: Plan, *, prices: Mapping[str, Any] | None = None) -> Experiment:
    """Store a plan with its estimate as an experiment. See `insert_experiment` for a plan that is already there."""
    found: Estimated = estimate(workspace, plan, load_overrides(prices))
    return insert_experiment(workspace, plan, found.estimate)


def _environment(given: str | EnvironmentSettings | None, mode: Mode) -> EnvironmentSettings:
    if mode == "next_step":
        if given is not None and not (isinstance(given, EnvironmentSettings) and given.kind == "none"):
            raise InputError("A next-step replay carries nothing out, so it takes no environment.")
        return EnvironmentSettings()
    if given is None or (isinstance(given, EnvironmentSettings) and given.target is None):
        raise InputError(
            "A closed-loop replay needs an environment that answers tool calls.",
            todo="Name one: module:Class or path/to/file.py:Class. Without one, choose the mode next_step.",
        )
    target = given if isinstance(given, str) else given.target
    assert target is not None
    return EnvironmentSettings(kind="python", target=absolute_target(target))


@dataclass(frozen=True)
class _Frame:
    """The sampling frame: tasks that may be replayed, and how many were left out and why."""

    tasks: tuple[PlannedTask, ...]
    excluded: int = 0
    textless: int = 0
    categories: tuple[str, ...] = ()
    runs: Mapping[str, list[str]] = field(default_factory=dict)
    """Per task: the runs that its set claims, in a fixed order."""

    @classmethod
    def of(cls, workspace: Workspace, categories: Sequence[str] | None) -> _Frame:
        sets = {one.hash: one for one in active_sets(workspace)}
        if not sets:
            raise InputError(
                "There are no subgoal sets.", where=str(workspace.path), todo="Load some: poc subgoals load <folder>"
            )
        known = sorted({one.category for one in sets.values()})
        for category in categories or ():
            if category not in known:
                raise InputError(f"No subgoal set is for the category '{category}'.{did_you_mean(category, known)}")
        rows = workspace.rows(
            """
            SELECT r.task_id, t.task_key, t.text, a.set_hash, r.run_id
            FROM assignments a JOIN runs r USING (run_id) JOIN tasks t USING (task_id)
            ORDER BY r.task_id, r.source_id, r.place, r.run_id
            """
        )
        rows = [row for row in rows if row["set_hash"] in sets]
        if not rows:
            raise InputError(
                "No run belongs to an active subgoal set.",
                where=str(workspace.path),
                todo="Score the runs (poc score) and check the 'runs' rule of the sets.",
            )
        by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            by_task[row["task_id"]].append(row)
        tasks: list[PlannedTask] = []
        runs: dict[str, list[str]] = {}
        excluded = textless = 0
        for task_id, its in by_task.items():
            set_hash = _most_common([row["set_hash"] for row in its])
            its_set = sets[set_hash]
            if categories and its_set.category not in categories:
                continue
            if _made_from(its_set, its[0]["task_key"], task_id):
                excluded += 1
            elif its[0]["text"] is None:
                textless += 1
            else:
                tasks.append(
                    PlannedTask(
                        task_id=task_id,
                        task_key=its[0]["task_key"],
                        category=its_set.category,
                        set_hash=set_hash,
                        text=its[0]["text"],
                    )
                )
                runs[task_id] = [row["run_id"] for row in its if row["set_hash"] == set_hash]
        tasks.sort(key=lambda task: task.task_id)
        return cls(tuple(tasks), excluded, textless, tuple(categories or ()), runs)

    def choose(self, tasks: int | Iterable[str] | None, seed: int) -> tuple[list[PlannedTask], Sampling]:
        """The tasks of the plan, and how they were chosen."""
        chosen = list(self.tasks)
        how: Literal["all", "random", "named"] = "all"
        if not chosen:
            raise InputError(
                "No task is left to replay.",
                todo=f"{self.excluded} are left out because subgoals were made from them, {self.textless} because "
                "their text is not in the log.",
            )
        if isinstance(tasks, int):
            if tasks < 1:
                raise InputError(f"{tasks} tasks cannot be replayed.", todo="Give a number from 1 up.")
            if tasks < len(chosen):
                chosen = random.Random(f"{seed}:tasks").sample(chosen, tasks)
                how = "random"
        elif tasks is not None:
            chosen = self._named(list(tasks))
            how = "named"
        sampling = Sampling(
            how=how,
            frame=len(self.tasks),
            categories=self.categories,
            made_from=self.excluded,
            textless=self.textless,
        )
        return sorted(chosen, key=lambda task: task.task_id), sampling

    def _named(self, keys: list[str]) -> list[PlannedTask]:
        by_name = {task.task_id: [task] for task in self.tasks}
        for task in self.tasks:
            if task.task_key is not None:
                by_name.setdefault(task.task_key, []).append(task)
        found: dict[str, PlannedTask] = {}
        for key in keys:
            if key not in by_name:
                raise InputError(
                    f"The task '{key}' cannot be replayed: it is unknown, has no subgoal set, no text, or its "
                    f"subgoals were made from it.{did_you_mean(key, by_name)}"
                )
            found.update((task.task_id, task) for task in by_name[key])
        return list(found.values())

    def with_cuts(
        self, workspace: Workspace, chosen: Sequence[PlannedTask], runs: int | None, cuts_per_run: int, seed: int
    ) -> tuple[list[PlannedTask], dict[str, int]]:
        """The tasks with the logged turns to predict, and the facts of `Sampling` on how these were chosen."""
        if cuts_per_run < 1 or (runs is not None and runs < 1):
            raise InputError("A next-step replay needs at least one run and one cut a run.")
        turns = _open_turns(workspace)
        wanted = [(task, run_id) for task in chosen for run_id in self.runs[task.task_id] if turns.get(run_id)]
        if not wanted:
            raise InputError(
                "No logged run of these tasks has a turn with a subgoal still open.",
                todo="Score the runs (poc score), or choose other tasks.",
            )
        total = len(wanted)
        if runs is not None and runs < total:
            wanted = random.Random(f"{seed}:runs").sample(wanted, runs)
        cuts: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for task, run_id in wanted:
            possible = turns[run_id]
            drawn = random.Random(f"{seed}:cuts:{run_id}").sample(possible, min(cuts_per_run, len(possible)))
            cuts[task.task_id].extend((run_id, turn) for turn in sorted(drawn))
        facts = {"runs": len(wanted), "runs_frame": total, "cuts_per_run": cuts_per_run}
        planned = [
            task.model_copy(update={"cuts": tuple(sorted(cuts[task.task_id]))}) for task in chosen if cuts[task.task_id]
        ]
        return planned, facts


def _open_turns(workspace: Workspace) -> dict[str, list[int]]:
    """Per run: the agent's turns before which progress was below 1, in order."""
    rows = workspace.rows(
        """
        WITH before AS (
            SELECT s.run_id, s.turn, s.caller,
                   coalesce(lag(p.current IGNORE NULLS) OVER (PARTITION BY s.run_id ORDER BY s.step), 0) AS progress,
                   row_number() OVER (PARTITION BY s.run_id, s.turn ORDER BY s.step) AS place
            FROM steps s LEFT JOIN progress p ON p.run_id = s.run_id AND p.step = s.step
        )
        SELECT run_id, turn FROM before
        WHERE place = 1 AND caller = 'agent' AND progress < 1 - 1e-9 ORDER BY run_id, turn
        """
    )
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[row["run_id"]].append(row["turn"])
    return found


def _most_common(hashes: Sequence[str]) -> str:
    # Ties go to the first in a fixed order, so that the same workspace gives the same plan.
    return min(Counter(hashes).items(), key=lambda item: (-item[1], item[0]))[0]


def _made_from(subgoal_set: SubgoalSet, task_key: str | None, task_id: str) -> bool:
    return bool(subgoal_set.made_from.all_tasks & {task_id, *([] if task_key is None else [task_key])})
