"""Long work on a page: started as a job, watched in a fragment, told about when it ends.

What a visitor started is remembered by its job id, so that its result is
shown once it is there, also after a reload of the page while it ran.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from poc import api, jobs
from poc.ui.show import DASH, duration, error, guarded, number, size
from poc.ui.words import named, note, say

_EVERY_S = 0.7


def begin(
    workspace: api.Workspace, verb: str, argv: Sequence[str] = (), *, secrets: Mapping[str, str] | None = None
) -> None:
    """Start the work and show the page anew."""
    job = jobs.start(workspace, verb, argv, secrets=secrets)
    st.session_state[_key(verb)] = job.job_id
    st.rerun()


def watched(workspace: api.Workspace, verb: str, *, grace_s: float = 20.0) -> jobs.Job | None:
    """Show the work of one verb, and return it once it is done.

    While it runs: how far it is and a way to stop it. After a failure: what,
    where, what to do. None when there is nothing to tell.
    """
    job = jobs.latest(workspace, verb)
    if job is None:
        return None
    state = job.state
    if state == "running":
        st.session_state[_key(verb)] = job.job_id
        with st.container(border=True):
            _live(job.job_id, job, grace_s)
        return None
    if st.session_state.get(_key(verb)) != job.job_id:
        return None
    if state == "cancelled":
        kept = "work.cancelled_import" if verb == "import" else "work.cancelled"
        st.info(say(kept, work=named("verb", verb)), icon=":material/cancel:")
        return None
    problem = job.error
    if problem is not None:
        error(problem)
        return None
    return job


def running(workspace: api.Workspace, verb: str) -> bool:
    """Whether work of this verb runs at the moment."""
    job = jobs.latest(workspace, verb)
    return job is not None and job.running


def stop(job: jobs.Job, *, grace_s: float = 20.0, force: bool = False) -> None:
    """Ask it to stop; the page shows how that goes."""
    jobs.cancel(job, grace_s=grace_s, force=force)


def forget(verb: str) -> None:
    """Tell no more about the last work of this verb."""
    st.session_state.pop(_key(verb), None)


def full_page(job: jobs.Job, title: str, text: str) -> None:
    """Work that has to be done before there is anything to show."""
    with st.container(border=True):
        st.subheader(title, anchor=False)
        st.caption(text)
        _live(job.job_id, job, 20.0)


@st.fragment(run_every=_EVERY_S)
def _live(job_id: str, job: jobs.Job, grace_s: float) -> None:
    with guarded():
        if not job.running:
            st.rerun()
        progress = job.progress
        label = named("verb", job.verb)
        share = progress.fraction if progress else None
        at = note(progress.note) if progress else ""
        said = f"{label}: {at}" if at and at != label else label
        if share is None:
            count = number(progress.done) if progress and progress.done else DASH
            st.progress(0.0, text=f"{said} ({count})")
        else:
            st.progress(share, text=" · ".join([f"{said} ({share:.0%})", *_pace(progress)]))
        if job.cancel_requested:
            st.caption(say("work.stopping"))
            st.button(say("work.kill"), key=f"kill-{job_id}", on_click=stop, args=[job], kwargs={"force": True})
        else:
            st.button(
                say("work.stop"),
                key=f"stop-{job_id}",
                icon=":material/stop_circle:",
                on_click=stop,
                args=[job],
                kwargs={"grace_s": grace_s},
            )


def _pace(progress: jobs.Progress | None) -> list[str]:
    """How much is done, how fast it goes, and how long the rest takes."""
    if progress is None:
        return []
    told: list[str] = []
    if progress.unit == "bytes" and progress.total:
        told.append(say("work.of", done=size(progress.done), total=size(progress.total)))
        if progress.per_s:
            told.append(say("work.per_second", amount=size(progress.per_s)))
    if progress.seconds_left is not None:
        told.append(say("work.left", time=duration(progress.seconds_left)))
    return told


def _key(verb: str) -> str:
    return f"work-{verb}"
