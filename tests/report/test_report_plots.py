"""Figures: what came in is what is drawn, with sizes and intervals; unknown values and hostile labels do no harm."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import pytest

from poc.report import plots

ARMS = pd.DataFrame(
    {
        "arm": ["none", "progress"], "success": [0.4, 0.55], "low": [0.3, 0.45], "high": [0.5, 0.65],
        "tasks": [10, 10], "trials": [20, 20],
    }
)  # fmt: skip


def _drawn(figure: go.Figure) -> str:
    return figure.to_json() or ""


def test_success_holds_value_interval_and_size() -> None:
    figure = plots.success_by_arm(ARMS)
    last = figure.data[-1]
    assert last.x[0] == pytest.approx(40)
    assert (last.error_x.array[0], last.error_x.arrayminus[0]) == (pytest.approx(10), pytest.approx(10))
    assert "n = 20 trials" in last.y[0]
    assert figure.layout.xaxis.ticksuffix == "%"


def test_unknown_ends_are_not_drawn() -> None:
    figure = plots.success_by_arm(ARMS.assign(low=float("nan")))
    assert all(trace.error_x.visible is False for trace in figure.data)
    empty = plots.success_by_arm(ARMS.assign(success=float("nan"), low=float("nan"), high=float("nan")))
    assert all(trace.x[0] is None for trace in empty.data)


def test_forest_keeps_each_criterion_on_its_own_scale() -> None:
    frame = pd.DataFrame(
        [
            {"label": "Success", "value": 0.1, "low": 0.0, "high": 0.2, "threshold": 0.05, "unit": "points",
             "status": "met"},
            {"label": "Tokens", "value": 1.2, "low": None, "high": None, "threshold": 1.15, "unit": "ratio",
             "status": "broken"},
        ]
    )  # fmt: skip
    figure = plots.criteria_forest(frame)
    assert figure.data[0].x[0] == pytest.approx(10)
    assert figure.data[1].x[0] == pytest.approx(1.2)
    assert figure.data[1].error_x.visible is False
    assert [shape.x0 for shape in figure.layout.shapes] == [5.0, 1.15]
    assert figure.data[0].marker.symbol != figure.data[1].marker.symbol
    low, high = figure.layout.xaxis2.range
    assert low < 1.15 < 1.2 < high


def test_waterfall_ends_at_the_treatment() -> None:
    parts = [
        ("No", 100.0, "absolute"),
        ("text", 20.0, "relative"),
        ("turns", -5.0, "relative"),
        ("Yes", 115.0, "total"),
    ]
    trace = plots.token_split(parts).data[0]
    assert list(trace.x) == [100.0, 20.0, -5.0, 115.0]
    assert list(trace.measure) == ["absolute", "relative", "relative", "total"]
    assert list(trace.text) == ["100", "+20", "−5", "115"]


def test_boxes_hold_the_given_percentiles() -> None:
    frame = pd.DataFrame(
        {"arm": ["none"], "n": [9], "p05": [1.0], "p25": [2.0], "median": [3.0], "p75": [4.0], "p95": [5.0]}
    )
    box = plots.latency_distribution(frame).data[0]
    assert (box.lowerfence[0], box.q1[0], box.median[0], box.q3[0], box.upperfence[0]) == (1, 2, 3, 4, 5)


def test_progress_lines_differ_in_more_than_colour() -> None:
    rows = [
        {"arm": arm, "step": step, "progress": step / 4, "low": None, "high": None, "trials": 5}
        for arm in ("none", "plan", "progress")
        for step in range(5)
    ]
    figure = plots.progress_over_steps(pd.DataFrame(rows))
    assert len({trace.line.dash for trace in figure.data}) == 3
    assert all("n = 5 trials" in trace.name for trace in figure.data)


def test_labels_from_logs_are_escaped_everywhere() -> None:
    bad = "<img src=x onerror=alert(1)>"
    figures = [
        plots.success_by_arm(ARMS.assign(arm=[bad, "none"])),
        plots.token_split([(bad, 1.0, "absolute")]),
        plots.subgoal_rates(pd.DataFrame({"title": [bad, bad * 3], "runs": [2, 0], "achieved": [1, 0]})),
        plots.readiness_bars(pd.DataFrame({"label": [bad], "present": [1], "total": [2], "level": ["gap"]})),
        plots.run_progress(
            pd.DataFrame({"step": [0], "tool": [bad], "current": [0.5], "high_water": [0.5], "subgoals": ["+" + bad]})
        ),
    ]
    for figure in figures:
        assert "<img" not in _drawn(figure).replace("\\u003c", "<")


def test_runs_without_outcome_stay_apart() -> None:
    frame = pd.DataFrame({"progress": [1.0, 0.2, 0.5, 0.4], "outcome": [1.0, 0.0, None, 0.0]})
    figure = plots.progress_by_outcome(frame)
    assert [len(trace.y) for trace in figure.data] == [2, 1, 1]
    assert "Outcome unknown" in figure.data[2].name


@pytest.mark.parametrize("language", ["en", "ja"])
def test_grounds_are_clear_in_both_languages(language: str) -> None:
    figure = plots.success_by_arm(ARMS, language)  # type: ignore[arg-type]
    assert figure.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.font.color is None
