"""One large file read by several processes, each its own stretch of lines.

Only for files in which every line is a run of its own; its reader says so
(``apart(source)``). Each process stages its rows in a folder of its own (run
as ``python -m poc.ingest.apart``, told what to do on standard input; it says
on standard output how far it is); run ids are given afterwards, by the process
that imports, so that the outcome is the same as if the file had been read in
one go. Where that cannot be done the file is read in one go. Knows no format.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from poc.errors import PocError
from poc.ingest.gather import Gathered, gather
from poc.ingest.readers import READERS, Reader
from poc.ingest.sources import NotApart, Source
from poc.ingest.staging import Staging

SMALLEST = 24 << 20
"""Bytes below which a stretch is not worth a process of its own."""
_MOST = 8
_TICK = 4 << 20
_PATIENCE_S = 0.2
_BLOCK = 1 << 20
_CODE = "import runpy, sys; sys.path[:0] = sys.argv[1:]; runpy.run_module('poc.ingest.apart', run_name='__main__')"


class Stretch(msgspec.Struct):
    """What one process is to read: bytes `start` to `stop` of a file, the first line of which is `first_line`."""

    path: str
    start: int
    stop: int
    first_line: int
    format: str
    folder: str


class Apart(NamedTuple):
    """What a file held, and the folders of staged rows with how many runs lie in each, in the order of the file.

    The staged rows have no source id yet.
    """

    held: Gathered
    parts: list[tuple[Path, int]]


class Part(Source):
    """A stretch of a file, from the beginning of a line to the end of one."""

    is_part = True

    def __init__(self, stretch: Stretch) -> None:
        super().__init__(Path(stretch.path))
        self.first_line = stretch.first_line
        self._start, self._stop = stretch.start, stretch.stop

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The stretch alone."""
        with super().open() as file:
            yield io.BufferedReader(_Slice(file, max(self._start, file.tell()), self._stop), _BLOCK)


class _Slice(io.RawIOBase):
    """Some bytes of a file, as a file."""

    def __init__(self, file: BinaryIO, start: int, stop: int) -> None:
        self._file = file
        self._left = stop - start
        file.seek(start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(min(len(buffer), self._left))
        buffer[: len(piece)] = piece
        self._left -= len(piece)
        return len(piece)


def read_apart(source: Source, reader: Reader, folder: Path, *, report: Callable[[int], None]) -> Apart | None:
    """The file read by several processes.

    None where it is small, its lines do not stand alone, there is one core
    only, or something went wrong: then it has to be read in one go.
    report: told the bytes read so far; what it raises stops all processes.
    """
    count = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MOST)
    count = min(count, source.size // SMALLEST)
    stands_apart = getattr(reader, "apart", None)
    if count < 2 or stands_apart is None or not stands_apart(source):
        return None
    try:
        stretches = _stretches(source, reader.NAME, folder, count)
    except OSError:
        return None
    found = _run(stretches, report)
    if found is None or source.notes or source.shrunk():
        return None
    whole = Gathered(reasons={}, keys=[], records=[], messages=[], steps=[], tools={})
    for part in found:
        whole.add(part)
    parts = [(Path(stretch.folder), len(part.keys)) for stretch, part in zip(stretches, found, strict=True)]
    return Apart(whole, parts)


def _stretches(source: Source, format_name: str, folder: Path, count: int) -> list[Stretch]:
    """The file cut at line ends into stretches of about equal size."""
    stretches: list[Stretch] = []
    start, line = 0, 1
    with source.path.open("rb") as file:
        for number in range(1, count + 1):
            aim = source.size * number // count
            lines = 0
            file.seek(start)
            position = start
            while position < aim and (block := file.read(min(_BLOCK, aim - position))):
                lines += block.count(b"\n")
                position += len(block)
            if number == count:
                position = source.size
            elif tail := file.readline():
                position += len(tail)
                lines += tail.endswith(b"\n")
            part = folder / f"{len(list(folder.iterdir()))}-part{number}"
            part.mkdir()
            stretches.append(Stretch(str(source.path), start, position, line, format_name, str(part)))
            start, line = position, line + lines
    return stretches


def _run(stretches: list[Stretch], report: Callable[[int], None]) -> list[Gathered] | None:
    """One process a stretch; None when one of them fails."""
    said: queue.SimpleQueue[tuple[int, int | Gathered | None]] = queue.SimpleQueue()
    processes: list[subprocess.Popen[bytes]] = []
    listeners: list[threading.Thread] = []
    try:
        for number, stretch in enumerate(stretches):
            process = _start(stretch)
            processes.append(process)
            listeners.append(threading.Thread(target=_listen, args=(process, number, said), daemon=True))
            listeners[-1].start()
        done = [0] * len(stretches)
        found: dict[int, Gathered] = {}
        while len(found) < len(stretches):
            with contextlib.suppress(queue.Empty):
                number, word = said.get(timeout=_PATIENCE_S)
                if word is None:
                    return None
                if isinstance(word, Gathered):
                    found[number] = word
                else:
                    done[number] = word
            report(sum(done))  # often, for it may stop the work
        return [found[number] for number in range(len(stretches))]
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for listener in listeners:
            listener.join()
        for process in processes:
            for pipe in (process.stdout, process.stdin):
                if pipe is not None:
                    pipe.close()


def _start(stretch: Stretch) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", _CODE, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it died at once; its silence says so
        process.stdin.write(msgspec.json.encode(stretch))
        process.stdin.close()
    return process


def _listen(
    process: subprocess.Popen[bytes], number: int, said: queue.SimpleQueue[tuple[int, int | Gathered | None]]
) -> None:
    """Pass on what a process says: how far it is, at the end what it found; None when it ends without."""
    assert process.stdout is not None
    for line in process.stdout:
        if line[:1].isdigit():
            said.put((number, int(line)))
        elif line == b"done\n":
            with contextlib.suppress(msgspec.DecodeError):
                said.put((number, msgspec.msgpack.decode(process.stdout.read(), type=Gathered)))
                return
    said.put((number, None))


def main() -> int:
    """Read one stretch; 0 when all of it is staged."""
    stretch = msgspec.json.decode(sys.stdin.buffer.read(), type=Stretch)
    gc.disable()  # nothing here makes cycles, and the process is short-lived
    part = Part(stretch)
    staged = Staging(Path(stretch.folder))
    told = 0

    def report() -> None:
        nonlocal told
        if part.consumed - told >= _TICK:
            told = part.consumed
            print(told, flush=True)

    try:
        found = gather(
            READERS[stretch.format].read(part),
            staged,
            source_ids=[""],
            format_name=stretch.format,
            where=[stretch.path],
            report=report,
        )
        staged.finish()
    except (NotApart, PocError, OSError):
        return 1  # reading it in one go will tell what is wrong
    print("done", flush=True)
    sys.stdout.buffer.write(msgspec.msgpack.encode(found))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
