"""Which version of a run is kept, where a file brings one that the workspace holds already.

A run with a worldwide id has the same run id in every version of it, so the
two are compared by what was said, called and answered: one that holds all of
the other and more replaces it, one that adds nothing is skipped. Where each
holds what the other lacks, the larger one is kept if it holds most of the
other, else the stored one, and the loss is said.
Other runs have ids of their content, so a longer version comes under a new
id: it replaces the shorter one that stood at the same place of the same file,
and labels go over to it. Knows the tables, no format.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from poc.ingest.arrivals import SEPARATOR, Arrival, staged_parts
from poc.ingest.staging import reader
from poc.workspace import Connection

_OF_STEPS = ("assignments", "achievements", "progress")
"""What was found out about a run's steps; it holds for a longer version as long as its first steps are the same."""
_FACTS = (
    *("trial", "task_id", "category", "framework", "model", "started_at", "ended_at", "duration_s", "zone_in_log"),
    *("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd"),
    *("outcome", "outcome_provenance", "metadata"),
)
_STORED = ""
_EARLIER = "<"


class Kept(msgspec.Struct, frozen=True):
    """A staged run that is stored: its run id, and the run that it takes the place of, with its counts."""

    run_id: str
    old_id: str | None = None
    old_messages: int = 0
    old_steps: int = 0


class Dispute(msgspec.Struct, frozen=True):
    """Two versions of a run of which each holds what the other lacks. `lost`: messages, calls and answers of the one
    that is not kept; `kept`: whether the arriving one is."""

    staged_id: str
    place: str
    native_id: str | None
    kept: bool
    lost: int


class Settled(msgspec.Struct):
    """What becomes of the staged runs: those that are kept by staged id, and the disputes.

    contested: whether any of them could be in the workspace already. completed:
    runs that stay as they are, but gained a fact that they lacked.
    """

    kept: dict[str, Kept]
    disputes: list[Dispute] = []
    contested: bool = False
    completed: int = 0


def settle(db: Connection, arrivals: list[Arrival]) -> Settled:
    """Decide about every staged run, and clear the way for those that are kept: replaced runs are gone from the
    workspace then, their labels have stayed or moved. Call `tidy` once the kept ones are stored."""
    names = [name for arrival in arrivals for name in arrival.names if name is not None]
    if not _contested(db, arrivals, names):
        return Settled({name: Kept(name) for name in names})
    db.register("arriving", reader(staged_parts(arrivals, lambda name: name), "runs"))
    columns = ", ".join(("run_id", "source_id", "place", "native_id", *_FACTS))
    db.execute(
        "CREATE OR REPLACE TEMP TABLE staged_runs AS"
        f" SELECT {columns}, split_part(run_id, '{SEPARATOR}', 1) AS base FROM arriving"
    )
    db.unregister("arriving")
    _candidates(db, arrivals)
    db.execute(
        "CREATE OR REPLACE TEMP TABLE kept AS SELECT run_id AS staged_id, base AS run_id, NULL::VARCHAR AS old_id,"
        " 0::BIGINT AS old_messages, 0::BIGINT AS old_steps FROM staged_runs"
        " WHERE base NOT IN (SELECT base FROM candidates) AND base NOT IN (SELECT run_id FROM runs)"
    )
    db.execute("CREATE OR REPLACE TEMP TABLE old_steps AS SELECT run_id, step, tool, arguments_raw FROM steps LIMIT 0")
    settled = Settled({}, contested=True)
    if _count(db, "candidates"):
        _elements(db, arrivals)
        kept, settled.disputes = _decide(db, {name for arrival in arrivals for name in arrival.rebuilt})
        _replace(db, kept)
    settled.kept = {row[0]: Kept(*row[1:]) for row in db.execute("SELECT * FROM kept").fetchall()}
    settled.completed = _complete(db)
    return settled


def tidy(db: Connection, settled: Settled) -> None:
    """Forget what was found out about steps that now are others, and what helped to decide."""
    if not settled.contested:
        return
    changed = """
        SELECT DISTINCT o.run_id FROM old_steps o LEFT JOIN steps s ON s.run_id = o.run_id AND s.step = o.step
        WHERE s.tool IS DISTINCT FROM o.tool OR s.arguments_raw IS DISTINCT FROM o.arguments_raw
    """
    if _count(db, "old_steps"):
        for table in _OF_STEPS:
            db.execute(f"DELETE FROM {table} WHERE run_id IN ({changed})")
    for table in ("staged_runs", "candidates", "elements", "kept", "old_steps"):
        db.execute(f"DROP TABLE IF EXISTS {table}")


