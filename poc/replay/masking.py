"""What leaves is redacted, what comes back is restored: one mask for one trial.

A thin layer over `poc.redaction`, so that a plan with ``redact: false`` runs
through the same code. Most texts hold nothing to redact, and the same tools,
instructions and tasks come again in every trial: what was found clean once is
remembered for the whole process. Knows no request and no environment.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from poc.redaction import Redactor

T = TypeVar("T")

_MOST_REMEMBERED = 20_000
_clean: set[str | bytes] = set()


class Mask:
    """Redacts on the way out and restores on the way in; does nothing when switched off."""

    def __init__(self, on: bool) -> None:
        self._redactor = Redactor() if on else None

    def text(self, text: str) -> str:
        """The text as the model may see it."""
        return text if self._redactor is None else self._redacted(self._redactor, text, text)

    def data(self, value: T) -> T:
        """The same for every text inside plain JSON data."""
        return value if self._redactor is None else self._redacted(self._redactor, value, msgspec.json.encode(value))

    def restore(self, value: T) -> T:
        """Back to what the environment knows."""
        return value if self._redactor is None else self._redactor.restore(value)

    @property
    def counts(self) -> dict[str, int]:
        """How many different values were taken out, by kind; empty when switched off."""
        return {} if self._redactor is None else self._redactor.counts

    @staticmethod
    def _redacted(redactor: Redactor, value: T, name: str | bytes) -> T:
        if name in _clean:
            return value
        out = redactor.redact(value)
        # A text that looks like a placeholder must be seen by every redactor, so it is never remembered.
        bracket = "<" in name if isinstance(name, str) else b"<" in name
        if out == value and not bracket:
            if len(_clean) >= _MOST_REMEMBERED:
                _clean.clear()
            _clean.add(name)
        return out
