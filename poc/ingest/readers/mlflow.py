"""MLflow traces, version 3 and 2.

Version 3 (``Trace.to_json``): ``{info{trace_id "tr-..", request_time, state,
trace_metadata, tags, assessments}, data{spans[]}}``, span ids in base64.
Version 2: ``info.request_id``, spans with ``context`` and ``start_time``. Also
read: lists and lines of such traces, rows of ``search_traces`` with ``spans``,
and the artifact ``traces.json`` with the spans alone; and spans with these
attributes in the containers of OpenTelemetry.

Values of attributes are JSON texts: ``mlflow.spanType`` is ``"\\"TOOL\\""``.
``mlflow.spanInputs`` and ``mlflow.spanOutputs`` are arguments and result of a
TOOL, request and answer of a CHAT_MODEL or LLM; tokens in
``mlflow.chat.tokenUsage``, dollars in ``mlflow.llm.cost``. Outcome: a feedback among ``info.assessments`` (v2:
none) whose name says that it is about success. Records are spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from poc.ingest import jsonstream
from poc.ingest.readers.assembly import number, word
from poc.ingest.readers.by_trace import by_trace
from poc.ingest.readers.decoding import Head, elements, glimpse, members
from poc.ingest.readers.nodes import Kind, Node, Score, answered, called_with, tokens_of
from poc.ingest.readers.pieces import Piece, objects
from poc.ingest.readers.said import messages, opened, unquoted
from poc.ingest.readers.span_facts import about, bare_node, node_of
from poc.ingest.readers.span_files import first_span, traces
from poc.ingest.readers.spans import Span, is_span, read_span
from poc.ingest.readers.trace_runs import build
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "mlflow"
VERSION = 1

_KINDS: dict[str, Kind] = {"TOOL": "tool", "LLM": "llm", "CHAT_MODEL": "llm", "AGENT": "agent"}
_MARK = b"mlflow.spanType"
_HOLDERS = ("traces",)
_READ = (
    "mlflow.spanType",
    "mlflow.spanInputs",
    "mlflow.spanOutputs",
    "mlflow.chat.tokenUsage",
    "mlflow.chat.tools",
    "mlflow.llm.cost",
    "mlflow.llm.model",
)
"""The attributes that are read here, as JSON texts."""


def sniff(sample: bytes, name: str) -> float:
    """By a trace's info beside its spans, or by the type of a span."""
    for inner in _heads(sample):
        data = members(inner.get("data", b"").strip())
        if "info" in inner and "spans" in data and (_MARK in sample or "request_id" in members(inner["info"])):
            return 0.97
        if "info" in inner and b'"trace_id": "tr-' in inner["info"].replace(b'":"', b'": "'):
            return 0.97
        if _MARK in sample and "spans" in inner:
            return 0.97
    return 0.97 if _MARK in sample and first_span(sample) else 0.0


