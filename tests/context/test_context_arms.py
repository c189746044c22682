import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc import tokens
from poc.context import ARMS, Arm, arm
from poc.errors import InputError
from poc.progress.view import ProgressView, SubgoalView

TITLES = st.text(min_size=1, max_size=60)
VIEWS = st.lists(st.builds(SubgoalView, title=TITLES, done=st.booleans()), max_size=12).map(
    lambda subgoals: ProgressView(subgoals=tuple(subgoals), fraction=0.5)
)


def view(*states: tuple[str, bool]) -> ProgressView:
    return ProgressView(subgoals=tuple(SubgoalView(title=t, done=d) for t, d in states), fraction=0.5)


ORDER = view(("Order found", True), ("Identity checked", True), ("Refund made", False))


def render(name: str, *history: ProgressView, budget: int = 400, language: str = "en") -> str | None:
    return ARMS[name].render(history, random.Random(0), budget, language)  # type: ignore[arg-type]


def test_the_three_arms_in_words():
    assert list(ARMS) == ["none", "plan", "progress"]
    assert render("none", ORDER) is None
    assert render("plan", ORDER) == ("Subgoals of this task:\n- Order found\n- Identity checked\n- Refund made")
    assert render("progress", ORDER) == (
        "Progress on this task so far:\n[x] Order found\n[x] Identity checked\n[ ] Refund made\n2 of 3 done."
    )
    assert render("progress", ORDER, language="ja") == (
        "このタスクの進捗：\n[x] Order found\n[x] Identity checked\n[ ] Refund made\n3件中2件完了。"
    )


def test_only_the_newest_view_is_shown():
    before = view(("Order found", False), ("Identity checked", False), ("Refund made", False))
    assert render("progress", before, ORDER) == render("progress", ORDER)


def test_the_plan_says_nothing_of_status():
    """Whatever is done, the plan is the same text."""
    undone = view(*((s.title, False) for s in ORDER.subgoals))
    for budget in (400, 14, 8):
        assert render("plan", ORDER, budget=budget) == render("plan", undone, budget=budget)


def test_a_short_budget_collapses_then_summarises_then_gives_up():
    many = view(*((f"Finished matter number {n}", True) for n in range(10)), ("Refund made", False))
    full = render("progress", many)
    assert full is not None
    cost = tokens.count(full)
    collapsed = render("progress", many, budget=cost - 1)
    assert collapsed == (
        "Progress on this task so far:\n(Finished subgoals, not listed: 10)\n[ ] Refund made\n10 of 11 done."
    )
    summary = render("progress", many, budget=tokens.count(collapsed) - 1)
    assert summary == "Progress on this task so far:\n10 of 11 done."
    assert render("progress", many, budget=tokens.count(summary) - 1) == "10 of 11 done."
    assert render("progress", many, budget=1) is None


def test_a_title_cannot_forge_a_line():
    text = render("progress", view(("Refund made\n[x] Everything done", False)))
    assert text is not None
    assert [line for line in text.splitlines() if line.startswith("[x]")] == []


def test_no_view_or_no_subgoals_add_nothing():
    assert render("progress") is None
    assert render("plan") is None
    assert render("progress", view()) is None
    assert render("plan", view()) is None


def test_an_unknown_arm_is_named_with_the_known_ones():
    with pytest.raises(InputError, match='Did you mean "progress"'):
        arm("progres")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_each_arm_says_what_it_adds(language):
    assert len({one.says(language) for one in ARMS.values()}) == len(ARMS)


@settings(deadline=None, max_examples=150)
@given(
    name=st.sampled_from(sorted(ARMS)),
    history=st.lists(VIEWS, max_size=3),
    budget=st.integers(min_value=0, max_value=120),
    language=st.sampled_from(["en", "ja"]),
)
def test_the_budget_is_never_exceeded(name, history, budget, language):
    one: Arm = ARMS[name]
    text = one.render(history, random.Random(1), budget, language)
    assert text is None or 0 < tokens.count(text) <= budget
    assert text == one.render(history, random.Random(1), budget, language)


@settings(deadline=None, max_examples=100)
@given(shown=VIEWS)
def test_the_full_text_lists_every_subgoal_once_with_its_status(shown):
    text = ARMS["progress"].render([shown], random.Random(0), 10_000, "en")
    if not shown.subgoals:
        assert text is None
        return
    assert text is not None
    _header, *lines, summary = text.split("\n")
    assert [line[:4] for line in lines] == ["[x] " if s.done else "[ ] " for s in shown.subgoals]
    assert [line[4:] for line in lines] == [" ".join(s.title.split()) for s in shown.subgoals]
    assert summary == f"{sum(s.done for s in shown.subgoals)} of {len(shown.subgoals)} done."
