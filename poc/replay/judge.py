"""Judges of a next step: what the predicted calls are worth after a logged history.

Four questions, each with a yes, a no, or no answer where it does not apply:

- *advances*: could some call achieve a subgoal that is still open?
- *repeats*: does some call do again what the run had already done with success?
- *stopped_early*: no call, though the logged agent called and required subgoals are open?
- *matches_logged*: the same tool and canonical arguments as a call of the logged turn;
  asked only where the logged run succeeded.

*Next-step quality* is "advances and does not repeat". It is not task success:
nobody knows how the run would have gone on. Judges see the calls only, never
the arm or its text.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from poc.progress import Tracker
from poc.replay.calls import canonical_text
from poc.replay.records import Judgement
from poc.trajectory import Step


class PredictedCall(msgspec.Struct, frozen=True):
    """A call that the model proposed; `arguments_json` is None when they were no JSON object."""

    tool: str
    arguments_json: str | None


def judge(
    tracker: Tracker, calls: Sequence[PredictedCall], logged: Sequence[Step], outcome: float | None
) -> list[Judgement]:
    """All four judgements.

    tracker: has seen the history. logged: the calls of the turn as the log has it. outcome: the logged run's, 0..1.
    """
    advancing = [call.tool for call in calls if tracker.would_advance(call.tool, call.arguments_json)]
    repeating = [call.tool for call in calls if tracker.would_repeat(call.tool, call.arguments_json)]
    still_open = len(tracker.open_required)
    stopped = not calls and bool(logged) and still_open > 0
    return [
        Judgement(judge="advances", value=bool(advancing), reason=", ".join(advancing) or None),
        Judgement(judge="repeats", value=bool(repeating), reason=", ".join(repeating) or None),
        Judgement(
            judge="stopped_early", value=stopped, reason=f"{still_open} required subgoals open" if stopped else None
        ),
        _matches(calls, logged, outcome),
    ]


def quality(judgements: Sequence[Judgement]) -> float:
    """Next-step quality: 1 when some call advances and none repeats, else 0."""
    values = {judgement.judge: judgement.value for judgement in judgements}
    return float(bool(values["advances"]) and not values["repeats"])


def _matches(calls: Sequence[PredictedCall], logged: Sequence[Step], outcome: float | None) -> Judgement:
    if outcome is None or outcome < 1:
        reason = "the outcome of the logged run is unknown" if outcome is None else "the logged run did not succeed"
        return Judgement(judge="matches_logged", value=None, reason=reason)
    wanted = {(step.tool, canonical_text(step.arguments_json)) for step in logged if step.arguments_json is not None}
    if not wanted:
        return Judgement(judge="matches_logged", value=None, reason="the arguments of the logged call are unreadable")
    found = any((call.tool, canonical_text(call.arguments_json)) in wanted for call in calls)
    return Judgement(judge="matches_logged", value=found)
