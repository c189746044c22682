"""OpenAI Agents SDK: trace exports and saved run states.

A trace is ``{object: "trace", id, workflow_name}`` with ``{object:
"trace.span", trace_id, parent_id, started_at, ended_at, span_data{type}}``:
nested (``traces[].spans[]``), listed, as JSONL, or as the exporter's batches
``{data: [...]}``. A step is a span of type ``function``; calls that only a
``generation`` or ``response`` span shows become steps only where no function
span stands for them (a hand-over to another agent is a ``handoff`` span, not a
step). ``response`` spans may hold no more than an id.

A run state is one object with ``$schemaVersion``, ``session_items`` /
``generated_items`` and ``model_responses``. The same call stands in it up to
ten times: it counts once, by ``call_id``. A call that waits for approval
(``tool_approval_item``) has no result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.arguments import from_value
from poc.ingest.readers.assembly import Assembly, plain, word
from poc.ingest.readers.chat_messages import usage_of
from poc.ingest.readers.decoding import Head, decode, elements, glimpse, members, text
from poc.ingest.readers.responses_items import Items, decode_item, schemas
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage

NAME = "agents_sdk"
VERSION = 1

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def sniff(sample: bytes, name: str) -> float:
    """How sure this is a trace export or a run state, 0..1."""
    return max((_likeness(head, 0) for head in glimpse(sample).heads), default=0.0)


def read(source: Source) -> Iterator[Run | Reject]:
    """The traces of the file, each one run, and its run states."""
    traces: dict[str, _Trace] = {}
    for value in jsonstream.values(source):
        yield from _take(value.place, value.raw, traces, 0)
    for trace in traces.values():
        yield trace.finish()


def _take(place: str, raw: bytes, traces: dict[str, _Trace], depth: int) -> Iterator[Run | Reject]:
    if raw[:1] == b"[" and depth < 4:
        parts, broken = jsonstream.elements(raw)
        for index, (_, part) in enumerate(parts):
            yield from _take(f"{place} [{index}]", bytes(part).strip(), traces, depth + 1)
        if broken is not None:
            reason = "broken JSON: from here on nothing could be read"
            yield Reject(place=f"{place} +{broken}", reason=reason, raw=jsonstream.excerpt(raw[broken:]))
        return
    head = members(raw)
    inside = next((name for name in ("traces", "data") if head.get(name, b"")[:1] == b"["), None)
    if inside is not None and "object" not in head and depth < 4:
        yield from _take(f"{place} .{inside}", head[inside], traces, depth + 1)
        return
    record, reject = decode(place, raw, _decode)
    if reject is not None:
        yield reject
    if record is None:
        return
    kind = record.get("object")
    if kind == "trace" and word(record.get("id")):
        trace = traces.setdefault(str(record["id"]), _Trace(place))
        trace.describe(record)
        for span in record.get("spans") or ():
            if isinstance(span, dict):
                trace.spans.append(span)
    elif kind == "trace.span" and word(record.get("trace_id")):
        trace = traces.setdefault(str(record["trace_id"]), _Trace(place))
        trace.run.records += 1
        trace.spans.append(record)
    elif "$schemaVersion" in record:
        yield _state(place, record)
    else:
        reason = "neither a trace, a span nor a run state"
        yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw))


class _Trace:
    """One trace, its spans gathered."""

    def __init__(self, place: str) -> None:
        self.run = Run(place=place, records=0, framework="openai-agents")
        self.spans: list[dict[str, Any]] = []

    def describe(self, record: dict[str, Any]) -> None:
        run = self.run
        run.records += 1
        run.native_id = str(record["id"])
        run.native_id_is_global = True  # "trace_" and 32 random hex digits
        for name in ("workflow_name", "group_id", "metadata"):
            if record.get(name):
                run.metadata[name] = record[name]

    def finish(self) -> Run:
        """The run: spans in the order of their start."""
        run = self.run
        if run.native_id is None and self.spans:
            run.native_id, run.native_id_is_global = str(self.spans[0]["trace_id"]), True
        assembly = Assembly(run)
        agents: list[str] = []
        order = sorted(range(len(self.spans)), key=lambda i: (str(self.spans[i].get("started_at") or ""), i))
        functions = [span for span in self.spans if _data(span).get("type") == "function"]
        unmatched = [(_data(span).get("name"), _same(_data(span).get("input"))) for span in functions]
        ids: dict[int, str] = {}
        said: set[str] = set()
        for index in order:
            span = self.spans[index]
            data = _data(span)
            at, until = assembly.time(span.get("started_at")), assembly.time(span.get("ended_at"))
            kind = data.get("type")
            if kind == "agent" and word(data.get("name")):
                agents.append(str(data["name"]))
            elif kind in ("generation", "response"):
                self._model(assembly, span, data, at, until, functions, unmatched, ids, said)
            elif kind == "function":
                self._function(assembly, span, data, at, until, ids)
            elif kind == "guardrail" and data.get("triggered"):
                run.metadata.setdefault("guardrails_triggered", []).append(data.get("name"))
        if agents:
            run.metadata["agents"] = list(dict.fromkeys(agents))
        return assembly.finish()

    def _function(
        self, assembly: Assembly, span: dict[str, Any], data: dict[str, Any], at: Any, until: Any, ids: dict[int, str]
    ) -> None:
        error = span.get("error")
        message = next((m for m in reversed(self.run.messages) if m.role == "assistant"), None)
        turn = ("message", message.seq) if message is not None else ("span", span.get("id"))
        span_id = word(span.get("id"))
        call_id = ids.get(id(span)) or span_id
        assembly.call(
            data.get("name"),
            from_value(data.get("input")),
            turn=turn,
            call_id=call_id,
            message=message,
            at=at,
            execution_id=span_id,
        )
        output = data.get("output")
        if output is None and error is None and until is None:
            return
        if isinstance(error, dict) and output is None:
            output = error.get("message")
        assembly.result(
            plain(output), call_id=call_id, at=until, failed=None if error is None else True,
            has_result=output is not None or until is not None,
        )  # fmt: skip

    def _model(
        self,
        assembly: Assembly,
        span: dict[str, Any],
        data: dict[str, Any],
        at: Any,
        until: Any,
        functions: list[dict[str, Any]],
        unmatched: list[tuple[Any, Any]],
        ids: dict[int, str],
        said: set[str],
    ) -> None:
        """What one model call adds: the messages that were not there before, and its own answer."""
        inner = data.get("response")
        response: dict[str, Any] = inner if isinstance(inner, dict) else data
        self.run.model = self.run.model or word(response.get("model"))
        asked = data.get("input") or span.get("span_data_input")
        for entry in [{"role": "user", "content": asked}] if isinstance(asked, str) else asked or ():
            if isinstance(entry, dict) and entry.get("role") in ("user", "system", "developer"):
                content = _words(entry.get("content"))
                if content and content not in said:
                    said.add(content)
                    assembly.message("user" if entry["role"] == "user" else "system", content, at=at)
        output = response.get("output")
        output = output if isinstance(output, list) else []
        if not output and isinstance(span.get("span_data_response"), str):  # a response kept as its printed form
            output = [{"content": span["span_data_response"]}]
        words = [_words(entry.get("content")) for entry in output if isinstance(entry, dict)]
        usage = _tokens(data.get("usage") or response.get("usage"))
        message = assembly.message("assistant", "\n".join(w for w in words if w) or None, at=until, usage=usage)
        for call in _calls(output):
            key = (call[0], _same(call[1]))
            if key in unmatched:
                place = unmatched.index(key)
                unmatched[place] = (None, None)
                if call[2]:
                    ids[id(functions[place])] = call[2]
            elif not str(call[0]).startswith("transfer_to_"):
                assembly.call(
                    call[0], from_value(call[1]), turn=("message", message.seq), call_id=call[2], message=message, at=at
                )


def _state(place: str, record: dict[str, Any]) -> Run:
    """The run of a saved state."""
    run = Run(place=place, framework="openai-agents")
    trace = record.get("trace")
    run.native_id = word(trace.get("id")) if isinstance(trace, dict) else None
    if run.native_id is not None and isinstance(trace, dict):
        run.metadata["workflow_name"] = trace.get("workflow_name")
    # One trace may have several saved states, so its id alone does not name the run.
    assembly = Assembly(run)
    items = Items(assembly, repeats=True)
    turns: dict[str, int] = {}
    for index, response in enumerate(_dicts(record.get("model_responses"))):
        for item in _dicts(response.get("output")):
            if word(item.get("call_id")):
                turns.setdefault(str(item["call_id"]), index)
    first = record.get("original_input")
    if isinstance(first, str):
        assembly.message("user", first)
    history = _dicts(first) if isinstance(first, list) else []
    session = _dicts(record.get("session_items")) or _dicts(record.get("generated_items"))
    waiting = _dicts(_get(record, "current_step", "data", "interruptions"))
    for wrapped in [*history, *session, *_dicts(record.get("generated_items")), *waiting]:
        inner = wrapped.get("raw_item", wrapped)
        if isinstance(inner, dict) and inner.get("type", "message") not in ("reasoning",):
            item = decode_item(msgspec.json.encode(inner))
            call_id = str(item.call_id)
            items.add(item, turn=("response", turns[call_id]) if call_id in turns else None)
    items.finish()
    usage = _get(record, "context", "usage")
    if isinstance(usage, dict) and usage.get("requests"):
        run.usage = _tokens(usage)
    agent = _get(record, "current_agent", "name")
    if agent:
        run.metadata["agent"] = agent
    step = _get(record, "current_step", "type")
    if step:
        run.metadata["current_step"] = step
    functions = _dicts(_get(record, "last_processed_response", "functions"))
    run.tools = schemas([entry.get("tool") for entry in functions])
    return assembly.finish()


def _calls(output: list[Any]) -> Iterator[tuple[Any, Any, str | None]]:
    """Name, arguments and id of the calls in a model's output: Responses items or chat messages."""
    for entry in _dicts(output):
        if entry.get("type") in ("function_call", "custom_tool_call"):
            yield entry.get("name"), entry.get("arguments", entry.get("input")), word(entry.get("call_id"))
        for call in _dicts(entry.get("tool_calls")):
            function = call.get("function")
            inner = function if isinstance(function, dict) else call
            yield inner.get("name"), inner.get("arguments"), word(call.get("id"))


