"""The gaps and oddities of a log in words, the worst first: what it is, how much, what it blocks, what to log.

Knows the judgement and the words, not how anything is counted.
"""

from __future__ import annotations

import math

import msgspec

from poc.language import Language
from poc.readiness.assess import Check, Readiness, Severity
from poc.readiness.examples import example
from poc.readiness.relations import Unit
from poc.readiness.speech import WORDS

_ORDER: dict[Severity, int] = {"stops": 0, "limits": 1, "note": 2}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One gap or oddity in words. `share` is cases / total, None where there was nothing to count."""

    check_id: str
    severity: Severity
    severity_name: str
    title: str
    unit: Unit
    unit_name: str
    cases: int
    total: int
    share: float | None
    count: str
    blocks: str
    remedy: str
    example: str
    """One or two JSON lines."""


def findings(readiness: Readiness, language: Language = "en") -> list[Finding]:
    """Every check that something lacks and every oddity that was seen, the worst first."""
    found = [
        _finding(check, check.severity, language)
        for check in (*readiness.checks, *readiness.oddities)
        if check.severity is not None
    ]
    return sorted(found, key=lambda finding: _ORDER[finding.severity])


def _finding(check: Check, severity: Severity, language: Language) -> Finding:
    key = f"readiness.{check.check_id}"
    share = check.cases / check.total if check.total else None
    unit = WORDS.say(f"readiness.unit.{check.unit}", language)
    count = WORDS.say("readiness.count.none", language)
    if share is not None:
        count = WORDS.say(
            "readiness.cases.odd" if check.odd else "readiness.cases.lacking",
            language,
            cases=check.cases,
            total=check.total,
            unit=unit,
            percent=_percent(share),
        )
    return Finding(
        check_id=check.check_id,
        severity=severity,
        severity_name=WORDS.say(f"readiness.severity.{severity}", language),
        title=WORDS.say(f"{key}.title", language),
        unit=check.unit,
        unit_name=unit,
        cases=check.cases,
        total=check.total,
        share=share,
        count=count,
        blocks=WORDS.say(f"{key}.blocks", language),
        remedy=WORDS.say(f"{key}.remedy", language),
        example=example(check.check_id),
    )


def _percent(share: float) -> str:
    """Whole per cents, rounded up, so that nothing that was seen is called 0 %."""
    return "<1" if 0 < share < 0.01 else str(min(math.ceil(share * 100 - 1e-9), 100))
