"""Which experiment the Replay and Decision pages show: chosen once, kept in the address."""

from __future__ import annotations

import streamlit as st

from poc import api
from poc.ui.reads import read
from poc.ui.words import named, say

EXPERIMENT_KEY = "experiment"
"""Its name in the address."""
_REMEMBERED = "chosen-experiment"


def experiment(workspace: api.Workspace) -> str | None:
    """The chosen experiment's id; the newest unless told otherwise; None when there is none."""
    rows = read(api.frames.experiments, workspace).to_dict("records")
    if not rows:
        return None
    options = {row["experiment_id"]: row for row in rows}
    asked = st.query_params.get(EXPERIMENT_KEY) or st.session_state.get(_REMEMBERED, "")
    if asked not in options:
        asked = next(iter(options))
    if len(options) == 1:
        return asked

    def label(experiment_id: str) -> str:
        row = options[experiment_id]
        return say("replay.option", name=row["name"], id=experiment_id[:8], status=named("status", row["status"]))

    chosen = st.selectbox(say("replay.experiment"), list(options), index=list(options).index(asked), format_func=label)
    show(chosen or asked)
    return chosen or asked


def show(experiment_id: str) -> None:
    """Make this the chosen one, on this page and on the next."""
    st.query_params[EXPERIMENT_KEY] = experiment_id
    st.session_state[_REMEMBERED] = experiment_id