def _contested(db: Connection, arrivals: list[Arrival], names: list[str]) -> bool:
    """Whether a run, or an earlier version of a file, may be there already."""
    if any(SEPARATOR in name for name in names):
        return True
    paths = [facts.path for arrival in arrivals for facts in arrival.files]
    for table, column, values in (("runs", "run_id", names), ("sources", "path", paths)):
        db.register("arriving", pa.table({column: pa.array(values, pa.string())}))
        found = db.execute(f"SELECT 1 FROM {table} SEMI JOIN arriving USING ({column}) LIMIT 1").fetchall()
        db.unregister("arriving")
        if found:
            return True
    return False


def _complete(db: Connection) -> int:
    """Facts that a stored run lacks and an arriving version of it has (an outcome that an export adds later), filled
    in. The number of runs that gained something."""
    lacking = " OR ".join(f"(runs.{name} IS NULL AND s.{name} IS NOT NULL)" for name in _FACTS)
    filled = ", ".join(f"{name} = coalesce(runs.{name}, s.{name})" for name in _FACTS)
    rows = db.execute(
        f"UPDATE runs SET {filled} FROM staged_runs s WHERE runs.run_id = s.base AND ({lacking})"
        " AND s.base NOT IN (SELECT run_id FROM kept)"
    ).fetchall()
    return int(rows[0][0])


