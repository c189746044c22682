"""Rows out of a SQLite file: which tables it has, and the rows of one with what a table of runs adds.

The file is opened for reading only; what lies in a write-ahead log beside it
is read from a copy, so that nothing is ever written beside the user's file.
Knows tables and columns, not what they mean.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from poc.errors import InputError
from poc.ingest.readers.rows import FIRST, Row
from poc.ingest.sources import Source
from poc.trajectory import Reject

MAGIC = b"SQLite format 3\x00"
_PAGE_COUNT = slice(28, 32)
_VERSIONS = slice(18, 20)
FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged database raises: what SQLite says of it may itself be no text."""
Tables = dict[str, list[str]]
"""Columns by table."""


def tables_in(sample: bytes) -> Tables:
    """The tables that the first part of a file names; none where that is damaged."""
    page = int.from_bytes(sample[16:18], "big") or 0
    size = 65536 if page == 1 else page
    if size < 512 or len(sample) < size:
        return {}
    pages = len(sample) // size
    # A database of the first pages only: its header must say so, and that it has no write-ahead log.
    head = bytearray(sample[: pages * size])
    head[_PAGE_COUNT] = pages.to_bytes(4, "big")
    head[_VERSIONS] = b"\x01\x01"
    with closing(sqlite3.connect(":memory:")) as db:
        db.text_factory = _text
        try:
            db.deserialize(bytes(head))
            return _tables(db)
        except FAULTS:
            return {}


@contextmanager
def opened(source: Source) -> Iterator[sqlite3.Connection]:
    """The database, for reading. Raises `InputError` when it cannot be opened."""
    with tempfile.TemporaryDirectory(prefix="poc-sqlite-") as folder:
        try:
            path, fixed = _on_disk(source, Path(folder))
            db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if fixed else ''}", uri=True)
        except (*FAULTS, OSError) as error:
            raise _unreadable(source, error) from error
        with closing(db):
            db.text_factory = _text
            try:
                db.execute("PRAGMA trusted_schema = OFF")
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except FAULTS as error:
                raise _unreadable(source, error) from error
            yield db


def tables(source: Source) -> Tables:
    """All tables of the file."""
    with opened(source) as db:
        try:
            return _tables(db)
        except FAULTS as error:
            raise _unreadable(source, error) from error


def peek(source: Source, table: str) -> list[dict[str, Any]]:
    """The first rows of a table."""
    with opened(source) as db:
        try:
            cursor = db.execute(f"SELECT * FROM {_quoted(table)} LIMIT {FIRST}")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, map(_clean, cells), strict=True)) for cells in cursor]
        except FAULTS as error:
            raise _unreadable(source, error) from error


def is_key(source: Source, table: str, column: str) -> bool:
    """Whether no two rows of a table have the same value in a column."""
    with opened(source) as db:
        try:
            query = f"SELECT count({_quoted(column)}) = count(DISTINCT {_quoted(column)}) FROM {_quoted(table)}"
            return bool(db.execute(query).fetchone()[0])
        except FAULTS as error:
            raise _unreadable(source, error) from error


def rows(source: Source, table: str, columns: Sequence[str], run_column: str | None) -> Iterator[Row | Reject]:
    """The rows of a table in their order. Columns named ``other.column`` come from the row of that table whose
    `run_column` has the same value; rows of it that no call names come last, as rows without the call's columns."""
    own = [column for column in columns if "." not in column or column in _names(source, table)]
    others: dict[str, list[str]] = {}
    for column in columns:
        if column not in own:
            other, _, name = column.partition(".")
            others.setdefault(other, []).append(name)
    with opened(source) as db:
        try:
            beside = {other: _by_key(db, other, run_column, names) for other, names in others.items() if run_column}
            total = _count(db, table)
            listed = ", ".join(map(_quoted, own))
            met: set[Any] = set()
            for number, cells in enumerate(db.execute(f"SELECT {listed} FROM {_quoted(table)}"), 1):
                source.consumed = source.size * number // max(total, 1)
                row = Row(f"{table} row {number}", dict(zip(own, cells, strict=True)))
                key = row.cells.get(run_column) if run_column else None
                met.add(key)
                for known in beside.values():
                    row.cells.update(known.get(key, {}))
                yield from _checked(row)
            for other, known in beside.items():
                for key, cells in known.items():
                    if key not in met and key is not None and run_column:
                        met.add(key)
                        yield from _checked(Row(f"{other} {run_column}={key}", {run_column: key, **cells}))
        except FAULTS as error:
            yield Reject(place=f"table {table}", reason=f"the database cannot be read on from here: {error}")


def _count(db: sqlite3.Connection, table: str) -> int:
    try:
        return db.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()[0]
    except FAULTS:
        return 0  # damaged further on: what can be read is read, and the damage is said where it is met


def _by_key(db: sqlite3.Connection, table: str, key: str, columns: Sequence[str]) -> dict[Any, Mapping[str, Any]]:
    listed = ", ".join(map(_quoted, (key, *columns)))
    names = [f"{table}.{column}" for column in columns]
    cursor = db.execute(f"SELECT {listed} FROM {_quoted(table)}")
    return {cells[0]: dict(zip(names, cells[1:], strict=True)) for cells in cursor}


def _checked(row: Row) -> Iterator[Row | Reject]:
    """The row with text that can be stored; a note where something had to be changed for it."""
    changed = [name for name, value in row.cells.items() if value is not _clean(value)]
    if changed:
        row.cells = {name: _clean(value) for name, value in row.cells.items()}
        reason = f"kept, with changes: no valid UTF-8 in {', '.join(changed)}"
        yield Reject(place=row.place, reason=reason, records=0)
    yield row


def _clean(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _tables(db: sqlite3.Connection) -> Tables:
    names = [
        row[0]
        for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid")
        if not row[0].startswith("sqlite_")
    ]
    return {name: [row[1] for row in db.execute(f"PRAGMA table_info({_quoted(name)})")] for name in names}


def _names(source: Source, table: str) -> list[str]:
    return tables(source).get(table, [])


def _on_disk(source: Source, folder: Path) -> tuple[Path, bool]:
    """A path that SQLite can open, and whether nobody writes to it: a copy where the file is packed or has a log."""
    log = Path(f"{source.path}-wal")
    with source.path.open("rb") as file:
        plain = file.read(len(MAGIC)) == MAGIC
    if plain and not (log.is_file() and log.stat().st_size):
        return source.path, True
    copy = folder / "copy.sqlite"
    if plain:
        shutil.copyfile(source.path, copy)
        shutil.copyfile(log, f"{copy}-wal")
    else:
        with source.open() as packed, copy.open("wb") as target:
            shutil.copyfileobj(packed, target)
    return copy, False


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unreadable(source: Source, error: Exception) -> InputError:
    return InputError(
        f"This SQLite database cannot be read: {error}.",
        where=source.label,
        todo="Check that it is whole (sqlite3 FILE 'PRAGMA integrity_check'), or export the table as CSV or JSONL.",
    )
