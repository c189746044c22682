"""OpenAI chat messages to messages and steps: the part that all wrappers share.

A call stands in ``tool_calls[].function.{name, arguments}`` of an assistant
message, in the same without ``function`` (tau2), in ``function_call`` (the
legacy form, without an id) or in ``custom`` (free text input). Its result is a
later message of role ``tool`` (legacy: ``function``). A message that makes
calls is a turn; several calls in it are parallel. Fields of a message beyond
these (reasoning text, audio) are not kept.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest.arguments import ABSENT, from_raw, from_text
from poc.ingest.evidence import judge, read_flag
from poc.ingest.pairing import Pairing
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Message, Role, Run, Step, Usage

ROLES: dict[Any, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_NOTHING = Raw(b"")
UNNAMED = "(unnamed)"
"""Stands for the name of a tool where a call has none; readiness counts these as missing."""


class Function(msgspec.Struct, gc=False):
    """What is called."""

    name: Any = None
    arguments: Raw = _NOTHING


class Custom(msgspec.Struct, gc=False):
    """A call with free text as its input."""

    name: Any = None
    input: Any = None


class Call(msgspec.Struct, gc=False):
    """One entry of ``tool_calls``."""

    id: Any = None
    function: Function | str | None = None
    custom: Custom | None = None
    name: Any = None
    arguments: Raw = _NOTHING
    requestor: Any = None


class ChatMessage(msgspec.Struct, gc=False):
    """One message as it stands in the file; unknown fields are passed over."""

    role: Any = None
    content: Any = None
    tool_calls: list[Call | None] | None = None
    function_call: Function | None = None
    tool_call_id: Any = None
    id: Any = None
    name: Any = None
    requestor: Any = None
    error: Any = None
    is_error: Any = None
    isError: Any = None
    status: Any = None
    exit_code: Any = None
    timestamp: Any = None
    created_at: Any = None
    usage: Any = None
    cost: Any = None
    raw_data: Raw = _NOTHING


decode_messages = msgspec.json.Decoder(list[ChatMessage]).decode
decode_message = msgspec.json.Decoder(ChatMessage).decode


def fill(run: Run, chat: list[ChatMessage]) -> None:
    """Put messages, steps, task text and what follows from them into `run`."""
    pairing = Pairing()
    messages, steps = run.messages, run.steps
    zones: set[bool] = set()
    turn = 0
    for seq, item in enumerate(chat):
        role = ROLES.get(item.role, "other") if isinstance(item.role, str) else "other"
        content = item.content
        message = Message(
            seq=seq, role=role, content=content if content is None or isinstance(content, str) else text_of(content)
        )
        messages.append(message)
        if isinstance(item.name, str):
            message.name = item.name
        stamp = item.timestamp if item.timestamp is not None else item.created_at
        if stamp is not None:
            message.sent_at, zone = parse_time(stamp)
            if zone is not None:
                zones.add(zone)
        if item.usage is not None:
            message.usage = usage_of(item.usage, item.raw_data)
        if item.cost is not None and isinstance(item.cost, int | float) and not isinstance(item.cost, bool):
            message.cost_usd = float(item.cost)
        if role == "tool":
            call_id = item.tool_call_id if item.tool_call_id is not None else item.id
            pairing.result(seq, _word(call_id), message.name)
        elif item.tool_calls or item.function_call:
            calls = [call for call in item.tool_calls or () if call is not None]
            if item.function_call:
                calls.append(Call(function=item.function_call))
            for ordinal, call in enumerate(calls):
                step = _call(call, role, message)
                step.index, step.turn, step.ordinal = len(steps), turn, ordinal
                steps.append(step)
                pairing.call(step)
            turn += 1
    pairing.finish()
    for step, seq in pairing.pairs:
        _answer(step, messages[seq], chat[seq])
    _conclude(run, zones)


def text_of(content: Any) -> str | None:
    """The content as text: parts of text are joined by line breaks, anything else stays as JSON."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return msgspec.json.encode(content).decode()


