"""A simulated prompt cache: how many tokens of a request a provider would have had in its cache.

Like OpenAI's: the longest head of the prompt that came before, in steps of
128 tokens, from 1024 on. The head is the first system text, then the tools,
then the other messages; matching is by whole messages, which a provider does
more finely. So a nonce in the system text keeps requests of different trials
apart, and a changed tail leaves the head cached. Counts are estimates.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from poc import tokens

LEAST, STEP = 1024, 128
_REMEMBERED = 200_000


class PromptCache:
    """Remembers heads of prompts. Not thread-safe: belongs to one event loop."""

    def __init__(self) -> None:
        self._heads: OrderedDict[int, None] = OrderedDict()

    def measure(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
        """Tokens of the request, and how many of them were cached; remembers the request."""
        total = tokens.count_request((), tools)
        parts = [(hash(msgspec.json.encode(m)), tokens.count_message(m)) for m in messages]
        # The tools stand behind the system text, or at the head where there is none.
        place = 1 if messages and messages[0].get("role") in ("system", "developer") else 0
        parts.insert(place, (hash(msgspec.json.encode(tools)), total))
        cached, length, head, hit = 0, 0, 0, True
        for part, size in parts:
            head, length = hash((head, part)), length + size
            hit = hit and head in self._heads
            if hit:
                cached = length
                self._heads.move_to_end(head)
            else:
                self._heads[head] = None
        while len(self._heads) > _REMEMBERED:
            self._heads.popitem(last=False)
        return length, cached // STEP * STEP if cached >= LEAST else 0
