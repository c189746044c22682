"""The arms: ways of giving, or withholding, progress context.

An arm is a small declared strategy. It reads `ProgressView` only (titles,
status, counts), so it cannot leak a record, an argument, a result or an
outcome. Its text keeps within a token budget: first all subgoals, then the
finished ones collapsed to a count, then the summary alone, then nothing.

Does not know where its text is put (see `place`), nor who reads it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from poc import tokens
from poc.errors import InputError, did_you_mean
from poc.language import Language, Words
from poc.progress.view import ProgressView, SubgoalView

_WORDS = Words.load(Path(__file__).with_name("words.yaml"))

Versions = Callable[[Sequence[ProgressView], random.Random, Language], Iterator[str]]
"""The texts of an arm, from the fullest to the shortest."""


@dataclass(frozen=True)
class Arm:
    """One way of giving context. `versions` yields its texts from the fullest to the shortest."""

    name: str
    versions: Versions

    def says(self, language: Language = "en") -> str:
        """What the arm adds, in a sentence for people."""
        return _WORDS.say(f"arm.{self.name}", language)

    def render(
        self,
        history: Sequence[ProgressView],
        rng: random.Random,
        budget: int,
        language: Language = "en",
        *,
        model: str | None = None,
    ) -> str | None:
        """The text to add to the next request, or None for nothing.

        history: the views so far, the newest last; the first is the state
        before any step. rng: the trial's own generator, for arms that draw.
        budget: tokens (counted for `model`) that the text never exceeds.
        """
        for text in self.versions(history, rng, language):
            if tokens.count(text, model) <= budget:
                return text
        return None


def arm(name: str) -> Arm:
    """The arm of this name. Raises `InputError` with the known ones."""
    try:
        return ARMS[name]
    except KeyError:
        raise InputError(f"There is no arm '{name}'.{did_you_mean(name, ARMS)}") from None


def _nothing(history: Sequence[ProgressView], rng: random.Random, language: Language) -> Iterator[str]:
    yield from ()


def _plan(history: Sequence[ProgressView], rng: random.Random, language: Language) -> Iterator[str]:
    if not history or not history[-1].subgoals:
        return
    header = _WORDS.say("header.plan", language)
    titles = [_line("plan", subgoal, language) for subgoal in history[-1].subgoals]
    yield "\n".join([header, *titles])
    yield f"{header}\n{_WORDS.say('summary.plan', language, total=history[-1].total)}"


def _progress(history: Sequence[ProgressView], rng: random.Random, language: Language) -> Iterator[str]:
    if not history or not history[-1].subgoals:
        return
    view = history[-1]
    header = _WORDS.say("header.progress", language)
    summary = _WORDS.say("summary.progress", language, done=view.done, total=view.total)
    yield "\n".join([header, *(_line("done" if s.done else "open", s, language) for s in view.subgoals), summary])
    if view.done:
        collapsed = _WORDS.say("collapsed.done", language, count=view.done)
        still_open = [_line("open", subgoal, language) for subgoal in view.subgoals if not subgoal.done]
        yield "\n".join([header, collapsed, *still_open, summary])
    yield f"{header}\n{summary}"
    yield summary


def _line(kind: str, subgoal: SubgoalView, language: Language) -> str:
    # One line a subgoal, whatever the title holds: a title cannot forge a line of its own.
    return _WORDS.say(f"line.{kind}", language, title=" ".join(subgoal.title.split()))


ARMS: dict[str, Arm] = {
    one.name: one for one in (Arm("none", _nothing), Arm("plan", _plan), Arm("progress", _progress))
}
"""All arms by name, the control first."""
