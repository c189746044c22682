"""OpenTelemetry traces of agents (GenAI conventions, old and new), in every container.

Run: a trace id. Traces of one conversation are not joined: each is one request
to the agent; ``gen_ai.conversation.id`` and ``session.id`` are kept in the
run's metadata. Records are spans. Orphan parents are normal. Tokens count on
model calls only (agents repeat sums), each model call once, however many
layers saw it. A tool span without result is ``no_result``: content is off by
default. Spans that are neither model, tool nor agent are counted in the
metadata; a trace that holds only such is a run without steps. Outcome: an
evaluation event, where one is there.

Containers and names: see `span_files`, `spans` and `span_facts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from poc.ingest.readers.by_trace import trace_keys
from poc.ingest.readers.span_facts import about, node_of, scores
from poc.ingest.readers.span_files import first_span, traces
from poc.ingest.readers.spans import Span
from poc.ingest.readers.trace_runs import build
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "otel_genai"
VERSION = 1

_OWN = (b'"gen_ai.', b'"traceloop.', b'"llm.request.type"', b'"gcp.vertex.agent.', b'"langfuse.observation.')
_OTHERS = (b'"openinference.span.kind"', b'"mlflow.spanType"', b'"ai.operationId"', b'"openinference"')


def sniff(sample: bytes, name: str) -> float:
    """By the ids of a first span, and GenAI attributes anywhere in the sample."""
    if not first_span(sample):
        return 0.0
    if any(mark in sample for mark in _OTHERS):
        return 0.3  # the same spans, but another family's names on them
    return 0.95 if any(mark in sample for mark in _OWN) else 0.6


keys = trace_keys
"""Spans of one trace may stand in several files."""


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace."""
    yield from traces(source, run_of)


def run_of(trace: str | None, spans: list[Span]) -> Iterator[Run | Reject]:
    """The run of one trace, whatever family its attributes are of."""
    nodes = [node_of(span, position) for position, span in enumerate(spans)]
    metadata: dict[str, object] = {}
    for span in spans:
        for key, value in about(span).items():
            metadata.setdefault(key, value)
    yield build(
        nodes,
        place=spans[0].place,
        native_id=trace,
        records=len(spans),
        metadata=metadata,
        scores=[score for span in spans for score in scores(span)],
    )
