"""Which reader a file belongs to, told from its content. Knows the readers' names, not their formats."""

from __future__ import annotations

import msgspec

from poc.errors import InputError, did_you_mean
from poc.ingest.readers import READERS, Reader
from poc.ingest.sources import Source

THRESHOLD = 0.45
"""Below this a reader's guess is not trusted."""


class Detected(msgspec.Struct, frozen=True):
    """The reader for a file and how sure it is (0..1; 1 when the format was given)."""

    format: str
    confidence: float

    @property
    def reader(self) -> Reader:
        """The module that reads it."""
        return READERS[self.format]


def detect(source: Source, *, format: str | None = None) -> Detected:  # noqa: A002  # the word that people use
    """The reader for `source`; `format` overrides the content. Raises `InputError` when none fits."""
    magic = source.magic
    if format is not None:
        if format not in READERS:
            raise InputError(
                f"There is no format '{format}'.{did_you_mean(format, READERS)}",
                todo=f"Use one of: {', '.join(READERS)}; or leave it out to have it detected.",
            )
        if magic is not None and magic not in getattr(READERS[format], "MAGIC", ()):
            raise source.text_problem() or _unknown(source)
        return Detected(format, 1.0)
    guesses = {
        name: reader.sniff(source.sample, source.name)
        for name, reader in READERS.items()
        # A binary file is shown only to the readers that say they take its kind.
        if magic is None or magic in getattr(reader, "MAGIC", ())
    }
    best = max(guesses, key=lambda name: guesses[name], default="")
    if guesses.get(best, 0.0) < THRESHOLD:
        if magic is not None and (problem := source.text_problem()):
            raise problem
        raise _unknown(source)
    return Detected(best, guesses[best])


def takes_whole(source: Source, *, format: str | None = None) -> bool:  # noqa: A002  # the word that people use
    """Whether a reader takes an archive as it is, unopened: its own kind of file may be a zip (an Inspect log is)."""
    magic = source.magic
    readers = READERS.values() if format is None else [READERS[format]] if format in READERS else []
    return any(
        magic in getattr(reader, "MAGIC", ())
        and (format is not None or reader.sniff(source.sample, source.name) >= THRESHOLD)
        for reader in readers
    )


def _unknown(source: Source) -> InputError:
    return InputError(
        "The file's format is not known here.",
        where=source.label,
        todo=f"Known formats: {', '.join(READERS)}. For a table whose columns have other names, give a mapping.",
    )
