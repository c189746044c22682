"""The judgement in words, English or Japanese. Knows the checks, not how they are counted."""

from __future__ import annotations

from pathlib import Path

import msgspec

from poc.language import Language, Words
from poc.readiness.assess import Check, Readiness

WORDS = Words.load(Path(__file__).with_name("words.yaml"))


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """A check in words. `blocks` and `remedy` are None where there is no gap."""

    check_id: str
    title: str
    count: str
    level: str
    blocks: str | None
    remedy: str | None


def headline(readiness: Readiness, language: Language = "en") -> str:
    """The level and what decided it, in one or two sentences."""
    if not readiness.runs:
        return WORDS.say("readiness.headline.empty", language)
    if not readiness.steps:
        return WORDS.say("readiness.headline.no_steps", language, runs=readiness.runs)
    key = {"READY": "ready", "PARTIAL": "partial", "NOT READY": "not_ready"}[readiness.level]
    comma = WORDS.say("readiness.comma", language)
    named = comma.join(WORDS.say(f"readiness.{check_id}.title", language) for check_id in readiness.reasons)
    values = {"runs": readiness.runs, "steps": readiness.steps}
    if readiness.level != "READY":
        values = {**values, "gaps": named}
    return WORDS.say(f"readiness.headline.{key}", language, **values)


def describe(readiness: Readiness, language: Language = "en") -> list[Spoken]:
    """Each check in words, in the order in which they are shown."""
    return [_spoken(check, language) for check in readiness.checks]


def _spoken(check: Check, language: Language) -> Spoken:
    if check.share is None:
        count = WORDS.say("readiness.count.none", language)
    else:
        unit = WORDS.say(f"readiness.unit.{check.unit}", language)
        # Rounded down, so that 100 % is said only when nothing is missing.
        percent = int(check.share * 100)
        count = WORDS.say(
            "readiness.count", language, present=check.present, total=check.total, unit=unit, percent=percent
        )
    return Spoken(
        check_id=check.check_id,
        title=WORDS.say(f"readiness.{check.check_id}.title", language),
        count=count,
        level=WORDS.say(f"readiness.level.{check.level}", language),
        blocks=WORDS.say(check.blocks, language) if check.blocks else None,
        remedy=WORDS.say(check.remedy, language) if check.remedy else None,
    )
