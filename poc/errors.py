"""One root error for the whole package.

Every error says what happened, where, and what to do about it. Faces print
``str(error)``; they never print a traceback for a `PocError`. This module
knows nothing of the rest of the package.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell returns; schedulers read it."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    NO_GO = 3
    INCONCLUSIVE = 4
    SIMULATED = 5
    NOT_READY = 6


class PocError(Exception):
    """Something the reader can act on.

    what: one sentence, what happened.
    where: file, line, field or run id, if known.
    todo: what to do next, if known.
    """

    exit_code: ExitCode = ExitCode.BAD_INPUT

    def __init__(self, what: str, *, where: str | None = None, todo: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.todo = todo

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"Where: {self.where}")
        if self.todo:
            parts.append(f"What to do: {self.todo}")
        return "\n".join(parts)

    def as_dict(self) -> dict[str, str | int | None]:
        """The same as plain data, for ``--json``."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "todo": self.todo,
            "exit_code": int(self.exit_code),
        }


class InputError(PocError):
    """A file, an option or a record that cannot be used as given."""


class WorkspaceError(PocError):
    """The workspace file cannot be opened, read or written."""


class WorkspaceBusy(WorkspaceError):
    """Another process holds the workspace file."""


class NotReady(PocError):
    """The logs are not good enough for what was asked."""

    exit_code = ExitCode.NOT_READY


class ModelError(PocError):
    """The model's server refused, failed or could not be reached."""


class BudgetExceeded(PocError):
    """The next call could cost more than what is left of the budget."""


class MissingExtra(PocError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed.",
            todo=f"pip install 'progress-advantage-poc[{extra}]'",
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``' Did you mean "x"?'``, or what is known when nothing is near; '' for no options.

    >>> did_you_mean("titel", ["title", "weight"])
    ' Did you mean "title"?'
    """
    options = sorted({str(option) for option in known})
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    if near:
        return f' Did you mean "{near[0]}"?'
    if not options:
        return ""
    shown = ", ".join(options[:12]) + (", ..." if len(options) > 12 else "")
    return f" Known: {shown}."
