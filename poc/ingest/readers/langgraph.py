"""LangGraph checkpoints in SQLite (``SqliteSaver``): a thread is a run.

``checkpoints(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id,
type, checkpoint, metadata)`` holds the whole state again after every step, so
only the last checkpoint of a thread and namespace is told; earlier ones say
when a message first was there (``ts`` of the state, the end of a step). A call
began when the step that asked for it ended, and parallel calls end together.
``writes(.., task_id, idx, channel, type, value)`` of the last checkpoint are
what its unfinished step did: messages, ``__error__`` (the run failed there)
and ``__interrupt__``. A namespace other than the empty one is a subgraph: what
of its messages the thread itself does not have is told as a subagent's.

Nothing is imported or unpickled to read a value. Records are checkpoints.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from poc.ingest.arguments import ABSENT, from_value
from poc.ingest.readers import database
from poc.ingest.readers.assembly import Assembly, word
from poc.ingest.readers.langgraph_state import State, Unreadable, fields, key_of, plain_value, state_of, unpack
from poc.ingest.readers.nodes import tokens_of
from poc.ingest.readers.said import Asked, messages
from poc.ingest.sources import Source
from poc.trajectory import Message, Reject, Run

NAME = "langgraph"
VERSION = 1
MAGIC = (database.MAGIC,)

_COLUMNS = {"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint"}
_ROWS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata FROM checkpoints"
    " ORDER BY thread_id, checkpoint_ns, checkpoint_id"
)
_PUSHED = re.compile(r"~__pregel_push, (\d+)")
_WRITES = (
    "SELECT channel, type, value, {path} FROM writes WHERE thread_id IS ? AND checkpoint_ns IS ? AND checkpoint_id IS ?"
    " ORDER BY task_id, idx"
)


def sniff(sample: bytes, name: str) -> float:
    """By the table of checkpoints."""
    if not sample.startswith(database.MAGIC):
        return 0.0
    columns = database.tables_in(sample).get("checkpoints", [])
    return 0.97 if set(columns) >= _COLUMNS else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each thread; checkpoints that cannot be read are rejects."""
    with database.opened(source) as db:
        found: _Thread | None = None
        fault: Reject | None = None
        try:
            total = max(1, db.execute("SELECT count(*) FROM checkpoints").fetchone()[0])
            for done, row in enumerate(db.execute(_ROWS), 1):
                source.consumed = source.size * done // total
                if found is None or row[0] != found.thread:
                    if found is not None:
                        yield from found.run(db)
                    found = _Thread(row[0])
                refused = found.checkpoint(row)
                if refused is not None:
                    yield refused
        except database.FAULTS as error:
            fault = Reject(place="table checkpoints", reason=f"the database cannot be read on from here: {error}")
        if found is not None:
            yield from found.run(db)
        if fault is not None:
            yield fault


class _Last(msgspec.Struct):
    """The last checkpoint of a namespace."""

    checkpoint_id: Any
    state: State
    metadata: Any


class _Talk(msgspec.Struct):
    """A message of the run, when it first was there, and whether a subgraph's."""

    fields: dict[str, Any]
    at: Any
    scope: str | None = None


