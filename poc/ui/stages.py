"""How far a workspace is: one line a stage, and the next thing to do. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from poc import api
from poc.ui.reads import read
from poc.ui.show import number
from poc.ui.words import named, say

State = Literal["done", "attention", "todo"]

PAGES = {
    "start": "poc/ui/pages/start.py",
    "data": "poc/ui/pages/data.py",
    "readiness": "poc/ui/pages/readiness.py",
    "subgoals": "poc/ui/pages/subgoals.py",
    "progress": "poc/ui/pages/progress.py",
    "replay": "poc/ui/pages/replay.py",
    "decision": "poc/ui/pages/decision.py",
}
"""Stages in the order of the process, with the file of each page."""

ICONS = {
    "start": ":material/flag:",
    "data": ":material/database:",
    "readiness": ":material/fact_check:",
    "subgoals": ":material/checklist:",
    "progress": ":material/trending_up:",
    "replay": ":material/replay:",
    "decision": ":material/gavel:",
}


@dataclass(frozen=True)
class Stage:
    """One stage: whether it is done, what there is, and what to do next in it."""

    key: str
    state: State
    text: str
    todo: str


def stages(workspace: api.Workspace) -> list[Stage]:
    """The six stages after the start page."""
    counts = read(api.frames.counts, workspace)
    level = read(api.load_readiness, workspace)
    found: list[Stage] = []

    def add(key: str, state: State, text: str, todo: str | None = None) -> None:
        found.append(Stage(key, state, text, say(f"todo.{todo or key}")))

    add(
        "data",
        "done" if counts["runs"] else "todo",
        say("stage.data", runs=number(counts["runs"])) if counts["runs"] else say("stage.nothing"),
    )
    if level is None or not counts["runs"]:
        add("readiness", "todo", say("stage.nothing"))
    else:
        add("readiness", "attention" if level.level == "NOT READY" else "done", level.level)
    add(
        "subgoals",
        "done" if counts["sets"] else "todo",
        say("stage.subgoals", n=number(counts["sets"])) if counts["sets"] else say("stage.nothing"),
    )
    add(
        "progress",
        "done" if counts["scored_runs"] else "todo",
        say("stage.progress", n=number(counts["scored_runs"])) if counts["scored_runs"] else say("stage.nothing"),
    )
    newest = read(api.frames.experiments, workspace).head(1).to_dict("records")
    if not newest:
        add("replay", "todo", say("stage.nothing"))
        add("decision", "todo", say("stage.nothing"))
        return found
    experiment = newest[0]
    status = experiment["status"]
    if status == "finished":
        add("replay", "done", named("status", status))
    else:
        add("replay", "attention", named("status", status), f"replay_{status}")
    verdict = experiment["verdict"]
    if isinstance(verdict, str):
        text = say("stage.simulated", verdict=verdict) if experiment["simulated"] else verdict
        add("decision", "done", text)
    else:
        add("decision", "todo", say("stage.nothing"))
    return found


def next_stage(found: list[Stage]) -> Stage | None:
    """The first stage that is not done; None when all are."""
    return next((stage for stage in found if stage.state != "done"), None)
