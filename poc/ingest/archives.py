"""Archives opened: each file in one becomes a source of its own, called ``archive.zip!member``.

Kinds are told by content: gzip, bzip2, xz and zstd streams, zip, tar (packed
or not), and UTF-16 text, which is re-encoded the same way. An archive in an
archive is opened once more, no deeper. What is inside is written to numbered
files, never to a path that an archive names. Hidden files and links are left
out, as they are in folders. Knows no format.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import pyarrow as pa

from poc.errors import InputError, PocError
from poc.ingest.paths import beside_database
from poc.ingest.sources import Source, unreadable
from poc.ingest.spool import Packed, Spool, Stream
from poc.trajectory import Reject

DEPTH = 2
"""How many archives may stand one in the other."""
_TAR_HEAD = 512
_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zstd")
_UNPACK = "Unpack it and give the files in it."


def expand(
    source: Source, spool: Spool, whole: Callable[[Source], bool], packed: Packed | None = None, depth: int = 0
) -> Iterator[Source]:
    """The sources that an archive holds; the source itself if it is none.

    whole: whether a reader takes an archive as it is. Raises `InputError` when
    a limit is passed and for an archive that cannot be opened at all.
    """
    if source.fault is not None or not source.packed or whole(source):
        yield source
        return
    if source.packed == "UTF-16 text":
        yield _recoded(source, spool, packed)
        return
    if depth == DEPTH:
        source.fault = InputError("This archive stands too deep in other archives.", where=source.label, todo=_UNPACK)
        yield source
        return
    packed = packed or Packed(source.label, source.size)
    for member in _members(source, spool, packed):
        yield from expand(member, spool, whole, packed, depth + 1)
        member.release()


def _members(source: Source, spool: Spool, packed: Packed) -> Iterator[Source]:
    if source.packed == "a zip archive":
        yield from _zip(source, spool, packed)
        return
    with ExitStack() as opened:
        try:
            file = opened.enter_context(source.path.open("rb"))
        except OSError as error:
            raise unreadable(source.label, error) from error
        if packed.label == source.label:
            packed.used = file.tell
            opened.callback(setattr, packed, "used", None)
        stream = _Begun(_unpacker(source, file))
        if stream.begins_with_tar:
            yield from _tar(source, stream, spool, packed)
        else:
            name = source.name
            for suffix in _SUFFIXES:
                name = name.removesuffix(suffix)
            yield _copied(source, stream, spool, packed, name=name, alone=True)


def _unpacker(source: Source, file: IO[bytes]) -> Stream:
    match source.packed:
        case "a gzip archive":
            return cast(Stream, gzip.GzipFile(fileobj=file))
        case "a bzip2 archive":
            return cast(Stream, bz2.BZ2File(file))
        case "an xz archive":
            return cast(Stream, lzma.LZMAFile(file))
        case "a zstd archive":
            return cast(Stream, pa.CompressedInputStream(cast(Any, file), "zstd"))
    return file


class _Begun:
    """A stream whose first bytes have been looked at. What went wrong meanwhile is raised when they are past."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._head = b""
        self._error: Exception | None = None
        try:
            while len(self._head) < _TAR_HEAD and (chunk := stream.read(_TAR_HEAD - len(self._head))):
                self._head += chunk
        except Exception as error:  # whatever a damaged archive makes its library say
            self._error = error

    @property
    def begins_with_tar(self) -> bool:
        return self._head[257:262] == b"ustar"

    def read(self, size: int, /) -> bytes:
        head, self._head = self._head[:size], self._head[size:]
        if not head and self._error is not None:
            raise self._error
        return head or self._stream.read(size)


def _tar(source: Source, stream: _Begun, spool: Spool, packed: Packed) -> Iterator[Source]:
    last: Source | None = None
    try:
        with tarfile.open(fileobj=cast(Any, stream), mode="r|") as archive:
            for entry in archive:
                content = archive.extractfile(entry) if entry.isreg() and _visible(entry.name) else None
                if content is not None:
                    spool.member(packed)
                    if last is not None:
                        yield last
                    last = _copied(source, content, spool, packed, entry.name)
    except PocError:
        raise
    except Exception as error:  # whatever a damaged archive makes its library say
        if last is None:
            raise _damaged(source, error) from error
        last.notes.append(_ends_early(error))
    if last is None:
        raise _without_files(source)
    yield last


