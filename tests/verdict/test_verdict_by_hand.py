"""Each number of a comparison, worked out by hand once on four tasks."""

from __future__ import annotations

import math

import pytest
from verdict_bench import Bench

from poc.verdict import compare

T3 = 3.182446305284263  # the 97.5 % point of Student's t with 3 degrees of freedom, from a table

SUCCESS = {  # task -> (control repeats, progress repeats, plan repeats)
    "t0": ((0, 1), (1, 1), (1, 1)),
    "t1": ((0, 0), (1, 0), (0, 0)),
    "t2": ((1, 1), (1, 1), (1, 1)),
    "t3": ((0, 0), (0, 0), (0, 1)),
}
SECONDS = {"t0": ((1, 3), (4, 4)), "t1": ((1, 1), (1, 1)), "t2": ((2, 2), (3, 5)), "t3": ((3, 3), (3, 3))}
ARM = {"none": 0, "progress": 1, "plan": 2}


@pytest.fixture
def four(bench: Bench) -> Bench:
    bench.design(4, arms=("none", "plan", "progress"), repeats=2)

    def make(key):
        arm, task = ARM[key.arm], key.task.task_id
        row = {
            "success": float(SUCCESS[task][arm][key.repeat]),
            "latency": float(SECONDS[task][min(arm, 1)][key.repeat]),
            "cost_usd": 0.01,
        }
        if key.arm == "progress":
            row |= {"tokens": 210, "context_tokens": 40, "turns": 3, "cost_usd": 0.02}
            row |= {"steps": 3, "errors": 1, "repeated_irreversible": int(task == "t3")}
        return row

    bench.fill(make)
    return bench


def test_success_difference(four: Bench) -> None:
    # Task means: control 1/2, 0, 1, 0; progress 1, 1/2, 1, 0; differences 1/2, 1/2, 0, 0 with mean 1/4.
    # With the imagined +1 and -1: six values, mean 1/6, squares 5/2, variance (5/2 - 6/36)/5 = 7/15.
    found = compare(four.workspace, "x1").primary
    half = T3 * math.sqrt(7 / 15 / 6)
    assert (found.treatment, found.control, found.tasks, found.pairs, found.unpaired) == ("progress", "none", 4, 8, 0)
    assert found.outcome.name == "success"
    assert (found.outcome.control, found.outcome.treated) == (0.375, 0.625)
    assert found.outcome.interval.estimate == 0.25
    assert found.outcome.interval.low == pytest.approx(1 / 6 - half)
    assert found.outcome.interval.high == 1.0  # 1.05 would be impossible
    assert found.outcome.spread == pytest.approx(math.sqrt(7 / 15))
    assert (found.better, found.worse, found.equal) == (2, 0, 2)
    # Two tasks differ by 1/2 each: of four sign patterns, two reach the observed sum.
    assert found.p_value == 0.5
    assert found.p_adjusted is None


def test_latency_ratio(four: Bench) -> None:
    # Task means: control 2, 1, 2, 3; progress 4, 1, 4, 3; ratios 2, 1, 2, 1; logs ln 2 or 0, sd ln 2 / sqrt 3.
    latency = compare(four.workspace, "x1").primary.latency
    half = T3 * math.log(2) / math.sqrt(3) / 2
    assert latency.interval.estimate == pytest.approx(math.sqrt(2))
    assert latency.interval.low == pytest.approx(math.exp(math.log(2) / 2 - half))
    assert latency.interval.high == pytest.approx(math.exp(math.log(2) / 2 + half))
    assert latency.control == pytest.approx(12**0.25)
    assert latency.treated == pytest.approx(48**0.25)
    assert latency.missing == 0


def test_tokens_and_their_split(four: Bench) -> None:
    # Control: 100 tokens in 2 turns of 50. Progress: 220 in 3 turns, 40 of them added: 180 / 3 = 60 a turn.
    found = compare(four.workspace, "x1")
    split = found.tokens
    assert split is not None
    assert found.primary.tokens.interval.estimate == pytest.approx(2.2)
    assert (split.control, split.total, split.context) == (100, 120, 40)
    assert split.turns == pytest.approx(1 * 55)
    assert split.length == pytest.approx(10 * 2.5)
    # Every ratio is 2.2: no spread, so no honest interval.
    assert found.primary.tokens.interval.low is None


