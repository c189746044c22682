"""A closed-loop trial: the task is done anew in an environment, until the agent stops or a limit is reached.

Each turn: what the subgoals look like, what the arm says of it, where that is
put, the model's answer, its calls on the environment. Success is the
environment's own check; where it cannot tell, the required subgoals judge,
and the row says so. A limit, a time-out, a refusal and a failure of the
model's server are failures (success 0); nothing that has started is dropped.

The history is in the redacted tongue, as the model sees it; arguments are
restored just before the environment is called, results redacted just after.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Any, Protocol

from poc import tokens
from poc.context import Arm, arm, can_place, place
from poc.progress import Tracker
from poc.progress.view import ProgressView
from poc.replay.attempt import Attempt, Shared
from poc.replay.calls import ArgumentsError, Repeats, canonical, parse_arguments
from poc.replay.environments.base import Environment, EnvironmentTask, ToolResult
from poc.replay.experiment import Plan, TrialKey
from poc.replay.history import assistant_message, chat_tools, tool_message
from poc.replay.masking import Mask
from poc.replay.past import Past
from poc.replay.records import Call, TrialDone, TurnDone
from poc.subgoals import SubgoalSet
from poc.trajectory import EffectClass, Outcome, Step, ToolSchema


class EnvironmentFactory(Protocol):
    """Makes a fresh environment for each trial."""

    def new(self) -> Environment:
        """A fresh environment."""
        ...


@dataclass
class ContextWriter:
    """What the arm of one trial adds to each request."""

    arm: Arm
    plan: Plan
    rng: random.Random

    @classmethod
    def of(cls, key: TrialKey, plan: Plan) -> ContextWriter:
        """The writer of a trial, with a generator of its own."""
        return cls(arm(key.arm), plan, random.Random(f"{plan.seed}:arm:{key.trial_id}"))

    def write(self, messages: list[dict[str, Any]], views: list[ProgressView], mask: Mask) -> WithContext:
        """The request's messages, the text that was added (or None) and its tokens (estimate)."""
        context = self.plan.context
        text = self.arm.render(views, self.rng, context.token_budget, context.language, model=self.plan.model.name)
        if text is None or not can_place(messages, context.placement):
            return WithContext(place(messages, None, context.placement), None, 0)
        text = mask.text(text)
        return WithContext(place(messages, text, context.placement), text, tokens.count(text, self.plan.model.name))


@dataclass(frozen=True)
class WithContext:
    """A request's messages with an arm's text in them."""

    messages: list[dict[str, Any]]
    text: str | None
    tokens: int


def head(nonce: str, instructions: str) -> dict[str, Any]:
    """The system message: a line that no two trials share (so that no arm warms another's prompt cache), and the rest.

    All nonces are of equal length.
    """
    return {"role": "system", "content": f"Session {nonce}\n\n{instructions}".rstrip()}


def opening(key: TrialKey, instructions: str, mask: Mask) -> list[dict[str, Any]]:
    """The first two messages of a closed-loop trial, redacted."""
    return [
        head(key.nonce, mask.text(instructions)),
        {"role": "user", "content": mask.text(key.task.text or "")},
    ]


async def run_closed_loop(
    key: TrialKey, shared: Shared, subgoal_set: SubgoalSet, environments: EnvironmentFactory, past: Past | None
) -> TrialDone:
    """Run one attempt at one trial to its end.

    Raises `Paused` when the experiment is being stopped, `Diverged` when the
    environment does not repeat what the journal holds, `InputError` when the
    environment cannot start the task, and what ends the whole experiment.
    """
    environment = await asyncio.to_thread(environments.new)
    try:
        return await _Trial(key, shared, subgoal_set, environment, past).run()
    finally:
        await environment.close()


