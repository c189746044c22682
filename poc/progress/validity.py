"""Does progress track success? Final progress (high-water) against the outcome, per category and over all.

A set whose progress does not tell successes from failures measures something
else than the task. The figure is the AUROC: the chance that a random
successful run ends with more progress than a random failed one (0.5: tells
nothing), with an interval in which the runs of one task count as alike (see
`poc.stats.auroc`). Knows nothing of replays.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from poc.language import Language, Sentence, Words
from poc.stats import Interval, auroc
from poc.workspace import Workspace

WORDS = Words.load(Path(__file__).with_name("words.yaml"))
_Entry = tuple[str, float | None, float]
"""Task, outcome, final progress of one run."""


class Validity(msgspec.Struct, frozen=True):
    """How well final progress tracks the outcome in one category (None: all scored runs together).

    `runs` counts those with a known outcome, `unknown` those without, `tasks`
    the distinct tasks of the former, `successes` the runs that succeeded.
    `auroc` is None when too little is known; `refusal` then says why.
    """

    category: str | None
    runs: int
    tasks: int
    successes: int
    unknown: int
    auroc: Interval | None
    refusal: Sentence | None = None

    def reason(self, language: Language = "en") -> str | None:
        """The refusal in words."""
        return None if self.refusal is None else WORDS.speak(self.refusal, language)


def validity(workspace: Workspace, *, confidence: float = 0.95, success_from: float = 1.0) -> list[Validity]:
    """One entry a scored category, in alphabetical order, and one for all together at the end.

    `success_from`: outcomes of at least this much count as success (0..1).
    Empty when nothing has been scored.
    """
    rows = workspace.rows(
        """
        WITH final AS (SELECT run_id, max(high_water) AS final FROM progress GROUP BY run_id)
        SELECT g.category, coalesce(o.task_id, a.run_id) AS task, o.outcome, coalesce(f.final, 0) AS final
        FROM assignments a JOIN subgoal_sets g USING (set_hash)
        LEFT JOIN outcomes o ON o.run_id = a.run_id LEFT JOIN final f ON f.run_id = a.run_id
        ORDER BY g.category, a.run_id
        """
    )
    if not rows:
        return []
    everything: list[_Entry] = [(row["task"], row["outcome"], row["final"]) for row in rows]
    groups: list[tuple[str | None, list[_Entry]]] = []
    for row, entry in zip(rows, everything, strict=True):
        if not groups or groups[-1][0] != row["category"]:
            groups.append((row["category"], []))
        groups[-1][1].append(entry)
    groups.append((None, everything))
    return [_one(category, entries, confidence, success_from) for category, entries in groups]


def _one(category: str | None, entries: list[_Entry], confidence: float, success_from: float) -> Validity:
    known = [(task, outcome >= success_from, final) for task, outcome, final in entries if outcome is not None]
    good = {task for task, success, _ in known if success}
    bad = {task for task, success, _ in known if not success}
    refusal = None
    area = None
    if not known:
        refusal = Sentence("validity.no_outcome")
    elif len(good) < 2:
        refusal = Sentence("validity.few_successes", {"tasks": len(good)})
    elif len(bad) < 2:
        refusal = Sentence("validity.few_failures", {"tasks": len(bad)})
    else:
        tasks, outcomes, scores = zip(*known, strict=True)
        area = auroc(scores, outcomes, tasks, confidence=confidence)
    return Validity(
        category=category,
        runs=len(known),
        tasks=len({task for task, _, _ in known}),
        successes=sum(success for _, success, _ in known),
        unknown=len(entries) - len(known),
        auroc=area,
        refusal=refusal,
    )