def test_counts(four: Bench) -> None:
    found = compare(four.workspace, "x1").primary
    assert found.turns.interval.estimate == 1
    assert found.steps.interval.estimate == 1
    assert found.errors.interval.estimate == 1
    assert found.repeated_steps.interval.estimate == 0
    # One task of four repeats an irreversible step in every trial: 0, 0, 0, 1 and the imagined +-1.
    rise = found.repeated_irreversible.interval
    half = T3 * math.sqrt((3 - 6 / 36) / 5 / 6)
    assert rise.estimate == 0.25
    assert (rise.low, rise.high) == (pytest.approx(1 / 6 - half), pytest.approx(1 / 6 + half))


def test_arms(four: Bench) -> None:
    none, _, progress = compare(four.workspace, "x1").arms
    assert (none.arm, none.tasks, none.trials, none.failed, none.ungraded, none.successes) == ("none", 4, 8, 0, 0, 3)
    assert none.outcome.estimate == 0.375
    assert none.cost_usd == pytest.approx(0.08)
    assert none.cost_per_success == pytest.approx(0.08 / 3)
    assert progress.cost_per_success == pytest.approx(0.16 / 5)
    assert (progress.tokens, progress.context_tokens, progress.turns) == (220, 40, 3)
    assert progress.latency_s == pytest.approx(3.0)
    assert progress.first_token_s == pytest.approx(1.5)
    assert none.cached_share is None


def test_secondary_contrasts_are_corrected_among_themselves(four: Bench) -> None:
    # plan - none: 1/2, 0, 0, 1/2 (p 1/2); progress - plan: 0, 1/2, 0, -1/2 (p 1); Holm: 1 and 1.
    plan, against_plan = compare(four.workspace, "x1").secondary
    assert (plan.treatment, plan.control) == ("plan", "none")
    assert (against_plan.treatment, against_plan.control) == ("progress", "plan")
    assert (plan.outcome.interval.estimate, against_plan.outcome.interval.estimate) == (0.25, 0.0)
    assert (plan.p_value, against_plan.p_value) == (0.5, 1.0)
    assert (plan.p_adjusted, against_plan.p_adjusted) == (1.0, 1.0)


def test_categories(four: Bench) -> None:
    even, odd = compare(four.workspace, "x1").categories
    assert (even.category, even.tasks, even.control, even.treated) == ("even", 2, 0.75, 1.0)
    assert (odd.category, odd.outcome.estimate) == ("odd", 0.25)
    assert even.latency.estimate == pytest.approx(2)


def test_flips_expected_by_chance(four: Bench) -> None:
    # Of the control's four tasks only t0 ends differently in its two trials.
    assert compare(four.workspace, "x1").expected_flips == 0.25


def test_every_figure_is_a_query(four: Bench) -> None:
    found = compare(four.workspace, "x1")
    rows = four.workspace.rows(
        """
        WITH means AS (
            SELECT task_id, arm, avg(success) AS success, avg(input_tokens + output_tokens) AS tokens
            FROM trials GROUP BY ALL)
        SELECT avg(a.success - b.success) AS gain, exp(avg(ln(a.tokens / b.tokens))) AS ratio
        FROM means a JOIN means b USING (task_id) WHERE a.arm = 'progress' AND b.arm = 'none'
        """
    )
    assert found.primary.outcome.interval.estimate == pytest.approx(rows[0]["gain"])
    assert found.primary.tokens.interval.estimate == pytest.approx(rows[0]["ratio"])


def test_frames_hold_the_same_figures(four: Bench) -> None:
    found = compare(four.workspace, "x1")
    frame = found.contrasts_frame()
    assert len(frame) == 30
    assert frame.query("primary and measure == 'success'")["value"].item() == 0.25
    assert list(found.arms_frame()["success"]) == [0.375, 0.625, 0.625]
    assert list(found.categories_frame()["difference"]) == [0.25, 0.25]
