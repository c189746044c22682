"""A hard limit on tokens, dollars and seconds that holds while calls are in flight.

Before a call its worst case is reserved; afterwards the reservation is settled
with what the server reported, or with the reserved figure where it reported
nothing. So spent plus reserved never exceeds a limit, in any order of calls,
as long as no call uses more than it reserved; one that does is recorded in
full and the budget closes.

Thread-safe. Knows no model and no price.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable

import msgspec

from poc.errors import BudgetExceeded, InputError


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What is gone. `usd` is None as soon as one call had no known cost; `calls` counts settled calls."""

    tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0
    calls: int = 0


class Reservation(msgspec.Struct, frozen=True, eq=False):
    """The worst case of one call in flight; `usd` None when the price is unknown."""

    tokens: int
    usd: float | None


class Budget:
    """Limits in tokens, US dollars and seconds of wall clock; None is no limit.

    already: what earlier runs of the same experiment spent, when it is resumed.
    """

    def __init__(
        self,
        usd: float | None = None,
        tokens: int | None = None,
        seconds: float | None = None,
        *,
        already: Spent | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, limit in (("usd", usd), ("tokens", tokens), ("seconds", seconds)):
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise InputError(f"The budget's limit '{name}' is {limit!r}, not a figure from 0 up.")
        already = already or Spent()
        self.usd, self.tokens, self.seconds = usd, tokens, seconds
        self._clock = clock
        self._started = clock() - already.seconds
        self._tokens = already.tokens
        self._usd_known = already.usd or 0.0
        self._unpriced = already.usd is None
        self._calls = already.calls
        self._open: set[Reservation] = set()
        self._open_tokens = 0
        self._open_usd = 0.0
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def __repr__(self) -> str:
        return f"Budget(usd={self.usd}, tokens={self.tokens}, seconds={self.seconds}, spent={self.spent})"

    @property
    def spent(self) -> Spent:
        """Settled calls so far, and the wall clock since the start."""
        with self._lock:
            usd = None if self._unpriced else self._usd_known
            return Spent(tokens=self._tokens, usd=usd, seconds=self._elapsed(), calls=self._calls)

    @property
    def reserved(self) -> Reservation:
        """Worst case of all calls in flight; `usd` sums those with a known price."""
        with self._lock:
            return Reservation(self._open_tokens, self._open_usd)

    @property
    def seconds_left(self) -> float | None:
        """Wall clock that is left, never below 0; None without a limit."""
        return None if self.seconds is None else max(0.0, self.seconds - self._elapsed())

    def require_price(self, known: bool, model: str) -> None:
        """Raise `InputError` when a dollar limit cannot hold because the price is unknown and no token limit is set."""
        if not known and self.usd is not None and self.tokens is None:
            raise InputError(
                f"The price of '{model}' is unknown, so a limit of ${self.usd:g} cannot be held.",
                where="budget",
                todo="Set a token limit as well, or state the model's price.",
            )

    def reserve(self, tokens: int, usd: float | None) -> Reservation:
        """Set aside the worst case of one call, or raise `BudgetExceeded`.

        usd None: the price is unknown; then a dollar limit needs a token
        limit beside it (`InputError` otherwise).
        """
        self.require_price(usd is not None, "the model")
        with self._lock:
            shortage = self._shortage(tokens, usd, in_flight=True)
            if shortage:
                raise shortage
            return self._take(tokens, usd)

    async def reserve_when_free(self, tokens: int, usd: float | None) -> Reservation:
        """The same, but wait while only calls in flight stand in the way.

        They reserve their worst case and mostly use less; refusing at once
        would end an experiment that still has budget.
        """
        self.require_price(usd is not None, "the model")
        loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                if not self._shortage(tokens, usd, in_flight=True):
                    return self._take(tokens, usd)
                if shortage := self._shortage(tokens, usd, in_flight=False):
                    raise shortage
                turn: asyncio.Future[None] = loop.create_future()
                self._waiting.append((loop, turn))
            try:
                await asyncio.wait_for(turn, self.seconds_left)
            except TimeoutError:
                continue  # The wall clock ran out; the next look says so.

    def settle(self, reservation: Reservation, tokens: int | None, usd: float | None) -> None:
        """Close a reservation with what the call used.

        tokens None: the server reported nothing, so the reserved figure counts.
        usd None: the cost is unknown; the reserved figure counts where there is one.
        Raises `ValueError` when the reservation is not open.
        """
        with self._lock:
            if reservation not in self._open:
                raise ValueError("this reservation is not open: it was settled before, or belongs to another budget")
            self._open.discard(reservation)
            self._open_tokens -= reservation.tokens
            self._open_usd = math.fsum(other.usd or 0.0 for other in self._open)
            self._tokens += reservation.tokens if tokens is None else tokens
            cost = reservation.usd if usd is None else usd
            if cost is None:
                self._unpriced = True
            else:
                self._usd_known += cost
            self._calls += 1
            waiting, self._waiting = self._waiting, []
        for loop, turn in waiting:
            loop.call_soon_threadsafe(_wake, turn)

    def _take(self, tokens: int, usd: float | None) -> Reservation:
        reservation = Reservation(tokens, usd)
        self._open.add(reservation)
        self._open_tokens += tokens
        self._open_usd += usd or 0.0
        return reservation

    def _shortage(self, tokens: int, usd: float | None, *, in_flight: bool) -> BudgetExceeded | None:
        if self.seconds is not None and self._elapsed() >= self.seconds:
            return _exceeded(f"The time limit of {self.seconds:g} s is used up.", "seconds")
        held_tokens = self._open_tokens if in_flight else 0
        if self.tokens is not None and self._tokens + held_tokens + tokens > self.tokens:
            return _exceeded(
                f"The next call may need {tokens:,} tokens; {max(0, self.tokens - self._tokens - held_tokens):,}"
                f" of {self.tokens:,} are left ({self._open_tokens:,} are held for calls in flight).",
                "tokens",
            )
        held_usd = self._open_usd if in_flight else 0.0
        if self.usd is not None and usd is not None and self._usd_known + held_usd + usd > self.usd:
            return _exceeded(
                f"The next call may cost ${usd:.4f}; ${max(0.0, self.usd - self._usd_known - held_usd):.4f}"
                f" of ${self.usd:g} are left (${self._open_usd:.4f} are held for calls in flight).",
                "usd",
            )
        return None

    def _elapsed(self) -> float:
        return self._clock() - self._started


def _exceeded(what: str, limit: str) -> BudgetExceeded:
    return BudgetExceeded(
        what,
        where=f"budget, limit '{limit}'",
        todo="Everything finished so far is kept. Raise the limit and resume, or decide with what is there.",
    )


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
