"""Files that hold parts of the same runs, found and put together.

A reader says which runs a file holds parts of (``keys``). Files of one import
that share a run are read together, and so is a file that was imported before
and holds an earlier part, if it is still there as it was: the run is then
completed, not doubled. Knows the list of sources, no format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from poc.errors import InputError
from poc.ingest.archives import expand
from poc.ingest.detect import Detected
from poc.ingest.ledger import SourceKey
from poc.ingest.sources import Source, Unreadable
from poc.ingest.spool import Spool
from poc.workspace import Workspace

Whole = Callable[[Source], bool]
_EARLIER = """
SELECT DISTINCT r.native_id AS key, s.source_id, s.path, s.sha256, s.size_bytes
FROM runs r
JOIN (SELECT run_id, source_id FROM runs UNION ALL SELECT run_id, source_id FROM run_parts) p USING (run_id)
JOIN sources s ON s.source_id = p.source_id
WHERE s.format = ? AND list_contains(?, r.native_id)
"""


class Given(NamedTuple):
    """A file and its reader, or why there is none."""

    source: Source
    found: Detected | InputError


class Group(msgspec.Struct, kw_only=True):
    """Files that are read together, and those imported before that are read again for their sake, by source id."""

    given: list[Given]
    earlier: list[tuple[str, Source]] = []


def together(
    given: list[Given], workspace: Workspace, spool: Spool, whole: Whole, before: Set[SourceKey]
) -> list[Group]:
    """The files in groups, in the order of the first of each.

    whole: whether a reader takes an archive as it is. before: what the workspace has read.
    """
    formats = Counter(each.found.format for each in given if isinstance(each.found, Detected))
    formats.update({key[1] for key in before})  # a file alone, of a format that is new here, shares nothing
    keys = [_keys(each, formats) for each in given]
    by_key: dict[tuple[str, str], int] = {}
    leader = list(range(len(given)))

    def first(place: int) -> int:
        while leader[place] != place:
            leader[place] = place = leader[leader[place]]
        return place

    for place, (each, its) in enumerate(zip(given, keys, strict=True)):
        if isinstance(each.found, Detected):
            for key in its:
                other = first(by_key.setdefault((each.found.format, key), place))
                mine = first(place)
                leader[max(mine, other)] = min(mine, other)
    members: dict[int, list[int]] = {}
    for place in range(len(given)):
        members.setdefault(first(place), []).append(place)
    groups: list[Group] = []
    for places in members.values():
        group = Group(given=[given[place] for place in places])
        new = {key for place in places if keys[place] and not _known(given[place], before) for key in keys[place]}
        if new:
            group.earlier = list(_earlier(group, new, workspace, spool, whole))
        groups.append(group)
    return groups


def _known(each: Given, before: Set[SourceKey]) -> bool:
    """Whether the workspace holds a file's very content."""
    found = each.found
    return isinstance(found, Detected) and any(
        key[:3] == (each.source.sha256(), found.format, found.reader.VERSION) for key in before
    )


def _keys(each: Given, formats: Mapping[str, int]) -> set[str]:
    if isinstance(each.found, InputError) or formats[each.found.format] < 2:
        return set()
    tell = getattr(each.found.reader, "keys", None)
    try:
        return set() if tell is None else tell(each.source)
    except Unreadable:
        return set()  # it will be said when the file is read


def _earlier(
    group: Group, keys: set[str], workspace: Workspace, spool: Spool, whole: Whole
) -> Iterator[tuple[str, Source]]:
    """Files imported before that hold parts of these runs, as far as they can be read as they were."""
    found = group.given[0].found
    if isinstance(found, InputError):
        return
    here = {each.source.sha256() for each in group.given}
    rows = workspace.rows(_EARLIER, [found.format, sorted(keys)])
    for row in {row["source_id"]: row for row in rows}.values():
        if row["sha256"] not in here and (source := _reopened(row, spool, whole)) is not None:
            source.known = True
            yield row["source_id"], source


def _reopened(row: dict[str, Any], spool: Spool, whole: Whole) -> Source | None:
    """A file that was read before, unless it is gone or no longer what it was."""
    path, _, member = row["path"].partition("!")
    candidates = [Source(Path(row["path"]))]
    if member:
        candidates.append(Source(Path(path)))
    for candidate in candidates:
        try:
            for source in expand(candidate, spool, whole) if candidate.fault is None else ():
                if source.address == row["path"] and source.sha256() == row["sha256"]:
                    return source
        except InputError:
            continue  # no archive any more
    return None
