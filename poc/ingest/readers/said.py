"""Messages inside traces, whatever vendor's shape they have.

Traces keep requests and answers of a model as the instrumented library had
them: OpenAI chat, OpenAI Responses items, Anthropic and Bedrock blocks, Gemini
contents, LangChain messages (plain, serialised or pairs), Vercel AI SDK
messages, and the parts of the OpenTelemetry conventions. All come out as
`Said`. What is no message is none here. Knows no span and no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from poc.ingest.evidence import read_flag
from poc.ingest.readers.assembly import plain, word
from poc.ingest.readers.blocks import SILENT, Asked, Said, first, is_block, read_blocks
from poc.ingest.readers.responses_items import PROVIDED
from poc.trajectory import Role

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
    "tool_result": "tool",
    "tool-response": "tool",
    "tool-call": "assistant",
}
_CLASSES: tuple[tuple[str, Role], ...] = (
    ("Human", "user"),
    ("AI", "assistant"),
    ("System", "system"),
    ("Tool", "tool"),
    ("Function", "tool"),
)
"""How the names of LangChain's message classes begin."""
_HOLDERS = (
    "messages",
    "contents",
    "input",
    "message",
    "prompt",
    "prompts",
    "output",
    "outputs",
    "content",
    "response",
    "value",
)
_CALLING = frozenset({"tool_calls", "toolCalls", "additional_kwargs", "function_call"})
_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_SHORT = 1 << 15
"""Bytes up to which a message that may come again is kept."""
_parts = msgspec.json.Decoder(list[msgspec.Raw]).decode
_OPENING = ("{", "[", '"')
_DEPTH = 6


def opened(value: Any) -> Any:
    """The value that a text holds as JSON, also twice over; anything else as it is."""
    for _ in range(2):
        if not isinstance(value, str) or (value[:1] not in _OPENING and value.lstrip()[:1] not in _OPENING):
            return value
        try:
            value = msgspec.json.decode(value)
        except _ERRORS:
            return value
    return value


def unquoted(value: Any) -> Any:
    """The text that a JSON text in quotes stands for, as it was before it was stored; anything else as it is."""
    if not isinstance(value, str) or value[:1] != '"':
        return value
    try:
        return msgspec.json.decode(value, type=str)
    except _ERRORS:
        return value


def messages(value: Any, role: Role = "user") -> list[Said]:
    """The messages in a request or an answer; a bare text is one message of `role`. They are not to be changed."""
    if isinstance(value, str) and value[:2] == "[{":
        found = _repeated(value, role)
        if found is not None:
            return found
    out: list[Said] = []
    _read(opened(value), role, 0, out)
    return out


def _repeated(text: str, role: Role) -> list[Said] | None:
    """The messages of a list that stands as text, those that were in an earlier one not read again.

    Every request repeats the history before it. None for a list of blocks.
    """
    try:
        parts = _parts(text)
        if not text.startswith('[{"role"') and is_block(msgspec.json.decode(parts[0])):
            return None
        out: list[Said] = []
        for part in parts:
            raw = bytes(part)
            if len(raw) <= _SHORT:
                out += _known(raw, role)
            else:
                _item(msgspec.json.decode(raw), role, 0, out)
    except _ERRORS:
        return None
    return out


@lru_cache(maxsize=1024)
def _known(raw: bytes, role: Role) -> list[Said]:
    out: list[Said] = []
    _item(msgspec.json.decode(raw), role, 0, out)
    return out


def _read(value: Any, role: Role, depth: int, out: list[Said]) -> None:
    if depth > _DEPTH or value is None:
        return
    if isinstance(value, str):
        if value.strip():
            out.append(Said(role, value))
    elif isinstance(value, list):
        _list(value, role, depth, out)
    elif isinstance(value, dict):
        _object(value, role, depth, out)


def _list(value: list[Any], role: Role, depth: int, out: list[Said]) -> None:
    if len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES and isinstance(value[1], str):
        out.append(Said(_ROLES[value[0]], value[1]))  # a LangChain pair
    elif value and all(map(is_block, value)):  # bare content blocks
        read_blocks(value, role, None, out)
    else:
        for item in value:
            _item(item, role, depth, out)


def _item(item: Any, role: Role, depth: int, out: list[Said]) -> None:
    """An element of a list of messages."""
    if isinstance(item, dict) and depth < _DEPTH:
        _object(item, role, depth + 1, out)
        return
    _read(opened(item) if isinstance(item, str) else item, role, depth + 1, out)


