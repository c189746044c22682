"""The Readiness page's parts. Shows what the check found; judges nothing."""

from __future__ import annotations

from typing import Any, cast

import pandas as pd
import streamlit as st

from poc import api
from poc.ui import show
from poc.ui.reads import read
from poc.ui.runs import RUN_KEY
from poc.ui.show import Mood, empty, in_percent, number, percent_column, plain
from poc.ui.stages import PAGES
from poc.ui.words import language, named, say

_MOODS: dict[str, Mood] = {"READY": "green", "PARTIAL": "orange", "NOT READY": "red"}
_ICONS = {"READY": ":material/check_circle:", "PARTIAL": ":material/error:", "NOT READY": ":material/cancel:"}
_EFFECTS = ("read", "write", "irreversible")
_SEVERITIES: dict[str, Mood] = {"stops": "red", "limits": "orange", "note": "gray"}
_CASES = 200


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


def gaps(workspace: api.Workspace, found: api.Readiness) -> None:
    """Each gap and oddity, the worst first: what it blocks, how it is closed, what is behind it; all as a list."""
    st.subheader(say("readiness.gaps"), anchor=False)
    listed = api.readiness_findings(found, language())
    if not listed:
        st.caption(f":green[:material/check_circle:] {say('readiness.no_gaps')}")
        return
    _todo(workspace, found)
    for finding in listed:
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{plain(finding.title)}**", width="content")
                st.badge(finding.severity_name, color=_SEVERITIES[finding.severity])
                st.markdown(f":small[:gray[{plain(finding.count)}]]", width="content")
            st.markdown(
                f":gray[{say('readiness.blocks')}] {plain(finding.blocks)}  \n"
                f":gray[{say('readiness.remedy')}] {plain(finding.remedy)}"
            )
            _behind(workspace, finding)


def _todo(workspace: api.Workspace, found: api.Readiness) -> None:
    """The findings for the team that owns the logs, to be taken along."""
    st.caption(say("readiness.todo_text"))
    with st.container(horizontal=True):
        st.download_button(
            say("readiness.todo_markdown"),
            lambda: api.todo_markdown(workspace, found, language()),
            file_name="logging-todo.md",
            mime="text/markdown",
            icon=":material/checklist:",
        )
        st.download_button(
            say("readiness.todo_csv"),
            lambda: api.todo_csv(workspace, found, language()).encode("utf-8-sig"),
            file_name="logging-todo.csv",
            mime="text/csv",
            icon=":material/table:",
        )


def _behind(workspace: api.Workspace, finding: api.Finding) -> None:
    """A good record, and the cases: choosing one opens its run."""
    with st.expander(say("readiness.example")):
        st.code(finding.example, language="json", wrap_lines=True)
    if not finding.cases or not st.toggle(say("readiness.show_cases"), key=f"cases-{finding.check_id}"):
        return
    rows = read(api.evidence, workspace, finding.check_id, limit=_CASES)
    event = st.dataframe(
        rows,
        hide_index=True,
        placeholder=show.DASH,
        on_select="rerun",
        selection_mode="single-row",
        key=f"evidence-{finding.check_id}",
        column_order=["native_id", "step", "tool", "status", "other", "seconds", "excerpt", "path"],
        column_config={
            "native_id": say("column.native_id"),
            "step": say("column.step"),
            "tool": say("column.tool"),
            "status": say("column.status"),
            "other": say("column.other_step"),
            "seconds": st.column_config.NumberColumn(say("column.seconds"), format="%.2f"),
            "excerpt": st.column_config.TextColumn(say("column.raw"), width="large"),
            "path": say("column.file"),
        },
    )
    if finding.cases > len(rows):
        st.caption(say("readiness.more_cases", shown=number(len(rows)), n=number(finding.cases)))
    picked = event["selection"]["rows"]
    if picked:
        st.page_link(
            PAGES["data"],
            label=say("progress.read_run"),
            icon=":material/menu_book:",
            query_params={RUN_KEY: str(rows["run_id"].iloc[picked[0]])},
        )


def parts(workspace: api.Workspace, found: api.Readiness) -> None:
    """How far each check holds in each file and for each tool; only what is not ok somewhere."""
    titles = {line.check_id: line.title for line in api.readiness_findings(found, language())}
    for by, label in (("source", "readiness.by_source"), ("tool", "readiness.by_tool")):
        rows = read(api.readiness_shares, workspace, by)
        rows = rows[rows["check_id"].isin(list(titles))]
        name = "path" if by == "source" else "tool"
        if rows.empty or rows[name].nunique() < 2:
            continue
        with st.expander(say(label)):
            wide = rows.assign(check=rows["check_id"].map(titles)).pivot_table(
                index=name, columns="check", values="share", aggfunc="min", sort=False
            )
            if by == "source":
                wide.index = [str(path).rsplit("/", 1)[-1] for path in wide.index]
            shown = (wide * 100).reset_index(names=say("column.file" if by == "source" else "column.tool"))
            show.table(shown, column_config={check: percent_column(check) for check in wide.columns})


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
