from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from poc.errors import InputError
from poc.stats import clopper_pearson, holm, mcnemar_exact, sign_flip_test, wilson


@pytest.mark.parametrize(("better", "worse"), [(7, 1), (5, 5), (59, 6), (1, 0)])
def test_mcnemar_is_that_of_statsmodels(better: int, worse: int) -> None:
    theirs = mcnemar([[0, better], [worse, 0]], exact=True).pvalue
    assert mcnemar_exact(better, worse).p_value == pytest.approx(min(theirs, 1.0))


def test_mcnemar_by_hand() -> None:
    # 7 against 1: twice the chance of at most one tail in eight throws, 2 * (1 + 8) / 256.
    assert mcnemar_exact(7, 1).p_value == pytest.approx(18 / 256)
    assert mcnemar_exact(0, 0).p_value == 1.0
    with pytest.raises(InputError):
        mcnemar_exact(-1, 2)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 20))
@settings(deadline=None, max_examples=60)
def test_sign_flip_of_yes_and_no_is_mcnemar(better: int, worse: int, ties: int) -> None:
    found = sign_flip_test([1.0] * better + [-1.0] * worse + [0.0] * ties)
    assert found.p_value == pytest.approx(mcnemar_exact(better, worse).p_value)


def test_sign_flip_by_hand() -> None:
    # |+-1/3 +-2/3 +-1| reaches the observed 2 only when all signs agree: 2 of 8 patterns.
    assert sign_flip_test([1 / 3, 2 / 3, 1.0]).p_value == pytest.approx(2 / 8)
    # Observed 4/3: also 1/3 against the others counts (2 - 2/3 = 4/3): 4 of 8.
    assert sign_flip_test([-1 / 3, 2 / 3, 1.0]).p_value == pytest.approx(4 / 8)


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 6)), min_size=2, max_size=10))
@settings(deadline=None, max_examples=30)
def test_sign_flip_is_that_of_scipy(values: list[float]) -> None:
    if not any(values):
        return
    theirs = stats.permutation_test((np.array(values),), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip_test(values).p_value == pytest.approx(theirs.pvalue, abs=1e-9)


def test_sign_flip_draws_are_repeatable_and_near_the_exact_value() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0.1, 0.3, 40)
    one, two = sign_flip_test(values, seed=5), sign_flip_test(values, seed=5)
    assert one == two
    assert "draws" in one.method
    t_test = stats.ttest_1samp(values, 0).pvalue
    assert one.p_value == pytest.approx(t_test, abs=0.02)
    assert sign_flip_test(values, seed=6).p_value == pytest.approx(one.p_value, abs=0.01)
    assert sign_flip_test([5.123] * 40, seed=0).p_value > 0


def test_sign_flip_exact_with_many_tasks() -> None:
    values = [1 / 3] * 60 + [-1 / 3] * 40 + [0.0] * 200
    assert sign_flip_test(values).p_value == pytest.approx(stats.binomtest(60, 100).pvalue)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(deadline=None, max_examples=60)
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    theirs = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(list(theirs))


def test_holm_counts_a_planned_contrast_without_data() -> None:
    assert holm([0.01, None, 0.02]) == [pytest.approx(0.03), None, pytest.approx(0.04)]
    assert holm([]) == []
    with pytest.raises(InputError):
        holm([1.2])


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (84, 200)])
def test_proportions_are_those_of_statsmodels(successes: int, n: int) -> None:
    for mine, method in ((wilson, "wilson"), (clopper_pearson, "beta")):
        low, high = proportion_confint(successes, n, alpha=0.05, method=method)
        found = mine(successes, n)
        assert (found.low, found.high) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))


def test_wilson_published_example() -> None:
    # Newcombe (1998), Stat. Med. 17:857-872, table I: 81 of 263 gives 0.2553 to 0.3662.
    found = wilson(81, 263)
    assert (round(found.low or 0, 4), round(found.high or 0, 4)) == (0.2553, 0.3662)


def test_no_units_no_share() -> None:
    assert wilson(0, 0).estimate is None
    with pytest.raises(InputError):
        wilson(3, 2)
