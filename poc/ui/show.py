"""How values, errors and empty places look: the same on every page.

Unknown is a dash. Text that comes from a log is shown as text, never as
markup. Knows no page and no workspace.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from poc.errors import PocError, WorkspaceBusy
from poc.ui.words import language, say

DASH = "—"
_FONTS = "'Source Sans', 'Source Sans Pro', system-ui, 'Hiragino Sans', 'Noto Sans CJK JP', sans-serif"
Mood = Literal["green", "orange", "red", "gray", "blue", "violet"]

_log = logging.getLogger("poc.ui")


def known(value: Any) -> bool:
    """Whether there is a value at all (not None, NaN or NaT)."""
    return not (value is None or value != value)


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands separators, or a dash."""
    if value is None or not known(value) or not math.isfinite(value):
        return DASH
    return f"{value:,.{digits}f}".replace("-", "\u2212")


def percent(share: float | None, digits: int = 0) -> str:
    """A share of 0..1 in per cent, or a dash."""
    return DASH if share is None or not known(share) else number(share * 100, digits) + "%"


def dollars(value: float | None) -> str:
    """US dollars, or a dash. The sign is escaped, since a pair of them would start a formula."""
    if value is None or not known(value):
        return DASH
    return f"\\${value:,.2f}" if value >= 0.995 or value == 0 else f"\\${value:,.4f}"


def duration(value: float | None) -> str:
    """Seconds as people say them, or a dash."""
    if value is None or not known(value):
        return DASH
    if value < 90:
        return say("unit.seconds", n=number(value, 0 if value >= 10 else 1))
    if value < 5400:
        return say("unit.minutes", n=number(value / 60))
    return say("unit.hours", n=number(value / 3600, 1))


def size(value: float | None) -> str:
    """Bytes as people say them, or a dash."""
    if value is None or not known(value):
        return DASH
    if value < 1000:
        return f"{value:.0f} B"
    return f"{value / 1e3:,.0f} kB" if value < 1e6 else f"{value / 1e6:,.1f} MB"


def plain(text: object) -> str:
    """Text that must not be read as Markdown: log content, names, paths."""
    return re.sub(r"([\\`*_{}\[\]()#+\-.!|~<>$:&])", r"\\\1", str(text)).replace("\n", " ")


def pretty(text: str | None) -> tuple[str, str | None]:
    """JSON text indented, with its language for `st.code`; any other text as it is."""
    if text is None:
        return DASH, None
    try:
        value = json.loads(text)
    except ValueError:
        return text, None
    if not isinstance(value, dict | list):
        return text, None
    return json.dumps(value, indent=2, ensure_ascii=False), "json"


def empty(title: str, text: str, *, icon: str = ":material/inbox:") -> None:
    """A place that holds nothing yet: what would be here and how it gets here."""
    with st.container(border=True, horizontal_alignment="center"):
        st.markdown(f"{icon} **{title}**", width="content")
        st.caption(text, width="content")


def error(problem: PocError) -> None:
    """What happened, where, what to do."""
    lines = [f"**{plain(problem.what)}**"]
    if problem.where:
        lines.append(f"{say('error.where')} {plain(problem.where)}")
    if problem.todo:
        lines.append(f"{say('error.todo')} {plain(problem.todo)}")
    text = "  \n".join(lines)
    if isinstance(problem, WorkspaceBusy):
        st.warning(text, icon=":material/hourglass_top:")
        st.button(say("error.again"), key=f"again-{plain(problem.where)}", icon=":material/refresh:")
    else:
        st.error(text, icon=":material/error:")


@contextmanager
def guarded() -> Iterator[None]:
    """Show errors on the page instead of raising them. The log of a fault of ours goes to the terminal."""
    try:
        yield
    except PocError as problem:
        error(problem)
    except Exception as problem:
        _log.exception("A page failed")
        error(
            PocError(
                say("error.unexpected", kind=type(problem).__name__, text=str(problem)[:300]),
                todo=say("error.unexpected_todo"),
            )
        )


def moment_column(label: str) -> Any:
    """The column of a table that holds times (UTC)."""
    return st.column_config.DatetimeColumn(label, format="YYYY-MM-DD HH:mm", timezone="UTC", width="medium")


def percent_column(label: str, help: str | None = None) -> Any:  # noqa: A002
    """The column of a table that holds whole per cents, as `in_percent` makes them."""
    return st.column_config.NumberColumn(label, format="%.0f%%", help=help)


def in_percent(rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The same rows with shares of 0..1 as per cents."""
    return rows.assign(**{column: rows[column].astype("Float64") * 100 for column in columns})


def table(rows: pd.DataFrame, **options: Any) -> Any:
    """A table without an index; what is absent is a dash."""
    return st.dataframe(rows, hide_index=True, placeholder=DASH, **options)


def chart(figure: go.Figure, key: str, alt: str) -> None:
    """A figure in the colours of the page, light or dark, without tools around it."""
    dark = st.context.theme.type == "dark"
    figure.update_layout(font={"color": "#c9d1dc" if dark else "#3b4454", "family": _FONTS})
    st.plotly_chart(figure, key=key, theme=None, config={"displayModeBar": False}, alt=alt)


def list_separator() -> str:
    """What stands between the items of a list in a sentence."""
    return "、" if language() == "ja" else ", "