class _Trial:
    def __init__(
        self, key: TrialKey, shared: Shared, subgoal_set: SubgoalSet, environment: Environment, past: Past | None
    ) -> None:
        self.key = key
        self.plan = shared.plan
        self.attempt = Attempt(key, shared, past)
        self.environment = environment
        self.subgoal_set = subgoal_set
        self.tracker = Tracker(subgoal_set)
        self.mask = Mask(self.plan.redact)
        self.context = ContextWriter.of(key, self.plan)
        self.repeats = Repeats()
        self.effects: dict[str, EffectClass | None] = {}
        self.progress: float | None = 0.0

    async def run(self) -> TrialDone:
        task = self.key.task
        await self.environment.reset(
            EnvironmentTask(task_id=task.task_id, task_key=task.task_key, text=task.text, category=task.category),
            self.key.world_seed,
        )
        tools, instructions = await asyncio.to_thread(
            lambda: (self.environment.tools(), self.environment.instructions())
        )
        limit = asyncio.timeout(max(self.plan.limits.trial_timeout_s - self.attempt.seconds_before, 0.001))
        error = None
        try:
            async with limit:
                stop_reason, error = await self._turns(tools, instructions)
        except TimeoutError:
            if not limit.expired():
                raise
            stop_reason = "timeout"
            error = f"The trial took longer than {self.plan.limits.trial_timeout_s:g} s."
            self.attempt.cut_off(error)
        return await self._judged(stop_reason, error)

    async def _turns(self, tools: list[ToolSchema], instructions: str) -> tuple[str, str | None]:
        """Turn after turn; returns why it ended, with the error if there was one."""
        self.effects = {tool.name: tool.effect for tool in tools}
        offered = self.mask.data(chat_tools(tools))
        messages = opening(self.key, instructions, self.mask)
        views = [self.tracker.view()]
        while True:
            if len(self.attempt.turns) >= self.plan.limits.max_turns:
                return "turn_limit", None
            request = self.context.write(messages, views, self.mask)
            turn = await self.attempt.ask(request.messages, offered, request.tokens)
            if turn.error is not None:
                return "model_error", turn.error
            messages.append(
                assistant_message(turn.content, [(c.id, c.name, _readable(c.arguments)) for c in turn.tool_calls])
            )
            if turn.refused:
                return "refused", None
            if not turn.tool_calls:
                return "answered", None
            for ordinal, call in enumerate(turn.tool_calls):
                if len(self.attempt.steps) >= self.plan.limits.max_steps:
                    return "step_limit", None
                result = await self._step(turn, ordinal, call, request.text)
                messages.append(tool_message(call.id, result))
            views.append(self.tracker.view())

    async def _step(self, turn: TurnDone, ordinal: int, call: Call, context: str | None) -> str:
        """Make one call; returns the result as the model reads it."""
        arguments: dict[str, Any] | None = None
        started = time.perf_counter()
        try:
            arguments = self.mask.restore(parse_arguments(call.arguments))
            result = await self._call(call.name, arguments)
        except ArgumentsError as error:
            result = ToolResult(content=f"Error: {error}", is_error=True)
        duration = time.perf_counter() - started
        status = "error" if result.is_error else "ok"
        plain = None if arguments is None else canonical(arguments)
        if self.repeats.is_repeat(call.name, plain):
            self.attempt.repeated += 1
            self.attempt.repeated_irreversible += self.effects.get(call.name) == "irreversible"
        self.repeats.note(call.name, plain, ok=status == "ok")
        record = self.tracker.observe(
            Step(
                index=len(self.attempt.steps),
                turn=turn.turn,
                ordinal=ordinal,
                tool=call.name,
                call_id=call.id,
                arguments_raw=call.arguments,
                arguments_json=plain,
                arguments_status="unparsed" if plain is None else "parsed",
                result=result.content,
                status=status,
                status_evidence="flag",
                duration_s=duration,
            )
        )
        self.progress = record.current
        shown = self.mask.text(result.content)
        self.attempt.step(
            turn=turn.turn,
            ordinal=ordinal,
            tool=call.name,
            arguments=None if arguments is None else canonical(self.mask.data(arguments)),
            result=shown,
            status=status,
            duration_s=duration,
            progress=record.current,
            context=context,
        )
        return shown

    async def _call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        if name not in self.effects:
            return ToolResult(content=f"Error: There is no tool '{name}'.", is_error=True)
        return await self.environment.call(name, arguments)

    async def _judged(self, stop_reason: str, error: str | None) -> TrialDone:
        outcome: Outcome | None = None
        finished = stop_reason == "answered"
        try:
            async with asyncio.timeout(self.plan.limits.trial_timeout_s):
                outcome = await self.environment.outcome()
        except Exception as problem:  # the check itself broke: a failure of the trial, told as such
            finished, stop_reason = False, "environment_error"
            error = f"The environment could not tell the outcome: {problem}"
        if not finished:
            success = 0.0
        elif outcome is not None:
            success = outcome.value
        else:
            success = float(not self.tracker.open_required)
        return self.attempt.end(
            stop_reason=stop_reason,
            status="finished" if finished else "failed",
            success=success,
            provenance="subgoals" if outcome is None and stop_reason != "environment_error" else "environment",
            error=error,
            final_progress=self.progress,
        )


def _readable(arguments: str) -> str:
    """Arguments for the history: servers refuse a request in which earlier arguments are no JSON object."""
    try:
        return arguments if arguments.strip() and parse_arguments(arguments) is not None else "{}"
    except ArgumentsError:
        return canonical({"_raw": arguments})
