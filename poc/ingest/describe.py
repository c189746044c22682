"""What a file would be read as, before it is imported, for the person who corrects a table's mapping."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from poc.errors import InputError
from poc.ingest.archives import expand
from poc.ingest.detect import detect, takes_whole
from poc.ingest.readers.rows import is_csv
from poc.ingest.readers.table import MAGIC, look
from poc.ingest.readers.table import NAME as TABLE
from poc.ingest.sources import Source
from poc.ingest.spool import Spool


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """`format`: the reader's name, None where none fits. For tables: the columns and what their names suggest."""

    format: str | None
    columns: list[str]
    mapping: dict[str, str]


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
        return first or FileFacts(format=None, columns=[], mapping={})


def _described(source: Source) -> FileFacts:
    try:
        found = detect(source).format
    except InputError:
        found = None
    readable = found == TABLE or (found is None and (source.magic in MAGIC if source.magic else is_csv(source.sample)))
    seen = look(source) if readable else None
    if seen is None or not seen.columns:
        return FileFacts(format=found, columns=[], mapping={})
    return FileFacts(format=TABLE, columns=seen.columns, mapping=seen.mapping)
