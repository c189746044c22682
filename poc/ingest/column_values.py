"""What the values of a table's column say about what it holds. Knows values, not names or files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from poc.ingest.outcome_values import read_outcome
from poc.ingest.times import parse_time

Side = Literal["start", "end", "error"]

_STARTS = frozenset(
    ("start", "started", "starting", "begin", "began", "call", "called", "request", "requested", "invoke", "invoked")
)
_ENDS = frozenset(
    ("end", "ended", "finish", "finished", "complete", "completed", "done", "stop", "stopped", "result", "response")
)
_ERRORS = frozenset(("error", "errored", "failed", "failure", "exception", "timeout"))
_BAD_RUNS = frozenset(("error", "errored", "exception", "crashed", "timeout", "timed_out"))
_TIMES = ("started_at", "ended_at", "run_started_at", "run_ended_at")
_NUMBERS = ("duration_s", "duration_ms", "cost_usd", "input_tokens", "output_tokens", "cached_tokens")


def fits(field: str, values: Sequence[Any], *, strict: bool = False) -> bool:
    """Whether a column with these values can hold the field. Without values anything fits, unless `strict`."""
    given = [value for value in values if value is not None and value != ""]
    if not given:
        return not strict and not values
    if field == "tool":
        return all(isinstance(value, str) and not value.strip().isdigit() for value in given)
    if field in _TIMES:
        return all(parse_time(value)[0] is not None for value in given)
    if field in _NUMBERS:
        return all(_is_number(value) for value in given)
    if field == "outcome":
        return all(run_outcome(value) is not None for value in given)
    return True


def is_event(values: Sequence[Any]) -> bool:
    """Whether the values tell starts of calls from their ends."""
    sides = {side(value) for value in values}
    return "start" in sides and bool(sides & {"end", "error"})


def side(value: Any) -> Side | None:
    """Which end of a call an event is: ``tool_start``, ``tool.completed``, ``call failed``; None for other events.

    >>> side("tool_call.started"), side("toolError"), side("heartbeat")
    ('start', 'error', None)
    """
    if not isinstance(value, str):
        return None
    words = _words(value)
    for word in reversed(words):
        if word in _ERRORS:
            return "error"
        if word in _ENDS:
            return "end"
        if word in _STARTS:
            return "start"
    return None


def run_outcome(value: Any) -> float | None:
    """The outcome 0..1 that a run's status or label means; None for words such as "completed", which say neither."""
    known = read_outcome(value)
    if known is None and isinstance(value, str) and value.strip().lower() in _BAD_RUNS:
        return 0.0
    return 1.0 if known is None and isinstance(value, str) and value.strip().lower() == "ok" else known


def _words(text: str) -> list[str]:
    spread = "".join(f" {sign}" if sign.isupper() and not text.isupper() else sign for sign in text)
    return "".join(sign.lower() if sign.isalpha() else " " for sign in spread).split()


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
