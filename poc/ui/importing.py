"""The Import tab: files or paths, the columns of a table, outcomes, and what an import did.

Uploaded files are laid down beside the workspace, named by their content, so
that the same upload is the same source. Reading them is the shell's `import`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import streamlit as st

from poc import api
from poc.ui import work
from poc.ui.mapping import as_yaml, mapping_for
from poc.ui.own import own_workspace
from poc.ui.reads import read
from poc.ui.show import number
from poc.ui.stages import PAGES
from poc.ui.words import say

VERB = "import"


def running(workspace: api.Workspace) -> None:
    """Progress of an import, and its result once it is done."""
    job = work.watched(workspace, VERB)
    if job is None or not job.result:
        return
    result = job.result
    with st.container(border=True):
        told = say("data.result", runs=number(result["runs"]), steps=number(result["steps"]))
        st.markdown(f":green[:material/check_circle:] **{told}**")
        counts = ("read", "imported", "rejected", "skipped")
        st.caption(say("data.result_counts", **{name: number(result[name]) for name in counts}))
        joined = result.get("outcomes")
        if joined:
            st.caption(
                say("data.result_outcomes", matched=number(joined["matched"]), unmatched=number(joined["unmatched"]))
            )
        st.page_link(
            PAGES["readiness"],
            label=say("shell.continue", page=say("readiness.title")),
            icon=":material/arrow_forward:",
        )


def form(workspace: api.Workspace) -> None:
    """Everything an import needs; on the sample the way to a workspace of one's own instead."""
    if read(api.is_sample, workspace):
        own_workspace()
        return
    files, paths = st.columns(2, gap="medium")
    uploads = files.file_uploader(
        say("data.files"), accept_multiple_files=True, help=say("data.files_help"), key="log-files"
    )
    typed = paths.text_area(say("data.paths"), height=110, placeholder="/data/logs/traces.jsonl", key="log-paths")
    outcomes = st.file_uploader(say("data.outcomes"), type=["csv"], help=say("data.outcomes_help"), key="outcome-file")
    chosen = [_laid_down(workspace, upload) for upload in uploads]
    chosen += [Path(line.strip()).expanduser().resolve() for line in typed.splitlines() if line.strip()]
    mapping = mapping_for(chosen)
    busy = work.running(workspace, VERB)
    if not st.button(say("data.import"), type="primary", icon=":material/download:", disabled=busy):
        return
    if not chosen:
        st.warning(say("data.nothing_chosen"))
        return
    argv = [str(path) for path in chosen]
    if mapping is not None:
        argv += ["--mapping", str(_kept(workspace, "mapping.yaml", as_yaml(mapping).encode()))]
    if outcomes is not None:
        argv += ["--outcomes", str(_laid_down(workspace, outcomes))]
    work.begin(workspace, VERB, argv)


def _laid_down(workspace: api.Workspace, upload: Any) -> Path:
    return _kept(workspace, upload.name, upload.getbuffer())


def _kept(workspace: api.Workspace, name: str, content: Any) -> Path:
    """The content as a file beside the workspace. Only the last part of a name is used: it is data, not a path."""
    digest = hashlib.sha256(content).hexdigest()[:16]
    safe = "".join(sign for sign in Path(name).name if sign.isprintable() and sign not in '\\/:*?"<>|')[-100:] or "file"
    folder = workspace.files / "uploads" / digest
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / safe.lstrip(".")
    if not path.exists():
        part = path.with_name(path.name + ".part")
        part.write_bytes(content)
        part.replace(path)
    return path
