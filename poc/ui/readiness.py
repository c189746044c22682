"""The Readiness page's parts. Shows what the check found; judges nothing."""

from __future__ import annotations

from typing import Any, cast

import pandas as pd
import streamlit as st

from poc import api
from poc.ui import show
from poc.ui.reads import read
from poc.ui.show import Mood, empty, in_percent, percent_column, plain
from poc.ui.stages import PAGES
from poc.ui.words import language, named, say

_MOODS: dict[str, Mood] = {"READY": "green", "PARTIAL": "orange", "NOT READY": "red"}
_ICONS = {"READY": ":material/check_circle:", "PARTIAL": ":material/error:", "NOT READY": ":material/cancel:"}
_EFFECTS = ("read", "write", "irreversible")


def level(workspace: api.Workspace) -> api.Readiness | None:
    """The level in words, checked at once where it never was; None where there is nothing to check."""
    if not read(api.frames.counts, workspace)["runs"]:
        empty(say("readiness.nothing"), say("readiness.nothing_text"), icon=":material/fact_check:")
        st.page_link(PAGES["data"], label=say("shell.continue", page=say("data.title")))
        return None
    found = read(api.load_readiness, workspace)
    if found is None:
        found = _assessed(workspace)
    with st.container(border=True):
        said = plain(api.readiness_headline(found, language()))
        st.markdown(f"#### :{_MOODS[found.level]}[{_ICONS[found.level]}] {said}")
        if found.level != "READY":
            st.caption(say(f"readiness.{found.level}"))
        if _stale(workspace, found):
            st.caption(f":orange[:material/update:] {say('readiness.stale')}")
        if st.button(say("readiness.again"), type="tertiary", icon=":material/refresh:"):
            _assessed(workspace)
            st.rerun()
    return found


def _assessed(workspace: api.Workspace) -> api.Readiness:
    """Counted on the spot: a few queries, quicker than a process of its own."""
    with st.spinner(say("readiness.checking")):
        return api.readiness(workspace)


def _stale(workspace: api.Workspace, found: api.Readiness) -> bool:
    newest = read(api.frames.sources, workspace)["imported_at"].max()
    return bool(newest > found.assessed_at)


def checks(found: api.Readiness) -> None:
    """Share of steps or runs that have what each check asks for."""
    st.subheader(say("readiness.checks"), anchor=False)
    lines = api.readiness_lines(found, language())
    rows = pd.DataFrame(
        [
            {
                "label": line.title,
                "share": check.share,
                "present": check.present,
                "total": check.total,
                "level": check.level,
                "count": line.count,
                "shown": line.level,
            }
            for check, line in zip(found.checks, lines, strict=True)
        ]
    )
    show.chart(api.plots.readiness_bars(rows, language()), "readiness-bars", say("readiness.checks"))
    with st.expander(say("decision.table")):
        show.table(
            in_percent(rows, "share"),
            column_order=["label", "share", "count", "shown"],
            column_config={
                "label": st.column_config.TextColumn(say("column.check"), width="medium"),
                "share": percent_column(say("column.share")),
                "count": st.column_config.TextColumn(say("column.present"), width="medium"),
                "shown": say("column.level"),
            },
        )


def gaps(found: api.Readiness) -> None:
    """What each gap blocks later, and how it is closed; the worst first."""
    st.subheader(say("readiness.gaps"), anchor=False)
    lines = api.readiness_lines(found, language())
    open_ones = [pair for pair in zip(found.checks, lines, strict=True) if pair[0].level != "ok"]
    if not open_ones:
        st.caption(f":green[:material/check_circle:] {say('readiness.no_gaps')}")
    for check, line in sorted(open_ones, key=lambda pair: pair[0].level != "missing"):
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{plain(line.title)}**", width="content")
                st.badge(line.level, color="red" if check.level == "missing" else "orange")
                st.markdown(f":small[:gray[{plain(line.count)}]]", width="content")
            st.markdown(
                f":gray[{say('readiness.blocks')}] {plain(line.blocks)}  \n"
                f":gray[{say('readiness.remedy')}] {plain(line.remedy)}"
            )


def tools(workspace: api.Workspace) -> None:
    """Effect classes, guesses marked, to be corrected."""
    rows = read(api.frames.tools, workspace)
    if rows.empty:
        return
    st.subheader(say("readiness.tools"), anchor=False)
    st.caption(say("readiness.tools_text"))
    shown = in_percent(rows, "error_share").assign(effect_is_guess=rows["effect_is_guess"].fillna(False).astype(bool))
    edited = st.data_editor(
        shown,
        hide_index=True,
        key=f"effects-{hash(tuple(shown['effect'].fillna('')))}",
        disabled=["tool", "effect_is_guess", "calls", "error_share", "median_duration_s", "origin"],
        column_order=["tool", "effect", "effect_is_guess", "calls", "error_share", "median_duration_s"],
        column_config={
            "tool": say("column.tool"),
            "effect": st.column_config.SelectboxColumn(
                say("column.effect"), options=_EFFECTS, format_func=lambda name: named("effect", name)
            ),
            "effect_is_guess": st.column_config.CheckboxColumn(say("column.guess")),
            "calls": st.column_config.NumberColumn(say("column.calls"), format="localized"),
            "error_share": percent_column(say("column.error_share")),
            "median_duration_s": st.column_config.NumberColumn(say("column.median_duration"), format="%.2f"),
        },
    )
    changed = [
        (tool, after)
        for tool, before, after in zip(rows["tool"], rows["effect"], edited["effect"], strict=True)
        if after != before and isinstance(after, str)
    ]
    if st.button(say("readiness.save_effects"), icon=":material/save:", disabled=not changed):
        for tool, effect in changed:
            api.set_effect(workspace, tool, cast(Any, effect))
        st.toast(say("readiness.saved", n=len(changed)), icon=":material/save:")
        st.rerun()
