"""The form that plans an experiment: what, with which model, how often, within which limits.

It gathers options for the shell's `replay plan`; the plan itself, its checks
and its estimate are made there. The key is no part of it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from poc import api
from poc.ui import work
from poc.ui.reads import read
from poc.ui.server import MODEL, simulated_server
from poc.ui.show import plain
from poc.ui.words import named, say

_KEY_FIELDS = ("api-key-plan", "api-key-start")
OPENAI_VARIABLE = "OPENAI_API_KEY"
OTHER_VARIABLE = "MODEL_API_KEY"
"""For any server but OpenAI's own, so that a key for the one is never sent to the other."""
SAMPLE_WORLD = "poc.sample.world:World"
ARMS = ("none", "plan", "progress")
VERB = "replay plan"


@dataclass
class Options:
    """Options of `poc replay plan`, in the order in which they were chosen."""

    argv: list[str] = field(default_factory=list)
    heed: float | None = None
    """The dial of the simulated model; None for any other server."""

    def add(self, name: str, value: Any) -> None:
        """One option; nothing for None and for an empty text."""
        if value is not None and value != "":
            self.argv += [f"--{name}", str(value)]


def form(workspace: api.Workspace) -> None:
    """The whole form, and the start of planning."""
    options = Options()
    sample = read(api.is_sample, workspace)
    what, who = st.columns(2, gap="medium")
    with what.container(border=True, height="stretch"):
        _what(workspace, options, sample)
    with who.container(border=True, height="stretch"):
        _model(options)
    with st.container(border=True):
        _size_and_limits(options)
    with st.expander(say("replay.more"), icon=":material/tune:"):
        _more(options)
    _override(workspace, options)
    st.caption(f"{say('replay.primary')} {say('replay.plan_note')}")
    pressed = st.button(
        say("replay.plan"),
        type="primary",
        icon=":material/request_quote:",
        disabled=work.running(workspace, VERB),
    )
    if pressed:
        if options.heed is not None:
            with st.spinner(say("replay.server_starting")):
                options.add("base-url", simulated_server(workspace, heed=options.heed))
        work.begin(workspace, VERB, options.argv)


def key_for(variable: str) -> dict[str, str]:
    """The typed key as the environment of a job; empty where none was typed."""
    typed = next((key for name in _KEY_FIELDS if (key := st.session_state.get(name))), None)
    return {variable: typed} if typed else {}


def _what(workspace: api.Workspace, options: Options, sample: bool) -> None:
    modes = ["closed_loop", "next_step"]
    mode = st.radio(
        say("replay.mode"),
        modes,
        index=0 if sample else 1,
        format_func=lambda name: named("mode", name),
        key="plan-mode",
        persist_state="session",
    )
    st.caption(say(f"replay.mode_note.{mode}"))
    options.add("mode", mode)
    if mode == "closed_loop":
        environment = st.text_input(
            say("replay.environment"),
            value=SAMPLE_WORLD if sample else "",
            placeholder="my_world.py:World",
            help=say("replay.environment_help"),
            key=f"plan-environment-{sample}",
            persist_state="session",
        )
        if environment == SAMPLE_WORLD:
            st.caption(say("replay.environment_sample"))
        options.add("environment", environment.strip())
    categories = [str(name) for name in read(api.frames.subgoal_sets, workspace)["category"]]
    chosen = st.multiselect(
        say("replay.categories"), categories, placeholder=say("replay.categories_all"), key="plan-categories"
    )
    options.add("categories", ",".join(chosen))
    if mode == "closed_loop":
        amount = st.number_input(
            say("replay.tasks"), min_value=0, value=0, step=5, key="plan-tasks", persist_state="session"
        )
        options.add("tasks", amount or None)
    else:
        amount = st.number_input(
            say("replay.runs"), min_value=0, value=20, step=5, key="plan-runs", persist_state="session"
        )
        options.add("runs", amount or None)


