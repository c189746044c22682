"""Stored trials as records, and how they are paired. The only module here that reads the replay's tables.

An outcome that nobody could judge is a failure (nothing is dropped after
treatment); a cost that nobody measured is None. Knows no statistics.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from pydantic import ValidationError

from poc.errors import InputError, did_you_mean
from poc.replay.experiment import Plan
from poc.workspace import Workspace

SIMULATED_UNKNOWN_TOOLS = "simulated_unknown_tools"
"""Name under which the replay marks such a trial in `judgements`."""

Unit = tuple[int, str, int]
"""What is alike in all arms within a task: the repeat; in next-step mode also the logged run and turn (else "", -1)."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One stored trial with the times of its requests.

    `latency_s` sums the model time of its successful requests, `first_token_s`
    is their mean; backoff is in neither. `tokens` is input plus output.
    """

    trial_id: str
    task_id: str
    category: str | None
    arm: str
    unit: Unit
    failed: bool
    success: float | None
    provenance: str | None
    final_progress: float | None
    turns: int
    steps: int
    errors: int
    repeated_steps: int
    repeated_irreversible: int
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    context_tokens: int
    cost_usd: float | None
    latency_s: float | None
    first_token_s: float | None
    retries: int = 0
    backoff_s: float = 0.0

    @property
    def outcome(self) -> float:
        """What counts: the judged outcome, 0 for a trial that failed or that nobody judged."""
        return 0.0 if self.failed or self.success is None else self.success

    @property
    def ungraded(self) -> bool:
        """Finished, but nobody could judge it."""
        return not self.failed and self.success is None

    @property
    def tokens(self) -> int | None:
        """Input plus output tokens; None when either is unknown or the trial made no call that was answered."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return (self.input_tokens + self.output_tokens) or None


class Stored(msgspec.Struct, frozen=True):
    """One experiment as it lies in the workspace. `trials` are those of the plan, in an order of their own."""

    experiment_id: str
    plan: Plan
    simulated: bool
    tools_known: bool
    """False when a simulated model said that it had to improvise on tools that it does not know."""
    models: tuple[str, ...]
    trials: tuple[Trial, ...]
    planned: int
    """Number of trials in the plan."""
    foreign: int
    """Trials stored under the experiment that are not in its plan."""


def load(workspace: Workspace, experiment_id: str) -> Stored:
    """Read an experiment's plan, trials and requests. Raises `InputError` when there is none of this name."""
    with workspace.read() as db:
        found = db.execute(
            "SELECT plan::VARCHAR, simulated FROM experiments WHERE experiment_id = ?", [experiment_id]
        ).fetchone()
        if found is None:
            known = [row[0] for row in db.execute("SELECT experiment_id FROM experiments").fetchall()]
            raise InputError(
                f"There is no experiment '{experiment_id}' in this workspace.{did_you_mean(experiment_id, known)}",
                where=str(workspace.path),
                todo="Plan one: poc replay plan",
            )
        trial_rows = _rows(db, "SELECT * FROM trials WHERE experiment_id = ? ORDER BY trial_id", [experiment_id])
        request_rows = _rows(
            db,
            """
            SELECT r.trial_id, r.model, r.http_status, r.retries, r.backoff_s, r.first_token_s, r.total_s, r.error
            FROM requests r JOIN trials t USING (trial_id)
            WHERE t.experiment_id = ? ORDER BY r.trial_id, r.request_id
            """,
            [experiment_id],
        )
        improvised = db.execute(
            """
            SELECT count(*) FROM judgements j JOIN trials t USING (trial_id)
            WHERE t.experiment_id = ? AND j.judge = ? AND j.value
            """,
            [experiment_id, SIMULATED_UNKNOWN_TOOLS],
        ).fetchone()
    try:
        plan = Plan.model_validate_json(found[0])
    except ValidationError as error:
        raise InputError(
            f"The stored plan cannot be read: {error.errors()[0]['msg']}.",
            where=f"experiment {experiment_id}",
            todo="Plan the experiment again with this version of the program.",
        ) from error
    requests: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in request_rows:
        requests[row["trial_id"]].append(row)
    planned = {key.trial_id for key in plan.trials()}
    trials = tuple(_trial(row, requests[row["trial_id"]]) for row in trial_rows if row["trial_id"] in planned)
    models = tuple(sorted({row["model"] for row in request_rows if row["model"]}))
    return Stored(
        experiment_id,
        plan,
        bool(found[1]),
        not (improvised and improvised[0]),
        models,
        trials,
        len(planned),
        len(trial_rows) - len(trials),
    )


