"""Rows of one run to a `Run`: cells are read by the mapping, rows are put in order, calls become steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from poc.ingest.arguments import from_value
from poc.ingest.evidence import judge, read_flag
from poc.ingest.jsonstream import compact, excerpt
from poc.ingest.outcome_values import read_outcome
from poc.ingest.readers.rows import Row
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Caller, Message, Outcome, Reject, Run, Step, Usage

_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


class _Placed(msgspec.Struct, gc=False):
    """A step with what decides its place in the run."""

    step: Step
    index: float | None
    turn: str | None


class RunRows:
    """Gathers the rows of one run and makes the run of them."""

    def __init__(self, run_key: str | None, place: str, mapping: Mapping[str, str]) -> None:
        self.run = Run(place=place, native_id=run_key, records=0)
        self.mapping = mapping
        self._placed: list[_Placed] = []
        self._zones: set[bool] = set()
        self._sums: dict[str, int | None] = {}
        self._cost: float | None = None

    @property
    def records(self) -> int:
        """How many rows the run stands for."""
        return self.run.records

    def add(self, row: Row) -> Iterator[Reject]:
        """Take one row. Yields a reject for a row that is no call, and for cells that cannot be read."""
        cell = {field: row.cells.get(column) for field, column in self.mapping.items()}
        tool = _text(cell.get("tool"))
        if tool is None:
            reason = f"no tool name in column '{self.mapping['tool']}'"
            yield Reject(place=row.place, reason=reason, raw=excerpt(compact(row.cells).encode()))
            return
        self.run.records += 1
        start, end = (self._time(cell.get(field)) for field in ("started_at", "ended_at"))
        for field, time in (("started_at", start), ("ended_at", end)):
            if time is None and cell.get(field) is not None:
                reason = f"the time in column '{self.mapping[field]}' is not understood; left empty"
                yield Reject(place=row.place, reason=reason, raw=str(cell[field])[:200], records=0)
        step = Step(index=0, turn=0, tool=tool, call_id=_text(cell.get("call_id")))
        step.arguments_raw, step.arguments_json, step.arguments_status = from_value(cell.get("arguments"))
        step.result = _text(cell.get("result"), keep_blank=True)
        failed = read_flag(cell.get("status"))
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
        step.started_at, step.ended_at = start, end
        step.duration_s = _duration(cell, start, end)
        if step.ended_at is None and start is not None and step.duration_s is not None:
            step.ended_at = start + timedelta(seconds=step.duration_s)
        step.execution_id = _text(cell.get("execution_id"))
        step.caller = _caller(cell.get("caller"))
        self._placed.append(_Placed(step, _number(cell.get("step")), _text(cell.get("turn"))))
        yield from self._about_run(row, cell)

    def finish(self) -> Run:
        """The run, with its steps in order: by step column, else by start time, else as they stood."""
        placed = self._placed
        if placed and all(item.index is not None for item in placed):
            placed.sort(key=lambda item: item.index or 0.0)
        elif placed and all(item.step.started_at is not None for item in placed):
            placed.sort(key=lambda item: item.step.started_at or datetime.max)
        turn, ordinal = -1, 0
        for index, item in enumerate(placed):
            same = item.turn is not None and index > 0 and placed[index - 1].turn == item.turn
            turn, ordinal = (turn, ordinal + 1) if same else (turn + 1, 0)
            item.step.index, item.step.turn, item.step.ordinal = index, turn, ordinal
            self.run.steps.append(item.step)
        run = self.run
        times = [t for step in run.steps for t in (step.started_at, step.ended_at) if t is not None]
        if times:
            run.started_at, run.ended_at = min(times), max(times)
            run.zone_in_log = False not in self._zones
            if any(step.ended_at is not None for step in run.steps):
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

    def _about_run(self, row: Row, cell: dict[str, Any]) -> Iterator[Reject]:
        run = self.run
        for field in ("task_key", "trial", "task_text", "category", "model", "framework"):
            if getattr(run, field) is None and cell.get(field) is not None:
                setattr(run, field, _text(cell[field]))
        if run.outcome is None and cell.get("outcome") is not None:
            value = read_outcome(cell["outcome"])
            if value is None:
                reason = (
                    f"the outcome in column '{self.mapping['outcome']}' is neither 0..1 nor a known word; left empty"
                )
                yield Reject(place=row.place, reason=reason, raw=str(cell["outcome"])[:200], records=0)
            else:
                run.outcome = Outcome(value=value, provenance=f"log:{self.mapping['outcome']}")
        for field in _COUNTS:
            if field in self.mapping:
                count = _number(cell.get(field))
                known = self._sums.get(field, 0)
                # One row without its count leaves the run's sum unknown.
                self._sums[field] = None if count is None or known is None else known + int(count)
        cost = _number(cell.get("cost_usd"))
        if cost is not None:
            self._cost = (self._cost or 0.0) + cost


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
