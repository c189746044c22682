"""Entries of an Inspect ``.eval`` file, a zip archive, read one by one and within bounds.

Entries are stored, deflated or packed with zstd (method 93, which newer
versions of Inspect write). Where the list of entries at the end is missing,
as after a broken download, those that stand whole before the break are found
by their own headers. An archive that would unpack to far more than a log can
hold is refused before anything is unpacked. Knows zip, not what entries mean.
"""

from __future__ import annotations

import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import msgspec
import pyarrow as pa

from poc.ingest.sources import Source

MAGIC = b"PK\x03\x04"
ENTRY_BYTES = 512 << 20
"""Most that one entry may hold unpacked: it is parsed as a whole."""
ENTRIES = 1_000_000
FREE_BYTES = 1 << 30
RATIO = 300
"""An archive that unpacks to more than `FREE_BYTES` may be so many times larger than its file; logs reach about 50."""

_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_HEADER = 30
_ENCRYPTED, _SIZES_FOLLOW = 1, 8


class Unreadable(Exception):
    """Why an archive or one of its entries cannot be read, in words for a reject."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One entry as the archive lists it. `size` is unpacked."""

    name: str
    offset: int
    packed: int
    size: int
    method: int
    flags: int
    crc: int


class Archive:
    """An open archive. `whole` is False where its list of entries was missing."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        try:
            with zipfile.ZipFile(file) as listed:
                found = [
                    Entry(
                        i.filename, i.header_offset, i.compress_size, i.file_size, i.compress_type, i.flag_bits, i.CRC
                    )
                    for i in listed.infolist()
                ]
            self.whole = True
        except (zipfile.BadZipFile, NotImplementedError, ValueError):
            found, self.whole = list(_scan(file, size)), False
        # Of entries with one name, as a log that was added to has them, the last counts.
        self.entries = {entry.name: entry for entry in found}
        total = sum(entry.size for entry in found)
        if len(found) > ENTRIES:
            raise Unreadable(f"the archive lists {len(found)} entries, which no log has; it is not unpacked")
        if total > FREE_BYTES and total > RATIO * size:
            raise Unreadable(
                f"the archive would unpack to {total / 1e9:.1f} GB, {total // max(size, 1)} times its size, which no"
                " log does; it is not unpacked"
            )

    def read(self, name: str) -> bytes:
        """The content of an entry. Raises `Unreadable`."""
        entry = self.entries[name]
        if entry.size > ENTRY_BYTES:
            raise Unreadable(
                f"the entry holds {entry.size / 1e6:.0f} MB; more than {ENTRY_BYTES >> 20} MB are not read at once"
            )
        if entry.flags & _ENCRYPTED:
            raise Unreadable("the entry is encrypted; unpack the archive with its password")
        self._file.seek(entry.offset)
        header = self._file.read(_HEADER)
        if len(header) < _HEADER or header[:4] != MAGIC:
            raise Unreadable("the archive is damaged: no entry where its list says")
        self._file.seek(entry.offset + _data_offset(header))
        content = _unpack(self._file.read(entry.packed), entry)
        if zlib.crc32(content) != entry.crc:
            raise Unreadable("the entry is damaged: its checksum does not fit")
        return content


@contextmanager
def opened(source: Source) -> Iterator[Archive]:
    """The archive that a file is. Raises `Unreadable`."""
    with source.open() as file:
        yield Archive(file, source.size)


def names_in(sample: bytes) -> list[str]:
    """The names of the entries that begin in the first part of a file; those of archives in it do not count."""
    found = [entry.name for entry in _scan(io.BytesIO(sample), sys.maxsize)]
    # The first may not say how long it is; its name still counts.
    return found or ([_name(sample, 0)] if sample.startswith(MAGIC) else [])


def _entry(info: zipfile.ZipInfo) -> Entry:
    return Entry(
        info.filename,
        info.header_offset,
        info.compress_size,
        info.file_size,
        info.compress_type,
        info.flag_bits,
        info.CRC,
    )


def _name(data: bytes, position: int) -> str:
    length = int.from_bytes(data[position + 26 : position + 28], "little")
    return data[position + _HEADER : position + _HEADER + length].decode("utf-8", "replace")


def _data_offset(header: bytes) -> int:
    return _HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


def _scan(file: BinaryIO, size: int) -> Iterator[Entry]:
    """Entries by their own headers, up to the first that is cut or does not say how long it is."""
    position = 0
    while True:
        file.seek(position)
        header = file.read(_HEADER)
        if len(header) < _HEADER or header[:4] != MAGIC:
            return
        flags, method = int.from_bytes(header[6:8], "little"), int.from_bytes(header[8:10], "little")
        crc, packed, unpacked = (int.from_bytes(header[at : at + 4], "little") for at in (14, 18, 22))
        name = _name(header + file.read(int.from_bytes(header[26:28], "little")), 0)
        end = position + _data_offset(header) + packed
        if flags & _SIZES_FOLLOW or packed == 0xFFFFFFFF or end > size:
            return
        yield Entry(name, position, packed, unpacked, method, flags, crc)
        position = end


def _unpack(data: bytes, entry: Entry) -> bytes:
    """The content, no longer than the entry says."""
    try:
        if entry.method == _STORED:
            content = data
        elif entry.method == _DEFLATED:
            content = zlib.decompressobj(-15).decompress(data, entry.size + 1)
        elif entry.method == _ZSTD:
            with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
                content = stream.read(entry.size + 1)
        else:
            raise Unreadable(f"the entry is packed with zip method {entry.method}, which cannot be read here")
    except (zlib.error, OSError, pa.ArrowException) as error:
        raise Unreadable(f"the entry is damaged: {error}") from error
    if len(content) != entry.size:
        raise Unreadable(f"the entry is damaged: it should hold {entry.size} bytes")
    return content
