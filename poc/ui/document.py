"""Draws the report's document on a page: bands, cards, figures, tables.

The report decides what is said and shown; here it only gets a form. Texts are
shown as text, never as markup. Knows no result.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import pandas as pd
import streamlit as st

from poc.ui import show
from poc.ui.show import Mood, plain
from poc.ui.words import say

_COLOURS: dict[str, Mood] = {"good": "green", "bad": "red", "open": "orange", "plain": "gray"}
_LONG = 60
_MOST_CARDS = 16
_ICONS = {
    "good": ":material/check_circle:",
    "bad": ":material/cancel:",
    "open": ":material/pending:",
    "plain": ":material/info:",
}


def text(cell: Any) -> str:
    """A cell as Markdown that reads as the plain text it is."""
    return plain(str(cell))


def badge(item: Any) -> None:
    """A short status with its tone."""
    st.badge(text(item.text), color=_COLOURS[item.tone], icon=_ICONS[item.tone])


def summary(head: Any) -> None:
    """The two minutes of a stakeholder."""
    for band in head.bands:
        st.warning(f"**{text(band.lead)}** {text(band.text)}", icon=":material/info:")
    st.caption(text(head.eyebrow))
    with st.container(border=True):
        colour = _COLOURS[head.verdict.tone] if head.verdict.tone != "plain" else "violet"
        st.markdown(f"## :{colour}[{text(head.verdict.text)}]")
        st.markdown(f"#### {text(head.sentence)}")
        if head.reasons:
            st.markdown("\n".join(f"- {text(reason)}" for reason in head.reasons))
    for place, card in zip(st.columns(len(head.cards)), head.cards, strict=True):
        with place.container(border=True, height="stretch"):
            st.markdown(f":small[{text(card.label)}]")
            value = f"{card.value} {card.unit}".strip()
            st.metric(str(card.label), value, label_visibility="collapsed")
            st.caption("  \n".join(text(line) for line in card.lines))
            if card.badge is not None:
                badge(card.badge)
    for place, panel in zip(st.columns(len(head.panels)), head.panels, strict=True):
        with place.container(border=True, height="stretch"):
            st.markdown(f"**{text(panel.title)}**")
            st.markdown("\n".join(f"- {text(item)}" for item in panel.items))


def section(part: Any) -> None:
    """One section, block by block."""
    for block in part.blocks:
        match block.__struct_config__.tag:
            case "Plot":
                _plot(block)
            case "Table":
                _table(block)
            case "Text":
                notice(block)
            case "Bullets":
                st.markdown("\n".join(f"- {text(item)}" for item in block.items))
            case "Heading":
                st.markdown(f"##### {text(block.text)}")
            case "Facts":
                _facts(block)
            case "Queries":
                for name, what, sql in block.items:
                    with st.expander(f"`{name}` {text(what)}"):
                        st.code(sql, language="sql", wrap_lines=True)


def notice(block: Any) -> None:
    """A paragraph; a tone frames it."""
    said = f"**{text(block.lead)}** {text(block.text)}" if block.lead else text(block.text)
    framed = {"bad": st.error, "open": st.warning, "good": st.success}.get(block.tone)
    if framed is None:
        st.markdown(said)
    else:
        framed(said, icon=_ICONS[block.tone])


def _plot(block: Any) -> None:
    st.markdown(f"##### {text(block.title)}")
    show.chart(block.figure, f"plot-{block.id}", block.alt)
    st.caption(text(block.alt) + (f" {text(block.note)}" if block.note else ""))
    with st.expander(say("decision.table")):
        _table(block.table)


def _table(block: Any) -> None:
    """A table whose long cells wrap; the head column names the row."""
    sentences = any(_width(_cell(cell)) > _LONG for row in block.rows for cell in row)
    if not sentences or len(block.rows) > _MOST_CARDS:
        frame = pd.DataFrame([[_cell(cell) for cell in row] for row in block.rows], columns=_unique(block.head))
        show.table(frame)
    else:
        for row in block.rows:
            _wide_row(block.head, row)
    if block.caption:
        st.caption(text(block.caption))
    if block.note:
        st.caption(text(block.note))


def _wide_row(head: list[str], row: list[Any]) -> None:
    """A row with a sentence in it, as a small card: fits a narrow screen."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown(f"**{_cell_text(row[0])}**", width="content")
            for name, cell in zip(head[1:], row[1:], strict=True):
                if hasattr(cell, "tone"):
                    badge(cell)
                elif _width(str(cell)) <= _LONG:
                    st.markdown(f":small[:gray[{text(name)}] {text(cell)}]", width="content")
        for cell in row[1:]:
            if not hasattr(cell, "tone") and _width(str(cell)) > _LONG:
                st.caption(text(cell))


def _facts(block: Any) -> None:
    frame = pd.DataFrame([(name, _cell(value)) for name, value in block.items], columns=["name", "value"])
    show.table(
        frame,
        column_config={
            "name": st.column_config.TextColumn("", width="medium"),
            "value": st.column_config.TextColumn(""),
        },
    )


def _width(text: str) -> int:
    """How much room a text takes: Japanese signs count twice."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _cell(cell: Any) -> str:
    return cell.text if hasattr(cell, "tone") else str(cell)


def _cell_text(cell: Any) -> str:
    return plain(_cell(cell))


def _unique(names: list[str]) -> list[str]:
    """Column names, told apart where two are the same."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return result
