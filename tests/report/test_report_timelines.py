"""Timelines: every run and step is on the figure, at the time that the log names and at no other."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from poc import frames
from poc.ingest import import_logs
from poc.language import LANGUAGES
from poc.readiness import run_times, runs_over_time
from poc.report import timelines
from poc.workspace import Workspace


def moment(second: float | None) -> pd.Timestamp | None:
    return None if second is None else pd.Timestamp("2025-01-01", tz="UTC") + pd.Timedelta(seconds=second)


def step(number: int, turn: int, start: float | None, length: float | None, status: str = "ok") -> dict:
    end = None if start is None or length is None else start + length
    return {
        "step": number, "turn": turn, "tool": f"tool_{number}", "status": status, "started_at": moment(start),
        "ended_at": moment(end), "duration_s": length,
    }  # fmt: skip


def drawn(figure) -> dict[int, tuple[float, float]]:
    """Place -> (start, length) of every bar."""
    return {
        place: (base, length)
        for trace in figure.data
        if trace.type == "bar"
        for place, base, length in zip(trace.y, trace.base, trace.x, strict=True)
    }


def marked(figure) -> dict[int, float]:
    return {
        y: x
        for trace in figure.data
        if trace.type == "scatter"
        for x, y in zip(trace.x, trace.y, strict=False)
        if x is not None
    }


def test_a_run_with_parallel_calls_and_gaps() -> None:
    frame = pd.DataFrame(
        [
            step(0, 0, 10.0, 2.0),
            step(1, 1, 12.5, 4.0),
            step(2, 1, 12.75, 1.0, "error"),
            step(3, 2, None, None, "no_result"),
            step(4, 3, 20.0, None),
        ]
    )
    figure = timelines.run_gantt(frame)
    assert drawn(figure) == {0: (0.0, 2.0), 1: (2.5, 4.0), 2: (2.75, 1.0)}
    # The one without an end has its start; the one without a time has neither, but a place and a note.
    assert marked(figure) == {0: 0.0, 1: 2.5, 2: 2.75, 4: 10.0}
    assert [note.text for note in figure.layout.annotations] == ["no time in the log"]
    assert [note.y for note in figure.layout.annotations] == [3]
    assert [(shape.y0, shape.y1) for shape in figure.layout.shapes] == [(0.5, 2.5)]
    assert len(figure.layout.yaxis.ticktext) == 5
    assert figure.layout.yaxis.ticktext[0] == "1 · tool_0"
    assert "2025-01-01 00:00:10" in figure.layout.xaxis.title.text


def test_an_end_without_a_duration_is_used_and_one_before_the_start_is_not() -> None:
    good, bad = step(0, 0, 1.0, None), step(1, 1, 2.0, None)
    good["ended_at"], bad["ended_at"] = moment(1.5), moment(1.0)
    assert drawn(timelines.run_gantt(pd.DataFrame([good, bad]))) == {0: (0.0, 0.5)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_without_times_is_shown_in_order(language) -> None:
    frame = pd.DataFrame([step(0, 0, None, None), step(1, 1, None, None), step(2, 1, None, None, "error")])
    figure = timelines.run_gantt(frame, language)
    places = drawn(figure)
    assert {place: round(start + length / 2, 6) for place, (start, length) in places.items()} == {0: 1, 1: 2, 2: 2}
    assert {"en": "no times", "ja": "時刻がありません"}[language] in figure.layout.xaxis.title.text


def test_nothing_from_the_log_is_markup() -> None:
    frame = pd.DataFrame([{**step(0, 0, 0.0, 1.0), "tool": "<b>x</b>"}])
    assert "<b>x" not in (timelines.run_gantt(frame).to_json() or "")
    runs = pd.DataFrame(
        [
            {"run_id": "r", "native_id": "<a href='x'>y</a>", "started_at": moment(0), "ended_at": moment(1),
             "steps": 1, "outcome": None}
        ]
    )  # fmt: skip
    assert "<a href" not in (timelines.run_lines(runs).to_json() or "")


@pytest.fixture
def three_runs(workspace: Workspace, tmp_path: Path) -> Workspace:
    log = tmp_path / "log.jsonl"
    rows = [
        {
            "run_id": run,
            "tool": "t",
            "args": {},
            "output": "x",
            "question": "q",
            "outcome": outcome,
            "start_time": start,
        }
        for run, outcome, start in (
            ("late", 1, "2025-01-02T00:00:00Z"),
            ("early", 0, "2025-01-01T00:00:00Z"),
            ("early", 0, "2025-01-01T00:00:30Z"),
            ("never", 1, None),
        )
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_logs(workspace, log)
    return workspace


def test_runs_take_the_times_of_their_steps_and_runs_without_are_left_out(three_runs: Workspace) -> None:
    times = run_times(three_runs)
    assert times["native_id"].tolist() == ["early", "late"]
    assert times["total"].tolist() == [2, 2]
    assert (times["ended_at"] - times["started_at"]).dt.total_seconds().tolist() == [30, 0]
    figure = timelines.run_lines(times)
    marks = {trace.name: list(trace.customdata) for trace in figure.data if trace.mode == "markers"}
    assert marks == {"Failed": [times["run_id"][0]], "Succeeded": [times["run_id"][1]]}


def test_stretches_hold_every_run_once(three_runs: Workspace) -> None:
    frame = runs_over_time(three_runs)
    assert frame["runs"].sum() == 2
    assert set(frame["width_s"]) == {3600.0}  # the narrowest that makes no more than 60 of a day
    assert len(timelines.runs_over_time(frame).data) == 2


def test_an_empty_workspace_has_empty_timelines(workspace: Workspace) -> None:
    assert run_times(workspace).empty
    assert runs_over_time(workspace).empty


def test_real_logs_put_every_step_on_the_figure(workspace: Workspace, real_logs: Path) -> None:
    import_logs(workspace, real_logs / "langfuse")
    import_logs(workspace, real_logs / "own_tables")
    for run_id in run_times(workspace)["run_id"]:
        steps = frames.steps(workspace, run_id)
        if steps.empty:
            continue
        figure = timelines.run_gantt(steps)
        assert len(figure.layout.yaxis.ticktext) == len(steps)
        assert len(marked(figure)) + len(figure.layout.annotations) == len(steps)
