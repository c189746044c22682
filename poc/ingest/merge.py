"""Staged rows into the workspace, in one short transaction.

Runs that the workspace holds already are skipped with everything that belongs
to them. Tasks and tools are completed, never overwritten: what a log or a
person said before stays. Knows the tables, no format.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from poc.ingest.effects import guess_effect
from poc.ingest.schemas import merge
from poc.ingest.staging import Staging
from poc.trajectory import ToolSchema
from poc.workspace import Connection, Workspace

UNKNOWN = "unknown"
"""The format of a file that no reader could read."""
SourceKey = tuple[str, str, int, str, str]


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


class TaskRow(msgspec.Struct):
    """A task as one of its runs describes it."""

    task_key: str | None
    text: str | None
    category: str | None
    scenario: str | None
    reference: str | None


def merge_staged(
    workspace: Workspace,
    staged: Staging,
    sources: list[SourceFacts],
    tasks: dict[str, TaskRow],
    tools: dict[str, ToolSchema],
) -> None:
    """Store what was staged and fill in the counts of `sources`. All or nothing."""
    with workspace.write() as db:
        db.register("arriving", staged.reader("runs"))
        db.execute("CREATE TEMP TABLE staged_runs AS SELECT * FROM arriving")
        db.execute("CREATE TEMP TABLE fresh AS SELECT run_id FROM staged_runs ANTI JOIN runs USING (run_id)")
        db.execute(
            "INSERT INTO runs BY NAME SELECT * EXCLUDE (records, n_messages, n_steps)"
            " FROM staged_runs SEMI JOIN fresh USING (run_id)"
        )
        for table in ("messages", "steps"):
            db.register("arriving", staged.reader(table))
            db.execute(f"INSERT INTO {table} BY NAME SELECT * FROM arriving SEMI JOIN fresh USING (run_id)")
        for facts in sources:
            if not facts.known:  # a reading of the very same file that broke off
                db.execute("DELETE FROM sources WHERE source_id = ?", [facts.source_id])
                db.execute("DELETE FROM rejects WHERE source_id = ?", [facts.source_id])
        db.register("arriving", staged.reader("rejects"))
        db.execute("INSERT INTO rejects BY NAME SELECT * FROM arriving")
        db.unregister("arriving")
        _count(db, sources)
        _store_sources(db, sources)
        _store_tasks(db, tasks)
        _store_tools(db, tools)
        db.execute("DROP TABLE staged_runs; DROP TABLE fresh")


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


def _count(db: Connection, sources: list[SourceFacts]) -> None:
    counted = {
        row[0]: [int(value) for value in row[1:]]
        for row in db.execute(
            "SELECT source_id, sum(records), sum(n_messages), sum(n_steps), count(*)"
            " FROM staged_runs SEMI JOIN fresh USING (run_id) GROUP BY source_id"
        ).fetchall()
    }
    for facts in sources:
        if not facts.known:
            facts.imported, facts.messages, facts.steps, facts.runs = counted.get(facts.source_id, [0, 0, 0, 0])
            facts.skipped = facts.read - facts.imported - facts.rejected


def _store_sources(db: Connection, sources: list[SourceFacts]) -> None:
    now = datetime.now(UTC)
    for facts in sources:
        if facts.known:
            continue
        db.execute(
            "INSERT INTO sources BY NAME SELECT ? AS source_id, ? AS path, ? AS sha256, ? AS size_bytes, ? AS format,"
            " ? AS reader_version, ?::JSON AS mapping, ? AS imported_at, ? AS read, ? AS imported, ? AS rejected,"
            " ? AS skipped",
            [
                facts.source_id,
                facts.path,
                facts.sha256,
                facts.size_bytes,
                facts.format,
                facts.reader_version,
                None if facts.mapping is None else json.dumps(facts.mapping, ensure_ascii=False),
                now,
                facts.read,
                facts.imported,
                facts.rejected,
                facts.skipped,
            ],
        )


def _store_tasks(db: Connection, tasks: dict[str, TaskRow]) -> None:
    if not tasks:
        return
    names = ("task_key", "text", "category", "scenario", "reference")
    columns = {"task_id": pa.array(list(tasks), pa.string())}
    columns |= {name: pa.array([getattr(task, name) for task in tasks.values()], pa.string()) for name in names}
    db.register("arriving", pa.table(columns))
    db.execute(
        "INSERT INTO tasks BY NAME SELECT * FROM arriving ON CONFLICT (task_id) DO UPDATE SET "
        + ", ".join(f"{name} = coalesce(tasks.{name}, excluded.{name})" for name in names)
    )
    db.unregister("arriving")


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
