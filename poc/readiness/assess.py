"""Counts what the log has, and says READY, PARTIAL or NOT READY.

NOT READY: there is no run or no step, or in half of the cases or more an
essential thing is missing: the tool's name, its arguments, any answer (result
or status), what was asked. Nothing that comes later would mean anything.
PARTIAL: something needed is missing, which closes some later stage.
READY: everything needed is there. Knows the tables, no log format.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

from poc.readiness.checks import CHECKS, ESSENTIAL_FROM, MISSING_BELOW, OK_FROM, Unit, Weight
from poc.workspace import Workspace

Level = Literal["READY", "PARTIAL", "NOT READY"]
CheckLevel = Literal["ok", "gap", "missing"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check. `share` is present / total, None where there is nothing to count."""

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
    def level(self) -> CheckLevel:
        """ok, gap or missing, by the share."""
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
        """The check of this id."""
        return next(check for check in self.checks if check.check_id == check_id)


def assess(workspace: Workspace) -> Readiness:
    """Count everything anew and store it in ``findings``."""
    now = datetime.now(UTC)
    checks: list[Check] = []
    with workspace.read() as db:
        for counted in CHECKS:
            row = db.execute(counted.sql).fetchone() or (0, 0)
            checks.append(
                Check(
                    check_id=counted.check_id,
                    unit=counted.unit,
                    weight=counted.weight,
                    present=int(row[0]),
                    total=int(row[1]),
                )
            )
        runs, steps = _sizes(db.execute(_SIZES).fetchone())
    readiness = Readiness(runs=runs, steps=steps, checks=tuple(checks), assessed_at=now)
    with workspace.write() as db:
        db.execute("DELETE FROM findings")
        db.executemany(
            "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?)",
            [[c.check_id, c.unit, c.present, c.total, c.level, now] for c in readiness.checks],
        )
    return readiness


def stored(workspace: Workspace) -> Readiness | None:
    """The last assessment, without counting again; None when there was none."""
    found = {row["check_id"]: row for row in workspace.rows("SELECT * FROM findings")}
    if any(counted.check_id not in found for counted in CHECKS):
        return None
    checks = tuple(
        Check(
            check_id=counted.check_id,
            unit=counted.unit,
            weight=counted.weight,
            present=found[counted.check_id]["present"],
            total=found[counted.check_id]["total"],
        )
        for counted in CHECKS
    )
    by_id = {check.check_id: check for check in checks}
    return Readiness(
        runs=by_id["run_id"].total,
        steps=by_id["tool"].total,
        checks=checks,
        assessed_at=found["tool"]["assessed_at"],
    )


_SIZES = "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM steps WHERE caller <> 'user')"


def _sizes(row: tuple[int, int] | None) -> tuple[int, int]:
    return (int(row[0]), int(row[1])) if row else (0, 0)
