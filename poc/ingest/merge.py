"""Staged rows into the workspace, in one short transaction.

Runs that the workspace holds already are skipped or replaced (see `versions`)
with everything that belongs to them. Tasks and tools are completed, never
overwritten: what a log or a person said before stays. Knows the tables, no
format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

from poc.errors import WorkspaceError
from poc.ingest.arrivals import Arrival, staged_parts
from poc.ingest.effects import guess_effect
from poc.ingest.ledger import count, say_disputes, store, store_parts
from poc.ingest.schemas import merge
from poc.ingest.staging import Staged, reader
from poc.ingest.versions import settle, tidy
from poc.trajectory import ToolSchema
from poc.workspace import Connection, Workspace

_MEMORY = "512MB"
"""What DuckDB may hold while rows are stored, so that memory stays flat as logs grow."""


def merge_staged(
    workspace: Workspace, arrivals: list[Arrival], tools: dict[str, ToolSchema], *, strict: bool = False
) -> int:
    """Store what was staged and fill in the counts of the files' facts. All or nothing.

    Gives the number of runs that were there already and gained a fact, as an outcome.
    strict: raise `InputError` where two versions of a run cannot both be kept whole.
    """
    try:
        with workspace.write() as db, _settings(db, memory_limit=_MEMORY):
            return _merge(db, arrivals, tools, strict=strict)
    except WorkspaceError as error:
        # A very large workspace needs more than the usual share; nothing was stored yet.
        if not isinstance(error.__cause__, duckdb.OutOfMemoryException):
            raise
        with workspace.write() as db:
            return _merge(db, arrivals, tools, strict=strict)


def _merge(db: Connection, arrivals: list[Arrival], tools: dict[str, ToolSchema], *, strict: bool) -> int:
    settled = settle(db, arrivals)

    def named(staged_id: str) -> str | None:
        kept = settled.kept.get(staged_id)
        return None if kept is None else kept.run_id

    parts = staged_parts(arrivals, named)
    with _settings(db, preserve_insertion_order="false"):  # so that all cores write
        for table in ("runs", "messages", "steps"):
            db.register("arriving", reader(parts, table))
            db.execute(f"INSERT INTO {table} BY NAME SELECT * FROM arriving")
    # A reading of the very same file that broke off gives way to this one.
    again = [[facts.source_id for arrival in arrivals for facts in arrival.files if not facts.known]]
    for table in ("sources", "rejects"):
        db.execute(f"DELETE FROM {table} WHERE list_contains(?, source_id)", again)
    db.register("arriving", reader(parts, "rejects"))
    db.execute("INSERT INTO rejects BY NAME SELECT * FROM arriving")
    _store_tasks(db, parts)
    count(arrivals, settled)
    say_disputes(db, arrivals, settled.disputes, strict=strict)
    store_parts(db, arrivals, settled)
    store(db, arrivals, settled)
    _store_tools(db, tools)
    tidy(db, settled)
    return settled.completed


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


def _store_tasks(db: Connection, parts: list[Staged]) -> None:
    """What the runs say of their tasks: for each column the first of them that says something."""
    names = ("task_key", "text", "category", "scenario", "reference")
    db.register("arriving", reader(parts, "tasks"))
    db.execute("CREATE TEMP TABLE staged_tasks AS SELECT * FROM arriving")
    ((rows, tasks),) = db.execute("SELECT count(*), count(DISTINCT task_id) FROM staged_tasks").fetchall()
    said = "staged_tasks"
    if rows > tasks:  # several runs say something of one task
        first = ", ".join(f"arg_min({name}, rowid) AS {name}" for name in names)  # arg_min passes over NULL
        said = f"(SELECT task_id, {first} FROM staged_tasks GROUP BY task_id)"
    more = ", ".join(f"{name} = coalesce(tasks.{name}, said.{name})" for name in names)
    db.execute(f"UPDATE tasks SET {more} FROM {said} AS said WHERE said.task_id = tasks.task_id")
    db.execute(f"INSERT INTO tasks BY NAME SELECT * FROM {said} AS said ANTI JOIN tasks USING (task_id)")
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