def _heads(sample: bytes) -> Iterator[Head]:
    """The first objects, and those in their lists of traces."""
    for head in glimpse(sample).heads[:3]:
        yield head
        for part in elements(head.get("traces", b"").strip())[:1]:
            yield members(part)


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace."""
    whole = any("info" in head or "spans" in head for head in _heads(source.sample))
    if first_span(source.sample) and not whole:
        yield from traces(source, _of_spans)
        return
    yield from by_trace(source, _parse, _build)


def _parse(value: jsonstream.Value) -> Iterator[tuple[str | None, Piece] | Reject]:
    for item in objects(value.place, value.raw, _HOLDERS):
        if isinstance(item, Reject):
            yield item
            continue
        held = opened(item.value.get("trace"))
        if isinstance(held, dict) and "data" in held:  # a row of search_traces
            item = Piece(item.place, held)
        info = _object(item.value.get("info")) or item.value
        if not isinstance(_spans(item.value), list):
            yield item.reject("no info and spans of an MLflow trace here")
        else:
            trace = word(info.get("trace_id")) or word(info.get("request_id"))
            yield trace or f"{item.place}", item


def _spans(value: dict[str, Any]) -> Any:
    return opened(_object(value.get("data")).get("spans", value.get("spans")))


def _object(value: Any) -> dict[str, Any]:
    inner = opened(value)
    return inner if isinstance(inner, dict) else {}


def _build(trace: str | None, items: list[Piece]) -> Iterator[Run | Reject]:
    for item in items:  # each is a whole trace
        yield from _one(item)


def _one(item: Piece) -> Iterator[Run | Reject]:
    info = _object(item.value.get("info")) or item.value
    spans: list[Span] = []
    for index, value in enumerate(_spans(item.value)):
        place = f"{item.place} .spans[{index}]"
        value = opened(value)
        if not is_span(value):
            yield Piece(place, value if isinstance(value, dict) else {"value": value}).reject("not a span")
            continue
        spans.append(read_span(value, place))
    told = {**_object(info.get("trace_metadata")), **_object(info.get("request_metadata")), **_tags(info.get("tags"))}
    metadata = {key: value for key, value in told.items() if not key.startswith("mlflow.")}
    for key, name in _ABOUT.items():
        if told.get(key):
            metadata[name] = told[key]
    for name in ("state", "status", "experiment_id", "client_request_id"):
        if info.get(name):
            metadata[name] = info[name]
    run = build(
        [_node(span, position) for position, span in enumerate(spans)],
        place=item.place,
        native_id=_name(info, spans),
        records=max(1, len(spans)),
        metadata=metadata,
        scores=[*_scores(info.get("assessments", item.value.get("assessments")))],
        framework="mlflow",
    )
    if run.usage is None:
        run.usage = tokens_of(_object(told.get("mlflow.trace.tokenUsage")))
    if run.cost_usd is None:
        run.cost_usd = number(_object(told.get("mlflow.trace.cost")).get("total_cost"))
    yield run


_ABOUT = {
    "mlflow.traceName": "trace_name",
    "mlflow.trace.session": "session_id",
    "mlflow.trace.user": "user_id",
    "mlflow.modelId": "model_id",
}


def _name(info: dict[str, Any], spans: list[Span]) -> str | None:
    given = word(info.get("trace_id")) or word(info.get("request_id"))
    if given is None and spans:
        given = word(opened(spans[0].attributes.get("mlflow.traceRequestId"))) or spans[0].trace_id
    return given


def _of_spans(trace: str | None, spans: list[Span]) -> Iterator[Run | Reject]:
    metadata: dict[str, Any] = {}
    for span in spans:
        for key, value in about(span).items():
            metadata.setdefault(key, value)
    yield build(
        [_node(span, position) for position, span in enumerate(spans)],
        place=spans[0].place,
        native_id=_name({}, spans),
        records=len(spans),
        metadata=metadata,
        framework="mlflow",
    )


def _tags(value: Any) -> dict[str, Any]:
    """Tags as an object, from one or from version 2's list of keys and values."""
    inner = opened(value)
    if isinstance(inner, list):
        return {str(tag.get("key")): tag.get("value") for tag in inner if isinstance(tag, dict)}
    return inner if isinstance(inner, dict) else {}


def _scores(value: Any) -> Iterator[Score]:
    inner = opened(value)
    for item in inner if isinstance(inner, list) else ():
        if isinstance(item, dict) and isinstance(item.get("feedback"), dict):
            source = item.get("source")
            by = word(source.get("source_type")) if isinstance(source, dict) else None
            name = word(item.get("assessment_name")) or word(item.get("name")) or ""
            yield Score(name, item["feedback"].get("value"), by)


def _node(span: Span, position: int) -> Node:
    a = span.attributes
    said = {key: opened(a[key]) for key in _READ if a.get(key, "null") != "null"}
    typed = word(said.get("mlflow.spanType"))
    kind = _KINDS.get(typed, "other") if typed and typed != "UNKNOWN" else None
    if kind is not None and all(key.startswith("mlflow.") for key in a):  # nothing else has a say
        node = bare_node(span, position, kind)
    else:
        node = node_of(span, position, kind)
    asked, answer = said.get("mlflow.spanInputs"), said.get("mlflow.spanOutputs")
    if node.kind == "tool":
        if asked is not None:
            node.arguments = called_with(a["mlflow.spanInputs"])
        if answer is not None:
            found = answered(unquoted(a["mlflow.spanOutputs"]))
            node.result, node.has_result = found.text, True
            node.call_id = node.call_id or found.call_id
            node.failed = found.failed or node.failed
    elif node.kind in ("llm", "agent"):
        inner = node.content

        def content():
            given = messages(asked)
            own = [s for s in messages(answer, "assistant") if s.role in ("assistant", "tool")]
            own = own[-1:] if node.kind == "agent" else own
            if inner is None or (given and own):
                return given, own
            first, then = inner()
            return given or first, own or then

        node.content = content
        node.usage = tokens_of(said.get("mlflow.chat.tokenUsage")) or node.usage
        node.cost_usd = number(_object(said.get("mlflow.llm.cost")).get("total_cost")) or node.cost_usd
        given, got = _object(asked), _object(answer)
        if node.kind == "llm":
            node.model = node.model or word(said.get("mlflow.llm.model")) or word(got.get("model"))
            node.model = node.model or word(given.get("model")) or word(opened(a.get("model")))
        node.schemas = said.get("mlflow.chat.tools") or given.get("tools") or node.schemas
    if node.kind == "agent":
        node.agent = node.agent or node.name
    return node
