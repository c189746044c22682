"""Which result belongs to which call.

By (id, nth occurrence) first: ids may be missing, constant or used again in
one run. Then by position: results that carry no id answer the calls just
before them, by tool name where given, else in order. Where fewer results than
calls came, the latest turns are answered first (an older call was left without
a result). Knows no format; works on `Step` records.
"""

from __future__ import annotations

import msgspec

from poc.trajectory import Step


class _Result(msgspec.Struct, gc=False):
    """A result that waits until it is known what else comes."""

    place: int
    call_id: str | None
    name: str | None


class Pairing:
    """Feed calls and results in the order of the log, then call `finish`.

    `pairs` holds (step, place of the result); results that answer no call are
    in `orphans`.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[Step, int]] = []
        self.orphans: list[int] = []
        self._open: dict[str, list[Step]] = {}
        """Unanswered calls by id; an id without any is not in it."""
        self._block: list[Step] = []
        self._waiting: list[_Result] = []
        self._answered: set[int] = set()
        self._answering = False

    def call(self, step: Step) -> None:
        """A call was made."""
        if self._answering:
            self._settle()
        self._block.append(step)
        if step.call_id is not None:
            same = self._open.get(step.call_id)
            if same is None:
                self._open[step.call_id] = [step]
            else:
                same.append(step)

    def result(self, place: int, call_id: str | None = None, name: str | None = None) -> None:
        """A result came; `place` is the caller's own key for it."""
        self._answering = True
        # One open call of that id is the usual case, beyond doubt: no need to wait for what else comes.
        if call_id is not None and len(same := self._open.get(call_id, ())) == 1:
            del self._open[call_id]
            self._answered.add(same[0].index)
            self.pairs.append((same[0], place))
        else:
            self._waiting.append(_Result(place, call_id, name))

    def finish(self) -> None:
        """No more of this run will come."""
        self._settle()

    def _settle(self) -> None:
        """Pair the results that came between two stretches of calls."""
        waiting, self._waiting = self._waiting, []
        block, self._block = self._block, []
        self._answering = False
        if not waiting:
            return
        by_id: dict[str, list[_Result]] = {}
        rest: list[_Result] = []
        for result in waiting:
            if result.call_id is not None and result.call_id in self._open:
                by_id.setdefault(result.call_id, []).append(result)
            else:
                rest.append(result)
        for call_id, results in by_id.items():
            steps = _latest_turns(self._open[call_id], len(results))
            for step, result in zip(steps, results, strict=False):
                self._match(step, result)
            rest.extend(results[len(steps) :])
        if rest:
            rest.sort(key=lambda result: result.place)
            self._by_position([step for step in block if step.index not in self._answered], rest)

    def _by_position(self, free: list[Step], results: list[_Result]) -> None:
        nameless: list[_Result] = []
        for position, result in enumerate(results):
            if result.name is None:
                nameless.append(result)
                continue
            same = [step for step in free if step.tool == result.name and _may(step, result)]
            if not same:
                self.orphans.append(result.place)
                continue
            still_to_come = sum(other.name == result.name for other in results[position:])
            step = _latest_turns(same, still_to_come)[0]
            free.remove(step)
            self._match(step, result)
        # Where both sides carry ids that differ, position is trusted only if nothing is left over.
        exact = len(nameless) == len(free)
        answered = _latest_turns(free, len(nameless))
        for step, result in zip(answered, nameless, strict=False):
            if exact or _may(step, result):
                self._match(step, result)
            else:
                self.orphans.append(result.place)
        self.orphans.extend(result.place for result in nameless[len(answered) :])

    def _match(self, step: Step, result: _Result) -> None:
        self._answered.add(step.index)
        if step.call_id is not None:
            left = [other for other in self._open[step.call_id] if other is not step]
            if left:
                self._open[step.call_id] = left
            else:
                del self._open[step.call_id]
        self.pairs.append((step, result.place))


def _may(step: Step, result: _Result) -> bool:
    return step.call_id is None or result.call_id is None


def _latest_turns(steps: list[Step], count: int) -> list[Step]:
    """The open calls that `count` results answer: whole turns from the latest back, in order."""
    if count >= len(steps):
        return list(steps)
    if count == 0:
        return []
    start = len(steps) - count
    while start > 0 and steps[start - 1].turn == steps[start].turn:
        start -= 1
    return steps[start : start + count]
