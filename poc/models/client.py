"""The only door to a model: one chat completion, measured, paid for and retried in the open.

Each attempt reserves its worst case in the budget first and is settled
whatever happens. Retries are counted and their waiting is kept apart from
latency. What the server refuses by name is left out, once, and remembered.

Knows no arm, no environment, no table, and no HTTP: that is `exchange`.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from poc import tokens
from poc.errors import BudgetExceeded
from poc.models import egress
from poc.models.budget import Budget, Reservation
from poc.models.exchange import Answer, Exchange
from poc.models.failures import CallFailed, Failure
from poc.models.parameters import Parameters, ToolChoice, as_tools
from poc.models.settings import ModelSettings
from poc.models.turn import Turn
from poc.prices import cost_usd, load_overrides, price_of
from poc.trajectory import ToolSchema, Usage

SIMULATED_HEADER = "x-poc-simulated"
"""Set by the simulated model: ``1``, or ``unknown-tools`` when it did not know the tools."""

_FIRST_MARGIN = 1.2
_LEARNED_MARGIN = 1.1


class ModelClient:
    """Asks one model of one server, within one budget. Use as ``async with``, or call `aclose`.

    api_key: wins over the environment variable that the settings name. A
    server on this machine needs none, and OpenAI's own variable is never sent
    to one. prices: overrides as `poc.prices.load_overrides` reads them.
    concurrency: how many calls may be in flight. backoff_base_s doubles with
    each retry up to backoff_max_s; max_wait_s is the longest that the client
    obeys a server's Retry-After.

    Raises `CallFailed` for a missing key, `InputError` for a bad base URL and
    for a dollar limit that an unknown price makes meaningless.
    """

    def __init__(
        self,
        settings: ModelSettings,
        budget: Budget,
        *,
        api_key: str | None = None,
        prices: Mapping[str, Any] | None = None,
        concurrency: int = 64,
        backoff_base_s: float = 0.5,
        backoff_max_s: float = 30.0,
        max_wait_s: float = 120.0,
    ) -> None:
        self.settings = settings
        self.budget = budget
        self.destination = egress.destination(settings.base_url)
        self._prices = load_overrides(prices)
        self.price = price_of(settings.name, base_url=settings.base_url, overrides=self._prices)
        budget.require_price(self.price is not None, settings.name)
        self._exchange = Exchange(settings, self.destination, api_key=api_key, concurrency=concurrency)
        self._parameters = Parameters(settings, official=self._exchange.official)
        self._backoff_base_s, self._backoff_max_s, self._max_wait_s = backoff_base_s, backoff_max_s, max_wait_s
        self._jitter = random.Random()
        self._not_before = 0.0
        # Local counts miss how a server frames a request; reported usage corrects this factor.
        self._margin = _FIRST_MARGIN

    def __repr__(self) -> str:
        return f"ModelClient(model={self.settings.name!r}, server={self.destination.name!r})"

    async def __aenter__(self) -> ModelClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._exchange.aclose()

    @property
    def adaptations(self) -> dict[str, str]:
        """Parameters that the server refused, and what is done instead: ``{'seed': 'left out'}``."""
        return dict(self._parameters.adaptations)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[ToolSchema | Mapping[str, Any]] | None = None,
        *,
        seed: int | None = None,
        max_output_tokens: int | None = None,
        tool_choice: ToolChoice | None = None,
    ) -> Turn:
        """One response to `messages`.

        tool_choice: ``auto``, ``none``, ``required``, a tool's name, or the
        API's own object. Raises `CallFailed` when the call failed for good and
        `BudgetExceeded` when its worst case does not fit what is left.
        """
        payload = as_tools(tools)
        limit = max_output_tokens or self.settings.max_output_tokens
        estimated = tokens.count_request(messages, payload, self.settings.name)
        retries, failed, backoff_s = 0, 0, 0.0
        while True:
            # One call's Retry-After holds for all; a little apart, so that they do not come back as one.
            if self._not_before > time.monotonic():
                backoff_s += await _sleep_until(self._not_before + self._jitter.uniform(0, self._backoff_base_s))
            reservation = await self._reserve(estimated, limit)
            body = self._parameters.body(messages, payload, seed=seed, max_output_tokens=limit, tool_choice=tool_choice)
            result = await self._attempt(body, reservation, estimated)
            if isinstance(result, Turn):
                result.retries, result.backoff_s = retries, backoff_s
                return result
            if not self._parameters.adapt(result, body):
                wait_s = self._wait_s(result, failed)
                if wait_s is None:
                    raise self._given_up(result, retries, backoff_s)
                failed += 1
                backoff_s += await _sleep_until(time.monotonic() + wait_s)
            retries += 1

    async def _reserve(self, estimated: int, limit: int) -> Reservation:
        worst = Usage(input_tokens=math.ceil(estimated * self._margin), output_tokens=limit)
        assert worst.total is not None
        return await self.budget.reserve_when_free(worst.total, self._cost(worst))

    async def _attempt(self, body: Mapping[str, Any], reservation: Reservation, estimated: int) -> Turn | Failure:
        """Send once, and settle the reservation whatever happens."""
        used: int | None = None
        cost: float | None = None
        try:
            left_s = self.budget.seconds_left
            allowed_s = self.settings.timeout_s if left_s is None else min(self.settings.timeout_s, left_s)
            result = await self._exchange.send(body, allowed_s)
            if isinstance(result, Answer):
                turn = self._turn(result, estimated)
                used, cost = turn.usage.total if turn.usage else None, turn.cost_usd
                return turn
            if not result.charged:
                used, cost = 0, 0.0
            return result
        finally:
            # Cancellation comes here too: a call in flight may be charged, so its whole reservation counts.
            self.budget.settle(reservation, used, cost)

    def _turn(self, answer: Answer, estimated: int) -> Turn:
        body, mark = answer.body, answer.headers.get(SIMULATED_HEADER)
        usage = body.usage
        if usage and usage.input_tokens and estimated:
            self._margin = max(self._margin, _LEARNED_MARGIN * usage.input_tokens / estimated)
        return Turn(
            content=body.content,
            refusal=body.refusal,
            tool_calls=body.tool_calls(),
            finish_reason=body.finish_reason,
            usage=usage,
            model=body.model,
            first_token_s=answer.first_token_s,
            total_s=answer.total_s,
            http_status=answer.http_status,
            request_id=answer.headers.get("x-request-id"),
            sent_at=answer.sent_at,
            estimated_input_tokens=estimated,
            cost_usd=self._cost(usage),
            simulated=mark is not None,
            simulated_unknown_tools=mark == "unknown-tools",
        )

    def _cost(self, usage: Usage | None) -> float | None:
        return cost_usd(usage, self.settings.name, base_url=self.settings.base_url, overrides=self._prices)

    def _wait_s(self, failure: Failure, failed: int) -> float | None:
        """Seconds to wait before the next attempt; None when there is none."""
        if not failure.retry or failed >= self.settings.max_retries:
            return None
        wait_s = min(self._backoff_max_s, self._backoff_base_s * 2.0**failed) * self._jitter.uniform(0.5, 1.0)
        if failure.wait_s is not None:
            if failure.wait_s > self._max_wait_s:
                failure.what += f" It asks to wait {failure.wait_s:.0f} s, longer than {self._max_wait_s:g} s."
                return None
            wait_s = failure.wait_s or wait_s
            self._not_before = max(self._not_before, time.monotonic() + wait_s)
        left_s = self.budget.seconds_left
        if left_s is not None and wait_s >= left_s:
            raise BudgetExceeded(
                f"The time limit ends in {left_s:.1f} s, before the next attempt in {wait_s:.1f} s.",
                where="budget, limit 'seconds'",
                todo="Everything finished so far is kept. Raise the limit and resume.",
            )
        return wait_s

    def _given_up(self, failure: Failure, retries: int, backoff_s: float) -> CallFailed:
        attempts = f" Tried {retries + 1} times." if retries else ""
        return CallFailed(
            self._exchange.scrub(failure.what + attempts),
            kind=failure.kind,
            where=f"{self.destination.base_url}, model '{self.settings.name}'",
            todo=failure.todo,
            http_status=failure.status,
            retries=retries,
            backoff_s=backoff_s,
        )


async def _sleep_until(moment: float) -> float:
    """Wait for a moment of the monotonic clock; the seconds that it took."""
    started = time.monotonic()
    if moment > started:
        await asyncio.sleep(moment - started)
        return time.monotonic() - started
    return 0.0
