"""What the simulated agent reads: the messages of a request, taken apart.

Only what stands in the messages is here: what the user asked, which calls
were made with which results, and text that is neither (where status text may
stand). Knows no shop, no tool and no arm.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_DECODER = json.JSONDecoder()


class PastCall(msgspec.Struct, frozen=True):
    """An earlier call. `result` is None when it was no JSON object or never came; `turn` counts model responses."""

    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any] | None
    answered: bool
    failed: bool
    turn: int

    @property
    def succeeded(self) -> bool:
        """Whether a result came and was no error."""
        return self.answered and not self.failed


class Reading(msgspec.Struct, frozen=True):
    """A request's messages, read. `asides` are texts, oldest first, that are neither request nor result nor answer."""

    request: str
    calls: tuple[PastCall, ...]
    asides: tuple[str, ...]
    late_words: int
    turn: int


def read_messages(messages: Sequence[Mapping[str, Any]]) -> Reading:
    """Take the messages of a chat-completions request apart.

    The first user message is the request. Every system text, every later user
    text and whatever follows the JSON of a tool result is an aside. Of those
    that came after the request, `late_words` counts the words.
    """
    request: str | None = None
    asides: list[str] = []
    late: list[str] = []
    open_calls: dict[str, list[int]] = {}
    calls: list[PastCall] = []
    turn = 0
    for message in messages:
        role, text = message.get("role"), _text(message.get("content"))
        if role in ("system", "developer"):
            asides.append(text)
            if request is not None:
                late.append(text)
        elif role == "user" and request is None:
            request = text
        elif role == "user":
            asides.append(text)
            late.append(text)
        elif role == "assistant":
            for call in message.get("tool_calls") or ():
                function = call.get("function") or {}
                open_calls.setdefault(str(call.get("id")), []).append(len(calls))
                calls.append(PastCall(str(function.get("name")), _arguments(function), None, False, False, turn))
            turn += 1
        elif role == "tool":
            waiting = open_calls.get(str(message.get("tool_call_id")))
            result, rest = _result(text)
            if rest.strip() and result is not None:
                asides.append(rest)
                late.append(rest)
            if waiting:
                index = waiting.pop(0)
                failed = "error" in result if result is not None else text.lstrip().lower().startswith("error")
                calls[index] = msgspec.structs.replace(calls[index], result=result, answered=True, failed=failed)
    return Reading(request or "", tuple(calls), tuple(asides), sum(len(text.split()) for text in late), turn)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


def _arguments(function: Mapping[str, Any]) -> dict[str, Any]:
    raw = function.get("arguments")
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except ValueError:
            # What the agent cannot read, it cannot recognise later: an earlier call with unknown arguments.
            return {}
    return dict(raw) if isinstance(raw, Mapping) else {}


def _result(text: str) -> tuple[dict[str, Any] | None, str]:
    """The JSON object at the head of a tool result, and what follows it."""
    try:
        value, end = _DECODER.raw_decode(text.lstrip())
    except ValueError:
        return None, text
    return (value if isinstance(value, dict) else None), text.lstrip()[end:]
