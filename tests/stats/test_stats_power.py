from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

import poc.stats
from poc.errors import InputError
from poc.stats import (
    TYPICAL,
    Variance,
    detectable_difference,
    power_of,
    tasks_needed,
    variance_of_rates,
    variance_of_runs,
)


@pytest.mark.parametrize(("n", "effect"), [(10, 0.5), (50, 0.3), (400, 0.1)])
def test_power_is_that_of_statsmodels(n: int, effect: float) -> None:
    # statsmodels adds the power of being significant on the wrong side, which is no discovery here.
    theirs = TTestPower().power(effect, n, 0.025, alternative="larger")
    assert power_of(effect, n, variance=Variance(0.0, 1.0)) == pytest.approx(theirs, abs=1e-6)


def test_published_sample_size() -> None:
    # Cohen (1988), table 2.4.1 by way of the paired test: d = 0.5, alpha 0.05 two-sided, power 0.80 needs 34 pairs.
    assert tasks_needed(0.5, variance=Variance(0.0, 1.0)) == 34


def test_repeats_shrink_only_the_noise_of_trials() -> None:
    parts = Variance(trial=0.2, effect=0.01)
    assert parts.sd(1) == pytest.approx((0.01 + 0.4) ** 0.5)
    assert parts.sd(4) == pytest.approx((0.01 + 0.1) ** 0.5)
    assert variance_of_rates(0.5, 0.4, 0.0).trial == pytest.approx(0.25 * 0.6)


def test_tasks_and_difference_are_inverse() -> None:
    for repeats in (1, 4):
        needed = tasks_needed(0.08, repeats)
        assert power_of(0.08, needed, repeats) >= 0.8 > power_of(0.08, needed - 1, repeats)
        assert detectable_difference(needed, repeats) == pytest.approx(0.08, abs=0.001)


def test_too_few_tasks_detect_nothing() -> None:
    assert detectable_difference(1) is None
    assert detectable_difference(3) is None
    assert power_of(0.5, 1) == 0.0


@given(st.integers(5, 500), st.integers(1, 8), st.floats(0.01, 0.6))
@settings(deadline=None, max_examples=60)
def test_more_tasks_never_hurt(n: int, repeats: int, difference: float) -> None:
    assert power_of(difference, n + 1, repeats) >= power_of(difference, n, repeats) - 1e-9
    assert power_of(difference, n, repeats + 1) >= power_of(difference, n, repeats) - 1e-9


@pytest.mark.parametrize("call", [lambda: tasks_needed(0.0), lambda: tasks_needed(1e-6), lambda: power_of(0.1, 9, 0)])
def test_unanswerable_questions_are_refused(call) -> None:
    with pytest.raises(InputError):
        call()


def test_power_agrees_with_simulation() -> None:
    rng = np.random.default_rng(4)
    rates = rng.beta(1, 1, (400, 60))
    treated = (rng.random((400, 60, 2)) < (rates * 0.75 + 0.25)[..., None]).mean(axis=2)
    control = (rng.random((400, 60, 2)) < rates[..., None]).mean(axis=2)
    differences = treated - control
    t = differences.mean(axis=1) / differences.std(axis=1, ddof=1) * 60**0.5
    seen = float(np.mean(t > 2.001))
    # Mean p(1-p) with p uniform: 1/6 for the control; treated p is 1/4 + 3/4 u, so 3/16 (1-u)(1+3u): 3/16.
    trial = (1 / 6 + 3 / 16) / 2
    # The effect is (1-u)/4, with variance 1/16 of 1/12.
    effect = 1 / 192
    assert power_of(0.125, 60, 2, variance=Variance(trial, effect)) == pytest.approx(seen, abs=0.06)


def test_typical_variance_is_that_of_a_real_airline_desk(real_logs: Path) -> None:
    runs = json.loads((real_logs / "openai_chat" / "taubench_gpt-4o-airline.json").read_text())
    by_task: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        by_task[run["task_id"]].append(float(run["reward"]))
    found = variance_of_runs(by_task.values())
    assert found is not None
    assert len(by_task) == 50
    assert found.trial == pytest.approx(TYPICAL.trial, abs=0.04)
    assert detectable_difference(50, 4, variance=found) == pytest.approx(0.11, abs=0.015)
    assert 180 < tasks_needed(0.05, 4, variance=found) < 290


def test_variance_needs_repeats() -> None:
    assert variance_of_runs([[1.0], [0.0]]) is None
    found = variance_of_runs([[1.0, 0.0], [1.0, 1.0, 1.0]], effect_sd=0.0)
    assert found == Variance(trial=0.5 / 3, effect=0.0)


def test_public_names_are_listed() -> None:
    assert len(poc.stats.__all__) == len(set(poc.stats.__all__))
    for name in poc.stats.__all__:
        assert hasattr(poc.stats, name)
