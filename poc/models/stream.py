"""Puts a streamed or whole chat completion together into one response.

Servers that call themselves compatible differ in how they stream tool calls;
what is tolerated here: calls without an index or without an id, several whole
calls under one index, arguments as an object, the whole message in place of a
delta, the older `function_call`, usage in any chunk or inside a choice.
Arguments are kept as the model wrote them.

Knows no HTTP and no retry.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from poc.models.turn import ToolCall
from poc.models.usage import normalise
from poc.trajectory import Usage


class _Call:
    """A tool call while it arrives."""

    __slots__ = ("call_id", "index", "name", "parts")

    def __init__(self, index: int | None, call_id: str | None) -> None:
        self.index = index
        self.call_id = call_id
        self.name = ""
        self.parts: list[str] = []

    def is_whole(self) -> bool:
        """Whether its arguments are a finished JSON object."""
        text = "".join(self.parts)
        return text.rstrip().endswith("}") and parse_arguments(text)[0] is not None


class Assembler:
    """Feed it chunks in order; read the fields at the end.

    `finish_reason` stays None, and `choices_seen` False, when the server never
    sent them: the client judges whether the stream was cut.
    """

    def __init__(self) -> None:
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.choices_seen = False
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []

    def feed(self, chunk: Mapping[str, Any]) -> bool:
        """Take one chunk, or a whole completion. True when it brought something of the answer."""
        if isinstance(model := chunk.get("model"), str) and model:
            self.model = model
        # Some servers repeat a running usage in every chunk: the last one counts.
        groq = chunk.get("x_groq")
        usage = normalise(chunk.get("usage")) or normalise(groq.get("usage") if isinstance(groq, Mapping) else None)
        brought = False
        for choice in _mappings(chunk.get("choices")):
            if choice.get("index") not in (None, 0):
                continue
            self.choices_seen = True
            usage = usage or normalise(choice.get("usage"))
            if isinstance(reason := choice.get("finish_reason"), str) and reason:
                self.finish_reason = reason
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, Mapping):
                brought |= self._take(delta)
        self.usage = usage or self.usage
        return brought

    @property
    def content(self) -> str | None:
        """The text; None when there was none."""
        return "".join(self._content) or None

    @property
    def refusal(self) -> str | None:
        """The model's refusal, where the server sends it apart from the text."""
        return "".join(self._refusal) or None

    def tool_calls(self) -> list[ToolCall]:
        """The calls in their order, arguments parsed where they are a JSON object."""
        return [_finished(call) for call in self._calls]

    def _take(self, delta: Mapping[str, Any]) -> bool:
        brought = False
        if text := _text(delta.get("content")):
            self._content.append(text)
            brought = True
        if text := _text(delta.get("refusal")):
            self._refusal.append(text)
            brought = True
        for piece in _mappings(delta.get("tool_calls")):
            self._take_call(piece)
            brought = True
        if isinstance(function := delta.get("function_call"), Mapping):
            self._take_call({"function": function})
            brought = True
        # Reasoning text is not kept, but it is the first sign of an answer.
        return brought or bool(delta.get("reasoning_content") or delta.get("reasoning"))

    def _take_call(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        name = function.get("name") if isinstance(function.get("name"), str) else None
        call_id = piece.get("id") if isinstance(piece.get("id"), str) and piece["id"] else None
        index = piece.get("index") if isinstance(piece.get("index"), int) else None
        call = self._find(index, call_id, name)
        if call is None:
            call = _Call(index, call_id)
            self._calls.append(call)
        call.call_id = call.call_id or call_id
        # A name comes whole, in pieces before the arguments, or again in every chunk.
        if name and name != call.name and not call.parts:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            if arguments:
                call.parts.append(arguments)
        elif arguments is not None:
            call.parts.append(msgspec.json.encode(arguments).decode())

    def _find(self, index: int | None, call_id: str | None, name: str | None) -> _Call | None:
        """The call that a piece continues; None when it begins a new one."""
        if call_id is not None:
            for call in self._calls:
                if call.call_id == call_id:
                    return call
        if index is not None:
            call = next((call for call in reversed(self._calls) if call.index == index), None)
        else:
            call = self._calls[-1] if self._calls else None
        if call is None:
            return None
        # A name with another id, or after whole arguments: the next call of a server
        # that numbers every call 0 or none at all.
        another = call_id is not None and call.call_id is not None
        begins = name is not None and (another or call.is_whole() or (index is None and name != call.name))
        return None if begins or (another and index is None) else call


def _finished(call: _Call) -> ToolCall:
    raw = "".join(call.parts)
    arguments, error = parse_arguments(raw)
    return ToolCall(
        id=call.call_id or f"call_{uuid.uuid4().hex[:16]}",
        name=call.name,
        arguments_raw=raw,
        arguments=arguments,
        arguments_error=error,
        id_given=call.call_id is not None,
    )


def parse_arguments(raw: str) -> tuple[dict[str, Any] | None, str | None]:
    """A call's arguments as an object, or why they are none. An empty text is a call without arguments."""
    if not raw.strip():
        return {}, None
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        return None, f"not valid JSON: {error}"
    if not isinstance(value, dict):
        return None, f"a JSON {type(value).__name__}, not an object"
    return value, None


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part.get("text")) or "" for part in _mappings(value))
    return None
