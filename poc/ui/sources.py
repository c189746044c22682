"""Where the runs came from, and what could not be read."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from poc import api
from poc.ui import show
from poc.ui.reads import read
from poc.ui.show import DASH, empty, moment_column, number
from poc.ui.words import say

_A_PAGE = 50
_MOST = 100_000
"""Rejects that a saved file holds at most."""


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
    kinds = read(api.frames.reject_kinds, workspace)
    files, reasons = st.columns(2)
    names = sorted({str(path) for path in kinds["path"].dropna()})
    source = files.selectbox(
        say("column.file"), ["", *names], format_func=lambda path: Path(path).name or say("data.all"), key="reject-file"
    )
    listed = kinds[kinds["path"] == source] if source else kinds
    reason = reasons.selectbox(
        say("column.reason"),
        ["", *dict.fromkeys(listed["kind"])],
        format_func=lambda kind: kind or say("data.all"),
        key=f"reject-reason-{source}",
    )
    chosen = {"source": source or None, "reason": reason or None}
    matching = read(api.frames.reject_count, workspace, **chosen)
    pages = max(1, -(-matching // _A_PAGE))
    place = st.empty()
    page = st.pagination(pages, key=f"reject-page-{source}-{reason}") if pages > 1 else 1
    rows = read(api.frames.rejects, workspace, **chosen, limit=_A_PAGE, offset=(page - 1) * _A_PAGE)
    place.dataframe(
        rows,
        hide_index=True,
        placeholder=DASH,
        column_order=["place", "reason", "raw", "path"],
        column_config={
            "place": say("column.place"),
            "reason": st.column_config.TextColumn(say("column.reason"), width="large"),
            "raw": st.column_config.TextColumn(say("column.raw"), width="large"),
            "path": say("column.file"),
        },
    )
    st.download_button(
        say("data.rejects_save"),
        lambda: read(api.frames.rejects, workspace, **chosen, limit=_MOST).to_csv(index=False).encode("utf-8-sig"),
        file_name="rejects.csv",
        mime="text/csv",
        icon=":material/save:",
        key="rejects-save",
    )
    if matching > _MOST:
        st.caption(say("data.rejects_more", n=number(_MOST)))
