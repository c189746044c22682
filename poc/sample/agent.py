"""The simulated agent: a documented stochastic policy that reads only what stands in the messages.

It stands in for a model where none is at hand. It is no evidence for any
real model: `Temper` is its whole character, chosen so that it fails in ways
that agents do.

**How it decides, turn by turn.** It reads the request, the earlier calls with
their results, and any status text (`poc.sample.status`), then

1. *memory fades*: each earlier finished step is forgotten with probability
   ``1 - memory ** age``, age being the number of turns since; what it forgets
   it looks up, or does, again;
2. *oversight*: each duty that only the house rules demand escapes it for the
   whole trial with probability ``oversight``;
3. *early stop*: after its first step it ends the work with probability
   ``early_stop`` although something is left to do;
4. *wrong turn*: with probability ``wrong_turn`` it makes a call that nobody
   asked for: a needless look-up, the right call with a wrong number, or
   something hasty that changes the world;
5. otherwise it makes the next call that its knowledge of the trade
   (`poc.sample.playbook`) asks for, sometimes two independent look-ups at
   once, or closes with a summary when nothing is left.

**What status text does to it**, in proportion to ``heed`` (h = min(heed, 1)):
a title marked done keeps that step in memory; marked done though it never
was, the step may be skipped; a title marked open brings an overlooked duty
to mind, and may make it redo a finished step or try what it had ruled out;
an open remainder keeps it from stopping early and from straying; "all done"
tempts it to stop. A list without status brings duties to mind less well and
does nothing for memory. A text without marks does nothing. Beyond heed = 1
any text that is put in after the request (and any status text) distracts:
more wrong turns and early stops, the more words the more.

**Chance.** Draws come from ``(seed, number of assistant turns)``, and from
``(seed, trait)`` for what holds a whole trial. The texts do not seed them, so
a nonce changes nothing, and other seeds are independent.

**Calibration.** Success on the 36 replay tasks of the sample with `DEFAULT`
and the text of the sample's subgoal sets as a last message, 720 trials a cell
with seeds of its own
(standard error 0.02; the row `none` and the column 0 are one and the same
behaviour; ``tests/sample/test_sample_agent.py`` holds the pattern):

=========  ========  ========  ========
text       heed = 0  heed = 1  heed = 2
=========  ========  ========  ========
none           0.62      0.57      0.63
plan           0.65      0.75      0.45
progress       0.64      0.86      0.53
placebo        0.62      0.61      0.42
inverted       0.59      0.09      0.05
=========  ========  ========  ========

Knows no arm, no environment, no outcome, no task.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from poc.errors import InputError, did_you_mean
from poc.sample.playbook import KNOWN_TOOLS, Goal, Notes, errand, wanted
from poc.sample.reading import PastCall, Reading, read_messages
from poc.sample.requests import understand
from poc.sample.status import Status, read_status
from poc.sample.strays import stray
from poc.sample.unknown_tools import improvise


class Temper(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's character. All are probabilities in 0..1 except `heed` in 0..2; see the module for what they do."""

    memory: float = 0.965
    """Chance that a finished step is still remembered one turn later."""
    oversight: float = 0.11
    """Chance that a duty escapes the agent for a whole trial."""
    wrong_turn: float = 0.06
    """Chance of a call that nobody asked for, each turn."""
    early_stop: float = 0.04
    """Chance of ending too early, each turn after the first step."""
    heed: float = 1.0
    """How much status text counts: 0 not at all, 1 well, beyond that it distracts."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            top = 2.0 if name == "heed" else 1.0
            if not 0.0 <= getattr(self, name) <= top:
                raise InputError(f"'{name}' of the simulated agent must lie between 0 and {top:g}.", where=name)

    def changed(self, text: str) -> Temper:
        """This temper with ``name=value`` pairs (comma-separated) put in. Raises `InputError` for what is no dial."""
        values: dict[str, float] = {}
        for pair in filter(None, text.split(",")):
            name, _, value = pair.partition("=")
            if name not in self.__struct_fields__:
                raise InputError(
                    f"The simulated agent has no dial '{name}'.{did_you_mean(name, self.__struct_fields__)}", where=text
                )
            try:
                values[name] = float(value)
            except ValueError:
                raise InputError(f"'{value}' is no number for the dial '{name}'.", where=text) from None
        return msgspec.structs.replace(self, **values)


DEFAULT = Temper()


class AgentCall(msgspec.Struct, frozen=True):
    """A tool call that the agent makes."""

    name: str
    arguments: dict[str, Any]


class Reply(msgspec.Struct, frozen=True):
    """One turn of the agent: calls, or a closing text. `unknown_tools`: it improvised on tools it does not know."""

    content: str | None
    calls: tuple[AgentCall, ...] = ()
    unknown_tools: bool = False


# How strongly a full heed changes things; see the module's docstring.
_REVEAL_OPEN, _REVEAL_LISTED = 0.85, 0.45
_STEADY_OPEN, _STEADY_LISTED = 0.75, 0.4
_HOLD = 0.9
_TRUST_DONE = 0.4
_DOUBT_OPEN = 0.35
_PRESS = 0.06
_ALL_DONE = 0.3
_STRAY_LESS = 0.4
_DISTRACT_TURN, _DISTRACT_STOP, _DISTRACT_WORDS = 0.15, 0.08, 40
_IN_PARALLEL = 0.3
_REDO_LIMIT = 2


def respond(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    *,
    seed: int,
    temper: Temper = DEFAULT,
    tool_choice: str | Mapping[str, Any] | None = None,
    parallel: bool = True,
) -> Reply:
    """The agent's next turn.

    messages, tools: as in a chat-completions request. tool_choice: ``auto``,
    ``none``, ``required`` or a named function, as there. The same seed and
    the same messages (whatever stands in a nonce) give the same turn.
    """
    reading = read_messages(messages)
    offered = {str(tool["function"]["name"]): tool["function"] for tool in tools if "function" in tool}
    choice = tool_choice or "auto"
    forced = choice["function"]["name"] if isinstance(choice, Mapping) else None
    if forced is not None:
        offered = {forced: offered[forced]} if forced in offered else offered
    if not offered or choice == "none":
        return Reply("I cannot do more here without tools.")
    must_call = choice == "required" or forced is not None
    rng = random.Random(f"{seed}:{reading.turn}")
    # An agent of another trade: half of the tools must be familiar before it goes by what it knows.
    if 2 * sum(name in KNOWN_TOOLS for name in offered) < len(offered):
        calls = improvise(reading, offered, rng, must_call=must_call)
        return Reply(
            None if calls else "That is all I can do.", tuple(AgentCall(*call) for call in calls), unknown_tools=True
        )
    goals = _Mind(reading, offered, seed, rng, temper).choose(parallel=parallel, must_call=must_call)
    if not goals:
        return Reply("I have finished with this request. " + _closing(reading))
    return Reply(None, tuple(AgentCall(goal.tool, goal.arguments) for goal in goals))


def _closing(reading: Reading) -> str:
    changes = sum(call.succeeded for call in reading.calls)
    return f"{changes} of {len(reading.calls)} calls went through."


class _Mind:
    """One turn's thinking."""

    def __init__(
        self, reading: Reading, offered: dict[str, Any], seed: int, rng: random.Random, temper: Temper
    ) -> None:
        self.reading, self.offered, self.seed, self.rng, self.temper = reading, offered, seed, rng, temper
        self.heed = min(temper.heed, 1.0)
        self.status: Status = read_status(
            reading.asides, {name: str(tool.get("description") or "") for name, tool in offered.items()}
        )
        words = max(reading.late_words, self.status.words)
        self.distraction = max(temper.heed - 1.0, 0.0) * min(words / _DISTRACT_WORDS, 1.0)
        self.request = understand(reading.request)
        self.notes = Notes(call for call in reading.calls if self._remembers(call))

    def choose(self, *, parallel: bool, must_call: bool) -> list[Goal]:
        """The calls of this turn; none means to close."""
        todo = self._todo()
        if must_call and not todo:
            todo = [self._stray(None)]
        if not must_call and reading_has_steps(self.reading) and self.rng.random() < self._stop_chance(bool(todo)):
            return []
        if not todo:
            return self._pressed()
        if self.rng.random() < self._stray_chance():
            return [self._stray(todo[0])]
        both = parallel and len(todo) > 1 and todo[0].tool == todo[1].tool == "get_order"
        return todo[:2] if both and self.rng.random() < _IN_PARALLEL else todo[:1]

    def _todo(self) -> list[Goal]:
        goals = [g for g in wanted(self.request, self.notes, self._overlooked()) if g.tool in self.offered]
        todo = [g for g in goals if g.key not in self.notes.done and not self._blocked(g)]
        todo = [g for g in todo if not self._believed_done(g)]
        redo = self._doubted(goals, {g.tool for g in todo})
        return [redo, *todo] if redo else todo

    def _trait(self, name: str) -> float:
        """A draw that holds for the whole trial."""
        return random.Random(f"{self.seed}:trait:{name}").random()

    def _remembers(self, call: PastCall) -> bool:
        age = self.reading.turn - 1 - call.turn
        forget = 1.0 - self.temper.memory**age
        if call.tool in self.status.done:
            forget *= 1.0 - _HOLD * self.heed
        return self.rng.random() >= forget

    def _overlooked(self) -> frozenset[str]:
        def chance(tool: str) -> float:
            seen = _REVEAL_OPEN if tool in self.status.open else _REVEAL_LISTED if tool in self.status.listed else 0.0
            return self.temper.oversight * (1.0 - seen * self.heed)

        told = " ".join(self.notes.failed.values()).lower()
        return frozenset(
            tool
            for tool in self.offered
            if self._trait(tool) < chance(tool) and not (tool == "open_claim" and "claim" in told)
        )

    def _blocked(self, goal: Goal) -> bool:
        """Tried, and refused for a reason that trying again does not mend."""
        why = self.notes.failed.get(goal.key)
        return why is not None and not (
            "claim" in why and goal.tool == "send_replacement" and any(k[0] == "open_claim" for k in self.notes.done)
        )

    def _believed_done(self, goal: Goal) -> bool:
        """Marked done, though nothing of the kind was ever done: it may believe the mark."""
        if goal.tool not in self.status.done or any(c.tool == goal.tool and c.succeeded for c in self.reading.calls):
            return False
        return self._trait(f"trust:{goal.tool}") < _TRUST_DONE * self.heed

    def _doubted(self, goals: list[Goal], unfinished: set[str]) -> Goal | None:
        """A finished step that the status calls open, and that it therefore does again."""
        for goal in goals:
            if goal.tool not in self.status.open or goal.tool in unfinished or goal.key not in self.notes.done:
                continue
            often = sum(errand(call.tool, call.arguments) == goal.key for call in self.reading.calls)
            if often < _REDO_LIMIT and self._trait(f"doubt:{self.reading.turn}:{goal.key}") < _DOUBT_OPEN * self.heed:
                return goal
        return None

    def _stop_chance(self, work_left: bool) -> float:
        if not work_left:
            return 0.0
        steady, all_done = 0.0, 0.0
        if self.status.left:
            steady = _STEADY_OPEN
        elif self.status.left == 0:
            all_done = _ALL_DONE
        elif self.status.listed:
            steady = _STEADY_LISTED
        return (
            self.temper.early_stop * (1.0 - steady * self.heed)
            + all_done * self.heed
            + _DISTRACT_STOP * self.distraction
        )

    def _stray_chance(self) -> float:
        steady = _STRAY_LESS if self.status.open else 0.0
        return self.temper.wrong_turn * (1.0 - steady * self.heed) + _DISTRACT_TURN * self.distraction

    def _stray(self, goal: Goal | None) -> Goal:
        return stray(self.request, self.notes, self.offered, goal, self.rng)

    def _pressed(self) -> list[Goal]:
        """Nothing is left by its own lights, but the list says otherwise: it may try what it had ruled out."""
        tried = {call.tool for call in self.reading.calls}
        for tool in sorted(self.status.open - tried):
            if self.rng.random() < _PRESS * self.heed + _PRESS * self.distraction:
                return [stray(self.request, self.notes, {tool: self.offered[tool]}, None, self.rng)]
        return []


def reading_has_steps(reading: Reading) -> bool:
    """Whether any call was made so far."""
    return bool(reading.calls)
