"""A logged run as chat messages, up to a turn: what the model reads in a next-step replay.

A *cut* lies before a turn, that is before the assistant message whose calls
are to be predicted; a turn's parallel calls are never torn apart. Only the
agent's own calls are shown (not those of a simulated user or a subagent).
Where the log holds no messages (one row a call), the task's text stands as
the user's message and the calls follow turn by turn. Ids of calls are made
anew, since logs repeat or lack them. Knows no model, arm or subgoal.
"""

from __future__ import annotations

import json
from typing import Any

from poc.trajectory import Message, Run, Step, ToolSchema

NO_RESULT = "(no result)"
"""Stands where the log holds no result: the API wants an answer to every call."""

_SHOWN_ROLES = ("system", "user", "assistant")


def agent_turns(run: Run) -> list[int]:
    """The turns in which the agent itself called tools, in order."""
    return sorted({step.turn for step in run.steps if step.caller == "agent"})


def turn_steps(run: Run, turn: int) -> list[Step]:
    """The agent's calls of one turn, in order."""
    return sorted((s for s in run.steps if s.caller == "agent" and s.turn == turn), key=lambda s: (s.ordinal, s.index))


def steps_before(run: Run, turn: int) -> list[Step]:
    """All steps that had happened before `turn` began, whoever made them, in order."""
    first = min((step.index for step in turn_steps(run, turn)), default=None)
    if first is None:
        return []
    return sorted((step for step in run.steps if step.index < first), key=lambda step: step.index)


def history(run: Run, turn: int | None = None) -> list[dict[str, Any]]:
    """Chat messages of a run before `turn`; of the whole run when `turn` is None.

    Without a user message in the log, `run.task_text` becomes one.
    """
    own = [step for step in run.steps if step.caller == "agent"]
    placed = all(step.message_seq is not None for step in own) and bool(run.messages)
    before = _logged(run, own, turn) if placed else _rebuilt(run, own, turn)
    if run.task_text and not any(message["role"] == "user" for message in before):
        head = sum(message["role"] == "system" for message in before[:1])
        before.insert(head, {"role": "user", "content": run.task_text})
    return before


def chat_tools(tools: list[ToolSchema]) -> list[dict[str, Any]]:
    """Tools as the chat completions API takes them. An unknown schema allows any object."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                **({"description": tool.description} if tool.description else {}),
                "parameters": tool.parameters or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]


def assistant_message(content: str | None, calls: list[tuple[str, str, str]]) -> dict[str, Any]:
    """The assistant's message with its calls, each (id, name, arguments as JSON text)."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    elif content is None:
        message["content"] = ""
    return message


def tool_message(call_id: str, content: str) -> dict[str, Any]:
    """The answer to one call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _logged(run: Run, own: list[Step], turn: int | None) -> list[dict[str, Any]]:
    end = None
    if turn is not None:
        end = min(
            (step.message_seq for step in own if step.turn == turn and step.message_seq is not None), default=None
        )
    by_message: dict[int, list[Step]] = {}
    for step in sorted(own, key=lambda step: step.index):
        by_message.setdefault(step.message_seq or 0, []).append(step)
    messages: list[dict[str, Any]] = []
    for message in sorted(run.messages, key=lambda message: message.seq):
        if end is not None and message.seq >= end:
            break
        if message.role not in _SHOWN_ROLES:
            continue  # results are put right behind their calls below
        calls = by_message.get(message.seq, []) if message.role == "assistant" else []
        if calls:
            messages.extend(_turn(message.content, calls))
        elif message.content is not None:
            messages.append(_text(message))
    return messages


def _rebuilt(run: Run, own: list[Step], turn: int | None) -> list[dict[str, Any]]:
    """Messages from the steps alone; what the log has of messages before the first call is kept."""
    messages: list[dict[str, Any]] = []
    for message in sorted(run.messages, key=lambda message: message.seq):
        if message.role not in ("system", "user"):
            break
        if message.content is not None:
            messages.append(_text(message))
    for number in sorted({step.turn for step in own}):
        if turn is not None and number >= turn:
            break
        calls = sorted((s for s in own if s.turn == number), key=lambda s: (s.ordinal, s.index))
        messages.extend(_turn(None, calls))
    return messages


def _turn(content: str | None, steps: list[Step]) -> list[dict[str, Any]]:
    calls = [(f"call_{step.index}", step.tool, _arguments(step)) for step in steps]
    results = [tool_message(f"call_{step.index}", NO_RESULT if step.result is None else step.result) for step in steps]
    return [assistant_message(content, calls), *results]


def _arguments(step: Step) -> str:
    # Servers parse the arguments of earlier calls and refuse the request when they are no JSON object.
    if step.arguments_json is not None and step.arguments_json.lstrip().startswith("{"):
        return step.arguments_json
    if step.arguments_raw is None:
        return "{}"
    return json.dumps({"_raw": step.arguments_raw}, ensure_ascii=False)


def _text(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}
