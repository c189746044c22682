"""One module a format. A reader tells by content whether a file is its own, and turns it into runs.

Adding a format is adding a module with ``NAME``, ``VERSION``, ``sniff`` and
``read``, its tests, and a line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from poc.ingest.readers import chat, table
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run


class Reader(Protocol):
    """What a reader's module offers."""

    NAME: str
    VERSION: int

    def sniff(self, sample: bytes, name: str) -> float:
        """How sure the reader is that the file is its own, 0..1, judged by its first bytes."""
        ...

    def read(self, source: Source) -> Iterator[Run | Reject]:
        """The runs and rejects of the file, in its order."""
        ...


READERS: dict[str, Reader] = {reader.NAME: reader for reader in (chat, table)}  # type: ignore[misc]  # modules as objects

__all__ = ["READERS", "Reader"]
