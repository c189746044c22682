"""Staged rows into the workspace, in one short transaction.

Runs that the workspace holds already are skipped with everything that belongs
to them. Tasks and tools are completed, never overwritten: what a log or a
person said before stays. Knows the tables, no format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np
import pyarrow as pa

from poc.errors import WorkspaceError
from poc.ingest.effects import guess_effect
from poc.ingest.gather import Gathered
from poc.ingest.schemas import merge
from poc.ingest.staging import Staged, reader
from poc.trajectory import ToolSchema
from poc.workspace import Connection, Workspace

UNKNOWN = "unknown"
"""The format of a file that no reader could read."""
SourceKey = tuple[str, str, int, str, str]
_MEMORY = "512MB"
"""What DuckDB may hold while rows are stored, so that memory stays flat as logs grow."""


class SourceFacts(msgspec.Struct, kw_only=True):
    """What is known of a file once it has been read. Counts are of source records."""

    source_id: str
    path: str
    sha256: str
    size_bytes: int
    format: str
    confidence: float = 1.0
    reader_version: int
    mapping: dict[str, str] | None = None
    known: bool = False
    """The workspace has read this very content before; it was not read again."""
    read: int = 0
    imported: int = 0
    rejected: int = 0
    skipped: int = 0
    runs: int = 0
    steps: int = 0
    messages: int = 0
    reasons: dict[str, int] = {}
    """How often which reason stands among the rejects, the commonest first (bounded)."""


class Arrival(msgspec.Struct, kw_only=True):
    """One file that was read: its facts, what it held, and where its rows are staged."""

    facts: SourceFacts
    gathered: Gathered
    names: list[str | None]
    """The run id of each of its runs; None for a repeat, which is skipped."""
    parts: list[tuple[Path, int]]
    """Folders of staged rows, and how many of this file's runs lie in each."""
    apart: bool = False
    """Whether those folders hold nothing else; their rows then do not name the file."""


def staged_parts(arrivals: list[Arrival], left_out: Set[str] = frozenset()) -> list[Staged]:
    """The staged rows of all arrivals with their run ids, without those runs that are left out."""
    names: dict[Path, list[str | None]] = {}
    whose: dict[Path, str] = {}
    for arrival in arrivals:
        start = 0
        for folder, count in arrival.parts:
            known = arrival.names[start : start + count]
            names.setdefault(folder, []).extend(None if name in left_out else name for name in known)
            start += count
            if arrival.apart:
                whose[folder] = arrival.facts.source_id
    return [Staged(folder, pa.array(ids, pa.string()), whose.get(folder)) for folder, ids in names.items()]


def merge_staged(workspace: Workspace, arrivals: list[Arrival], tools: dict[str, ToolSchema]) -> None:
    """Store what was staged and fill in the counts of the files' facts. All or nothing."""
    try:
        with workspace.write() as db, _settings(db, memory_limit=_MEMORY):
            _merge(db, arrivals, tools)
    except WorkspaceError as error:
        # A very large workspace needs more than the usual share; nothing was stored yet.
        if not isinstance(error.__cause__, duckdb.OutOfMemoryException):
            raise
        with workspace.write() as db:
            _merge(db, arrivals, tools)


def _merge(db: Connection, arrivals: list[Arrival], tools: dict[str, ToolSchema]) -> None:
    ids = [name for arrival in arrivals for name in arrival.names if name is not None]
    db.register("arriving", pa.table({"run_id": pa.array(ids, pa.string())}))
    stored = {row[0] for row in db.execute("SELECT run_id FROM arriving SEMI JOIN runs USING (run_id)").fetchall()}
    parts = staged_parts(arrivals, stored)
    with _settings(db, preserve_insertion_order="false"):  # so that all cores write
        for table in ("runs", "messages", "steps"):
            db.register("arriving", reader(parts, table))
            db.execute(f"INSERT INTO {table} BY NAME SELECT * FROM arriving")
    # A reading of the very same file that broke off gives way to this one.
    again = [[arrival.facts.source_id for arrival in arrivals]]
    for table in ("sources", "rejects"):
        db.execute(f"DELETE FROM {table} WHERE list_contains(?, source_id)", again)
    db.register("arriving", reader(parts, "rejects"))
    db.execute("INSERT INTO rejects BY NAME SELECT * FROM arriving")
    _store_tasks(db, parts)
    for arrival in arrivals:
        _count(arrival, stored)
    _store_sources(db, [arrival.facts for arrival in arrivals])
    _store_tools(db, tools)


