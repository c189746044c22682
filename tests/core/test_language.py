"""Catalogues: nothing untranslated, same places in all languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from poc.errors import PocError
from poc.language import Sentence, Words

ROOT = Path(__file__).resolve().parents[2]


def test_a_sentence_is_spoken_in_both_languages(tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    path.write_text("hello:\n  en: 'Hello {name}.'\n  ja: '{name}さん、こんにちは。'\n", encoding="utf-8")
    words = Words.load(path)
    assert words.say("hello", "en", name="Mia") == "Hello Mia."
    assert words.speak(Sentence("hello", {"name": "Mia"}), "ja") == "Miaさん、こんにちは。"
    with pytest.raises(PocError, match='Did you mean "hello"'):
        words.say("helo")


def test_a_missing_language_or_place_is_refused(tmp_path: Path) -> None:
    one = tmp_path / "one.yaml"
    one.write_text("hello:\n  en: 'Hello.'\n", encoding="utf-8")
    with pytest.raises(PocError, match="no text in: ja"):
        Words.load(one)
    two = tmp_path / "two.yaml"
    two.write_text("hello:\n  en: 'Hello {name}.'\n  ja: 'こんにちは。'\n", encoding="utf-8")
    with pytest.raises(PocError, match="different places"):
        Words.load(two)


@pytest.mark.parametrize("path", sorted((ROOT / "poc").rglob("*words.yaml")), ids=lambda path: path.parent.name)
def test_every_catalogue_of_the_package_speaks_both_languages(path: Path) -> None:
    assert Words.load(path).table
