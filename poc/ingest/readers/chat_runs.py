"""What the wrappers around chat messages say of a run: whose it is, how it ended, what was asked.

tau-bench: ``task_id``, ``trial``, ``traj``, ``reward``, ``info.task`` with the
simulated user's instruction (the scenario) and reference actions.
tau2-bench: ``simulations[]`` with ``messages`` (or only ``ticks`` for voice,
which hold no calls), ``reward_info``, times and costs; ``tasks[]`` with the
scenario and reference actions of agent and user; ``info`` with the model.
Other objects: the common names listed below. Knows no file layout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest.outcome_values import read_outcome
from poc.ingest.readers.chat_messages import decode_messages, fill, text_of, usage_of
from poc.ingest.readers.chat_regular import read_regular
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Outcome, ReferenceCall, Run, ToolSchema

MESSAGE_KEYS = ("messages", "traj", "trajectory", "conversation")
_decode = msgspec.json.Decoder().decode
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_NATIVE = ("run_id", "id", "session_id", "conversation_id", "trace_id")
_TASK_KEY = ("task_id", "task_key", "instance_id")
_CATEGORY = ("category", "task_type")
_OUTCOME = ("reward", "outcome", "success")
_STARTED = ("started_at", "start_time", "created_at", "timestamp")
_ENDED = ("ended_at", "end_time", "finished_at")
_DURATION = ("duration_s", "duration")
_COST = ("cost_usd", "agent_cost", "cost")
_TEXTS = frozenset(("trial", *_CATEGORY, "task_text", "scenario", "framework", "model"))
_MORE = frozenset((*_STARTED, *_ENDED, *_DURATION, *_COST, "usage", "tools", "functions"))


class NotARun(Exception):
    """The record holds no run; the message says why."""


class Tau2File:
    """What a tau2-bench file says once for all its simulations."""

    def __init__(self, fields: Mapping[str, bytes | Raw]) -> None:
        tasks = _plain(fields.get("tasks", b""))
        info = _plain(fields.get("info", b""))
        self.tasks = {str(task.get("id")): task for task in tasks or () if isinstance(task, dict)}
        self.info: dict[str, Any] = info if isinstance(info, dict) else {}


def build(run: Run, fields: dict[str, Raw], tau2: Tau2File | None) -> None:
    """Fill `run` from the members of its object. Raises `NotARun`, or msgspec's errors for broken JSON."""
    key = next((name for name in MESSAGE_KEYS if bytes(fields.get(name, b""))[:1] == b"["), None)
    usual = read_regular(fields[key]) if key else None
    chat = decode_messages(fields[key]) if key and usual is None else []
    if not chat and usual is None:
        raise NotARun(_no_messages(fields))
    if chat and not any(isinstance(message.role, str) for message in chat):
        raise NotARun(f"the list '{key}' holds no chat messages: none has a role")
    values = {name: _decode(raw) for name, raw in fields.items() if name != key}
    common(run, values)
    if tau2 is not None or ("reward_info" in values and "termination_reason" in values):
        _tau2(run, values, tau2)
    elif key == "traj":
        _tau(run, values)
    run.metadata = {name: value for name, value in values.items() if value is not None}
    if usual is None:
        fill(run, chat)
    else:
        run.messages, run.steps = usual.messages, usual.steps
        run.task_text = usual.task_text if run.task_text is None else run.task_text


def common(run: Run, values: dict[str, Any]) -> None:
    """Fill `run` from what wrappers of all kinds say; what has a field of its own is taken out of `values`."""
    run.native_id = _take(values, _NATIVE)
    run.native_id_is_global = run.native_id is not None and _UUID.fullmatch(run.native_id) is not None
    run.task_key = _take(values, _TASK_KEY)
    if not _TEXTS.isdisjoint(values):
        run.trial = _take(values, ("trial",))
        run.category = _take(values, _CATEGORY)
        for name in ("task_text", "scenario", "framework", "model"):
            if isinstance(values.get(name), str) and values[name]:
                setattr(run, name, values.pop(name))
    if run.native_id is None and run.task_key is not None:
        run.native_id = run.task_key if run.trial is None else f"{run.task_key}/{run.trial}"
    for name in _OUTCOME:
        value = read_outcome(values.get(name))
        if value is not None:
            run.outcome = Outcome(value=value, provenance=f"log:{name}")
            values.pop(name)
            break
    if not _MORE.isdisjoint(values):  # most logs have none of these
        _measures(run, values)


