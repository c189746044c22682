"""What paths stand for: files, folders, patterns (``logs/**/*.jsonl``), and ``-`` for standard input.

A folder stands for every file in it that is not hidden, in a fixed order, and
a pattern for every file and folder that fits it. What is no ordinary file (a
pipe, a link that leads nowhere) is said, not passed over. Opens nothing but
pipes.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
import sys
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from poc.errors import InputError, did_you_mean
from poc.ingest.sources import STDIN, Source, absolute, unreadable
from poc.ingest.spool import Packed, Spool, Stream

Paths = Iterable[str | os.PathLike[str]] | str | os.PathLike[str]
_PATTERN = re.compile(r"[*?\[]")
_OTHERS = {
    stat.S_ISFIFO: "a named pipe, not a file",
    stat.S_ISSOCK: "a socket",
    stat.S_ISBLK: "a device",
    stat.S_ISCHR: "a device",
}


def find(paths: Paths, spool: Spool) -> list[Source]:
    """The files that `paths` stand for, each once.

    Raises `InputError` for a path that is not there, a pattern that nothing
    fits, a folder without files, and a file that was named itself and cannot
    be read, is empty or no log at all.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    found: dict[Path, Source] = {}
    for given in paths:
        for source in _given(str(given), spool):
            if source.asked_for and not source.packed and (problem := source.problem()):
                raise problem
            source.release()
            found.setdefault(absolute(source.path), source)
    if not found:
        raise InputError("No file was given.", todo="Give one or more log files or folders.")
    return list(found.values())


def _given(given: str, spool: Spool) -> Iterator[Source]:
    path = Path(given).expanduser()
    if given == "-":
        yield _piped_in(spool)
    elif _PATTERN.search(str(path)) and not os.path.lexists(path):
        yield from _fitting(path)
    elif os.path.isdir(path):
        yield from _folder(path)
    elif _is_pipe(path):
        yield _pipe(path, spool)
    elif fault := _no_file(path):
        raise fault
    else:
        yield Source(path)


def _folder(folder: Path) -> Iterator[Source]:
    empty = True
    for source in _files(folder):
        empty = False
        yield source
    if empty:
        raise InputError("The folder holds no files.", where=str(folder), todo="Give a folder with logs, or a file.")


def _files(folder: Path) -> Iterator[Source]:
    """Files below a folder in a fixed order; hidden ones and links to folders are left out."""
    closed: list[OSError] = []
    for where, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not beside_database(name, names):
                file = Path(where, name)
                yield Source(file, asked_for=False, fault=_no_file(file))
    for error in closed:
        yield Source(Path(error.filename), asked_for=False, fault=unreadable(str(error.filename), error))


def beside_database(name: str, names: Container[str]) -> str | None:
    """The database among `names` that a file belongs to, as its write-ahead log does: it is no source of its own."""
    for end in ("-wal", "-shm", "-journal"):
        if name.endswith(end) and name.removesuffix(end) in names:
            return name.removesuffix(end)
    return None


def _fitting(pattern: Path) -> Iterator[Source]:
    start = Path(pattern.anchor)
    found: list[Source] = []
    for path in dict.fromkeys(_matches(start, pattern.relative_to(start).parts)):
        if path.is_dir():
            found += _files(path)
        else:
            found.append(Source(path, asked_for=False, fault=_no_file(path)))
    if not found:
        raise InputError(
            "No file fits this pattern.",
            where=str(pattern),
            todo="Check it: * stands for part of a name, ** for folders in folders; in a shell, put it in quotes.",
        )
    found[0].asked_for = len(found) == 1
    yield from found


def _matches(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Paths that fit a pattern. Links to folders are followed where they are named, not below ``**``: no loops."""
    if not parts or parts == ("**",):
        yield folder
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        yield from _matches(folder, rest)
        for path in _entries(folder):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                yield from _matches(path, parts)
    elif not _PATTERN.search(first):
        if os.path.lexists(folder / first):
            yield from _matches(folder / first, rest)
    else:
        for path in _entries(folder):
            hidden = path.name.startswith(".") and not first.startswith(".")
            if fnmatch.fnmatchcase(path.name, first) and not hidden and (not rest or path.is_dir()):
                yield from _matches(path, rest)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []  # no folder, or a closed one


def _piped_in(spool: Spool) -> Source:
    stdin = None if sys.stdin is None else sys.stdin.buffer
    if stdin is None or stdin.isatty():
        raise InputError(
            "Nothing is piped in.", where=str(STDIN), todo="Pipe a log into it, or give the path of a file."
        )
    return _laid_down(stdin, STDIN, spool)


def _pipe(path: Path, spool: Spool) -> Source:
    """What comes out of a named pipe, as shells make one of ``<(command)``; nobody is waited for to open it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise unreadable(str(path), error) from error
    with open(descriptor, "rb", buffering=0) as pipe:
        os.set_blocking(descriptor, True)  # from here on a reader waits for the writer, if there is one
        return _laid_down(pipe, path, spool)


def _laid_down(stream: Stream, origin: Path, spool: Spool) -> Source:
    target = spool.path()
    error = spool.copy(stream, target, Packed(str(origin), None))
    if isinstance(error, OSError):
        raise unreadable(str(origin), error)
    if error is not None:
        raise error
    return Source(target, origin=origin)


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _no_file(path: Path) -> InputError | None:
    """Why a path leads to no file; None where it does."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            return InputError("This link leads nowhere.", where=str(path), todo="Give the file itself.")
        what = f"There is no such file or folder.{_neighbours(path)}"
        return InputError(what, where=str(path), todo="Check the path and try again.")
    except ValueError:
        return InputError("This can be no path.", where=repr(str(path)), todo="Check the path and try again.")
    except OSError as error:
        if error.errno == errno.ELOOP:
            return InputError("This link leads back to itself.", where=str(path), todo="Give the file itself.")
        return unreadable(str(path), error)
    if stat.S_ISREG(mode):
        return None
    kind = next((name for test, name in _OTHERS.items() if test(mode)), "neither a file nor a folder")
    return InputError(f"This is {kind}.", where=str(path), todo="Give a file or a folder.")


def _neighbours(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    except OSError:
        return ""
    hint = did_you_mean(path.name, names)
    return hint if hint.startswith(" Did you mean") else ""
