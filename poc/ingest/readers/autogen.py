"""AutoGen: dumps of Who&When, and messages of agentchat 0.4.

Who&When: one object with ``history[] {content, role, (name)}``, ``question``,
``question_ID``, ``ground_truth``, ``mistake_agent``, ``mistake_step``,
``mistake_reason`` and ``is_correct`` (or ``is_corrected``): all runs of it
failed. Agents speak as ``role`` "assistant" or "user" with a ``name``, or with
a ``role`` that carries the routing ("Orchestrator (-> WebSurfer)"); ``human``
is the user. Code is run from blocks in the text: there are no calls to read,
so such a run has messages and no steps. Nothing has a time.

agentchat 0.4: a list or lines of events, or an object that holds them
(``messages``, ``task_result.messages``, ``message_thread`` of a saved team),
told apart by ``type``: ``ToolCallRequestEvent content[{id, name, arguments
(text)}]``, ``ToolCallExecutionEvent content[{call_id, content, is_error,
name}]``, ``TextMessage`` and others; ``source`` speaks, ``models_usage`` counts
tokens. Chunks of a stream are passed over: the whole message follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from poc.ingest.arguments import from_value
from poc.ingest.outcome_values import read_outcome
from poc.ingest.readers.assembly import Assembly, blocks_text, count, number, plain, word
from poc.ingest.readers.decoding import Head, elements, glimpse, members, text
from poc.ingest.readers.records import Record, left_over, records
from poc.ingest.sources import Source
from poc.trajectory import Outcome, Reject, Role, Run, Usage

NAME = "autogen"
VERSION = 1

_REQUESTS = ("ToolCallRequestEvent", "ToolCallMessage")
_ANSWERS = ("ToolCallExecutionEvent", "ToolCallResultMessage")
_CHUNKS = ("ModelClientStreamingChunkEvent",)
_WORDS = (
    "TextMessage ToolCallSummaryMessage ThoughtEvent HandoffMessage StopMessage MultiModalMessage StructuredMessage"
    " UserInputRequestedEvent MemoryQueryEvent SelectSpeakerEvent SelectorEvent CodeGenerationEvent CodeExecutionEvent"
)
_EVENTS = frozenset((*_REQUESTS, *_ANSWERS, *_CHUNKS, *_WORDS.split()))
_TERMINALS = ("computer_terminal", "computerterminal")
_USERS = ("user", "user_proxy", "human")


def sniff(sample: bytes, name: str) -> float:
    """By the labels of Who&When, or by the event types of agentchat."""
    first = glimpse(sample).first
    if first.get("history", b"")[:1] == b"[" and b'"mistake_agent"' in sample:
        return 0.95
    if "mistake_agent" in first and "mistake_step" in first:
        return 0.9  # a long history may cut the sample short
    if _is_event(first):
        return 0.95
    messages = first.get("messages") or members(first.get("task_result", b"")).get("messages", b"")
    if any(_is_event(members(message)) for message in elements(messages)[:3]):
        return 0.95
    return 0.95 if b'"message_thread"' in first.get("agent_states", b"") else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each dump; events that stand alone in the file make one run."""
    loose: list[Record] = []
    for record in records(source):
        if isinstance(record, Reject):
            yield record
            continue
        value = record.value
        if isinstance(value, dict) and value.get("type") in _EVENTS:
            loose.append(record)
        elif isinstance(value, list) and not any(isinstance(item, dict) and _thread(item) for item in value):
            yield from _chat(record, value, {})
        else:
            for index, item in enumerate(value if isinstance(value, list) else [value]):
                place = f"{record.place} [{index}]" if isinstance(value, list) else record.place
                yield from _dump(Record(place, item, record.raw))
    if loose:
        yield from _chat(loose[0], [record.value for record in loose], {}, count_of=len(loose))


def _dump(record: Record) -> Iterator[Run | Reject]:
    value = record.value
    if isinstance(value, dict) and isinstance(value.get("history"), list):
        yield from _who_and_when(record, value)
        return
    thread = _thread(value) if isinstance(value, dict) else None
    if thread is None:
        yield record.reject("no AutoGen messages here")
    else:
        yield from _chat(record, thread, value)


