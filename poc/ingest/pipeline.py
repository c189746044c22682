"""From files to tables: find, detect, read, stage, store.

Files are read without touching the workspace; what they hold is stored at the
end in one transaction, so an import that fails or is stopped leaves the
workspace as it was. Counts always add up: every source record is imported,
rejected or skipped. Knows no format.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from poc.errors import InputError
from poc.ingest.apart import Apart, read_apart
from poc.ingest.arrivals import SEPARATOR, Arrival, SourceFacts, staged_parts
from poc.ingest.columns import load_mapping
from poc.ingest.detect import Detected, takes_whole
from poc.ingest.gather import Gathered, gather
from poc.ingest.identity import RunNames
from poc.ingest.joining import Given, Group, together
from poc.ingest.ledger import UNKNOWN, SourceKey, known_sources, source_key
from poc.ingest.merge import merge_staged
from poc.ingest.outcomes import JoinResult, join_outcomes
from poc.ingest.paths import find
from poc.ingest.reading import guarded, opened, reader_for
from poc.ingest.schemas import inferred_tools
from poc.ingest.sources import Joined, Source, Unreadable
from poc.ingest.spool import Spool
from poc.ingest.staging import Staging, reader, staging
from poc.trajectory import Item, Reject, ToolSchema
from poc.workspace import Workspace

Progress = Callable[[int, int | None, str], None]
"""(bytes done, bytes in all if known, what is being done). It may raise to stop the import."""

_MEGABYTE = 1 << 20
_NOTHING = hashlib.sha256().hexdigest()
"""Of a file of which nothing could be read."""


class ImportResult(msgspec.Struct, kw_only=True):
    """What an import did. read = imported + rejected + skipped, in source records; the rest counts what is new.

    replaced: runs that were there in a shorter version, which this one took the place of (their records are imported
    ones). completed: runs that were there and gained a fact that they lacked, as an outcome.
    """

    read: int = 0
    imported: int = 0
    rejected: int = 0
    skipped: int = 0
    runs: int = 0
    replaced: int = 0
    completed: int = 0
    steps: int = 0
    messages: int = 0
    sources: list[dict[str, Any]] = []
    outcomes: JoinResult | None = None
    """What joining the outcomes did, where a file with outcomes was given."""


def import_logs(
    workspace: Workspace,
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  # the word that people use
    mapping: Mapping[str, str] | str | os.PathLike[str] | None = None,
    outcomes: str | os.PathLike[str] | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> ImportResult:
    """Read log files and folders into the workspace.

    format: name of a reader; left out, each file's content decides.
    mapping: for tables, which column holds which field: a dictionary or a YAML file.
    outcomes: a CSV with outcomes to be joined afterwards (see `join_outcomes`).
    strict: fail on the first record that cannot be read, and import nothing.
    progress: called with bytes done and in all; what it raises stops the import.

    A run that the workspace holds already is skipped, whatever file it comes
    from. Raises `InputError` for files that cannot be logs and wrong mappings,
    `WorkspaceError` when nothing can be written; the workspace is then as before.
    """
    columns = None if mapping is None else load_mapping(mapping)
    if columns is not None and format is None:
        format = "table"  # noqa: A001
    before = known_sources(workspace)
    result = ImportResult()
    with staging(workspace) as folder:
        spool = Spool(folder, step=lambda name: progress(0, None, f"unpacking {name}") if progress else None)
        whole = partial(takes_whole, format=format)
        given: list[Given] = []
        for file in find(paths, spool):
            for source in opened(file, spool, whole):
                source.mapping = None if columns is None else dict(columns)
                given.append(Given(source, reader_for(source, format)))
                source.release()
        work = _Import(folder, before, strict=strict, progress=progress, total=sum(each.source.size for each in given))
        for group in together(given, workspace, spool, whole, before.keys()):
            work.group(group)
        work.staged.finish()
        if progress:
            progress(work.total, work.total, "storing")
        if work.arrivals:
            steps = reader(staged_parts(work.arrivals, lambda name: name), "steps")
            tools = {**inferred_tools(steps), **work.tools}
            result.completed = merge_staged(workspace, work.arrivals, tools, strict=strict)
    result.sources = [msgspec.to_builtins(facts) for facts in work.sources]
    for name in ("read", "imported", "rejected", "skipped", "runs", "replaced", "steps", "messages"):
        setattr(result, name, sum(getattr(facts, name) for facts in work.sources))
    if outcomes is not None:
        result.outcomes = join_outcomes(workspace, outcomes)
    return result


class _Import:
    """What is gathered while files are read."""

    def __init__(
        self,
        folder: Path,
        before: Mapping[SourceKey, dict[str, Any]],
        *,
        strict: bool,
        progress: Progress | None,
        total: int,
    ) -> None:
        self.folder = folder
        self.before = before
        self.staged = Staging(folder)
        self.strict = strict
        self.progress = progress
        self.total = total
        self.done = 0
        self.reported = -_MEGABYTE
        self.sources: list[SourceFacts] = []
        self.arrivals: list[Arrival] = []
        self.tools: dict[str, ToolSchema] = {}
        self.run_ids: set[str] = set()

    def group(self, group: Group) -> None:
        """Read one file into the staging, or several that share runs."""
        if len(group.given) + len(group.earlier) == 1:
            self._file(*group.given[0])
            group.given[0].source.release()
        else:
            self._joined(group)

    def _file(self, source: Source, found: Detected | InputError) -> None:
        fault = found if isinstance(found, InputError) else None
        reader = None if isinstance(found, InputError) else found.reader
        items: Iterator[Item] = iter(())
        digest = _NOTHING
        apart: Apart | None = None
        with ThreadPoolExecutor(1) as aside:
            try:
                hashed = aside.submit(source.sha256)
                # A large file whose size was never seen is new: it is read while it is hashed.
                if reader and not self.strict and all(row["size_bytes"] != source.size for row in self.before.values()):
                    apart = read_apart(source, reader, self.folder, report=partial(self._report, source))
                digest = hashed.result()
                items = items if reader is None else reader.read(source)  # for a table this settles the mapping
            except InputError as error:
                if source.asked_for and not isinstance(error, Unreadable):
                    raise
                fault = error
        if fault is not None or isinstance(found, InputError):
            items = iter([Reject(place="file", reason=fault.what if fault is not None else "")])
            facts = _facts(source, digest)
        else:
            facts = _facts(source, digest, found)
        self.sources.append(facts)
        if apart is not None and fault is None:
            self._arrived([facts], apart.held, apart.parts, apart=True)
        elif not self._known(facts):
            self._read(source, items, [facts])
        self.done += source.size

    def _joined(self, group: Group) -> None:
        found = group.given[0].found
        assert isinstance(found, Detected)  # only such files are put together
        files: list[SourceFacts] = []
        sources = [source for _, source in group.earlier]
        for source_id, source in group.earlier:
            files.append(_facts(source, source.sha256(), found))
            files[-1].source_id, files[-1].known = source_id, True
        for source, _ in group.given:
            try:
                facts = _facts(source, source.sha256(), found)
            except Unreadable as error:
                self._file(source, error)
                continue
            self.sources.append(facts)
            source.known = self._known(facts)
            files.append(facts)
            sources.append(source)
        if not all(source.known for source in sources):
            joined = Joined(sources)
            self._read(joined, found.reader.read(joined), files)
        self.done += sum(source.size for source, _ in group.given)

    def _read(self, source: Source, items: Iterator[Item], files: list[SourceFacts]) -> None:
        held = gather(
            guarded(source, items),
            self.staged,
            source_ids=[facts.source_id for facts in files],
            format_name=files[0].format,
            where=[facts.path for facts in files],
            strict=self.strict,
            report=lambda: self._report(source, sum(part.consumed for part in source.parts if not part.known)),
        )
        self._arrived(files, held, [(self.staged.folder, len(held.keys))])
        for part, facts in zip(source.parts, files, strict=True):
            if part.broken and not part.known:
                facts.sha256 = _NOTHING  # when it comes again it is read again

    def _arrived(
        self, files: list[SourceFacts], held: Gathered, parts: list[tuple[Path, int]], *, apart: bool = False
    ) -> None:
        """Files were read: their runs get their ids."""
        names = RunNames()
        ids = [names.name(key) for key in held.keys]
        worldwide = {name for name, key in zip(ids, held.keys, strict=True) if name and key.content is not None}
        held.keys = []
        for number, run_id in enumerate(ids):
            if run_id is None:
                continue  # a repeat: what is neither imported nor rejected is skipped
            if run_id in self.run_ids:
                ids[number] = f"{run_id}{SEPARATOR}{len(self.arrivals)}" if run_id in worldwide else None
            self.run_ids.add(run_id)
        self.arrivals.append(
            Arrival(files=files, gathered=held, names=ids, worldwide=worldwide, parts=parts, apart=apart)
        )
        self.tools = {**held.tools, **self.tools}

    def _known(self, facts: SourceFacts) -> bool:
        """Whether this very content is in the workspace already; nothing of it is then read again."""
        row = self.before.get(source_key(facts))
        if row is None or (self.strict and row["rejected"]):
            return False
        facts.known = True
        facts.source_id = row["source_id"]
        facts.read, facts.rejected = row["read"], row["rejected"]
        facts.skipped = facts.read - facts.rejected
        return True

    def _report(self, source: Source, consumed: int) -> None:
        done = self.done + min(consumed, source.size)
        if self.progress and done - self.reported >= _MEGABYTE:
            self.reported = done
            self.progress(done, self.total, source.name)


def _facts(source: Source, digest: str, found: Detected | None = None) -> SourceFacts:
    facts = SourceFacts(
        source_id="",
        path=source.address,
        sha256=digest,
        size_bytes=source.size,
        format=UNKNOWN if found is None else found.format,
        confidence=0.0 if found is None else found.confidence,
        reader_version=0 if found is None else found.reader.VERSION,
        mapping=source.mapping,
    )
    facts.source_id = _digest(facts.path, *(str(part) for part in source_key(facts)[:4]))
    return facts


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
