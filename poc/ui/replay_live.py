"""One experiment on the Replay page: what it would cost and send, then how it goes, read from its journal."""

from __future__ import annotations

import json
import os
from typing import Any

import streamlit as st

from poc import api, jobs
from poc.ui import show, work
from poc.ui.reads import read
from poc.ui.replay_form import key_field, key_for
from poc.ui.server import MODEL, bring_back
from poc.ui.show import (
    DASH,
    dollars,
    duration,
    guarded,
    in_percent,
    known,
    list_separator,
    number,
    percent,
    percent_column,
    plain,
    pretty,
)
from poc.ui.stages import PAGES
from poc.ui.words import named, say

VERB = "replay run"
_GRACE_S = 90.0
"""Calls in flight are awaited when a replay is stopped: they are paid for."""


def panel(workspace: api.Workspace, experiment_id: str) -> None:
    """Estimate and preview with the start button; or the live status with stop and resume; then the trials."""
    state = api.status(workspace, experiment_id)
    experiment = read(api.load_experiment, workspace, experiment_id)
    job = _job(workspace, experiment_id)
    with st.container(border=True):
        _head(experiment, state)
        if job is not None and job.running:
            _live(workspace, experiment_id, job)
            return
        if job is not None:
            _ending(workspace, job)
        if state.done:
            _figures(state)
        if state.state != "finished":
            _before(workspace, experiment, fresh=state.state == "planned")
            _start(workspace, experiment, resume=state.state == "stopped")
    if state.done:
        st.page_link(PAGES["decision"], label=say("replay.decide"), icon=":material/gavel:")
        _trials(workspace, experiment_id)


def _job(workspace: api.Workspace, experiment_id: str) -> jobs.Job | None:
    return next((job for job in jobs.jobs(workspace, VERB) if experiment_id in job.argv), None)


def _head(experiment: Any, state: Any) -> None:
    plan = experiment.plan
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(plan.name)}** :gray[{experiment.experiment_id[:8]}]", width="content")
        st.badge(named("modeshort", plan.mode), color="gray")
        st.badge(plain(plan.model.name), color="gray", icon=":material/smart_toy:")
        if state.simulated or plan.model.name == MODEL:
            st.badge(say("replay.simulated_badge"), color="violet", icon=":material/science:")
    st.caption(say(f"replay.state.{state.state}"))


def _ending(workspace: api.Workspace, job: jobs.Job) -> None:
    """Why the last session ended, where that is not simply its end."""
    shown = work.watched(workspace, VERB)
    if shown is not None and shown.job_id == job.job_id and shown.result and shown.result.get("message"):
        st.info(plain(shown.result["message"]), icon=":material/info:")


@st.fragment(run_every=1.0)
def _live(workspace: api.Workspace, experiment_id: str, job: jobs.Job) -> None:
    with guarded():
        if not job.running:
            st.rerun()
        state = api.status(workspace, experiment_id)
        share = state.done / state.total if state.total else 0.0
        left = f" · {say('replay.left', time=duration(state.eta_s))}" if state.eta_s is not None else ""
        st.progress(share, text=say("replay.live_of", done=number(state.done), total=number(state.total)) + left)
        _figures(state)
        if job.cancel_requested:
            st.caption(f":material/hourglass_top: {say('work.stopping')}")
            st.button(say("work.kill"), key="replay-kill", on_click=work.stop, args=[job], kwargs={"force": True})
        else:
            st.button(
                say("work.stop"),
                key="replay-stop",
                icon=":material/stop_circle:",
                on_click=work.stop,
                args=[job],
                kwargs={"grace_s": _GRACE_S},
            )


def _figures(state: Any) -> None:
    failed = sum(arm.failed for arm in state.arms)
    places = st.columns(4)
    places[0].metric(say("replay.live_trials"), f"{number(state.done)} / {number(state.total)}")
    places[1].metric(say("replay.live_tokens"), number(state.tokens))
    places[2].metric(say("replay.live_usd"), dollars(state.cost_usd).replace("\\", ""))
    places[3].metric(say("replay.live_failures"), number(failed))


def _before(workspace: api.Workspace, experiment: Any, *, fresh: bool) -> None:
    """What would be spent, where calls would go, and one request as it would leave."""
    estimate = experiment.estimate
    if estimate is not None:
        st.markdown(f"**{say('replay.estimate' if fresh else 'replay.estimate_was')}**")
        shown = [
            ("replay.estimate_trials", number(estimate.trials)),
            ("replay.estimate_calls", f"≈ {number(estimate.requests)}"),
            ("replay.estimate_tokens", f"≈ {number(estimate.input_tokens + estimate.output_tokens)}"),
            ("replay.estimate_usd", say("replay.price_unknown") if estimate.usd is None else f"≈ {_usd(estimate.usd)}"),
            ("replay.estimate_time", DASH if estimate.seconds is None else f"≈ {duration(estimate.seconds)}"),
        ]
        for place, (key, value) in zip(st.columns(len(shown)), shown, strict=True):
            place.metric(say(key), value)
        worst = say("replay.price_unknown") if estimate.worst_usd is None else dollars(estimate.worst_usd)
        st.caption(
            say(
                "replay.estimate_note",
                encoding=plain(estimate.encoding),
                tokens=number(estimate.worst_tokens),
                usd=worst,
            )
        )
        if estimate.detectable is not None:
            st.caption(say("replay.detectable", points=number(estimate.detectable * 100)))
    _preview(workspace, experiment.experiment_id)


