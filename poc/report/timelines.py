"""Figures over time: when runs happened, and one run step by step. Frames in, Plotly figures out.

Every step of a run is on its figure, also one without times: it keeps its
place in the order and is marked as such, never put at a time that the log does
not name. Text that comes from a log is escaped, since Plotly reads some HTML.
"""

from __future__ import annotations

import html
from datetime import timedelta
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from poc.language import Language
from poc.report.canvas import STATUS_COLOURS, blank
from poc.report.numbers import known, seconds, whole
from poc.report.wording import named, say

OUTCOME_COLOURS = {"failed": "#d1603d", "succeeded": "#1a8f5a", "unknown": "#7f8794"}
_OUTCOME_SYMBOLS = {"failed": "x", "succeeded": "circle", "unknown": "circle-open"}
STEP_COLOURS = {"ok": "#2b7bd6", "error": STATUS_COLOURS["broken"], "no_result": STATUS_COLOURS["off"]}
_STEP_SYMBOLS = {"ok": "circle", "error": "x", "no_result": "circle-open"}
_BAND = "rgba(127, 135, 148, 0.13)"
_LABEL = 30


def runs_over_time(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """How many runs started when, by outcome.

    frame: as `poc.readiness.runs_over_time`.
    """
    figure = blank(height=260)
    for outcome, colour in OUTCOME_COLOURS.items():
        rows = frame[frame["outcome"] == outcome]
        if rows.empty:
            continue
        name = say(f"plot.{outcome}", language)
        figure.add_trace(
            go.Bar(
                x=[
                    start + timedelta(seconds=width / 2)
                    for start, width in zip(rows["start"], rows["width_s"], strict=True)
                ],
                y=list(rows["runs"]),
                width=[width * 900 for width in rows["width_s"]],  # milliseconds, with a little air between
                name=name,
                marker={"color": colour},
                customdata=[f"{start:%Y-%m-%d %H:%M:%S}" for start in rows["start"]],
                hovertemplate="%{customdata}: %{y}<extra>" + html.escape(name) + "</extra>",
            )
        )
    figure.update_layout(barmode="stack", showlegend=True, legend=_LEGEND, margin={"t": 40})
    figure.update_xaxes(title_text=say("plot.time_axis", language), type="date")
    figure.update_yaxes(title_text=say("plot.runs_axis", language), rangemode="tozero", tickformat=",d", nticks=6)
    return figure


def run_lines(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """Each run as a line from its start to its end, one under the other in the order of time.

    frame: as `poc.readiness.run_times`. ``customdata`` of the marks is the run's id.
    """
    figure = blank(height=110 + min(12 * max(6, len(frame)), 560))
    ranks = list(range(len(frame)))
    kinds = [_outcome(value) for value in frame["outcome"]]
    for kind, colour in OUTCOME_COLOURS.items():
        chosen = [rank for rank in ranks if kinds[rank] == kind]
        if not chosen:
            continue
        rows = frame.iloc[chosen]
        x: list[Any] = []
        y: list[Any] = []
        for rank, start, end in zip(chosen, rows["started_at"], rows["ended_at"], strict=True):
            x += [start, end, None]
            y += [rank, rank, None]
        name = say(f"plot.{kind}", language)
        figure.add_trace(
            go.Scatter(
                x=x, y=y, mode="lines", line={"color": colour, "width": 3}, hoverinfo="skip", showlegend=False,
                legendgroup=kind,
            )
        )  # fmt: skip
        figure.add_trace(
            go.Scatter(
                x=list(rows["started_at"]), y=chosen, mode="markers", name=name, legendgroup=kind,
                marker={"color": colour, "symbol": _OUTCOME_SYMBOLS[kind], "size": 8},
                customdata=list(rows["run_id"]),
                text=[_run_hover(row, language) for row in rows.to_dict("records")],
                hovertemplate="%{text}<extra>" + html.escape(name) + "</extra>",
            )
        )  # fmt: skip
    figure.update_layout(showlegend=True, legend=_LEGEND, margin={"t": 40})
    figure.update_xaxes(title_text=say("plot.time_axis", language), type="date")
    figure.update_yaxes(
        title_text=say("plot.runs_in_order", language), showticklabels=False, range=[len(frame) - 0.5, -0.5],
        showgrid=False,
    )  # fmt: skip
    return figure


def run_gantt(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """The steps of one run: bars from start to end, parallel calls of one turn on a common band.

    frame: step (from 0), turn, tool, status, started_at, ended_at, duration_s (NULL where unknown). Where no step
    has a time, the order is drawn: one place a turn.
    """
    rows = frame.to_dict("records")
    timed = any(known(row["started_at"]) for row in rows)
    figure = blank(height=100 + 24 * max(2, len(rows)))
    labels = [_label(row) for row in rows]
    origin = min((row["started_at"] for row in rows if known(row["started_at"])), default=None)
    spans = [_span(row, origin) if timed else (float(row["turn"]) + 1 - 0.4, 0.8) for row in rows]
    last = max((start + (length or 0.0) for start, length in spans if start is not None), default=1.0) or 1.0
    for status, colour in STEP_COLOURS.items():
        chosen = [place for place, row in enumerate(rows) if row["status"] == status]
        if not chosen:
            continue
        name = named("step", status, language)
        bars = [place for place in chosen if spans[place][0] is not None and spans[place][1] is not None]
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=[spans[place][0] for place in bars], x=[spans[place][1] for place in bars], y=bars,
                marker={"color": colour}, width=0.66, name=name, legendgroup=status, showlegend=False,
                text=[_step_hover(rows[place], language) for place in bars], textposition="none",
                hovertemplate="%{text}<extra>" + html.escape(name) + "</extra>",
            )
        )  # fmt: skip
        # The mark shows where a call began, also when it took no time to speak of or its end is unknown.
        marks = [place for place in chosen if spans[place][0] is not None] if timed else []
        figure.add_trace(
            go.Scatter(
                x=[spans[place][0] for place in marks] or [None], y=marks or [None], mode="markers", name=name,
                legendgroup=status, marker={"color": colour, "symbol": _STEP_SYMBOLS[status], "size": 8},
                text=[_step_hover(rows[place], language) for place in marks],
                hovertemplate="%{text}<extra>" + html.escape(name) + "</extra>",
            )
        )  # fmt: skip
    for place, (start, _) in enumerate(spans):
        if start is None:
            figure.add_annotation(
                x=0, y=place, text=say("plot.no_time", language), showarrow=False, xanchor="left",
                font={"size": 11, "color": STATUS_COLOURS["off"]},
            )  # fmt: skip
    for first, end in _parallel(rows):
        figure.add_hrect(y0=first - 0.5, y1=end + 0.5, fillcolor=_BAND, line_width=0, layer="below")
    figure.update_layout(showlegend=True, legend=_LEGEND, barmode="overlay", margin={"t": 40})
    if timed:
        figure.update_xaxes(
            title_text=say("plot.since_axis", language, start=f"{origin:%Y-%m-%d %H:%M:%S}"),
            range=[-0.02 * last, 1.04 * last],
        )
    else:
        figure.update_xaxes(title_text=say("plot.turn_axis", language), tickformat="d", dtick=max(1, int(last) // 15))
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=labels, range=[len(rows) - 0.5, -0.5], showgrid=False, zeroline=False
    )
    return figure


_LEGEND = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "xanchor": "left"}


def _outcome(value: Any) -> str:
    return "unknown" if not known(value) else "succeeded" if value >= 0.5 else "failed"


def _span(row: dict[Any, Any], origin: Any) -> tuple[float | None, float | None]:
    """Seconds from the run's first start to the step's, and how long it took; None where unknown."""
    if not known(row["started_at"]):
        return None, None
    length = row["duration_s"] if known(row["duration_s"]) else None
    if length is None and known(row["ended_at"]) and row["ended_at"] >= row["started_at"]:
        length = (row["ended_at"] - row["started_at"]).total_seconds()
    return (row["started_at"] - origin).total_seconds(), length


def _parallel(rows: list[dict[Any, Any]]) -> list[tuple[int, int]]:
    """First and last place of each turn that made several calls."""
    turns: list[list[int]] = []
    for place, row in enumerate(rows):
        if turns and rows[turns[-1][0]]["turn"] == row["turn"]:
            turns[-1].append(place)
        else:
            turns.append([place])
    return [(turn[0], turn[-1]) for turn in turns if len(turn) > 1]


def _label(row: dict[Any, Any]) -> str:
    tool = str(row["tool"])
    shown = tool if len(tool) <= _LABEL else tool[: _LABEL - 1] + "…"
    return html.escape(f"{int(row['step']) + 1} · {shown}")


def _step_hover(row: dict[Any, Any], language: Language) -> str:
    length = row["duration_s"] if known(row["duration_s"]) else None
    return f"{_label(row)}<br>{say('plot.turn', language, n=int(row['turn']) + 1)} · {seconds(length)}"


def _run_hover(row: dict[Any, Any], language: Language) -> str:
    name = html.escape(str(row["native_id"] if known(row["native_id"]) else row["run_id"])[:60])
    took = (row["ended_at"] - row["started_at"]).total_seconds() if known(row["ended_at"]) else None
    steps = say("plot.n_steps", language, n=whole(row["steps"]))
    return f"{name}<br>{row['started_at']:%Y-%m-%d %H:%M:%S} · {seconds(took)} · {steps}"
