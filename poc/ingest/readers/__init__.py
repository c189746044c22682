"""One module a format. A reader tells by content whether a file is its own, and turns it into runs.

Adding a format is adding a module here with ``NAME``, ``VERSION``, ``sniff``
and ``read``, and its tests; nothing else needs to know of it. A reader of
binary files also has ``MAGIC``, the first bytes that such files begin with
(``MAGIC = (b"PAR1",)``); `sniff` then sees those files too. A reader of runs
that may be split over files has ``keys(source)``, the worldwide ids of the
runs that a file holds parts of: files that share one are given to `read`
together (`Source.parts`). Other packages may
offer readers through the entry point group ``poc.readers``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any, Protocol, cast

from poc.errors import PocError
from poc.ingest.sources import Source, accept
from poc.trajectory import Item

GROUP = "poc.readers"


class Reader(Protocol):
    """What a reader's module offers."""

    NAME: str
    VERSION: int

    def sniff(self, sample: bytes, name: str) -> float:
        """How sure the reader is that the file is its own, 0..1, judged by its first bytes."""
        ...

    def read(self, source: Source) -> Iterator[Item]:
        """The runs and rejects of the file, in its order, and the reference calls of tasks of which it holds no run."""
        ...


def _found() -> dict[str, Reader]:
    """This folder's modules that are readers, then those that other packages offer."""
    modules: list[tuple[str, Any]] = [
        (entry.name, importlib.import_module(f"{__name__}.{entry.name}")) for entry in pkgutil.iter_modules(__path__)
    ]
    readers = {module.NAME: cast(Reader, module) for _, module in modules if hasattr(module, "sniff")}
    for entry in entry_points(group=GROUP):
        offered = entry.load()
        lacking = [part for part in ("NAME", "VERSION", "sniff", "read") if not hasattr(offered, part)]
        if lacking:
            raise PocError(
                f"The reader '{entry.name}' lacks: {', '.join(lacking)}.",
                where=f"entry point {GROUP}: {entry.value}",
                todo="Mend or uninstall the package that offers it.",
            )
        # One of our own formats is never replaced silently.
        readers.setdefault(offered.NAME, cast(Reader, offered))
    for reader in readers.values():
        accept(getattr(reader, "MAGIC", ()))
    return readers


READERS: dict[str, Reader] = _found()

__all__ = ["GROUP", "READERS", "Reader"]
