"""Rows of one run to a `Run`: cells are read by the mapping, rows are put in order, calls become steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from poc.ingest.arguments import from_value
from poc.ingest.column_values import run_outcome
from poc.ingest.evidence import judge, read_flag
from poc.ingest.jsonstream import compact, excerpt
from poc.ingest.readers.rows import JsonText, Row
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Caller, Message, Outcome, Reject, Run, Step, Usage

_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")

_TEXTS = ("task_key", "trial", "task_text", "category", "model", "framework")
_OF_RUN = frozenset((*_TEXTS, *_COUNTS, "outcome", "cost_usd", "run_started_at", "run_ended_at"))


class _Placed(msgspec.Struct, gc=False):
    """A step with what decides its place in the run."""

    step: Step
    index: float | None
    turn: str | None


class RunRows:
    """Gathers the rows of one run and makes the run of them."""

    def __init__(
        self, run_key: str | None, place: str, mapping: Mapping[str, str], once: frozenset[str] = frozenset()
    ) -> None:
        self.run = Run(place=place, native_id=run_key, records=0)
        self.mapping = mapping
        self._once = once
        """Fields that hold one value for the whole run in each row: not to be added up."""
        self._placed: list[_Placed] = []
        self._zones: set[bool] = set()
        self._sums: dict[str, int | None] = {}
        self._cost: float | None = None
        # An event's one time is the start of a call or its end.
        self._times = [field for field in ("started_at", "ended_at") if field in mapping or "event" in mapping]
        self._judged = any(field in mapping for field in ("status", "failed", "exit_code", "error"))
        self._counts = [field for field in _COUNTS if field in mapping]
        self._tells_run = not _OF_RUN.isdisjoint(mapping)

    @property
    def records(self) -> int:
        """How many rows the run stands for."""
        return self.run.records

    def add(self, row: Row) -> Iterator[Reject]:
        """Take one row. Yields a reject for a row that is no call, and for cells that cannot be read."""
        yield from self.add_call(row.place, cells_of(row, self.mapping))

    def add_call(self, place: str, cell: dict[str, Any], records: int = 1) -> Iterator[Reject]:
        """Take one call by its fields; `records` rows told of it."""
        tool = _text(cell.get("tool"))
        if tool is None:
            reason = f"no tool name in column '{self.mapping['tool']}'"
            yield Reject(place=place, reason=reason, raw=excerpt(compact(cell).encode("utf-8", "replace")))
            return
        self.run.records += records
        step = Step(index=0, turn=0, tool=tool, call_id=_text(cell.get("call_id")))
        for field in self._times:
            value = cell.get(field)
            if value is not None:
                time = self._time(value)
                setattr(step, field, time)
                if time is None:
                    column = self.mapping.get(field, self.mapping.get("started_at"))
                    reason = f"the time in column '{column}' is not understood; left empty"
                    yield Reject(place=place, reason=reason, raw=str(value)[:200], records=0)
        start, end = step.started_at, step.ended_at
        given = cell.get("arguments")
        if isinstance(given, JsonText):
            step.arguments_raw = step.arguments_json = str(given)
            step.arguments_status = "parsed"
        elif given is not None:
            step.arguments_raw, step.arguments_json, step.arguments_status = from_value(given)
        step.result = _text(cell.get("result"), keep_blank=True)
        failed = read_flag(cell.get("status")) if self._judged else None
        if failed is None and cell.get("failed") is not None:
            good = read_flag(cell["failed"])
            failed = None if good is None else not good  # "is_error: true" is the reverse of "success: true"
        step.status, step.status_evidence = judge(
            has_result=step.result is not None,
            text=step.result,
            failed=failed,
            exit_code=cell.get("exit_code"),
            error=cell.get("error"),
        )
        if step.result is None and step.status == "error" and cell.get("error") is not None:
            step.result = _text(cell["error"])
        step.duration_s = _duration(cell, start, end)
        if step.ended_at is None and start is not None and step.duration_s is not None:
            step.ended_at = start + timedelta(seconds=step.duration_s)
        step.execution_id = _text(cell.get("execution_id"))
        step.caller = _caller(cell.get("caller"))
        self._placed.append(_Placed(step, _number(cell.get("step")), _text(cell.get("turn"))))
        if self._tells_run:
            yield from self.about_run(place, cell)

    @property
    def repeats(self) -> bool:
        """Whether the step column gives one number to several calls: it may count inside parts of a run."""
        known = [item.index for item in self._placed if item.index is not None]
        return len(set(known)) < len(known)

    def finish(self, *, by_index: bool = True) -> Run:
        """The run, with its steps in order: by step column, else by time, else as they stood.

        by_index: False where the step column is no order of a whole run; times
        then come first if all calls have them.
        """
        placed = self._placed
        if placed and all(item.index is not None for item in placed):
            placed.sort(key=lambda item: item.index or 0.0)
        else:
            by_index = False
        if placed and not by_index and all(_when(item.step) is not None for item in placed):
            placed.sort(key=lambda item: _when(item.step) or datetime.max)
        turn, ordinal = -1, 0
        for index, item in enumerate(placed):
            same = item.turn is not None and index > 0 and placed[index - 1].turn == item.turn
            turn, ordinal = (turn, ordinal + 1) if same else (turn + 1, 0)
            item.step.index, item.step.turn, item.step.ordinal = index, turn, ordinal
            self.run.steps.append(item.step)
        run = self.run
        times = [t for step in run.steps for t in (step.started_at, step.ended_at) if t is not None]
        told = run.started_at is not None and run.ended_at is not None
        if times:
            run.started_at, run.ended_at = run.started_at or min(times), run.ended_at or max(times)
        if run.started_at is not None:
            run.zone_in_log = False not in self._zones
            if told or any(step.ended_at is not None for step in run.steps):
                run.duration_s = seconds_between(run.started_at, run.ended_at)
        if any(value is not None for value in self._sums.values()):
            run.usage = Usage(**self._sums)
        run.cost_usd = self._cost
        if run.task_text is not None:
            run.messages.append(Message(seq=0, role="user", content=run.task_text))
        return run

    def _time(self, value: Any) -> datetime | None:
        time, zone = parse_time(value)
        if zone is not None:
            self._zones.add(zone)
        return time

    def about_run(self, place: str, cell: dict[str, Any]) -> Iterator[Reject]:
        """Take what a row says of its run."""
        run = self.run
        for field in _TEXTS:
            if getattr(run, field) is None and cell.get(field) is not None:
                setattr(run, field, _asked(cell[field]) if field == "task_text" else _text(cell[field]))
        for field, column in (("started_at", "run_started_at"), ("ended_at", "run_ended_at")):
            if getattr(run, field) is None and cell.get(column) is not None:
                setattr(run, field, self._time(cell[column]))
        if run.outcome is None and cell.get("outcome") is not None:
            value = run_outcome(cell["outcome"])
            if value is None:
                reason = (
                    f"the outcome in column '{self.mapping['outcome']}' is neither 0..1 nor a known word; left empty"
                )
                yield Reject(place=place, reason=reason, raw=str(cell["outcome"])[:200], records=0)
            else:
                run.outcome = Outcome(value=value, provenance=f"log:{self.mapping['outcome']}")
        for field in self._counts:
            count = _number(cell.get(field))
            if field in self._once:
                self._sums[field] = None if count is None else int(count)
                continue
            known = self._sums.get(field, 0)
            # One row without its count leaves the run's sum unknown.
            self._sums[field] = None if count is None or known is None else known + int(count)
        cost = _number(cell.get("cost_usd"))
        if cost is not None:
            self._cost = cost if "cost_usd" in self._once else (self._cost or 0.0) + cost


def _when(step: Step) -> datetime | None:
    return step.started_at or step.ended_at


def cells_of(row: Row, mapping: Mapping[str, str]) -> dict[str, Any]:
    """The cells of a row by field."""
    cells = row.cells
    return {field: cells.get(column) for field, column in mapping.items()}


def _asked(value: Any) -> str | None:
    """A task's text, also out of a list of messages: what the user said first."""
    listed = value
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            listed = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, ValueError):
            return value
    for item in listed if isinstance(listed, list) else ():
        role = (item.get("role") or item.get("type")) if isinstance(item, dict) else None
        if isinstance(item, dict) and role in ("user", "human") and isinstance(item.get("content"), str):
            return item["content"]
    return _text(value)


def _duration(cell: dict[str, Any], start: datetime | None, end: datetime | None) -> float | None:
    seconds, millis = _number(cell.get("duration_s")), _number(cell.get("duration_ms"))
    if seconds is not None and seconds >= 0:
        return seconds
    if millis is not None and millis >= 0:
        return millis / 1000
    return seconds_between(start, end)


def _caller(value: Any) -> Caller:
    return value if value in ("user", "subagent") else "agent"


def _text(value: Any, *, keep_blank: bool = False) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else compact(value)
    return text if keep_blank or text.strip() else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number == number and abs(number) < 1e18 else None
