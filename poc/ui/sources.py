"""Where the runs came from, and what could not be read."""

from __future__ import annotations

import streamlit as st

from poc import api
from poc.ui import show
from poc.ui.reads import read
from poc.ui.show import empty, moment_column, number
from poc.ui.words import say

_MOST = 500


def table(workspace: api.Workspace) -> None:
    """One row a source with its counts."""
    st.subheader(say("data.sources"), anchor=False)
    rows = read(api.frames.sources, workspace)
    if rows.empty:
        empty(say("data.no_sources"), say("data.no_sources_text"))
        return
    show.table(
        rows,
        column_order=["path", "format", "read", "imported", "rejected", "skipped", "size_bytes", "imported_at"],
        column_config={
            "path": st.column_config.TextColumn(say("column.file"), width="medium"),
            "format": say("column.format"),
            "read": say("column.read"),
            "imported": say("column.imported"),
            "rejected": say("column.rejected"),
            "skipped": say("column.skipped"),
            "size_bytes": st.column_config.NumberColumn(say("column.size"), format="bytes"),
            "imported_at": moment_column(say("column.imported_at")),
        },
    )


def rejects(workspace: api.Workspace) -> None:
    """Every record that could not be read, with place, reason and an excerpt."""
    total = read(api.frames.counts, workspace)["rejects"]
    if not read(api.frames.counts, workspace)["sources"]:
        return
    st.subheader(say("data.rejects"), anchor=False)
    if not total:
        st.caption(f":green[:material/check_circle:] {say('data.no_rejects')}")
        return
    st.markdown(say("data.rejects_text", n=number(total)))
    rows = read(api.frames.rejects, workspace, limit=_MOST)
    show.table(
        rows,
        column_order=["place", "reason", "raw", "path"],
        column_config={
            "place": say("column.place"),
            "reason": st.column_config.TextColumn(say("column.reason"), width="large"),
            "raw": st.column_config.TextColumn(say("column.raw"), width="large"),
            "path": say("column.file"),
        },
    )
    if total > len(rows):
        st.caption(say("data.rejects_more", n=number(len(rows))))
