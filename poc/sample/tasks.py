"""The tasks of the sample world: requests, true end states, and one way to reach each.

Tasks are split once, by task: subgoal sets are written from the logs of the
*development* tasks, experiments replay the others. Knows no model and no log.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, Literal

import msgspec

from poc.errors import InputError, did_you_mean
from poc.sample.files import load_yaml
from poc.sample.tools import TOOLS
from poc.trajectory import ReferenceCall

Split = Literal["development", "replay"]


class SampleTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task. `accept` holds the end states that count as success, `reference` one way to reach one of them."""

    key: str
    category: str
    split: Split
    text: str
    accept: tuple[tuple[str, ...], ...]
    reference: tuple[tuple[str, dict[str, Any]], ...]

    def satisfied(self, facts: Counter[str]) -> bool:
        """Whether what changed is exactly one of the accepted end states: all of it, and nothing besides."""
        return any(Counter(state) == facts for state in self.accept)

    def reference_calls(self) -> list[ReferenceCall]:
        """The reference path as trajectory records."""
        return [
            ReferenceCall(tool=name, arguments_json=msgspec.json.encode(arguments).decode())
            for name, arguments in self.reference
        ]


@cache
def all_tasks() -> dict[str, SampleTask]:
    """Every task by its key, in the order of the file."""
    table = load_yaml("world/tasks.yaml")
    return {
        key: SampleTask(
            key=key,
            category=entry["category"],
            split=entry["split"],
            text=entry["text"],
            accept=tuple(tuple(state) for state in entry["accept"]),
            reference=tuple(_call(*call) for call in entry["reference"]),
        )
        for key, entry in table.items()
    }


def tasks_of(split: Split) -> list[SampleTask]:
    """The tasks of one side of the split."""
    return [task for task in all_tasks().values() if task.split == split]


def task_of(key: str) -> SampleTask:
    """The task of this key. Raises `InputError` for an unknown one."""
    try:
        return all_tasks()[key]
    except KeyError:
        raise InputError(
            f"The sample world has no task '{key}'.{did_you_mean(key, all_tasks())}",
            where="data/world/tasks.yaml",
            todo="Replay tasks of the sample's own logs in the sample world; give your own tasks a world of their own.",
        ) from None


def _call(name: str, *values: Any) -> tuple[str, dict[str, Any]]:
    parameters = TOOLS[name].schema.parameters or {}
    names = list(parameters["properties"])
    if len(values) > len(names):
        raise ValueError(f"{name} takes {names}, not {values}")
    return name, {key: value for key, value in zip(names, values, strict=False) if value is not None}
