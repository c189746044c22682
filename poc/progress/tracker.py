"""Progress of one run while it happens: a state machine over the subgoals of its set.

After each step of the agent (steps of a simulated user change nothing):

- an open subgoal is *achieved* when the step satisfies `done_when` and every
  subgoal in its `after` was first achieved at an earlier step;
- an achieved subgoal is *undone* when the step satisfies `undone_when`; it is
  open again and may be achieved anew. A step that satisfies both leaves it open;
- an undone subgoal still counts as achieved once for those that come after it.

`poc.progress.score` does the same for whole logs in SQL; a property test
holds that both agree step by step.

`ProgressRecord` is internal and holds everything. Only `ProgressView`, which
`Tracker.view` makes, may reach a model. Knows no table and no model.
"""

from __future__ import annotations

import json

import msgspec

from poc.errors import InputError
from poc.progress.share import share
from poc.progress.view import ProgressView, SubgoalView
from poc.subgoals import Facts, Predicate, Subgoal, SubgoalSet
from poc.trajectory import Step


class ProgressRecord(msgspec.Struct, frozen=True):
    """Everything known after one step; internal, never rendered.

    `achieved` and `undone` are the subgoal ids that changed at this step,
    `done` those achieved now. `current` (falls when a subgoal is undone) and
    `high_water` (never falls) are weighted shares, 0..1; `gain` is the change
    of `current` made by this step.
    """

    step: Step
    achieved: tuple[str, ...]
    undone: tuple[str, ...]
    done: tuple[str, ...]
    current: float
    high_water: float
    gain: float


class _State:
    """One subgoal with its compiled conditions and what has happened to it."""

    __slots__ = ("done", "done_when", "first", "subgoal", "undone_at", "undone_when")

    def __init__(self, subgoal: Subgoal) -> None:
        self.subgoal = subgoal
        self.done_when = Predicate(subgoal.done_when)
        self.undone_when = None if subgoal.undone_when is None else Predicate(subgoal.undone_when)
        self.done = False
        self.first: int | None = None
        self.undone_at: int | None = None

    def is_undone_by(self, facts: Facts) -> bool:
        return self.undone_when is not None and self.undone_when.matches(facts)


class Tracker:
    """Follows one run. Give it every step in order; a resumed run is followed by giving it the past steps again."""

    def __init__(self, subgoal_set: SubgoalSet) -> None:
        self.subgoal_set = subgoal_set
        self.current = 0.0
        self.high_water = 0.0
        self._states = [_State(subgoal) for subgoal in subgoal_set.subgoals]
        self._by_id = {state.subgoal.id: state for state in self._states}
        self._last: int | None = None
        self._made: dict[tuple[str, str | None], int] = {}

    def observe(self, step: Step) -> ProgressRecord:
        """Take in the next step. Raises `InputError` when its `index` does not come after the last one's."""
        if self._last is not None and step.index <= self._last:
            raise InputError(
                f"Step {step.index} cannot follow step {self._last}.",
                where=f"tool {step.tool}",
                todo="Give the steps of one run in order, each once; start a new tracker for another run.",
            )
        self._last = step.index
        achieved: list[str] = []
        undone: list[str] = []
        if step.caller != "user":
            facts = Facts.of(step)
            for state in self._states:
                if state.done:
                    if state.is_undone_by(facts):
                        undone.append(state.subgoal.id)
                elif (
                    self._may_count(state, step.index)
                    and state.done_when.matches(facts)
                    and not state.is_undone_by(facts)
                ):
                    achieved.append(state.subgoal.id)
            self._apply(step, achieved, undone)
        before = self.current
        self.current = share(self.subgoal_set, self.done)
        self.high_water = max(self.high_water, self.current)
        return ProgressRecord(
            step=step,
            achieved=tuple(achieved),
            undone=tuple(undone),
            done=self.done,
            current=self.current,
            high_water=self.high_water,
            gain=self.current - before,
        )

    def view(self) -> ProgressView:
        """What may be shown to the model now: titles, done or not, and the current share."""
        return ProgressView(
            subgoals=tuple(SubgoalView(title=state.subgoal.title, done=state.done) for state in self._states),
            fraction=self.current,
        )

    @property
    def done(self) -> tuple[str, ...]:
        """Ids of the subgoals achieved now, in the order of the set."""
        return tuple(state.subgoal.id for state in self._states if state.done)

    @property
    def open_required(self) -> tuple[str, ...]:
        """Ids of the required subgoals that are open now; empty when the task looks done."""
        return tuple(state.subgoal.id for state in self._states if state.subgoal.required and not state.done)

    def would_advance(self, tool: str, arguments_json: str | None) -> list[str]:
        """Open subgoals that a call could achieve if made now.

        Judged by tool and arguments; status and result are not known yet and
        count as possible. Subgoals whose `after` is not yet met do not count.
        """
        facts = Facts(tool, "no_result", arguments_json, None)
        upcoming = 0 if self._last is None else self._last + 1
        return [
            state.subgoal.id
            for state in self._states
            if not state.done and self._may_count(state, upcoming) and state.done_when.possible(facts)
        ]

    def would_repeat(self, tool: str, arguments_json: str | None) -> bool:
        """Whether a call would do again what is done.

        That is when its tool and arguments fit an achieved subgoal and no open
        one, or when the very same call (arguments compared as JSON) already
        succeeded; the latter not if a subgoal that it could achieve has been
        undone since.
        """
        facts = Facts(tool, "no_result", arguments_json, None)
        fitting = [state for state in self._states if state.done_when.possible(facts)]
        made = self._made.get((tool, _canonical(arguments_json)))
        if made is not None and not any(
            not state.done and state.undone_at is not None and state.undone_at > made for state in fitting
        ):
            return True
        return any(state.done for state in fitting) and all(state.done for state in fitting)

    def _may_count(self, state: _State, index: int) -> bool:
        """Whether everything that must come before was first achieved at an earlier step than `index`."""
        for other in state.subgoal.after:
            first = self._by_id[other].first
            if first is None or first >= index:
                return False
        return True

    def _apply(self, step: Step, achieved: list[str], undone: list[str]) -> None:
        for name in achieved:
            state = self._by_id[name]
            state.done = True
            if state.first is None:
                state.first = step.index
        for name in undone:
            state = self._by_id[name]
            state.done = False
            state.undone_at = step.index
        if step.status == "ok":
            self._made[(step.tool, _canonical(step.arguments_json))] = step.index


def _canonical(arguments_json: str | None) -> str | None:
    """Arguments so that key order and spacing do not matter; text that is no JSON stays as it is."""
    if arguments_json is None:
        return None
    try:
        return json.dumps(json.loads(arguments_json), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments_json