def _measures(run: Run, values: dict[str, Any]) -> None:
    """Times, tokens, cost and tools."""
    zones: list[bool] = []
    for names, attribute in ((_STARTED, "started_at"), (_ENDED, "ended_at")):
        for name in names:
            time, zone = parse_time(values.get(name))
            if time is not None and zone is not None:
                setattr(run, attribute, time)
                zones.append(zone)
                values.pop(name)
                break
    run.zone_in_log = all(zones) if zones else None
    run.duration_s = _number(values, _DURATION)
    if run.duration_s is None:
        run.duration_s = seconds_between(run.started_at, run.ended_at)
    run.cost_usd = _number(values, _COST)
    if "usage" in values:
        run.usage = usage_of(values["usage"])
        if run.usage is not None:
            values.pop("usage")
    run.tools = _tools(values.get("tools") if "tools" in values else values.get("functions"))
    if run.tools:
        values.pop("tools", None)
        values.pop("functions", None)


def _tau(run: Run, values: dict[str, Any]) -> None:
    run.framework = run.framework or "tau-bench"
    info = values.get("info")
    task = info.get("task") if isinstance(info, dict) else None
    if isinstance(info, dict) and isinstance(task, dict):
        instruction = task.get("instruction")
        if isinstance(instruction, str) and instruction:
            run.scenario = instruction
        if isinstance(task.get("actions"), list):
            run.reference = _reference(task["actions"], "kwargs")
        # What has a column of its own is not kept twice.
        rest = {name: value for name, value in task.items() if name not in ("actions", "instruction")}
        values["info"] = {**info, "task": rest}


def _tau2(run: Run, values: dict[str, Any], shared: Tau2File | None) -> None:
    run.framework = run.framework or "tau2-bench"
    reward = values.get("reward_info")
    if run.outcome is None and isinstance(reward, dict):
        value = read_outcome(reward.get("reward"))
        if value is not None:
            run.outcome = Outcome(value=value, provenance="log:reward_info.reward")
    if shared is None:
        return
    agent = shared.info.get("agent_info")
    if run.model is None and isinstance(agent, dict):
        run.model = _word(agent.get("llm"))
    environment = shared.info.get("environment_info")
    if isinstance(environment, dict):
        values["domain"] = environment.get("domain_name")
        run.tools = run.tools or _tools(environment.get("tool_defs"))
    task = shared.tasks.get(run.task_key or "")
    if task is None:
        return
    scenario = task.get("user_scenario")
    instructions = scenario.get("instructions") if isinstance(scenario, dict) else scenario
    run.scenario = run.scenario or (text_of(instructions) if instructions else None)
    criteria = task.get("evaluation_criteria")
    actions = criteria.get("actions") if isinstance(criteria, dict) else None
    if isinstance(actions, list):
        mine = [action for action in actions if isinstance(action, dict) and action.get("requestor") != "user"]
        run.reference = _reference(mine, "arguments")


def _reference(actions: list[Any], arguments: str) -> list[ReferenceCall]:
    calls: list[ReferenceCall] = []
    for action in actions:
        if isinstance(action, dict) and isinstance(action.get("name"), str):
            value = action.get(arguments)
            text = None if value is None else msgspec.json.encode(value).decode()
            calls.append(ReferenceCall(tool=action["name"], arguments_json=text))
    return calls


def _tools(listed: Any) -> list[ToolSchema]:
    tools: list[ToolSchema] = []
    for entry in listed if isinstance(listed, list) else ():
        tool = entry.get("function", entry) if isinstance(entry, dict) else None
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            parameters = tool.get("parameters", tool.get("input_schema"))
            description = tool.get("description")
            tools.append(
                ToolSchema(
                    name=tool["name"],
                    description=description if isinstance(description, str) else None,
                    parameters=parameters if isinstance(parameters, dict) else None,
                )
            )
    return tools


def _no_messages(fields: dict[str, Raw]) -> str:
    ticks = fields.get("ticks")
    if ticks is not None and bytes(ticks)[:1] == b"[":
        count = len(msgspec.json.decode(ticks, type=list[Raw]))
        return f"a voice simulation: everything is in {count} audio ticks; there are no messages or tool calls to read"
    if any(name in fields for name in MESSAGE_KEYS):
        return "the run has no messages"
    known = ", ".join(list(fields)[:8]) or "none"
    return f"no list of messages here (fields: {known})"


def _take(values: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of the names that holds an id or a name, as text; it is taken out of `values`."""
    for name in names:
        if name in values and (word := _word(values[name])) is not None:
            del values[name]
            return word
    return None


def _number(values: dict[str, Any], names: tuple[str, ...]) -> float | None:
    for name in names:
        value = values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            values.pop(name)
            return float(value)
    return None


def _word(value: Any) -> str | None:
    if isinstance(value, bool) or value is None or value == "":
        return None
    return str(value) if isinstance(value, str | int) else None


def _plain(raw: bytes | Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
