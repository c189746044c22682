"""From figures to a stored verdict: GO, NO-GO or INCONCLUSIVE, with its reasons.

GO: every active criterion is met and no gate is broken. NO-GO: a decisive
criterion is broken. Else INCONCLUSIVE, with the next step. An unfinished
experiment, an agent that is not the logged one, and a simulated model that
does not know the tools are INCONCLUSIVE whatever the figures; the other
broken gates forbid GO only. Computes no figure itself.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
import pandas as pd

from poc.errors import ExitCode, WorkspaceError
from poc.language import Language, Sentence, Words
from poc.replay.experiment import Plan
from poc.verdict.advice import next_step, notes
from poc.verdict.compare import comparison_of
from poc.verdict.criteria import Criterion, judge
from poc.verdict.fidelity import fidelity
from poc.verdict.numbers import Comparison
from poc.verdict.splitting import splitting
from poc.verdict.trials import load
from poc.workspace import Workspace

WORDS = Words.load(Path(__file__).with_name("words.yaml"))
Decision = Literal["GO", "NO-GO", "INCONCLUSIVE"]
_VOIDING = ("complete", "known_tools", "fidelity")
"""Gates that, broken, leave no figure to be believed."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with everything that it rests on.

    `reasons` begins with the headline and ends with the next step; between
    them stand the criteria, the gates that are not simply met, and notes.
    """

    experiment_id: str
    verdict: Decision
    simulated: bool
    criteria: tuple[Criterion, ...]
    reasons: tuple[Sentence, ...]
    comparison: Comparison
    verdict_hash: str
    decided_at: datetime

    def sentence(self, language: Language = "en") -> str:
        """The verdict in one sentence, marked when it is simulated."""
        key = "verdict.simulated" if self.simulated else "verdict.plain"
        because = WORDS.speak(self.reasons[0], language)
        return WORDS.say(key, language, verdict=self.verdict, because=because)

    def lines(self, language: Language = "en") -> list[str]:
        """All reasons but the headline, spoken."""
        return [WORDS.speak(reason, language) for reason in self.reasons[1:]]

    @property
    def next_step(self) -> Sentence:
        """What to do next."""
        return self.reasons[-1]

    @property
    def tasks_needed(self) -> int | None:
        """How many tasks would settle it, where more tasks are the next step."""
        return self.next_step.values.get("needed")

    def criteria_frame(self, language: Language = "en") -> pd.DataFrame:
        """One row a criterion or gate: criterion, gate, decisive, value, low, high, threshold, unit (points, ratio,
        number), status, reason (spoken).
        """
        return pd.DataFrame(
            [
                {
                    "criterion": line.criterion,
                    "gate": line.is_gate,
                    "decisive": line.decisive,
                    "value": line.value,
                    "low": line.low,
                    "high": line.high,
                    "threshold": line.threshold,
                    "unit": line.unit,
                    "status": line.status,
                    "reason": WORDS.speak(line.reason, language),
                }
                for line in self.criteria
            ]
        )


def speak(sentence: Sentence, language: Language = "en") -> str:
    """A stored reason in words."""
    return WORDS.speak(sentence, language)


def exit_code(verdict: Verdict) -> ExitCode:
    """GO 0, NO-GO 3, INCONCLUSIVE 4; 5 for a simulated verdict, whatever it says."""
    if verdict.simulated:
        return ExitCode.SIMULATED
    return {"GO": ExitCode.OK, "NO-GO": ExitCode.NO_GO, "INCONCLUSIVE": ExitCode.INCONCLUSIVE}[verdict.verdict]


def decide(workspace: Workspace, experiment_id: str) -> Verdict:
    """Judge an experiment by the thresholds frozen in its plan, and store the verdict.

    The same stored trials give the same verdict, hash and text. Deciding
    again on unchanged trials renews the stored row instead of adding one.
    """
    stored = load(workspace, experiment_id)
    found = comparison_of(stored, fidelity(workspace, stored), splitting(workspace, stored.plan))
    verdict = verdict_of(found, stored.plan)
    _store(workspace, verdict)
    return verdict


def verdict_of(comparison: Comparison, plan: Plan) -> Verdict:
    """The verdict on given figures; stores nothing."""
    criteria = judge(comparison, plan)
    decision, headline = _decision(comparison, criteria)
    shown = [line.reason for line in criteria if not (line.is_gate and line.status in ("met", "off"))]
    reasons = (
        headline,
        *(reason for reason in shown if reason != headline),
        *notes(comparison, plan),
        next_step(comparison, plan, decision, criteria),
    )
    content = msgspec.json.encode(
        [decision, comparison.simulated, criteria, reasons, comparison], order="deterministic"
    )
    return Verdict(
        experiment_id=comparison.experiment_id,
        verdict=decision,
        simulated=comparison.simulated,
        criteria=criteria,
        reasons=reasons,
        comparison=comparison,
        verdict_hash=hashlib.sha256(content).hexdigest(),
        decided_at=datetime.now(UTC),
    )


def _decision(comparison: Comparison, criteria: tuple[Criterion, ...]) -> tuple[Decision, Sentence]:
    """The verdict and the one reason that stands for it."""
    gates = [line for line in criteria if line.is_gate]
    figures = [line for line in criteria if not line.is_gate and line.status != "off"]
    for line in gates:
        if line.criterion in _VOIDING and line.status == "broken":
            return "INCONCLUSIVE", line.reason
    for line in figures:
        if line.decisive and line.status == "broken":
            return "NO-GO", line.reason
    for line in (*gates, *figures):
        if line.status == "broken" or (line.status == "open" and not line.is_gate):
            return "INCONCLUSIVE", line.reason
    outcome = comparison.primary.outcome.interval
    return "GO", Sentence(
        "headline.go",
        {
            "treatment": comparison.primary.treatment,
            "control": comparison.primary.control,
            **{name: figures[0].reason.values[name] for name in ("gain", "low", "high")},
            "tasks": outcome.n,
        },
    )


def _store(workspace: Workspace, verdict: Verdict) -> None:
    key = [verdict.experiment_id, verdict.verdict_hash]
    with workspace.write() as db:
        db.execute("DELETE FROM verdicts WHERE experiment_id = ? AND verdict_hash = ?", key)
        db.execute("DELETE FROM criteria WHERE experiment_id = ? AND verdict_hash = ?", key)
        db.execute(
            "INSERT INTO verdicts BY NAME SELECT ? AS experiment_id, ? AS verdict_hash, ? AS verdict, ? AS simulated, "
            "?::JSON AS reasons, ?::JSON AS numbers, ? AS decided_at",
            [
                *key,
                verdict.verdict,
                verdict.simulated,
                msgspec.json.encode(verdict.reasons).decode(),
                msgspec.json.encode(verdict.comparison).decode(),
                verdict.decided_at,
            ],
        )
        db.executemany(
            "INSERT INTO criteria VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::JSON)",
            [
                [
                    *key, position, line.criterion, line.decisive, line.value, line.low, line.high,
                    line.threshold, line.status, msgspec.json.encode(line.reason).decode(),
                ]
                for position, line in enumerate(verdict.criteria)
            ],
        )  # fmt: skip


def load_verdict(workspace: Workspace, experiment_id: str) -> Verdict | None:
    """The latest stored verdict of an experiment; None when it was never decided.

    Raises `WorkspaceError` when another version of this program stored it in a form that this one does not read.
    """
    rows = workspace.rows(
        """
        SELECT verdict, simulated, reasons::VARCHAR AS reasons, numbers::VARCHAR AS numbers, verdict_hash, decided_at
        FROM verdicts WHERE experiment_id = ? ORDER BY decided_at DESC, rowid DESC LIMIT 1
        """,
        [experiment_id],
    )
    if not rows:
        return None
    row = rows[0]
    lines = workspace.rows(
        """
        SELECT criterion, decisive, value, low, high, threshold, status, reason::VARCHAR AS reason
        FROM criteria WHERE experiment_id = ? AND verdict_hash = ? ORDER BY position
        """,
        [experiment_id, row["verdict_hash"]],
    )
    return Verdict(
        experiment_id=experiment_id,
        verdict=row["verdict"],
        simulated=row["simulated"],
        criteria=tuple(
            Criterion(**{**line, "reason": msgspec.json.decode(line["reason"], type=Sentence)}) for line in lines
        ),
        reasons=msgspec.json.decode(row["reasons"], type=tuple[Sentence, ...]),
        comparison=_numbers(row["numbers"], experiment_id),
        verdict_hash=row["verdict_hash"],
        decided_at=row["decided_at"].astimezone(UTC),
    )


def _numbers(stored: str, experiment_id: str) -> Comparison:
    try:
        return msgspec.json.decode(stored, type=Comparison)
    except msgspec.ValidationError as error:
        raise WorkspaceError(
            "The verdict was stored by another version of this program.",
            where=f"experiment {experiment_id}: {error}",
            todo="Decide again: poc decide. Nothing is called; the stored trials are read anew.",
        ) from error
