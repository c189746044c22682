"""Words for people in English and Japanese: catalogues of sentences with places for values.

A room that speaks keeps a ``words.yaml`` beside its code::

    verdict.go:
      en: "GO: success rises by {gain}."
      ja: "GO：成功率が{gain}上がります。"

`Words.load` refuses a catalogue in which a key lacks one of the languages or
the places for values differ, so nothing can stay untranslated by accident.
Knows nothing of what the sentences say.
"""

from __future__ import annotations

import string
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import yaml

from poc.errors import PocError, did_you_mean

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the catalogues are large, and the C one is ten times as fast

Language = Literal["en", "ja"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Sentence(msgspec.Struct, frozen=True):
    """A sentence before it is spoken: the key and its values, so that it can be stored and said in any language."""

    key: str
    values: dict[str, Any] = {}


class Words:
    """The sentences of one catalogue."""

    def __init__(self, table: dict[str, dict[str, str]], name: str) -> None:
        self.table = table
        self.name = name

    @staticmethod
    @cache
    def load(path: Path) -> Words:
        """Read a catalogue and check that every key speaks every language with the same places."""
        table = yaml.load(path.read_text(encoding="utf-8"), _LOADER) or {}
        for key, entry in table.items():
            missing = [language for language in LANGUAGES if not isinstance(entry.get(language), str)]
            if missing:
                raise PocError(f"'{key}' has no text in: {', '.join(missing)}.", where=str(path))
            places = {language: _places(entry[language]) for language in LANGUAGES}
            if len(set(places.values())) > 1:
                raise PocError(f"'{key}' has different places for values in its languages: {places}.", where=str(path))
        return Words(table, path.name)

    def say(self, key: str, language: Language = "en", **values: Any) -> str:
        """The sentence for `key`, with `values` put into its places."""
        if key not in self.table:
            raise PocError(f"No such sentence: '{key}'.{did_you_mean(key, self.table)}", where=self.name)
        return self.table[key][language].format(**values)

    def speak(self, sentence: Sentence, language: Language = "en") -> str:
        """The same for a stored `Sentence`."""
        return self.say(sentence.key, language, **sentence.values)


def _places(text: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in string.Formatter().parse(text) if name)
