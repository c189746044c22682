"""Usage as servers report it, brought to one meaning.

One meaning: input includes cached tokens, output includes reasoning tokens.
OpenAI and most compatible servers report just that. Three known departures
are put right here and nowhere else:

- Anthropic's own fields (`input_tokens` with `cache_read_input_tokens` and
  `cache_creation_input_tokens`) leave cached tokens out of the input;
- some servers report more cached tokens than input, so cached is beside it;
- some leave reasoning out of `completion_tokens` but not of `total_tokens`.

What a server did not report is None. Knows no price.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from poc.trajectory import Usage


def normalise(raw: Any) -> Usage | None:
    """A server's usage object as `Usage`; None when there is none or it holds no count."""
    if not isinstance(raw, Mapping):
        return None
    openai_like = "prompt_tokens" in raw or "completion_tokens" in raw
    tokens_in = _count(raw, "prompt_tokens" if openai_like else "input_tokens")
    tokens_out = _count(raw, "completion_tokens" if openai_like else "output_tokens")
    cached = _first(
        _count(raw.get("prompt_tokens_details"), "cached_tokens"),
        _count(raw.get("input_tokens_details"), "cached_tokens"),
        _count(raw, "prompt_cache_hit_tokens"),
        _count(raw, "cached_tokens"),
        _count(raw, "cache_read_input_tokens"),
    )
    reasoning = _first(
        _count(raw.get("completion_tokens_details"), "reasoning_tokens"),
        _count(raw.get("output_tokens_details"), "reasoning_tokens"),
        _count(raw, "reasoning_tokens"),
    )
    beside = not openai_like and ("cache_read_input_tokens" in raw or "cache_creation_input_tokens" in raw)
    if tokens_in is not None:
        if beside:
            tokens_in += (cached or 0) + (_count(raw, "cache_creation_input_tokens") or 0)
        elif cached is not None and cached > tokens_in:
            tokens_in += cached
    if tokens_in is not None and tokens_out is not None and reasoning:
        total = _count(raw, "total_tokens")
        if reasoning > tokens_out or total == tokens_in + tokens_out + reasoning:
            tokens_out += reasoning
    if tokens_in is None and tokens_out is None:
        return None
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, cached_tokens=cached, reasoning_tokens=reasoning)


def _count(raw: Any, name: str) -> int | None:
    value = raw.get(name) if isinstance(raw, Mapping) else None
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and value >= 0 else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
