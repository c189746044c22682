"""The budget holds in any order of calls; small cases by hand."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.errors import BudgetExceeded, InputError
from poc.models import Budget, Spent


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_reserve_and_settle_by_hand():
    budget = Budget(tokens=100, clock=Clock())
    first = budget.reserve(60, None)
    with pytest.raises(BudgetExceeded, match=r"50 tokens; 40 of 100 are left \(60 are held") as caught:
        budget.reserve(50, None)
    assert "limit 'tokens'" in (caught.value.where or "")
    budget.settle(first, 30, None)
    assert budget.spent.tokens == 30
    second = budget.reserve(70, None)
    budget.settle(second, None, None)
    assert budget.spent == Spent(tokens=100, usd=None, seconds=0, calls=2)
    with pytest.raises(BudgetExceeded):
        budget.reserve(1, None)


def test_dollars_are_held_too():
    budget = Budget(usd=1.0)
    first = budget.reserve(10, 0.7)
    with pytest.raises(BudgetExceeded, match=r"\$0\.3000 of \$1 are left"):
        budget.reserve(10, 0.4)
    budget.settle(first, 10, 0.1)
    assert budget.spent.usd == pytest.approx(0.1)
    unreported = budget.reserve(10, 0.5)
    budget.settle(unreported, 10, None)
    assert budget.spent.usd == pytest.approx(0.6)


def test_an_unknown_price_demands_a_token_limit():
    with pytest.raises(InputError, match="unknown") as caught:
        Budget(usd=1.0).reserve(10, None)
    assert "token limit" in (caught.value.todo or "")
    budget = Budget(usd=1.0, tokens=100)
    budget.settle(budget.reserve(10, None), 10, None)
    assert budget.spent.usd is None
    assert budget.spent.tokens == 10


def test_no_limit_never_stops_but_counts():
    budget = Budget()
    budget.settle(budget.reserve(10**9, None), 5, None)
    assert budget.spent.tokens == 5


def test_time_is_wall_clock_and_goes_on_after_a_resume():
    clock = Clock()
    budget = Budget(seconds=10, already=Spent(tokens=7, usd=0.5, seconds=4, calls=2), clock=clock)
    assert budget.spent == Spent(tokens=7, usd=0.5, seconds=4, calls=2)
    clock.now = 5.9
    assert budget.seconds_left == pytest.approx(0.1)
    budget.settle(budget.reserve(1, 0.0), 1, 0.0)
    clock.now = 6.0
    with pytest.raises(BudgetExceeded, match="time limit of 10 s"):
        budget.reserve(1, 0.0)


def test_what_was_spent_before_counts():
    budget = Budget(tokens=100, already=Spent(tokens=95))
    with pytest.raises(BudgetExceeded, match="5 of 100"):
        budget.reserve(6, None)
    assert Budget(usd=1, tokens=9, already=Spent(usd=None)).spent.usd is None


def test_a_reservation_is_settled_once():
    budget = Budget(tokens=100)
    reservation = budget.reserve(10, None)
    budget.settle(reservation, 10, None)
    with pytest.raises(ValueError, match="not open"):
        budget.settle(reservation, 10, None)
    with pytest.raises(ValueError, match="not open"):
        Budget(tokens=100).settle(budget.reserve(10, None), 10, None)
    # Equal figures are still two reservations.
    one, two = budget.reserve(10, None), budget.reserve(10, None)
    budget.settle(one, 1, None)
    budget.settle(two, 1, None)


def test_an_overrun_is_recorded_in_full_and_closes_the_budget():
    budget = Budget(tokens=100)
    budget.settle(budget.reserve(10, None), 150, None)
    assert budget.spent.tokens == 150
    with pytest.raises(BudgetExceeded, match="0 of 100 are left"):
        budget.reserve(1, None)


@pytest.mark.parametrize("limits", [{"tokens": -1}, {"usd": float("nan")}, {"seconds": float("inf")}])
def test_bad_limits_are_named(limits):
    with pytest.raises(InputError, match=next(iter(limits))):
        Budget(**limits)


calls = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.one_of(st.none(), st.integers(0, 60)),
        st.floats(0, 0.6),
        st.one_of(st.none(), st.floats(0, 0.6)),
    ),
    max_size=40,
)


@given(calls, st.randoms(use_true_random=False), st.integers(0, 200), st.floats(0, 2))
@settings(deadline=None, max_examples=150)
def test_no_interleaving_exceeds_a_limit(wanted, order: random.Random, tokens, usd):
    budget = Budget(usd=usd, tokens=tokens)
    in_flight = []
    paid_tokens, paid_usd = 0, 0.0
    for reserve_tokens, use_tokens, reserve_usd, use_usd in wanted:
        while in_flight and order.random() < 0.5:
            reservation, used, cost = in_flight.pop(order.randrange(len(in_flight)))
            budget.settle(reservation, used, cost)
            paid_tokens += reservation.tokens if used is None else used
            paid_usd += reservation.usd if cost is None else cost
        try:
            reservation = budget.reserve(reserve_tokens, reserve_usd)
        except BudgetExceeded:
            continue
        used = None if use_tokens is None else min(use_tokens, reserve_tokens)
        in_flight.append((reservation, used, None if use_usd is None else min(use_usd, reserve_usd)))
        assert budget.spent.tokens + budget.reserved.tokens <= tokens
        assert budget.spent.usd + budget.reserved.usd <= usd + 1e-9
    for reservation, used, cost in in_flight:
        budget.settle(reservation, used, cost)
        paid_tokens += reservation.tokens if used is None else used
        paid_usd += reservation.usd if cost is None else cost
    assert budget.spent.tokens == paid_tokens <= tokens
    assert budget.spent.usd == pytest.approx(paid_usd)
    assert (budget.reserved.tokens, budget.reserved.usd) == (0, 0.0)


def test_threads_do_not_exceed_a_limit():
    budget = Budget(tokens=1_000)
    seen: list[int] = []

    def spend() -> None:
        for _ in range(300):
            try:
                reservation = budget.reserve(7, None)
            except BudgetExceeded:
                continue
            seen.append(budget.spent.tokens + budget.reserved.tokens)
            budget.settle(reservation, 5, None)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 990 <= budget.spent.tokens <= 1_000
    assert budget.spent.tokens == 5 * budget.spent.calls


async def test_waiting_for_calls_in_flight():
    budget = Budget(tokens=100)
    first = budget.reserve(80, None)
    waiting = asyncio.create_task(budget.reserve_when_free(50, None))
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.settle(first, 10, None)
    budget.settle(await waiting, 50, None)
    assert budget.spent.tokens == 60


async def test_waiting_ends_when_it_can_no_longer_help():
    budget = Budget(tokens=100)
    first = budget.reserve(80, None)
    waiting = asyncio.create_task(budget.reserve_when_free(50, None))
    await asyncio.sleep(0)
    budget.settle(first, 80, None)
    with pytest.raises(BudgetExceeded, match="20 of 100"):
        await waiting
    with pytest.raises(BudgetExceeded):
        await budget.reserve_when_free(101, None)


async def test_waiting_ends_with_the_time():
    budget = Budget(tokens=100, seconds=0.05)
    budget.reserve(80, None)
    with pytest.raises(BudgetExceeded, match="time limit"):
        await budget.reserve_when_free(50, None)


async def test_a_cancelled_wait_holds_nothing():
    budget = Budget(tokens=100)
    first = budget.reserve(80, None)
    waiting = asyncio.create_task(budget.reserve_when_free(50, None))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    budget.settle(first, 0, None)
    assert budget.reserved.tokens == 0
    assert budget.reserve(100, None).tokens == 100
