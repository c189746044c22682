"""Counts the checks, over everything or per source or tool, and lists what is behind a count. All of it in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import duckdb
import pandas as pd

from poc.errors import InputError, did_you_mean
from poc.readiness.checks import COUNTED, Counted, Excerpt
from poc.readiness.relations import RELATIONS, Unit
from poc.workspace import Workspace

By = Literal["source", "tool"]


def count_all(db: duckdb.DuckDBPyConnection, counted: Sequence[Counted]) -> dict[str, tuple[int, int]]:
    """(present, total) of each check; one query a unit."""
    found: dict[str, tuple[int, int]] = {}
    for unit in RELATIONS:
        asked = [check for check in counted if check.unit == unit]
        if asked:
            row = db.execute(f"SELECT {_counts(asked)} FROM ({RELATIONS[unit]})").fetchone() or ()
            for place, check in enumerate(asked):
                found[check.check_id] = (int(row[2 * place]), int(row[2 * place + 1]))
    return found


def shares(workspace: Workspace, by: By = "source") -> pd.DataFrame:
    """How far each check holds in each source or for each tool.

    One row a group and check: source_id and path (by source) or tool (by tool),
    check_id, unit, present, total, share (0..1, NULL where nothing was counted).
    Per tool only what steps have is counted.
    """
    units: list[Unit] = ["steps"] if by == "tool" else ["steps", "runs", "results"]
    column = "tool" if by == "tool" else "source_id"
    parts = [
        f"SELECT {column} AS part, '{check.check_id}' AS check_id, '{unit}' AS unit, {place} AS place,"
        f" n[{2 * number + 1}] AS present, n[{2 * number + 2}] AS total FROM {unit}_counts"
        for unit in units
        for number, (place, check) in enumerate(
            (place, check) for place, check in enumerate(COUNTED.values()) if check.unit == unit
        )
    ]
    tables = [
        f"{unit}_counts AS MATERIALIZED (SELECT {column}, [{_counts(_of(unit))}] AS n"
        f" FROM ({RELATIONS[unit]}) GROUP BY {column})"
        for unit in units
    ]
    named = "part AS tool" if by == "tool" else "part AS source_id, path"
    joined = "" if by == "tool" else "JOIN sources ON source_id = part"
    return workspace.frame(
        f"WITH {', '.join(tables)} SELECT {named}, check_id, unit, present, total, present / nullif(total, 0) AS share"
        f" FROM ({' UNION ALL '.join(parts)}) {joined} ORDER BY {'part' if by == 'tool' else 'path, part'}, place"
    )


def evidence(
    workspace: Workspace,
    check_id: str,
    *,
    source_id: str | None = None,
    tool: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> pd.DataFrame:
    """The steps, runs or results that do not fulfil a check, or show an oddity.

    One row each: run_id, native_id, step (NULL: the run as a whole, or a
    result without a call), message_seq, tool, status, other (the step that it
    clashes with), seconds (by how much), excerpt (arguments or result, at most
    300 characters), path.
    """
    counted = COUNTED.get(check_id)
    if counted is None:
        raise InputError(f"There is no check '{check_id}'.{did_you_mean(check_id, COUNTED)}")
    return workspace.frame(
        f"""
        WITH cases AS (
            SELECT run_id, native_id, source_id, step, message_seq, tool, status,
                   {counted.other} AS other, {counted.seconds} AS seconds
            FROM ({RELATIONS[counted.unit]})
            WHERE ({counted.applies}) AND ({counted.holds}) IS NOT TRUE
              AND ($source IS NULL OR source_id = $source) AND ($tool IS NULL OR tool = $tool)
            ORDER BY run_id, step, message_seq LIMIT $limit OFFSET $offset
        )
        SELECT c.run_id, c.native_id, c.step, c.message_seq, c.tool, c.status, c.other, c.seconds,
               left({_EXCERPTS[counted.excerpt]}, 300) AS excerpt, o.path
        FROM cases c LEFT JOIN sources o USING (source_id)
        LEFT JOIN steps s ON s.run_id = c.run_id AND s.step = c.step
        LEFT JOIN messages m ON m.run_id = c.run_id AND m.seq = c.message_seq
        ORDER BY c.run_id, c.step, c.message_seq
        """,
        {"source": source_id, "tool": tool, "limit": limit, "offset": offset},
    )


_EXCERPTS: dict[Excerpt | None, str] = {
    "arguments": "s.arguments_raw",
    "result": "coalesce(s.result, m.content)",
    "call_id": "s.call_id",
    None: "NULL::VARCHAR",
}


def _of(unit: Unit) -> list[Counted]:
    return [check for check in COUNTED.values() if check.unit == unit]


def _counts(asked: Sequence[Counted]) -> str:
    return ", ".join(
        f"count(*) FILTER (WHERE ({check.applies}) AND ({check.holds})), count(*) FILTER (WHERE {check.applies})"
        for check in asked
    )
