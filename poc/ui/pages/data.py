"""Data: import logs, see what was read and what was not, read a run."""

import streamlit as st

from poc.ui import importing, runs, sources
from poc.ui.shell import page
from poc.ui.words import say

with page("data") as workspace:
    importing.running(workspace)
    listed, imports, origins = st.tabs([say("data.tab_runs"), say("data.tab_import"), say("data.tab_sources")])
    with listed:
        runs.table(workspace)
    with imports:
        importing.form(workspace)
    with origins:
        sources.table(workspace)
        sources.rejects(workspace)
