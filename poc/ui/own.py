"""From the sample to a workspace of one's own. Knows names and paths, no content."""

from __future__ import annotations

import re

import streamlit as st

from poc import api
from poc.ui.shell import SAMPLE, choose
from poc.ui.stages import PAGES
from poc.ui.words import say


def own_workspace() -> None:
    """A form that makes a new workspace beside the sample and opens it on the Data page."""
    with st.form("own", border=True):
        st.markdown(f":material/add_circle: **{say('own.title')}**")
        st.caption(say("own.text"))
        name = st.text_input(say("own.name"), placeholder="team", max_chars=60).strip()
        if not st.form_submit_button(say("own.create"), type="primary", icon=":material/arrow_forward:"):
            return
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
            st.warning(say("own.bad_name"))
            return
        path = (SAMPLE.parent / f"{name}.duckdb").resolve()
        known = path.exists()
        api.open(path)
        choose(path)
    if known:
        st.toast(say("own.exists"))
    st.switch_page(PAGES["data"])
