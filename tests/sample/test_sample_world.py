"""The sample world: every task can be done, doing nothing never does it, and nothing that is passed in breaks it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.errors import InputError, PocError
from poc.replay.environments import Environment, EnvironmentTask
from poc.sample.tasks import all_tasks, task_of, tasks_of
from poc.sample.tools import TOOLS
from poc.sample.world import World

TASKS = list(all_tasks())


def environment_task(key: str) -> EnvironmentTask:
    return EnvironmentTask(task_id=f"id of {key}", task_key=key, text=task_of(key).text)


async def opened(key: str) -> World:
    world = World()
    await world.reset(environment_task(key), seed=0)
    return world


async def test_every_task_is_solved_by_its_reference_path() -> None:
    for key in TASKS:
        world = await opened(key)
        for name, arguments in task_of(key).reference:
            result = await world.call(name, arguments)
            assert not result.is_error, (key, name, result.content)
        outcome = await world.outcome()
        assert outcome.value == 1.0, (key, outcome.detail)
        assert outcome.provenance == "environment"
        await world.close()


async def test_doing_nothing_solves_no_task() -> None:
    for key in TASKS:
        world = await opened(key)
        assert (await world.outcome()).value == 0.0, key
        await world.close()


async def test_the_reference_path_but_its_last_call_solves_no_task() -> None:
    for key in TASKS:
        world = await opened(key)
        for name, arguments in task_of(key).reference[:-1]:
            await world.call(name, arguments)
        assert (await world.outcome()).value == 0.0, key
        await world.close()


async def test_an_unasked_change_spoils_a_solved_task() -> None:
    for key in TASKS:
        world = await opened(key)
        for name, arguments in task_of(key).reference:
            await world.call(name, arguments)
        assert not (await world.call("escalate", {"order_id": "W-20503", "reason": "no reason"})).is_error
        assert (await world.outcome()).value == 0.0, key
        await world.close()


async def test_several_paths_are_valid() -> None:
    # Writing twice to the customer, and looking things up in another order, is as good.
    world = await opened("cancel-01")
    for name, arguments in [
        ("track_shipment", {"order_id": "W-20101"}),
        ("cancel_order", {"order_id": "W-20101", "reason": "x"}),
        ("send_message", {"customer_id": "C-101", "text": "one moment"}),
        ("refund_order", {"order_id": "W-20101", "amount": 38}),
        ("send_message", {"customer_id": "C-101", "text": "done"}),
    ]:
        await world.call(name, arguments)
    assert (await world.outcome()).value == 1.0
    # A lost parcel without a wish may be replaced or refunded.
    assert len(task_of("delivery-12").accept) == 3


async def test_paying_twice_fails_where_the_order_allows_it() -> None:
    world = await opened("return-05")
    calls = task_of("return-05").reference
    for name, arguments in [*calls, calls[5]]:
        await world.call(name, arguments)
    outcome = await world.outcome()
    assert outcome.value == 0.0
    assert outcome.detail is not None
    assert outcome.detail.count("refund W-20205-1 19.00") == 2


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("cancel_order", {"order_id": "W-20102", "reason": "x"}, "shipped and cannot be cancelled"),
        (
            "change_address",
            {"order_id": "W-20402", "street": "a", "city": "b", "postal_code": "c"},
            "cannot be changed",
        ),
        ("refund_order", {"order_id": "W-20104", "amount": 1}, "invoice"),
        ("refund_order", {"order_id": "W-20101", "amount": 38.01}, "Only 38.00"),
        ("exchange_item", {"order_id": "W-20303", "item_id": "W-20303-1", "variant_id": "P-12-M"}, "out of stock"),
        ("exchange_item", {"order_id": "W-20309", "item_id": "W-20309-1", "variant_id": "P-11-M"}, "52 days ago"),
        ("exchange_item", {"order_id": "W-20301", "item_id": "W-20301-1", "variant_id": "P-12-L"}, "not a variant"),
        ("send_replacement", {"order_id": "W-20501", "item_id": "W-20501-1"}, "claim with the carrier first"),
        ("create_return_label", {"order_id": "W-20101", "item_id": "W-20101-1"}, "not been delivered"),
        ("get_order", {"order_id": "20101"}, "Order numbers look like"),
        ("get_order", {"order": "W-20101"}, "'order_id' is missing"),
        ("get_order", {"order_id": "W-20101", "orderid": 1}, 'Did you mean \\"order_id\\"'),
        ("refund_order", {"order_id": "W-20101", "amount": "38"}, "must be a number"),
        ("refund_order", {"order_id": "W-20101", "amount": True}, "must be a number"),
        ("refund_order", {"order_id": "W-20101", "amount": float("nan")}, "greater than 0"),
        ("open_claim", {"order_id": "W-20501", "kind": "stolen"}, "must be one of"),
        ("send_message", {"customer_id": "C-101", "text": "\ud800"}, "no valid text"),
        ("find_customer", {}, "email address or a name"),
        ("drop_tables", {}, "no tool"),
        ("\ud800", {}, "no tool"),
        ("get_order", {"order_id": "W-20101", "\ud800": 1}, "Unknown argument"),
    ],
)
async def test_refusals_are_results_that_say_why(name: str, arguments: dict[str, Any], said: str) -> None:
    world = await opened("cancel-01")
    result = await world.call(name, arguments)
    assert result.is_error
    assert said in result.content
    assert (await world.outcome()).detail == "nothing changed"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()) | st.just("W-20101"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
NAMES = sorted({name for tool in TOOLS.values() for name in (tool.schema.parameters or {})["properties"]})


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*TOOLS, "nonsense"]),
            st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), VALUES, max_size=5),
        ),
        max_size=4,
    )
)
def test_no_arguments_ever_raise(calls: list[tuple[str, dict[str, Any]]]) -> None:
    async def run() -> None:
        world = await opened("return-05")
        for name, arguments in calls:
            result = await world.call(name, arguments)
            assert isinstance(result.content, str)
            result.content.encode()
        assert (await world.outcome()).value in (0.0, 1.0)
        await world.close()

    asyncio.run(run())


async def test_a_refused_call_changes_nothing_and_trials_do_not_meet() -> None:
    one, two = await opened("cancel-01"), await opened("cancel-01")
    await one.call("cancel_order", {"order_id": "W-20101", "reason": "x"})
    assert '"processing"' in (await two.call("get_order", {"order_id": "W-20101"})).content
    assert '"cancelled"' in (await one.call("get_order", {"order_id": "W-20101"})).content
    await one.reset(environment_task("cancel-01"), seed=1)
    assert '"processing"' in (await one.call("get_order", {"order_id": "W-20101"})).content


async def test_reset_is_cheap() -> None:
    world = await opened("cancel-01")
    started = time.process_time()
    for _ in range(50):
        await world.reset(environment_task("cancel-02"), seed=0)
    assert (time.process_time() - started) / 50 < 0.002


async def test_the_contract_of_environments() -> None:
    world = World()
    assert isinstance(world, Environment)
    with pytest.raises(PocError, match="reset"):
        await world.call("get_order", {"order_id": "W-20101"})
    with pytest.raises(InputError, match='Did you mean "cancel-'):
        await world.reset(EnvironmentTask(task_id="cancel-1"), seed=0)
    await world.reset(EnvironmentTask(task_id="cancel-01"), seed=0)
    await world.close()
    await world.close()
    effects = {tool.name: tool.effect for tool in world.tools()}
    assert 12 <= len(effects) <= 16
    assert set(effects.values()) == {"read", "write", "irreversible"}
    assert not any(tool.effect_is_guess for tool in world.tools())
    assert "2025-06-16" in world.instructions()


def test_the_split_is_by_task_and_covers_every_category_on_both_sides() -> None:
    development, replay = tasks_of("development"), tasks_of("replay")
    assert (len(development), len(replay)) == (24, 36)
    assert {task.key for task in development}.isdisjoint(task.key for task in replay)
    assert {task.category for task in development} == {task.category for task in replay}
    assert len({task.text for task in all_tasks().values()}) == 60


def test_reference_calls_as_records() -> None:
    calls = task_of("cancel-02").reference_calls()
    assert [call.tool for call in calls] == ["get_order", "send_message"]
    assert calls[0].arguments_json == '{"order_id":"W-20102"}'
