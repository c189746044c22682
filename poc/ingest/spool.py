"""Files of our own for what has none yet: what is unpacked, re-encoded or piped in, and no more than is safe.

Everything written is counted. Past a limit the writing stops with an error
that names the limit; what was written lies in a folder that goes when the
import ends. Knows no archive and no format.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from poc.errors import InputError
from poc.ingest.staging import disk_errors

_CHUNK = 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be written.

    ratio: unpacked bytes for each packed one, held once more than `free_ratio`
    bytes came out; total: bytes of one import; members: files of one archive;
    reserve: bytes that stay free on the disk.
    """

    ratio: int = 200
    free_ratio: int = 64 << 20
    total: int = 64 << 30
    members: int = 20_000
    reserve: int = 1 << 30


class Stream(Protocol):
    """What can be read piece by piece."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, none at the end."""
        ...


class Packed(msgspec.Struct):
    """One archive as a person gave it, and what came out of it so far. `size`: None for what is not packed."""

    label: str
    size: int | None
    used: Callable[[], int] | None = None
    """How many of its bytes have been read; all of them where it is not said."""
    written: int = 0
    members: int = 0

    @property
    def so_far(self) -> int | None:
        """The packed bytes that `written` came out of."""
        return self.size if self.size is None or self.used is None else min(self.size, self.used())


class Spool:
    """A folder of numbered files. Use one for each import. `step` is called now and then and may raise to stop."""

    def __init__(self, folder: Path, limits: Limits | None = None, step: Callable[[str], None] | None = None) -> None:
        self.folder = folder / "unpacked"
        self.limits = limits or Limits()
        self.step = step
        self.written = 0
        self._files = 0

    def path(self) -> Path:
        """A place for one more file."""
        with disk_errors(self.folder):
            self.folder.mkdir(exist_ok=True)
        self._files += 1
        return self.folder / str(self._files)

    def member(self, packed: Packed) -> None:
        """Count one more file of an archive. Raises `InputError` when there are too many."""
        packed.members += 1
        if packed.members > self.limits.members:
            raise InputError(
                f"The archive holds more than {self.limits.members:,} files.",
                where=packed.label,
                todo="Unpack it and give the folder.",
            )

    def copy(self, stream: Stream, target: Path, packed: Packed) -> Exception | None:
        """All of the stream into a file. What it raises while it is read is returned: what came before is kept.

        Raises `InputError` past a limit, `WorkspaceError` when the file cannot be written.
        """
        with disk_errors(self.folder), target.open("wb") as file:
            while True:
                try:
                    chunk = stream.read(_CHUNK)
                except Exception as error:  # whatever a damaged archive makes its library say
                    return error
                if not chunk:
                    return None
                self._count(len(chunk), packed)
                file.write(chunk)
                if self.step:
                    self.step(packed.label)

    def _count(self, size: int, packed: Packed) -> None:
        before = self.written
        self.written += size
        packed.written += size
        limits = self.limits
        used = packed.so_far if packed.written > limits.free_ratio else None
        if used is not None and packed.written > limits.ratio * used:
            raise InputError(
                f"The archive unpacks to more than {limits.ratio} times its size"
                f" ({_size(packed.written)} out of {_size(used)} so far): it may be made to fill the disk.",
                where=packed.label,
                todo="If you trust it, unpack it and give the files in it.",
            )
        if self.written > limits.total:
            raise InputError(
                f"More than {_size(limits.total)} would have to be laid down for this import.",
                where=packed.label,
                todo="Give the files themselves, unpacked where there is room, or import them one after the other.",
            )
        if before // (16 << 20) != self.written // (16 << 20) or before == 0:
            free = shutil.disk_usage(self.folder).free
            if free < limits.reserve:
                raise InputError(
                    f"Stopped, since less than {_size(limits.reserve)} is left on the disk.",
                    where=packed.label,
                    todo=f"Free some space at {self.folder.parent}, or give the files unpacked where there is room.",
                )


def _size(number: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size:
            return f"{number / size:.0f} {unit}"
    return f"{number} bytes"
