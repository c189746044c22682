"""Every number of the report is a stored one: worked out by hand, and traced back to its query."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_bench import Bench, Page

from poc.progress import validity
from poc.report import build_report
from poc.report.facts import QUERIES, printed
from poc.report.numbers import DASH, MINUS, decimal, percent, points, usd
from poc.verdict import decide, load_verdict


def _leaves(value: Any) -> Iterator[Any]:
    """Every single value in a row, JSON opened up."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, str) and value[:1] in "[{":
        yield from _leaves(json.loads(value))
    elif isinstance(value, datetime):
        yield value.isoformat()
    else:
        yield value


def test_every_number_is_in_the_result_of_its_query(decided: Bench, english: Page) -> None:
    known: dict[str, tuple[set[float], set[str]]] = {}
    for name in QUERIES:
        found = list(_leaves(decided.workspace.rows(printed(name, "x1"))))
        figures = {round(float(value), 9) for value in found if isinstance(value, int | float)}
        known[name] = figures, {str(value) for value in found}
    tracked = [found.auroc for found in validity(decided.workspace) if found.auroc is not None]
    known["validity"] = {round(v, 9) for i in tracked for v in (i.estimate, i.low, i.high) if v is not None}, set()
    assert len(english.numbers) > 150
    for source, value, text in english.numbers:
        figures, words = known[source]
        if value == "":
            continue
        try:
            is_there = round(float(value), 9) in figures
        except ValueError:
            is_there = False
        assert is_there or value in words, f"{text!r} ({value}) is not in the result of {source}"


def test_every_query_is_printed_and_named(english: Page) -> None:
    ids = {attributes.get("id") for _, attributes in english.tags}
    assert {f"query-{name}" for name in QUERIES} <= ids
    for name in QUERIES:
        assert f"query.{name}" not in english.text
    assert {source for source, _, _ in english.numbers} <= {*QUERIES, "validity"}


def test_figures_by_hand(english: Page) -> None:
    # Task means of success: none 1/2, 0, 1, 0; progress 1, 1/2, 1, 0; plan 1, 0, 1, 1/2.
    assert english.row("Success")[1] == "+25.0"
    assert english.row("No context")[1] == "37.5%"
    assert english.row("Plan only")[1] == "62.5%"
    assert english.row("Progress")[1] == "62.5%"
    # Tokens: (1300 + 34) / (1200 + 34); the same in every task, so there is no interval.
    assert english.row("Tokens")[1:4] == ["×1.08", DASH, "×1.15"]
    assert english.row("Model time")[1] == "×1.10"
    # The split: 90 tokens of added text, no more turns, the other 10 from longer turns.
    assert english.row("Added text")[1] == "+90"
    assert english.row("Number of turns")[1] == "0"
    assert english.row("Length of turns")[1] == "+10"
    assert english.row("Change in all")[1] == "+100"
    # Costs: 8 trials at 0.016 and 8 at 0.02; successes 3 and 5.
    assert "No context: $16.00 for 1,234,000 tokens" in english.text
    assert "Progress: $20.00 for 1,334,000 tokens" in english.text
    assert english.row("Cost in all") == ["Cost in all", "$0.13", "$0.13", "$0.16"]
    assert english.row("Cost per success") == ["Cost per success", "$0.043", "$0.026", "$0.032"]
    # t3 repeats an irreversible step in both trials: 2 of 8.
    assert english.row("Repeated irreversible steps per 100 trials")[1:] == ["0.0", "0.0", "25.0"]
    assert "Of 4 tasks, 2 went better, 0 worse and 2 the same; 0 trials have no partner." in english.text
    # Progress after step 1: the first step of a progress trial reaches a half, of the others nothing.
    assert [row[1:] for row in english.rows if row[0] == "Arm" and "Step 1" in row] == [["Step 1", "Step 2"]]
    assert [row for row in english.rows if row[0] == "Progress" and len(row) == 3] == [["Progress", "50%", "100%"]]
    # 24 calls of 1,200 or 1,300 input tokens, one retry; 16 trials at 0.016 and 8 at 0.02.
    assert "Input tokens 29,600" in english.text
    assert "of which cached 2,880" in english.text
    assert "Retries 1" in english.text
    assert english.row("Input tokens") == ["Input tokens", "4,321", "29,600"]
    assert [row[1:] for row in english.rows if row[0] == "Cost" and len(row) == 3] == [["$0.50", "$0.42"]]


def test_intervals_are_the_stored_ones(decided: Bench, english: Page) -> None:
    verdict = load_verdict(decided.workspace, "x1")
    assert verdict is not None
    found = verdict.comparison.primary.outcome.interval
    assert english.row("Success")[2] == f"{points(found.low)} to {points(found.high)}"
    arm = verdict.comparison.arms[0].outcome
    assert english.row("No context")[2] == f"{percent(arm.low, 1)} to {percent(arm.high, 1)}"


def test_auroc_of_the_set(english: Page) -> None:
    # Every success has more progress than every failure.
    of_sets = [row for row in english.rows if row[0] == "orders" and row[-1] == "s" * 12]
    assert [row[1:5] for row in of_sets] == [["2", "4", "8", "1.00"]]


def test_absent_values_are_dashes(bench: Bench) -> None:
    unknown = dict.fromkeys(
        ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd", "model_latency_s",
         "first_token_s", "final_progress")
    )  # fmt: skip
    bench.build(change=lambda key, row: row | unknown, log=False)
    decide(bench.workspace, "x1")
    page = Page(build_report(bench.workspace, "x1"))
    assert page.row("Tokens")[1:3] == [DASH, DASH]
    assert page.row("Model time")[1:3] == [DASH, DASH]
    assert page.row("Cost in all")[1:] == [DASH] * 3
    assert page.row("Input tokens") == ["Input tokens", "4,321", DASH]
    assert "No context: — tokens; the price is unknown" in page.text
    assert "Token usage is not known for any pair of trials" in page.text
    assert "No model time is known." in page.text
    assert "The readiness of the logs was not assessed in this workspace." in page.text
    for word in (" None", "nan", "NaT", "null"):
        assert word not in page.text


@settings(deadline=None)
@given(st.floats(-1e9, 1e9), st.integers(0, 4))
def test_decimals_read_back(value: float, digits: int) -> None:
    text = decimal(value, digits)
    assert float(text.replace(",", "").replace(MINUS, "-")) == pytest.approx(value, abs=0.50001 * 10**-digits)
    assert "-" not in text
    assert not (text.startswith(MINUS) and not any(figure in "123456789" for figure in text))


@settings(deadline=None)
@given(st.floats(1e-7, 1e9))
def test_amounts_keep_two_figures(value: float) -> None:
    assert float(usd(value).replace("$", "").replace(",", "")) == pytest.approx(
        value, rel=0.06, abs=0.006 * (value >= 1)
    )


@pytest.mark.parametrize("missing", [None, float("nan"), float("inf")])
def test_unknown_is_a_dash(missing: float | None) -> None:
    assert decimal(missing) == DASH
    assert percent(missing) == DASH
    assert points(missing) == DASH