def _tokens(usage: Any) -> Usage | None:
    if isinstance(usage, dict):
        usage = {
            name: value[0] if isinstance(value, list) and value and name.endswith("_details") else value
            for name, value in usage.items()
        }
    return usage_of(usage)


def _words(content: Any) -> str | None:
    if isinstance(content, str):
        return content
    parts = [part["text"] for part in _dicts(content) if isinstance(part.get("text"), str)]
    return "\n".join(parts) or None


def _same(arguments: Any) -> str | None:
    """Arguments in a form that is equal for equal arguments, whatever the spacing and order of keys."""
    _, parsed, _ = from_value(arguments)
    if parsed is None:
        return plain(arguments)
    return msgspec.json.encode(msgspec.json.decode(parsed), order="deterministic").decode()


def _data(span: dict[str, Any]) -> dict[str, Any]:
    data = span.get("span_data")
    return data if isinstance(data, dict) else {}


def _dicts(listed: Any) -> list[dict[str, Any]]:
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _get(table: Any, *path: str) -> Any:
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _likeness(head: Head, depth: int) -> float:
    if text(head.get("object")) in ("trace", "trace.span") and ("workflow_name" in head or "span_data" in head):
        return 0.97
    if ("$schemaVersion" in head and b'"call_id"' in b"".join(head.values())) or "generated_items" in head:
        return 0.97
    if depth < 2:
        for name in ("traces", "data"):
            parts = elements(head.get(name, b""))
            if parts and (found := _likeness(members(parts[0]), depth + 1)):
                return found
    return 0.0
