"""The app's own sentences, in the language that the reader chose. Knows no result and draws nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

import streamlit as st

from poc.language import LANGUAGES, Language, Words

WORDS = Words.load(Path(__file__).with_name("words.yaml"))
LANGUAGE_KEY = "lang"
"""Both the widget's key and the name in the page's address."""


def language() -> Language:
    """What the reader chose; else the address, else the browser's language, else English."""
    chosen = st.session_state.get(LANGUAGE_KEY) or st.query_params.get(LANGUAGE_KEY)
    if chosen in LANGUAGES:
        return cast(Language, chosen)
    return "ja" if (st.context.locale or "").lower().startswith("ja") else "en"


def say(key: str, **values: Any) -> str:
    """The sentence for `key`, with `values` put into its places."""
    return WORDS.say(key, language(), **values)


def named(kind: str, name: object) -> str:
    """The reader's name of a stored word (``kind.name``); the stored word itself where the catalogue lacks it."""
    key = f"{kind}.{name}"
    return say(key) if key in WORDS.table else str(name)


def note(text: str | None) -> str:
    """What a job says it is at, in the reader's language; an unknown note stays as it is."""
    if not text:
        return ""
    key = _notes().get(text)
    return say(key) if key else text


@cache
def _notes() -> dict[str, str]:
    return {entry["en"]: key for key, entry in WORDS.table.items() if key.startswith("note.")}
