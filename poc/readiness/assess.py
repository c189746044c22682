"""Counts what the log has, and says READY, PARTIAL or NOT READY.

NOT READY: there is no run or no step, or in half of the cases or more an
essential thing is missing: the tool's name, its arguments, any answer (result
or status), what was asked. Nothing that comes later would mean anything.
PARTIAL: something needed is missing, which closes some later stage.
READY: everything needed is there. Oddities do not change the level: they say
which steps to look at. Knows the tables, no log format.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

from poc.readiness.checks import CHECKS, ESSENTIAL_FROM, MISSING_BELOW, ODDITIES, OK_FROM, Counted, Weight
from poc.readiness.count import count_all
from poc.readiness.relations import Unit
from poc.workspace import Workspace

Level = Literal["READY", "PARTIAL", "NOT READY"]
CheckLevel = Literal["ok", "note", "gap", "missing"]
Severity = Literal["stops", "limits", "note"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check or oddity: `present` of `total` have what is asked, or are free of what is odd.

    `share` is present / total, None where there is nothing to count.
    """

    check_id: str
    unit: Unit
    weight: Weight
    present: int
    total: int

    @property
    def share(self) -> float | None:
        """Present over total, 0..1."""
        return self.present / self.total if self.total else None

    @property
    def cases(self) -> int:
        """How many lack what is asked, or are odd: the evidence."""
        return self.total - self.present

    @property
    def odd(self) -> bool:
        """Whether this is an oddity, not a check."""
        return self.weight in ("suspect", "note")

    @property
    def severity(self) -> Severity | None:
        """What the cases mean: stops everything, limits some stage, or worth a look; None where there are none."""
        if self.forbids:
            return "stops"
        if self.level in ("gap", "missing") and self.weight != "helpful":
            return "limits"
        return "note" if self.cases or self.level != "ok" else None

    @property
    def level(self) -> CheckLevel:
        """ok, gap or missing, by the share; an oddity that is rare or harmless is a note."""
        if self.odd:
            if not self.cases:
                return "ok"
            return "gap" if self.weight == "suspect" and self.present < self.total * OK_FROM else "note"
        share = self.share or 0.0
        return "ok" if share >= OK_FROM else "missing" if share < MISSING_BELOW else "gap"

    @property
    def forbids(self) -> bool:
        """Whether this check alone makes the log NOT READY."""
        return self.weight == "essential" and (self.share or 0.0) < ESSENTIAL_FROM

    @property
    def blocks(self) -> str | None:
        """Key of the sentence that says what this gap closes later; None when there is none."""
        return None if self.level == "ok" else f"readiness.{self.check_id}.blocks"

    @property
    def remedy(self) -> str | None:
        """Key of the sentence that says how to close the gap; None when there is none."""
        return None if self.level == "ok" else f"readiness.{self.check_id}.remedy"


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement on the logs of a workspace."""

    runs: int
    steps: int
    checks: tuple[Check, ...]
    oddities: tuple[Check, ...] = ()
    assessed_at: datetime

    @property
    def level(self) -> Level:
        """READY, PARTIAL or NOT READY."""
        if not self.runs or not self.steps or any(check.forbids for check in self.checks):
            return "NOT READY"
        if any(check.level != "ok" and check.weight != "helpful" for check in self.checks):
            return "PARTIAL"
        return "READY"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Ids of the checks that decide the level: those that forbid, else those that are not ok."""
        forbidding = tuple(check.check_id for check in self.checks if check.forbids)
        if forbidding or self.level == "NOT READY":
            return forbidding
        return tuple(check.check_id for check in self.checks if check.level != "ok" and check.weight != "helpful")

    def check(self, check_id: str) -> Check:
        """The check or oddity of this id."""
        return next(check for check in (*self.checks, *self.oddities) if check.check_id == check_id)


def assess(workspace: Workspace) -> Readiness:
    """Count everything anew and store it in ``findings``."""
    now = datetime.now(UTC)
    with workspace.read() as db:
        counts = count_all(db, (*CHECKS, *ODDITIES))
    readiness = _readiness(counts, now)
    with workspace.write() as db:
        db.execute("DELETE FROM findings")
        db.executemany(
            "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?)",
            [[c.check_id, c.unit, c.present, c.total, c.level, now] for c in (*readiness.checks, *readiness.oddities)],
        )
    return readiness


def stored(workspace: Workspace) -> Readiness | None:
    """The last assessment, without counting again; None when there was none."""
    found = {row["check_id"]: row for row in workspace.rows("SELECT * FROM findings")}
    if any(counted.check_id not in found for counted in (*CHECKS, *ODDITIES)):
        return None
    counts = {check_id: (row["present"], row["total"]) for check_id, row in found.items()}
    return _readiness(counts, found["tool"]["assessed_at"])


def _readiness(counts: dict[str, tuple[int, int]], assessed_at: datetime) -> Readiness:
    return Readiness(
        runs=counts["run_id"][1],
        steps=counts["tool"][1],
        checks=_checks(CHECKS, counts),
        oddities=_checks(ODDITIES, counts),
        assessed_at=assessed_at,
    )


def _checks(asked: tuple[Counted, ...], counts: dict[str, tuple[int, int]]) -> tuple[Check, ...]:
    return tuple(
        Check(
            check_id=counted.check_id,
            unit=counted.unit,
            weight=counted.weight,
            present=counts[counted.check_id][0],
            total=counts[counted.check_id][1],
        )
        for counted in asked
    )
