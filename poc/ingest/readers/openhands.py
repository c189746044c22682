"""OpenHands: event lists, lines of events, and ``output.jsonl`` of its evaluations.

Events of the app (to 1.x) have ``action`` or ``observation``, those of the
newer SDK a ``kind``; both are read by `openhands_events`. An evaluation writes
a record a line: ``instance_id``, ``instruction``, ``history`` (events; in old
files pairs of action and observation), ``metadata``, ``metrics``, ``error``,
``test_result``. Whether the instance was solved stands in a report of its own
(``report.json``), unless it was joined to the record (``resolved``).

Run: an evaluation's record, else the events of one file. Tokens: the metrics'
totals, whose prompt tokens include cached ones; a cost of 0 says that no price
was known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from poc.ingest.outcome_values import read_outcome
from poc.ingest.readers.assembly import number, word
from poc.ingest.readers.decoding import Head, elements, glimpse, members, text
from poc.ingest.readers.nodes import tokens
from poc.ingest.readers.openhands_events import KINDS, Events
from poc.ingest.readers.records import Record, left_over, records
from poc.ingest.sources import Source
from poc.trajectory import Outcome, Reject, Run, Usage

NAME = "openhands"
VERSION = 1

_HOLDERS = ("history", "trajectory", "events")
_TOLD = ("instance_id", "instruction", "metrics", "instance", "metadata", *_HOLDERS)
_PLACES = (("resolved",), ("report", "resolved"), ("test_result", "resolved"), ("test_result", "report", "resolved"))
_SETUP = ("agent_class", "max_iterations", "dataset", "data_split", "git_commit", "start_time", "eval_note")
_INSTANCE = ("repo", "version", "base_commit")


def sniff(sample: bytes, name: str) -> float:
    """By an evaluation's record or by the events."""
    for head in glimpse(sample).heads[:5]:
        if _is_event(head):
            return 0.97
        if "instance_id" in head and "history" in head and head.keys() & {"instruction", "test_result", "metrics"}:
            return 0.97
        for key in _HOLDERS:
            inside = elements(head.get(key, b"").strip())[:3]
            if any(_is_event(members(part)) or any(map(_is_event, map(members, elements(part)))) for part in inside):
                return 0.95
    return 0.0


def _is_event(head: Head) -> bool:
    if text(head.get("kind")) in KINDS and head.keys() & {"id", "timestamp", "source"}:
        return True
    if text(head.get("action")) is not None and "args" in head:
        return bool(head.keys() & {"source", "message", "id"})
    observed = text(head.get("observation")) is not None and "content" in head
    return observed and bool(head.keys() & {"cause", "extras", "source"})


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each record of an evaluation; events that stand alone in the file make one."""
    loose: list[Record] = []
    for record in records(source):
        if isinstance(record, Reject):
            yield record
        elif isinstance(record.value, dict) and _events_in(record.value) is None and _named(record.value):
            loose.append(record)
        elif isinstance(record.value, list) and not _holds_runs(record.value):
            yield from _run(record, record.value, {})
        else:
            items = record.value if isinstance(record.value, list) else [record.value]
            for index, item in enumerate(items):
                place = f"{record.place} [{index}]" if isinstance(record.value, list) else record.place
                inner = Record(place, item, record.raw)
                events = _events_in(item) if isinstance(item, dict) else None
                if events is None:
                    yield inner.reject("no events of OpenHands here")
                else:
                    yield from _run(inner, events, item)
    if loose:
        yield from _run(loose[0], [record.value for record in loose], {}, count_of=len(loose))


def _named(value: dict[str, Any]) -> bool:
    return any(isinstance(value.get(key), str) for key in ("action", "observation", "kind"))


def _holds_runs(value: list[Any]) -> bool:
    return any(isinstance(item, dict) and not _named(item) and _events_in(item) is not None for item in value)


def _events_in(value: dict[str, Any]) -> list[Any] | None:
    return next((value[key] for key in _HOLDERS if isinstance(value.get(key), list)), None)


def _run(record: Record, events: list[Any], around: dict[str, Any], *, count_of: int = 1) -> Iterator[Run | Reject]:
    run = Run(place=record.place, framework="openhands", records=count_of)
    work = Events(run)
    seen = 0
    for index, event in enumerate(events):
        if work.add(event, index):
            seen += 1
        else:
            reason = "an entry that is no event of OpenHands; the run is kept without it"
            yield Reject(place=f"{record.place} [{index}]", reason=reason, raw=str(event)[:200], records=0)
    if not seen:
        yield record.reject("no events of OpenHands here", records=count_of)
        return
    run.native_id = run.task_key = word(around.get("instance_id"))
    if isinstance(around.get("instruction"), str):
        run.task_text = around["instruction"]
    setup = _object(around.get("metadata"))
    metrics = _object(around.get("metrics"))
    run.usage = _usage(metrics.get("accumulated_token_usage")) or _usage(work.spent)
    run.cost_usd = number(metrics.get("accumulated_cost")) or number(work.cost) or None
    run.outcome = _outcome(around)
    run.metadata = {**left_over(around, *_TOLD), **run.metadata}
    for key, holder, names in (("setup", setup, _SETUP), ("instance", _object(around.get("instance")), _INSTANCE)):
        kept = {name: holder[name] for name in names if holder.get(name) is not None}
        if kept:
            run.metadata[key] = kept
    run.model = run.model or word(_object(setup.get("llm_config")).get("model"))
    yield work.finish()


def _usage(spent: Any) -> Usage | None:
    spent = _object(spent)
    return tokens(
        spent.get("prompt_tokens"),
        spent.get("completion_tokens"),
        cached=spent.get("cache_read_tokens"),
        reasoning=spent.get("reasoning_tokens"),
    )


def _outcome(around: dict[str, Any]) -> Outcome | None:
    for path in _PLACES:
        value: Any = around
        for key in path:
            value = _object(value).get(key)
        says = read_outcome(value)
        if says is not None:
            return Outcome(value=says, provenance=f"log:{'.'.join(path)}")
    return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
