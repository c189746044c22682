"""A run out of the nodes of one trace.

The conversation is put together from what the model calls were asked and what
they answered; history that every request repeats is said once. Calls are
those that the model's answers hold and those that tool spans show, each
counted once: paired by id, else by name and arguments in order of time. A call
that only stands in the history of the first request was made before this
trace began and stays a message. Knows nodes, no format.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from poc.ingest.arguments import Arguments
from poc.ingest.jsonstream import compact
from poc.ingest.readers.chat_messages import UNNAMED
from poc.ingest.readers.heard import Heard, canonical
from poc.ingest.readers.nodes import Node, Score, called_with, outcome, schemas, verdict
from poc.ingest.readers.said import Asked, Said
from poc.ingest.readers.trace_tree import Tree
from poc.ingest.readers.trace_whole import conclude, metadata
from poc.trajectory import Caller, Message, Run, Step, ToolSchema

_SLACK = timedelta(seconds=1)
"""Clocks of two processes may differ: a tool may seem to start so much before the answer that called it."""
_EMPTY = (None, "", "{}", "null")


class _Call(msgspec.Struct):
    """A call in the making."""

    tool: str | None
    arguments: Arguments
    scope: Hashable
    turn: int
    time: datetime | None
    call_id: str | None = None
    message: Message | None = None
    node: Node | None = None
    answer: Message | None = None
    answered: Said | None = None
    caller: Caller = "agent"


class _Turn(msgspec.Struct):
    time: datetime | None
    position: int
    calls: list[_Call] = []


def build(
    nodes: list[Node],
    *,
    place: str,
    native_id: str | None,
    records: int,
    task_text: Callable[[], str | None] | None = None,
    metadata: dict[str, Any] | None = None,
    scores: list[Score] | None = None,
    framework: str | None = None,
) -> Run:
    """The run that a trace shows. `task_text` is asked where no model call says what was asked."""
    return _Building(nodes, Run(place=place, native_id=native_id, records=records, framework=framework)).run_of(
        task_text, metadata or {}, scores or []
    )


class _Building:
    def __init__(self, nodes: list[Node], run: Run) -> None:
        self.run = run
        self.tree = Tree(nodes)
        self.calls: list[_Call] = []
        self.by_id: dict[tuple[Hashable, str], list[_Call]] = {}
        self.turns: list[_Turn] = []
        self.turn_of: dict[int, int] = {}
        self.heard: dict[Hashable, Heard] = {}
        self.delegated: dict[Hashable, bool] = {}
        self.schemas: dict[str, ToolSchema] = {}
        self.schemas_seen: set[str] = set()
        self.earlier = 0

    def run_of(self, task_text: Callable[[], str | None] | None, given: dict[str, Any], scores: list[Score]) -> Run:
        tree, run = self.tree, self.run
        for node in tree.calls:
            self._model_call(node)
        if not run.messages:  # content was kept by agents only, or there is no model call at all
            for node in tree.agents:
                if tree.scope(node) is None or tree.scope(node) not in tree.agents:
                    self._model_call(node, steps=not tree.calls)
        self._tools()
        self._steps()
        for node in tree.nodes:
            if node.schemas is not None:
                self._describe(node.schemas)
        run.tools = list(self.schemas.values())
        main = [node for node in tree.calls if not self._is_delegated(self._key(node), tree.scope(node))]
        conclude(run, tree, main, task_text)
        run.outcome = outcome(scores)
        run.metadata = metadata(tree, given, scores, self.earlier)
        return run

    # Model calls -----------------------------------------------------------------------------------------

    def _model_call(self, node: Node, *, steps: bool = True) -> None:
        scope = self.tree.scope(node)
        key: Hashable = None if scope is None else scope.position
        by_subagent = self._is_delegated(key, scope)
        speaker = (scope.agent if scope is not None else None) if by_subagent else None
        asked, answer = node.content() if node.content is not None else ([], [])
        begins = key not in self.heard
        heard = self.heard.setdefault(key, Heard())
        turn = len(self.turns)
        self.turns.append(_Turn(node.end or node.start, node.position))
        self.turn_of[node.position] = turn
        for said in heard.new(asked):
            self._hear(said, node, key, turn, speaker, begins=begins)
        for said in answer:
            heard.add(said)
            message = self._say(said, node.end or node.start, speaker)
            if said.role == "tool":
                self._answer(said, message, key)
            elif steps:
                for call in said.calls:
                    self._called(call, message, key, turn, node.end or node.start, by_subagent)
        if answer and node.kind == "llm":
            spoken = next((m for m in reversed(self.run.messages) if m.role == "assistant"), None)
            if spoken is not None and spoken.usage is None:
                spoken.usage, spoken.cost_usd = node.usage, node.cost_usd

    def _hear(self, said: Said, node: Node, key: Hashable, turn: int, speaker: str | None, *, begins: bool) -> None:
        """A message of a request that has not been seen yet."""
        message = self._say(said, node.start, speaker)
        if said.role == "tool":
            self._answer(said, message, key)
        elif said.calls and not begins:
            # A model call that is not in this log (sampled away, or without content) made these.
            for call in said.calls:
                self._called(call, message, key, turn - 1, node.start, self.delegated.get(key, False))
        elif said.calls:
            self.earlier += len(said.calls)
            told = compact([{"name": c.name, "arguments": c.arguments, "call_id": c.call_id} for c in said.calls])
            message.content = f"{message.content}\n{told}" if message.content else told

    def _say(self, said: Said, at: datetime | None, speaker: str | None) -> Message:
        message = Message(
            seq=len(self.run.messages), role=said.role, content=said.content, name=said.name or speaker, sent_at=at
        )
        self.run.messages.append(message)
        return message

    def _called(
        self, call: Asked, message: Message, key: Hashable, turn: int, at: datetime | None, by_subagent: bool
    ) -> None:
        made = _Call(
            call.name,
            called_with(call.arguments),
            key,
            turn,
            at,
            call_id=call.call_id,
            message=message,
            caller="subagent" if by_subagent else "agent",
        )
        self.calls.append(made)
        self.turns[turn].calls.append(made)
        if made.call_id is not None:
            self.by_id.setdefault((key, made.call_id), []).append(made)

    def _answer(self, said: Said, message: Message, key: Hashable) -> None:
        """The message that answers a call: by id, else the first open call of that name, else of any."""
        found: _Call | None = None
        if said.call_id is not None:
            found = next((call for call in self.by_id.get((key, said.call_id), ()) if call.answer is None), None)
        if found is None:
            found = next(
                (
                    call
                    for call in self.calls
                    if call.answer is None
                    and call.scope == key
                    and (said.call_id is None or call.call_id is None)
                    and (said.name is None or call.tool == said.name)
                ),
                None,
            )
        if found is not None:
            found.answer, found.answered = message, said

    # Tool calls ------------------------------------------------------------------------------------------

    def _tools(self) -> None:
        waiting: list[Node] = []
        by_id: dict[str, list[_Call]] = {}
        for call in self.calls:
            if call.call_id is not None:
                by_id.setdefault(call.call_id, []).append(call)
        for node in self.tree.tools:
            same = [call for call in by_id.get(node.call_id or "", ()) if call.node is None]
            near = [call for call in same if call.scope == self._key(node)] or same
            if near:
                near[0].node = node
            else:
                waiting.append(node)
        last_alone: Node | None = None
        for node in waiting:
            call = self._likely(node)
            if call is not None:
                call.node = node
                continue
            scope = self.tree.scope(node)
            key = self._key(node)
            turn = self._turn_for(node, key)
            if turn is None:
                alongside = (
                    last_alone is not None
                    and self._key(last_alone) == key
                    and last_alone.end is not None
                    and node.start is not None
                    and node.start < last_alone.end
                )
                turn = len(self.turns) - 1 if alongside else len(self.turns)
                if not alongside:
                    self.turns.append(_Turn(node.start, node.position))
                last_alone = node
            caller: Caller = "subagent" if self._is_delegated(key, scope) else "agent"
            made = _Call(node.name, node.arguments, key, turn, node.start, node=node, caller=caller)
            self.turns[turn].calls.append(made)
            self.calls.append(made)

    def _likely(self, node: Node) -> _Call | None:
        """The call that a tool span without a shared id carried out."""
        key = self._key(node)
        free = [
            call
            for call in self.calls
            if call.node is None
            and call.message is not None
            and not (call.time is not None and node.start is not None and node.start + _SLACK < call.time)
        ]
        if not free:
            return None
        wanted = canonical(node.arguments)
        named = [call for call in free if call.tool == node.name]
        for candidates in ([call for call in named if call.scope == key], named):
            exact = [call for call in candidates if wanted is not None and canonical(call.arguments) == wanted]
            if exact:
                return exact[0]
            loose = [
                call
                for call in candidates
                if call.scope == key and (call.call_id is None or node.call_id is None) and wanted is None
            ]
            if loose:
                return loose[0]
        if named and (alone := [call for call in named if call.scope == key]) and node.call_id is None:
            return alone[0]  # arguments may have got defaults on the way
        other = [call for call in free if call.scope == key and canonical(call.arguments) == wanted]
        return other[0] if wanted not in (None, "{}") and len(other) == 1 else None

    def _turn_for(self, node: Node, key: Hashable) -> int | None:
        """The turn of the model call that came last before a tool call in its conversation."""
        above = self.tree.above(node)
        if above is not None and above.kind == "llm" and above.position in self.turn_of:
            return self.turn_of[above.position]
        found: int | None = None
        for call in self.tree.calls:
            if node.start is not None and call.start is not None and call.start > node.start:
                break
            if self._key(call) == key:
                found = self.turn_of.get(call.position, found)
        return found

    def _steps(self) -> None:
        def when(numbered: tuple[int, _Turn]) -> tuple[bool, Any, int]:
            number, turn = numbered
            times = [call.node.start for call in turn.calls if call.node is not None and call.node.start is not None]
            time = min(times) if times else turn.time
            return (time is None, time, number)

        number = 0
        for _, turn in sorted(enumerate(self.turns), key=when):
            if not turn.calls:
                continue
            for ordinal, call in enumerate(turn.calls):
                self.run.steps.append(self._step(call, number, ordinal))
            number += 1

    def _step(self, call: _Call, turn: int, ordinal: int) -> Step:
        node = call.node
        arguments = call.arguments
        if node is not None and (arguments[1] is None or arguments[2] == "absent") and node.arguments[1] is not None:
            arguments = node.arguments
        step = Step(
            index=len(self.run.steps),
            turn=turn,
            ordinal=ordinal,
            tool=call.tool or (node.name if node is not None else None) or UNNAMED,
            call_id=call.call_id or (node.call_id if node is not None else None),
            arguments_raw=arguments[0],
            arguments_json=arguments[1],
            arguments_status=arguments[2],
            started_at=call.time if node is None else node.start,
            caller=call.caller,
            message_seq=None if call.message is None else call.message.seq,
        )
        said = call.answered
        has_result, text, failed, error = False, None, None, None
        if node is not None:
            has_result, text, failed, error = node.has_result, node.result, node.failed, node.error
            step.ended_at, step.duration_s, step.execution_id = node.end, node.duration_s, node.id
        if said is not None and (not has_result or (text in _EMPTY and said.content)):
            # Some tracers note an empty object where the model got a real answer.
            has_result, text = True, said.content
        if said is not None and said.failed is not None and failed is not True:
            failed = said.failed
        step.status, step.status_evidence = verdict(has_result, text, failed, error)
        if text is None and not has_result and failed and error is not None:
            text = error
        step.result = text
        if call.answer is not None:
            step.result_seq = call.answer.seq
            if call.answer.content == text:
                call.answer.content = None
        return step

    def _describe(self, raw: Any) -> None:
        text = raw if isinstance(raw, str) else repr(raw)
        if text in self.schemas_seen:
            return
        self.schemas_seen.add(text)
        for tool in schemas(raw):
            known = self.schemas.setdefault(tool.name, tool)
            known.parameters = known.parameters or tool.parameters
            known.description = known.description or tool.description

    def _key(self, node: Node) -> Hashable:
        scope = self.tree.scope(node)
        return None if scope is None else scope.position

    def _is_delegated(self, key: Hashable, scope: Node | None) -> bool:
        if key not in self.delegated:
            self.delegated[key] = self.tree.delegated(scope)
        return self.delegated[key]
