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
    if format is not None:
        if format not in READERS:
            raise InputError(
                f"There is no format '{format}'.{did_you_mean(format, READERS)}",
                todo=f"Use one of: {', '.join(READERS)}; or leave it out to have it detected.",
            )
        return Detected(format, 1.0)
    guesses = {name: reader.sniff(source.sample, source.name) for name, reader in READERS.items()}
    best = max(guesses, key=lambda name: guesses[name])
    if guesses[best] < THRESHOLD:
        raise InputError(
            "The file's format is not known here: it looks neither like chat messages nor like a table of tool calls.",
            where=str(source.path),
            todo=f"Known formats: {', '.join(READERS)}. For a table whose columns have other names, give a mapping.",
        )
    return Detected(best, guesses[best])
