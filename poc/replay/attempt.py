"""One attempt at one trial: model calls and steps as they happen, in the journal before anything follows.

On resume an attempt starts with what the journal holds of it: a finished
model call is used again instead of being paid twice. The calls on the
environment are made again, and their results compared; where they differ the
world has moved on, `Diverged` is raised, and the trial starts afresh.

Knows how things are recorded and added up; knows no arm and no environment.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from poc import tokens
from poc.errors import BudgetExceeded
from poc.models import CallFailed, ModelClient
from poc.prices import PriceTable, cost_usd
from poc.replay.experiment import Plan, TrialKey
from poc.replay.journal import JournalWriter
from poc.replay.past import Past
from poc.replay.records import (
    AttemptStart,
    Call,
    CallDropped,
    CallStart,
    Judgement,
    StepDone,
    TrialDone,
    TurnDone,
)
from poc.trajectory import Status, Usage

_MARGIN = 1.2
"""Local counts miss how a server frames a request; a call lost in a crash counts with this margin."""


class Paused(Exception):
    """The experiment is being stopped; the trial stays unfinished and goes on at the next resume."""


class Diverged(Exception):
    """A call that was made again gave another result than before."""


@dataclass
class Shared:
    """What all trials of a running experiment share. `answered`: the model has answered at least once."""

    plan: Plan
    client: ModelClient
    journal: JournalWriter
    stop: asyncio.Event
    answered: bool = False
    prices: PriceTable | None = None

    def worst(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        """What a call may need at worst: ``reserved_tokens`` and, where the price is known, ``reserved_usd``."""
        settings = self.plan.model
        counted = math.ceil(_MARGIN * tokens.count_request(messages, tools, settings.name))
        usage = Usage(input_tokens=counted, output_tokens=settings.max_output_tokens)
        usd = cost_usd(usage, settings.name, base_url=settings.base_url, overrides=self.prices)
        return {"reserved_tokens": usage.total, "reserved_usd": usd}


class Attempt:
    """Records one attempt. Turns and steps count from 0."""

    def __init__(self, key: TrialKey, shared: Shared, past: Past | None) -> None:
        self.key = key
        self.plan = shared.plan
        self._shared = shared
        self._journal = shared.journal
        self._past = past or Past()
        self.number = self._past.attempt
        self.turns: list[TurnDone] = []
        self.steps: list[StepDone] = []
        self.repeated = 0
        self.repeated_irreversible = 0
        self._in_flight: CallStart | None = None
        self._in_flight_context = 0
        if self._past.started_at is None:
            self.started_at = _now()
            self._journal.write(
                AttemptStart(trial_id=key.trial_id, attempt=self.number, at=self.started_at, reason=self._past.reason)
            )
        else:
            self.started_at = self._past.started_at

    @property
    def seconds_before(self) -> float:
        """How long this attempt had already worked before it was taken up again."""
        past = self._past
        return math.fsum((t.total_s or 0.0) + t.backoff_s for t in past.turns.values()) + math.fsum(
            s.duration_s or 0.0 for s in past.steps.values()
        )

    async def ask(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], context_tokens: int) -> TurnDone:
        """The next turn: from the journal where it is there, else from the model.

        A failure of the model's server comes back as a turn with `error`.
        Raises `Paused` when the experiment is being stopped, and what the
        client raises when the whole experiment cannot go on (`BudgetExceeded`,
        wrong key, no connection).
        """
        number = len(self.turns)
        known = self._past.turns.get(number)
        if known is None:
            known = await self._call(number, messages, tools, context_tokens)
        self.turns.append(known)
        return known

    async def _call(
        self, number: int, messages: list[dict[str, Any]], tools: list[dict[str, Any]], context_tokens: int
    ) -> TurnDone:
        if self._shared.stop.is_set():
            raise Paused
        # A later turn than the missing one cannot be trusted any more.
        if any(turn > number for turn in self._past.turns):
            raise Diverged(f"turn {number} is missing in the journal")
        where: dict[str, Any] = {"trial_id": self.key.trial_id, "attempt": self.number, "turn": number}
        start = CallStart(**where, at=_now(), **self._shared.worst(messages, tools))
        self._journal.write(start)
        self._in_flight, self._in_flight_context = start, context_tokens
        # Another seed each turn: with one seed, a server that starts its generator anew would draw alike every time.
        seed = (self.key.model_seed + number) & 0x7FFFFFFF
        try:
            turn = await self._shared.client.complete(messages, tools, seed=seed)
        except BudgetExceeded as error:
            self._drop(where, error.what)
            raise
        except CallFailed as error:
            # A server that has never answered is a mistake in the settings, not a trait of an arm.
            if not self._shared.answered or ends_everything(error):
                self._drop(where, error.what)
                raise
            done = TurnDone(
                **where,
                sent_at=start.at,
                context_tokens=context_tokens,
                error=error.what,
                http_status=error.http_status,
                retries=error.retries,
                backoff_s=error.backoff_s,
                spent=self._shared.client.budget.spent,
            )
        else:
            self._shared.answered = True
            done = TurnDone(
                **where,
                sent_at=turn.sent_at,
                content=turn.content if turn.content is not None else turn.refusal,
                tool_calls=tuple(Call(id=c.id, name=c.name, arguments=c.arguments_raw) for c in turn.tool_calls),
                finish_reason=turn.finish_reason,
                model=turn.model,
                http_status=turn.http_status,
                retries=turn.retries,
                backoff_s=turn.backoff_s,
                first_token_s=turn.first_token_s,
                total_s=turn.total_s,
                usage=turn.usage,
                context_tokens=context_tokens,
                cost_usd=turn.cost_usd,
                refused=turn.refusal is not None or turn.finish_reason == "content_filter",
                simulated=turn.simulated,
                simulated_unknown_tools=turn.simulated_unknown_tools,
                spent=self._shared.client.budget.spent,
            )
        self._in_flight = None
        self._journal.write(done)
        return done

    def _drop(self, where: dict[str, Any], reason: str) -> None:
        self._in_flight = None
        self._journal.write(CallDropped(**where, at=_now(), reason=reason))

    def cut_off(self, reason: str) -> None:
        """The trial's time is up: a model call in flight becomes a request that failed."""
        start = self._in_flight
        if start is None:
            return
        self._in_flight = None
        lost = TurnDone(
            trial_id=start.trial_id,
            attempt=start.attempt,
            turn=start.turn,
            sent_at=start.at,
            context_tokens=self._in_flight_context,
            error=reason,
            spent=self._shared.client.budget.spent,
        )
        self._journal.write(lost)
        self.turns.append(lost)

    def known_step(self) -> StepDone | None:
        """What the journal holds of the next step; it is made again on the environment and compared."""
        return self._past.steps.get(len(self.steps))

    def step(
        self,
        *,
        turn: int,
        ordinal: int,
        tool: str,
        arguments: str | None,
        result: str | None,
        status: Status,
        duration_s: float | None,
        progress: float | None,
        context: str | None,
    ) -> StepDone:
        """Record a finished step. Raises `Diverged` when the journal holds another one in its place."""
        done = StepDone(
            trial_id=self.key.trial_id,
            attempt=self.number,
            step=len(self.steps),
            turn=turn,
            ordinal=ordinal,
            tool=tool,
            arguments=arguments,
            result=result,
            status=status,
            duration_s=duration_s,
            progress=progress,
            context=context,
        )
        known = self.known_step()
        if known is None:
            self._journal.write(done)
        elif (known.tool, known.arguments, known.result, known.status) != (tool, arguments, result, status):
            raise Diverged(f"step {done.step} ({tool}) gave another result when it was made again")
        else:
            done = known
        self.steps.append(done)
        return done

    def end(
        self,
        *,
        stop_reason: str,
        status: str,
        success: float | None,
        provenance: str | None,
        error: str | None = None,
        final_progress: float | None = None,
        judgements: Sequence[Judgement] = (),
    ) -> TrialDone:
        """Add everything up and close the trial."""
        usages = [turn.usage for turn in self.turns]
        first_tokens = [t.first_token_s for t in self.turns if t.first_token_s is not None]
        unknown_tools = any(turn.simulated_unknown_tools for turn in self.turns)
        marks = [Judgement(judge=SIMULATED_UNKNOWN_TOOLS, value=True)] if unknown_tools else []
        done = TrialDone(
            trial_id=self.key.trial_id,
            attempt=self.number,
            arm=self.key.arm,
            status=status,
            stop_reason=stop_reason,
            success=success,
            success_provenance=provenance,
            error=error,
            final_progress=final_progress,
            turns=len(self.turns),
            steps=len(self.steps),
            errors=sum(step.status == "error" for step in self.steps),
            repeated_steps=self.repeated,
            repeated_irreversible=self.repeated_irreversible,
            input_tokens=_total(usages, "input_tokens"),
            output_tokens=_total(usages, "output_tokens"),
            cached_tokens=_total(usages, "cached_tokens"),
            reasoning_tokens=_total(usages, "reasoning_tokens"),
            context_tokens=sum(turn.context_tokens for turn in self.turns),
            cost_usd=_sum([turn.cost_usd for turn in self.turns]),
            model_latency_s=_sum([turn.total_s for turn in self.turns]),
            first_token_s=math.fsum(first_tokens) / len(first_tokens) if first_tokens else None,
            tool_latency_s=_sum([step.duration_s for step in self.steps]),
            started_at=self.started_at,
            ended_at=_now(),
            judgements=(*judgements, *marks),
        )
        self._journal.write(done, sync=True)
        return done


SIMULATED_UNKNOWN_TOOLS = "simulated_unknown_tools"
"""Judge name of the mark that a simulated model answered for tools that it does not know."""


def ends_everything(error: CallFailed) -> bool:
    """Whether the experiment must stop: the server cannot be reached, or refuses this key, model or pace.

    That is no trait of an arm, it can be mended, and then the trial goes on.
    What the server makes of a single request (a bad request, a fault, a time
    limit, a broken answer) is the trial's own failure.
    """
    return error.stops_everything or error.kind == "rate_limit"


def _total(usages: list[Usage | None], name: str) -> int | None:
    """The sum; None when any request lacked it."""
    values: list[int | None] = [None if usage is None else getattr(usage, name) for usage in usages]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _now() -> datetime:
    return datetime.now(UTC)
