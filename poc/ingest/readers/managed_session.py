"""One session of an Anthropic managed agent out of its events.

Calls: ``agent.tool_use``, ``agent.mcp_tool_use``, ``agent.custom_tool_use``
with ``name`` and ``input``; their results name the call's event id in
``tool_use_id``, ``mcp_tool_use_id`` or ``custom_tool_use_id``
(``user.custom_tool_result``). A denied ``user.tool_confirmation`` fails its
call. Calls of one model request (``span.model_request_start`` .. ``_end``) are
one turn; the end has its tokens, which leave out cached input, added here.
Events of a thread that ``session.thread_created`` named are a subagent's.
Outcome: the last ``span.outcome_evaluation_end`` (a grader with a rubric, apart
from the agent): ``satisfied`` is success, ``needs_revision`` and
``max_iterations_reached`` are none, others say nothing. Other event types are
passed over.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest.arguments import from_raw
from poc.ingest.readers import anthropic_blocks as blocks
from poc.ingest.readers.assembly import Assembly, anthropic_usage, word
from poc.ingest.readers.responses_items import schemas
from poc.ingest.times import parse_time
from poc.trajectory import Caller, Message, Outcome, Run

_CALLS = frozenset({"agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"})
_RESULTS = frozenset({"agent.tool_result", "agent.mcp_tool_result", "user.custom_tool_result"})
_VERDICTS = {"satisfied": 1.0, "needs_revision": 0.0, "max_iterations_reached": 0.0}


class Event(msgspec.Struct, gc=False):
    """One event, or the session that it belongs to; unknown fields are passed over."""

    type: Any = None
    id: Any = None
    session_id: Any = None
    processed_at: Any = None
    created_at: Any = None
    content: Any = None
    name: Any = None
    input: Raw = Raw(b"")
    tool_use_id: Any = None
    mcp_tool_use_id: Any = None
    custom_tool_use_id: Any = None
    is_error: Any = None
    result: Any = None
    explanation: Any = None
    description: Any = None
    deny_message: Any = None
    model_usage: Any = None
    model_request_start_id: Any = None
    session_thread_id: Any = None
    agent_name: Any = None
    stop_reason: Any = None
    error: Any = None
    agent: Any = None
    title: Any = None
    usage: Any = None
    outcome_evaluations: Any = None
    events: Raw = Raw(b"")
    data: Raw = Raw(b"")

    @property
    def answers(self) -> str | None:
        """The call that a result or a confirmation is about."""
        return word(self.tool_use_id) or word(self.mcp_tool_use_id) or word(self.custom_tool_use_id)


decode_event = msgspec.json.Decoder(Event).decode


class Session:
    """Put the events into `events` in the order of the log, then call `finish`."""

    def __init__(self, place: str) -> None:
        self.run = Run(place=place, records=0, framework="anthropic-managed-agents")
        self.events: list[Event] = []
        self._assembly = Assembly(self.run)
        self._requests = 0
        self._turn: dict[str | None, Hashable] = {}
        self._message: dict[str | None, Message] = {}
        self._agents: dict[str, str] = {}
        """Names of subagents by their thread."""
        self._denied: dict[str, str | None] = {}
        self._answered: set[str] = set()
        self._spent: Any = None

    def finish(self) -> Run:
        """The run; a call that was denied without a result of its own has failed."""
        run = self.run
        for event in self._once():
            self._event(event)
        for call_id, message in self._denied.items():
            if call_id not in self._answered:
                self._assembly.result(message, call_id=call_id, failed=True, has_result=message is not None)
        if self._agents:
            run.metadata["subagents"] = list(dict.fromkeys(self._agents.values()))
        self._assembly.finish()
        spent = anthropic_usage(self._spent)
        if run.usage is None and spent is not None and spent.input_tokens:
            run.usage = spent  # the session's own totals, where no request says what it took
        return run

    def _once(self) -> list[Event]:
        """The events in order of time, each once: what was sent has no id; it comes back in the stream with one."""
        times = [time for event in self.events if (time := parse_time(event.processed_at)[0]) is not None]
        ordered = self.events
        if times and times[0] > times[-1]:  # newest first; the session itself goes before all
            turned = ordered[::-1]
            ordered = [event for event in turned if event.agent] + [event for event in turned if not event.agent]
        back: list[Any] = [_told(event) for event in ordered if word(event.id) is not None]
        seen: set[str] = set()
        kept: list[Event] = []
        for event in ordered:
            event_id = word(event.id)
            if event_id is None:
                told = _told(event)
                if told in back:
                    back.remove(told)
                    continue
            elif event_id in seen and event.agent is None:
                continue
            else:
                seen.add(event_id)
            kept.append(event)
        return kept

    def _event(self, event: Event) -> None:
        at = self._assembly.time(event.processed_at or event.created_at)
        kind = word(event.type)
        thread = word(event.session_thread_id)
        thread = thread if thread in self._agents else None
        if isinstance(event.agent, dict) and kind in (None, "session"):
            self._agent(event, event.agent)
        elif kind in ("user.message", "system.message"):
            self._assembly.message("user" if kind == "user.message" else "system", _text(event), at=at)
            self._message.pop(thread, None)
        elif kind == "user.define_outcome":
            self._assembly.message("user", word(event.description) or _text(event), at=at)
        elif kind == "agent.message":
            name = None if thread is None else self._agents[thread]
            self._message[thread] = self._assembly.message("assistant", _text(event), name=name, at=at)
        elif kind == "span.model_request_start":
            self._requests += 1
            self._turn[thread] = ("request", word(event.id) or self._requests)
            self._message.pop(thread, None)
        elif kind == "span.model_request_end":
            self._tokens(event, thread)
        elif kind in _CALLS:
            self._call(event, thread, at)
        elif kind in _RESULTS:
            if event.answers is not None:
                self._answered.add(event.answers)
            failed = event.is_error if isinstance(event.is_error, bool) else None
            self._assembly.result(_text(event), call_id=event.answers, at=at, failed=failed)
        elif kind == "user.tool_confirmation" and event.result == "deny" and event.answers is not None:
            self._denied[event.answers] = word(event.deny_message)
        else:
            self._aside(event)

    def _aside(self, event: Event) -> None:
        """What is said of the session as a whole."""
        kind, run = word(event.type), self.run
        if kind == "session.thread_created" and word(event.session_thread_id):
            self._agents[str(event.session_thread_id)] = word(event.agent_name) or "subagent"
        elif kind == "span.outcome_evaluation_end":
            self._judged(event.result, event.explanation)
        elif kind == "session.error":
            run.metadata["error"] = event.error
        elif kind == "session.status_idle" and isinstance(event.stop_reason, dict):
            run.metadata["stop_reason"] = event.stop_reason.get("type")
        elif kind == "user.interrupt":
            run.metadata["interrupts"] = run.metadata.get("interrupts", 0) + 1

    def _call(self, event: Event, thread: str | None, at: datetime | None) -> None:
        name = None if thread is None else self._agents[thread]
        message = self._message.get(thread)
        if message is None:
            message = self._message[thread] = self._assembly.message("assistant", None, name=name, at=at)
        caller: Caller = "agent" if thread is None else "subagent"
        self._assembly.call(
            event.name,
            from_raw(event.input),
            turn=self._turn.get(thread, ("message", message.seq)),
            call_id=word(event.id),
            message=message,
            at=at,
            caller=caller,
        )

    def _tokens(self, event: Event, thread: str | None) -> None:
        usage = anthropic_usage(event.model_usage)
        if usage is None:
            return
        message = self._message.get(thread) or self._assembly.message("assistant", None)
        if message.usage is None:
            message.usage = usage
        else:
            self._assembly.message("assistant", None, usage=usage)

    def _agent(self, event: Event, agent: dict[str, Any]) -> None:
        run, model = self.run, agent.get("model")
        run.model = (word(model.get("id")) if isinstance(model, dict) else word(model)) or run.model
        system = agent.get("system")
        if isinstance(system, str) and system not in (message.content for message in run.messages[:1]):
            self._assembly.message("system", system)
        run.tools = schemas(agent.get("tools")) or run.tools
        for name, value in (("agent", agent.get("name")), ("title", event.title)):
            if word(value):
                run.metadata[name] = value
        self._spent = event.usage or self._spent
        judged = event.outcome_evaluations
        for verdict in judged if isinstance(judged, list) else ():
            if isinstance(verdict, dict):
                self._judged(verdict.get("result"), verdict.get("explanation"))

    def _judged(self, result: Any, explanation: Any) -> None:
        if isinstance(result, str):  # each verdict takes the place of the one before
            value, why = _VERDICTS.get(result), word(explanation) or result
            known = value is not None
            self.run.outcome = Outcome(value=value, provenance="log:outcome_evaluation", detail=why) if known else None


def _text(event: Event) -> str | None:
    return blocks.result_text(event.content)


def _told(event: Event) -> Any:
    """What an event says, whoever sent it."""
    return event.type, event.answers, event.result if event.answers else _text(event), event.description
