"""What a file would be read as, before it is imported, for the person who corrects a table's mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from poc.errors import InputError
from poc.ingest.archives import expand
from poc.ingest.detect import detect, takes_whole
from poc.ingest.readers.rows import is_csv
from poc.ingest.readers.table import MAGIC, look
from poc.ingest.readers.table import NAME as TABLE
from poc.ingest.sources import Source
from poc.ingest.spool import Spool

ROWS_SHOWN = 8


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`format`: the reader's name, None where none fits.

    For tables: the columns, the mapping that names and values suggest, and the first rows as the file has them.
    """

    format: str | None
    columns: list[str] = []
    mapping: dict[str, str] = {}
    rows: list[dict[str, Any]] = []

    def preview(self, mapping: Mapping[str, str]) -> list[dict[str, Any]]:
        """What each field would be read from in the first rows; a field whose column is not in them is left out."""
        fields = {field: column for field, column in mapping.items() if any(column in row for row in self.rows)}
        return [{field: row.get(column) for field, column in fields.items()} for row in self.rows]


def describe(path: str | os.PathLike[str]) -> FileFacts:
    """The format of one file, and for a table its columns with the suggested mapping.

    Any delimited text, database or Parquet file counts as a table here, also one whose column names say
    nothing: a person may know them. Of an archive the first table in it is described, else the first file.
    Raises `InputError` for a file that cannot be read or is no text.
    """
    with TemporaryDirectory(prefix="poc-describe-") as folder:
        first: FileFacts | InputError | None = None
        for source in expand(Source(Path(path)), Spool(Path(folder)), takes_whole):
            facts = source.problem() or _described(source)
            if isinstance(facts, FileFacts) and facts.columns:
                return facts
            first = facts if first is None else first
        if isinstance(first, InputError):
            raise first
        return first or FileFacts(format=None)


def _described(source: Source) -> FileFacts:
    try:
        found = detect(source).format
    except InputError:
        found = None
    if found not in (None, TABLE) or (source.magic and source.magic not in MAGIC):
        return FileFacts(format=found)
    seen = look(source)
    # Of a text that no reader claims, delimited columns may be calls whatever their names; others must look like it.
    if not seen.columns or (found is None and "tool" not in seen.mapping and not is_csv(source.sample)):
        return FileFacts(format=found)
    return FileFacts(format=TABLE, columns=seen.columns, mapping=seen.mapping, rows=seen.rows[:ROWS_SHOWN])
