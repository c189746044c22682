"""What answers tool calls in a replay: the contract that every environment keeps.

An environment belongs to one trial at a time. Anything that the tools do
wrong (unknown tool, bad argument, refused action) comes back as a
`ToolResult` with ``is_error=True``; an exception means that the environment
itself is broken. Knows no model, no arm, no subgoal and no table.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec

from poc.trajectory import Outcome, ToolSchema


class EnvironmentTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task of a trial as the environment gets it.

    `task_id` is the workspace's id, `task_key` the log's own name of the task
    (what an environment usually knows), `text` what the user asks. `metadata`
    is what the workspace holds about the task besides.
    """

    task_id: str
    task_key: str | None = None
    text: str | None = None
    category: str | None = None
    metadata: dict[str, Any] = {}


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one call returned. `content` is the text that the model reads.

    `effect_unknown` is True when nobody can say whether the call took effect,
    as after a timeout: such a call must not be repeated blindly.
    """

    content: str
    is_error: bool = False
    effect_unknown: bool = False


@runtime_checkable
class Environment(Protocol):
    """Answers the tool calls of one trial. One instance serves one trial at a time."""

    def tools(self) -> list[ToolSchema]:
        """The tools offered to the model, with JSON Schema and effect class."""
        ...

    def instructions(self) -> str:
        """The system prompt, without any progress context."""
        ...

    async def reset(self, task: EnvironmentTask, seed: int) -> None:
        """Start `task` anew. The same task and seed give the same world.

        Raises `poc.errors.InputError` when the environment does not know the task.
        """
        ...

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Make one tool call. What the tool refuses is a result, not an exception."""
        ...

    async def outcome(self) -> Outcome | None:
        """Whether the task is truly done now: the environment's own check; None when it cannot tell."""
        ...

    async def close(self) -> None:
        """Free what the environment holds. Safe to call twice."""
        ...