def _object(value: dict[str, Any], role: Role, depth: int, out: list[Said]) -> None:
    kind = word(value.get("type"))
    if kind is None and isinstance(value.get("role"), str) and "kwargs" not in value:  # the usual case
        _message(value, _ROLES.get(value["role"].lower(), "other"), out)
        return
    if kind == "constructor" or isinstance(value.get("kwargs"), dict):  # LangChain, serialised
        _constructed(value, role, depth, out)
    elif isinstance(kind, str) and kind in _ROLES and isinstance(value.get("data"), dict):
        _message({**value["data"], "role": kind}, _ROLES[kind], out)
    elif isinstance(value.get("role"), str):
        _message(value, _ROLES.get(value["role"].lower(), "other"), out)
    elif kind in ("function_call", "custom_tool_call"):
        arguments = value.get("arguments") if kind == "function_call" else value.get("input")
        call_id = word(value.get("call_id")) or word(value.get("id"))
        out.append(Said("assistant", None, [Asked(word(value.get("name")), arguments, call_id)]))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        out.append(Said("tool", plain(value.get("output")), call_id=word(value.get("call_id"))))
    elif kind in PROVIDED or kind == "mcp_call":
        _provided(value, PROVIDED.get(kind), out)
    elif isinstance(kind, str) and kind.lower() in _ROLES and "content" in value:  # LangChain, plain
        _message(value, _ROLES[kind.lower()], out)
    elif kind in SILENT:
        return
    elif isinstance(value.get("generations"), list):
        for generation in _flat(value["generations"]):
            inner = generation.get("message") or generation.get("text") if isinstance(generation, dict) else generation
            _read(inner, "assistant", depth + 1, out)
    elif isinstance(value.get("choices"), list):
        for choice in value["choices"]:
            if isinstance(choice, dict):
                inner = choice.get("message") or choice.get("text") or choice.get("delta")
                _read(inner, "assistant", depth + 1, out)
    elif isinstance(value.get("candidates"), list):
        for candidate in value["candidates"]:
            if isinstance(candidate, dict):
                _read(candidate.get("content"), "assistant", depth + 1, out)
    elif isinstance(value.get("parts"), list):
        read_blocks(value["parts"], role, None, out)
    elif is_block(value):
        read_blocks([value], role, None, out)
    else:
        _system(value, out)
        for holder in _HOLDERS:
            if value.get(holder) not in (None, "", []):
                _read(opened(value[holder]), role, depth + 1, out)
                return


def _provided(value: dict[str, Any], name: str | None, out: list[Said]) -> None:
    """A call that the provider carried out: an item of the Responses API that holds its own result."""
    call_id = word(value.get("id"))
    arguments = first(value, "arguments", "action", "queries", "code")
    out.append(Said("assistant", None, [Asked(name or word(value.get("name")), arguments, call_id)]))
    found, failed = first(value, "output", "results", "outputs", "error"), read_flag(value.get("status"))
    if found is not None or failed is not None:
        failed = True if value.get("error") is not None else failed
        out.append(Said("tool", plain(found), call_id=call_id, failed=failed))


def _system(value: dict[str, Any], out: list[Said]) -> None:
    """A system prompt that stands beside the messages."""
    config = value.get("config")
    inside = config.get("system_instruction") if isinstance(config, dict) else None
    for text in (value.get("system"), value.get("instructions"), value.get("system_instruction"), inside):
        if text:
            found: list[Said] = []
            _read(text, "system", _DEPTH - 2, found)
            out += [Said("system", said.content) for said in found]
            return


def _constructed(value: dict[str, Any], role: Role, depth: int, out: list[Said]) -> None:
    inner = value.get("kwargs")
    if not isinstance(inner, dict):
        return
    path = value.get("id")
    known = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""
    for start, of in _CLASSES:
        if known.startswith(start):
            _message(inner, of, out)
            return
    _read(inner, role, depth + 1, out)


def _message(value: dict[str, Any], role: Role, out: list[Said]) -> None:
    name = word(value.get("name"))
    content = value.get("content")
    if not isinstance(content, str):
        content = value["parts"] if isinstance(value.get("parts"), list) else content
        if content is None and isinstance(value.get("contents"), list):
            content = value["contents"]
    found: list[Said] = []
    if isinstance(content, list):
        read_blocks(content, role, name, found)
    elif isinstance(content, dict):
        read_blocks([content], role, name, found)
    elif content is not None:
        found.append(Said(role, plain(content), name=name))
    if role == "tool":
        flag = value.get("is_error")
        failed = flag if isinstance(flag, bool) else (True if value.get("status") == "error" else None)
        call_id = word(value.get("tool_call_id")) or word(value.get("toolCallId"))
        for said in found:
            said.call_id = said.call_id or call_id or (word(value.get("id")) if len(found) == 1 else None)
            said.failed = failed if said.failed is None else said.failed
        if not found and call_id is not None:
            found = [Said("tool", None, call_id=call_id, name=name)]
    if not _CALLING.isdisjoint(value) and (calls := list(_calls(value))):
        own = next((said for said in found if said.role == role), None)
        if own is None:
            own = Said(role, None, name=name)
            found.append(own)
        known = {call.call_id for call in own.calls if call.call_id is not None}
        # LangChain keeps Anthropic's blocks and its own list of the same calls.
        own.calls = own.calls + [call for call in calls if call.call_id is None or call.call_id not in known]
        if not own.content:
            own.content = None
    out += found


def _calls(value: dict[str, Any]) -> Iterator[Asked]:
    listed = value.get("tool_calls") or value.get("toolCalls")
    if not listed and isinstance(value.get("additional_kwargs"), dict):
        listed = value["additional_kwargs"].get("tool_calls")
    for call in listed if isinstance(listed, list) else ():
        if not isinstance(call, dict):
            continue
        held = call.get("tool_call")
        inner = held if isinstance(held, dict) else call
        call_id = word(inner.get("id")) or word(inner.get("toolCallId"))
        function = inner.get("function")
        if isinstance(function, dict):
            yield Asked(word(function.get("name")), function.get("arguments"), call_id)
        else:
            name = word(inner.get("name")) or word(inner.get("toolName"))
            yield Asked(name, first(inner, "arguments", "args", "input"), call_id)
    legacy = value.get("function_call")
    if isinstance(legacy, dict) and legacy.get("name"):
        yield Asked(word(legacy["name"]), first(legacy, "arguments", "args"), word(legacy.get("id")))


def _flat(value: Any) -> Iterator[Any]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item
