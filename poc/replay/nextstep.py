"""A next-step trial: a logged history goes to the model, and its one answer is judged.

Nothing is carried out, so it runs on any log; what it measures is called
next-step quality, never task success. The history is another model's.
"""

from __future__ import annotations

import asyncio

from poc.progress import Tracker
from poc.progress.view import ProgressView
from poc.replay.attempt import Attempt, Shared
from poc.replay.calls import ArgumentsError, canonical, parse_arguments
from poc.replay.experiment import TrialKey
from poc.replay.history import chat_tools, history, steps_before, turn_steps
from poc.replay.judge import PredictedCall, judge, quality
from poc.replay.loop import ContextWriter, WithContext, head
from poc.replay.masking import Mask
from poc.replay.past import Past
from poc.replay.records import Call, TrialDone
from poc.subgoals import SubgoalSet
from poc.trajectory import Run, ToolSchema

PROVENANCE = "next_step_quality"


async def run_next_step(
    key: TrialKey,
    shared: Shared,
    subgoal_set: SubgoalSet,
    logged: Run,
    tools: list[ToolSchema],
    past: Past | None,
) -> TrialDone:
    """Ask once and judge. Raises what `Attempt.ask` raises."""
    attempt = Attempt(key, shared, past)
    mask = Mask(shared.plan.redact)
    tracker, request = prepare(key, shared, subgoal_set, logged, mask)
    limit = asyncio.timeout(shared.plan.limits.trial_timeout_s)
    try:
        async with limit:
            turn = await attempt.ask(request.messages, mask.data(chat_tools(tools)), request.tokens)
    except TimeoutError:
        if not limit.expired():
            raise
        error = f"The trial took longer than {shared.plan.limits.trial_timeout_s:g} s."
        attempt.cut_off(error)
        return attempt.end(stop_reason="timeout", status="failed", success=0.0, provenance=PROVENANCE, error=error)
    if turn.error is not None or turn.refused:
        return attempt.end(
            stop_reason="refused" if turn.error is None else "model_error",
            status="failed",
            success=0.0,
            provenance=PROVENANCE,
            error=turn.error,
        )
    calls = [predicted(call, mask) for call in turn.tool_calls]
    assert key.cut is not None
    judgements = judge(
        tracker, calls, turn_steps(logged, key.cut[1]), None if logged.outcome is None else logged.outcome.value
    )
    attempt.repeated = sum(tracker.would_repeat(call.tool, call.arguments_json) for call in calls)
    effects = {tool.name: tool.effect for tool in tools}
    attempt.repeated_irreversible = sum(
        effects.get(call.tool) == "irreversible" and tracker.would_repeat(call.tool, call.arguments_json)
        for call in calls
    )
    progress = tracker.view().fraction
    for ordinal, (call, meant) in enumerate(zip(turn.tool_calls, calls, strict=True)):
        attempt.step(
            turn=0,
            ordinal=ordinal,
            tool=call.name,
            arguments=_shown(meant, mask),
            result=None,
            status="no_result",
            duration_s=None,
            progress=progress,
            context=request.text,
        )
    return attempt.end(
        stop_reason="judged",
        status="finished",
        success=quality(judgements),
        provenance=PROVENANCE,
        final_progress=progress,
        judgements=judgements,
    )


def prepare(
    key: TrialKey, shared: Shared, subgoal_set: SubgoalSet, logged: Run, mask: Mask
) -> tuple[Tracker, WithContext]:
    """The tracker after the logged history, and the request of a trial, redacted and with its arm's text."""
    assert key.cut is not None
    tracker = Tracker(subgoal_set)
    views: list[ProgressView] = [tracker.view()]
    for step in steps_before(logged, key.cut[1]):
        tracker.observe(step)
        views.append(tracker.view())
    messages = mask.data(history(logged, key.cut[1]))
    if messages and messages[0]["role"] == "system":
        messages[0] = head(key.nonce, messages[0]["content"])
    else:
        messages.insert(0, head(key.nonce, ""))
    return tracker, ContextWriter.of(key, shared.plan).write(messages, views, mask)


def predicted(call: Call, mask: Mask) -> PredictedCall:
    """A call as judges see it, with its arguments restored."""
    try:
        return PredictedCall(call.name, canonical(mask.restore(parse_arguments(call.arguments))))
    except ArgumentsError:
        return PredictedCall(call.name, None)


def _shown(call: PredictedCall, mask: Mask) -> str | None:
    return None if call.arguments_json is None else canonical(mask.data(parse_arguments(call.arguments_json)))