def _preview(workspace: api.Workspace, experiment_id: str) -> None:
    with guarded():
        shown = read(api.preview, workspace, experiment_id)
        hosts = list_separator().join(f"**{plain(host)}**" for host in shown.hosts)
        icon = ":material/public:" if shown.leaves else ":material/lan:"
        st.markdown(f"{icon} {say('replay.hosts' if shown.leaves else 'replay.hosts_local', hosts=hosts)}")
        if shown.leaves and not shown.encrypted:
            st.warning(say("replay.unencrypted"), icon=":material/lock_open:")
        with st.expander(say("replay.preview"), icon=":material/visibility:"):
            if not shown.redacting:
                st.caption(say("replay.not_redacting"))
            elif shown.redacted:
                what = list_separator().join(f"{plain(kind)} × {count}" for kind, count in shown.redacted.items())
                st.caption(say("replay.redacted", what=what))
            else:
                st.caption(say("replay.redacted_none"))
            st.code(
                json.dumps(shown.request, indent=2, ensure_ascii=False), language="json", wrap_lines=True, height=380
            )


def _start(workspace: api.Workspace, experiment: Any, *, resume: bool) -> None:
    variable = experiment.plan.model.api_key_env
    simulated = experiment.plan.model.name == MODEL
    if not simulated and not os.environ.get(variable) and not key_for(variable):
        key_field(variable, "start")
    label, icon = ("replay.resume", "resume") if resume else ("replay.start", "play_arrow")
    busy = work.running(workspace, VERB)
    if st.button(say(label), type="primary", icon=f":material/{icon}:", disabled=busy, key="replay-start"):
        with st.spinner(say("replay.server_starting") if simulated else " "):
            bring_back(workspace, experiment.plan.model.base_url)
        secrets = {} if simulated else key_for(variable)
        work.begin(workspace, VERB, ["--experiment", experiment.experiment_id], secrets=secrets)


def _trials(workspace: api.Workspace, experiment_id: str) -> None:
    rows = read(api.frames.trials, workspace, experiment_id)
    if rows.empty:
        return
    rows = in_percent(rows, "success", "final_progress")
    rows["stop_reason"] = [named("stop", reason) if known(reason) else None for reason in rows["stop_reason"]]
    with st.expander(say("replay.trials"), icon=":material/list:"):
        event = show.table(
            rows,
            on_select="rerun",
            selection_mode="single-row",
            key=f"trials-{experiment_id}",
            column_order=["task_key", "category", "arm", "success", "final_progress", "steps", "errors", "input_tokens",
                          "output_tokens", "model_latency_s", "stop_reason"],
            column_config={
                "task_key": say("column.task"),
                "category": say("column.category"),
                "arm": say("column.arm"),
                "success": percent_column(say("column.outcome")),
                "final_progress": percent_column(say("column.progress")),
                "steps": say("column.steps"),
                "errors": say("column.errors"),
                "input_tokens": st.column_config.NumberColumn(say("column.input_tokens"), format="localized"),
                "output_tokens": st.column_config.NumberColumn(say("column.output_tokens"), format="localized"),
                "model_latency_s": st.column_config.NumberColumn(say("column.latency"), format="%.2f"),
                "stop_reason": say("column.stop_reason"),
            },
        )  # fmt: skip
        picked = event["selection"]["rows"]
        if picked:
            _trial(workspace, rows.iloc[picked[0]])


def _trial(workspace: api.Workspace, trial: Any) -> None:
    st.markdown(f"**{say('replay.trial_steps')}** :gray[{plain(trial['task_key'])} · {plain(trial['arm'])}]")
    for step in read(api.frames.replay_steps, workspace, trial["trial_id"]).to_dict("records"):
        sign = ":red[:material/close:]" if step["status"] == "error" else ":green[:material/check:]"
        with st.expander(f"{sign} {step['step'] + 1} **{plain(step['tool'])}** :gray[{percent(step['progress'])}]"):
            for key in ("arguments", "result"):
                body, kind = pretty(step[key] if isinstance(step[key], str) else None)
                st.code(body, language=kind, wrap_lines=True)
            if isinstance(step["context"], str):
                st.caption(say("replay.trial_context"))
                st.code(step["context"], language=None, wrap_lines=True)


def _usd(value: float) -> str:
    return dollars(value).replace("\\", "")
