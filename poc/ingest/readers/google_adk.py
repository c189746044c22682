"""Google ADK: sessions, lists of events, results of evaluations; eval sets, which are no runs.

Session: ``{id, app_name, user_id, state, events[], last_update_time}``, by the
web interface and REST in camelCase; ``eval_case_results[]`` hold whole sessions
in ``session_details`` and say how each went in ``final_eval_status`` (1 passed,
2 failed). ``events[] {id, invocation_id, author, timestamp (epoch seconds),
content {role, parts[]}}`` with ``function_call {id, name, args}`` and
``function_response {id, name, response}`` among the parts. Ids may be missing:
then name and order tell. A response says itself whether it failed (``error``,
``status``). Parts that are a thought and partial events of a stream are passed
over: the whole event follows. Input tokens include cached ones, output tokens
leave out thoughts.

An eval set (``eval_cases[].conversation[]``, older ``[{query,
expected_tool_use}]``) holds what should be called, not what was: its cases are
refused as runs, and their calls kept as the reference calls of their tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest.readers.adk_events import Session, camel, field
from poc.ingest.readers.assembly import word
from poc.ingest.readers.decoding import DECODE_ERRORS, Head, elements, glimpse, members
from poc.ingest.readers.records import Record, records
from poc.ingest.sources import Source
from poc.trajectory import Item, Outcome, ReferenceCall, Reject, Run, TaskReference

NAME = "google_adk"
VERSION = 1

_STATUS = {1: 1.0, 2: 0.0, "PASSED": 1.0, "FAILED": 0.0}
_EXPECTED = "expected calls, not a run"


def sniff(sample: bytes, name: str) -> float:
    """By the members of a session, an event, an eval set or the results of one."""
    if sample[:40].lstrip().startswith(b'"{\\"eval_set_result_id'):
        return 0.95
    for head in glimpse(sample).heads[:5]:
        if _any(head, "eval_cases", "eval_case_results", "expected_tool_use") or _is_event(head):
            return 0.97
        inside = elements(head.get("events", b"").strip())[:3]
        named = _any(head, "app_name") and _any(head, "user_id")
        if "events" in head and (named or any(_is_event(members(part)) for part in inside)):
            return 0.97
        listed = elements(head.get("data", b"").strip())[:1]
        if any(_any(members(part), "expected_tool_use") for part in listed):
            return 0.95
    return 0.0


def _any(head: Head, *names: str) -> bool:
    return any(name in head or camel(name) in head for name in names)


def _is_event(head: Head) -> bool:
    return "author" in head and _any(head, "invocation_id") and bool(head.keys() & {"content", "actions", "timestamp"})


def read(source: Source) -> Iterator[Item]:
    """A run for each session; events that stand alone in the file make one."""
    loose: list[Record] = []
    for record in records(source):
        if isinstance(record, Reject):
            yield record
        elif isinstance(record.value, dict) and _alone(record.value):
            loose.append(record)
        else:
            yield from _value(record)
    if loose:
        yield from _run(loose[0], {"events": [record.value for record in loose]}, count_of=len(loose))


def _alone(value: dict[str, Any]) -> bool:
    return "author" in value and field(value, "invocation_id") is not None


def _value(record: Record) -> Iterator[Item]:
    value = record.value
    if isinstance(value, str):  # results are written as JSON in a JSON text
        try:
            value = msgspec.json.decode(value)
        except DECODE_ERRORS:
            yield record.reject("a text, not a session of ADK")
            return
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        if all(_alone(item) for item in value):
            yield from _run(record, {"events": value})
        elif any(field(item, "query") is not None for item in value):
            yield from _expected(record, None, [_old_turn(item) for item in value], None)
        else:
            for index, item in enumerate(value):
                yield from _object(Record(f"{record.place} [{index}]", item, record.raw))
    else:
        yield from _object(Record(record.place, value, record.raw))


def _object(record: Record) -> Iterator[Item]:
    value = record.value
    if not isinstance(value, dict):
        yield record.reject("no session of ADK here")
    elif isinstance(value.get("events"), list):
        yield from _run(record, value)
    elif isinstance(results := field(value, "eval_case_results"), list):
        for index, result in enumerate(results):
            yield from _result(Record(f"{record.place} .eval_case_results[{index}]", result, record.raw))
    elif isinstance(cases := field(value, "eval_cases"), list):
        for index, case in enumerate(cases):
            yield from _case(Record(f"{record.place} .eval_cases[{index}]", case, record.raw))
    elif isinstance(value.get("data"), list):  # an older eval set: one conversation a name
        turns = [_old_turn(item) for item in value["data"] if isinstance(item, dict)]
        yield from _expected(record, word(value.get("name")), turns, None)
    else:
        yield record.reject("no session of ADK here: it has no events")


def _run(record: Record, value: dict[str, Any], *, count_of: int = 1) -> Iterator[Run | Reject]:
    run = Run(place=record.place, framework="google_adk", records=count_of)
    session = Session(run)
    for index, event in enumerate(value["events"]):
        if not session.add(event, index):
            reason = "an entry that is no event of ADK; the run is kept without it"
            yield Reject(place=f"{record.place} .events[{index}]", reason=reason, raw=str(event)[:200], records=0)
    run.native_id = word(value.get("id"))
    run.category = word(field(value, "app_name"))
    for name in ("user_id", "state"):
        if (told := field(value, name)) not in (None, {}, ""):
            run.metadata[name] = told
    yield session.finish()


def _result(record: Record) -> Iterator[Item]:
    result = record.value if isinstance(record.value, dict) else {}
    session = field(result, "session_details")
    if not isinstance(session, dict) or not isinstance(session.get("events"), list):
        yield record.reject("a result without its session: what the agent did is not in this file")
        return
    for item in _run(Record(record.place, session, record.raw), session):
        if isinstance(item, Run):
            item.task_key = word(field(result, "eval_id"))
            status = field(result, "final_eval_status")
            if isinstance(status, int | str) and status in _STATUS:
                item.outcome = Outcome(value=_STATUS[status], provenance="log:final_eval_status")
            metrics = field(result, "overall_eval_metric_results")
            if metrics:
                item.metadata["eval_metrics"] = metrics
        yield item


# What should be called ------------------------------------------------------------------------------------

Turn = tuple[str | None, list[ReferenceCall]]
"""What the user says and which calls should follow."""


def _case(record: Record) -> Iterator[Item]:
    case = record.value if isinstance(record.value, dict) else {}
    turns: list[Turn] = []
    conversation = field(case, "conversation")
    for turn in conversation if isinstance(conversation, list) else ():
        if isinstance(turn, dict):
            said = field(turn, "user_content")
            data = field(turn, "intermediate_data")
            uses = field(data, "tool_uses") if isinstance(data, dict) else None
            if uses is None and isinstance(data, dict):
                uses = _used_in(field(data, "invocation_events"))
            turns.append((_said(said), [_call(use, "name", "args") for use in _dicts(uses)]))
    start = field(case, "session_input")
    app = word(field(start, "app_name")) if isinstance(start, dict) else None
    yield from _expected(record, word(field(case, "eval_id")), turns, app)


def _used_in(events: Any) -> list[Any]:
    """Newer sets hold the expected calls as events."""
    parts = [part for event in _dicts(events) for part in _dicts((field(event, "content") or {}).get("parts"))]
    return [call for part in parts if (call := field(part, "function_call")) is not None]


def _old_turn(item: dict[str, Any]) -> Turn:
    uses = _dicts(field(item, "expected_tool_use"))
    return word(item.get("query")), [_call(use, "tool_name", "tool_input") for use in uses]


def _expected(record: Record, key: str | None, turns: list[Turn], app: str | None) -> Iterator[Item]:
    calls = [call for _, asked in turns for call in asked]
    text = next((said for said, _ in turns if said), None)
    if not calls or (key is None and text is None):
        yield record.reject(f"{_EXPECTED}: and none that could be kept")
        return
    yield TaskReference(task_key=key, task_text=text, category=app, reference=calls)
    yield record.reject(f"{_EXPECTED}: {len(calls)} kept as the reference calls of the task")


def _call(use: dict[str, Any], name: str, args: str) -> ReferenceCall:
    arguments = use.get(args, use.get(camel(args)))
    encoded = None if arguments is None else msgspec.json.encode(arguments).decode()
    return ReferenceCall(tool=word(use.get(name, use.get(camel(name)))) or "", arguments_json=encoded)


def _said(content: Any) -> str | None:
    parts = _dicts(content.get("parts")) if isinstance(content, dict) else []
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return "\n".join(texts) or None


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
