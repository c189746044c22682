"""Messages inside traces, whatever vendor's shape they have.

Traces keep requests and answers of a model as the instrumented library had
them: OpenAI chat, OpenAI Responses items, Anthropic and Bedrock blocks, Gemini
contents, LangChain messages (plain, serialised or pairs), Vercel AI SDK
messages, and the parts of the OpenTelemetry conventions. All come out as
`Said`. What is no message is none here. Knows no span and no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest.evidence import read_flag
from poc.ingest.jsonstream import compact
from poc.ingest.readers.assembly import plain, word
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
_CALLS = frozenset({"tool_call", "tool_use", "tool-call", "server_tool_use", "function_call"})
_RESULTS = frozenset({"tool_call_response", "tool_result", "tool-result", "function_call_output"})
_SILENT = frozenset({"reasoning", "thinking", "redacted_thinking", "redacted-reasoning", "item_reference"})
"""What the model thought is no part of the conversation."""
_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_DEPTH = 6


class Asked(msgspec.Struct, gc=False):
    """A call as a message holds it; `arguments` is text or a parsed value."""

    name: str | None
    arguments: Any = None
    call_id: str | None = None


class Said(msgspec.Struct):
    """One message: text, calls, or the answer to a call."""

    role: Role
    content: str | None = None
    calls: list[Asked] = []
    call_id: str | None = None
    name: str | None = None
    failed: bool | None = None


def opened(value: Any) -> Any:
    """The value that a text holds as JSON, also twice over; anything else as it is."""
    for _ in range(2):
        if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
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
    """The messages in a request or an answer; a bare text is one message of `role`."""
    return list(_read(opened(value), role, 0))


def _read(value: Any, role: Role, depth: int) -> Iterator[Said]:
    if depth > _DEPTH or value is None:
        return
    if isinstance(value, str):
        if value.strip():
            yield Said(role, value)
    elif isinstance(value, list):
        yield from _list(value, role, depth)
    elif isinstance(value, dict):
        yield from _object(value, role, depth)


def _list(value: list[Any], role: Role, depth: int) -> Iterator[Said]:
    if len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES and isinstance(value[1], str):
        yield Said(_ROLES[value[0]], value[1])  # a LangChain pair
        return
    if value and all(_is_block(item) for item in value):  # bare content blocks
        yield from _blocks(value, role, None)
        return
    for item in value:
        found = _read(opened(item), role, depth + 1) if isinstance(item, str) else _read(item, role, depth + 1)
        yield from found


def _object(value: dict[str, Any], role: Role, depth: int) -> Iterator[Said]:
    kind = value.get("type")
    if kind == "constructor" or isinstance(value.get("kwargs"), dict):  # LangChain, serialised
        yield from _constructed(value, role, depth)
    elif isinstance(kind, str) and kind in _ROLES and isinstance(value.get("data"), dict):
        yield from _message({**value["data"], "role": kind}, _ROLES[kind])
    elif isinstance(value.get("role"), str):
        yield from _message(value, _ROLES.get(value["role"].lower(), "other"))
    elif kind in ("function_call", "custom_tool_call"):
        arguments = value.get("arguments") if kind == "function_call" else value.get("input")
        call_id = word(value.get("call_id")) or word(value.get("id"))
        yield Said("assistant", None, [Asked(word(value.get("name")), arguments, call_id)])
    elif kind in ("function_call_output", "custom_tool_call_output"):
        yield Said("tool", plain(value.get("output")), call_id=word(value.get("call_id")))
    elif kind in PROVIDED or kind == "mcp_call":
        yield from _provided(value, PROVIDED.get(kind))
    elif isinstance(kind, str) and kind.lower() in _ROLES and "content" in value:  # LangChain, plain
        yield from _message(value, _ROLES[kind.lower()])
    elif kind in _SILENT:
        return
    elif isinstance(value.get("generations"), list):
        for generation in _flat(value["generations"]):
            inner = generation.get("message") or generation.get("text") if isinstance(generation, dict) else generation
            yield from _read(inner, "assistant", depth + 1)
    elif isinstance(value.get("choices"), list):
        for choice in value["choices"]:
            if isinstance(choice, dict):
                inner = choice.get("message") or choice.get("text") or choice.get("delta")
                yield from _read(inner, "assistant", depth + 1)
    elif isinstance(value.get("candidates"), list):
        for candidate in value["candidates"]:
            if isinstance(candidate, dict):
                yield from _read(candidate.get("content"), "assistant", depth + 1)
    elif isinstance(value.get("parts"), list):
        yield from _blocks(value["parts"], role, None)
    elif _is_block(value):
        yield from _blocks([value], role, None)
    else:
        yield from _system(value)
        for holder in _HOLDERS:
            if value.get(holder) not in (None, "", []):
                yield from _read(opened(value[holder]), role, depth + 1)
                return


def _provided(value: dict[str, Any], name: str | None) -> Iterator[Said]:
    """A call that the provider carried out: an item of the Responses API that holds its own result."""
    call_id = word(value.get("id"))
    arguments = _first(value, "arguments", "action", "queries", "code")
    yield Said("assistant", None, [Asked(name or word(value.get("name")), arguments, call_id)])
    found, failed = _first(value, "output", "results", "outputs", "error"), read_flag(value.get("status"))
    if found is not None or failed is not None:
        failed = True if value.get("error") is not None else failed
        yield Said("tool", plain(found), call_id=call_id, failed=failed)


def _system(value: dict[str, Any]) -> Iterator[Said]:
    """A system prompt that stands beside the messages."""
    config = value.get("config")
    inside = config.get("system_instruction") if isinstance(config, dict) else None
    for text in (value.get("system"), value.get("instructions"), value.get("system_instruction"), inside):
        if text:
            for said in _read(text, "system", _DEPTH - 2):
                yield Said("system", said.content)
            return


def _constructed(value: dict[str, Any], role: Role, depth: int) -> Iterator[Said]:
    inner = value.get("kwargs")
    if not isinstance(inner, dict):
        return
    path = value.get("id")
    known = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""
    for start, of in _CLASSES:
        if known.startswith(start):
            yield from _message(inner, of)
            return
    yield from _read(inner, role, depth + 1)


def _message(value: dict[str, Any], role: Role) -> Iterator[Said]:
    name = word(value.get("name"))
    content = value.get("parts") if isinstance(value.get("parts"), list) else value.get("content")
    if content is None and isinstance(value.get("contents"), list):
        content = value["contents"]
    calls = list(_calls(value))
    flag = value.get("is_error")
    failed = flag if isinstance(flag, bool) else (True if value.get("status") == "error" else None)
    call_id = word(value.get("tool_call_id")) or word(value.get("toolCallId"))
    if isinstance(content, list):
        found = list(_blocks(content, role, name))
    elif isinstance(content, dict):
        found = list(_blocks([content], role, name))
    else:
        found = [Said(role, plain(content), name=name)] if content is not None else []
    if role == "tool":
        for said in found:
            said.call_id = said.call_id or call_id or (word(value.get("id")) if len(found) == 1 else None)
            said.failed = failed if said.failed is None else said.failed
        if not found and call_id is not None:
            found = [Said("tool", None, call_id=call_id, name=name)]
    if calls:
        own = next((said for said in found if said.role == role), None)
        if own is None:
            own = Said(role, None, name=name)
            found.append(own)
        known = {call.call_id for call in own.calls if call.call_id is not None}
        # LangChain keeps Anthropic's blocks and its own list of the same calls.
        own.calls = own.calls + [call for call in calls if call.call_id is None or call.call_id not in known]
        if not own.content:
            own.content = None
    yield from found


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
            yield Asked(name, _first(inner, "arguments", "args", "input"), call_id)
    legacy = value.get("function_call")
    if isinstance(legacy, dict) and legacy.get("name"):
        yield Asked(word(legacy["name"]), _first(legacy, "arguments", "args"), word(legacy.get("id")))


def _blocks(blocks: list[Any], role: Role, name: str | None) -> Iterator[Said]:
    """A message from its blocks; results inside it become messages of their own, before it."""
    texts: list[str] = []
    calls: list[Asked] = []
    spoke = False
    for block in blocks:
        if isinstance(block, str):
            texts.append(block)
            spoke = True
            continue
        if not isinstance(block, dict):
            continue
        result = _result(block, role)
        if result is not None:
            yield result
            continue
        spoke = True
        call = _asked(block)
        if call is not None:
            calls.append(call)
        elif block.get("type") not in _SILENT and not block.get("thought"):
            texts.append(_text(block))
    if spoke:
        text = "\n".join(part for part in texts if part)
        if texts or calls:
            yield Said(role, text or ("" if texts and not calls else None), calls, name=name)


def _asked(block: dict[str, Any]) -> Asked | None:
    for key in ("function_call", "functionCall", "toolUse"):
        inner = block.get(key)
        if isinstance(inner, dict):
            call_id = word(inner.get("id")) or word(inner.get("toolUseId"))
            return Asked(word(inner.get("name")), _first(inner, "args", "input", "arguments"), call_id)
    kind = block.get("type")
    if kind in _CALLS:
        name = word(block.get("name")) or word(block.get("toolName"))
        call_id = word(block.get("id")) or word(block.get("toolCallId")) or word(block.get("call_id"))
        return Asked(name, _first(block, "arguments", "input", "args"), call_id)
    return None


def _result(block: dict[str, Any], role: Role) -> Said | None:
    for key in ("function_response", "functionResponse", "toolResult"):
        inner = block.get(key)
        if isinstance(inner, dict):
            call_id = word(inner.get("id")) or word(inner.get("toolUseId"))
            content = inner.get("response", inner.get("content"))
            failed = True if inner.get("status") == "error" else None
            return Said("tool", _joined(content), call_id=call_id, name=word(inner.get("name")), failed=failed)
    kind = block.get("type")
    if kind in _RESULTS or (isinstance(kind, str) and kind.endswith("_tool_result")):
        call_id = next((word(block[key]) for key in _IDS if block.get(key) is not None), None)
        content = _first(block, "response", "result", "output", "content")
        if isinstance(content, dict) and set(content) <= {"type", "value"} and "value" in content:  # AI SDK 5
            failed = str(content.get("type", "")).startswith("error") or None
            content = content["value"]
        else:
            flag = block.get("is_error", block.get("isError"))
            failed = flag if isinstance(flag, bool) else None
        name = word(block.get("name")) or word(block.get("toolName"))
        return Said("tool", _joined(content), call_id=call_id, name=name, failed=failed)
    return None


_IDS = ("id", "tool_use_id", "toolCallId", "call_id", "tool_call_id")


def _text(block: dict[str, Any]) -> str:
    for key in ("text", "content", "message_content.text"):
        if isinstance(block.get(key), str):
            return block[key]
    inner = block.get("message_content")
    if isinstance(inner, dict):
        return _text(inner)
    kind = block.get("type")
    if isinstance(kind, str) and ("image" in kind or kind in ("blob", "uri", "file")):
        return f"[{kind}]"
    return compact(block)


def _joined(content: Any) -> str | None:
    """A result as text: blocks of text are joined, anything else stays as JSON."""
    blocks = content if isinstance(content, list) else []
    if blocks and all(isinstance(block, dict) and isinstance(block.get("text"), str) for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return plain(content)


def _is_block(item: Any) -> bool:
    if not isinstance(item, dict) or "role" in item or "message" in item:
        return False
    kind = item.get("type")
    if kind in _CALLS or kind in _RESULTS:
        return "call_id" not in item
    if kind in ("text", "output_text", "input_text", "image", "image_url", "thinking", "reasoning"):
        return True
    return (
        kind is None
        and any(key in item for key in ("text", "functionCall", "functionResponse", "toolUse", "toolResult"))
        and len(item) <= 3
    )


def _first(value: dict[str, Any], *keys: str) -> Any:
    for key in keys:
        found = value.get(key)
        if found is not None:
            return found
    return None


def _flat(value: Any) -> Iterator[Any]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item
