"""What the model may see of progress: an allowlist.

`ProgressView` is the only type that arms can render. It holds titles, status
and counts; no record, no argument, no result, no outcome. The tracker makes
it; nothing turns a `ProgressRecord` into text by another way.
"""

from __future__ import annotations

import msgspec


class SubgoalView(msgspec.Struct, frozen=True):
    """One subgoal as the model may see it."""

    title: str
    done: bool


class ProgressView(msgspec.Struct, frozen=True):
    """Subgoals in the order of their set, with how many are done and the weighted share (0..1)."""

    subgoals: tuple[SubgoalView, ...]
    fraction: float

    @property
    def done(self) -> int:
        """How many subgoals are achieved."""
        return sum(subgoal.done for subgoal in self.subgoals)

    @property
    def total(self) -> int:
        """How many subgoals there are."""
        return len(self.subgoals)
