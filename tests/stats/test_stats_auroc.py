from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from poc.errors import InputError
from poc.stats import auroc


def test_area_and_variance_by_hand() -> None:
    # Scores of successes 3, 1 and failures 2, 0: 3 of 4 pairs in order, area 3/4. Every run its own cluster:
    # shares beaten per success 1 and 1/2, losing per failure 1/2 and 1; each has sample variance 1/8,
    # so the variance is (1/8 + 1/8) / 2 = 1/8. On the logit scale: log 3 +- t(1) * sqrt(1/8) / (3/16).
    found = auroc([3, 1, 2, 0], [1, 1, 0, 0])
    half = stats.t.ppf(0.975, 1) * (1 / 8) ** 0.5 / (3 / 16)
    expit = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    assert found.estimate == pytest.approx(0.75)
    assert found.low == pytest.approx(expit(np.log(3) - half))
    assert found.high == pytest.approx(expit(np.log(3) + half))


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=6, max_size=40).filter(
        lambda rows: 2 <= sum(hit for _, hit in rows) <= len(rows) - 2
    )
)
@settings(deadline=None, max_examples=100)
def test_area_is_mann_whitney(rows: list[tuple[int, bool]]) -> None:
    scores, hits = [score for score, _ in rows], [hit for _, hit in rows]
    found = auroc(scores, hits)
    wins = [s for s, hit in rows if hit], [s for s, hit in rows if not hit]
    u = stats.mannwhitneyu(*wins, method="asymptotic").statistic
    assert found.estimate == pytest.approx(u / (len(wins[0]) * len(wins[1])))
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.high > found.low


def test_copies_of_a_run_do_not_pass_for_new_tasks() -> None:
    rng = np.random.default_rng(0)
    hits = rng.random(40) < 0.5
    scores = hits * 0.8 + rng.normal(size=40)
    once = auroc(scores, hits, list(range(40)))
    copied = auroc(np.repeat(scores, 5), np.repeat(hits, 5), np.repeat(np.arange(40), 5).tolist())
    naive = auroc(np.repeat(scores, 5), np.repeat(hits, 5))
    assert copied.estimate == pytest.approx(once.estimate)
    assert copied.low == pytest.approx(once.low)
    assert copied.n == 40
    assert (naive.low or 0) > (once.low or 0)


def test_perfect_and_useless_scores_keep_a_width() -> None:
    perfect = auroc([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 0, 1, 1, 1])
    assert (perfect.estimate, perfect.high) == (1.0, 1.0)
    assert perfect.low == pytest.approx(0.501, abs=0.001)
    constant = auroc([1.0] * 6, [0, 0, 0, 1, 1, 1])
    assert constant.estimate == 0.5
    assert (constant.low or 0) < 0.3
    assert (constant.high or 0) > 0.7
    worst = auroc([0.9, 0.8, 0.1, 0.2], [0, 0, 1, 1])
    assert (worst.estimate, worst.low) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("scores", "outcomes", "clusters", "says"),
    [
        ([1, 2, 3], [1, 1, 1], None, "failure"),
        ([1, 2, 3], [0, 0, 1], None, "success"),
        ([1, 2, 3, 4], [0, 0, 1, 1], ["a", "b", "c", "c"], "success"),
        ([1, 2], [0.5, 1], None, "neither"),
        ([1, 2], [0, 1, 1], None, "do not belong together"),
    ],
)
def test_too_little_is_refused_with_a_sentence(scores: list, outcomes: list, clusters: list | None, says: str) -> None:
    with pytest.raises(InputError, match=says):
        auroc(scores, outcomes, clusters)
