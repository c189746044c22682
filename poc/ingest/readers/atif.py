"""ATIF trajectories (Agent Trajectory Interchange Format, as Harbor writes them), 1.x.

One object: ``schema_version "ATIF-v1.x"``, ``session_id``, ``agent {name,
version, model_name, tool_definitions}``, ``steps[] {step_id, timestamp,
source system|user|agent, message, model_name, tool_calls[{tool_call_id,
function_name, arguments}], observation{results[{source_call_id, content,
subagent_trajectory_ref}]}, metrics{prompt_tokens, completion_tokens,
cached_tokens, cost_usd}}``, ``final_metrics``; newer ones hold the
trajectories of subagents in ``subagent_trajectories``.

Prompt tokens include cached ones. A step's time is when it was written, so
nothing tells how long a call took. A result without a call, as where an answer
could not be parsed, stays a message. ``extra`` of a result may hold a flag or
an exit code. Steps copied from an earlier trajectory
(``is_copied_context``) are messages: their calls were made before. The reward
is in a file of its own (``result.json``) and can be joined by the session's id.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from poc.ingest.arguments import from_value
from poc.ingest.readers.assembly import Assembly, blocks_text, count, number, word
from poc.ingest.readers.decoding import glimpse, text
from poc.ingest.readers.nodes import schemas
from poc.ingest.readers.records import Record, left_over, records
from poc.ingest.sources import Source
from poc.trajectory import Reject, Role, Run, Usage

NAME = "atif"
VERSION = 1

_ROLES: dict[str | None, Role] = {"system": "system", "user": "user", "agent": "assistant"}
_TOLD = ("schema_version", "session_id", "agent", "steps", "final_metrics", "subagent_trajectories", "trajectory_id")
_DEPTH = 5


def sniff(sample: bytes, name: str) -> float:
    """By the version that a trajectory names."""
    heads = glimpse(sample).heads[:3]
    if any((text(head.get("schema_version")) or "").startswith("ATIF-") for head in heads):
        return 0.98
    return 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trajectory, usually one a file."""
    for record in records(source, flat=True):
        if isinstance(record, Reject):
            yield record
        elif not isinstance(record.value, dict) or not isinstance(record.value.get("steps"), list):
            yield record.reject("no trajectory here: it has no steps")
        else:
            yield from _run(record, record.value)


def _run(record: Record, value: dict[str, Any]) -> Iterator[Run | Reject]:
    agent, spent = _object(value.get("agent")), _object(value.get("final_metrics"))
    run = Run(place=record.place, framework=word(agent.get("name")))
    run.native_id = word(value.get("session_id")) or word(value.get("trajectory_id"))
    run.model = word(agent.get("model_name"))
    run.tools = list(schemas(agent.get("tool_definitions")))
    work = _Trajectory(run, value)
    for index in work.steps(value):
        reason = "a step that is no object; the run is kept without it"
        yield Reject(place=f"{record.place} .steps[{index}]", reason=reason, records=0)
    run.usage = _usage(spent, "total_")
    run.cost_usd = number(spent.get("total_cost_usd"))
    run.metadata = {**left_over(value, *_TOLD), "schema_version": value.get("schema_version")}
    if agent.get("version") is not None:
        run.metadata["agent_version"] = agent["version"]
    work.assembly.finish()
    if run.cost_usd is None:
        costs = [message.cost_usd for message in run.messages if message.role == "assistant"]
        run.cost_usd = sum(cost for cost in costs if cost is not None) if costs and None not in costs else None
    for step in run.steps:
        step.duration_s = None  # call and result stand in one step with one time
    yield run


