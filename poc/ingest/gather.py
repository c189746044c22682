"""One file, or one part of it, into staged rows: what a reader yields is counted, keyed and staged.

What cannot go to rows (how many records, which runs, which tools) is kept in
`Gathered`, small enough to be handed from one process to another. Knows no
format and nothing of the workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from poc.errors import InputError
from poc.ingest.identity import RunKey, run_key, task_id
from poc.ingest.staging import Staging, clean
from poc.trajectory import Item, Reject, Run, TaskReference, ToolSchema

_TASKS_REMEMBERED = 20_000
_REASONS_KEPT = 20
_REASONS_COUNTED = 1_000


class Gathered(msgspec.Struct, kw_only=True):
    """What a file, or a part of one, held. Counts are of source records; the lists have an entry a run, in order."""

    read: int = 0
    rejected: int = 0
    reasons: dict[str, int] = {}
    keys: list[RunKey] = []
    records: list[int] = []
    messages: list[int] = []
    steps: list[int] = []
    tools: dict[str, ToolSchema] = {}
    shares: list[list[int]] = []
    """Records by file, where several were read together: an entry a run."""
    refused: dict[int, dict[str, int]] = {}
    """Of the files after the first: how often a record was rejected for which reason, and under "" how many records."""

    def add(self, other: Gathered) -> None:
        """Take in what the next part of the file held."""
        self.read += other.read
        self.rejected += other.rejected
        for reason, times in other.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + times
        self.keys += other.keys
        self.records += other.records
        self.messages += other.messages
        self.steps += other.steps
        self.tools = {**other.tools, **self.tools}

    def rejected_in(self, file: int) -> int:
        """Records of one of the files that were rejected."""
        of_others = {other: counts[""] for other, counts in self.refused.items()}
        return of_others.get(file, 0) if file else self.rejected - sum(of_others.values())

    def commonest_reasons(self, file: int = 0) -> dict[str, int]:
        """The commonest reasons of rejects in one of the files and how often each came."""
        reasons = self.refused.get(file, {}) if file else self.reasons
        ranked = sorted(((reason, times) for reason, times in reasons.items() if reason), key=lambda item: -item[1])
        return dict(ranked[:_REASONS_KEPT])


def gather(
    items: Iterable[Item],
    staged: Staging,
    *,
    source_ids: Sequence[str],
    format_name: str,
    where: Sequence[str],
    strict: bool = False,
    report: Callable[[], None] | None = None,
) -> Gathered:
    """Stage what a reader yields.

    source_ids, where: of each file that is read; where: its name in errors.
    strict: raise `InputError` at the first reject.
    report: called after each item; what it raises stops the work.
    """
    found = Gathered(reasons={}, keys=[], records=[], messages=[], steps=[], tools={}, shares=[], refused={})
    said: dict[str, tuple[str | None, ...]] = {}
    for item in items:
        if isinstance(item, Run):
            found.read += item.records
            key = run_key(format_name, item)
            found.keys.append(key)
            found.records.append(item.records)
            found.messages.append(len(item.messages))
            found.steps.append(len(item.steps))
            for tool in item.tools:
                found.tools.setdefault(tool.name, tool)
            file = 0
            if len(source_ids) > 1:
                shares = item.shares or [item.records] + [0] * (len(source_ids) - 1)
                found.shares.append(shares)
                file = next((place for place, share in enumerate(shares) if share), 0)
            staged.run(source_ids[file], item, _task(item, staged, said), key.size)
        elif isinstance(item, TaskReference):
            _task(item, staged, said)
        else:
            _reject(found, item, staged, source_id=source_ids[item.file], where=where[item.file], strict=strict)
        if report:
            report()
    return found


def _reject(found: Gathered, reject: Reject, staged: Staging, *, source_id: str, where: str, strict: bool) -> None:
    if strict:
        raise InputError(
            f"A record cannot be read: {reject.reason}.",
            where=f"{where}, {reject.place}",
            todo="Mend the file, or import without the strict mode: the record is then kept among the rejects.",
        )
    found.read += reject.records
    found.rejected += reject.records
    reasons = found.reasons
    if reject.file:
        reasons = found.refused.setdefault(reject.file, {"": 0})
        reasons[""] += reject.records
    kind = reject.reason.split(":", 1)[0][:120]
    if kind in reasons or len(reasons) < _REASONS_COUNTED:
        reasons[kind] = reasons.get(kind, 0) + 1
    raw = None if reject.raw is None else clean(reject.raw)
    staged.reject(source_id, Reject(place=reject.place, reason=clean(reject.reason), raw=raw, records=reject.records))


def _task(item: Run | TaskReference, staged: Staging, said: dict[str, tuple[str | None, ...]]) -> str | None:
    """The task's id. What is said of it is staged, unless just the same was said before."""
    task = task_id(item)
    if task is not None:
        row = (item.task_key, item.task_text, item.category, item.scenario, _reference(item))
        if said.get(task) != row:
            if len(said) >= _TASKS_REMEMBERED:
                said.clear()
            said[task] = row
            staged.task((task, *row))
    return task


def _reference(item: Run | TaskReference) -> str | None:
    if item.reference is None:
        return None
    calls = [{"tool": call.tool, "arguments": msgspec.Raw(call.arguments_json or "null")} for call in item.reference]
    return msgspec.json.encode(calls).decode()
