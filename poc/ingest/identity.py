"""Names that stay the same whenever the same run or task is imported again.

A run is named by its format, its own id and, unless that id is unique in the
world, by what was said and called in it; a task by the log's own key and its
text. Paths, times of import and the layout of the file play no part, so a file
can be moved, reformatted or merged and still hold the same runs. Knows no table.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from poc.trajectory import Run, TaskReference

_UNIT, _RECORD, _ABSENT = "\x1f", "\x1e", "\x00"


def fingerprint(run: Run) -> tuple[bytes, int]:
    """A digest of the run's messages and calls, and how many characters they hold.

    Outcome, times and metadata are left out: exports add them later.
    """
    parts: list[str] = [run.task_key or _ABSENT, run.trial or _ABSENT]
    for message in run.messages:
        parts.append(message.role)
        parts.append(message.content or _ABSENT)
    parts.append(_RECORD)
    for step in run.steps:
        parts += (step.tool, step.arguments_raw or _ABSENT, step.result or _ABSENT)
    text = _UNIT.join(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], len(text)


class RunKey(NamedTuple):
    """What names a run, but for how often it comes in its file."""

    key: bytes
    content: bytes | None
    """The run's fingerprint where its own id is unique in the world and may come again with other content."""
    size: int
    """Characters of text in the run."""


def run_key(format_name: str, run: Run) -> RunKey:
    """The run's key: of its format, its own id and, unless that id is unique in the world, its content."""
    content, size = fingerprint(run)
    named = _UNIT.join((format_name, run.native_id or _ABSENT)).encode("utf-8", "surrogatepass")
    if run.native_id_is_global:
        return RunKey(hashlib.blake2b(named, digest_size=16).digest(), content, size)
    return RunKey(hashlib.blake2b(named + content, digest_size=16).digest(), None, size)


class RunNames:
    """Gives run ids for the runs of one file, in their order."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        self._content: dict[bytes, bytes] = {}

    def name(self, key: RunKey) -> str | None:
        """The run's id, or None when the file holds this very run (same worldwide id, same content) already.

        Where a worldwide id comes again with other content both are kept, and
        where equal runs without such an id come again they are trials of their
        own: the nth is counted.
        """
        same = key.content is not None and self._content.setdefault(key.key, key.content) == key.content
        if same and key.key in self._seen:
            return None
        nth = self._seen.get(key.key, 0)
        self._seen[key.key] = nth + 1
        return hashlib.blake2b(key.key + nth.to_bytes(8, "big"), digest_size=10).hexdigest()


def task_id(run: Run | TaskReference) -> str | None:
    """The task's id, from the log's own key with the scenario (or text), else from the text; None without any."""
    text = run.scenario or run.task_text
    if run.task_key is None and text is None:
        return None
    words = " ".join((text or "").split())
    key = _UNIT.join((run.task_key or _ABSENT, words))
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
