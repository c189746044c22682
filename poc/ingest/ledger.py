"""The list of sources: which files were read, and what became of their records.

A file that has grown stays one source: when its new version holds every run
of the earlier one, it takes that one's place, rejects and all. Counts are of
source records: read = imported + rejected + skipped. Knows the tables, no
format.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from poc.errors import InputError
from poc.ingest.arrivals import Arrival, SourceFacts
from poc.ingest.sources import STDIN
from poc.ingest.versions import Dispute, Kept, Settled
from poc.workspace import Connection, Workspace

UNKNOWN = "unknown"
"""The format of a file that no reader could read."""
SourceKey = tuple[str, str, int, str, str]


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


def count(arrivals: list[Arrival], settled: Settled) -> None:
    """What this import did with the records of each file: the new ones, those that were there, those kept out."""
    disputed = {dispute.staged_id for dispute in settled.disputes if not dispute.kept}
    for arrival in arrivals:
        held = arrival.gathered
        for place, facts in enumerate(arrival.files):
            if not facts.known:
                facts.rejected = facts.read = held.rejected_in(place)
                facts.reasons = held.commonest_reasons(place)
        if arrival.plain and not settled.contested:
            _count_plain(arrival)
        else:
            for number, name in enumerate(arrival.names):
                _count_run(arrival, number, settled.kept.get(name or ""), disputed=name in disputed)
        for facts in arrival.files:
            if not facts.known:
                facts.skipped = facts.read - facts.imported - facts.rejected


def _count_plain(arrival: Arrival) -> None:
    """Every run that is named is new, and all stood in one file."""
    facts, held = arrival.files[0], arrival.gathered
    fresh = np.array([name is not None for name in arrival.names], bool)
    facts.read = held.read
    facts.runs = int(fresh.sum())
    facts.imported, facts.messages, facts.steps = (
        int(np.array(counts, np.int64)[fresh].sum()) for counts in (held.records, held.messages, held.steps)
    )


def _count_run(arrival: Arrival, number: int, kept: Kept | None, *, disputed: bool) -> None:
    for place, share in enumerate(arrival.shares(number)):
        facts = arrival.files[place]
        if facts.known or not share:
            continue
        facts.read += share
        if kept is not None:
            facts.imported += share
        elif disputed:
            facts.rejected += share
        if kept is not None and place == arrival.leader(number):
            facts.runs += kept.old_id is None
            facts.replaced += kept.old_id is not None
            facts.messages += arrival.gathered.messages[number] - kept.old_messages
            facts.steps += arrival.gathered.steps[number] - kept.old_steps


def say_disputes(db: Connection, arrivals: list[Arrival], disputes: list[Dispute], *, strict: bool) -> None:
    """Rejects where two versions of a run could not both be kept whole."""
    said = {dispute.staged_id: dispute for dispute in disputes}
    for arrival in arrivals if said else ():
        for number, name in enumerate(arrival.names):
            dispute = said.get(name or "")
            if dispute is None:
                continue
            if dispute.kept:
                reason = "kept, in place of an earlier version of the run: that one holds"
            else:
                reason = "another version of the run is kept, or another part of it: this one holds"
            reason += f" {dispute.lost} messages, calls or answers that the other lacks"
            for place, share in enumerate(arrival.shares(number)):
                facts = arrival.files[place]
                if not share or facts.known:
                    continue
                if strict:
                    raise InputError(
                        f"Two versions of one run differ: {reason}.",
                        where=f"{facts.path}, {dispute.place}",
                        todo="Leave one of them out, or import without the strict mode.",
                    )
                kind = reason.split(":", 1)[0]
                facts.reasons[kind] = facts.reasons.get(kind, 0) + 1
                row = [facts.source_id, dispute.place, reason, dispute.native_id, 0 if dispute.kept else share]
                db.execute("INSERT INTO rejects VALUES (?, ?, ?, ?, ?)", row)


def store_parts(db: Connection, arrivals: list[Arrival], settled: Settled) -> None:
    """Which other files hold records of the kept runs, besides the one where each begins."""
    if settled.contested:
        db.execute("DELETE FROM run_parts WHERE run_id IN (SELECT run_id FROM kept)")
    rows: list[tuple[str, str, int]] = []
    for arrival in arrivals:
        for number, name in enumerate(arrival.names if len(arrival.files) > 1 else ()):
            kept = settled.kept.get(name or "")
            if kept is not None:
                shares = zip(arrival.files, arrival.shares(number), strict=True)
                held = [(facts.source_id, share) for facts, share in shares if share]
                rows += [(kept.run_id, source_id, share) for source_id, share in held[1:]]
    if rows:
        runs, ids, records = zip(*rows, strict=True)
        table = {"run_id": pa.array(runs, pa.string()), "source_id": pa.array(ids, pa.string()), "records": records}
        db.register("arriving", pa.table(table))
        db.execute("INSERT INTO run_parts BY NAME SELECT * FROM arriving")
        db.unregister("arriving")


def store(db: Connection, arrivals: list[Arrival], settled: Settled) -> None:
    """A row for each file. Where it takes the place of an earlier version of the same file, it counts the runs of
    both as imported."""
    fresh = [facts for arrival in arrivals for facts in arrival.files if not facts.known]
    held = {facts.source_id: facts.imported for facts in fresh}
    if settled.contested:
        _supersede(db, fresh)
        held |= _held(db, arrivals)
    columns = ("source_id", "path", "sha256", "size_bytes", "format", "reader_version", "mapping", "read", "rejected")
    table: dict[str, list[Any]] = {name: [getattr(facts, name) for facts in fresh] for name in columns}
    table["mapping"] = [None if value is None else json.dumps(value, ensure_ascii=False) for value in table["mapping"]]
    table["imported"] = [held[facts.source_id] for facts in fresh]
    table["skipped"] = [facts.read - held[facts.source_id] - facts.rejected for facts in fresh]
    db.register("arriving", pa.table(table))
    db.execute("INSERT INTO sources BY NAME SELECT *, ?::TIMESTAMPTZ AS imported_at FROM arriving", [datetime.now(UTC)])
    db.unregister("arriving")


def _supersede(db: Connection, fresh: list[SourceFacts]) -> None:
    """Earlier versions of these files that hold no run which the new ones lack give way to them."""
    table = {name: [getattr(facts, name) for facts in fresh] for name in ("source_id", "path")}
    db.register("arriving", pa.table(table))
    db.execute(
        """
        CREATE OR REPLACE TEMP TABLE superseded AS
        SELECT o.source_id AS old_id, n.source_id AS new_id
        FROM sources o JOIN arriving n ON o.path = n.path AND o.source_id <> n.source_id
        WHERE o.path <> ? AND NOT EXISTS (
            SELECT 1 FROM (SELECT run_id, source_id FROM runs UNION ALL SELECT run_id, source_id FROM run_parts) r
            WHERE r.source_id = o.source_id AND r.run_id NOT IN (
                SELECT base FROM staged_runs s WHERE s.source_id = n.source_id
                UNION ALL SELECT run_id FROM run_parts p WHERE p.source_id = n.source_id
            )
        )
        """,
        [str(STDIN)],
    )
    db.unregister("arriving")
    for table_name in ("runs", "run_parts"):
        db.execute(
            f"UPDATE {table_name} SET source_id = p.new_id FROM superseded p WHERE {table_name}.source_id = p.old_id"
        )
    for table_name in ("sources", "rejects"):
        db.execute(f"DELETE FROM {table_name} WHERE source_id IN (SELECT old_id FROM superseded)")
    db.execute("DROP TABLE superseded")


def _held(db: Connection, arrivals: list[Arrival]) -> dict[str, int]:
    """By source: the records of its runs that the workspace now holds as coming from it, old ones and new."""
    split = [
        (name, facts.source_id, share)
        for arrival in arrivals
        for number, name in enumerate(arrival.names)
        if name is not None
        for share, facts in zip(arrival.shares(number), arrival.files, strict=True)
        if share and not facts.known
    ]
    names, ids, shares = zip(*split, strict=True) if split else ((), (), ())
    table = {"run_id": pa.array(names, pa.string()), "source_id": pa.array(ids, pa.string()), "n": pa.array(shares)}
    db.register("arriving", pa.table(table))
    rows = db.execute(
        """
        SELECT h.source_id, sum(h.n)::BIGINT
        FROM arriving h JOIN staged_runs s USING (run_id) JOIN runs r ON r.run_id = s.base
        WHERE h.run_id IN (SELECT staged_id FROM kept) OR (r.source_id = h.source_id AND s.run_id = s.base)
        GROUP BY h.source_id
        """
    ).fetchall()
    db.unregister("arriving")
    return dict.fromkeys(ids, 0) | dict(rows)
