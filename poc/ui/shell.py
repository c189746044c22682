"""The frame around every page: which workspace, which language, how far, what next.

Knows no page's content. A page is::

    with page("data") as workspace:
        ...
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

from poc import api, jobs
from poc.errors import PocError
from poc.language import LANGUAGES
from poc.ui import work
from poc.ui.reads import read, workspace_at
from poc.ui.show import error, guarded, plain
from poc.ui.stages import ICONS, PAGES, Stage, next_stage, stages
from poc.ui.words import LANGUAGE_KEY, language, say

SAMPLE = Path("workspaces/sample.duckdb")
WORKSPACE_KEY = "workspace"
_SIGNS = {"done": ":green[:material/check_circle:]", "attention": ":orange[:material/error:]"}
_OPEN = ":gray[:material/radio_button_unchecked:]"


def pages() -> list[st.Page]:
    """The pages in the order of the process, named in the reader's language."""
    return [
        st.Page(file, title=say(f"{key}.title"), icon=ICONS[key], url_path=key, default=key == "start")
        for key, file in PAGES.items()
    ]


def sidebar() -> None:
    """Workspace, stages with the next thing to do, language."""
    with st.sidebar:
        with guarded():
            path = chosen()
            _workspace_box(path)
            if _usable(path):
                _stage_list(stages(workspace_at(path)))
        st.segmented_control(
            say("shell.language"),
            LANGUAGES,
            default=language(),
            format_func=lambda code: {"en": "English", "ja": "日本語"}[code],
            key=LANGUAGE_KEY,
            bind="query-params",
            required=True,
        )


@contextmanager
def page(key: str) -> Iterator[api.Workspace]:
    """Title, badge and errors of a page; the page's own part runs only when there is a workspace to show."""
    path = chosen()
    title, badge = st.columns([5, 2], vertical_alignment="bottom")
    title.title(say(f"{key}.title"), anchor=False)
    workspace: api.Workspace | None = None
    with guarded():
        workspace = _ready(path)
    if workspace is None:
        st.stop()
    with badge.container(horizontal=True, horizontal_alignment="right"), guarded():
        if read(api.is_sample, workspace):
            st.badge(
                say("shell.sample_badge"), icon=":material/science:", color="violet", help=say("shell.sample_help")
            )
        else:
            st.badge(plain(path.name), icon=":material/database:", color="gray")
    st.caption(say(f"{key}.purpose"))
    with guarded():
        yield workspace


def chosen() -> Path:
    """The workspace of this visitor: what they chose, else the address, else POC_WORKSPACE, else the sample."""
    if WORKSPACE_KEY not in st.session_state:
        asked = st.query_params.get(WORKSPACE_KEY)
        # The address may only name a workspace that is there: a link must not make files.
        if asked and Path(asked).is_file():
            st.session_state[WORKSPACE_KEY] = asked
        else:
            st.session_state[WORKSPACE_KEY] = os.environ.get("POC_WORKSPACE") or str(SAMPLE)
    path = Path(st.session_state[WORKSPACE_KEY]).expanduser().resolve()
    if path == _default():
        st.query_params.pop(WORKSPACE_KEY, None)
    elif path.is_file():
        st.query_params[WORKSPACE_KEY] = str(path)
    return path


def choose(path: Path | str) -> None:
    """Show another workspace from the next rerun on."""
    st.session_state[WORKSPACE_KEY] = str(path)


def next_button(key: str) -> None:
    """A link to another page, for the end of a page."""
    st.page_link(PAGES[key], label=say("shell.continue", page=say(f"{key}.title")), icon=":material/arrow_forward:")


def _default() -> Path:
    return Path(os.environ.get("POC_WORKSPACE") or SAMPLE).expanduser().resolve()


def _usable(path: Path) -> bool:
    return path.is_file() and not _building(path)


def _building(path: Path) -> jobs.Job | None:
    """The job that builds the sample at this path, while it runs."""
    job = jobs.latest(workspace_at(path), "sample")
    return job if job is not None and job.running else None


def _ready(path: Path) -> api.Workspace | None:
    """The workspace, or None where it is being built or has yet to be made (and the page says so)."""
    workspace = workspace_at(path)
    is_sample_place = path == SAMPLE.resolve()
    job = jobs.latest(workspace, "sample")
    if job is not None and job.running:
        work.full_page(job, say("shell.building"), say("shell.building_text"))
        return None
    if is_sample_place and not path.is_file() and (job is None or job.state == "done"):
        path.parent.mkdir(parents=True, exist_ok=True)
        work.full_page(jobs.start(workspace, "sample"), say("shell.building"), say("shell.building_text"))
        return None
    if job is not None and job.state != "done" and not (path.is_file() and _whole_sample(workspace)):
        problem = job.error or PocError(say("shell.build_stopped"))
        error(problem)
        if st.button(say("shell.build_again"), type="primary", icon=":material/refresh:"):
            jobs.start(workspace, "sample")
            st.rerun()
        return None
    if not path.exists():
        _offer_new(path)
        return None
    return read(_opened, workspace)


def _opened(workspace: api.Workspace) -> api.Workspace:
    """Check once for each state of the file that it is a workspace of this version."""
    api.open(workspace.path, create=False)
    return workspace


def _whole_sample(workspace: api.Workspace) -> bool:
    return read(api.is_sample, workspace) and read(api.frames.counts, workspace)["verdicts"] > 0


def _offer_new(path: Path) -> None:
    with st.container(border=True):
        st.markdown(f"**{say('shell.no_file')}**  \n{plain(path)}")
        st.caption(say("shell.no_file_text"))
        with st.container(horizontal=True):
            if st.button(say("shell.create"), type="primary", icon=":material/add:"):
                api.open(path)
                st.rerun()
            st.button(
                say("shell.to_sample"), icon=":material/science:", on_click=choose, args=[SAMPLE], key="offer-sample"
            )


def _workspace_box(path: Path) -> None:
    is_sample = path == SAMPLE.resolve() or (_usable(path) and read(api.is_sample, workspace_at(path)))
    with st.container(border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/database: **{plain(path.name)}**", help=plain(path), width="content")
            if is_sample:
                st.badge(say("shell.sample_short"), color="violet")
        with st.popover(say("shell.switch"), width="stretch"):
            with st.form("switch", border=False):
                typed = st.text_input(say("shell.path"), value=str(path), help=say("shell.path_help"))
                if st.form_submit_button(say("shell.open"), type="primary", width="stretch") and typed.strip():
                    choose(typed.strip())
                    st.rerun()
            st.button(
                say("shell.to_sample"),
                icon=":material/science:",
                on_click=choose,
                args=[SAMPLE],
                width="stretch",
                disabled=path == SAMPLE.resolve(),
            )


def _stage_list(found: list[Stage]) -> None:
    nearest = next_stage(found)
    lines = [
        f"{_SIGNS.get(stage.state, _OPEN)} {say(f'{stage.key}.title')} :small[:gray[{stage.text}]]" for stage in found
    ]
    st.markdown("  \n".join(lines))
    if nearest is not None:
        st.page_link(PAGES[nearest.key], label=say("shell.next", todo=nearest.todo), icon=":material/arrow_forward:")
    else:
        st.caption(f":material/done_all: {say('shell.all_done')}")
