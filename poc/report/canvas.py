"""The ground that every figure is drawn on: no background of its own, quiet axes, mid-tone colours. Knows no data."""

from __future__ import annotations

import plotly.graph_objects as go

STATUS_COLOURS = {"met": "#1a8f5a", "broken": "#d0432b", "open": "#b07900", "off": "#7f8794"}
GRID = "rgba(127, 135, 148, 0.25)"
AXIS = "rgba(127, 135, 148, 0.8)"


def blank(height: int) -> go.Figure:
    """An empty figure of this height in pixels."""
    return style(go.Figure(), height)


def style(figure: go.Figure, height: int) -> go.Figure:
    """Lay the ground: no background, quiet axes, no tools, nothing that can be dragged out of place."""
    figure.update_layout(
        template="none",
        height=height,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 8, "r": 24, "t": 16, "b": 8},
        showlegend=False,
        dragmode=False,
        hoverlabel={"namelength": -1},
        font={
            "size": 13,
            "family": "system-ui, -apple-system, 'Segoe UI', 'Hiragino Sans', 'Noto Sans CJK JP', sans-serif",
        },
    )
    figure.update_xaxes(
        gridcolor=GRID, linecolor=AXIS, zerolinecolor=AXIS, automargin=True, fixedrange=True, title_font_size=13
    )
    figure.update_yaxes(
        gridcolor=GRID, linecolor=AXIS, zerolinecolor=AXIS, automargin=True, fixedrange=True, title_font_size=13
    )
    return figure