class _Thread:
    def __init__(self, thread: Any) -> None:
        self.thread = thread
        self.records = 0
        self.last: dict[str, _Last] = {}
        self.seen: dict[tuple[str, bytes], Any] = {}
        self.times: list[Any] = []

    def checkpoint(self, row: tuple[Any, ...]) -> Reject | None:
        """One row, in order."""
        _, namespace, checkpoint_id, kind, data, metadata = row
        try:
            state = state_of(unpack(kind, data))
        except Unreadable as error:
            return Reject(place=f"checkpoint {checkpoint_id} of thread {self.thread}", reason=str(error))
        self.records += 1
        self.times.append(state.at)
        space = namespace or ""
        for key in state.keys:
            self.seen.setdefault((space, key), state.at)
        self.last[space] = _Last(checkpoint_id, state, metadata)
        return None

    def run(self, db: sqlite3.Connection) -> Iterator[Run | Reject]:
        """The thread as a run; nothing where none of its checkpoints could be read."""
        if not self.records:
            return
        place = f"thread {self.thread}"
        run = Run(place=place, native_id=word(self.thread), records=self.records, framework="langgraph")
        work = Assembly(run)
        outer = "" if "" in self.last else next(iter(self.last))
        errors: list[tuple[str, str | None]] = []
        told = self._talk(outer)
        for channel, value, path in self._pending(db, outer):
            if channel == "messages":
                listed = value if isinstance(value, list) and not _is_pair(value) else [value]
                known = {key_of(talk.fields) for talk in told}
                told += [_Talk(new, None) for new in map(fields, listed) if key_of(new) not in known]
            elif channel == "__error__":
                errors.append((str(value), self._call_of(path, self.last[outer].state)))
            elif channel == "__interrupt__":
                run.metadata["interrupt"] = plain_value(value)
        yield from self.faults
        for time in self.times:
            work.time(time)
        speaking = _Speaking(work)
        for talk in self._with_subgraphs(told, outer):
            speaking.say(talk)
        if not run.messages:
            raw = ", ".join(self.last[outer].state.others)[:200]
            reason = "the thread's state holds no messages, so what was said and called is not in it"
            yield Reject(place=place, reason=reason, raw=raw or None, records=self.records)
            return
        if errors:
            run.metadata["errors"] = [text for text, _ in errors]
            speaking.failed(errors)
        self._describe(run, self.last[outer])
        yield work.finish()

    def _talk(self, space: str) -> list[_Talk]:
        state = self.last[space].state
        return [
            _Talk(message, self.seen.get((space, key)), space or None)
            for message, key in zip(state.messages, state.keys, strict=True)
        ]

    def _with_subgraphs(self, told: list[_Talk], outer: str) -> list[_Talk]:
        """The messages with those that only a subgraph has, before what the thread says after them."""
        known = {key_of(talk.fields) for talk in told}
        calls = {word(call.get("id")) for talk in told for call in talk.fields.get("tool_calls") or ()}
        inner = [
            talk
            for space in self.last
            if space != outer
            for talk in self._talk(space)
            if key_of(talk.fields) not in known and not _repeats(talk.fields, calls)
        ]
        inner.sort(key=lambda talk: str(talk.at))
        merged: list[_Talk] = []
        for talk in told:
            while inner and talk.at is not None and str(inner[0].at) < str(talk.at):
                merged.append(inner.pop(0))
            merged.append(talk)
        return merged + inner

    @staticmethod
    def _call_of(path: Any, state: State) -> str | None:
        """The call that a task made, where the step sent a task for each call."""
        found = _PUSHED.match(path) if isinstance(path, str) else None
        number = int(found[1]) if found else -1
        return state.asked[number] if 0 <= number < len(state.asked) else None

    def _pending(self, db: sqlite3.Connection, space: str) -> list[tuple[str, Any, Any]]:
        """What the step after the last checkpoint wrote before it ended or failed."""
        self.faults: list[Reject] = []
        found: list[tuple[str, Any, Any]] = []
        key = (self.thread, space, self.last[space].checkpoint_id)
        try:
            columns = {row[1] for row in db.execute("PRAGMA table_info(writes)")}
            rows = db.execute(_WRITES.format(path="task_path" if "task_path" in columns else "NULL"), key).fetchall()
        except database.FAULTS:
            return []  # no such table, or a damaged one
        for channel, kind, value, path in rows:
            try:
                found.append((channel, unpack(kind, value), path))
            except Unreadable as error:
                place = f"write to {channel} after checkpoint {key[2]} of thread {self.thread}"
                self.faults.append(Reject(place=place, reason=str(error), records=0))
        return found

    def _describe(self, run: Run, last: _Last) -> None:
        if last.state.others:
            run.metadata["state"] = last.state.others
        try:
            about = unpack("json", last.metadata)
        except Unreadable:
            return
        if isinstance(about, dict):
            kept = {key: value for key, value in about.items() if key not in ("parents", "writes", "thread_id")}
            run.metadata["last_checkpoint"] = kept


class _Speaking:
    """LangChain messages into an assembly."""

    def __init__(self, work: Assembly) -> None:
        self.work = work
        self.open: dict[str, None] = {}
        self.at: datetime | None = None
        self.turn = 0

    def say(self, talk: _Talk) -> None:
        """One message."""
        told = talk.fields
        at = self.work.time(talk.at)
        meta = told.get("response_metadata")
        if isinstance(meta, dict) and self.work.run.model is None:
            self.work.run.model = word(meta.get("model_name")) or word(meta.get("model"))
        usage = tokens_of(told.get("usage_metadata"))
        speaker = talk.scope.split(":")[0] if talk.scope else None
        for said in messages(told):
            if said.role == "tool":
                self.work.result(said.content, call_id=said.call_id, name=said.name, at=at, failed=said.failed)
                self.open.pop(said.call_id or "", None)
                continue
            made = self.work.message(said.role, said.content, name=said.name or speaker, at=at, usage=usage)
            usage = None
            self._calls([*said.calls, *_invalid(told)], made, at, sub=talk.scope is not None)

    def _calls(self, calls: list[Asked], made: Message, at: datetime | None, *, sub: bool) -> None:
        self.turn += 1
        for call in calls:
            self.work.call(
                call.name,
                ABSENT if call.arguments is None else from_value(call.arguments),
                turn=self.turn,
                call_id=call.call_id,
                message=made,
                at=at,
                caller="subagent" if sub else "agent",
            )
            if call.call_id is not None:
                self.open[call.call_id] = None

    def failed(self, errors: list[tuple[str, str | None]]) -> None:
        """What failed in the step after the last checkpoint: the calls of its tasks, or the only call that waits."""
        for text, call_id in errors:
            if call_id is None and len(errors) == 1 and len(self.open) == 1:
                call_id = next(iter(self.open))
            if call_id in self.open:
                self.work.result(text, call_id=call_id, error=text, has_result=False)


def _invalid(told: dict[str, Any]) -> Iterator[Asked]:
    """Calls whose arguments could not be parsed: the model made them all the same."""
    listed = told.get("invalid_tool_calls")
    for call in listed if isinstance(listed, list) else ():
        if isinstance(call, dict):
            yield Asked(word(call.get("name")), call.get("args"), word(call.get("id")))


def _repeats(told: dict[str, Any], calls: set[str | None]) -> bool:
    """Whether a subgraph's message makes or answers calls that the thread itself has."""
    own = [word(call.get("id")) for call in told.get("tool_calls") or ()] + [word(told.get("tool_call_id"))]
    return any(call is not None and call in calls for call in own)


def _is_pair(value: list[Any]) -> bool:
    return len(value) == 2 and all(isinstance(part, str) for part in value)
