from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from poc.errors import InputError
from poc.stats import Interval, mean_difference, ratio_of_geometric_means

shares = st.integers(-6, 6).map(lambda k: k / 6)


def test_adjusted_interval_by_hand() -> None:
    # 21 children, 1 worsened and 7 improved (airway hyper-responsiveness, Bentur et al. 2009, as treated by
    # Fagerland, Lydersen & Laake 2014). With one imagined pair each way: 23 values, 2 of -1 and 8 of +1.
    found = mean_difference([1] * 7 + [-1] * 1 + [0] * 13)
    centre = 6 / 23
    variance = (10 - 23 * centre**2) / 22
    half = stats.t.ppf(0.975, 20) * math.sqrt(variance / 23)
    assert found.estimate == pytest.approx(6 / 21)
    assert (found.low, found.high) == (pytest.approx(centre - half), pytest.approx(centre + half))
    assert found.n == 21


def test_nears_the_plain_t_interval_with_many_tasks() -> None:
    values = np.random.default_rng(1).choice([-1, 0, 1], 5000, p=[0.2, 0.5, 0.3])
    low, high = DescrStatsW(values).tconfint_mean(alpha=0.05)
    found = mean_difference(values)
    assert found.low == pytest.approx(low, abs=3e-4)
    assert found.high == pytest.approx(high, abs=3e-4)


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.5, 1.0])
def test_equal_differences_leave_a_width(value: float) -> None:
    found = mean_difference([value] * 30)
    assert found.estimate == value
    assert found.low is not None
    assert found.high is not None
    assert found.low <= value <= found.high
    assert found.high - found.low > 0.05


def test_one_task_says_nothing_and_no_task_still_less() -> None:
    assert mean_difference([1.0]) == Interval(1.0, -1.0, 1.0, 1, "one task: the whole range")
    one = mean_difference([3.0], bound=None)
    assert (one.estimate, one.low, one.high) == (3.0, None, None)
    none = mean_difference([])
    assert (none.estimate, none.low, none.high, none.n) == (None, None, None, 0)


@given(st.lists(shares, min_size=1, max_size=40), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
@settings(deadline=None, max_examples=150)
def test_interval_holds_the_estimate_and_stays_possible(values: list[float], confidence: float) -> None:
    found = mean_difference(values, confidence=confidence)
    assert found.estimate is not None
    assert found.low is not None
    assert found.high is not None
    assert -1 <= found.low <= found.estimate + 1e-12
    assert found.estimate - 1e-12 <= found.high <= 1
    assert found.low < found.high


@given(st.lists(shares, min_size=2, max_size=30))
@settings(deadline=None, max_examples=80)
def test_swapping_the_arms_mirrors_the_interval(values: list[float]) -> None:
    one, other = mean_difference(values), mean_difference([-value for value in values])
    assert one.low is not None
    assert other.high is not None
    assert one.low == pytest.approx(-other.high)


@pytest.mark.parametrize("values", [[2.0], [float("nan"), 0.0], [float("inf")]])
def test_impossible_differences_are_refused(values: list[float]) -> None:
    with pytest.raises(InputError):
        mean_difference(values)


def test_confidence_must_make_sense() -> None:
    with pytest.raises(InputError, match=r"95.*cannot be used"):
        mean_difference([0.0], confidence=95)


def test_ratio_is_the_paired_t_of_logs() -> None:
    treated, control = [2.0, 3.0, 5.0, 4.0], [1.0, 2.0, 4.0, 4.0]
    logs = np.log(np.array(treated) / np.array(control))
    low, high = DescrStatsW(logs).tconfint_mean(alpha=0.1)
    found = ratio_of_geometric_means(treated, control, confidence=0.9)
    assert found.estimate == pytest.approx((2 * 1.5 * 1.25 * 1) ** 0.25)
    assert (found.low, found.high) == (pytest.approx(math.exp(low)), pytest.approx(math.exp(high)))


@pytest.mark.parametrize(
    ("treated", "control", "why"),
    [([2.0], [1.0], "one task"), ([2.0, 4.0], [1.0, 2.0], "all ratios equal"), ([], [], "no tasks")],
)
def test_ratio_without_honest_bounds_says_why(treated: list[float], control: list[float], why: str) -> None:
    found = ratio_of_geometric_means(treated, control)
    assert (found.low, found.high) == (None, None)
    assert why in found.method


def test_ratio_refuses_what_has_no_ratio() -> None:
    with pytest.raises(InputError, match="positive"):
        ratio_of_geometric_means([0.0, 1.0], [1.0, 1.0])
    with pytest.raises(InputError, match="cannot be paired"):
        ratio_of_geometric_means([1.0], [1.0, 1.0])


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), min_size=2, max_size=20))
@settings(deadline=None, max_examples=80)
def test_ratio_does_not_depend_on_the_unit(pairs: list[tuple[float, float]]) -> None:
    treated, control = [a for a, _ in pairs], [b for _, b in pairs]
    one = ratio_of_geometric_means(treated, control)
    other = ratio_of_geometric_means([a * 1000 for a in treated], [b * 1000 for b in control])
    assert one.estimate == pytest.approx(other.estimate, rel=1e-6)


def test_interval_comparisons_need_the_end_that_they_ask_for() -> None:
    known, unknown = Interval(0.1, 0.05, 0.2, 10, "m"), Interval(0.1, None, None, 1, "m")
    assert known.above(0.04)
    assert not known.above(0.05)
    assert known.below(0.21)
    assert known.within(0.2)
    assert not known.below(0.2)
    assert not any([unknown.above(-1), unknown.below(9), unknown.within(9), unknown.bounded])
