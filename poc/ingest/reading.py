"""A file given to its reader, and what the reader gives, guarded: what is wrong with one file costs that file only.

Knows readers by name, no format and no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from poc.errors import InputError, PocError
from poc.ingest.archives import expand
from poc.ingest.detect import Detected, detect
from poc.ingest.readers import READERS
from poc.ingest.sources import Source, Unreadable
from poc.ingest.spool import Spool
from poc.trajectory import Item, Reject


def opened(source: Source, spool: Spool, whole: Callable[[Source], bool]) -> Iterator[Source]:
    """What an archive holds; of one that was only found in a folder also why it was not opened, or not wholly."""
    try:
        yield from expand(source, spool, whole)
    except InputError as error:
        if source.asked_for:
            raise
        source.fault = error
        yield source


def reader_for(source: Source, format_name: str | None) -> Detected | InputError:
    """The reader, or for a file that was only found in a folder why there is none."""
    try:
        if problem := source.problem():
            raise problem
        return detect(source, format=format_name)
    except InputError as error:
        if source.asked_for or (format_name is not None and format_name not in READERS):
            raise
        return error


def guarded(source: Source, items: Iterator[Item]) -> Iterator[Item]:
    """What a reader gives, and a reject where it cannot go on: other files are then read all the same."""
    begun = False
    while True:
        try:
            item = next(items, None)
        except InputError as error:
            if source.asked_for and not begun and not isinstance(error, Unreadable):
                raise  # a wrong mapping, a database that cannot be opened: for the person to mend
            reason = error.what
        except (PocError, MemoryError):
            raise
        except Exception as error:
            reason = f"the reader failed: {type(error).__name__}: {error} (a fault of this program; please report it)"
        else:
            if item is None:
                break
            begun = True
            yield item
            continue
        file = source.parts[source.reading]
        file.broken = True
        reason = f"{reason.rstrip('.')}; from here on nothing was read"
        yield Reject(place=f"byte {file.consumed}", reason=reason, file=source.reading)
        break
    for place, file in enumerate(source.parts):
        if lost := file.shrunk():
            file.broken = True
            reason = f"the file became {lost} bytes shorter while it was read"
            yield Reject(place="end of the file", reason=reason, file=place)
        for note in file.notes if not file.known else ():
            note.file = place
            yield note
