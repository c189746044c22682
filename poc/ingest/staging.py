"""Runs of an import on their way into the workspace: Arrow files beside it, one a table.

Nothing is written to the workspace while files are read; the staged rows go in
at the end, in one short transaction (see `merge`). Rows name their run by its
number, counted from 0; which run id a number stands for, and whether that run
is stored at all, is settled at the end (see `Staged.reader`). Memory is bounded
by the size of a batch. Knows the tables' columns, no format.
"""

from __future__ import annotations

import errno
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from poc.errors import WorkspaceError
from poc.trajectory import Message, Reject, Run, Step, Usage
from poc.workspace import Workspace

_TEXT, _INT, _BIG, _REAL, _BOOL = pa.large_string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
_TIME = pa.timestamp("us", tz="UTC")
_USAGE = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_NO_USAGE: tuple[int | None, ...] = (None,) * len(_USAGE)
BATCH_BYTES = 24 << 20
"""Text held in memory before a batch is written."""
BATCH_ROWS = 20_000

# Columns of messages and steps stand in the order of the records' fields.
TABLES: dict[str, pa.Schema] = {
    "runs": pa.schema(
        [
            ("run", _INT),
            *((name, _TEXT) for name in ("source_id", "place", "native_id", "trial", "task_id", "category")),
            *((name, _TEXT) for name in ("framework", "model")),
            *((name, _TIME) for name in ("started_at", "ended_at")),
            ("duration_s", _REAL),
            ("zone_in_log", _BOOL),
            *((name, _BIG) for name in _USAGE),
            ("cost_usd", _REAL),
            ("outcome", _REAL),
            ("outcome_provenance", _TEXT),
            ("metadata", _TEXT),
        ]
    ),
    "messages": pa.schema(
        [
            ("run", _INT),
            ("seq", _INT),
            *((name, _TEXT) for name in ("role", "content", "name")),
            *((name, _BIG) for name in _USAGE),
            ("sent_at", _TIME),
            ("cost_usd", _REAL),
        ]
    ),
    "steps": pa.schema(
        [
            ("run", _INT),
            *((name, _INT) for name in ("step", "turn")),
            ("tool", _TEXT),
            ("ordinal", _INT),
            *((name, _TEXT) for name in ("call_id", "arguments_raw", "arguments", "arguments_status")),
            *((name, _TEXT) for name in ("result", "status", "status_evidence")),
            *((name, _TIME) for name in ("started_at", "ended_at")),
            ("duration_s", _REAL),
            *((name, _TEXT) for name in ("execution_id", "caller")),
            *((name, _INT) for name in ("message_seq", "result_seq")),
        ]
    ),
    "tasks": pa.schema(
        [(name, _TEXT) for name in ("task_id", "task_key", "text", "category", "scenario", "reference")]
    ),
    "rejects": pa.schema([*((name, _TEXT) for name in ("source_id", "place", "reason", "raw")), ("records", _BIG)]),
}


