"""The Progress page's parts. Shows stored scores; computes none."""

from __future__ import annotations

import streamlit as st

from poc import api
from poc.ui import show, work
from poc.ui.reads import read
from poc.ui.runs import RUN_KEY
from poc.ui.show import empty, number, percent, plain
from poc.ui.stages import PAGES
from poc.ui.words import language, say

VERB = "score"
_CONFIDENCE = "95%"
_MOST = 500
_ALL = ""


def scoring(workspace: api.Workspace) -> bool:
    """Score, show what it did; True when there is something scored to show."""
    counts = read(api.frames.counts, workspace)
    job = work.watched(workspace, VERB)
    if job is not None and job.result:
        done = job.result["score"]
        st.success(
            say("progress.scored", scored=number(done["scored"]), unassigned=number(done["unassigned"])),
            icon=":material/check_circle:",
        )
    if not counts["scored_runs"]:
        empty(say("progress.none"), say("progress.none_text"), icon=":material/trending_up:")
    if counts["sets"] and counts["runs"]:
        first = not counts["scored_runs"]
        label = say("progress.score" if first else "progress.score_again")
        busy = work.running(workspace, VERB)
        if st.button(label, type="primary" if first else "tertiary", icon=":material/calculate:", disabled=busy):
            work.begin(workspace, VERB)
    elif not counts["sets"]:
        st.page_link(PAGES["subgoals"], label=say("shell.continue", page=say("subgoals.title")))
    return counts["scored_runs"] > 0


def against_outcome(workspace: api.Workspace) -> None:
    """AUROC with its interval per category, and the plot of the chosen one."""
    st.subheader(say("progress.outcome"), anchor=False, help=say("progress.auroc_help"))
    st.caption(say("progress.outcome_text"))
    entries = read(api.validity, workspace)
    names = [entry.category or _ALL for entry in entries]
    chosen = _ALL
    if len(names) > 2:
        chosen = st.pills(
            say("data.category"),
            [_ALL, *(name for name in names if name != _ALL)],
            default=_ALL,
            required=True,
            format_func=lambda name: name or say("progress.all_categories"),
            key="progress-category",
        )
    entry = entries[names.index(chosen)]
    figure, facts = st.columns([3, 1], gap="medium")
    frame = read(api.frames.progress_by_outcome, workspace)
    if chosen:
        frame = frame[frame["category"] == chosen]
    with figure:
        show.chart(api.plots.progress_by_outcome(frame, language()), "progress-by-outcome", say("progress.outcome"))
    with facts:
        label = say("progress.auroc", category=plain(chosen) or say("progress.all_categories"))
        if entry.auroc is None or entry.auroc.estimate is None:
            st.metric(label, "—", help=say("progress.auroc_help"))
            st.caption(plain(entry.reason(language()) or say("progress.auroc_none")))
        else:
            st.metric(label, number(entry.auroc.estimate, 2), help=say("progress.auroc_help"))
            st.caption(
                say(
                    "progress.auroc_detail",
                    confidence=_CONFIDENCE,
                    low=number(entry.auroc.low, 2),
                    high=number(entry.auroc.high, 2),
                    runs=number(entry.runs),
                    tasks=number(entry.tasks),
                )
            )


def one_run(workspace: api.Workspace) -> None:
    """The curve of one run that the reader chooses."""
    st.subheader(say("progress.curve"), anchor=False)
    rows = read(api.frames.runs, workspace, limit=_MOST)
    rows = rows[rows["progress"].notna()]
    if rows.empty:
        return
    labels = {
        row["run_id"]: say(
            "progress.run_option",
            id=row["native_id"] or row["run_id"][:8],
            category=row["category"],
            progress=percent(row["progress"]),
            outcome=percent(row["outcome"]),
        )
        for row in rows.to_dict("records")
    }
    options = list(labels)
    asked = st.query_params.get(RUN_KEY, "")
    index = options.index(asked) if asked in labels else 0
    run_id = st.selectbox(say("progress.run"), options, index=index, format_func=labels.__getitem__) or options[0]
    st.query_params[RUN_KEY] = run_id
    steps = read(api.frames.steps, workspace, run_id)
    show.chart(api.plots.run_progress(steps, language()), "run-progress", say("progress.curve"))
    st.page_link(
        PAGES["data"], label=say("progress.read_run"), icon=":material/menu_book:", query_params={RUN_KEY: run_id}
    )
