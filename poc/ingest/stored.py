"""Runs out of the workspace again, as the records that they came in as.

Trackers and replays read them. A tool message has its text back, taken from
the step whose result it is. Knows the tables, no format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from poc.errors import InputError, did_you_mean
from poc.trajectory import Message, Outcome, ReferenceCall, Run, Step, Usage
from poc.workspace import Workspace

_RUNS = """
SELECT r.*, t.task_key, t.text AS task_text, t.scenario, t.reference, o.outcome AS final_outcome, o.provenance
FROM runs r LEFT JOIN tasks t USING (task_id) JOIN outcomes o USING (run_id)
"""
_CHUNK = 200
"""Runs that are fetched at a time: memory stays bounded, and the file is not held while a caller works."""


class _Reference(msgspec.Struct):
    tool: str
    arguments: msgspec.Raw = msgspec.Raw(b"null")


_decode_reference = msgspec.json.Decoder(list[_Reference]).decode


def load_run(workspace: Workspace, run_id: str) -> Run:
    """One run with its messages and steps. Raises `InputError` when there is none of this id."""
    for _, run in _load(workspace, [run_id]):
        return run
    known = [row["run_id"] for row in workspace.rows("SELECT run_id FROM runs ORDER BY run_id LIMIT 5000")]
    raise InputError(
        f"There is no run '{run_id}' in the workspace.{did_you_mean(run_id, known) if known else ''}",
        where=str(workspace.path),
        todo="Take a run id from the table runs.",
    )


def iter_runs(
    workspace: Workspace,
    *,
    where: str = "true",
    parameters: Sequence[Any] | None = None,
    messages: bool = True,
) -> Iterator[tuple[str, Run]]:
    """(run_id, run) in the order of their ids.

    where: a condition in SQL over the columns of ``runs``, with ``?`` for
    `parameters`; it is the caller's own text and never comes from a log.
    messages: False leaves them out, for callers that need steps alone.
    """
    ids = [
        row["run_id"] for row in workspace.rows(f"SELECT run_id FROM runs WHERE {where} ORDER BY run_id", parameters)
    ]
    for start in range(0, len(ids), _CHUNK):
        yield from _load(workspace, ids[start : start + _CHUNK], messages=messages)


def _load(workspace: Workspace, ids: list[str], *, messages: bool = True) -> Iterator[tuple[str, Run]]:
    with workspace.read() as db:

        def fetch(sql: str) -> list[dict[str, Any]]:
            cursor = db.execute(sql, [ids])
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        run_rows = fetch(f"{_RUNS} WHERE list_contains(?, r.run_id) ORDER BY r.run_id")
        step_rows = fetch("SELECT * FROM steps WHERE list_contains(?, run_id) ORDER BY run_id, step")
        message_rows = (
            fetch("SELECT * FROM messages WHERE list_contains(?, run_id) ORDER BY run_id, seq") if messages else []
        )
    runs = {row["run_id"]: _run(row) for row in run_rows}
    for row in message_rows:
        runs[row["run_id"]].messages.append(_message(row))
    results: dict[tuple[str, int], str | None] = {}
    for row in step_rows:
        step = _step(row)
        runs[row["run_id"]].steps.append(step)
        if step.result_seq is not None:
            results[row["run_id"], step.result_seq] = step.result
    for run_id, run in runs.items():
        for message in run.messages:
            if message.content is None and (run_id, message.seq) in results:
                message.content = results[run_id, message.seq]
        yield run_id, run


def _run(row: dict[str, Any]) -> Run:
    reference = None
    if row["reference"] is not None:
        reference = [
            ReferenceCall(
                tool=call.tool, arguments_json=text if (text := bytes(call.arguments).decode()) != "null" else None
            )
            for call in _decode_reference(row["reference"])
        ]
    outcome = None
    if row["final_outcome"] is not None:
        outcome = Outcome(value=row["final_outcome"], provenance=row["provenance"] or "log")
    return Run(
        place=row["place"],
        native_id=row["native_id"],
        task_key=row["task_key"],
        trial=row["trial"],
        task_text=row["task_text"],
        category=row["category"],
        scenario=row["scenario"],
        framework=row["framework"],
        model=row["model"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        duration_s=row["duration_s"],
        zone_in_log=row["zone_in_log"],
        usage=_usage(row),
        cost_usd=row["cost_usd"],
        outcome=outcome,
        reference=reference,
        metadata=json.loads(row["metadata"]) if row["metadata"] else {},
    )


def _message(row: dict[str, Any]) -> Message:
    return Message(
        seq=row["seq"],
        role=row["role"],
        content=row["content"],
        name=row["name"],
        usage=_usage(row),
        sent_at=row["sent_at"],
        cost_usd=row["cost_usd"],
    )


def _step(row: dict[str, Any]) -> Step:
    return Step(
        index=row["step"],
        turn=row["turn"],
        ordinal=row["ordinal"],
        tool=row["tool"],
        call_id=row["call_id"],
        arguments_raw=row["arguments_raw"],
        arguments_json=row["arguments"],
        arguments_status=row["arguments_status"],
        result=row["result"],
        status=row["status"],
        status_evidence=row["status_evidence"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        duration_s=row["duration_s"],
        execution_id=row["execution_id"],
        caller=row["caller"],
        message_seq=row["message_seq"],
        result_seq=row["result_seq"],
    )


def _usage(row: dict[str, Any]) -> Usage | None:
    usage = Usage(
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cached_tokens=row["cached_tokens"],
        reasoning_tokens=row["reasoning_tokens"],
    )
    return usage if usage != Usage() else None
