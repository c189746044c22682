"""What leaves is redacted, what comes back is restored: one mask for one trial.

A thin layer over `poc.redaction`, so that a plan with ``redact: false`` runs
through the same code. Knows no request and no environment.
"""

from __future__ import annotations

from typing import TypeVar

from poc.redaction import Redactor

T = TypeVar("T")


class Mask:
    """Redacts on the way out and restores on the way in; does nothing when switched off."""

    def __init__(self, on: bool) -> None:
        self._redactor = Redactor() if on else None

    def text(self, text: str) -> str:
        """The text as the model may see it."""
        return text if self._redactor is None else self._redactor.redact(text)

    def data(self, value: T) -> T:
        """The same for every text inside plain JSON data."""
        return value if self._redactor is None else self._redactor.redact(value)

    def restore(self, value: T) -> T:
        """Back to what the environment knows."""
        return value if self._redactor is None else self._redactor.restore(value)

    @property
    def counts(self) -> dict[str, int]:
        """How many different values were taken out, by kind; empty when switched off."""
        return {} if self._redactor is None else self._redactor.counts