def _who_and_when(record: Record, value: dict[str, Any]) -> Iterator[Run | Reject]:
    run = Run(place=record.place, framework="autogen")
    work = Assembly(run)
    for index, item in enumerate(value["history"]):
        if not isinstance(item, dict):
            yield Reject(place=f"{record.place} .history[{index}]", reason="not a message", raw=str(item), records=0)
            continue
        role, speaker = _speaker(item)
        work.message(role, blocks_text(item.get("content")), name=speaker)
    if not run.messages:
        yield record.reject("the history holds no messages")
        return
    run.native_id = run.task_key = word(value.get("question_ID"))
    run.task_text = value["question"] if isinstance(value.get("question"), str) else None
    run.outcome = _label(value)
    run.metadata = left_over(value, "history", "question", "question_ID")
    yield work.finish()


def _label(value: dict[str, Any]) -> Outcome | None:
    for name in ("is_correct", "is_corrected"):
        says = read_outcome(value.get(name))
        if says is not None:
            return Outcome(value=says, provenance=f"log:{name}")
    if value.get("mistake_agent"):  # only failures carry a mistake
        return Outcome(value=0.0, provenance="log:mistake_agent")
    return None


def _speaker(item: dict[str, Any]) -> tuple[Role, str | None]:
    name, role = word(item.get("name")), word(item.get("role")) or ""
    if name is not None:
        # In a group chat "user" only means that another agent spoke.
        return ("tool" if name.lower() in _TERMINALS else "assistant"), name
    if role.lower() in ("human", "user"):
        return "user", None
    if role in ("assistant", "system"):
        return ("system" if role == "system" else "assistant"), None
    return ("tool" if role.lower() in _TERMINALS else "assistant"), role or None


def _is_event(head: Head) -> bool:
    return "source" in head and text(head.get("type")) in _EVENTS


def _thread(value: dict[str, Any]) -> list[Any] | None:
    """The list of events that an object holds; the longest where a saved team has several."""
    if isinstance(value.get("history"), list):
        return value["history"]
    for holder in (value, value.get("task_result")):
        if isinstance(holder, dict) and isinstance(holder.get("messages"), list):
            return holder["messages"]
    states = value.get("agent_states")
    threads: list[Any] = []
    for state in states.values() if isinstance(states, dict) else ():
        for holder in (state, state.get("agent_state")) if isinstance(state, dict) else ():
            threads.append(holder.get("message_thread") if isinstance(holder, dict) else None)
    return max((thread for thread in threads if isinstance(thread, list)), key=len, default=None)


def _chat(record: Record, events: list[Any], around: dict[str, Any], *, count_of: int = 1) -> Iterator[Run | Reject]:
    run = Run(place=record.place, framework="autogen", records=count_of)
    work = Assembly(run)
    seen = 0
    for index, event in enumerate(events):
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            reason = "an entry that is no AutoGen message; the run is kept without it"
            yield Reject(place=f"{record.place} [{index}]", reason=reason, raw=str(event)[:200], records=0)
            continue
        seen += 1
        if event["type"] not in _CHUNKS:
            _event(work, event, index)
    if not seen:
        yield record.reject("no AutoGen messages here", records=count_of)
        return
    run.metadata = left_over(around, "messages", "history", "task_result", "agent_states", "type", "duration")
    result = around.get("task_result")
    if isinstance(result, dict) and result.get("stop_reason") is not None:
        run.metadata["stop_reason"] = result["stop_reason"]
    run.duration_s = number(around.get("duration"))
    yield work.finish()


def _event(work: Assembly, event: dict[str, Any], index: int) -> None:
    at = work.time(event.get("created_at"))
    source = word(event.get("source"))
    content = event.get("content")
    answers = _objects(content) if event["type"] in _ANSWERS else []
    if answers:
        for result in answers:
            flag = result.get("is_error")
            work.result(
                plain(result.get("content")),
                call_id=word(result.get("call_id")),
                name=word(result.get("name")),
                at=at,
                failed=flag if isinstance(flag, bool) else None,
            )
        return
    calls = _objects(content) if event["type"] in _REQUESTS else []
    role: Role = "user" if source is not None and source.lower() in _USERS else "assistant"
    said = None if calls else blocks_text(content)
    message = work.message(role, said, name=source, at=at, usage=_usage(event.get("models_usage")))
    for call in calls:
        work.call(
            call.get("name"),
            from_value(call.get("arguments")),
            turn=index,
            call_id=word(call.get("id")),
            message=message,
            at=at,
        )


def _objects(content: Any) -> list[dict[str, Any]]:
    """The entries of a list of objects; none where it holds anything else, which is then kept as text."""
    whole = isinstance(content, list) and all(isinstance(item, dict) for item in content)
    return content if whole else []


def _usage(spent: Any) -> Usage | None:
    if not isinstance(spent, dict):
        return None
    return Usage(input_tokens=count(spent.get("prompt_tokens")), output_tokens=count(spent.get("completion_tokens")))
