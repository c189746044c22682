"""Start and end events of calls, joined to one row a call.

By call id where both carry one, else in order: an end answers the oldest open
start of the same tool in the run, without a tool's name the oldest open start.
A start without an end stays a call without a result; an end without a start is
a call of which only the end is known. Where more starts than ends came, a
start that says the same as the one before it, at most a second later, was
logged twice and counts once. Knows fields, not columns or files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest.column_values import side
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Reject

_FROM_END = ("result", "status", "failed", "exit_code", "error", "duration_s", "duration_ms", "input_tokens")
_SAME = ("tool", "arguments", "call_id", "turn", "step")
_TWICE_S = 1.0


class Call(msgspec.Struct, gc=False):
    """A call as its events tell it: fields with their values, and how many records told it."""

    place: str
    cell: dict[str, Any]
    records: int = 1


class EventJoin:
    """Feed the events of one run in their order, then take the calls from `finish`."""

    def __init__(self) -> None:
        self._starts: list[Call] = []
        self._open: list[Call] = []
        self._lone: list[Call] = []
        self._ends = 0

    def add(self, place: str, cell: dict[str, Any]) -> str | None:
        """Take one event. Gives the reason where it belongs to no call."""
        which = side(cell.get("event"))
        if which is None:
            return "an event that neither starts nor ends a call"
        if which == "start":
            if not cell.get("tool"):
                return "a start event without a tool name"
            call = Call(place, dict(cell))
            self._starts.append(call)
            self._open.append(call)
            return None
        self._ends += 1
        call = self._answered(cell)
        if call is not None:
            self._open.remove(call)
            call.records += 1
            _end(call.cell, cell)
        elif cell.get("tool"):
            ended = cell.get("ended_at") or cell.get("started_at")
            call = Call(place, {**cell, "started_at": None, "ended_at": ended})
            self._lone.append(call)
        else:
            return "an end event without a tool name, and no call was open"
        if which == "error" and call.cell.get("status") is None and call.cell.get("failed") is None:
            call.cell["failed"] = True
        return None

    def finish(self) -> Iterator[Call | Reject]:
        """The calls, and a note for each event that was logged twice."""
        twice = self._twice() if len(self._starts) > self._ends else {}
        for call in self._starts:
            kept = twice.get(id(call))
            if kept is not None:
                kept.records += call.records
                yield Reject(place=call.place, reason="a start that was logged twice; it counts once", records=0)
        for call in (*self._starts, *self._lone):
            if id(call) not in twice:
                yield call

    def _answered(self, cell: dict[str, Any]) -> Call | None:
        call_id, tool = cell.get("call_id"), cell.get("tool")
        for call in self._open:
            own = call.cell.get("call_id")
            if call_id is not None and own is not None:
                if own == call_id:
                    return call
            elif tool is None or call.cell.get("tool") == tool:
                return call
        return None

    def _twice(self) -> dict[int, Call]:
        """Starts without an end that repeat a start beside them, and the start that they repeat."""
        found: dict[int, Call] = {}
        still_open = {id(call) for call in self._open}
        for before, after in zip(self._starts, self._starts[1:], strict=False):
            if any(before.cell.get(field) != after.cell.get(field) for field in _SAME):
                continue
            apart = seconds_between(*(parse_time(call.cell.get("started_at"))[0] for call in (before, after)))
            if apart is not None and apart > _TWICE_S:
                continue
            # The end went to the first of the two; the open one is the copy.
            if id(after) in still_open:
                found[id(after)] = found.get(id(before), before)
            elif id(before) in still_open:
                found[id(before)] = after
        return found


def _end(cell: dict[str, Any], end: dict[str, Any]) -> None:
    """What the end of a call adds to its start."""
    for field in end:
        if field in _FROM_END or cell.get(field) is None:
            cell[field] = end[field] if end[field] is not None else cell.get(field)
    if end.get("ended_at") is None:
        cell["ended_at"] = end.get("started_at")
