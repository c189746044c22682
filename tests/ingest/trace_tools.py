"""What the tests of trace readers share: reading a file with the reader that claims it, and plain looks at steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from poc.ingest.detect import detect
from poc.ingest.readers import READERS
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Step

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read(path: Path, expect: str) -> tuple[list[Run], list[Reject]]:
    """The runs and rejects of a file; it must be told as `expect`, and no other reader may be as sure."""
    source = Source(path)
    guesses = {
        name: reader.sniff(source.sample, source.name)
        for name, reader in READERS.items()
        if source.magic is None or source.magic in getattr(reader, "MAGIC", ())
    }
    assert detect(source).format == expect
    rivals = {name: sure for name, sure in guesses.items() if name != expect and sure >= guesses[expect]}
    assert not rivals
    items = list(READERS[expect].read(source))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def read_one(path: Path, expect: str) -> Run:
    """The one run of a file without rejects."""
    runs, rejects = read(path, expect)
    assert rejects == []
    (run,) = runs
    return run


def micros(number: int) -> datetime:
    """A time from whole microseconds since 1970."""
    return EPOCH + timedelta(microseconds=number)


def same_json(text: str | None, value: Any) -> bool:
    """Whether a JSON text means `value`."""
    return text is not None and json.loads(text) == value


def brief(step: Step) -> tuple[Any, ...]:
    """A step in short: tool, id, arguments, result, status and its evidence."""
    arguments = None if step.arguments_json is None else json.loads(step.arguments_json)
    return step.tool, step.call_id, arguments, step.result, step.status, step.status_evidence


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """All objects inside a JSON value, outer ones first."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from walk(item)
