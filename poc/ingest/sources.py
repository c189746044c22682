"""Where records come from: files and folders, opened for reading only.

A folder stands for every file in it that is not hidden, in a fixed order.
An empty file, a binary file and a path that is not there are told apart
before anything is read. Knows no format and no table.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from poc.errors import InputError, did_you_mean

SAMPLE_BYTES = 1 << 18
_LONGEST_FOOTER = 1 << 24
_BOM = b"\xef\xbb\xbf"
_MAGIC = {
    b"SQLite format 3\x00": "a SQLite database",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
_TODO_BINARY = {
    "a zip archive": "Unpack it and give the files in it.",
    "a gzip archive": "Unpack it (gunzip) and give the file in it.",
    "a zstd archive": "Unpack it (unzstd) and give the file in it.",
    "a SQLite database": "Export the table of tool calls as CSV or JSONL.",
    "a Parquet file": "Export it as CSV or JSONL.",
    "UTF-16 text": "Save it as UTF-8.",
}
_ACCEPTED: set[bytes] = set()
"""First bytes of binary files that some reader can read."""


class Source:
    """One file to be read. `consumed` counts the bytes that a reader is done with."""

    def __init__(self, path: Path, *, asked_for: bool = True, mapping: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.asked_for = asked_for
        """False for a file that was only found in a folder: one that is no log is then a reject, not an error."""
        self.mapping: dict[str, str] | None = dict(mapping) if mapping is not None else None
        self.consumed = 0
        try:
            self.size = path.stat().st_size
            with path.open("rb") as file:
                self.sample = file.read(SAMPLE_BYTES)
                if self.sample.startswith(b"PAR1") and not self.whole:
                    self.sample += _footer(file)
        except OSError as error:
            raise _unreadable(path, error) from error

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.name

    @property
    def whole(self) -> bool:
        """Whether `sample` is all there is."""
        return self.size <= len(self.sample)

    @property
    def magic(self) -> bytes | None:
        """The first bytes by which this is known to be a binary file; None for text."""
        return next((magic for magic in (*_MAGIC, *_ACCEPTED) if self.sample.startswith(magic)), None)

    def problem(self) -> InputError | None:
        """Why this file can be no log at all: it is empty, or binary and no reader takes its kind. None if it may."""
        return None if self.magic in _ACCEPTED else self.text_problem()

    def text_problem(self) -> InputError | None:
        """Why this file can be no text log."""
        if not self.sample.removeprefix(_BOM).strip():
            what = "The file is empty." if self.size == 0 else "The file holds nothing but blanks."
            return InputError(what, where=str(self.path), todo="Check the export that made it.")
        for magic, name in _MAGIC.items():
            if self.sample.startswith(magic):
                todo = _TODO_BINARY.get(name, "Give a JSON, JSONL or CSV file.")
                return InputError(f"This is {name}, which cannot be read here.", where=str(self.path), todo=todo)
        control = sum(self.sample.count(bytes([code])) for code in (0, 1, 2, 3, 4, 5, 6, 7, 14, 15, 16))
        if control > len(self.sample) // 500:
            return InputError(
                "This is a binary file, not a text log.",
                where=str(self.path),
                todo="Give a JSON, JSONL or CSV file.",
            )
        return None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file from its first byte after a byte-order mark."""
        try:
            with self.path.open("rb") as file:
                if self.sample.startswith(_BOM):
                    file.seek(len(_BOM))
                yield file
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def sha256(self) -> str:
        """Of the file's bytes, in hex."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _footer(file: BinaryIO) -> bytes:
    """The end of a Parquet file, where its columns are named."""
    file.seek(-8, os.SEEK_END)
    length = int.from_bytes(file.read(4), "little") + 8
    file.seek(-min(length, file.tell() + 4, _LONGEST_FOOTER), os.SEEK_END)
    return file.read()


def accept(magic: Iterable[bytes]) -> None:
    """Let binary files that begin so pass: a reader takes them (its ``MAGIC``)."""
    _ACCEPTED.update(magic)


def find(paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str]) -> list[Source]:
    """The files that `paths` stand for, each once; folders are searched.

    Raises `InputError` for a path that is not there or cannot be read, an
    empty or binary file that was named itself, and a folder without files.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    found: dict[Path, Source] = {}
    for given in paths:
        path = Path(given).expanduser()
        if not path.exists():
            near = _neighbours(path)
            raise InputError(
                f"There is no such file or folder.{near}", where=str(path), todo="Check the path and try again."
            )
        if path.is_dir():
            inside = [file for file in _files(path) if file.resolve() not in found]
            if not inside and not any(True for _ in _files(path)):
                raise InputError(
                    "The folder holds no files.", where=str(path), todo="Give a folder with logs, or a file."
                )
            for file in inside:
                found[file.resolve()] = Source(file, asked_for=False)
        elif path.is_file():
            source = Source(path)
            if problem := source.problem():
                raise problem
            found[path.resolve()] = source
        else:
            raise InputError("This is neither a file nor a folder.", where=str(path), todo="Give a file or a folder.")
    if not found:
        raise InputError("No file was given.", todo="Give one or more log files or folders.")
    return list(found.values())


def _files(folder: Path) -> Iterator[Path]:
    """Files below a folder in a fixed order; hidden ones and links to folders are left out."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(where, name)
            if not name.startswith(".") and file.is_file():
                yield file


def _neighbours(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    except OSError:
        return ""
    hint = did_you_mean(path.name, names)
    return hint if hint.startswith(" Did you mean") else ""


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"The file cannot be read: {error.strerror or error}.",
        where=str(path),
        todo="Check its permissions, or copy it to a place that you may read.",
    )
