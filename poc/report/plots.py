"""The figures of the report and of the pages: tidy frames in, Plotly figures out.

Every figure names its units and sample sizes, shows intervals where there are
any, and is readable on a light and on a dark ground (no background of its
own, mid-tone colours, marks that differ in shape as well as in colour).
Text that comes from a log is escaped, since Plotly reads some HTML in labels.
Knows no workspace and computes no statistic: what is drawn is what came in.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from poc.language import Language
from poc.report.canvas import AXIS, STATUS_COLOURS, blank, style
from poc.report.numbers import DASH, decimal, known, percent, points, ratio, seconds, whole
from poc.report.wording import arm_name, say

ARM_COLOURS = {"none": "#7f8794", "plan": "#c98500", "progress": "#2b7bd6"}
OTHER_COLOURS = ("#b4619f", "#1f9e89", "#d1603d", "#8467c4")
STATUS_SYMBOLS = {"met": "circle", "broken": "x", "open": "diamond", "off": "circle-open"}


def colour(arm: str, arms: Sequence[str] = ()) -> str:
    """The colour of an arm, the same in every figure."""
    if arm in ARM_COLOURS:
        return ARM_COLOURS[arm]
    others = [name for name in arms if name not in ARM_COLOURS]
    return OTHER_COLOURS[others.index(arm) % len(OTHER_COLOURS) if arm in others else 0]


def success_by_arm(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """Success per arm with its interval.

    frame: arm, success, low, high (0..1, NULL where unknown), tasks, trials.
    """
    figure = blank(height=90 + 52 * max(1, len(frame)))
    arms = list(frame["arm"])
    for row in frame.iloc[::-1].to_dict("records"):
        label = _wrapped(arm_name(row["arm"], language), say("plot.n_trials", language, n=whole(row["trials"])))
        figure.add_trace(
            _point(
                label, _times(row["success"], 100), _times(row["low"], 100), _times(row["high"], 100),
                colour=colour(row["arm"], arms),
                text=percent(row["success"]),
                hover=f"{percent(row['success'], 1)} ({percent(row['low'], 1)} – {percent(row['high'], 1)})",
            )
        )  # fmt: skip
    figure.update_xaxes(title_text=say("plot.success_axis", language), range=[-2, 102], ticksuffix="%")
    figure.update_yaxes(range=[-0.5, len(frame) - 0.35])
    return figure


def criteria_forest(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """The criteria of a verdict: value, interval and threshold, each on a scale of its own.

    frame: label, value, low, high, threshold, unit (points, ratio or number), status (met, broken, open, off).
    """
    rows = frame.to_dict("records")
    figure = make_subplots(rows=max(1, len(rows)), cols=1, vertical_spacing=min(0.2, 0.66 / max(1, len(rows))))
    style(figure, height=60 + 116 * max(1, len(rows)))
    for number, row in enumerate(rows, start=1):
        unit = row["unit"]
        scale = 100 if unit == "points" else 1
        write = {"points": points, "ratio": ratio}.get(unit, lambda value: decimal(value, 2))
        ends = [_times(row[name], scale) for name in ("value", "low", "high", "threshold")]
        value, low, high, threshold = ends
        status = row["status"]
        figure.add_trace(
            _point(
                "", value, low, high,
                colour=STATUS_COLOURS.get(status, "#7f8794"), symbol=STATUS_SYMBOLS.get(status, "circle"),
                text=write(row["value"]), hover=f"{write(row['value'])} ({write(row['low'])} – {write(row['high'])})",
            ),
            row=number, col=1,
        )  # fmt: skip
        shown = [end for end in (*ends, 1.0 if unit == "ratio" else 0.0) if end is not None]
        margin = (max(shown) - min(shown)) * 0.15 or (0.05 if unit == "ratio" else 1.0)
        figure.update_xaxes(
            range=[min(shown) - margin, max(shown) + margin],
            tickprefix="×" if unit == "ratio" else "",
            nticks=6,
            row=number,
            col=1,
        )
        figure.update_yaxes(showticklabels=False, row=number, col=1)
        if threshold is not None:
            figure.add_vline(x=threshold, line={"dash": "dash", "width": 2, "color": "#d0432b"}, row=number, col=1)  # pyright: ignore[reportArgumentType]
        domain = figure.layout[f"yaxis{number if number > 1 else ''}"].domain
        notes = [] if unit == "ratio" else [say("unit." + unit, language)]  # a ratio carries its sign
        if threshold is not None:
            notes.append(say("plot.threshold", language, value=write(row["threshold"])))
        title = f"<b>{html.escape(row['label'])}</b>"
        if notes:
            title += f"<br><span style='font-size:11px'>{html.escape(' · '.join(notes))}</span>"
        figure.add_annotation(
            text=title, xref="paper", yref="paper", x=0, y=domain[1], xanchor="left", yanchor="bottom",
            showarrow=False, align="left", font={"size": 13},
        )  # fmt: skip
    figure.update_layout(margin={"t": 46, "l": 12})
    figure.update_yaxes(automargin=False)
    return figure


def token_split(parts: Sequence[tuple[str, float | None, str]], language: Language = "en") -> go.Figure:
    """Tokens per trial from the control to the treatment, split into what changed.

    parts: (label, tokens, measure) with measure absolute, relative or total, in the order of the walk.
    """
    figure = blank(height=90 + 44 * max(1, len(parts)))
    known_parts = [part for part in parts if part[1] is not None]
    ends = _walk(known_parts)
    figure.add_trace(
        go.Waterfall(
            orientation="h",
            y=[html.escape(label) for label, _, _ in known_parts],
            x=[value for _, value, _ in known_parts],
            measure=[measure for _, _, measure in known_parts],
            text=[decimal(value, 0, sign=measure == "relative") for _, value, measure in known_parts],
            textposition="auto",
            cliponaxis=False,
            connector={"line": {"color": AXIS, "width": 1, "dash": "dot"}},
            increasing={"marker": {"color": "#d1603d"}},
            decreasing={"marker": {"color": "#1f9e89"}},
            totals={"marker": {"color": "#7f8794"}},
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    figure.update_xaxes(
        title_text=say("plot.tokens_axis", language), range=[min(ends), max(ends) * 1.14 or 1], tickformat=",d"
    )
    figure.update_yaxes(autorange="reversed")
    return figure


def latency_distribution(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """How long trials waited for the model, per arm: box = middle half, whiskers = 5th to 95th percentile.

    frame: arm, n, p05, p25, median, p75, p95 (seconds of model time per trial, without backoff).
    """
    figure = blank(height=90 + 56 * max(1, len(frame)))
    arms = list(frame["arm"])
    for row in frame.iloc[::-1].dropna(subset=["median"]).to_dict("records"):
        label = _wrapped(arm_name(row["arm"], language), say("plot.n_trials", language, n=whole(row["n"])))
        figure.add_trace(
            go.Box(
                y=[label], orientation="h", q1=[row["p25"]], median=[row["median"]], q3=[row["p75"]],
                lowerfence=[row["p05"]], upperfence=[row["p95"]], width=0.45,
                line={"color": colour(row["arm"], arms), "width": 2}, showlegend=False, name=label,
                hoverinfo="skip",
            )
        )  # fmt: skip
        figure.add_annotation(
            x=row["p95"], y=label, text="  " + say("plot.median", language, value=seconds(row["median"])),
            showarrow=False, xanchor="left", yanchor="middle",
        )  # fmt: skip
    figure.update_xaxes(title_text=say("plot.latency_axis", language), rangemode="tozero")
    return figure


def progress_over_steps(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """Mean progress after each step, per arm; trials that have ended keep their last value.

    frame: arm, step (from 1; 0 is the start), progress, low, high (0..1), trials.
    """
    figure = blank(height=340)
    arms = list(dict.fromkeys(frame["arm"]))
    dashes = dict(zip(arms, ("dot", "dash", "solid", "dashdot", "longdash"), strict=False))
    for arm in arms:
        rows = frame.loc[frame["arm"] == arm].sort_values(by="step")
        base = colour(arm, arms)
        name = arm_name(arm, language)
        if bool(rows["low"].notna().any()):
            band = rows.dropna(subset=["low", "high"])
            figure.add_trace(
                go.Scatter(
                    x=[*band["step"], *band["step"][::-1]], y=[*(band["high"] * 100), *(band["low"][::-1] * 100)],
                    fill="toself", fillcolor=_faded(base), mode="lines", line={"width": 0}, hoverinfo="skip",
                    showlegend=False,
                )
            )  # fmt: skip
        figure.add_trace(
            go.Scatter(
                x=list(rows["step"]), y=list(rows["progress"] * 100), mode="lines",
                name=html.escape(f"{name} ({say('plot.n_trials', language, n=whole(int(rows['trials'].max())))})"),
                line={"color": base, "width": 2.5, "dash": dashes.get(arm, "solid")},
                hovertemplate="%{x}: %{y:.0f}%<extra>" + html.escape(name) + "</extra>",
            )
        )  # fmt: skip
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "xanchor": "left"},
        margin={"l": 8, "t": 56},
    )
    figure.update_xaxes(title_text=say("plot.steps_axis", language), rangemode="tozero", tickformat="d")
    figure.update_yaxes(title_text=say("plot.progress_axis", language), range=[0, 102], ticksuffix="%")
    return figure


def readiness_bars(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """Share of steps or runs that have what each check asks for.

    frame: label, present, total, level (ok, gap, missing).
    """
    levels = {"ok": "met", "gap": "open", "missing": "broken"}
    figure = blank(height=70 + 26 * max(1, len(frame)))
    share = [100 * p / t if t else None for p, t in zip(frame["present"], frame["total"], strict=True)]
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=[html.escape(str(label)) for label in frame["label"]],
            x=share,
            marker={"color": [STATUS_COLOURS[levels.get(level, "off")] for level in frame["level"]]},
            text=[f"{whole(p)} / {whole(t)}" for p, t in zip(frame["present"], frame["total"], strict=True)],
            textposition=_bar_text(share),
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    figure.update_xaxes(title_text=say("plot.share_axis", language), range=[0, 100], ticksuffix="%")
    figure.update_yaxes(autorange="reversed")
    return figure


def progress_by_outcome(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """Final progress of logged runs that failed and that succeeded, all runs shown.

    frame: as `poc.frames.progress_by_outcome`; an outcome of at least 0.5 counts as success, NULL stays apart.
    """
    figure = blank(height=330)
    groups = (
        ("plot.failed", frame["outcome"] < 0.5, "#d1603d"),
        ("plot.succeeded", frame["outcome"] >= 0.5, "#1a8f5a"),
        ("plot.unknown", frame["outcome"].isna(), "#7f8794"),
    )
    for key, chosen, base in groups:
        rows = frame[chosen]
        if rows.empty:
            continue
        label = _wrapped(say(key, language), say("plot.n_runs", language, n=whole(len(rows))))
        figure.add_trace(
            go.Box(
                y=list(rows["progress"] * 100), name=label, boxpoints="all", jitter=0.5, pointpos=0,
                marker={"color": base, "size": 5, "opacity": 0.55}, line={"width": 1.5}, fillcolor="rgba(0,0,0,0)",
                hovertemplate="%{y:.0f}%<extra></extra>", showlegend=False,
            )
        )  # fmt: skip
    figure.update_yaxes(title_text=say("plot.progress_axis", language), range=[-3, 103], ticksuffix="%")
    return figure


def run_progress(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """Progress along one run: current and high-water after each step.

    frame: step (from 0), tool, current, high_water (0..1), subgoals (events at the step or NULL).
    """
    figure = blank(height=280)
    steps = [step + 1 for step in frame["step"]]
    events = [f" · {event}" if known(event) else "" for event in frame["subgoals"]]
    hover = [html.escape(f"{tool}{event}") for tool, event in zip(frame["tool"], events, strict=True)]
    for key, column, dash in (("plot.high_water", "high_water", "dot"), ("plot.current", "current", "solid")):
        figure.add_trace(
            go.Scatter(
                x=steps, y=list(frame[column] * 100), name=say(key, language), mode="lines+markers", text=hover,
                line={"shape": "hv", "color": "#2b7bd6" if dash == "solid" else "#7f8794", "dash": dash, "width": 2},
                marker={"size": 6}, hovertemplate="%{x}: %{y:.0f}%<br>%{text}<extra></extra>",
            )
        )  # fmt: skip
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    figure.update_xaxes(title_text=say("plot.step_axis", language), tickformat="d", dtick=max(1, len(frame) // 12))
    figure.update_yaxes(title_text=say("plot.progress_axis", language), range=[-3, 103], ticksuffix="%")
    return figure


def subgoal_rates(frame: pd.DataFrame, language: Language = "en") -> go.Figure:
    """How many runs ever achieved each subgoal of one set.

    frame: title, runs (assigned), achieved.
    """
    figure = blank(height=80 + 30 * max(1, len(frame)))
    share = [100 * a / n if n else None for a, n in zip(frame["achieved"], frame["runs"], strict=True)]
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=[_wrapped_title(str(title)) for title in frame["title"]],
            x=share,
            marker={"color": "#2b7bd6"},
            text=[f"{whole(a)} / {whole(n)}" for a, n in zip(frame["achieved"], frame["runs"], strict=True)],
            textposition=_bar_text(share),
            hovertemplate="%{y}: %{text}<extra></extra>",
        )
    )
    figure.update_xaxes(title_text=say("plot.achieved_axis", language), range=[0, 100], ticksuffix="%")
    figure.update_yaxes(autorange="reversed")
    return figure


def _point(
    label: str, value: float | None, low: float | None, high: float | None, *, colour: str, text: str, hover: str,
    symbol: str = "circle",
) -> go.Scatter:  # fmt: skip
    """One estimate with its interval; the value stands above its mark."""
    error: dict[str, Any] = {"visible": False}
    if value is not None and low is not None and high is not None:
        error = {
            "type": "data", "symmetric": False, "array": [high - value], "arrayminus": [value - low],
            "color": colour, "thickness": 2.5, "width": 7,
        }  # fmt: skip
    return go.Scatter(
        x=[value], y=[label], mode="markers+text", text=[text], textposition="top center",
        error_x=error, cliponaxis=False,
        marker={"size": 12, "color": colour, "symbol": symbol}, hovertemplate=html.escape(hover) + "<extra></extra>",
    )  # fmt: skip


def _times(value: Any, factor: float) -> float | None:
    return float(value) * factor if known(value) else None


def _walk(parts: Sequence[tuple[str, float | None, str]]) -> list[float]:
    """Where a waterfall stands after each part."""
    ends: list[float] = [0.0]
    for _, value, measure in parts:
        ends.append((ends[-1] if measure == "relative" else 0.0) + (value or 0.0))
    return ends


def _bar_text(shares: Sequence[float | None]) -> list[str]:
    """Where a bar's text stands: inside when the bar is long enough for it, in per cent of the axis."""
    return ["inside" if (share or 0) > 30 else "outside" for share in shares]


def _faded(hex_colour: str) -> str:
    red, green, blue = (int(hex_colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.14)"


def _wrapped(name: str, note: str) -> str:
    return f"{html.escape(name or DASH)}<br><span style='font-size:11px'>{html.escape(note)}</span>"


def _wrapped_title(title: str, width: int = 34) -> str:
    """A long title on two lines, cut after that."""
    if len(title) <= width:
        return html.escape(title)
    cut = title.rfind(" ", 0, width)
    cut = cut if cut > width // 2 else width
    rest = title[cut:].strip()
    return html.escape(title[:cut]) + "<br>" + html.escape(rest if len(rest) <= width else rest[: width - 1] + "…")
