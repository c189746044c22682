"""A team's own table: CSV, JSON rows, Parquet or SQLite, one row a tool call, columns named by a mapping.

The mapping says which column holds which field (`FIELDS`); without one it is
suggested from the columns' names and first values. Rows with one run id make
one run, in any place of the file; without a run column, and wherever the
mapping says ``gap_s``, a run ends where nothing happened for longer than that;
else the file is one run. Order within a run: the step column unless its
numbers come again in a run, else start time, else place in the file. Where a
column tells starts of calls from their ends, two rows make one call. A row
without a tool name is a reject. Runs take what every row repeats (task,
outcome, model) from the first row that has it.
Columns that are not mapped are not kept.

SQLite: the mapping's ``table`` holds the calls (else the likeliest does);
``other.column`` is taken from another table's row with the same run id, and
rows of that table without a call are runs without steps. Knows no table of
the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from poc.errors import InputError, did_you_mean
from poc.ingest import jsonstream
from poc.ingest.columns import (
    FIELDS,
    OPTIONS,
    check_mapping,
    strength,
    suggest_mapping,
    suggest_run_fields,
)
from poc.ingest.readers import database, parquet
from poc.ingest.readers.rows import Row, columns_of, first_rows, is_csv, is_one_object, rows
from poc.ingest.readers.table_events import EventJoin
from poc.ingest.readers.table_runs import RunRows, cells_of
from poc.ingest.sources import Source
from poc.ingest.times import parse_time
from poc.trajectory import Reject, Run

NAME = "table"
VERSION = 2
MAGIC = (database.MAGIC, parquet.MAGIC)

__all__ = ["FIELDS", "MAGIC", "NAME", "VERSION", "TableLook", "look", "read", "sniff"]


class TableLook(msgspec.Struct, frozen=True, kw_only=True):
    """A table before it is read: its columns, first rows, and the mapping that they suggest."""

    columns: list[str]
    rows: list[dict[str, Any]]
    mapping: dict[str, str]


def sniff(sample: bytes, name: str) -> float:
    """How sure this is a table of calls, 0..1: by its columns, never more than 0.8."""
    if sample.startswith(database.MAGIC):
        return min(0.8, max(map(strength, database.tables_in(sample).values()), default=0.0))
    if sample.startswith(parquet.MAGIC):
        return min(0.8, strength(parquet.columns_in(sample)))
    columns = columns_of(sample)
    sure = min(0.8, strength(columns)) if columns else 0.0
    # One JSON object alone is rather some other kind of log than a table of one row.
    return sure / 2 if not is_csv(sample) and is_one_object(sample) else sure


def look(source: Source) -> TableLook:
    """What the file shows before it is read. Raises `InputError` for a file that cannot be opened."""
    if source.sample.startswith(database.MAGIC):
        return _look_into_database(source)
    if source.sample.startswith(parquet.MAGIC):
        first = parquet.peek(source)
        columns = parquet.columns_in(source.sample)
    else:
        columns, first = columns_of(source.sample), first_rows(source.sample)
    return TableLook(columns=columns, rows=first, mapping=suggest_mapping(columns, first))


def read(source: Source) -> Iterator[Run | Reject]:
    """Rejects as they are met, then the runs in the order of their first rows.

    The mapping is settled at once, before the first row is asked for. Raises
    `InputError` when it names a column that the file lacks, or when no column
    can be told to hold the tool.
    """
    seen = look(source)
    if source.mapping is None:
        source.mapping = seen.mapping
    check_mapping(source.mapping, seen.columns, where=source.label)
    return _read(source, source.mapping, seen)


def _look_into_database(source: Source) -> TableLook:
    tables = database.tables(source)
    given = source.mapping or {}
    table = given.get("table") or _likeliest(tables, given)
    if table not in tables:
        raise InputError(
            f"The database has no table '{table}'.{did_you_mean(table, tables)}" if table else "It has no tables.",
            where=source.label,
            todo="Name the table that holds the calls in the mapping, as 'table: ...'.",
        )
    columns, first = list(tables[table]), database.peek(source, table)
    mapping = {"table": table, **suggest_mapping(columns, first)}
    run_column = given.get("run_id", mapping.get("run_id"))
    for other, names in tables.items():
        if other != table and run_column in names and database.is_key(source, other, str(run_column)):
            added = suggest_run_fields(other, names, database.peek(source, other))
            columns += [f"{other}.{name}" for name in names if name != run_column]
            mapping.update({field: column for field, column in added.items() if field not in mapping})
    return TableLook(columns=columns, rows=first, mapping=mapping)


def _likeliest(tables: database.Tables, given: dict[str, str]) -> str:
    """The table that has the columns of the mapping, else the one whose names look most like calls."""
    wanted = {column for field, column in given.items() if field not in OPTIONS and "." not in column}
    having = [table for table, columns in tables.items() if wanted and wanted <= set(columns)]
    return max(having or tables, key=lambda table: strength(tables[table]), default="")


def _rows(source: Source, mapping: dict[str, str], seen: TableLook) -> Iterator[Row | Reject]:
    used = [column for field, column in mapping.items() if field not in OPTIONS]
    if source.sample.startswith(database.MAGIC):
        table = mapping.get("table", seen.mapping["table"])
        return database.rows(source, table, list(dict.fromkeys(used)), mapping.get("run_id"))
    if source.sample.startswith(parquet.MAGIC):
        return parquet.rows(source, list(dict.fromkeys(used)))
    return rows(source, mapping.get("arguments"))


def _read(source: Source, mapping: dict[str, str], seen: TableLook) -> Iterator[Run | Reject]:
    fields = {field: column for field, column in mapping.items() if field not in OPTIONS}
    gap = float(mapping["gap_s"]) if "gap_s" in mapping else None
    joined = source.sample.startswith(database.MAGIC)
    once = frozenset(field for field, column in fields.items() if joined and "." in column)
    groups: dict[str | None, _Group] = {}
    for item in _rows(source, mapping, seen):
        if isinstance(item, Reject):
            yield item
            continue
        run_key = _key(item, fields.get("run_id"))
        group = groups.get(run_key)
        if group is None:
            group = groups[run_key] = _Group(run_key, item.place, fields, gap, once)
        yield from group.add(item)
    # Numbers that come again in one run are no order of a run, in the others neither.
    by_index = not any(group.whole.repeats for group in groups.values())
    for group in groups.values():
        yield from group.finish(by_index=by_index)


class _Group:
    """The rows of one run, or of the runs that one id stands for where gaps cut it."""

    def __init__(
        self, key: str | None, place: str, fields: dict[str, str], gap: float | None, once: frozenset[str]
    ) -> None:
        self.key, self.fields, self.gap, self.once = key, fields, gap, once
        self.whole = RunRows(key, place, fields, once)
        self.held: list[tuple[str, dict[str, Any], int]] = []
        self.events = EventJoin() if "event" in fields else None

    def add(self, row: Row) -> Iterator[Reject]:
        cell = cells_of(row, self.fields)
        if self.fields["tool"] not in row.cells and self.once:  # a run of which no call is known
            self.whole.run.records += 1
            yield from self.whole.about_run(row.place, cell)
        elif self.events is not None:
            reason = self.events.add(row.place, cell)
            if reason is not None:
                raw = jsonstream.excerpt(jsonstream.compact(row.cells).encode("utf-8", "replace"))
                yield Reject(place=row.place, reason=reason, raw=raw)
        elif self.gap is not None:
            self.held.append((row.place, cell, 1))
        else:
            yield from self.whole.add_call(row.place, cell)

    def finish(self, *, by_index: bool) -> Iterator[Run | Reject]:
        if self.events is not None:
            for call in self.events.finish():
                if isinstance(call, Reject):
                    yield call
                else:
                    self.held.append((call.place, call.cell, call.records))
        parts = self._cut() if self.gap is not None else [self.held] if self.held else []
        for number, part in enumerate(parts):
            rows = self.whole
            if self.gap is not None:
                name = f"{self.key}/{number}" if self.key is not None and len(parts) > 1 else self.key
                rows = RunRows(name, part[0][0], self.fields, self.once)
                rows.run.metadata["cut"] = f"where nothing happened for {self.gap:g} s"
            for place, cell, records in part:
                yield from rows.add_call(place, cell, records)
            if rows is not self.whole and rows.records:
                yield rows.finish(by_index=by_index)
        if self.whole.records:
            yield self.whole.finish(by_index=by_index)

    def _cut(self) -> list[list[tuple[str, dict[str, Any], int]]]:
        """The rows in order of time, cut at gaps. A row without a time stays with the row before it."""
        timed: list[tuple[datetime | None, datetime | None, int]] = []
        last: datetime | None = None
        for position, (_, cell, _) in enumerate(self.held):
            start, end = (parse_time(cell.get(field))[0] for field in ("started_at", "ended_at"))
            last = start or end or last
            timed.append((last, end or start, position))
        timed.sort(key=lambda item: (item[0] is not None, item[0] or datetime.min, item[2]))
        parts: list[list[tuple[str, dict[str, Any], int]]] = []
        until: datetime | None = None
        for start, end, position in timed:
            apart = (start - until).total_seconds() if start is not None and until is not None else 0.0
            if not parts or apart > (self.gap or 0.0):
                parts.append([])
            parts[-1].append(self.held[position])
            until = max(filter(None, (until, start, end)), default=None)
        return parts


def _key(row: Row, column: str | None) -> str | None:
    value: Any = row.cells.get(column) if column else None
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else jsonstream.compact(value)
