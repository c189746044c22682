"""The table of runs, paged in SQL, and the reading of one run. Draws what frames hold; knows no score."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from poc import api
from poc.ui.reads import read
from poc.ui.show import DASH, empty, in_percent, known, moment_column, number, percent, percent_column, plain, pretty
from poc.ui.words import named, say

RUN_KEY = "run"
"""Session key and name in the address."""

_A_PAGE = 25
_LONG = 900
_AVATARS = {
    "user": ":material/person:",
    "assistant": ":material/smart_toy:",
    "system": ":material/settings:",
    "tool": ":material/build:",
}
_STATUS = {"ok": ":green[:material/check:]", "error": ":red[:material/close:]"}


def table(workspace: api.Workspace) -> None:
    """The runs, a page at a time; choosing one shows it below."""
    total = read(api.frames.counts, workspace)["runs"]
    if not total:
        empty(say("data.no_runs"), say("data.no_runs_text"))
        return
    categories = read(api.frames.run_counts, workspace)
    names = [name for name in categories["category"] if isinstance(name, str)]
    chosen = None
    if len(names) > 1:
        chosen = st.pills(say("data.category"), names, format_func=str, key="run-category")
    matching = int(categories[categories["category"] == chosen]["runs"].sum()) if chosen else total
    place = st.empty()
    pages = max(1, -(-matching // _A_PAGE))
    page = st.pagination(pages, key=f"run-page-{chosen}") if pages > 1 else 1
    rows = read(api.frames.runs, workspace, category=chosen, limit=_A_PAGE, offset=(page - 1) * _A_PAGE)
    event = place.dataframe(
        in_percent(rows, "outcome", "progress"),
        hide_index=True,
        placeholder=DASH,
        on_select="rerun",
        selection_mode="single-row",
        key=f"run-table-{chosen}-{page}",
        column_order=["native_id", "task_key", "category", "outcome", "progress", "steps", "errors", "model", "tokens",
                      "started_at"],
        column_config={
            "native_id": say("column.native_id"),
            "task_key": say("column.task"),
            "category": say("column.category"),
            "outcome": percent_column(say("column.outcome"), say("column.outcome_help")),
            "progress": percent_column(say("column.progress")),
            "steps": say("column.steps"),
            "errors": say("column.errors"),
            "model": say("column.model"),
            "tokens": st.column_config.NumberColumn(say("column.tokens"), format="localized"),
            "started_at": moment_column(say("column.started")),
        },
    )  # fmt: skip
    picked = event["selection"]["rows"]
    if picked:
        st.query_params[RUN_KEY] = rows["run_id"].iloc[picked[0]]
    run_id = st.query_params.get(RUN_KEY)
    if run_id:
        one(workspace, run_id)
    else:
        st.caption(say("data.choose_run"))


def one(workspace: api.Workspace, run_id: str) -> None:
    """One run in the order in which it happened: messages, and each step beside the turn that made it."""
    facts = read(api.frames.run, workspace, run_id)
    messages = read(api.frames.messages, workspace, run_id)
    steps = read(api.frames.steps, workspace, run_id)
    with st.container(border=True):
        st.subheader(say("run.title", id=plain(facts["native_id"] or run_id)), anchor=False)
        _facts(facts, steps)
        spoken = set(messages["content"].dropna().str.strip())
        if facts["task_text"] and facts["task_text"].strip() not in spoken:
            with st.expander(say("run.task"), expanded=len(facts["task_text"]) < _LONG):
                st.text(facts["task_text"])
        if messages.empty and steps.empty:
            st.caption(say("run.empty"))
        with st.container(gap="xsmall"):
            _flow(messages, steps)


def _facts(facts: dict, steps: pd.DataFrame) -> None:
    outcome = facts["outcome"]
    shown = [
        (say("column.outcome"), percent(outcome) if known(outcome) else DASH, facts["provenance"]),
        (say("column.steps"), number(len(steps)), None),
        (say("column.errors"), number(list(steps["status"]).count("error")), None),
        (say("column.tokens"), number(facts["tokens"]), None),
        (say("column.model"), plain(facts["model"]) if facts["model"] else DASH, None),
    ]
    with st.container(horizontal=True, gap="large"):
        for label, value, source in shown:
            st.markdown(
                f":small[:gray[{label}]]  \n**{value}**" + (f" :small[:gray[({plain(source)})]]" if source else ""),
                width="content",
            )


def _flow(messages: pd.DataFrame, steps: pd.DataFrame) -> None:
    waiting = steps.to_dict("records")
    for message in messages.to_dict("records"):
        if isinstance(message["content"], str) and message["content"].strip():
            _message(message["role"], message["content"])
        due = [step for step in waiting if known(step["message_seq"]) and step["message_seq"] <= message["seq"]]
        for step in due:
            _step(step)
        waiting = [step for step in waiting if step not in due]
    for step in waiting:
        _step(step)


def _message(role: str, content: str) -> None:
    label = named("role", role)
    icon = _AVATARS.get(role, ":material/chat:")
    if role in {"system", "tool"} or len(content) > _LONG:
        first = plain(content.strip().splitlines()[0][:90])
        with st.expander(f"{label} :gray[· {first}…]", icon=icon):
            st.text(content)
        return
    with st.chat_message(role if role in {"user", "assistant"} else label, avatar=icon):
        st.text(content)


def _step(step: dict) -> None:
    marks = ""
    if known(step["current"]):
        gain = step["gain"] or 0
        moved = f" :green[+{percent(gain)}]" if gain > 0 else f" :red[{percent(gain)}]" if gain < 0 else ""
        marks = f" :gray[· {percent(step['current'])}]{moved}"
    events = f" :blue[{plain(step['subgoals'])}]" if isinstance(step["subgoals"], str) else ""
    sign = _STATUS.get(step["status"], ":orange[:material/question_mark:]")
    with st.expander(f"{sign} :gray[{int(step['step']) + 1}] **{plain(step['tool'])}**{marks}{events}"):
        arguments, kind = pretty(step["arguments"] if isinstance(step["arguments"], str) else None)
        st.caption(say("run.arguments"))
        st.code(arguments, language=kind, wrap_lines=True)
        result, kind = pretty(step["result"] if isinstance(step["result"], str) else None)
        st.caption(say("run.result", status=named("stepstatus", step["status"])))
        st.code(result, language=kind, wrap_lines=True, height=260 if len(result) > 1200 else "content")
