"""The Subgoals page's parts: counts of stored sets, and an editor that stores only what is valid."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from poc import api
from poc.errors import PocError
from poc.ui import show, work
from poc.ui.progress import VERB as SCORE
from poc.ui.reads import read
from poc.ui.show import empty, error, in_percent, number, percent_column, plain
from poc.ui.words import language, say

_NEW = ""
_MONOSPACE = "<style>.st-key-yaml textarea { font-family: monospace; font-size: 0.9rem; line-height: 1.45; }</style>"


def chosen(workspace: api.Workspace) -> str | None:
    """The category to look at; None for a new set."""
    names = [str(name) for name in read(api.frames.subgoal_sets, workspace)["category"]]
    if not names:
        empty(say("subgoals.none"), say("subgoals.none_text"), icon=":material/checklist:")
        return None
    return (
        st.pills(
            say("subgoals.category"),
            [*names, _NEW],
            default=names[0],
            required=True,
            format_func=lambda name: name or f":material/add: {say('subgoals.new')}",
            key="subgoal-category",
        )
        or None
    )


def counts(workspace: api.Workspace, category: str) -> None:
    """How often each subgoal of the set was achieved, and how success goes with it."""
    rows = read(api.frames.subgoal_counts, workspace)
    rows = rows[rows["category"] == category]
    st.subheader(say("subgoals.counts"), anchor=False)
    if not rows["runs"].sum():
        st.info(say("subgoals.not_scored"), icon=":material/info:")
    else:
        show.chart(api.plots.subgoal_rates(rows, language()), "subgoal-rates", say("subgoals.counts"))
    show.table(
        in_percent(rows, "success_if_done", "success_if_not"),
        column_order=["title", "achieved", "runs", "success_if_done", "success_if_not", "median_step", "weight",
                      "required", "subgoal"],
        column_config={
            "title": st.column_config.TextColumn(say("column.title"), width="large"),
            "achieved": say("column.achieved"),
            "runs": say("column.total"),
            "success_if_done": percent_column(say("column.success_done")),
            "success_if_not": percent_column(say("column.success_not")),
            "median_step": st.column_config.NumberColumn(say("column.median_step"), format="%.0f"),
            "weight": say("column.weight"),
            "required": say("column.required"),
            "subgoal": say("column.subgoal"),
        },
    )  # fmt: skip


def editor(workspace: api.Workspace, category: str | None) -> None:
    """The definition as YAML: checked when the field is left, stored when asked."""
    st.subheader(say("subgoals.editor"), anchor=False)
    stored = _stored(workspace, category)
    key = f"yaml-{category}-{language() if category is None else ''}"
    if key not in st.session_state:
        st.session_state[key] = stored or say("subgoals.template")
    with st.container(key="yaml"):
        st.html(_MONOSPACE)
        written = st.text_area(say("subgoals.editor"), key=key, height=420, label_visibility="collapsed")
    st.caption(say("subgoals.editor_help"))
    valid = _checked(written, category)
    if valid is None:
        return
    locked = read(api.is_sample, workspace)
    same = stored is not None and written.strip() == stored.strip()
    with st.container(horizontal=True):
        pressed = st.button(
            say("subgoals.store"),
            type="primary",
            icon=":material/save:",
            disabled=locked or same or work.running(workspace, SCORE),
        )
        if stored is not None and not same:
            st.button(
                say("subgoals.reset"), icon=":material/undo:", on_click=st.session_state.update, args=[{key: stored}]
            )
    if locked:
        st.caption(say("subgoals.sample_locked"))
    elif same:
        st.caption(say("subgoals.unchanged"))
    if pressed:
        _store(workspace, written, valid.category)


def _stored(workspace: api.Workspace, category: str | None) -> str | None:
    if category is None:
        return None
    rows = read(api.frames.subgoal_sets, workspace)
    text = rows[rows["category"] == category]["source_text"].iloc[0]
    return text if isinstance(text, str) else None


def _checked(written: str, category: str | None) -> api.SubgoalSet | None:
    """The set as read, or None after telling what is wrong and in which line."""
    try:
        valid = api.parse_set(written, category or say("subgoals.new"))
    except PocError as problem:
        error(problem)
        return None
    st.success(
        say("subgoals.valid", category=plain(valid.category), n=number(len(valid.subgoals))),
        icon=":material/check_circle:",
    )
    return valid


def _store(workspace: api.Workspace, written: str, category: str) -> None:
    """Through the same verbs as in the shell: load the file, then score."""
    folder = workspace.files / "subgoals"
    folder.mkdir(exist_ok=True)
    safe = "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in category)[:80] or "set"
    path = Path(folder / f"{safe}.yaml")
    path.write_text(written, encoding="utf-8")
    api.load_subgoals(workspace, path)
    st.toast(say("subgoals.stored"), icon=":material/save:")
    if read(api.frames.counts, workspace)["runs"]:
        work.begin(workspace, SCORE)
    st.rerun()
