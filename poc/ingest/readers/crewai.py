"""CrewAI: what ``output_log_file`` writes, as JSON or as text.

JSON: a list of ``{timestamp, task_name, task, agent, status, output}``; text:
lines ``2025-01-31 10:00:00: task_name="..", task="..", agent="..",
status="started"``, whose values may hold line breaks and quotes. Times are
local without a zone. ``status`` is "started" or "completed"; "completed" means
that the task ended, not that it went well: no outcome. Tools are not in this
log, so runs have messages and no steps: the task as told to its agent, and
what the agent gave back. Nothing says where a kickoff begins: a new run begins
when the first task of the run is started again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from poc.ingest.readers.assembly import Assembly, plain, word
from poc.ingest.readers.decoding import glimpse
from poc.ingest.readers.records import Record, records
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "crewai"
VERSION = 1

_FIELDS = ("task_name", "task", "agent", "status", "output")
_START = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d): (?=(?:task_name|task|agent|status)=\")", re.MULTILINE)
_FIELD = re.compile(r'(?:^|", )(task_name|task|agent|status|output)="')


def sniff(sample: bytes, name: str) -> float:
    """By the fields of a record of the log."""
    if _is_json(sample):
        return 0.95 if {"task", "agent", "status", "timestamp"} <= glimpse(sample).first.keys() else 0.0
    return 0.95 if _START.search(sample[:20000].decode(errors="replace")) else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each kickoff."""
    listed = records(source, flat=True) if _is_json(source.sample) else _text_records(source)
    work: Assembly | None = None
    first: tuple[Any, Any] | None = None
    for record in listed:
        if isinstance(record, Reject):
            yield record
            continue
        value = record.value
        if not isinstance(value, dict) or not isinstance(value.get("status"), str) or "task" not in value:
            yield record.reject("not a record of a task")
            continue
        task = (value.get("task_name"), value.get("task"))
        if work is None or (value["status"] == "started" and task == first):
            if work is not None:
                yield work.finish()
            work, first = Assembly(Run(place=record.place, framework="crewai", records=0)), task
        _add(work, value)
    if work is not None:
        yield work.finish()


def _is_json(sample: bytes) -> bool:
    return sample.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{")


def _add(work: Assembly, value: dict[str, Any]) -> None:
    run = work.run
    run.records += 1
    time = work.time(value.get("timestamp"))
    task, agent = value.get("task"), word(value.get("agent"))
    if value["status"] == "started":
        work.message("user", plain(task), name=word(value.get("task_name")), at=time)
    else:
        work.message("assistant", plain(value.get("output")), name=agent, at=time)
    if run.task_text is None and isinstance(task, str) and task.strip():
        run.task_text = task
    run.metadata.setdefault("tasks", []).append(
        {"task_name": value.get("task_name"), "agent": agent, "status": value["status"]}
    )


def _text_records(source: Source) -> Iterator[Record | Reject]:
    with source.open() as file:
        data = file.read()
    text = data.decode(errors="replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        yield Reject(place="file", reason="kept, with changes: invalid UTF-8 replaced", records=0)
    starts = [*_START.finditer(text)]
    head = text[: starts[0].start()] if starts else text
    if head.strip():
        yield Reject(place="line 1", reason="text before the first record", raw=head[:500], records=0 if starts else 1)
    line, position = 1, 0
    for index, start in enumerate(starts):
        line, position = line + text.count("\n", position, start.start()), start.start()
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        record = text[start.end() : end].rstrip()
        yield Record(f"line {line}", {"timestamp": start[1], **_fields(record)}, record.encode())
    source.consumed = source.size


def _fields(text: str) -> dict[str, str]:
    """The fields of one record; each name counts at its first place, so a value may hold what looks like a field."""
    marks: list[re.Match[str]] = []
    for mark in _FIELD.finditer(text):
        if not marks or _FIELDS.index(mark[1]) > _FIELDS.index(marks[-1][1]):
            marks.append(mark)
    ends = [mark.start() for mark in marks[1:]] + [len(text) - (1 if text.endswith('"') else 0)]
    return {mark[1]: text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)}
