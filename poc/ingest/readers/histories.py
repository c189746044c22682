"""Which conversation a request goes on with, where requests repeat all that was said so far.

Each message is told by a mark; a request belongs to the conversation whose
marks its own begin with. Where two conversations began alike, the longest
that fits is the one. Knows neither messages nor format.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Histories(Generic[T]):
    """The conversations of one file as they stand now."""

    def __init__(self) -> None:
        self._at: dict[int, T] = {}
        """Conversations by a digest of all their marks."""
        self._standing: dict[int, int] = {}

    def find(self, marks: Sequence[Hashable]) -> tuple[T, int] | None:
        """The conversation that these marks repeat, and how many of them do."""
        digest, found = 0, None
        for count, mark in enumerate(marks, 1):
            digest = hash((digest, mark))
            known = self._at.get(digest)
            if known is not None:
                found = known, count
        return found

    def stands(self, conversation: T, marks: Sequence[Hashable]) -> None:
        """All that `conversation` holds by now."""
        self._at.pop(self._standing.get(id(conversation), 0), None)
        digest = 0
        for mark in marks:
            digest = hash((digest, mark))
        self._at[digest] = conversation
        self._standing[id(conversation)] = digest