def _zip(source: Source, spool: Spool, packed: Packed) -> Iterator[Source]:
    try:
        archive = zipfile.ZipFile(source.path)
    except Exception as error:  # whatever a damaged archive makes its library say
        raise _damaged(source, error) from error
    with archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir() and _visible(entry.filename)]
        names = {entry.filename for entry in entries}
        # What stands beside a database belongs to it, and is laid down beside it.
        beside = {entry.filename: base for entry in entries if (base := beside_database(entry.filename, names))}
        targets = {base: spool.path() for base in beside.values()}
        used = 0
        if packed.label == source.label:
            packed.used = lambda: used
        for entry in sorted(entries, key=lambda entry: entry.filename not in beside):
            spool.member(packed)
            used += entry.compress_size
            alone = len(entries) == 1
            try:
                content = archive.open(entry)
            except Exception as error:  # encrypted, packed in a way that is not known, damaged
                what = (
                    "The file in the archive is encrypted" if entry.flag_bits & 1 else f"It cannot be opened: {error}"
                )
                found = _inside(source, source.path, entry.filename, alone=alone)
                found.fault = InputError(f"{what}.", where=found.label, todo=_UNPACK)
                yield found
                continue
            with content:
                if base := beside.get(entry.filename):
                    spool.copy(content, Path(f"{targets[base]}{entry.filename.removeprefix(base)}"), packed)
                    continue
                target = targets.get(entry.filename)
                found = _copied(source, content, spool, packed, entry.filename, target=target, alone=alone)
            yield found
    if not entries:
        raise _without_files(source)


def _copied(
    source: Source,
    stream: Stream,
    spool: Spool,
    packed: Packed,
    member: str | None = None,
    *,
    name: str | None = None,
    target: Path | None = None,
    alone: bool = False,
) -> Source:
    target = target or spool.path()
    error = spool.copy(stream, target, packed)
    found = _inside(source, target, member, name=name, alone=alone)
    if error is not None and not found.size:
        found.fault = _damaged(source, error, found.label)
    elif error is not None:
        found.notes.append(_ends_early(error))
    return found


def _inside(source: Source, path: Path, member: str | None, *, name: str | None = None, alone: bool) -> Source:
    """What an archive holds at `member`; `alone`: it holds nothing else, so it was asked for as the archive was."""
    inner = "!".join(part for part in (source.member, member) if part) or None
    asked_for = source.asked_for and alone
    return Source(path, origin=source.origin, member=inner, name=name, asked_for=asked_for, mapping=source.mapping)


def _recoded(source: Source, spool: Spool, packed: Packed | None) -> Source:
    """UTF-16 text as UTF-8. What is no text in it stays no text, so that whoever reads it says so."""
    with source.path.open("rb") as file:
        packed = packed or Packed(source.label, None)
        found = _copied(source, _Utf8(file), spool, packed, name=source.name, alone=True)
    return found


class _Utf8:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")("surrogatepass")
        self._ended = False

    def read(self, size: int, /) -> bytes:
        while not self._ended:
            chunk = self._file.read(size)
            self._ended = not chunk
            try:
                text = self._decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError:
                return b"\xff"  # half a sign at the end: as wrong in UTF-8 as it was
            if text:
                return text.encode("utf-8", "surrogatepass")
        return b""


def _visible(name: str) -> bool:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return not any(part.startswith(".") and part not in (".", "..") for part in parts) and "__MACOSX" not in parts


def _damaged(source: Source, error: Exception, label: str | None = None) -> InputError:
    return InputError(
        f"This is {source.packed}, and it is damaged: {_said(error)}.",
        where=label or source.label,
        todo="Fetch it again, or give what it holds.",
    )


def _ends_early(error: Exception) -> Reject:
    reason = f"the archive is damaged from here on: {_said(error)}; what came before was read"
    return Reject(place="end of what could be unpacked", reason=reason)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__


def _without_files(source: Source) -> InputError:
    return InputError("The archive holds no files.", where=source.label, todo="Check the export that made it.")