@contextmanager
def _settings(db: Connection, **values: str) -> Iterator[None]:
    """DuckDB settings for a while."""
    for name, value in values.items():
        db.execute(f"SET {name} = '{value}'")
    try:
        yield
    finally:
        with suppress(duckdb.Error):  # after an error the transaction refuses everything
            for name in values:
                db.execute(f"RESET {name}")


def known_sources(workspace: Workspace) -> dict[SourceKey, dict[str, Any]]:
    """Files that were imported before, by content, format, reader version and mapping; those that could not be read
    by their path too, since nothing else tells them apart."""
    return {_key(**row): row for row in workspace.rows("SELECT * FROM sources")}


def source_key(facts: SourceFacts) -> SourceKey:
    """The key of a file among `known_sources`."""
    return _key(**{name: getattr(facts, name) for name in facts.__struct_fields__})


def _key(*, sha256: str, format: str, reader_version: int, mapping: Any, path: str, **_: Any) -> SourceKey:  # noqa: A002
    return sha256, format, reader_version, _canonical(mapping), path if format == UNKNOWN else ""


def _canonical(mapping: Any) -> str:
    table = json.loads(mapping) if isinstance(mapping, str) else mapping
    return json.dumps(table, sort_keys=True)


def _count(arrival: Arrival, stored: Set[str]) -> None:
    """The counts of a file: what of it is new."""
    facts, held = arrival.facts, arrival.gathered
    fresh = np.array([name is not None and name not in stored for name in arrival.names], bool)
    facts.read, facts.rejected, facts.reasons = held.read, held.rejected, held.commonest_reasons()
    facts.runs = int(fresh.sum())
    facts.imported, facts.messages, facts.steps = (
        int(np.array(counts, np.int64)[fresh].sum()) for counts in (held.records, held.messages, held.steps)
    )
    facts.skipped = facts.read - facts.imported - facts.rejected


def _store_sources(db: Connection, sources: list[SourceFacts]) -> None:
    columns = ("source_id", "path", "sha256", "size_bytes", "format", "reader_version", "mapping")
    table = {
        name: [getattr(facts, name) for facts in sources]
        for name in (*columns, "read", "imported", "rejected", "skipped")
    }
    table["mapping"] = [None if value is None else json.dumps(value, ensure_ascii=False) for value in table["mapping"]]
    db.register("arriving", pa.table(table))
    db.execute("INSERT INTO sources BY NAME SELECT *, ?::TIMESTAMPTZ AS imported_at FROM arriving", [datetime.now(UTC)])
    db.unregister("arriving")


def _store_tasks(db: Connection, parts: list[Staged]) -> None:
    """What the runs say of their tasks: for each column the first of them that says something."""
    names = ("task_key", "text", "category", "scenario", "reference")
    db.register("arriving", reader(parts, "tasks"))
    db.execute("CREATE TEMP TABLE staged_tasks AS SELECT * FROM arriving")
    db.execute(
        "INSERT INTO tasks BY NAME SELECT task_id, "
        + ", ".join(f"arg_min({name}, rowid) AS {name}" for name in names)  # arg_min passes over NULL
        + " FROM staged_tasks GROUP BY task_id ON CONFLICT (task_id) DO UPDATE SET "
        + ", ".join(f"{name} = coalesce(tasks.{name}, excluded.{name})" for name in names)
    )
    db.execute("DROP TABLE staged_tasks")


def _store_tools(db: Connection, tools: dict[str, ToolSchema]) -> None:
    """Logged and given schemas win over inferred ones; two inferred ones become one that covers both."""
    known = {row[0]: row for row in db.execute("SELECT tool, description, parameters, origin FROM tools").fetchall()}
    for name, tool in tools.items():
        parameters, origin = tool.parameters, tool.origin
        description = tool.description
        if name in known:
            _, old_description, old_parameters, old_origin = known[name]
            old = json.loads(old_parameters) if old_parameters else None
            description = old_description or description
            if old_origin != "inferred":
                parameters, origin = old if old is not None else parameters, old_origin
            elif origin == "inferred" and old is not None:
                parameters = merge(old, parameters or {})
        db.execute(
            "INSERT INTO tools VALUES (?, ?, ?::JSON, ?, ?, true) ON CONFLICT (tool) DO UPDATE SET"
            " description = excluded.description, parameters = excluded.parameters, origin = excluded.origin",
            [
                name,
                description,
                None if parameters is None else json.dumps(parameters, ensure_ascii=False),
                origin,
                guess_effect(name),
            ],
        )
