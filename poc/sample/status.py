"""How the simulated agent reads status text: checklists and progress notes, in English and Japanese.

It finds marks (``[x] title``, ``[ ] title``, ``- title``, ``done: ...``,
``next: ...``, ``2 of 5 done.``) in any text and guesses which of the offered
tools a title is about from the words they share. It does not know who wrote
the text, whether it is true, or which arm it belongs to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

_DONE = re.compile(
    r"^\s*(?:[-*]\s*)?(?:\[[xX✓✔]\]|[☑✅✔✓]|(?:done|finished|completed|完了|済み?)\s*[:\uff1a])\s*(\S.*)$", re.I
)
_OPEN = re.compile(
    r"^\s*(?:[-*]\s*)?(?:\[\s?\]|[☐□]|(?:open|next|to ?do|remaining|left|未完了|未|次|残り)\s*[:\uff1a])\s*(\S.*)$",
    re.I,
)
_LISTED = re.compile(r"^\s*(?:[-*•・]|\d{1,2}[.)])\s+(\S.*)$")
_COUNT = re.compile(r"(\d+) of (\d+) (?:done|subgoals)|(\d+)件中(\d+)件", re.I)
_OR = re.compile(r"\bor\b|または|あるいは", re.I)
_SEVERAL = re.compile(r"\s*[;\uff1b、]\s*")

_STOP = frozenset(
    {
        "a", "an", "and", "are", "at", "be", "been", "by", "for", "from", "has", "have", "in", "is", "it", "its", "of",
        "on", "or", "the", "to", "was", "were", "when", "with",
    }
)  # fmt: skip
# What means the same at an order desk; and Japanese words for it.
_SAME = {
    "found": "find", "identified": "find", "known": "find", "who": "customer", "buyer": "customer",
    "looked": "get", "read": "get", "seen": "get", "opened": "open", "viewed": "get",
    "told": "message", "informed": "message", "written": "message", "answered": "message", "notified": "message",
    "parcel": "shipment", "package": "shipment", "located": "track", "money": "refund", "paid": "refund",
    "reimbursed": "refund", "swapped": "exchange", "allowed": "allows", "eligibility": "policy", "rules": "policy",
    "withdrawn": "cancel", "stopped": "cancel", "handed": "escalate", "stock": "product",
}  # fmt: skip
_JAPANESE = {
    "顧客": "customer", "お客様": "customer", "特定": "find", "検索": "find", "一覧": "list",
    "注文": "order", "確認": "get", "商品": "product", "在庫": "product", "返品": "return",
    "規定": "policy", "ポリシー": "policy", "追跡": "track", "配送": "shipment", "取消": "cancel",
    "取り消": "cancel", "キャンセル": "cancel", "返金": "refund", "住所": "address", "変更": "change",
    "交換": "exchange", "ラベル": "label", "申請": "claim", "クレーム": "claim", "代替": "replacement",
    "再送": "replacement", "連絡": "message", "メッセージ": "message", "通知": "message", "引き継": "escalate",
    "エスカレ": "escalate",
}  # fmt: skip

_LEAST_SHARE = 0.3
"""A title belongs to a tool when at least this share of its weighted words is found there."""
_STRANGER = 0.25
"""How much a word that no tool knows counts against a match."""


class Status(msgspec.Struct, frozen=True):
    """What a status text says, by tool name. `left` is how many points it calls open, None when it does not say."""

    done: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    left: int | None = None
    words: int = 0

    @property
    def found(self) -> bool:
        """Whether there was any status text."""
        return self.words > 0


NOTHING = Status()


def read_status(texts: Iterable[str], tools: Mapping[str, str]) -> Status:
    """The newest status text among `texts` (oldest first).

    tools: name to description of what is offered. A text without marks is no
    status text; a bare list counts only from two lines on that are about tools.
    """
    for text in reversed(list(texts)):
        status = _one_text(text, tuple(sorted(tools.items())))
        if status.found:
            return status
    return NOTHING


@lru_cache(maxsize=4096)
def _one_text(text: str, tools: tuple[tuple[str, str], ...]) -> Status:
    marked: dict[str, list[str]] = {"done": [], "open": [], "listed": []}
    lines = 0
    for line in text.splitlines():
        for kind, pattern in (("done", _DONE), ("open", _OPEN), ("listed", _LISTED)):
            if found := pattern.match(line):
                marked[kind].extend(_SEVERAL.split(found[1]))
                lines += 1
                break
    count = _COUNT.search(text)
    about = {kind: [match_tools(title, tools) for title in titles] for kind, titles in marked.items()}
    if sum(bool(names) for names in about["listed"]) < 2:
        about["listed"] = []
    checked = bool(marked["done"] or marked["open"])
    if not checked and not about["listed"] and not count:
        return NOTHING
    left = len(marked["open"]) if checked else None
    if count:
        done, total = (int(count[1]), int(count[2])) if count[1] else (int(count[4]), int(count[3]))
        left = max(total - done, 0)
    sets = {kind: frozenset(name for names in found for name in names) for kind, found in about.items()}
    return Status(**sets, left=left, words=max(len(text.split()), lines))


@lru_cache(maxsize=4096)
def match_tools(title: str, tools: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """The offered tools that a title is about: those that share most of its words, rare words counting more.

    A word of a tool's name counts fully, one of its description half; a word
    that no tool knows says little against a match. What is joined by "or" is
    matched one by one. Empty when no tool has `_LEAST_SHARE` of the title.
    """
    return frozenset(name for part in _OR.split(title) for name in _best(_stems(part), tools))


def _best(wanted: frozenset[str], tools: tuple[tuple[str, str], ...]) -> set[str]:
    known = [(name, _stems(name.replace("_", " ")), _stems(description)) for name, description in tools]
    frequency = {stem: sum(stem in by_name or stem in text for _, by_name, text in known) for stem in wanted}
    weight = {stem: math.log(1 + len(known) / count) for stem, count in frequency.items() if count}
    strangers = _STRANGER * math.log(1 + len(known)) * sum(count == 0 for count in frequency.values())
    scores = {
        name: sum(w * (1.0 if stem in by_name else 0.5 if stem in text else 0.0) for stem, w in weight.items())
        for name, by_name, text in known
    }
    best = max(scores.values(), default=0.0)
    if best <= 0.0 or best < _LEAST_SHARE * (sum(weight.values()) + strangers):
        return set()
    return {name for name, score in scores.items() if score >= best - 1e-9}


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    words: list[str] = re.findall(r"[a-z]+", text.lower())
    words += [english for japanese, english in _JAPANESE.items() if japanese in text]
    meant = [_SAME.get(word, word) for word in words if word not in _STOP]
    # Six letters make "cancelled" and "cancel", "refunds" and "refunded" the same.
    return frozenset(word[:6].rstrip("s") for word in meant)
