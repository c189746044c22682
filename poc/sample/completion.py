"""The simulated agent's turn in OpenAI's chat-completions form: one object, or the chunks of a stream.

Knows the wire format only; nothing of sockets, faults and of how the turn
came about.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from poc import tokens
from poc.sample.agent import Reply

MODEL = "simulated-agent"
FINGERPRINT = "simulated"

Finish = Literal["stop", "tool_calls", "length"]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, ready to be written: `calls` as (id, name, arguments text)."""

    answer_id: str
    created: int
    content: str | None
    calls: tuple[tuple[str, str, str], ...]
    finish: Finish
    usage: dict[str, Any]
    unknown_tools: bool


def make_answer(
    reply: Reply,
    *,
    prompt_tokens: int,
    cached_tokens: int,
    most_tokens: int | None = None,
    broken_arguments: bool = False,
) -> Answer:
    """Put ids, usage and finish reason to a reply.

    most_tokens: the request's output limit; a longer turn is cut there, like
    a real one (cut arguments are no valid JSON). broken_arguments cuts the
    arguments' last character, as models now and then do.
    """
    calls = []
    for ordinal, call in enumerate(reply.calls):
        text = msgspec.json.encode(call.arguments).decode()
        calls.append((call.name, text[:-1] if broken_arguments else text, ordinal))
    content, finish = reply.content, "tool_calls" if calls else "stop"
    completion = _output_tokens(content, calls)
    if most_tokens is not None and completion > most_tokens:
        content = content[: 4 * most_tokens] if content else None
        calls = [(name, text[: 4 * most_tokens], ordinal) for name, text, ordinal in calls[:1]]
        completion, finish = most_tokens, "length"
    unique = hashlib.sha256(f"{time.time_ns()}:{content}:{calls}".encode()).hexdigest()
    return Answer(
        answer_id=f"chatcmpl-sim-{unique[:20]}",
        created=int(time.time()),
        content=content,
        calls=tuple((f"call_{unique[20:40]}{ordinal}", name, text) for name, text, ordinal in calls),
        finish=finish,
        usage={
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": cached_tokens, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        unknown_tools=reply.unknown_tools,
    )


def _output_tokens(content: str | None, calls: list[tuple[str, str, int]]) -> int:
    # A call costs its name and arguments and a few tokens of framing.
    return (tokens.count(content) if content else 0) + sum(tokens.count(f"{name}{text}") + 6 for name, text, _ in calls)


def whole(answer: Answer) -> dict[str, Any]:
    """The `chat.completion` object."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
            for call_id, name, text in answer.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
    return _head(answer, "chat.completion") | {"choices": [choice], "usage": answer.usage}


def chunks(answer: Answer, *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """The `chat.completion.chunk` objects in order; with usage in a last one without choices, when asked for."""
    head = _head(answer, "chat.completion.chunk") | ({"usage": None} if include_usage else {})

    def chunk(delta: dict[str, Any], finish: Finish | None = None) -> dict[str, Any]:
        return head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    # Like OpenAI: the role comes first, with the first call or an empty text.
    yield chunk({"role": "assistant", "content": None if answer.calls else "", "refusal": None})
    for piece in _pieces(answer.content or ""):
        yield chunk({"content": piece})
    for index, (call_id, name, text) in enumerate(answer.calls):
        start = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        yield chunk({"tool_calls": [start]})
        for piece in _pieces(text):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, answer.finish)
    if include_usage:
        yield head | {"choices": [], "usage": answer.usage}


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": answer.answer_id,
        "object": kind,
        "created": answer.created,
        "model": MODEL,
        "service_tier": "default",
        "system_fingerprint": FINGERPRINT,
    }


def _pieces(text: str, size: int = 48) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]