def _model(options: Options) -> None:
    source = st.segmented_control(
        say("replay.model_source"),
        ["simulated", "server"],
        default="simulated",
        required=True,
        format_func=lambda name: say(f"replay.source.{name}"),
        key="plan-source",
        persist_state="session",
    )
    if source == "simulated":
        st.caption(say("replay.simulated_note"))
        options.heed = st.slider(say("replay.heed"), 0.0, 2.0, 1.0, 0.1, help=say("replay.heed_help"), key="plan-heed")
        options.add("model", MODEL)
        return
    options.add(
        "model", st.text_input(say("replay.model"), value="gpt-4.1-mini", key="plan-model", persist_state="session")
    )
    base_url = st.text_input(
        say("replay.base_url"),
        placeholder="http://127.0.0.1:8000/v1",
        help=say("replay.base_url_help"),
        key="plan-base-url",
        persist_state="session",
    )
    options.add("base-url", base_url.strip())
    variable = OTHER_VARIABLE if base_url.strip() else OPENAI_VARIABLE
    options.add("api-key-env", variable)
    key_field(variable, "plan")


def key_field(variable: str, place: str) -> None:
    """The masked field at one of its two places; its value lives in the session only."""
    st.text_input(
        say("replay.key"),
        type="password",
        key=f"api-key-{place}",
        persist_state="session",
        autocomplete="off",
        help=say("replay.key_help", variable=variable),
    )
    if not key_for(variable) and not os.environ.get(variable):
        st.caption(f":orange[:material/key_off:] {say('replay.key_missing', variable=plain(variable))}")
    else:
        st.caption(say("replay.no_key_in_plan"))


def _size_and_limits(options: Options) -> None:
    size, budget, thresholds = st.columns(3, gap="medium")
    with size:
        st.markdown(f"**{say('replay.size')}**")
        arms = st.pills(
            say("replay.arms"),
            ARMS,
            selection_mode="multi",
            default=ARMS,
            help=say("replay.arms_help"),
            key="plan-arms",
        )
        options.add("arms", ",".join(arm for arm in ARMS if arm in arms))
        options.add(
            "repeats", st.number_input(say("replay.repeats"), 1, 50, 1, key="plan-repeats", persist_state="session")
        )
    with budget:
        st.markdown(f"**{say('replay.budget')}**", help=say("replay.budget_note"))
        usd = st.number_input(
            say("replay.budget_usd"), min_value=0.0, value=0.0, step=1.0, key="plan-usd", persist_state="session"
        )
        tokens = st.number_input(
            say("replay.budget_tokens"), min_value=0, value=0, step=100_000, key="plan-tokens", persist_state="session"
        )
        st.caption(say("replay.budget_note"))
        options.add("budget-usd", usd or None)
        options.add("budget-tokens", tokens or None)
    with thresholds:
        st.markdown(f"**{say('replay.thresholds')}**")
        gain = st.number_input(
            say("replay.gain_worthwhile"), 0.0, 100.0, 5.0, 1.0, key="plan-gain", persist_state="session"
        )
        options.add("gain-worthwhile", round(gain / 100, 6))
        ratios = {"latency-max": ("replay.latency_max", 1.10), "tokens-max": ("replay.tokens_max", 1.15)}
        for name, (label, default) in ratios.items():
            value = st.number_input(say(label), 0.0, 10.0, default, 0.05, key=f"plan-{name}", persist_state="session")
            options.add(name, value)


def _more(options: Options) -> None:
    left, right = st.columns(2)
    with left:
        options.add(
            "name", st.text_input(say("replay.name"), value="experiment", max_chars=60, key="plan-name").strip()
        )
        options.add("seed", st.number_input(say("replay.seed"), 0, 2**31 - 1, 0, key="plan-seed"))
    with right:
        options.add("concurrency", st.number_input(say("replay.concurrency"), 1, 256, 8, key="plan-concurrency"))
        options.add("max-turns", st.number_input(say("replay.max_turns"), 1, 500, 30, key="plan-turns"))
        temperature = st.number_input(say("replay.temperature"), 0.0, 2.0, value=None, step=0.1, key="plan-temperature")
        options.add("temperature", temperature)


def _override(workspace: api.Workspace, options: Options) -> None:
    """Only where the logs are not ready: a reason to go on, which the report prints."""
    level = read(api.load_readiness, workspace)
    if level is not None and level.level == "NOT READY":
        reason = st.text_input(say("replay.override"), max_chars=300, key="plan-override")
        options.add("override-readiness", reason.strip())
