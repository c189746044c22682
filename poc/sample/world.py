"""The sample world: an order desk that a simulated or a real agent can work at.

`World` keeps the environment contract of replays over the shop's database.
Success is the world's own check: whatever changed must be one of the task's
accepted end states, and nothing else may have changed. It knows no subgoal,
no arm and no model; a bad argument is a tool error, never an exception.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from poc.errors import PocError
from poc.replay.environments.base import EnvironmentTask, ToolResult
from poc.sample.shop import facts, open_shop, today
from poc.sample.tasks import SampleTask, task_of
from poc.sample.tools import TOOLS, Refusal, check_arguments
from poc.trajectory import Outcome, ToolSchema

INSTRUCTIONS = """\
You work at the order desk of Harbor & Pine, an online shop. Today is {today}. Handle the customer's request with \
the tools; nobody will answer questions. House rules: An order can be cancelled only while it is processing; when it \
was paid by card or PayPal, pay the full sum back afterwards. Returns and exchanges are possible within 30 days of \
delivery and never for final sale items, so check the policy first; every item that comes back needs a return label. \
Refund returned items one by one, at the price that was paid. An address can be changed while the order is processing; \
when it is under way, escalate it to the dispatch team. When a parcel is lost, missing or damaged, open a claim with \
the carrier before you replace or refund anything; what is sold out is refunded instead of replaced. Do only what was \
asked and what the rules allow. At the end, always write the customer a message about what was done or why it was not, \
then close with a short summary."""


class World:
    """One trial's order desk. Make one instance a trial; `reset` takes well under two milliseconds."""

    def __init__(self) -> None:
        self._task: SampleTask | None = None
        self._db: sqlite3.Connection | None = None

    def tools(self) -> list[ToolSchema]:
        """The tools with JSON Schema and effect class, always in the same order."""
        return [tool.schema for tool in TOOLS.values()]

    def instructions(self) -> str:
        """The system prompt: who the agent is, the date, and the house rules."""
        return INSTRUCTIONS.format(today=today())

    async def reset(self, task: EnvironmentTask, seed: int) -> None:
        """Open the shop anew for `task`. The world has no chance in it, so `seed` changes nothing.

        Raises `InputError` when the sample has no task of this key.
        """
        known = task_of(task.task_key or task.task_id)
        await self.close()
        self._task, self._db = known, open_shop()

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Make one call. Unknown tools, bad arguments and refusals are results with ``is_error=True``."""
        db = self._open()
        tool = TOOLS.get(name)
        if tool is None:
            return _error(f"There is no tool '{name}'.")
        if problem := check_arguments(name, arguments):
            return _error(problem)
        db.execute("BEGIN")
        try:
            result = tool.function(db, **arguments)
        except Refusal as refusal:
            db.execute("ROLLBACK")
            return _error(str(refusal))
        db.execute("COMMIT")
        return ToolResult(content=msgspec.json.encode(result).decode())

    async def outcome(self) -> Outcome:
        """1 when what changed in the shop is exactly an accepted end state of the task, else 0."""
        changed = facts(self._open())
        assert self._task is not None
        return Outcome(
            value=float(self._task.satisfied(changed)),
            provenance="environment",
            detail="; ".join(sorted(changed.elements())) or "nothing changed",
        )

    async def close(self) -> None:
        """Drop the shop. Safe to call twice."""
        if self._db is not None:
            self._db.close()
        self._db = self._task = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            raise PocError("The sample world has no task yet.", todo="Call reset() before call() or outcome().")
        return self._db


def _error(text: str) -> ToolResult:
    # A name from the model may hold half a character, which no message can carry.
    text = text.encode(errors="replace").decode()
    return ToolResult(content=msgspec.json.encode({"error": text}).decode(), is_error=True)