def _candidates(db: Connection, arrivals: list[Arrival]) -> None:
    """Versions to be compared: base, version (the staged id, or which of the stored ones), and the id of its rows."""
    worldwide = {run_id for arrival in arrivals for run_id in arrival.worldwide}
    db.register("worldwide", pa.table({"base": pa.array(sorted(worldwide), pa.string())}))
    files = [facts for arrival in arrivals for facts in arrival.files if not facts.known]
    columns = {name: [getattr(facts, name) for facts in files] for name in ("source_id", "path", "format")}
    db.register("arriving", pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))
    db.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE candidates AS
        WITH several AS (
            SELECT base FROM staged_runs SEMI JOIN worldwide USING (base)
            GROUP BY base HAVING count(*) > 1 OR base IN (SELECT run_id FROM runs)
        ), grown AS (
            SELECT s.base, r.run_id AS old_id
            FROM staged_runs s
            JOIN arriving n USING (source_id)
            JOIN sources o ON o.path = n.path AND o.format = n.format AND o.source_id <> n.source_id
            JOIN runs r ON r.source_id = o.source_id AND r.place = s.place
                           AND r.native_id IS NOT DISTINCT FROM s.native_id
            WHERE s.base NOT IN (SELECT run_id FROM runs) AND s.base NOT IN (SELECT base FROM several)
              AND r.run_id NOT IN (SELECT base FROM staged_runs)
              AND NOT EXISTS (SELECT 1 FROM experiments e WHERE contains(e.plan::VARCHAR, r.run_id))
        )
        SELECT base, run_id AS version, run_id AS rows_id FROM staged_runs SEMI JOIN several USING (base)
        UNION ALL SELECT base, '{_STORED}', base FROM several WHERE base IN (SELECT run_id FROM runs)
        UNION ALL SELECT base, base, base FROM grown
        UNION ALL SELECT base, '{_EARLIER}' || old_id, old_id FROM grown
        """
    )
    db.unregister("worldwide")
    db.unregister("arriving")


def _elements(db: Connection, arrivals: list[Arrival]) -> None:
    """What each candidate holds: messages, calls and answers by their hashes, and how often."""
    db.execute("CREATE OR REPLACE TEMP TABLE elements (base VARCHAR, version VARCHAR, h UBIGINT, n BIGINT)")
    parts = {
        "steps": "[hash('call', t.tool, t.arguments_raw),"
        " CASE WHEN t.result IS NOT NULL THEN hash('answer', t.tool, t.arguments_raw, t.result) END]",
        "messages": "[CASE WHEN t.content IS NOT NULL THEN hash('message', t.role, t.content) END]",
    }
    stored = f"(c.version = '{_STORED}' OR starts_with(c.version, '{_EARLIER}'))"
    for table, hashes in parts.items():
        db.register("arriving", reader(staged_parts(arrivals, lambda name: name), table))
        for rows, side in (("arriving", f"NOT {stored}"), (table, stored)):
            hashed = (
                f"SELECT c.base, c.version, unnest({hashes}) AS h"
                f" FROM {rows} t JOIN candidates c ON c.rows_id = t.run_id WHERE {side}"
            )
            db.execute(
                f"INSERT INTO elements SELECT base, version, h, count(*) FROM ({hashed})"
                " WHERE h IS NOT NULL GROUP BY ALL"
            )
    db.unregister("arriving")


def _decide(db: Connection, rebuilt: set[str]) -> tuple[list[tuple[str, str, str | None]], list[Dispute]]:
    """(staged id, run id, id of the run that it replaces) of each that is kept, and the disputes."""
    sizes: dict[tuple[str, str], int] = {
        (base, version): size
        for base, version, size in db.execute(
            "SELECT base, version, coalesce(sum(n), 0)::BIGINT FROM (SELECT DISTINCT base, version FROM candidates)"
            " LEFT JOIN elements USING (base, version) GROUP BY ALL"
        ).fetchall()
    }
    beyond: dict[tuple[str, str, str], int] = {
        (base, version, other): extra
        for base, version, other, extra in db.execute(
            """
            WITH v AS (SELECT DISTINCT base, version FROM candidates)
            SELECT a.base, a.version, b.version, coalesce(sum(greatest(e.n - coalesce(f.n, 0), 0)), 0)::BIGINT
            FROM v a JOIN v b ON a.base = b.base AND a.version <> b.version
            LEFT JOIN elements e ON e.base = a.base AND e.version = a.version
            LEFT JOIN elements f ON f.base = b.base AND f.version = b.version AND f.h = e.h
            GROUP BY ALL
            """
        ).fetchall()
    }
    told_otherwise = _told_otherwise(db, rebuilt)
    versions: dict[str, list[str]] = {}
    for base, version in sorted(sizes, key=_order):
        versions.setdefault(base, []).append(version)
    kept: list[tuple[str, str, str | None]] = []
    disputes: list[Dispute] = []
    for base, found in versions.items():
        earlier = [version for version in found if version.startswith(_EARLIER)]
        if earlier:
            inside = [old for old in earlier if sizes[base, old] and not beyond[base, old, base]]
            largest = max(inside, key=lambda old: sizes[base, old], default=None)
            kept.append((base, base, None if largest is None else largest.removeprefix(_EARLIER)))
            continue
        best = found[0]
        for version in found[1:]:
            more, lost = beyond[base, version, best], beyond[base, best, version]
            if not more and version not in told_otherwise:
                continue
            if lost and version not in rebuilt:
                # One that holds most of what the other holds and more is the same run told anew; else it is another
                # part of the run, and what is in the workspace is not given away for it.
                larger = sizes[base, version] > sizes[base, best] and 2 * lost <= sizes[base, best]
                disputes.append(Dispute(version, *_said(db, version), larger, lost if larger else more))
                if not larger:
                    continue
            best = version
        if best != _STORED:
            kept.append((best, base, base if _STORED in found else None))
    return kept, disputes


def _said(db: Connection, staged_id: str) -> tuple[str, str | None]:
    return db.execute("SELECT place, native_id FROM staged_runs WHERE run_id = ?", [staged_id]).fetchall()[0]


def _order(candidate: tuple[str, str]) -> tuple[str, int, int, str]:
    """The stored version first, then the staged ones as they came."""
    base, version = candidate
    _, _, number = version.partition(SEPARATOR)
    return base, version != _STORED, int(number or 0), version


def _told_otherwise(db: Connection, rebuilt: Iterable[str]) -> set[str]:
    """Rebuilt runs whose own facts differ from the stored ones: a late root brings times and an outcome."""
    differ = " OR ".join(f"r.{name}::VARCHAR IS DISTINCT FROM s.{name}::VARCHAR" for name in _FACTS)
    db.register("rebuilt", pa.table({"run_id": pa.array(sorted(rebuilt), pa.string())}))
    found = db.execute(
        f"SELECT s.run_id FROM staged_runs s SEMI JOIN rebuilt USING (run_id)"
        f" JOIN runs r ON r.run_id = s.base WHERE {differ}"
    ).fetchall()
    db.unregister("rebuilt")
    return {row[0] for row in found}


def _replace(db: Connection, kept: list[tuple[str, str, str | None]]) -> None:
    columns = list(zip(*kept, strict=True)) or [(), (), ()]
    names = ("staged_id", "run_id", "old_id")
    db.register(
        "settled",
        pa.table({name: pa.array(list(column), pa.string()) for name, column in zip(names, columns, strict=True)}),
    )
    db.execute(
        "INSERT INTO kept SELECT *, (SELECT count(*) FROM messages m WHERE m.run_id = old_id),"
        " (SELECT count(*) FROM steps s WHERE s.run_id = old_id) FROM settled"
    )
    db.unregister("settled")
    db.execute(
        "INSERT INTO old_steps SELECT k.run_id, s.step, s.tool, s.arguments_raw"
        " FROM steps s JOIN kept k ON s.run_id = k.old_id"
    )
    for table in ("runs", "messages", "steps"):
        db.execute(f"DELETE FROM {table} WHERE run_id IN (SELECT old_id FROM kept WHERE old_id IS NOT NULL)")
    # Everything else that names the run goes over to the new id: labels, reviews, what was found out about its steps.
    for (table,) in db.execute(
        "SELECT table_name FROM duckdb_columns() SEMI JOIN (SELECT table_oid FROM duckdb_tables() WHERE NOT temporary)"
        " USING (table_oid) WHERE column_name = 'run_id' AND table_name NOT IN ('runs', 'messages', 'steps')"
    ).fetchall():
        db.execute(
            f"UPDATE {table} SET run_id = k.run_id FROM kept k WHERE {table}.run_id = k.old_id AND k.run_id <> k.old_id"
        )


def _count(db: Connection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
