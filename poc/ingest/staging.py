"""Rows of an import on their way into the workspace: Arrow files beside it, one a table.

Nothing is written to the workspace while files are read; the staged rows go in
at the end, in one short transaction (see `merge`). Memory is bounded by the
size of a batch. Knows the tables' columns, no format.
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

import pyarrow as pa

from poc.errors import WorkspaceError
from poc.workspace import Workspace

_TEXT, _INT, _BIG, _REAL, _BOOL = pa.large_string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
_TIME = pa.timestamp("us", tz="UTC")
BATCH_BYTES = 24 << 20
"""Text held in memory before a batch is written."""

TABLES: dict[str, pa.Schema] = {
    "runs": pa.schema(
        [
            *((name, _TEXT) for name in ("run_id", "source_id", "place", "native_id", "trial", "task_id", "category")),
            *((name, _TEXT) for name in ("framework", "model")),
            *((name, _TIME) for name in ("started_at", "ended_at")),
            ("duration_s", _REAL),
            ("zone_in_log", _BOOL),
            *((name, _BIG) for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")),
            ("cost_usd", _REAL),
            ("outcome", _REAL),
            ("outcome_provenance", _TEXT),
            ("metadata", _TEXT),
            *((name, _BIG) for name in ("records", "n_messages", "n_steps")),  # for the counts; not stored
        ]
    ),
    "messages": pa.schema(
        [
            ("run_id", _TEXT),
            ("seq", _INT),
            *((name, _TEXT) for name in ("role", "content", "name")),
            ("sent_at", _TIME),
            *((name, _BIG) for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")),
            ("cost_usd", _REAL),
        ]
    ),
    "steps": pa.schema(
        [
            ("run_id", _TEXT),
            *((name, _INT) for name in ("step", "turn", "ordinal")),
            *((name, _TEXT) for name in ("call_id", "tool", "arguments_raw", "arguments", "arguments_status")),
            *((name, _TEXT) for name in ("result", "status", "status_evidence")),
            *((name, _TIME) for name in ("started_at", "ended_at")),
            ("duration_s", _REAL),
            *((name, _TEXT) for name in ("execution_id", "caller")),
            *((name, _INT) for name in ("message_seq", "result_seq")),
        ]
    ),
    "rejects": pa.schema([*((name, _TEXT) for name in ("source_id", "place", "reason", "raw")), ("records", _BIG)]),
}


class Staging:
    """The staged rows of one import. Use as a context; the files are gone afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
        self._writers: dict[str, pa.ipc.RecordBatchStreamWriter] = {}
        self._weight = 0

    def add(self, table: str, row: tuple[Any, ...]) -> None:
        """One row, in the order of the table's staged columns."""
        self._rows[table].append(row)

    def weigh(self, size: int) -> None:
        """Say how much text the rows just added hold; writes a batch when it is enough."""
        self._weight += size
        if self._weight >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held in memory. Raises `WorkspaceError` when the disk is full or read-only."""
        for table, rows in self._rows.items():
            if not rows:
                continue
            schema = TABLES[table]
            columns = zip(*rows, strict=True)
            arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
            with disk_errors(self.folder):
                if table not in self._writers:
                    self._writers[table] = pa.ipc.new_stream(str(self.folder / f"{table}.arrow"), schema)
                self._writers[table].write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows.clear()
        self._weight = 0

    def finish(self) -> None:
        """Write the last batch and close the files."""
        self.flush()
        with disk_errors(self.folder):
            for writer in self._writers.values():
                writer.close()

    def reader(self, table: str) -> pa.RecordBatchReader:
        """The staged rows of a table, streamed."""
        path = self.folder / f"{table}.arrow"
        if not path.exists():
            return pa.RecordBatchReader.from_batches(TABLES[table], [])
        return pa.ipc.open_stream(pa.memory_map(str(path)))


@contextmanager
def staging(workspace: Workspace) -> Iterator[Staging]:
    """A fresh place for staged rows beside the workspace; what dead imports left there is cleared."""
    with disk_errors(workspace.path):
        _clear(workspace.files)
        folder = workspace.files / f"import-{uuid.uuid4().hex[:12]}"
        folder.mkdir()
    try:
        yield Staging(folder)
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
