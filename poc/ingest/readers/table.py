"""A team's own table: CSV or JSON rows, one row a tool call, columns named by a mapping.

The mapping says which column holds which field (`FIELDS`); without one it is
suggested from the column names. Rows with one run id make one run, in any
place of the file; without a run column the file is one run. Order within a
run: the step column, else start time, else place in the file. A row without a
tool name is a reject. Runs take what every row repeats (task, outcome, model)
from the first row that has it. Columns that are not mapped are not kept.
Knows no table of the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from poc.ingest import jsonstream
from poc.ingest.columns import FIELDS, check_mapping, strength, suggest_mapping
from poc.ingest.readers.rows import Row, columns_of, is_csv, is_one_object, rows
from poc.ingest.readers.table_runs import RunRows
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "table"
VERSION = 1

__all__ = ["FIELDS", "NAME", "VERSION", "read", "sniff"]


def sniff(sample: bytes, name: str) -> float:
    """How sure this is a table of calls, 0..1: by its columns, never more than 0.8."""
    columns = columns_of(sample)
    sure = min(0.8, strength(columns)) if columns else 0.0
    # One JSON object alone is rather some other kind of log than a table of one row.
    return sure / 2 if not is_csv(sample) and is_one_object(sample) else sure


def read(source: Source) -> Iterator[Run | Reject]:
    """Rejects as they are met, then the runs in the order of their first rows.

    The mapping is settled at once, before the first row is asked for. Raises
    `InputError` when it names a column that the file lacks, or when no column
    can be told to hold the tool.
    """
    columns = columns_of(source.sample)
    if source.mapping is None:
        source.mapping = suggest_mapping(columns)
    check_mapping(source.mapping, columns, where=str(source.path))
    return _read(source, source.mapping)


def _read(source: Source, mapping: dict[str, str]) -> Iterator[Run | Reject]:
    runs: dict[str | None, RunRows] = {}
    for item in rows(source):
        if isinstance(item, Reject):
            yield item
            continue
        run_key = _key(item, mapping.get("run_id"))
        group = runs.get(run_key)
        if group is None:
            group = runs[run_key] = RunRows(run_key, item.place, mapping)
        yield from group.add(item)
    for group in runs.values():
        if group.records:
            yield group.finish()


def _key(row: Row, column: str | None) -> str | None:
    value: Any = row.cells.get(column) if column else None
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else jsonstream.compact(value)
