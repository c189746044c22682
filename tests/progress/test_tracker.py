"""The state machine by hand: after, undo, weights, what may be shown, what a judge asks."""

import json
from typing import Any

import msgspec
import pytest

from poc.errors import InputError
from poc.progress import Tracker, why
from poc.subgoals import parse_set
from poc.trajectory import Step

SET = parse_set(
    """
category: refund
runs: all
subgoals:
  - id: found
    title: Find the order
    done_when: {tool: get_order, result: {$.status: {equals: delivered}}}
  - id: approved
    title: Have it approved
    required: false
    done_when: {tool: approve}
    undone_when: {tool: revoke}
  - id: paid
    title: Pay the money back
    weight: 2
    after: [found, approved]
    done_when: {tool: pay, arguments: {$.amount: {gt: 0}}}
"""
)
DELIVERED = '{"status": "delivered"}'


class Run:
    """Feeds steps with rising numbers."""

    def __init__(self) -> None:
        self.tracker = Tracker(SET)
        self.next = 0

    def step(self, tool: str, arguments: dict[str, Any] | None = None, result: str | None = "ok", **more: Any):
        step = Step(
            index=self.next,
            turn=self.next,
            tool=tool,
            arguments_json=None if arguments is None else json.dumps(arguments),
            result=result,
            **{"status": "ok", **more},
        )
        self.next += 1
        return self.tracker.observe(step)


def test_a_run_step_by_step():
    run = Run()
    # Paying before the others does not count.
    first = run.step("pay", {"amount": 5})
    assert (first.achieved, first.current) == ((), 0)
    assert run.step("get_order", result=DELIVERED).current == 0.25
    assert run.step("approve").current == 0.5
    undone = run.step("revoke")
    assert (undone.undone, undone.current, undone.high_water, undone.gain) == (("approved",), 0.25, 0.5, -0.25)
    # `approved` was achieved once; that is enough for `paid`.
    paid = run.step("pay", {"amount": 5})
    assert (paid.achieved, paid.done, paid.current, paid.gain) == (("paid",), ("found", "paid"), 0.75, 0.5)
    assert run.tracker.open_required == ()
    again = run.step("approve")
    assert (again.achieved, again.current, again.high_water) == (("approved",), 1, 1)


def test_errors_and_simulated_users_achieve_nothing():
    run = Run()
    assert run.step("get_order", result=DELIVERED, status="error").current == 0
    assert run.step("get_order", result=DELIVERED, caller="user").current == 0
    assert run.step("get_order", result=DELIVERED, caller="subagent").current == 0.25


def test_steps_must_come_in_order():
    run = Run()
    run.step("approve")
    run.next = 0
    with pytest.raises(InputError, match="Step 0 cannot follow step 0"):
        run.step("approve")


def test_the_view_holds_titles_and_status_only():
    run = Run()
    run.step("get_order", {"secret": "MARK-1"}, result='{"status": "delivered", "note": "MARK-2"}', call_id="MARK-3")
    view = run.tracker.view()
    assert [(each.title, each.done) for each in view.subgoals] == [
        ("Find the order", True),
        ("Have it approved", False),
        ("Pay the money back", False),
    ]
    assert (view.done, view.total, view.fraction) == (1, 3, 0.25)
    shown = msgspec.json.encode(view).decode()
    assert not any(hidden in shown for hidden in ("MARK", "get_order", "found", "delivered"))


def test_what_a_call_would_advance():
    run = Run()
    # The result is not known yet, so it counts as possible; `paid` waits for the others.
    assert run.tracker.would_advance("get_order", "{}") == ["found"]
    assert run.tracker.would_advance("pay", '{"amount": 1}') == []
    run.step("get_order", result=DELIVERED)
    run.step("approve")
    assert run.tracker.would_advance("get_order", "{}") == []
    assert run.tracker.would_advance("pay", '{"amount": 1}') == ["paid"]
    assert run.tracker.would_advance("pay", '{"amount": 0}') == []
    assert run.tracker.would_advance("pay", None) == []


def test_what_a_call_would_repeat():
    run = Run()
    assert not run.tracker.would_repeat("get_order", '{"id": 1, "x": 2}')
    run.step("get_order", {"id": 1, "x": 2}, result='{"status": "pending"}')
    # The very same call (however it is spelled) was made; another order has not been looked at.
    assert run.tracker.would_repeat("get_order", '{"x":2,"id":1}')
    assert not run.tracker.would_repeat("get_order", '{"id": 2}')
    run.step("get_order", {"id": 3}, result=DELIVERED)
    assert run.tracker.would_repeat("get_order", '{"id": 4}')  # that subgoal is done
    run.step("pay", {"amount": 1}, status="error")
    assert not run.tracker.would_repeat("pay", '{"amount": 1}')  # it failed, so trying again is no repeat
    run.step("approve", {})
    assert run.tracker.would_repeat("approve", "{}")
    run.step("revoke", {})
    assert not run.tracker.would_repeat("approve", "{}")  # undone since


def explained(tool: str, arguments: str | None = None, result: str | None = None, subgoal: int = 0, status: Any = "ok"):
    step = Step(index=0, turn=0, tool=tool, arguments_json=arguments, result=result, status=status)
    return {each.field: (each.holds, each.text(), each.text("ja")) for each in why(step, SET.subgoals[subgoal])}


def test_why_a_step_does_not_match():
    found = explained("get_orders", result='{"status": "pending"}', status="error")
    assert {field: holds for field, (holds, _, _) in found.items()} == {
        "tool": False,
        "status": False,
        "result $.status": False,
    }
    assert found["tool"][1] == "The tool must be get_order; it was get_orders."
    assert found["result $.status"][1] == 'result $.status: equals "delivered"; found "pending".'
    assert "get_orders" in found["tool"][2]
    assert "nothing is at this path" in explained("get_order", result="{}")["result $.status"][1]
    assert "no JSON" in explained("get_order", result="gone")["result $.status"][1]
    assert "another kind" in explained("get_order", result='{"status": 5}')["result $.status"][1]


def test_why_a_step_matches():
    found = explained("pay", arguments='{"amount": 3}', subgoal=2)
    assert {field: holds for field, (holds, _, _) in found.items()} == {
        "tool": True,
        "status": True,
        "arguments $.amount": True,
        "after": None,
    }
    assert found["after"][1] == "It counts only after: found, approved."
    step = Step(index=0, turn=0, tool="x")
    assert why(step, SET.subgoals[0], undone=True) == []
