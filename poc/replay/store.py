"""Experiments and their results in the workspace: stored when planned, merged from the journal when run.

Merging is idempotent: every row has its id from the journal, so that merging
twice, or after more has happened, gives the rows that one merge would. Each
merge is one short transaction. Knows no model and no environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from poc.errors import InputError
from poc.replay.experiment import Estimate, Plan, TrialKey
from poc.replay.past import pasts
from poc.replay.records import Record, StepDone, TrialDone, TurnDone
from poc.workspace import Connection, Workspace


class Experiment(msgspec.Struct, frozen=True):
    """A stored plan with its estimate. `status`: planned, running, stopped, finished."""

    experiment_id: str
    plan: Plan
    estimate: Estimate | None
    status: str = "planned"
    simulated: bool | None = None


def insert_experiment(workspace: Workspace, plan: Plan, estimate: Estimate) -> Experiment:
    """Store a plan. The id comes from the plan, so the same plan is the same experiment.

    A plan that is already stored and not finished is taken up again (and is
    then the latest). Raises `InputError` for one that was already run to its end.
    """
    experiment_id = plan.hash[:12]
    now = datetime.now(UTC)
    with workspace.write() as db:
        row = db.execute("SELECT status FROM experiments WHERE experiment_id = ?", [experiment_id]).fetchone()
        if row and row[0] == "finished":
            raise InputError(
                "This very plan was already run to its end.",
                where=f"experiment {experiment_id}",
                todo="Look at its results, or choose another seed or name for a new experiment.",
            )
        if row:
            db.execute("UPDATE experiments SET created_at = ? WHERE experiment_id = ?", [now, experiment_id])
        else:
            db.execute(
                """
                INSERT INTO experiments
                    (experiment_id, name, plan, plan_hash, mode, created_at, estimate, status, simulated, merged_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, 'planned', NULL, NULL)
                """,
                [experiment_id, plan.name, plan.canonical, plan.hash, plan.mode, now, estimate.model_dump_json()],
            )
    return load_experiment(workspace, experiment_id)


def load_experiment(workspace: Workspace, experiment_id: str) -> Experiment:
    """A stored experiment. Raises `InputError` when there is none, or its plan was changed after it was frozen."""
    rows = workspace.rows(
        "SELECT plan, plan_hash, estimate, status, simulated FROM experiments WHERE experiment_id = ?", [experiment_id]
    )
    if not rows:
        raise InputError(f"There is no experiment '{experiment_id}'.", where=str(workspace.path))
    row = rows[0]
    plan = Plan.model_validate_json(row["plan"])
    if plan.hash != row["plan_hash"]:
        raise InputError(
            "The stored plan is not the one that was frozen.",
            where=f"experiment {experiment_id}",
            todo="Plan a new experiment; the results of this one cannot be trusted.",
        )
    estimate = None if row["estimate"] is None else Estimate.model_validate_json(row["estimate"])
    return Experiment(experiment_id, plan, estimate, row["status"], row["simulated"])


def mark(workspace: Workspace, experiment_id: str, status: str) -> None:
    """Set the status of an experiment."""
    with workspace.write() as db:
        db.execute("UPDATE experiments SET status = ? WHERE experiment_id = ?", [status, experiment_id])


def merge(
    workspace: Workspace,
    experiment_id: str,
    keys: Sequence[TrialKey],
    records: Sequence[Record],
    *,
    status: str | None = None,
) -> None:
    """Bring what a journal holds into trials, requests, replay_steps and judgements; idempotent.

    Requests of unfinished trials and of given-up attempts are merged too:
    they were paid. (Those of a given-up attempt n stand under the trial id
    with ``~n`` behind it, so that they count in no trial's figures.) Rows of
    trials, steps and judgements exist for finished trials only. `status`: the
    new status of the experiment, if it changes.
    """
    planned = {key.trial_id: key for key in keys}
    past = pasts(records)
    turns = [record for record in records if isinstance(record, TurnDone)]
    done = [one.done for one in past.values() if one.done is not None]
    trials = [_trial_row(experiment_id, planned[one.trial_id], one) for one in done]
    steps = [_step_row(step) for one in past.values() if one.done is not None for step in one.steps.values()]
    judgements = [
        {"trial_id": one.trial_id, "judge": j.judge, "value": j.value, "reason": j.reason}
        for one in done
        for j in one.judgements
    ]
    latest = {trial_id: one.attempt for trial_id, one in past.items()}
    simulated = any(turn.simulated for turn in turns) if any(turn.error is None for turn in turns) else None
    with workspace.write() as db:
        _insert(db, "trials", trials, "INSERT OR REPLACE")
        _insert(db, "requests", [_request_row(turn, latest) for turn in turns], "INSERT OR REPLACE")
        for table, rows in (("replay_steps", steps), ("judgements", judgements)):
            db.execute(f"DELETE FROM {table} WHERE trial_id IN (SELECT unnest(?::VARCHAR[]))", [list(planned)])
            _insert(db, table, rows, "INSERT")
        db.execute(
            """
            UPDATE experiments SET merged_at = $at, simulated = coalesce($simulated, simulated),
                   status = coalesce($status, status)
            WHERE experiment_id = $id
            """,
            {"at": datetime.now(UTC), "simulated": simulated, "status": status, "id": experiment_id},
        )


def _insert(db: Connection, table: str, rows: list[dict[str, Any]], verb: str) -> None:
    if not rows:
        return
    db.register("merge_batch", pa.Table.from_pylist(rows, schema=_SCHEMAS[table]))
    try:
        db.execute(f"{verb} INTO {table} BY NAME SELECT * FROM merge_batch")
    finally:
        db.unregister("merge_batch")


def _trial_row(experiment_id: str, key: TrialKey, done: TrialDone) -> dict[str, Any]:
    run_id, turn = key.cut or (None, None)
    return {
        **{name: getattr(done, name) for name in _FROM_DONE},
        "experiment_id": experiment_id,
        "task_id": key.task.task_id,
        "category": key.task.category,
        "repeat": key.repeat,
        "cut_run_id": run_id,
        "cut_turn": turn,
        "position": key.position,
    }


def _request_row(turn: TurnDone, latest: Mapping[str, int]) -> dict[str, Any]:
    usage = turn.usage
    return {
        "request_id": f"{turn.trial_id}:{turn.attempt}:{turn.turn}",
        "trial_id": turn.trial_id if turn.attempt == latest[turn.trial_id] else f"{turn.trial_id}~{turn.attempt}",
        **{name: getattr(turn, name) for name in _FROM_TURN},
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "cached_tokens": usage.cached_tokens if usage else None,
        "reasoning_tokens": usage.reasoning_tokens if usage else None,
    }


def _step_row(step: StepDone) -> dict[str, Any]:
    return {name: getattr(step, name) for name in _SCHEMAS["replay_steps"].names}


def _schema(columns: Mapping[str, pa.DataType]) -> pa.Schema:
    return pa.schema(list(columns.items()))


_TEXT, _WHOLE, _NUMBER, _TIME = pa.string(), pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC")

_FROM_TURN = (
    "turn",
    "model",
    "http_status",
    "retries",
    "backoff_s",
    "first_token_s",
    "total_s",
    "context_tokens",
    "cost_usd",
    "finish_reason",
    "error",
    "sent_at",
)
_SCHEMAS = {
    "trials": _schema(
        {
            "trial_id": _TEXT,
            "experiment_id": _TEXT,
            "task_id": _TEXT,
            "category": _TEXT,
            "arm": _TEXT,
            "repeat": _WHOLE,
            "cut_run_id": _TEXT,
            "cut_turn": _WHOLE,
            "position": _WHOLE,
            "attempt": _WHOLE,
            "status": _TEXT,
            "stop_reason": _TEXT,
            "error": _TEXT,
            "success": _NUMBER,
            "success_provenance": _TEXT,
            "final_progress": _NUMBER,
            "turns": _WHOLE,
            "steps": _WHOLE,
            "errors": _WHOLE,
            "repeated_steps": _WHOLE,
            "repeated_irreversible": _WHOLE,
            "input_tokens": _WHOLE,
            "output_tokens": _WHOLE,
            "cached_tokens": _WHOLE,
            "reasoning_tokens": _WHOLE,
            "context_tokens": _WHOLE,
            "cost_usd": _NUMBER,
            "model_latency_s": _NUMBER,
            "first_token_s": _NUMBER,
            "tool_latency_s": _NUMBER,
            "started_at": _TIME,
            "ended_at": _TIME,
        }
    ),
    "requests": _schema(
        {
            "request_id": _TEXT,
            "trial_id": _TEXT,
            "turn": _WHOLE,
            "model": _TEXT,
            "http_status": _WHOLE,
            "retries": _WHOLE,
            "backoff_s": _NUMBER,
            "first_token_s": _NUMBER,
            "total_s": _NUMBER,
            "input_tokens": _WHOLE,
            "output_tokens": _WHOLE,
            "cached_tokens": _WHOLE,
            "reasoning_tokens": _WHOLE,
            "context_tokens": _WHOLE,
            "cost_usd": _NUMBER,
            "finish_reason": _TEXT,
            "error": _TEXT,
            "sent_at": _TIME,
        }
    ),
    "replay_steps": _schema(
        {
            "trial_id": _TEXT,
            "step": _WHOLE,
            "turn": _WHOLE,
            "ordinal": _WHOLE,
            "tool": _TEXT,
            "arguments": _TEXT,
            "result": _TEXT,
            "status": _TEXT,
            "duration_s": _NUMBER,
            "progress": _NUMBER,
            "context": _TEXT,
        }
    ),
    "judgements": _schema({"trial_id": _TEXT, "judge": _TEXT, "value": pa.bool_(), "reason": _TEXT}),
}
_FROM_DONE = tuple(name for name in _SCHEMAS["trials"].names if name in TrialDone.__struct_fields__)
