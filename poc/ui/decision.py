"""The Decision page's parts: the verdict as the report tells it, task by task, and the report to take away."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from poc import api
from poc.errors import PocError
from poc.language import LANGUAGES
from poc.ui import document, show
from poc.ui.reads import read
from poc.ui.show import empty, error, in_percent, percent_column
from poc.ui.stages import PAGES
from poc.ui.words import language, say

_NAMES = {"en": "English", "ja": "日本語"}


def verdict(workspace: api.Workspace, experiment_id: str | None) -> None:
    """Everything about one experiment's verdict, or what has to be done before there is one."""
    if experiment_id is None:
        empty(say("decision.none"), say("decision.none_text"), icon=":material/gavel:")
        st.page_link(PAGES["replay"], label=say("shell.continue", page=say("replay.title")))
        return
    try:
        decided = read(api.load_verdict, workspace, experiment_id) is not None
        page = read(api.report_document, workspace, experiment_id, language=language()) if decided else None
    except PocError as problem:
        error(problem)
        _again(workspace, experiment_id)
        return
    if page is None:
        _decide(workspace, experiment_id)
        return
    document.summary(page.summary)
    _report(workspace, experiment_id)
    first, *others = page.sections
    st.subheader(document.text(first.title), anchor=False)
    document.section(first)
    _tasks(workspace, experiment_id)
    for section in others:
        with st.expander(f"**{document.text(section.title)}**"):
            document.section(section)


def _decide(workspace: api.Workspace, experiment_id: str) -> None:
    """Offer to decide, where there is something to decide on."""
    trials = len(read(api.frames.trials, workspace, experiment_id))
    if not trials:
        empty(say("decision.no_trials"), say("decision.no_trials_text"), icon=":material/hourglass_empty:")
        st.page_link(PAGES["replay"], label=say("shell.continue", page=say("replay.title")))
        return
    with st.container(border=True):
        st.markdown(say("decision.decide_text", trials=trials))
        pressed = st.button(say("decision.decide"), type="primary", icon=":material/gavel:")
    if pressed:
        api.decide(workspace, experiment_id)
        st.rerun()


def _again(workspace: api.Workspace, experiment_id: str) -> None:
    """Decide anew from the same stored trials, where they changed or the verdict cannot be read."""
    if st.button(say("decision.again"), icon=":material/gavel:", type="tertiary"):
        api.decide(workspace, experiment_id)
        st.rerun()


def _report(workspace: api.Workspace, experiment_id: str) -> None:
    """The report in both languages, made when asked for, and deciding again."""
    with st.container(border=True):
        st.markdown(f"**{say('decision.report')}** :gray[{say('decision.report_text')}]")
        with st.container(horizontal=True):
            for code in LANGUAGES:
                st.download_button(
                    say("decision.report_download", name=_NAMES[code]),
                    data=_maker(workspace, experiment_id, code),
                    file_name=f"report-{experiment_id[:8]}-{code}.html",
                    mime="text/html",
                    icon=":material/download:",
                    key=f"report-{code}",
                    on_click="ignore",
                )
            _again(workspace, experiment_id)


def _maker(workspace: api.Workspace, experiment_id: str, code: str) -> Callable[[], bytes]:
    """The report's bytes, built only when somebody downloads it."""

    def make() -> bytes:
        return read(api.report, workspace, experiment_id, language=code).encode()

    return make


def _tasks(workspace: api.Workspace, experiment_id: str) -> None:
    """Success of each task in each arm, with the difference of the primary contrast; worst first."""
    trials = read(api.frames.trials, workspace, experiment_id)
    if trials.empty:
        return
    plan = read(api.load_experiment, workspace, experiment_id).plan
    treatment, control = plan.primary
    trials = trials.assign(
        task_text=trials["task_text"].fillna(""), task_key=trials["task_key"].fillna(trials["task_id"])
    )
    table = trials.pivot_table(
        index=["category", "task_key", "task_text"],
        columns="arm",
        values="success",
        aggfunc="mean",
        dropna=False,
        observed=True,
    ).dropna(how="all")
    table = table.reindex(columns=[arm for arm in plan.arms if arm in table.columns])
    if treatment in table and control in table:
        table["difference"] = table[treatment] - table[control]
        table = table.sort_values("difference", kind="stable")
    shares = [*table.columns]
    rows: pd.DataFrame = in_percent(table.reset_index(), *shares)
    st.subheader(say("decision.tasks"), anchor=False)
    st.caption(say("decision.tasks_text"))
    show.table(
        rows,
        column_order=["task_key", "category", *plan.arms, "difference", "task_text"],
        column_config={
            "task_key": say("column.task"),
            "category": say("column.category"),
            "task_text": st.column_config.TextColumn(say("run.task"), width="large"),
            "difference": percent_column(say("decision.difference")),
            **{arm: percent_column(arm) for arm in plan.arms},
        },
    )