class _Trajectory:
    def __init__(self, run: Run, value: dict[str, Any]) -> None:
        self.assembly = Assembly(run)
        self.run = run
        self.inner: dict[str, dict[str, Any]] = {}
        listed = value.get("subagent_trajectories")
        for part in listed if isinstance(listed, list) else ():
            if isinstance(part, dict):
                for name in ("trajectory_id", "session_id"):
                    if ident := word(part.get(name)):
                        self.inner.setdefault(ident, part)
        self.shown: set[int] = set()

    def steps(self, value: dict[str, Any], speaker: str | None = None, depth: int = 0) -> list[int]:
        """All steps of a trajectory in order; the places of those that are none."""
        faults: list[int] = []
        for index, step in enumerate(value["steps"]):
            if isinstance(step, dict):
                self._step(step, (id(value), index), speaker, depth)
            else:
                faults.append(index)
        return faults

    def _step(self, step: dict[str, Any], turn: tuple[int, int], speaker: str | None, depth: int) -> None:
        at = self.assembly.time(step.get("timestamp"))
        role = _ROLES.get(word(step.get("source")), "other")
        metrics = _object(step.get("metrics"))
        message = self.assembly.message(
            role,
            blocks_text(step.get("message")),
            name=speaker,
            at=at,
            usage=_usage(metrics, ""),
            cost_usd=number(metrics.get("cost_usd")),
        )
        if role == "assistant" and self.run.model is None:
            self.run.model = word(step.get("model_name"))
        results = _object(step.get("observation")).get("results")
        results = [result for result in results if isinstance(result, dict)] if isinstance(results, list) else []
        copied = step.get("is_copied_context") is True
        calls = step.get("tool_calls")
        calls = [] if copied or not isinstance(calls, list) else [call for call in calls if isinstance(call, dict)]
        for call in calls:
            self.assembly.call(
                call.get("function_name"),
                from_value(call.get("arguments")),
                turn=turn,
                call_id=word(call.get("tool_call_id")),
                key=self._key(turn, word(call.get("tool_call_id"))),
                message=message,
                at=at,
                caller="subagent" if depth else "agent",
            )
        for result in results:
            call_id = word(result.get("source_call_id"))
            if copied or (call_id is None and not calls):
                self.assembly.message("tool", blocks_text(result.get("content")), at=at)
            else:
                self._subagent(result, depth)
                self._result(result, self._key(turn, call_id), at)

    @staticmethod
    def _key(turn: tuple[int, int], call_id: str | None) -> str | None:
        """Subagents may use the ids of their callers: an id counts within its trajectory."""
        return None if call_id is None else f"{turn[0]} {call_id}"

    def _result(self, result: dict[str, Any], call_id: str | None, at: datetime | None) -> None:
        extra, content = _object(result.get("extra")), result.get("content")
        flag = extra.get("is_error")
        self.assembly.result(
            blocks_text(content),
            call_id=call_id,
            at=at,
            failed=flag if isinstance(flag, bool) else None,
            exit_code=extra.get("exit_code"),
            has_result=content is not None or bool(result.get("subagent_trajectory_ref")),
        )

    def _subagent(self, result: dict[str, Any], depth: int) -> None:
        """What a subagent did, where its trajectory is in the file: between the call and its result."""
        listed = result.get("subagent_trajectory_ref")
        for part in listed if isinstance(listed, list) else [listed]:
            ref = _object(part)
            known = (self.inner.get(word(ref.get(name)) or "") for name in ("trajectory_id", "session_id"))
            value = next((found for found in known if found is not None), None)
            if value is not None and id(value) not in self.shown and depth < _DEPTH:
                self.shown.add(id(value))
                if isinstance(value.get("steps"), list):
                    self.steps(value, word(_object(value.get("agent")).get("name")), depth + 1)


def _usage(metrics: dict[str, Any], prefix: str) -> Usage | None:
    extra = _object(metrics.get("extra"))
    found = Usage(
        input_tokens=count(metrics.get(f"{prefix}prompt_tokens")),
        output_tokens=count(metrics.get(f"{prefix}completion_tokens")),
        cached_tokens=count(metrics.get(f"{prefix}cached_tokens")),
        reasoning_tokens=count(extra.get(f"{prefix}reasoning_tokens")),
    )
    return found if found != Usage() else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
