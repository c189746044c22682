"""What an import has read: files, the runs that were staged from them, and the ids of those runs.

Knows staged rows, not what becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa

from poc.ingest.gather import Gathered
from poc.ingest.staging import Staged

SEPARATOR = "+"
"""Stands between a run's id and a number where one import brings several versions of the run."""


class SourceFacts(msgspec.Struct, kw_only=True):
    """What is known of a file once it has been read. Counts are of source records."""

    source_id: str
    path: str
    sha256: str
    size_bytes: int
    format: str
    confidence: float = 1.0
    reader_version: int
    mapping: dict[str, str] | None = None
    known: bool = False
    """The workspace has read this very content before; it was not read again, or only for another file's sake."""
    read: int = 0
    imported: int = 0
    rejected: int = 0
    skipped: int = 0
    runs: int = 0
    replaced: int = 0
    """Runs that were in the workspace in a shorter version; their records are among the imported ones."""
    steps: int = 0
    messages: int = 0
    reasons: dict[str, int] = {}
    """How often which reason stands among the rejects, the commonest first (bounded)."""


class Arrival(msgspec.Struct, kw_only=True):
    """What was read in one go: a file, or several that hold parts of the same runs."""

    files: list[SourceFacts]
    """The files; records of those that were known before are not counted again."""
    gathered: Gathered
    names: list[str | None]
    """The staged id of each run: its run id, with `SEPARATOR` and a number for one more version of a run that another
    file of this import holds. None for a repeat, which is skipped."""
    worldwide: set[str]
    """Run ids of runs whose own id is unique in the world: they may be there in another version."""
    parts: list[tuple[Path, int]]
    """Folders of staged rows, and how many of these runs lie in each."""
    apart: bool = False
    """Whether those folders hold nothing else; their rows then do not name the file."""

    def shares(self, number: int) -> list[int]:
        """The records of a run by file."""
        held = self.gathered
        return held.shares[number] if held.shares else [held.records[number]]

    def leader(self, number: int) -> int | None:
        """The first file with records of a run that are new: the run is counted there."""
        shares = self.shares(number)
        return next((place for place, facts in enumerate(self.files) if shares[place] and not facts.known), None)

    @property
    def plain(self) -> bool:
        """Whether it is one new file."""
        return len(self.files) == 1 and not self.files[0].known

    @property
    def rebuilt(self) -> set[str]:
        """Staged ids of runs whose earlier part was read again together with the new one: these are whole."""
        if not any(facts.known for facts in self.files):
            return set()
        found: set[str] = set()
        for number, name in enumerate(self.names):
            if name is not None and any(
                share and facts.known for share, facts in zip(self.shares(number), self.files, strict=True)
            ):
                found.add(name)
        return found


def staged_parts(arrivals: list[Arrival], named: Callable[[str], str | None]) -> list[Staged]:
    """The staged rows of all arrivals with their run ids. `named` gives the id to store for a staged id, None to leave
    the run out."""
    names: dict[Path, list[str | None]] = {}
    whose: dict[Path, str] = {}
    for arrival in arrivals:
        start = 0
        for folder, count in arrival.parts:
            known = arrival.names[start : start + count]
            known = [None if name is None else named(name) for name in known]
            names.setdefault(folder, []).extend(known)
            start += count
            if arrival.apart:
                whose[folder] = arrival.files[0].source_id
    return [Staged(folder, pa.array(ids, pa.string()), whose.get(folder)) for folder, ids in names.items()]
