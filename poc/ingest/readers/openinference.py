"""OpenInference spans (Arize Phoenix and others).

Told by ``openinference.span.kind`` (LLM, TOOL, CHAIN, AGENT, ...). Containers:
those of OpenTelemetry, Phoenix's REST answer (``{data: [{context, span_kind,
attributes, ...}]}``) and its JSON lines, and rows of a data frame (columns
``context.span_id``, ``attributes.input.value``) as JSON or Parquet. Model
calls hold ``llm.input_messages.N``, ``llm.output_messages.N``, token counts
(cached input is counted in) and ``llm.model_name``; tools ``tool.name``,
``input.value``, ``output.value``, and rarely a call id. ``tool.parameters`` is
a schema for some instrumentors and the arguments for others. Phoenix's frames
have the kind in a column ``span_kind``. Annotations and evaluations on a span are
scores; those that Phoenix keeps in tables of its own are not here. Run, records
and the rest as in `otel_genai`.
"""

from __future__ import annotations

from collections.abc import Iterator

from poc.ingest.readers import parquet
from poc.ingest.readers.by_trace import trace_keys
from poc.ingest.readers.otel_genai import run_of
from poc.ingest.readers.span_files import first_span, traces
from poc.ingest.readers.spans import Span, is_span, read_span
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "openinference"
VERSION = 1
MAGIC = (parquet.MAGIC,)


def sniff(sample: bytes, name: str) -> float:
    """By the ids of a first span and the span kind; for Parquet by the names of the columns."""
    if sample.startswith(parquet.MAGIC):
        columns = set(parquet.columns_in(sample))
        ids = {"context.trace_id", "context.span_id"} <= columns
        return 0.97 if ids and "name" in columns else 0.0
    head = first_span(sample)
    if not head:
        return 0.0
    marks = (b'"openinference.span.kind"', b'"attributes.openinference.span.kind"', b'"openinference"')
    framed = "span_kind" in head and ("context" in head or "context.span_id" in head)
    if framed or any(mark in sample for mark in marks):
        return 0.97
    return 0.0


keys = trace_keys
"""Spans of one trace may stand in several files."""


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace."""
    if source.magic in MAGIC:
        yield from _parquet(source)
    else:
        yield from traces(source, run_of)


def _parquet(source: Source) -> Iterator[Run | Reject]:
    waiting: dict[str, list[Span]] = {}
    for row in parquet.rows(source, parquet.columns_in(source.sample)):
        if isinstance(row, Reject):
            yield row
            continue
        value = {key: item for key, item in row.cells.items() if item is not None}
        if is_span(value):
            span = read_span(value, row.place)
            waiting.setdefault(span.trace_id or "", []).append(span)
        else:
            yield Reject(place=row.place, reason="no trace id, span id and name here: not a span")
    for trace, spans in waiting.items():
        yield from run_of(trace or None, spans)
