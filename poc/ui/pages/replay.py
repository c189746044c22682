"""Replay: plan an experiment, see its price and what it sends, run it, watch it, stop and resume it."""

import streamlit as st

from poc.ui import choice, replay_form, replay_list, replay_live
from poc.ui.shell import page
from poc.ui.words import say

with page("replay") as workspace:
    replay_list.planned(workspace)
    chosen = choice.experiment(workspace)
    if chosen:
        replay_live.panel(workspace, chosen)
    if replay_list.ready(workspace):
        with st.expander(say("replay.new"), icon=":material/add_circle:", expanded=chosen is None):
            replay_form.form(workspace)
    replay_list.table(workspace)
