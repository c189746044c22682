"""What a file would be read as, before it is imported, for the person who corrects a table's mapping."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from poc.errors import InputError
from poc.ingest.detect import detect
from poc.ingest.readers.rows import is_csv
from poc.ingest.readers.table import MAGIC, look
from poc.ingest.readers.table import NAME as TABLE
from poc.ingest.sources import Source


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`format`: the reader's name, None where none fits. For tables: the columns and what their names suggest."""

    format: str | None
    columns: list[str]
    mapping: dict[str, str]


def describe(path: str | os.PathLike[str]) -> FileFacts:
    """The format of one file, and for a table its columns with the suggested mapping.

    Any delimited text, database or Parquet file counts as a table here, also one whose column names say
    nothing: a person may know them. Raises `InputError` for a file that
    cannot be read or is no text.
    """
    source = Source(Path(path))
    if problem := source.problem():
        raise problem
    try:
        found = detect(source).format
    except InputError:
        found = None
    readable = found == TABLE or (found is None and (source.magic in MAGIC if source.magic else is_csv(source.sample)))
    seen = look(source) if readable else None
    if seen is None or not seen.columns:
        return FileFacts(format=found, columns=[], mapping={})
    return FileFacts(format=TABLE, columns=seen.columns, mapping=seen.mapping)
