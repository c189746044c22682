"""Where the messages and the answer stand in what people keep of Anthropic's API.

A request and its response are dumped under many names, one inside the other,
as objects or as JSON text. Knows where they are looked for, not what the
messages mean.
"""

from __future__ import annotations

import msgspec

from poc.ingest.readers.decoding import DECODE_ERRORS, Head, elements, members, text

MESSAGE_KEYS = ("messages", "conversation", "trajectory", "traj", "history", "chat_messages")
_REQUESTS = ("request", "request_body", "requestBody", "req", "params", "input", "body", "kwargs")
_ANSWERS = ("response", "response_body", "responseBody", "resp", "output", "result", "body", "completion")
_INSIDE = ("body", "json", "data", "message", "response", "content")
_OWN = frozenset({"tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "mcp_tool_result"})


class Parts(msgspec.Struct):
    """What an object holds. `used` names the members that hold it; `fault` says why there is no answer."""

    messages: bytes = b""
    answer: bytes = b""
    request: Head | None = None
    used: set[str] = set()
    fault: str | None = None


def parts_of(fields: Head) -> Parts:
    """The messages, and the answer, of a run object or of a dumped request."""
    parts = Parts(used=set())
    key = _messages_in(fields)
    if key is not None:
        parts.messages = fields[key]
        parts.used.add(key)
        if "max_tokens" in fields:  # what every request must say, and no record of a run does
            parts.request = {name: fields[name] for name in ("model", "tools", "system") if name in fields}
            parts.used |= {"tools", "system"}
    else:
        for name in _REQUESTS:
            request = _request(fields.get(name, b""))
            if request is not None:
                parts.request, parts.messages = request
                parts.used.add(name)
                break
    for name in _ANSWERS:
        found = _answer(opened(fields.get(name, b"")))
        if found:
            parts.answer = found
            parts.used.add(name)
            break
    if not parts.answer and not parts.messages:
        kind = text(members(opened(fields.get("result", b""))).get("type"))
        if kind in ("errored", "canceled", "expired"):
            parts.fault = f"the request got no answer: {kind}"
    return parts


def opened(raw: bytes) -> bytes:
    """The JSON that a text holds; anything else as it is."""
    if raw[:1] != b'"':
        return raw
    try:
        inner = msgspec.json.decode(raw, type=str).strip().encode()
    except (*DECODE_ERRORS, UnicodeEncodeError):
        return raw
    return inner if inner[:1] in (b"{", b"[") else raw


def likeness(records: list[bytes], *, single: bool) -> float:
    """How much the first records of a file look like Anthropic's. `single`: they may be messages themselves."""
    if single and any("role" in members(record) for record in records):
        found = _like_messages(records)
        if found:
            return found
    return max((_like(record, 0) for record in records), default=0.0)


def _like(raw: bytes, depth: int) -> float:
    if raw[:1] == b"[" and depth < 3:
        parts = elements(raw)
        if any("role" in members(part) for part in parts[:3]):
            return _like_messages(parts)
        return max((_like(part, depth + 1) for part in parts[:5]), default=0.0)
    head = members(raw)
    if _is_answer(head):
        return 0.95
    first = elements(head.get("chat_messages", b""))[:1]
    if first and "sender" in members(first[0]):
        return 0.95
    parts = parts_of(head)
    if parts.answer and _is_answer(members(parts.answer)):
        return 0.95
    tools = elements((parts.request or head).get("tools", b""))[:1]
    if parts.messages and tools and "input_schema" in members(tools[0]):
        return 0.94
    return _like_messages(elements(parts.messages))


def _like_messages(listed: list[bytes]) -> float:
    for part in listed[:60]:
        head = members(part)
        if "tool_calls" in head or head.get("role") == b'"tool"':
            return 0.0
        for block in elements(head.get("content", b"")):
            if text(members(block).get("type")) in _OWN:
                return 0.95
    return 0.0


def _messages_in(fields: Head) -> str | None:
    for key in (*MESSAGE_KEYS, "input"):
        first = elements(fields.get(key, b""))[:3]
        if any(members(part).keys() & {"role", "sender"} for part in first):
            return key
    return None


def _request(raw: bytes) -> tuple[Head, bytes] | None:
    """The members of a request and its messages; the request may lie one object further inside."""
    fields = members(opened(raw))
    for inner in (fields, *(members(opened(fields.get(name, b""))) for name in _INSIDE)):
        key = _messages_in(inner)
        if key is not None:
            return inner, inner[key]
    return None


def _answer(raw: bytes, depth: int = 0) -> bytes:
    """The message that a response holds, perhaps further inside."""
    fields = members(raw)
    if not fields or depth > 2:
        return b""
    if "content" in fields and (text(fields.get("role")) == "assistant" or _is_answer(fields)):
        return raw
    return next(filter(None, (_answer(opened(fields.get(name, b"")), depth + 1) for name in _INSIDE)), b"")


def _is_answer(head: Head) -> bool:
    return text(head.get("type")) == "message" and "usage" in head and "stop_reason" in head
