"""Drive the simulated agent through the sample world in this process, without a server.

Used to make the sample's logs and to see how the agent behaves. Replays go
over HTTP like any model (`poc.replay`); nothing here is a shortcut for them.
Knows no arm: what is added to a request comes from the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from poc.replay.environments.base import EnvironmentTask
from poc.sample.agent import DEFAULT, Temper, respond
from poc.sample.tasks import SampleTask
from poc.sample.world import World

Added = Callable[[Sequence[dict[str, Any]]], str | None]
"""From the messages so far to the text that is put last in the next request, or None."""


class Attempt(msgspec.Struct):
    """One attempt: its messages (as an API would log them), success 0/1 by the world's check, and why it ended."""

    task: SampleTask
    seed: int
    messages: list[dict[str, Any]]
    success: float
    detail: str | None
    stopped: str
    """``answered`` or ``turn_limit``."""
    steps: int


def request_tools(world: World) -> list[dict[str, Any]]:
    """The world's tools as a chat-completions request carries them."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in world.tools()
    ]


async def attempt(
    task: SampleTask, seed: int, *, temper: Temper = DEFAULT, added: Added | None = None, max_turns: int = 30
) -> Attempt:
    """One attempt at `task`. The same arguments give the same attempt."""
    world = World()
    await world.reset(EnvironmentTask(task_id=task.key, task_key=task.key, text=task.text), seed)
    tools = request_tools(world)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": world.instructions()},
        {"role": "user", "content": task.text},
    ]
    steps = 0
    stopped = "turn_limit"
    for turn in range(max_turns):
        text = added(messages) if added else None
        request = [*messages, {"role": "user", "content": text}] if text else messages
        reply = respond(request, tools, seed=seed, temper=temper)
        if not reply.calls:
            messages.append({"role": "assistant", "content": reply.content})
            stopped = "answered"
            break
        ids = [f"call_{turn}_{ordinal}" for ordinal in range(len(reply.calls))]
        messages.append(
            {
                "role": "assistant",
                "content": reply.content,
                "tool_calls": [
                    {
                        "id": call_id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
                    }
                    for call_id, call in zip(ids, reply.calls, strict=True)
                ],
            }
        )
        for call_id, call in zip(ids, reply.calls, strict=True):
            result = await world.call(call.name, call.arguments)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": result.content})
            steps += 1
    outcome = await world.outcome()
    await world.close()
    return Attempt(task, seed, messages, outcome.value, outcome.detail, stopped, steps)
