"""One model response, as the client returns it.

Times are seconds; `None` means the server did not say. Knows no arm, no
environment and no table.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from poc.trajectory import Usage


class ToolCall(msgspec.Struct, kw_only=True):
    """One tool call of a response.

    `arguments` is None when `arguments_raw` is not a JSON object; then
    `arguments_error` says why and the raw text stays as the model wrote it.
    `id_given` is False when the server sent no id and the client made one up.
    """

    id: str
    name: str
    arguments_raw: str
    arguments: dict[str, Any] | None = None
    arguments_error: str | None = None
    id_given: bool = True


class Turn(msgspec.Struct, kw_only=True):
    """One model response with its usage and timings.

    first_token_s: from sending the successful attempt to its first content;
        None when the server did not stream.
    total_s: of the successful attempt, without backoff and earlier attempts.
    retries: attempts before the successful one; backoff_s: waiting between.
    cost_usd: None when the price or the usage is unknown.
    simulated: the server says that it is the simulated model.
    simulated_unknown_tools: and that it did not know the tools.
    """

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] = []
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    first_token_s: float | None = None
    total_s: float
    retries: int = 0
    backoff_s: float = 0.0
    http_status: int
    request_id: str | None = None
    sent_at: datetime
    estimated_input_tokens: int
    cost_usd: float | None = None
    simulated: bool = False
    simulated_unknown_tools: bool = False

    def message(self) -> dict[str, Any]:
        """The response as an assistant message for the history, arguments as the model wrote them."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_raw}}
                for call in self.tool_calls
            ]
        elif self.content is None:
            # Servers refuse an assistant message that holds neither text nor calls.
            message["content"] = self.refusal or ""
        return message
