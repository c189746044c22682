"""SWE-agent trajectories (``.traj``), 0.x and 1.x.

One object: ``trajectory[] {action, observation, response, thought, state,
execution_time}``, ``history[]`` (messages; ``tool_calls`` with ids where the
model calls functions), ``info {exit_status, submission, model_stats
{tokens_sent, tokens_received, api_calls, instance_cost}}``, and in 1.x
``replay_config`` (an object, or the same as text). ``state`` is text in 0.x.

The tool is the function's name where the model calls functions, else the
first word of the action, and the arguments are then what follows it, as text.
An action that is empty made no call. ``exit_status`` says how the run ended
("submitted", "exit_cost", ...), not that it was solved, so there is no
outcome: that is in a report of its own and can be joined by the instance's id.
The id is the one in the configuration, else a file name that is such an id
("owner__repo-123"). Demonstrations in the history are messages, never steps.
Nothing has a time; ``execution_time`` is a duration in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest.arguments import ABSENT, Arguments, from_value
from poc.ingest.readers.assembly import Assembly, blocks_text, count, number, plain, word
from poc.ingest.readers.decoding import elements, glimpse, loads, members
from poc.ingest.readers.records import Record, left_over, records
from poc.ingest.sources import Source
from poc.trajectory import Reject, Role, Run, Usage

NAME = "swe_agent"
VERSION = 1

_INSTANCE = re.compile(r"[\w.-]+?__[\w.-]+?-\d+")
_ROLES: dict[Any, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def sniff(sample: bytes, name: str) -> float:
    """By the entries of ``trajectory``, or by a history of agents beside it where that is cut off."""
    first = glimpse(sample).first
    if first.get("trajectory", b"")[:1] == b"[":
        parts = elements(first["trajectory"])
        step = members(parts[0]) if parts else {}
        if {"action", "observation"} <= step.keys() or {"action", "response"} <= step.keys():
            return 0.97
        return 0.8 if not parts and "history" in first and "info" in first else 0.0
    history = elements(first.get("history", b""))
    return 0.7 if "environment" in first and history and "agent" in members(history[0]) else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trajectory, usually one."""
    for record in records(source, flat=True):
        if isinstance(record, Reject):
            yield record
        elif not isinstance(record.value, dict) or not isinstance(record.value.get("trajectory"), list):
            yield record.reject("no trajectory here")
        else:
            yield from _run(record, record.value, source.name)


def _run(record: Record, value: dict[str, Any], file_name: str) -> Iterator[Run | Reject]:
    run = Run(place=record.place, framework="swe-agent")
    work = Assembly(run)
    told = value.get("history")
    history = [item for item in told if isinstance(item, dict)] if isinstance(told, list) else []
    _about(run, value, file_name)
    _opening(work, history)
    calls = _calls(history)
    for index, entry in enumerate(value["trajectory"]):
        if not isinstance(entry, dict):
            reason = "an entry that is no step; the run is kept without it"
            yield Reject(place=f"{record.place} .trajectory[{index}]", reason=reason, raw=str(entry)[:200], records=0)
            continue
        _entry(work, entry, index, calls)
    if not run.messages:
        yield record.reject("the trajectory is empty and there is no history")
        return
    yield work.finish()


def _opening(work: Assembly, history: list[dict[str, Any]]) -> None:
    """What the agent was told before its first action, with demonstrations."""
    for item in history:
        if item.get("is_demo") is not True and item.get("role") == "assistant":
            return
        content = blocks_text(item.get("content"))
        work.message(_ROLES.get(word(item.get("role")), "other"), content, name=word(item.get("agent")))
        if item.get("is_demo") is not True and item.get("role") == "user" and work.run.task_text is None:
            work.run.task_text = content


def _calls(history: list[dict[str, Any]]) -> dict[str, list[list[Any]]]:
    """The function calls in the history by the action that they stand for, in order."""
    found: dict[str, list[list[Any]]] = {}
    for item in history:
        made = item.get("tool_calls")
        if isinstance(made, list) and made and item.get("is_demo") is not True:
            found.setdefault(str(item.get("action") or "").strip(), []).append(made)
    return found


def _entry(work: Assembly, entry: dict[str, Any], index: int, calls: dict[str, list[list[Any]]]) -> None:
    said = entry.get("response") or entry.get("thought")
    message = work.message("assistant", blocks_text(said))
    action = (plain(entry.get("action")) or "").strip()
    observation = plain(entry.get("observation"))
    waiting = calls.get(action)
    made = entry.get("tool_calls") or (waiting.pop(0) if waiting else None)
    call = made[0] if isinstance(made, list) and made and isinstance(made[0], dict) else None
    if not action and call is None:
        if observation is not None:  # what the agent was told instead: its answer could not be read as an action
            work.message("user", observation)
        return
    tool, arguments = _function(call) if call is not None else _command(action)
    call_id = word(call.get("id")) if call is not None else None
    work.call(tool, arguments, turn=index, message=message, call_id=call_id)
    if observation is not None:
        work.result(observation, call_id=call_id, duration_s=number(entry.get("execution_time")))


def _function(call: dict[str, Any]) -> tuple[Any, Arguments]:
    function = call.get("function")
    if not isinstance(function, dict):
        return call.get("name"), from_value(call.get("arguments"))
    return function.get("name"), from_value(function.get("arguments"))


def _command(action: str) -> tuple[str, Arguments]:
    tool, _, rest = action.partition(" ") if "\n" not in action.split(" ", 1)[0] else action.partition("\n")
    rest = rest.strip()
    return tool, (rest, None, "unparsed") if rest else ABSENT


def _about(run: Run, value: dict[str, Any], file_name: str) -> None:
    info = value["info"] if isinstance(value.get("info"), dict) else {}
    config = value.get("replay_config")
    if isinstance(config, str):
        config = loads(config.encode())
    config = config if isinstance(config, dict) else {}
    problem, agent = config.get("problem_statement"), config.get("agent")
    run.native_id = word(problem.get("id")) if isinstance(problem, dict) else None
    if run.native_id is None:
        named = _INSTANCE.fullmatch(file_name.split(".traj", 1)[0])
        run.native_id = named[0] if named else None
    run.task_key = run.native_id
    model = agent.get("model") if isinstance(agent, dict) else None
    run.model = word(model.get("name")) if isinstance(model, dict) else None
    spent = info.get("model_stats")
    if isinstance(spent, dict):
        usage = Usage(input_tokens=count(spent.get("tokens_sent")), output_tokens=count(spent.get("tokens_received")))
        run.usage = usage if usage != Usage() else None
        run.cost_usd = number(spent.get("instance_cost"))
    run.metadata = left_over(value, "trajectory", "history", "info", "replay_config") | {"info": info}
    if isinstance(run.metadata.get("environment"), dict):
        run.metadata["environment"] = msgspec.to_builtins(run.metadata["environment"])
