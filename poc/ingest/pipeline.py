"""From files to tables: find, detect, read, stage, store.

Files are read without touching the workspace; what they hold is stored at the
end in one transaction, so an import that fails or is stopped leaves the
workspace as it was. Counts always add up: every source record is imported,
rejected or skipped. Knows no format.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from poc.errors import InputError, PocError
from poc.ingest.archives import expand
from poc.ingest.columns import load_mapping
from poc.ingest.detect import Detected, detect, takes_whole
from poc.ingest.identity import RunNames, task_id
from poc.ingest.merge import UNKNOWN, SourceFacts, TaskRow, known_sources, merge_staged, source_key
from poc.ingest.outcomes import JoinResult, join_outcomes
from poc.ingest.paths import find
from poc.ingest.readers import READERS
from poc.ingest.schemas import inferred_tools
from poc.ingest.sources import Source, Unreadable
from poc.ingest.spool import Spool
from poc.ingest.staging import Staging, staging
from poc.trajectory import Message, Reject, Run, Step, ToolSchema, Usage
from poc.workspace import Workspace

Progress = Callable[[int, int | None, str], None]
"""(bytes done, bytes in all if known, what is being done). It may raise to stop the import."""

_MEGABYTE = 1 << 20
_NOTHING = hashlib.sha256().hexdigest()
"""Of a file of which nothing could be read."""
_NO_USAGE = Usage()


class ImportResult(msgspec.Struct, kw_only=True):
    """What an import did. read = imported + rejected + skipped, in source records; the rest counts what is new."""

    read: int = 0
    imported: int = 0
    rejected: int = 0
    skipped: int = 0
    runs: int = 0
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
    with staging(workspace) as staged:
        spool = Spool(staged.folder, step=lambda name: progress(0, None, f"unpacking {name}") if progress else None)
        found = [part for source in find(paths, spool) for part in _opened(source, spool, format)]
        total = sum(source.size for source in found)
        work = _Import(staged, strict=strict, progress=progress, total=total)
        for source in found:
            if columns is not None:
                source.mapping = dict(columns)
            work.file(source, _reader_for(source, format), before)
            source.release()
        staged.finish()
        if progress:
            progress(total, total, "storing")
        if any(not facts.known for facts in work.sources):
            tools = {**inferred_tools(staged.reader("steps")), **work.tools}
            merge_staged(workspace, staged, work.sources, work.tasks, tools)
    result = ImportResult(sources=[msgspec.to_builtins(facts) for facts in work.sources])
    for name in ("read", "imported", "rejected", "skipped", "runs", "steps", "messages"):
        setattr(result, name, sum(getattr(facts, name) for facts in work.sources))
    if outcomes is not None:
        result.outcomes = join_outcomes(workspace, outcomes)
    return result


def _opened(source: Source, spool: Spool, format_name: str | None) -> Iterator[Source]:
    """What an archive holds; of one that was only found in a folder also why it was not opened, or not wholly."""
    try:
        yield from expand(source, spool, lambda packed: takes_whole(packed, format=format_name))
    except InputError as error:
        if source.asked_for:
            raise
        source.fault = error
        yield source


def _reader_for(source: Source, format_name: str | None) -> Detected | InputError:
    """The reader, or for a file that was only found in a folder why there is none."""
    try:
        if problem := source.problem():
            raise problem
        return detect(source, format=format_name)
    except InputError as error:
        if source.asked_for or (format_name is not None and format_name not in READERS):
            raise
        return error


def _guarded(source: Source, items: Iterator[Run | Reject]) -> Iterator[Run | Reject]:
    """What a reader gives, and a reject where it cannot go on: other files are then read all the same."""
    begun = False
    while True:
        try:
            item = next(items, None)
        except InputError as error:
            if source.asked_for and not begun and not isinstance(error, Unreadable):
                raise  # a wrong mapping, a database that cannot be opened: for the person to mend
            reason = error.what
        except (PocError, MemoryError):
            raise
        except Exception as error:
            reason = f"the reader failed: {type(error).__name__}: {error} (a fault of this program; please report it)"
        else:
            if item is None:
                break
            begun = True
            yield item
            continue
        source.broken = True
        yield Reject(place=f"byte {source.consumed}", reason=f"{reason.rstrip('.')}; from here on nothing was read")
        break
    if lost := source.shrunk():
        source.broken = True
        yield Reject(place="end of the file", reason=f"the file became {lost} bytes shorter while it was read")
    yield from source.notes


class _Import:
    """What is gathered while files are read."""

    def __init__(self, staged: Staging, *, strict: bool, progress: Progress | None, total: int) -> None:
        self.staged = staged
        self.strict = strict
        self.progress = progress
        self.total = total
        self.done = 0
        self.reported = 0
        self.sources: list[SourceFacts] = []
        self.tasks: dict[str, TaskRow] = {}
        self.tools: dict[str, ToolSchema] = {}
        self.run_ids: set[str] = set()

    def file(self, source: Source, found: Detected | InputError, before: Mapping[Any, dict[str, Any]]) -> None:
        """Read one file into the staging."""
        fault = found if isinstance(found, InputError) else None
        reader = None if isinstance(found, InputError) else found.reader
        items: Iterator[Run | Reject] = iter(())
        digest = _NOTHING
        try:
            digest = source.sha256()
            items = items if reader is None else reader.read(source)  # for a table this settles the mapping
        except InputError as error:
            if source.asked_for and not isinstance(error, Unreadable):
                raise
            fault = error
        if fault is not None:
            items = iter([Reject(place="file", reason=fault.what)])
        facts = SourceFacts(
            source_id="",
            path=source.address,
            sha256=digest,
            size_bytes=source.size,
            format=UNKNOWN if fault is not None or isinstance(found, InputError) else found.format,
            confidence=0.0 if fault is not None or isinstance(found, InputError) else found.confidence,
            reader_version=0 if fault is not None or reader is None else reader.VERSION,
            mapping=source.mapping,
        )
        facts.source_id = _digest(facts.path, *(str(part) for part in source_key(facts)[:4]))
        self.sources.append(facts)
        if not self._known(facts, before):
            names = RunNames(facts.format)
            reasons: Counter[str] = Counter()
            for item in _guarded(source, items):
                if isinstance(item, Reject):
                    self._reject(facts, item, reasons)
                else:
                    self._run(facts, item, names.name(item))
                self._report(source)
            facts.reasons = dict(reasons.most_common(20))
            if source.broken:
                facts.sha256 = _NOTHING  # when it comes again it is read again
        self.done += source.size

    def _known(self, facts: SourceFacts, before: Mapping[Any, dict[str, Any]]) -> bool:
        """Whether this very content is in the workspace already; nothing of it is then read again."""
        row = before.get(source_key(facts))
        if row is None or (self.strict and row["rejected"]):
            return False
        facts.known = True
        facts.source_id = row["source_id"]
        facts.read, facts.rejected = row["read"], row["rejected"]
        facts.skipped = facts.read - facts.rejected
        return True

    def _reject(self, facts: SourceFacts, reject: Reject, reasons: Counter[str]) -> None:
        if self.strict:
            raise InputError(
                f"A record cannot be read: {reject.reason}.",
                where=f"{facts.path}, {reject.place}",
                todo="Mend the file, or import without the strict mode: the record is then kept among the rejects.",
            )
        facts.read += reject.records
        facts.rejected += reject.records
        reasons[reject.reason.split(":", 1)[0][:120]] += 1
        raw = None if reject.raw is None else _clean(reject.raw)
        self.staged.add("rejects", (facts.source_id, reject.place, _clean(reject.reason), raw, reject.records))
        self.staged.weigh(len(reject.raw or "") + 200)

    def _run(self, facts: SourceFacts, run: Run, run_id: str | None) -> None:
        facts.read += run.records
        if run_id is None or run_id in self.run_ids:
            return  # a repeat: what is neither imported nor rejected is skipped
        self.run_ids.add(run_id)
        task = task_id(run)
        if task is not None:
            self._task(task, run)
        for tool in run.tools:
            self.tools.setdefault(tool.name, tool)
        add = self.staged.add
        add("runs", _run_row(facts, run, run_id, task))
        size = 0
        for message in run.messages:
            size += len(message.content or "")
            add("messages", _message_row(run_id, message))
        for step in run.steps:
            size += len(step.arguments_raw or "") * 2 + len(step.result or "")
            add("steps", _step_row(run_id, step))
        self.staged.weigh(size + 100 * (len(run.messages) + len(run.steps) + 1))

    def _task(self, task: str, run: Run) -> None:
        reference = None
        if run.reference is not None:
            reference = msgspec.json.encode(
                [{"tool": call.tool, "arguments": msgspec.Raw(call.arguments_json or "null")} for call in run.reference]
            ).decode()
        row = TaskRow(run.task_key, run.task_text, run.category, run.scenario, reference)
        known = self.tasks.setdefault(task, row)
        if known is not row:
            for name in TaskRow.__struct_fields__:
                if getattr(known, name) is None:
                    setattr(known, name, getattr(row, name))

    def _report(self, source: Source) -> None:
        done = self.done + min(source.consumed, source.size)
        if self.progress and done - self.reported >= _MEGABYTE:
            self.reported = done
            self.progress(done, self.total, source.name)


def _run_row(facts: SourceFacts, run: Run, run_id: str, task: str | None) -> tuple[Any, ...]:
    usage = run.usage or _NO_USAGE
    return (
        run_id,
        facts.source_id,
        run.place,
        run.native_id,
        run.trial,
        task,
        run.category,
        run.framework,
        run.model,
        run.started_at,
        run.ended_at,
        run.duration_s,
        run.zone_in_log,
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        run.cost_usd,
        None if run.outcome is None else run.outcome.value,
        None if run.outcome is None else run.outcome.provenance,
        msgspec.json.encode(run.metadata).decode() if run.metadata else None,
        run.records,
        len(run.messages),
        len(run.steps),
    )


def _message_row(run_id: str, message: Message) -> tuple[Any, ...]:
    usage = message.usage or _NO_USAGE
    return (
        run_id,
        message.seq,
        message.role,
        message.content,
        message.name,
        message.sent_at,
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        message.cost_usd,
    )


def _step_row(run_id: str, step: Step) -> tuple[Any, ...]:
    return (
        run_id,
        step.index,
        step.turn,
        step.ordinal,
        step.call_id,
        step.tool,
        step.arguments_raw,
        step.arguments_json,
        step.arguments_status,
        step.result,
        step.status,
        step.status_evidence,
        step.started_at,
        step.ended_at,
        step.duration_s,
        step.execution_id,
        step.caller,
        step.message_seq,
        step.result_seq,
    )


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _clean(text: str) -> str:
    """Text that can be stored: what UTF-8 cannot hold is replaced."""
    return text.encode("utf-8", "replace").decode()
