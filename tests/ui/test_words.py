"""The app's sentences: none is missing, none is left over, none stays in English."""

import re
from pathlib import Path

from poc.ui.words import WORDS

UI = Path(__file__).resolve().parents[2] / "poc" / "ui"
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in UI.rglob("*.py"))
BUILT = {
    "level",
    "checklevel",
    "status",
    "stepstatus",
    "role",
    "effect",
    "mode",
    "modeshort",
    "stop",
    "verb",
    "field",
    "note",
}
"""Kinds of stored words that `named` and `note` look up."""
NAMES = {"shell.path", "app.title"}


def test_every_sentence_that_the_code_says_is_there():
    for key in re.findall(r"""\bsay\(\s*["']([\w.]+)["']""", SOURCE):
        assert key in WORDS.table, key
    for kind in re.findall(r"""\bnamed\(["'](\w+)["']""", SOURCE):
        assert any(key.startswith(f"{kind}.") for key in WORDS.table), kind


def test_no_sentence_is_left_over():
    built = [
        text
        for text in re.findall(r"""f["']((?:[\w.]|\{[^{}"']*\})+)["']""", SOURCE)
        if "." in re.sub(r"\{[^{}]*\}", "", text)
    ]
    patterns = [
        ".+".join(re.escape(part) for part in re.split(r"\{[^{}]*\}", text))
        for text in built
        # A key that is built of places only would excuse every sentence.
        if re.search(r"[a-z]{3}", re.sub(r"\{[^{}]*\}", "", text))
    ]
    unused = [
        key
        for key in WORDS.table
        if not re.search(rf"""["']{re.escape(key)}["']""", SOURCE)
        and key.split(".")[0] not in BUILT
        and not any(re.fullmatch(pattern, key) for pattern in patterns)
    ]
    assert unused == [], unused


def test_japanese_is_japanese():
    kana_or_kanji = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
    plain = [key for key, entry in WORDS.table.items() if not kana_or_kanji.search(entry["ja"])]
    # Names that are the same in both languages, and sentences that are nothing but places.
    assert [key for key in plain if WORDS.table[key]["ja"] != WORDS.table[key]["en"]] == []
    assert len(plain) < 5
