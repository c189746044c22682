"""How a number is written for people, and where it came from.

A `Number` keeps the raw value, the text and the name of the query that it
came from, so that a page can show the text and a reader (or a test) can trace
the value. Unknown values are a dash, never 0. Does not know what any number
means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

import msgspec
from markupsafe import Markup, escape

from poc.language import Language

DASH = "—"
MINUS = "\u2212"


class Number(msgspec.Struct, frozen=True):
    """One shown value. `source` names a query in the report's last section; `value` is what that query holds."""

    text: str
    value: float | int | str | None
    source: str

    def __str__(self) -> str:
        return self.text

    def __html__(self) -> str:
        """The text with its origin, escaped: Jinja2 calls this instead of escaping again."""
        raw = "" if self.value is None else self.value
        return Markup('<span class="n" data-source="{}" data-value="{}">{}</span>').format(self.source, raw, self.text)


class Phrase(msgspec.Struct, frozen=True):
    """Words and numbers in one line."""

    parts: tuple[Cell, ...]

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts)

    def __html__(self) -> str:
        """The parts, each escaped in its own way."""
        return Markup("").join(escape(part) for part in self.parts)


Cell: TypeAlias = "str | Number | Phrase"
"""Anything that can stand in a place for text."""


def number(value: Any, write: Callable[[Any], str], source: str) -> Number:
    """A value written by `write`, with its origin; NaN counts as unknown."""
    value = value if known(value) else None
    return Number(write(value), value, source)


def interval(
    low: float | None, high: float | None, write: Callable[[Any], str], source: str, language: Language
) -> Cell:
    """An interval, both ends written by `write`; a dash when either end is unknown."""
    if not (known(low) and known(high)):
        return DASH
    between = "〜" if language == "ja" else " to "
    return Phrase((number(low, write, source), between, number(high, write, source)))


def known(value: Any) -> bool:
    """Whether there is a value at all (not None, NaN or NaT).

    >>> known(0), known(None), known(float("nan"))
    (True, False, False)
    """
    return not (value is None or value != value)


def decimal(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """A decimal with thousands separators and a true minus sign.

    >>> decimal(1234.5, 1), decimal(-0.04, 1), decimal(None), decimal(2, 0, sign=True)
    ('1,234.5', '0.0', '—', '+2')
    """
    if value is None or not known(value) or not math.isfinite(value):
        return DASH
    text = f"{abs(value):,.{digits}f}"
    if not any(figure in "123456789" for figure in text):
        return text
    return (MINUS if value < 0 else "+" if sign else "") + text


def whole(value: float | int | None) -> str:
    """A count.

    >>> whole(12345), whole(None)
    ('12,345', '—')
    """
    return decimal(value, 0)


def percent(share: float | None, digits: int = 0) -> str:
    """A share of 0..1 in per cent.

    >>> percent(0.425), percent(0.005, 1)
    ('42%', '0.5%')
    """
    text = decimal(None if share is None else share * 100, digits)
    return text if text == DASH else text + "%"


def points(share: float | None, digits: int = 1) -> str:
    """A difference of shares in percentage points, signed, without the unit.

    >>> points(-0.1234)
    '−12.3'
    """
    return DASH if share is None or not known(share) else decimal(share * 100, digits, sign=True)


def ratio(value: float | None) -> str:
    """A ratio.

    >>> ratio(1.0849)
    '×1.08'
    """
    return DASH if value is None or not known(value) else "×" + decimal(value, 2)


def change(value: float | None) -> str:
    """A ratio as the change in per cent.

    >>> change(1.084), change(0.9)
    ('+8%', '−10%')
    """
    return DASH if value is None or not known(value) else decimal((value - 1) * 100, 0, sign=True) + "%"


def seconds(value: float | None) -> str:
    """A duration; three figures are enough to compare.

    >>> seconds(0.0123), seconds(2.345), seconds(312.4)
    ('12 ms', '2.35 s', '312 s')
    """
    if value is None or not known(value):
        return DASH
    if 0 < abs(value) < 1:
        return decimal(value * 1000, 0) + " ms"
    return decimal(value, 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0) + " s"


def usd(value: float | None) -> str:
    """An amount in US dollars; small amounts keep two significant figures.

    >>> usd(12.3), usd(0.00123), usd(-3), usd(0.0)
    ('$12.30', '$0.0012', '−$3.00', '$0.00')
    """
    if value is None or not known(value):
        return DASH
    size = abs(value)
    digits = 2 if size >= 1 or size == 0 else min(8, 1 - math.floor(math.log10(size)))
    text = f"${size:,.{max(2, digits)}f}"
    return (MINUS if value < 0 else "") + text


def probability(value: float | None) -> str:
    """A p-value.

    >>> probability(0.0412), probability(0.00001)
    ('0.041', '<0.001')
    """
    if value is None or not known(value):
        return DASH
    return "<0.001" if value < 0.001 else decimal(value, 3)


def moment(value: datetime | None, language: Language = "en") -> str:
    """A time in UTC to the minute."""
    if value is None or not known(value):
        return DASH
    return value.strftime("%Y年%m月%d日 %H:%M UTC" if language == "ja" else "%Y-%m-%d %H:%M UTC")
