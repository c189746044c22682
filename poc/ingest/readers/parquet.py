"""Rows out of a Parquet file. Knows columns, not what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from poc.errors import InputError
from poc.ingest.readers.rows import FIRST, Row
from poc.ingest.sources import Source
from poc.trajectory import Reject

MAGIC = b"PAR1"
_BATCH = 2_000


def columns_in(sample: bytes) -> list[str]:
    """The columns that a sample with the file's end names; none where that is damaged."""
    try:
        return list(pq.read_schema(pa.BufferReader(sample)).names)
    except (pa.ArrowException, OSError):
        return []


def peek(source: Source) -> list[dict[str, Any]]:
    """The first rows."""
    try:
        with source.open() as file, pq.ParquetFile(file) as table:
            batch = next(table.iter_batches(batch_size=FIRST), None)
            return [] if batch is None else [_plain(row) for row in batch.to_pylist()]
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"This Parquet file cannot be read: {error}.",
            where=source.label,
            todo="Check that it is whole, or export it as CSV or JSONL.",
        ) from error


def rows(source: Source, columns: Sequence[str]) -> Iterator[Row | Reject]:
    """The rows in order, with the columns asked for."""
    number = 0
    try:
        with source.open() as file, pq.ParquetFile(file) as table:
            total = table.metadata.num_rows
            for batch in table.iter_batches(batch_size=_BATCH, columns=list(columns)):
                for cells in batch.to_pylist():
                    number += 1
                    yield Row(f"row {number}", _plain(cells))
                source.consumed = source.size * number // max(total, 1)
    except (pa.ArrowException, OSError) as error:
        yield Reject(place=f"row {number + 1}", reason=f"the Parquet file cannot be read on from here: {error}")


def _plain(cells: dict[str, Any]) -> dict[str, Any]:
    """Bytes as text; everything else as Arrow gives it."""
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value for name, value in cells.items()
    }
