"""Content blocks of Anthropic's Messages API to messages and steps: the part that its wrappers share.

``tool_use {id, name, input}`` in an assistant message is answered by
``tool_result {tool_use_id, content, is_error}`` in a later user message;
several in one message are parallel. Tools that run at the provider are
``server_tool_use`` / ``mcp_tool_use`` with ``*_tool_result`` in the same
message. Thinking is passed over. ``is_error`` is set only where a call failed,
so its absence says nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest.arguments import from_raw
from poc.ingest.readers.assembly import Assembly, blocks_text, word
from poc.trajectory import Caller, Message, Step

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class Block(msgspec.Struct, gc=False):
    """One block as it stands in the file; unknown fields are passed over."""

    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    input: Raw = Raw(b"")
    tool_use_id: Any = None
    content: Any = None
    is_error: Any = None
    source: Any = None
    title: Any = None


Content = list[Block | str | int | float | bool | None] | Block | str | int | float | bool | None
"""What a message's ``content`` may hold; hand-edited and broken logs hold more than the API allows."""


def blocks_of(content: Content) -> list[Block]:
    """The content as blocks; bare text is a text block."""
    listed = content if isinstance(content, list) else [content]
    blocks: list[Block] = []
    for block in listed:
        if isinstance(block, Block):
            blocks.append(block)
        elif block is not None:
            blocks.append(Block(type="text", text=block if isinstance(block, str) else str(block)))
    return blocks


def words(blocks: list[Block]) -> str | None:
    """The text of a message: its text blocks, and what stands for images and documents."""
    parts: list[str] = []
    for block in blocks:
        if isinstance(block.text, str):
            parts.append(block.text)
        elif block.type in ("image", "document"):
            parts.append(f"[{block.type}]")
    return "\n".join(parts) if parts else None


def calls(
    assembly: Assembly,
    blocks: list[Block],
    message: Message,
    *,
    turn: Hashable,
    at: datetime | None = None,
    caller: Caller = "agent",
    seen: set[str] | None = None,
) -> list[Step]:
    """The calls of an assistant message, and the results that its own blocks bring. Ids in `seen` are repeats."""
    made: list[Step] = []
    for block in blocks:
        call_id = word(block.id)
        if is_call(block):
            if seen is not None and call_id is not None:
                if call_id in seen:
                    continue
                seen.add(call_id)
            made.append(
                assembly.call(
                    block.name,
                    from_raw(block.input),
                    turn=turn,
                    call_id=call_id,
                    message=message,
                    at=at,
                    caller=caller,
                )
            )
        elif is_result(block):
            result(assembly, block, at=None)
    return made


def is_call(block: Block) -> bool:
    """Whether a block makes a call."""
    return isinstance(block.type, str) and block.type in CALLS


def is_result(block: Block) -> bool:
    """Whether a block brings the result of a call."""
    return isinstance(block.type, str) and block.type.endswith("tool_result")


def result(
    assembly: Assembly, block: Block, *, at: datetime | None = None, exit_code: Any = None, error: Any = None
) -> Message:
    """The result that a block brings."""
    failed = block.is_error if isinstance(block.is_error, bool) else None
    content = block.content
    if failed is None and isinstance(content, dict) and str(content.get("type", "")).endswith("_tool_result_error"):
        failed = True
    return assembly.result(
        result_text(content), call_id=word(block.tool_use_id), at=at, failed=failed, exit_code=exit_code, error=error
    )


def mark(role: Any, blocks: list[Block]) -> tuple[Any, ...]:
    """What tells a message from others when a later request repeats it.

    The ids of its calls and results are enough: clients leave out thoughts and trim or shorten texts on the way.
    """
    ids = [word(block.id) if is_call(block) else word(block.tool_use_id) for block in blocks]
    told = tuple(known for known in ids if known is not None)
    if told:
        return role, *told
    texts = [block.text.strip() for block in blocks if isinstance(block.text, str)]
    return role, *texts, *((word(block.name), bytes(block.input)) for block in blocks if is_call(block))


def result_text(content: Any) -> str | None:
    """A result's content as text: blocks of text are joined, documents give theirs, images a word."""
    if not isinstance(content, list):
        return blocks_text(content)
    parts: list[Any] = []
    for block in content:
        source = block.get("source") if isinstance(block, dict) else None
        if isinstance(source, dict) and source.get("type") == "text" and isinstance(source.get("data"), str):
            parts.append({"text": source["data"]})
        elif isinstance(block, str):
            parts.append({"text": block})
        else:
            parts.append(block)
    return blocks_text(parts) if parts else ""
