"""The report's own sentences, in the reader's language. Knows no result."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

from poc.language import Language, Sentence, Words
from poc.report.numbers import DASH, Cell, Number, Phrase
from poc.verdict import speak

WORDS = Words.load(Path(__file__).with_name("words.yaml"))


def say(key: str, language: Language = "en", **values: Any) -> str:
    """One sentence of the report's catalogue."""
    return WORDS.say(key, language, **values)


def phrase(key: str, language: Language = "en", **values: Cell) -> Phrase:
    """One sentence whose places hold numbers that keep their origin."""
    if key not in WORDS.table:
        return Phrase((WORDS.say(key, language),))  # raises, with what was meant
    parts: list[Cell] = []
    for text, name, _, _ in string.Formatter().parse(WORDS.table[key][language]):
        if text:
            parts.append(text)
        if name:
            parts.append(values[name])
    return Phrase(tuple(parts))


def spoken(sentence: Sentence, source: str, language: Language = "en") -> Number:
    """A sentence of a verdict, with the names of criteria and levels in the reader's language."""
    values = dict(sentence.values)
    for place, kind in (("criterion", "criterion"), ("level", "level")):
        if place in values:
            values[place] = named(kind, values[place], language)
    return Number(speak(Sentence(sentence.key, values), language), None, source)


def named(kind: str, name: str | None, language: Language = "en") -> str:
    """The reader's name of a stored word (``kind.name``), or the stored word itself when the catalogue lacks it."""
    if name is None:
        return DASH
    key = f"{kind}.{name}"
    return WORDS.say(key, language) if key in WORDS.table else name


def arm_name(arm: str, language: Language = "en") -> str:
    """An arm as people call it."""
    return named("arm", arm, language)
