"""One thing to be read: a file, or what was unpacked or piped in and lies in a file of our own meanwhile.

An empty file, a binary file and one that cannot be read are told apart before
anything is read. Knows no format, no table, and not how sources are found.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from poc.errors import InputError
from poc.trajectory import Reject

SAMPLE_BYTES = 1 << 18
STDIN = Path("<stdin>")
"""What people call what was piped in."""
_LONGEST_FOOTER = 1 << 24
_BOM = b"\xef\xbb\xbf"
_PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ\x00": "an xz archive",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
"""Kinds that are unpacked (or re-encoded) before a reader sees what is in them."""
_TAR = "a tar archive"
_MAGIC = {
    **_PACKED,
    b"PK\x05\x06": "an empty zip archive",
    b"SQLite format 3\x00": "a SQLite database",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
}
_TODO_BINARY = {
    "a SQLite database": "Export the table of tool calls as CSV or JSONL.",
    "a Parquet file": "Export it as CSV or JSONL.",
}
_TODO_PACKED = "Unpack it and give the files in it."
_ACCEPTED: set[bytes] = set()
"""First bytes of binary files that some reader can read."""


class Unreadable(InputError):
    """The system does not let us read a file, or no longer."""


class NotApart(Exception):
    """What a reader says of a stretch of lines when it needs the other lines too; the file is then read whole."""


class Source:
    """One file to be read. `consumed` counts the bytes that a reader is done with.

    path: where its bytes are. origin: the file that people know, where that is
    another one, as it is for what was unpacked; member: the part of it.
    fault: why it cannot be read at all. notes: what was found wrong before a
    reader came to it (an archive that ends early).
    """

    is_part = False
    """Whether this is a stretch of a file's lines (see `apart`)."""
    first_line = 1
    """The number of the first line."""

    def __init__(
        self,
        path: Path,
        *,
        origin: Path | None = None,
        member: str | None = None,
        name: str | None = None,
        asked_for: bool = True,
        mapping: Mapping[str, str] | None = None,
        fault: InputError | None = None,
    ) -> None:
        self.path = path
        self.origin = origin or path
        self.member = member
        self.asked_for = asked_for
        """False for a file that was only found in a folder: one that is no log is then a reject, not an error."""
        self.mapping: dict[str, str] | None = dict(mapping) if mapping is not None else None
        self.consumed = 0
        self.fault = fault
        self.broken = False
        """Whether reading it ended before its end."""
        self.notes: list[Reject] = []
        self.size = 0
        self.known = False
        """Whether the workspace holds what is in it: then only what belongs to other files is read again."""
        self.reading = 0
        """Which of `parts` is being read."""
        self._name = name
        self._sample: bytes | None = None
        self._digest: str | None = None
        if fault is None:
            try:
                self.size = path.stat().st_size
            except OSError as error:
                self.fault = unreadable(self.label, error)

    @property
    def parts(self) -> Sequence[Source]:
        """The files that are read together: this one, where it is no `Joined` one."""
        return (self,)

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self._name or (self.member or self.origin.name).rsplit("/", 1)[-1]

    @property
    def label(self) -> str:
        """What people call it: its path as it was given, ``archive!member`` for a part of an archive."""
        return str(self.origin) + ("" if self.member is None else f"!{self.member}")

    @property
    def address(self) -> str:
        """The same with the whole path: what the workspace keeps."""
        origin = self.origin if self.origin == STDIN else absolute(self.origin)
        return str(origin) + ("" if self.member is None else f"!{self.member}")

    @property
    def sample(self) -> bytes:
        """The first part of the file; of a Parquet file also its end. Raises `InputError` when it cannot be read."""
        if self._sample is None:
            if self.fault is not None:
                raise self.fault
            try:
                with self.path.open("rb") as file:
                    sample = file.read(SAMPLE_BYTES)
                    if sample.startswith(b"PAR1") and self.size > len(sample):
                        sample += _footer(file)
            except OSError as error:
                raise unreadable(self.label, error) from error
            self._sample = sample
        return self._sample

    def release(self) -> None:
        """Forget the sample: of thousands of files only the one in hand is kept in memory."""
        self._sample = None

    @property
    def whole(self) -> bool:
        """Whether `sample` is all there is."""
        return self.size <= len(self.sample)

    @property
    def magic(self) -> bytes | None:
        """The first bytes by which this is known to be a binary file; None for text."""
        return next((magic for magic in (*_MAGIC, *_ACCEPTED) if self.sample.startswith(magic)), None)

    @property
    def packed(self) -> str | None:
        """What kind of archive this is, if it is one."""
        kind = next((kind for magic, kind in _PACKED.items() if self.sample.startswith(magic)), None)
        return kind or (_TAR if self.sample[257:262] == b"ustar" else None)

    def problem(self) -> InputError | None:
        """Why this can be no log at all: it cannot be read, is empty, or binary and no reader takes its kind."""
        if self.fault is not None:
            return self.fault
        try:
            return None if self.magic in _ACCEPTED else self.text_problem()
        except InputError as error:
            return error

    def text_problem(self) -> InputError | None:
        """Why this can be no text log."""
        if not self.sample.removeprefix(_BOM).strip():
            what = "The file is empty." if self.size == 0 else "The file holds nothing but blanks."
            return InputError(what, where=self.label, todo="Check the export that made it.")
        if self.packed:
            return InputError(f"This is {self.packed}, which cannot be read here.", where=self.label, todo=_TODO_PACKED)
        for magic, name in _MAGIC.items():
            if self.sample.startswith(magic):
                todo = _TODO_BINARY.get(name, "Give a JSON, JSONL or CSV file.")
                return InputError(f"This is {name}, which cannot be read here.", where=self.label, todo=todo)
        control = sum(self.sample.count(bytes([code])) for code in (0, 1, 2, 3, 4, 5, 6, 7, 14, 15, 16))
        if control > len(self.sample) // 500:
            return InputError(
                "This is a binary file, not a text log.", where=self.label, todo="Give a JSON, JSONL or CSV file."
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
            raise unreadable(self.label, error) from error

    def shrunk(self) -> int:
        """How many bytes fewer it has now than when it was found; one that is gone was read to its end."""
        try:
            return max(0, self.size - self.path.stat().st_size)
        except OSError:
            return 0

    def sha256(self) -> str:
        """Of the file's bytes as they are first met, in hex; of no bytes where it cannot be read."""
        if self._digest is None:
            if self.fault is not None:
                return hashlib.sha256().hexdigest()
            try:
                with self.path.open("rb") as file:
                    self._digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise unreadable(self.label, error) from error
        return self._digest


class Joined(Source):
    """Several files that hold parts of the same runs. Only readers that offer ``keys`` are given one; they read its
    `parts` one after the other and say with each run how many records of it were in which (`Run.shares`)."""

    def __init__(self, parts: Sequence[Source]) -> None:
        first = parts[0]
        super().__init__(first.path, origin=first.origin, member=first.member, mapping=first.mapping)
        self._parts = tuple(parts)
        self.size = sum(part.size for part in parts if not part.known)

    @property
    def parts(self) -> Sequence[Source]:
        """The files, in the order in which they are read."""
        return self._parts


def absolute(path: Path) -> Path:
    """The path from the root, links followed; of a link that leads nowhere its own place."""
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # not there, or links that lead to themselves
        return path.parent.resolve() / path.name


def unreadable(label: str, error: OSError) -> Unreadable:
    """What to say of a file that the system does not let us read."""
    return Unreadable(
        f"The file cannot be read: {error.strerror or error}.",
        where=label,
        todo="Check its permissions, or copy it to a place that you may read.",
    )


def accept(magic: Iterable[bytes]) -> None:
    """Let binary files that begin so pass: a reader takes them (its ``MAGIC``)."""
    _ACCEPTED.update(magic)


def _footer(file: BinaryIO) -> bytes:
    """The end of a Parquet file, where its columns are named."""
    file.seek(-8, os.SEEK_END)
    length = int.from_bytes(file.read(4), "little") + 8
    file.seek(-min(length, file.tell() + 4, _LONGEST_FOOTER), os.SEEK_END)
    return file.read()