def usage_of(usage: Any, raw_data: bytes | Raw = b"") -> Usage | None:
    """Tokens from a usage object of the chat API; details are looked for in the provider's own answer too."""
    if not isinstance(usage, dict):
        return None
    full = usage
    if bytes(raw_data)[:1] == b"{" and "prompt_tokens_details" not in usage:
        provider = msgspec.json.decode(raw_data)
        if isinstance(provider, dict) and isinstance(provider.get("usage"), dict):
            full = {**provider["usage"], **usage}
    into = full.get("prompt_tokens_details") or full.get("input_tokens_details") or {}
    out = full.get("completion_tokens_details") or full.get("output_tokens_details") or {}
    found = Usage(
        input_tokens=_count(full, "prompt_tokens", "input_tokens"),
        output_tokens=_count(full, "completion_tokens", "output_tokens"),
        cached_tokens=_count(into, "cached_tokens"),
        reasoning_tokens=_count(out, "reasoning_tokens"),
    )
    return found if found != Usage() else None


def _call(call: Call, role: Role, message: Message) -> Step:
    function = call.function
    if isinstance(function, Function):
        name, arguments = function.name, from_raw(function.arguments)
    elif call.custom:
        name = call.custom.name
        arguments = from_text(call.custom.input) if isinstance(call.custom.input, str) else ABSENT
    else:
        name, arguments = function or call.name, from_raw(call.arguments)
    return Step(
        index=0,
        turn=0,
        tool=name if isinstance(name, str) and name else UNNAMED,
        call_id=_word(call.id),
        arguments_raw=arguments[0],
        arguments_json=arguments[1],
        arguments_status=arguments[2],
        started_at=message.sent_at,
        caller="user" if role == "user" or call.requestor == "user" else "agent",
        message_seq=message.seq,
    )


def _answer(step: Step, message: Message, item: ChatMessage) -> None:
    failed = None
    for flag in (item.is_error, item.isError, item.error):
        if failed is None and isinstance(flag, bool):
            failed = flag
    if failed is None and item.status is not None:
        failed = read_flag(item.status)
    error = None if isinstance(item.error, bool) else item.error
    step.result, message.content = message.content, None
    step.status, step.status_evidence = judge(
        has_result=True, text=step.result, failed=failed, exit_code=item.exit_code, error=error
    )
    step.result_seq = message.seq
    if message.sent_at is not None:
        step.ended_at = message.sent_at
        step.duration_s = seconds_between(step.started_at, step.ended_at)


def _conclude(run: Run, zones: set[bool]) -> None:
    """What the run as a whole takes from its messages where its wrapper has not said it."""
    if run.task_text is None:
        said = (message.content for message in run.messages if message.role == "user" and message.content)
        run.task_text = next(said, None)
    times = [message.sent_at for message in run.messages if message.sent_at is not None]
    if times:
        run.started_at = run.started_at or min(times)
        run.ended_at = run.ended_at or max(times)
        if run.zone_in_log is None:
            run.zone_in_log = False not in zones
    if run.duration_s is None:
        run.duration_s = seconds_between(run.started_at, run.ended_at)
    if run.usage is None:
        run.usage = _sum([message.usage for message in run.messages if message.role == "assistant" and message.usage])


def _sum(parts: list[Usage]) -> Usage | None:
    """The agent's tokens: a figure that is missing in one of the logged usages is unknown for the run."""
    if not parts:
        return None

    def total(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return Usage(
        input_tokens=total([part.input_tokens for part in parts]),
        output_tokens=total([part.output_tokens for part in parts]),
        cached_tokens=total([part.cached_tokens for part in parts]),
        reasoning_tokens=total([part.reasoning_tokens for part in parts]),
    )


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return part["text"]
    return msgspec.json.encode(part).decode()


def _count(table: Any, *names: str) -> int | None:
    if not isinstance(table, dict):
        return None
    for name in names:
        value = table.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62:
            return value
    return None


def _word(value: Any) -> str | None:
    """An id as text: numbers are ids too, an empty string is none."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None
