"""Outcomes that the log lacks, joined from a CSV that somebody keeps elsewhere.

The CSV has a column that names the run and one that holds the outcome. A row
that fits several runs, or rows that contradict each other, are refused: a wrong
label is worse than none. Knows the tables, no log format.
"""

from __future__ import annotations

import csv
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from poc.errors import InputError, did_you_mean
from poc.ingest.outcome_values import read_outcome
from poc.workspace import Workspace

KEYS = ("run_id", "native_id", "task_key")
_KEY_COLUMNS = {
    "run_id": ("run_id",),
    "native_id": ("native_id", "id", "session_id", "conversation_id", "trace_id", "simulation_id", "run"),
    "task_key": ("task_key", "task_id", "task"),
}
_VALUE_COLUMNS = ("outcome", "success", "reward", "label", "solved", "resolved", "passed", "score", "result")


class JoinResult(msgspec.Struct, kw_only=True):
    """What a join did: rows of the CSV that found their run and those that did not, and runs still without outcome."""

    rows: int
    matched: int
    unmatched: int
    key: str
    """``run_id``, ``native_id`` or ``task_key``; with a column ``trial`` the latter is taken together with it."""
    value: str
    unmatched_examples: list[str]
    runs_without_outcome: int


def join_outcomes(
    workspace: Workspace,
    csv_path: str | os.PathLike[str],
    *,
    key: str | None = None,
    value: str | None = None,
) -> JoinResult:
    """Label runs with the outcomes of a CSV; a label wins over the log's own outcome.

    key: the column that names the run; left out, the first of ``run_id``,
    ``native_id`` (or ``id``, ``session_id``, ...) and ``task_key`` (or
    ``task_id``) that the file has. What is in it is looked for among run ids
    and native ids, or among task keys with the trial.
    value: the column with the outcome: 0..1, or a word like success or failed.

    Raises `InputError` when a column is missing, a value is no outcome, or a
    row fits several runs; nothing is then stored.
    """
    path = Path(csv_path)
    where = str(path)
    header, lines = _read(path)
    column, kind = _key_column(header, key, where)
    outcome_column = _value_column(header, value, column, where)
    trial_column = "trial" if kind == "task_key" and "trial" in header else None
    runs = _runs(workspace, kind, with_trial=trial_column is not None)

    labels: dict[str, tuple[float, int]] = {}
    unmatched: list[str] = []
    for number, cells in lines:
        name = cells[column].strip()
        trial = cells[trial_column].strip() if trial_column else None
        shown = name if trial is None else f"{name}, trial {trial}"
        outcome = read_outcome(cells[outcome_column])
        if outcome is None:
            raise InputError(
                f"'{cells[outcome_column]}' in column '{outcome_column}' is no outcome.",
                where=f"{where}, line {number}",
                todo="Use numbers from 0 to 1, or words like success and failed; scale other scores to 0..1 first.",
            )
        found = runs.get((name, trial), [])
        if len(found) > 1:
            raise InputError(
                f"'{shown}' fits {len(found)} runs, so the outcome cannot be given to one of them.",
                where=f"{where}, line {number}",
                todo="Use a column that names each run, such as run_id, or add a column 'trial'.",
            )
        if not found:
            unmatched.append(shown)
            continue
        if found[0] in labels and labels[found[0]][0] != outcome:
            raise InputError(
                f"'{shown}' has two different outcomes, in lines {labels[found[0]][1]} and {number}.",
                where=where,
                todo="Keep one of them.",
            )
        labels[found[0]] = (outcome, number)
    if labels:
        now = datetime.now(UTC)
        with workspace.write() as db:
            db.executemany(
                "INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?)",
                [[run_id, outcome, f"joined:{path.name}", now] for run_id, (outcome, _) in labels.items()],
            )
    without = workspace.value("SELECT count(*) FROM outcomes WHERE outcome IS NULL")
    return JoinResult(
        rows=len(lines),
        matched=len(lines) - len(unmatched),
        unmatched=len(unmatched),
        key=kind,
        value=outcome_column,
        unmatched_examples=unmatched[:10],
        runs_without_outcome=int(without or 0),
    )


def _read(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(
            f"The file with outcomes cannot be read: {error.strerror or error}.",
            where=str(path),
            todo="Check the path.",
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            "The file with outcomes is not UTF-8 text.", where=str(path), todo="Save it as UTF-8 CSV."
        ) from error
    lines = text.splitlines(keepends=True)
    delimiter = max(",;\t|", key=lines[0].count) if lines else ","
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        header = [name.strip() for name in next(reader, [])]
        rows: list[tuple[int, dict[str, str]]] = []
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"The row has {len(cells)} cells, but the header names {len(header)} columns.",
                    where=f"{path}, line {reader.line_num}",
                    todo="Mend the row.",
                )
            rows.append((reader.line_num, dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise InputError(
            f"Broken CSV: {error}.", where=f"{path}, line {reader.line_num}", todo="Mend the row."
        ) from error
    if not rows:
        raise InputError(
            "The file with outcomes holds no rows.",
            where=str(path),
            todo="Give a CSV with a header, for example run_id,outcome.",
        )
    return header, rows


def _key_column(header: list[str], key: str | None, where: str) -> tuple[str, str]:
    """The column that names the run, and what kind of name it holds."""
    for kind in KEYS:
        for column in _KEY_COLUMNS[kind]:
            if column in header and key in (None, column, kind):
                return column, kind
    if key is not None:
        if key in header:  # any other column: a native id under the team's own name
            return key, "native_id"
        raise InputError(
            f"There is no column '{key}' to name the runs.{did_you_mean(key, header)}",
            where=where,
            todo="Correct the name of the column.",
        )
    raise InputError(
        f"No column names the runs. Columns: {', '.join(header)}.",
        where=where,
        todo="Add a column run_id, native_id or task_key (with trial), or say which column it is.",
    )


def _value_column(header: list[str], value: str | None, key: str, where: str) -> str:
    if value is not None:
        if value in header:
            return value
        raise InputError(
            f"There is no column '{value}' with outcomes.{did_you_mean(value, header)}",
            where=where,
            todo="Correct the name of the column.",
        )
    for column in _VALUE_COLUMNS:
        if column in header and column != key:
            return column
    raise InputError(
        f"No column holds the outcomes. Columns: {', '.join(header)}.",
        where=where,
        todo="Call it 'outcome', or say which column it is.",
    )


def _runs(workspace: Workspace, kind: str, *, with_trial: bool) -> dict[tuple[str, str | None], list[str]]:
    """Run ids by the name that the CSV uses."""
    if kind == "task_key":
        trial = "trial" if with_trial else "NULL"
        sql = f"SELECT run_id, t.task_key AS name, {trial} AS trial FROM runs JOIN tasks t USING (task_id)"
    elif kind == "native_id":
        # Either name will do: what is called an id in the CSV may be ours.
        sql = (
            "SELECT run_id, native_id AS name, NULL AS trial FROM runs UNION "
            "SELECT run_id, run_id AS name, NULL AS trial FROM runs"
        )
    else:
        # A team's own column run_id holds its native ids.
        sql = (
            "SELECT run_id, run_id AS name, NULL AS trial FROM runs UNION "
            "SELECT run_id, native_id AS name, NULL AS trial FROM runs"
        )
    found: dict[tuple[str, str | None], list[str]] = {}
    for row in workspace.rows(sql):
        if row["name"] is not None:
            found.setdefault((row["name"], row["trial"]), []).append(row["run_id"])
    return found
