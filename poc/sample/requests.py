"""How the simulated agent understands a customer's request: words and patterns, nothing else.

Part of the agent, so it knows nothing of tasks and of true end states, and it
can be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

Intent = Literal["cancel", "return", "exchange", "address", "delivery"]

_ADDRESS = re.compile(
    r"(?<![\w-])(\d+[A-Za-z]? [A-Z][^,.:\d]{2,30}), ([A-Z][^,.]{1,30}), ([A-Z0-9][A-Z0-9 -]{2,8}[A-Z0-9])"
)
_INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    ("cancel", re.compile(r"\bcancel|call (?:it|this) off|withdraw|\bstop (?:the|my|this)\b", re.I)),
    ("exchange", re.compile(r"\bexchange|\bswap|change my .{1,40} for\b|\binstead of\b", re.I)),
    (
        "delivery",
        re.compile(
            r"never (?:came|arriv)|(?:n't|not) receive|\blost\b|days late|broken|damaged|in pieces|smashed"
            r"|where (?:is|on earth)|missing|still no\b",
            re.I,
        ),
    ),
    ("return", re.compile(r"\breturn|refund|money back|(?:send|take|give) .{1,30}back", re.I)),
)
_NAMES = (
    re.compile(r"(?:[Tt]his is|[Mm]y name is|I am|I'm) ([A-Z]\w+ [A-Z]\w+)"),
    re.compile(r"([A-Z]\w+ [A-Z]\w+) (?:here|speaking)\b"),
    re.compile(r"([A-Z]\w+ [A-Z]\w+)\W*$"),
)
_KEEPING = re.compile(r"\bkeep\b|\bstays?\b|is great|as planned", re.I)


class Request(msgspec.Struct, frozen=True):
    """A request, understood. `wish` is the text without what the customer wants to keep, in lower case."""

    text: str
    wish: str
    intent: Intent | None
    order_ids: tuple[str, ...]
    email: str | None
    name: str | None
    address: tuple[str, str, str] | None
    wants_refund: bool
    wants_return: bool
    damaged: bool

    def mentions(self, product: str) -> int | None:
        """Where the wish first names a product (by the last word of its name); None when it does not."""
        head = _singular(product.split()[-1].lower())
        found = re.search(rf"(?<![\w-]){re.escape(head)}(?:s|es)?\b", self.wish)
        return found.start() if found else None

    def wanted_variant(self, variants: Sequence[Mapping[str, Any]], current: str) -> Mapping[str, Any] | None:
        """The variant that the wish names last, other than the current one; None when it names none."""
        best: tuple[int, Mapping[str, Any] | None] = (-1, None)
        for variant in variants:
            if variant.get("variant_id") == current:
                continue
            option = str(variant.get("options", "")).split(",")[0].split()[-1:]
            if not option:
                continue
            # Sizes are written in capitals and digits; colours in small letters.
            places = [found.start() for found in re.finditer(rf"\b{re.escape(option[0])}\b", self.text)]
            best = max(best, (places[-1] if places else -1, variant if places else None), key=lambda pair: pair[0])
        return best[1]


@lru_cache(maxsize=512)
def understand(text: str) -> Request:
    """Read a request. What it does not find is None or empty."""
    sentences = re.split(r"(?<=[.!?;:])\s+", text)
    wish = " ".join(sentence for sentence in sentences if not _KEEPING.search(sentence)).lower()
    address = _ADDRESS.search(text)
    intent: Intent | None = None
    for name, pattern in _INTENTS:
        if pattern.search(text):
            intent = name
            break
    if address and intent != "cancel":
        intent = "address"
    person = next((found[1] for pattern in _NAMES if (found := pattern.search(text))), None)
    email = re.search(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", text)
    return Request(
        text=text,
        wish=wish,
        intent=intent,
        order_ids=tuple(dict.fromkeys(re.findall(r"\bW-\d{5}\b", text))),
        email=email[0].rstrip(".") if email else None,
        name=person,
        address=(address[1].strip(), address[2].strip(), address[3].strip()) if address else None,
        wants_refund=bool(re.search(r"refund|money back", text, re.I)),
        wants_return=bool(re.search(r"\breturn|send .{1,20}back", text, re.I)),
        damaged=bool(re.search(r"broken|damaged|in pieces|smashed", text, re.I)),
    )


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
