"""The simulated agent: it reads only the messages, and what status text does to it comes from that text."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from poc.context import ARMS
from poc.errors import InputError
from poc.progress import ProgressView, Tracker
from poc.progress.view import SubgoalView
from poc.sample import agent, playbook, reading, requests, status, strays, unknown_tools
from poc.sample.agent import DEFAULT, Temper, respond
from poc.sample.drive import Added, Attempt, attempt, request_tools
from poc.sample.files import data_dir
from poc.sample.reading import read_messages
from poc.sample.status import match_tools, read_status
from poc.sample.tasks import SampleTask, all_tasks, tasks_of
from poc.sample.tools import TOOLS
from poc.sample.world import World
from poc.subgoals import load_sets
from poc.trajectory import Step

WORLD = World()
OFFERED = request_tools(WORLD)
DESCRIPTIONS = {name: tool.schema.description or "" for name, tool in TOOLS.items()}
SETS = {one.category: one for one in load_sets(data_dir() / "subgoals")}
PERFECT = Temper(memory=1, oversight=0, wrong_turn=0, early_stop=0)
REPEATS = 4

Text = Callable[[ProgressView], str | None]


def view_of(task: SampleTask, messages: Any) -> ProgressView:
    tracker = Tracker(SETS[task.category])
    for index, call in enumerate(read_messages(messages).calls):
        tracker.observe(
            Step(
                index=index,
                turn=call.turn,
                tool=call.tool,
                arguments_json=json.dumps(call.arguments),
                arguments_status="parsed",
                result=json.dumps(call.result),
                status="error" if call.failed else "ok",
            )
        )
    return tracker.view()


def arm_text(name: str, language: Any = "en") -> Text:
    return lambda view: ARMS[name].render([view], random.Random(0), 400, language)


def inverted(view: ProgressView) -> str | None:
    turned = tuple(SubgoalView(title=one.title, done=not one.done) for one in view.subgoals)
    return arm_text("progress")(ProgressView(subgoals=turned, fraction=1 - view.fraction))


def placebo(view: ProgressView) -> str | None:
    return "Please keep working with care and take the time that you need. Good work is valued here by everybody."


TEXTS: dict[str, Text] = {
    "none": arm_text("none"),
    "plan": arm_text("plan"),
    "progress": arm_text("progress"),
    "inverted": inverted,
    "placebo": placebo,
}


@cache
def trials(text: str, heed: float, repeats: int = REPEATS) -> list[Attempt]:
    """All replay tasks, a few repeats each; the same seeds for every text, so that chance is shared."""

    def added(task: SampleTask) -> Added:
        return lambda messages: TEXTS[text](view_of(task, messages))

    async def run() -> list[Attempt]:
        temper = Temper(heed=heed)
        return [
            await attempt(task, 1000 * repeat + number, temper=temper, added=added(task))
            for repeat in range(repeats)
            for number, task in enumerate(tasks_of("replay"))
        ]

    return asyncio.run(run())


def success(text: str, heed: float) -> float:
    done = trials(text, heed)
    return sum(one.success for one in done) / len(done)


# The pattern of effects --------------------------------------------------------------------------------------


def test_the_baseline_is_neither_hopeless_nor_perfect() -> None:
    assert 0.5 <= success("none", 1.0) <= 0.68


def test_progress_helps_an_agent_that_heeds_it_and_a_plan_helps_less() -> None:
    none, plan, progress = (success(text, 1.0) for text in ("none", "plan", "progress"))
    assert 0.15 <= progress - none <= 0.35
    assert none + 0.04 < plan < progress - 0.04


def test_an_agent_that_ignores_text_does_the_same_whatever_it_says() -> None:
    for text in ("plan", "progress", "inverted", "placebo"):
        for one, other in zip(trials(text, 0.0, 1), trials("none", 0.0, 1), strict=True):
            assert one.messages == other.messages


def test_placebo_text_changes_nothing_up_to_full_heed() -> None:
    for one, other in zip(trials("placebo", 1.0, 1), trials("none", 1.0, 1), strict=True):
        assert one.messages == other.messages


def test_wrong_status_misleads_an_agent_that_heeds_it() -> None:
    assert success("inverted", 1.0) < success("none", 1.0) - 0.3


def test_beyond_full_heed_any_text_distracts() -> None:
    assert success("progress", 2.0) < success("progress", 1.0) - 0.15
    assert success("placebo", 2.0) < success("none", 1.0) - 0.08
    for one, other in zip(trials("none", 2.0, 1), trials("none", 1.0, 1), strict=True):
        assert one.messages == other.messages


def test_progress_saves_repeated_steps() -> None:
    def repeated(done: list[Attempt]) -> float:
        repeats = 0
        for one in done:
            calls = [(c.tool, str(c.arguments)) for c in read_messages(one.messages).calls]
            repeats += len(calls) - len(set(calls))
        return repeats / len(done)

    assert repeated(trials("progress", 1.0)) < 0.6 * repeated(trials("none", 1.0))


def test_without_weaknesses_it_solves_everything() -> None:
    for task in all_tasks().values():
        result = asyncio.run(attempt(task, 1, temper=PERFECT))
        assert (result.success, result.stopped) == (1.0, "answered"), (task.key, result.detail)


# What it reads ------------------------------------------------------------------------------------------------


def test_its_modules_know_no_arm_no_task_and_no_world() -> None:
    forbidden = ("poc.context", "poc.progress", "poc.subgoals", "poc.replay", "sample.world", "sample.tasks",
                 "sample.shop", "sample.tools ", "sample.files", "placebo arm")  # fmt: skip
    for module in (agent, playbook, reading, requests, status, strays, unknown_tools):
        source = inspect.getsource(module)
        imports = [line for line in source.splitlines() if line.startswith(("import ", "from "))]
        assert not [line for line in imports if any(name in f"{line} " for name in forbidden)], module.__name__


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "nonce 12345678\n" + WORLD.instructions()},
    {"role": "user", "content": "Please cancel W-20101."},
]


def test_a_turn_is_a_function_of_seed_and_messages_but_not_of_the_nonce() -> None:
    other = [{"role": "system", "content": "nonce 87654321\n" + WORLD.instructions()}, MESSAGES[1]]
    for seed in range(30):
        assert respond(MESSAGES, OFFERED, seed=seed) == respond(MESSAGES, OFFERED, seed=seed)
        assert respond(MESSAGES, OFFERED, seed=seed) == respond(other, OFFERED, seed=seed)
    assert len({str(respond(MESSAGES, OFFERED, seed=seed)) for seed in range(60)}) > 1


def history(*calls: tuple[str, dict[str, Any], dict[str, Any]]) -> list[dict[str, Any]]:
    messages = list(MESSAGES)
    for number, (tool, arguments, result) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(result)})
    return messages


def test_it_goes_by_the_results_that_it_is_shown() -> None:
    order = {
        "order_id": "W-20101", "customer_id": "C-1", "status": "processing", "payment": "card", "total": 7.5,
        "items": [{"item_id": "i", "product": "Odd thing", "price": 7.5, "quantity": 1}],
    }  # fmt: skip
    read = ("get_order", {"order_id": "W-20101"}, order)
    (call,) = respond(history(read), OFFERED, seed=1, temper=PERFECT).calls
    assert call.name == "cancel_order"
    done = ("cancel_order", {"order_id": "W-20101", "reason": "x"}, {"status": "cancelled"})
    (call,) = respond(history(read, done), OFFERED, seed=1, temper=PERFECT).calls
    assert (call.name, call.arguments["amount"]) == ("refund_order", 7.5)
    gone = ("get_order", {"order_id": "W-20101"}, order | {"status": "shipped"})
    (call,) = respond(history(gone), OFFERED, seed=1, temper=PERFECT).calls
    assert (call.name, call.arguments["customer_id"]) == ("send_message", "C-1")
    assert respond(history(), OFFERED, seed=1, temper=PERFECT).calls[0].name == "get_order"


@pytest.mark.parametrize("place", ["system", "tail", "tool_result"])
def test_status_is_found_wherever_it_stands(place: str) -> None:
    text = "Progress on this task so far:\n[x] Order found and read\n[ ] Order cancelled\n1 of 2 done."
    messages = history(("get_order", {"order_id": "W-20101"}, {"error": "busy"}))
    if place == "system":
        messages[0] = {"role": "system", "content": f"{messages[0]['content']}\n\n{text}"}
    elif place == "tail":
        messages.append({"role": "user", "content": text})
    else:
        messages[-1] = messages[-1] | {"content": f"{messages[-1]['content']}\n\n{text}"}
    found = read_status(read_messages(messages).asides, DESCRIPTIONS)
    assert (found.done, found.open, found.left) == ({"get_order"}, {"cancel_order"}, 1)


@pytest.mark.parametrize(
    ("text", "done", "opened", "listed", "left"),
    [
        ("[x] Order read\n[ ] Refund paid\n1 of 2 done.", {"get_order"}, {"refund_order"}, set(), 1),
        ("☑ Order read\n☐ Refund paid", {"get_order"}, {"refund_order"}, set(), 1),
        ("Done: order read; return policy checked\nNext: refund", {"get_order", "check_return_policy"},
         {"refund_order"}, set(), 1),
        ("完了：注文の確認\n次：返金\n2件中1件完了。", {"get_order"}, {"refund_order"}, set(), 1),
        ("[x] 返品規定の確認\n[ ] 顧客への連絡", {"check_return_policy"}, {"send_message"}, set(), 1),
        ("Subgoals:\n- Order read\n- Refund paid", set(), set(), {"get_order", "refund_order"}, None),
        ("1. Read the order\n2) Exchange the item or refund it", set(), set(),
         {"get_order", "exchange_item", "refund_order"}, None),
        ("Progress:\n(Finished subgoals, not listed: 2)\n[ ] Refund paid\n2 of 3 done.", set(), {"refund_order"},
         set(), 1),
        ("3 of 3 done.", set(), set(), set(), 0),
    ],
)  # fmt: skip
def test_marks_in_two_languages(
    text: str, done: set[str], opened: set[str], listed: set[str], left: int | None
) -> None:
    found = read_status([text], DESCRIPTIONS)
    assert found.found
    assert (found.done, found.open, found.listed, found.left) == (done, opened, listed, left)


@pytest.mark.parametrize(
    "text",
    ["", "Keep going, you are doing well.", "- Take care\n- Breathe", "- Refund paid", WORLD.instructions()],
)
def test_text_without_marks_is_no_status(text: str) -> None:
    assert not read_status([text], DESCRIPTIONS).found


def test_the_newest_status_counts() -> None:
    found = read_status(["[ ] Refund paid", "no marks here", "[x] Refund paid"], DESCRIPTIONS)
    assert (found.done, found.open) == ({"refund_order"}, frozenset())


def test_the_titles_of_the_sample_are_understood_and_name_no_tool() -> None:
    known = tuple(sorted(DESCRIPTIONS.items()))
    for one in SETS.values():
        for subgoal in one.subgoals:
            assert match_tools(subgoal.title, known) == set(subgoal.done_when.tool or ()), subgoal.title
            assert not any(tool in subgoal.title for tool in TOOLS)


# Forms of asking ----------------------------------------------------------------------------------------------


def test_tool_choice_is_obeyed() -> None:
    assert respond(MESSAGES, OFFERED, seed=1, tool_choice="none").calls == ()
    assert respond(MESSAGES, [], seed=1).calls == ()
    named = {"type": "function", "function": {"name": "track_shipment"}}
    (call,) = respond(MESSAGES, OFFERED, seed=1, tool_choice=named).calls
    assert call.name == "track_shipment"
    finished = history(("send_message", {"customer_id": "C-1", "text": "x"}, {"sent": True}))
    assert respond(finished, OFFERED, seed=1, tool_choice="required").calls


def test_parallel_calls_only_where_allowed() -> None:
    messages = [MESSAGES[0], {"role": "user", "content": "Cancel W-20106 and W-20116 please."}]
    sizes = {len(respond(messages, OFFERED, seed=seed).calls) for seed in range(60)}
    assert sizes == {1, 2}
    assert {len(respond(messages, OFFERED, seed=seed, parallel=False).calls) for seed in range(60)} == {1}


def test_dials() -> None:
    assert DEFAULT.changed("heed=0.8,memory=0.5") == Temper(heed=0.8, memory=0.5)
    assert DEFAULT.changed("") == DEFAULT
    for text, said in [("heed=3", "between 0 and 2"), ("hed=1", 'Did you mean "heed"'), ("heed=x", "no number")]:
        with pytest.raises(InputError, match=said):
            DEFAULT.changed(text)


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user"}],
        [{"role": "tool", "content": "orphan", "tool_call_id": "x"}],
        [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "get_order", "arguments": "{"}}]}],
        [{"role": "user", "content": [{"type": "text", "text": "cancel W-20101"}, {"type": "image_url"}]}],
        [*MESSAGES, {"role": "assistant", "content": "hello", "tool_calls": None}],
    ],
)
def test_odd_messages_do_not_break_it(messages: list[dict[str, Any]]) -> None:
    for seed in range(20):
        respond(messages, OFFERED, seed=seed)
