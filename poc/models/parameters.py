"""The body of a chat request, and what is left out for servers that refuse it.

Compatible servers differ in the parameters that they accept. One that refuses
a parameter by name gets the request again without it (or with the newer
name), once, and the client remembers that for its life. What was left out can
be read in `Parameters.adaptations`, since an unsent temperature changes what
is measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from poc.models.failures import Failure
from poc.models.settings import ModelSettings
from poc.trajectory import ToolSchema

ToolChoice = str | Mapping[str, Any]

_REFUSAL = re.compile(
    r"unsupported|not (?:be )?support|only the default|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed"
    r"|not available|deprecated|extra (?:inputs|fields|params)|no such (?:parameter|field)",
    re.IGNORECASE,
)
_DROPPABLE = ("stream_options", "temperature", "seed", "tool_choice")
_RENAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class Parameters:
    """Builds request bodies for one server and learns what it refuses."""

    def __init__(self, settings: ModelSettings, *, official: bool) -> None:
        self._settings = settings
        # OpenAI's newer models refuse `max_tokens`; other servers may ignore the newer name in silence.
        self._limit_name = "max_completion_tokens" if official else "max_tokens"
        self.adaptations: dict[str, str] = {}

    def body(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        seed: int | None,
        max_output_tokens: int,
        tool_choice: ToolChoice | None,
    ) -> dict[str, Any]:
        """The request as plain data, without what the server refused before."""
        body: dict[str, Any] = {
            "model": self._settings.name,
            "messages": messages,
            self._limit_name: max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if tools:
            body["tools"] = tools
            if tool_choice is not None:
                body["tool_choice"] = _tool_choice(tool_choice)
        if self._settings.temperature is not None:
            body["temperature"] = self._settings.temperature
        if seed is not None and self._settings.send_seed:
            body["seed"] = seed
        for name, change in self.adaptations.items():
            if change == "left out":
                body.pop(name, None)
        if "stream" not in body:
            body.pop("stream_options", None)
        return body

    def adapt(self, failure: Failure, sent: Mapping[str, Any]) -> bool:
        """Learn from a refusal. True when the request would now be sent differently."""
        if failure.status not in (400, 422):
            return False
        name = self._refused(failure, sent)
        if name is None:
            return False
        if name not in self.adaptations:
            if name in _RENAMES:
                other = _RENAMES[name]
                if other in self.adaptations:
                    return False  # Both names were refused.
                self._limit_name = other
                self.adaptations[name] = f"sent as {other}"
            else:
                self.adaptations[name] = "left out"
        # Another call may have learned the same while this one was in flight.
        return True

    def _refused(self, failure: Failure, sent: Mapping[str, Any]) -> str | None:
        names = [name for name in (*_RENAMES, *_DROPPABLE, "stream") if name in sent]
        if not _REFUSAL.search(failure.said):
            return None
        if failure.param in names:
            return failure.param
        for name in names:
            ending = "(?:ing)?" if name == "stream" else ""
            if re.search(rf"(?<![\w]){name}{ending}(?![\w])", failure.said, re.IGNORECASE):
                return name
        return None


def as_tools(tools: Sequence[ToolSchema | Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Tools in the API's shape; records of the vocabulary are turned into it."""
    return [_as_tool(tool) if isinstance(tool, ToolSchema) else tool for tool in tools or ()]


def encode(body: Mapping[str, Any]) -> bytes:
    """The body as JSON. Lone surrogates, which logs do contain, are sent as escapes."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode("ascii")


def _as_tool(schema: ToolSchema) -> dict[str, Any]:
    function: dict[str, Any] = {"name": schema.name}
    if schema.description is not None:
        function["description"] = schema.description
    function["parameters"] = schema.parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice) -> Any:
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        return {"type": "function", "function": {"name": choice}}
    return choice
