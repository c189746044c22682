"""The first page's parts."""

from __future__ import annotations

import streamlit as st

from poc import api
from poc.ui.own import own_workspace
from poc.ui.reads import read
from poc.ui.show import Mood, number
from poc.ui.stages import ICONS, PAGES, stages
from poc.ui.words import say

_COLOURS: dict[str, Mood] = {"done": "green", "attention": "orange", "todo": "gray"}


def three_sentences(workspace: api.Workspace) -> None:
    """What logs alone can show, what needs an environment, how far this workspace is."""
    counts = read(api.frames.counts, workspace)
    with st.container(border=True):
        st.markdown(say("start.logs"))
        st.markdown(say("start.environment"))
        if not counts["runs"]:
            st.markdown(say("start.here_empty"))
            return
        names = ("runs", "tasks", "outcomes", "sets", "trials")
        st.markdown(say("start.here", **{name: number(counts[name]) for name in names}))


def way(workspace: api.Workspace) -> None:
    """The six stages as cards, each with its state and a link."""
    st.subheader(say("start.stages"), anchor=False)
    found = stages(workspace)
    for row in (found[:3], found[3:]):
        for place, stage in zip(st.columns(3), row, strict=True):
            with place.container(border=True, height="stretch"):
                st.markdown(f"{ICONS[stage.key]} **{say(f'{stage.key}.title')}**")
                st.caption(say(f"start.{stage.key}_text"))
                st.badge(stage.text, color=_COLOURS[stage.state])
                st.page_link(PAGES[stage.key], label=say("start.open", page=say(f"{stage.key}.title")))


def begin(workspace: api.Workspace) -> None:
    """On the sample: the way to one's own logs."""
    if read(api.is_sample, workspace):
        st.info(say("start.sample_note"), icon=":material/science:")
        own_workspace()
