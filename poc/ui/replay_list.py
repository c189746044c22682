"""The experiments of a workspace, and whether there can be one at all."""

from __future__ import annotations

import streamlit as st

from poc import api
from poc.ui import choice, show, work
from poc.ui.reads import read
from poc.ui.replay_form import VERB
from poc.ui.show import empty, moment_column
from poc.ui.words import named, say


def planned(workspace: api.Workspace) -> None:
    """Show planning while it runs, and turn to the new experiment once it is there."""
    job = work.watched(workspace, VERB)
    if job is not None and job.result:
        work.forget(VERB)
        choice.show(job.result["experiment"]["experiment_id"])


def ready(workspace: api.Workspace) -> bool:
    """Whether an experiment can be planned; says what is missing where not."""
    if read(api.frames.counts, workspace)["scored_runs"]:
        return True
    empty(say("replay.needs"), say("replay.needs_text"))
    return False


def table(workspace: api.Workspace) -> None:
    """All experiments, newest first."""
    rows = read(api.frames.experiments, workspace)
    if len(rows) < 2:
        return
    st.subheader(say("replay.experiments"), anchor=False)
    rows = rows.assign(
        mode=[named("modeshort", mode) for mode in rows["mode"]],
        status=[named("status", status) for status in rows["status"]],
    )
    show.table(
        rows,
        column_order=["name", "mode", "status", "trials", "verdict", "simulated", "created_at", "experiment_id"],
        column_config={
            "name": say("column.name"),
            "mode": say("column.mode"),
            "status": say("column.status"),
            "trials": say("column.trials"),
            "verdict": say("column.verdict"),
            "simulated": st.column_config.CheckboxColumn(say("column.simulated")),
            "created_at": moment_column(say("column.created")),
            "experiment_id": say("replay.experiment"),
        },
    )
