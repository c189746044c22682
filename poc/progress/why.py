"""Why a step does, or does not, achieve a subgoal: one explanation a part of its condition.

For the people who write subgoals; holds arguments and results of the log, so
it is never shown to a model. Knows nothing of runs: `after` depends on the
steps before and is only mentioned.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from poc.language import Language, Sentence
from poc.progress.validity import WORDS
from poc.subgoals import Facts, Predicate, Subgoal
from poc.subgoals.operators import OPERATORS, is_number
from poc.subgoals.patterns import fits
from poc.subgoals.predicate import PathTest
from poc.trajectory import Step

_LONGEST = 120


class Explanation(msgspec.Struct, frozen=True):
    """One part of a condition. `holds` is None for what a single step cannot tell (`after`).

    `field`: tool, status, after, or the side with its path (``result $.status``).
    """

    field: str
    holds: bool | None
    sentence: Sentence

    def text(self, language: Language = "en") -> str:
        """The explanation in words."""
        return WORDS.speak(self.sentence, language)


def why(step: Step, subgoal: Subgoal, *, undone: bool = False) -> list[Explanation]:
    """Field by field, whether a step satisfies `done_when` (or `undone_when`); empty without such a condition."""
    condition = subgoal.undone_when if undone else subgoal.done_when
    if condition is None:
        return []
    facts, predicate = Facts.of(step), Predicate(condition)
    found: list[Explanation] = []
    if predicate.tool is not None:
        values = {"wanted": " / ".join(predicate.tool), "found": step.tool}
        found.append(Explanation("tool", fits(predicate.tool, step.tool), Sentence("why.tool", values)))
    values = {"wanted": " / ".join(predicate.status), "found": step.status}
    found.append(Explanation("status", step.status in predicate.status, Sentence("why.status", values)))
    for test in predicate.tests:
        found += _path(test, facts)
    if subgoal.after and not undone:
        found.append(Explanation("after", None, Sentence("why.after", {"wanted": ", ".join(subgoal.after)})))
    return found


def _path(test: PathTest, facts: Facts) -> list[Explanation]:
    """One explanation an operator, for the value that comes nearest to satisfying them all."""
    field = f"{test.side} {test.path.text}"
    found = test.values(facts)
    nearest = max(found, key=lambda value: sum(_holds(check, value) for check in test.checks), default=None)
    explanations = []
    for name, operand in test.checks:
        values: dict[str, Any] = {
            "side": test.side,
            "path": test.path.text,
            "operator": name,
            "wanted": _shown(operand),
        }
        holds = not found if test.wants_absence else bool(found) and _holds((name, operand), nearest)
        document = facts.arguments if test.side == "arguments" else facts.result
        if not found:
            key = "why.missing" if document.is_json or test.on_raw_text else "why.unreadable"
        else:
            values["found"] = _shown(nearest)
            key = "why.value"
            if not holds and name in ("equals", "regex", "gt", "lt") and _kind(operand) != _kind(nearest):
                key = "why.kind"
                values["kind"] = _kind(nearest)
        explanations.append(Explanation(field, holds, Sentence(key, values)))
    return explanations


def _holds(check: tuple[str, Any], value: Any) -> bool:
    name, operand = check
    return OPERATORS[name].python(operand, value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true/false"
    if isinstance(value, str):
        return "text"
    if is_number(value) or isinstance(value, float):
        return "number"
    return "list" if isinstance(value, list) else "object"


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = "..."
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
