"""mini-SWE-agent trajectories, versions 1 and 2.

v1: a bare list of messages, or ``{info, messages, trajectory_format}``. The
action is the one fenced block (```` ```bash ```` or ```` ```mswea_bash_command ````) in
the assistant's text; its observation is the next message of the user:
``<returncode>0</returncode><output>..``, the submission after the last
command, or a sentence when it timed out or was refused. Text with no block or
with several made no call, and the user's next message says so.
v2: ``messages[].extra`` says it plainly: ``actions[] {command, tool_call_id}``,
``timestamp`` (epoch seconds), ``cost``, ``response.usage`` beside the
assistant's message, ``returncode``, ``raw_output``, ``exception_info`` beside
the observation (role "tool", or "user" in text mode). The last message has
the role "exit".

The only tool is ``bash``; a command out of a block is kept as text and, for
predicates on arguments, as ``{"command": ..}``. ``info.exit_status``
("Submitted", "LimitsExceeded", ...) says how the run ended, not that it was
solved: there is no outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest.arguments import Arguments, from_value
from poc.ingest.readers.assembly import Assembly, blocks_text, number, word
from poc.ingest.readers.chat_messages import usage_of
from poc.ingest.readers.decoding import Head, elements, glimpse, members, text
from poc.ingest.readers.records import Record, left_over, records
from poc.ingest.sources import Source
from poc.trajectory import Reject, Role, Run

NAME = "mini_swe"
VERSION = 1
TOOL = "bash"

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)[ \t]*\n(.*?)\n?```", re.DOTALL)
_CODE = re.compile(
    r"\s*(?:<exception>(?P<exception>.*?)</exception>\s*)?<returncode>(?P<code>-?\d+)</returncode>", re.S
)
_NOT_DONE = re.compile(r"\s*(?:The last command .{0,10000}? timed out|(?:The )?[Cc]ommand (?:was )?not executed)", re.S)
_ROLES: dict[Any, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def sniff(sample: bytes, name: str) -> float:
    """By the format's own name, or by a fenced command that a return code follows."""
    first = glimpse(sample).first
    if (text(first.get("trajectory_format")) or "").startswith("mini-swe-agent"):
        return 0.98
    if b'"mini_version"' in first.get("info", b""):
        return 0.98
    messages = elements(first["messages"]) if "messages" in first and "info" in first else _bare(sample)
    return 0.97 if _looks_so([members(message) for message in messages[:12]]) else 0.0


def _bare(sample: bytes) -> list[bytes]:
    seen = glimpse(sample)
    return seen.records if seen.listed else []


