"""The parts of a page: sections, tables, plots, lists. Knows no result and no wording.

Cells and sentences are plain text, `Number` or `Phrase`; the template escapes them all.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

import msgspec
import plotly.graph_objects as go

from poc.report.numbers import Cell

Tone = Literal["good", "bad", "open", "plain"]


class Badge(msgspec.Struct, frozen=True):
    """A short status with a tone; the text alone must be enough to understand it."""

    text: str
    tone: Tone


class Table(msgspec.Struct, tag=True):
    """Rows under one head; the first cell of a row names it. `numeric` columns stand right-aligned."""

    caption: str
    head: list[str]
    rows: list[list[Cell | Badge]]
    numeric: frozenset[int] = frozenset()
    note: Cell | None = None

    @property
    def wordy(self) -> bool:
        """Whether a cell holds a sentence: such a table is stacked on a narrow screen."""
        return any(_width(str(cell)) > 50 for row in self.rows for cell in row if not isinstance(cell, Badge))


class Plot(msgspec.Struct, tag=True):
    """A figure with what it shows in words, and the table of the same numbers."""

    id: str
    title: str
    figure: go.Figure
    alt: str
    table: Table
    note: Cell | None = None


class Facts(msgspec.Struct, tag=True):
    """Names with values."""

    items: list[tuple[str, Cell | Badge]]


class Text(msgspec.Struct, tag=True):
    """One paragraph; a tone frames it as a notice."""

    text: Cell
    tone: Tone = "plain"
    lead: str | None = None


class Bullets(msgspec.Struct, tag=True):
    """Sentences as a list."""

    items: list[Cell]


class Queries(msgspec.Struct, tag=True):
    """The queries behind the numbers: name, what it is, SQL."""

    items: list[tuple[str, str, str]]


class Heading(msgspec.Struct, tag=True):
    """A heading inside a section."""

    text: str


Block = Table | Plot | Facts | Text | Bullets | Queries | Heading


class Section(msgspec.Struct):
    """One part of the page."""

    id: str
    title: str
    blocks: list[Block]


class Card(msgspec.Struct):
    """One number of the summary: what, how much, interval, limit, whether it is met."""

    label: str
    value: Cell
    unit: str
    lines: list[Cell]
    badge: Badge | None


class Panel(msgspec.Struct):
    """A short list of sentences under a title, beside others."""

    title: str
    items: list[Cell]


class Summary(msgspec.Struct):
    """The two minutes of a stakeholder."""

    bands: list[Text]
    eyebrow: str
    verdict: Badge
    sentence: Cell
    reasons: list[Cell]
    cards: list[Card]
    panels: list[Panel]


class Document(msgspec.Struct):
    """The whole page."""

    title: str
    language: str
    summary: Summary
    sections: list[Section]
    footer: list[str]

    @property
    def plots(self) -> list[Plot]:
        """All figures, in order."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, Plot)]


def _width(text: str) -> int:
    """Columns that a text takes; East Asian letters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