class Staging:
    """Rows being staged in a folder. Call `finish` at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0
        """How many runs were staged."""
        self._rows: dict[str, list[tuple[Any, ...]]] = {"runs": [], "tasks": [], "rejects": []}
        self._messages: list[Message] = []
        self._steps: list[Step] = []
        self._of: dict[str, list[tuple[int, int]]] = {"messages": [], "steps": []}
        """Which run how many of the rows belong to."""
        self._writers: dict[str, pa.ipc.RecordBatchStreamWriter] = {}
        self._weight = 0

    def run(self, source_id: str, run: Run, task: str | None, size: int) -> None:
        """Stage a run with its messages and steps, `size` characters in all. It is not to be changed afterwards."""
        number = self.runs
        self.runs += 1
        usage = run.usage
        self._rows["runs"].append(
            (
                number,
                source_id,
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
                *(_NO_USAGE if usage is None else msgspec.structs.astuple(usage)),
                run.cost_usd,
                None if run.outcome is None else run.outcome.value,
                None if run.outcome is None else run.outcome.provenance,
                msgspec.json.encode(run.metadata).decode() if run.metadata else None,
            )
        )
        for table, rows, new in (("messages", self._messages, run.messages), ("steps", self._steps, run.steps)):
            if new:
                rows += new
                self._of[table].append((number, len(new)))
        self._weigh(size + 500)

    def task(self, row: tuple[Any, ...]) -> None:
        """Stage what a run says of its task, in the order of the table's columns."""
        self._rows["tasks"].append(row)
        self._weigh(sum(len(text) for text in row if text is not None))

    def reject(self, source_id: str, reject: Reject) -> None:
        """Stage a reject."""
        self._rows["rejects"].append((source_id, reject.place, reject.reason, reject.raw, reject.records))
        self._weigh(len(reject.raw or "") + 200)

    def finish(self) -> None:
        """Write the last batch and close the files."""
        self._flush()
        with disk_errors(self.folder):
            for writer in self._writers.values():
                writer.close()

    def _weigh(self, size: int) -> None:
        self._weight += size
        if self._weight >= BATCH_BYTES or len(self._messages) + len(self._steps) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        """Write what is held in memory. Raises `WorkspaceError` when the disk is full or read-only."""
        for table, rows in self._rows.items():
            self._write(table, list(zip(*rows, strict=True)))
            rows.clear()
        self._write("messages", self._message_columns())
        self._write("steps", self._columns("steps", self._steps))
        self._messages.clear()
        self._steps.clear()
        for counts in self._of.values():
            counts.clear()
        self._weight = 0

    def _columns(self, table: str, records: list[Any]) -> list[Any]:
        """The columns of messages or steps: the number of the run, then the records' fields."""
        if not records:
            return []
        numbers, counts = zip(*self._of[table], strict=True)
        run = np.repeat(np.array(numbers, np.int32), np.array(counts))
        return [run, *zip(*map(msgspec.structs.astuple, records), strict=True)]

    def _message_columns(self) -> list[Any]:
        columns = self._columns("messages", self._messages)
        if columns:
            usages: tuple[Usage | None, ...] = columns[5]
            if _is_empty(usages):
                parts = [usages] * len(_USAGE)
            else:
                parts = list(
                    zip(*(_NO_USAGE if u is None else msgspec.structs.astuple(u) for u in usages), strict=True)
                )
            columns[5:6] = parts
        return columns

    def _write(self, table: str, columns: list[Any]) -> None:
        if not columns:
            return
        schema = TABLES[table]
        arrays = [_array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        with disk_errors(self.folder):
            if table not in self._writers:
                self._writers[table] = pa.ipc.new_stream(str(self.folder / f"{table}.arrow"), schema)
            self._writers[table].write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


class Staged:
    """A folder of staged rows with the run id that each run number stands for; a run without one is left out.

    source_id: of the file that the rows came from, where they do not say it themselves.
    """

    def __init__(self, folder: Path, names: pa.Array, source_id: str | None = None) -> None:
        self.folder = folder
        self.names = names
        self.source_id = source_id

    def batches(self, table: str) -> Iterator[pa.RecordBatch]:
        """The rows, with ``run_id`` in the place of ``run``."""
        path = self.folder / f"{table}.arrow"
        if not path.exists():
            return
        schema = stored_schema(table)
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:  # read, not mapped: memory stays flat
            for batch in stream:
                if self.source_id is not None and "source_id" in batch.schema.names:
                    place = batch.schema.get_field_index("source_id")
                    whose = pa.repeat(pa.scalar(self.source_id, _TEXT), batch.num_rows)
                    batch = batch.set_column(place, "source_id", whose)
                if "run" in batch.schema.names:
                    names = self.names.take(batch.column(0))
                    batch = pa.RecordBatch.from_arrays([names, *batch.columns[1:]], schema=schema)
                    if names.null_count:
                        batch = batch.filter(names.is_valid())
                yield batch


def reader(parts: list[Staged], table: str) -> pa.RecordBatchReader:
    """The rows of a table from all parts, streamed."""
    return pa.RecordBatchReader.from_batches(
        stored_schema(table), (batch for part in parts for batch in part.batches(table))
    )


def stored_schema(table: str) -> pa.Schema:
    """The columns of the staged rows as they are read back."""
    schema = TABLES[table]
    return pa.schema([("run_id", pa.string()), *list(schema)[1:]]) if "run" in schema.names else schema


def _is_empty(column: Any) -> bool:
    return column[0] is None and column.count(None) == len(column)


def _array(column: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(column, tuple) and _is_empty(column):
        return pa.nulls(len(column), kind)
    try:
        return pa.array(column, type=kind)
    except UnicodeEncodeError:  # a reader that lets lone surrogates pass must not cost the import
        return pa.array([None if text is None else clean(text) for text in column], type=kind)


def clean(text: str) -> str:
    """Text that can be stored: what UTF-8 cannot hold is replaced."""
    return text.encode("utf-8", "replace").decode()


@contextmanager
def staging(workspace: Workspace) -> Iterator[Path]:
    """A fresh folder for staged rows beside the workspace; what dead imports left there is cleared."""
    with disk_errors(workspace.path):
        _clear(workspace.files)
        folder = workspace.files / f"import-{uuid.uuid4().hex[:12]}"
        folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turns what a full or read-only disk says into a `WorkspaceError` that helps."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error):
            raise WorkspaceError(
                "The disk is full; the workspace was left as it was.",
                where=str(where),
                todo="Free some space, then import again.",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise WorkspaceError(
                "Nothing can be written beside the workspace: no permission, or a read-only place.",
                where=str(where),
                todo="Check the permissions of the folder, or copy the workspace to a place that you may write to.",
            ) from error
        raise WorkspaceError(
            f"Writing beside the workspace failed: {error.strerror or error}.",
            where=str(where),
            todo="Check the disk, then import again.",
        ) from error


def _clear(files: Path) -> None:
    """Remove what an import that died left behind; none runs for longer than a day."""
    for left in files.glob("import-*"):
        if time.time() - left.stat().st_mtime > 86_400:
            shutil.rmtree(left, ignore_errors=True)