def _looks_so(heads: list[Head]) -> bool:
    asked = any(
        text(head.get("role")) == "assistant" and _BLOCK.search(text(head.get("content")) or "") for head in heads
    )
    return asked and any(b"<returncode>" in head.get("content", b"")[:20000] for head in heads[2:])


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trajectory, usually one."""
    for record in records(source):
        if isinstance(record, Reject):
            yield record
            continue
        value = record.value
        around = value if isinstance(value, dict) else {}
        messages = around.get("messages") if isinstance(value, dict) else value
        if not isinstance(messages, list) or not any(isinstance(item, dict) and "role" in item for item in messages):
            yield record.reject("no messages here")
        else:
            yield from _run(record, around, messages)


def _run(record: Record, around: dict[str, Any], messages: list[Any]) -> Iterator[Run | Reject]:
    run = Run(place=record.place, framework="mini-swe-agent")
    work = Assembly(run)
    open_calls: list[str] = []
    for index, item in enumerate(messages):
        if not isinstance(item, dict):
            reason = "an entry that is no message; the run is kept without it"
            yield Reject(place=f"{record.place} [{index}]", reason=reason, raw=str(item)[:200], records=0)
            continue
        extra = item["extra"] if isinstance(item.get("extra"), dict) else {}
        role = "tool" if item.get("type") == "function_call_output" else item.get("role")
        if role in ("assistant", "model") or item.get("object") == "response":
            open_calls = _acted(work, item, extra, index)
        elif role == "tool" or (role == "user" and open_calls):
            _observed(work, item, extra, open_calls.pop(0) if open_calls else None)
        else:
            work.message(
                _ROLES.get(word(role), "other"), blocks_text(item.get("content")), at=work.time(extra.get("timestamp"))
            )
    _about(run, around)
    work.finish()
    for step in run.steps:
        if step.status_evidence == "result" and _NOT_DONE.match(step.result or ""):
            step.status, step.status_evidence = "error", "text_rule"
    yield run


def _acted(work: Assembly, item: dict[str, Any], extra: dict[str, Any], index: int) -> list[str]:
    """The model's message with the calls it made; gives the keys that their answers are known by."""
    at = work.time(extra.get("timestamp")) if extra else None
    response = extra.get("response")
    spent = response.get("usage") if isinstance(response, dict) else item.get("usage")
    content = blocks_text(item.get("content") if "content" in item else item.get("output"))
    message = work.message("assistant", content, at=at, usage=usage_of(spent), cost_usd=number(extra.get("cost")))
    if work.run.model is None and isinstance(response, dict):
        work.run.model = word(response.get("model"))
    calls = _calls(item, extra, content or "")
    keys: list[str] = []
    for ordinal, (call_id, tool, arguments) in enumerate(calls):
        # The next message answers: where the log has no id, this one makes it plain, and is not kept.
        keys.append(call_id or f"{index}.{ordinal}")
        step = work.call(tool, arguments, turn=index, call_id=keys[-1], message=message, at=at)
        step.call_id = call_id
    return keys


def _calls(item: dict[str, Any], extra: dict[str, Any], content: str) -> list[tuple[str | None, Any, Arguments]]:
    found: list[tuple[str | None, Any, Arguments]] = []
    for call in item.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found.append((word(call.get("id")), function.get("name"), from_value(function.get("arguments"))))
    if not found and isinstance(extra.get("actions"), list):
        for action in extra["actions"]:
            if isinstance(action, dict) and isinstance(action.get("command"), str):
                found.append((word(action.get("tool_call_id")), TOOL, _command(action["command"])))
    if not found and "actions" not in extra:
        blocks = _BLOCK.findall(content) if "```" in content else ()
        if len(blocks) == 1:
            found.append((None, TOOL, _command(blocks[0])))
    return found


def _command(command: str) -> Arguments:
    return command, msgspec.json.encode({"command": command}).decode(), "repaired"


def _observed(work: Assembly, item: dict[str, Any], extra: dict[str, Any], call_id: str | None) -> None:
    seen = blocks_text(item.get("content") if "content" in item else item.get("output"))
    own_id = word(item.get("tool_call_id")) or word(item.get("call_id"))
    code, error = extra.get("returncode"), extra.get("exception_info") or None
    told = _CODE.match(seen) if seen and (code is None or error is None) else None
    if told:
        code = int(told["code"]) if code is None else code
        error = error or told["exception"]
    at = work.time(extra.get("timestamp")) if extra else None
    work.result(seen, call_id=own_id or call_id, at=at, exit_code=code, error=error)


def _about(run: Run, around: dict[str, Any]) -> None:
    info = around["info"] if isinstance(around.get("info"), dict) else {}
    config = info["config"] if isinstance(info.get("config"), dict) else {}
    model, stats = config.get("model"), info.get("model_stats")
    named = word(model.get("model_name")) if isinstance(model, dict) else None
    run.model = named or run.model
    run.cost_usd = number(stats.get("instance_cost")) if isinstance(stats, dict) else None
    run.native_id = run.task_key = word(around.get("instance_id"))
    run.metadata = left_over(around, "messages", "info", "instance_id")
    if info:
        run.metadata["info"] = info
