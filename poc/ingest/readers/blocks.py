"""A message, and its content where that is a list of blocks, whatever vendor's blocks they are.

OpenAI, Anthropic, Bedrock, Gemini, Vercel AI SDK and the OpenTelemetry
conventions: texts, calls, and results, which become messages of their own.
Knows no message format and no file.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from poc.ingest.jsonstream import compact
from poc.ingest.readers.assembly import plain, word
from poc.trajectory import Role

_CALLS = frozenset({"tool_call", "tool_use", "tool-call", "server_tool_use", "function_call"})
_RESULTS = frozenset({"tool_call_response", "tool_result", "tool-result", "function_call_output"})
SILENT = frozenset({"reasoning", "thinking", "redacted_thinking", "redacted-reasoning", "item_reference"})
"""What the model thought is no part of the conversation."""
_TEXTS = frozenset({"text", "output_text", "input_text"})
_IDS = ("id", "tool_use_id", "toolCallId", "call_id", "tool_call_id")


class Asked(msgspec.Struct, gc=False):
    """A call as a message holds it; `arguments` is text or a parsed value."""

    name: str | None
    arguments: Any = None
    call_id: str | None = None
    mark: Hashable = None
    """What tells this call from others, once somebody has worked it out."""


class Said(msgspec.Struct, gc=False):
    """One message: text, calls, or the answer to a call."""

    role: Role
    content: str | None = None
    calls: list[Asked] = []
    call_id: str | None = None
    name: str | None = None
    failed: bool | None = None


def read_blocks(blocks: list[Any], role: Role, name: str | None, out: list[Said]) -> None:
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
        kind = word(block.get("type"))
        if kind in _TEXTS and not block.get("thought"):
            texts.append(_text(block))
            spoke = True
            continue
        if kind in _CALLS:
            calls.append(_typed(block))
            spoke = True
            continue
        result = _result(block)
        if result is not None:
            out.append(result)
            continue
        spoke = True
        call = _asked(block)
        if call is not None:
            calls.append(call)
        elif word(block.get("type")) not in SILENT and not block.get("thought"):
            texts.append(_text(block))
    if spoke:
        text = "\n".join(part for part in texts if part)
        if texts or calls:
            out.append(Said(role, text or ("" if texts and not calls else None), calls, name=name))


def _asked(block: dict[str, Any]) -> Asked | None:
    for key in ("function_call", "functionCall", "toolUse"):
        inner = block.get(key)
        if isinstance(inner, dict):
            call_id = word(inner.get("id")) or word(inner.get("toolUseId"))
            return Asked(word(inner.get("name")), first(inner, "args", "input", "arguments"), call_id)
    return None


def _typed(block: dict[str, Any]) -> Asked:
    name = word(block.get("name")) or word(block.get("toolName"))
    call_id = word(block.get("id")) or word(block.get("toolCallId")) or word(block.get("call_id"))
    return Asked(name, first(block, "arguments", "input", "args"), call_id)


def _result(block: dict[str, Any]) -> Said | None:
    kind = word(block.get("type"))
    for key in () if kind in _RESULTS else ("function_response", "functionResponse", "toolResult"):
        inner = block.get(key)
        if isinstance(inner, dict):
            call_id = word(inner.get("id")) or word(inner.get("toolUseId"))
            content = inner.get("response", inner.get("content"))
            failed = True if inner.get("status") == "error" else None
            return Said("tool", _joined(content), call_id=call_id, name=word(inner.get("name")), failed=failed)
    if kind in _RESULTS or (isinstance(kind, str) and kind.endswith("_tool_result")):
        call_id = next((word(block[key]) for key in _IDS if block.get(key) is not None), None)
        content = first(block, "response", "result", "output", "content")
        if isinstance(content, dict) and set(content) <= {"type", "value"} and "value" in content:  # AI SDK 5
            failed = str(content.get("type", "")).startswith("error") or None
            content = content["value"]
        else:
            flag = block.get("is_error", block.get("isError"))
            failed = flag if isinstance(flag, bool) else None
        name = word(block.get("name")) or word(block.get("toolName"))
        return Said("tool", _joined(content), call_id=call_id, name=name, failed=failed)
    return None


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


def is_block(item: Any) -> bool:
    """Whether an object is a block, not a message."""
    if not isinstance(item, dict) or "role" in item or "message" in item:
        return False
    kind = word(item.get("type"))
    if kind in _CALLS or kind in _RESULTS:
        return "call_id" not in item
    if kind in _TEXTS or kind in ("image", "image_url", "thinking", "reasoning"):
        return True
    return (
        kind is None
        and any(key in item for key in ("text", "functionCall", "functionResponse", "toolUse", "toolResult"))
        and len(item) <= 3
    )


def first(value: dict[str, Any], *keys: str) -> Any:
    """The first member that is there."""
    for key in keys:
        found = value.get(key)
        if found is not None:
            return found
    return None