def _rows(db: Any, sql: str, parameters: list[Any]) -> list[dict[str, Any]]:
    result = db.execute(sql, parameters)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _trial(row: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]) -> Trial:
    answered = [
        request
        for request in requests
        if request["error"] is None
        and request["total_s"] is not None
        and (request["http_status"] is None or 200 <= request["http_status"] < 300)
    ]
    firsts = [request["first_token_s"] for request in answered if request["first_token_s"] is not None]
    return Trial(
        trial_id=row["trial_id"],
        task_id=row["task_id"],
        category=row["category"],
        arm=row["arm"],
        unit=(
            row["repeat"],
            row["cut_run_id"] or "",
            -1 if row["cut_turn"] is None else row["cut_turn"],
        ),
        failed=row["status"] == "failed",
        success=row["success"],
        provenance=row["success_provenance"],
        final_progress=row["final_progress"],
        turns=row["turns"],
        steps=row["steps"],
        errors=row["errors"],
        repeated_steps=row["repeated_steps"],
        repeated_irreversible=row["repeated_irreversible"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cached_tokens=row["cached_tokens"],
        context_tokens=row["context_tokens"],
        cost_usd=row["cost_usd"],
        latency_s=math.fsum(request["total_s"] for request in answered) if answered else None,
        first_token_s=math.fsum(firsts) / len(firsts) if firsts else None,
        retries=sum(request["retries"] for request in requests),
        backoff_s=math.fsum(request["backoff_s"] for request in requests),
    )


class Pairs(msgspec.Struct, frozen=True):
    """Trials of two arms, task by task: `by_task[task]` lists (treated, control) of the same unit."""

    by_task: dict[str, list[tuple[Trial, Trial]]]
    unpaired: int


def pair(trials: Iterable[Trial], treatment: str, control: str) -> Pairs:
    """Pair two arms by task and unit; trials whose partner is not stored (yet) are only counted."""
    sides: dict[str, dict[tuple[str, Unit], Trial]] = {treatment: {}, control: {}}
    for trial in trials:
        if trial.arm in sides:
            sides[trial.arm][trial.task_id, trial.unit] = trial
    shared = sorted(sides[treatment].keys() & sides[control].keys())
    by_task: dict[str, list[tuple[Trial, Trial]]] = {}
    for key in shared:
        by_task.setdefault(key[0], []).append((sides[treatment][key], sides[control][key]))
    unpaired = len(sides[treatment]) + len(sides[control]) - 2 * len(shared)
    return Pairs(by_task, unpaired)


def task_means(pairs: Pairs, value: Callable[[Trial], float | None]) -> tuple[list[float], list[float], int]:
    """Per task the means of a value in both arms, and how many tasks had to be left out.

    A unit counts only when the value is known in both arms, so that the arms
    are always compared on the same units; a task without such a unit is missing.
    """
    treated: list[float] = []
    control: list[float] = []
    missing = 0
    for units in pairs.by_task.values():
        known = [(a, b) for a, b in ((value(x), value(y)) for x, y in units) if a is not None and b is not None]
        if not known:
            missing += 1
            continue
        treated.append(math.fsum(a for a, _ in known) / len(known))
        control.append(math.fsum(b for _, b in known) / len(known))
    return treated, control, missing


def by_task_mean(trials: Iterable[Trial], value: Callable[[Trial], float | None]) -> dict[str, float]:
    """The mean of a known value per task."""
    values: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        known = value(trial)
        if known is not None:
            values[trial.task_id].append(known)
    return {task: math.fsum(known) / len(known) for task, known in sorted(values.items())}


def mean(values: Iterable[float]) -> float | None:
    """The mean, the same whatever the order; None of nothing."""
    known = list(values)
    return math.fsum(known) / len(known) if known else None
