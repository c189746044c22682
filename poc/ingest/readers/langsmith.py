"""LangSmith runs (LangChain, LangGraph and whatever else is traced with it).

Containers: a list or lines of runs, a run with ``child_runs``, the webhook's
``{rule_id, runs[]}``, and bodies of the ingest API ``{post[], patch[]}`` in
which the outputs come later under the same id: what a record says later about
a run is put over what was said before. A LangSmith *run* is a span here; our
run is the trace (``trace_id``, unique in the world, so that parts of a trace
in other files can be joined to it). Parent: ``parent_run_id``, else the last
of ``parent_run_ids``, else the last but one part of ``dotted_order``.

Tools: ``inputs.input`` is often a Python repr; ``outputs.output`` a
``ToolMessage`` with its own status. Counts of 0 tokens stand for "not known".
Large values live elsewhere (``*_s3_urls``): inputs and outputs may be missing.
Times carry no zone in most exports. Outcome: ``feedback_stats`` whose name
says that it is about success. Records are LangSmith runs as they stand: a post
and its patch are two. Bulk exports are Parquet with JSON texts in their cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from poc.ingest import jsonstream
from poc.ingest.readers import parquet
from poc.ingest.readers.assembly import number, word
from poc.ingest.readers.by_trace import any_ids, by_trace, trace_keys
from poc.ingest.readers.decoding import Head, elements, glimpse, members
from poc.ingest.readers.nodes import Kind, Node, Score, answered, called_with, tokens, tokens_of
from poc.ingest.readers.pieces import Piece, objects
from poc.ingest.readers.said import Said, messages, opened
from poc.ingest.readers.trace_runs import build
from poc.ingest.sources import Source
from poc.ingest.times import parse_time, seconds_between
from poc.trajectory import Reject, Run, Usage

NAME = "langsmith"
VERSION = 1
MAGIC = (parquet.MAGIC,)

_KINDS: dict[str, Kind] = {"llm": "llm", "tool": "tool"}
_JSON = frozenset({"inputs", "outputs", "extra", "feedback_stats", "parent_run_ids", "tags"})
"""What exports of rows hold as JSON texts."""
_HOLDERS = ("runs", "post", "patch", "child_runs")
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
Record = tuple[str, dict[str, Any]]


def sniff(sample: bytes, name: str) -> float:
    """By the fields of a first run; for Parquet by the names of the columns."""
    if sample.startswith(parquet.MAGIC):
        return 0.97 if {"id", "trace_id", "run_type", "dotted_order"} <= set(parquet.columns_in(sample)) else 0.0
    look = glimpse(sample)
    for head in look.heads[:3]:
        if _is_run(head):
            return 0.97
        for key in _HOLDERS:
            for part in elements(head.get(key, b"").strip())[:2]:
                if _is_run(members(part)):
                    return 0.97
        if {"rule_id", "runs"} <= head.keys() or head.keys() == {"post", "patch"}:
            return 0.95
    return 0.0


def _is_run(head: Head) -> bool:
    return (
        "id" in head and ("run_type" in head or "dotted_order" in head) and ("trace_id" in head or "run_type" in head)
    )


def keys(source: Source) -> set[str]:
    """The traces of a file: the late root of one may come in another."""
    return trace_keys(source, any_ids)


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each trace."""
    if source.magic in MAGIC:
        yield from _parquet(source)
    else:
        yield from by_trace(source, _parse, _build, any_ids)


def _parquet(source: Source) -> Iterator[Run | Reject]:
    waiting: dict[str | None, list[Record]] = {}
    for row in parquet.rows(source, parquet.columns_in(source.sample)):
        if isinstance(row, Reject):
            yield row
            continue
        run = {key: cell for key, cell in row.cells.items() if cell is not None}
        if word(run.get("id")) is None:
            yield Piece(row.place, run).reject("no id of a LangSmith run here")
        else:
            waiting.setdefault(_trace(run), []).append((row.place, run))
    for trace, records in waiting.items():
        yield from _build(trace, records)


def _parse(value: jsonstream.Value) -> Iterator[tuple[str | None, Record] | Reject]:
    for item in objects(value.place, value.raw, _HOLDERS):
        if isinstance(item, Reject):
            yield item
        elif word(item.value.get("id")) is None or not (item.value.keys() & {"run_type", "trace_id", "dotted_order"}):
            if not (item.value.keys() & {*_HOLDERS, "rule_id"}):
                yield item.reject("no id and type of a LangSmith run here")
        else:
            yield _trace(item.value), (item.place, item.value)


def _trace(run: dict[str, Any]) -> str | None:
    given = word(run.get("trace_id"))
    if given is not None:
        return given
    order = _order(run)
    if order:
        return order[0]
    parents = run.get("parent_run_ids")
    return word(parents[0]) if isinstance(parents, list) and parents else word(run.get("id"))


def _order(run: dict[str, Any]) -> list[str]:
    """Ids from the root down to the run, out of ``dotted_order``."""
    text = run.get("dotted_order")
    found = [_UUID.search(part) for part in text.split(".")] if isinstance(text, str) else []
    return [match[0] for match in found if match]


def _build(trace: str | None, records: list[Record]) -> Iterator[Run | Reject]:
    merged: dict[str, dict[str, Any]] = {}
    for _, record in records:
        known = merged.setdefault(str(record["id"]), {})
        for key, value in record.items():
            value = opened(value) if key in _JSON else value
            if value not in (None, {}, [], "") or key not in known:
                inner = known.get(key)
                known[key] = {**inner, **value} if isinstance(inner, dict) and isinstance(value, dict) else value
    runs = list(merged.values())
    root = next((run for run in runs if _parent(run) is None), None)
    metadata: dict[str, Any] = {}
    scores: list[Score] = []
    for run in runs:
        inner = _metadata(run)
        for key in ("thread_id", "session_id", "conversation_id", "revision_id", "user_id"):
            if inner.get(key) is not None:
                metadata.setdefault(key, inner[key])
        for name in ("session_name", "tags"):
            if run.get(name):
                metadata.setdefault(name, run[name])
        stats = run.get("feedback_stats")
        for name, stat in stats.items() if isinstance(stats, dict) else ():
            scores.append(Score(str(name), stat.get("avg") if isinstance(stat, dict) else stat, "feedback"))
    if root is not None and root.get("reference_example_id"):
        metadata["reference_example_id"] = root["reference_example_id"]
    yield build(
        [_node(run, position, run is root) for position, run in enumerate(runs)],
        place=records[0][0],
        native_id=trace,
        records=len(records),
        metadata=metadata,
        scores=scores,
        framework="langsmith",
        task_text=lambda: _task(root),
    )


def _task(root: dict[str, Any] | None) -> str | None:
    said = messages((root or {}).get("inputs"))
    return next((message.content for message in said if message.role == "user" and message.content), None)


def _parent(run: dict[str, Any]) -> str | None:
    given = word(run.get("parent_run_id"))
    parents = run.get("parent_run_ids")
    if given is None and isinstance(parents, list) and parents:
        given = word(parents[-1])
    order = _order(run)
    return given or (order[-2] if len(order) > 1 else None)


def _node(run: dict[str, Any], position: int, is_root: bool) -> Node:
    kind = _KINDS.get(str(run.get("run_type")), "agent" if is_root else "other")
    (start, zone), (end, _) = parse_time(run.get("start_time")), parse_time(run.get("end_time"))
    status, error = run.get("status"), run.get("error")
    failed = True if error or status == "error" else False if status == "success" else None
    node = Node(
        position=position,
        kind=kind,
        name=str(run.get("name") or ""),
        id=word(run.get("id")),
        parent=_parent(run),
        start=start,
        end=end,
        duration_s=seconds_between(start, end),
        zone=zone,
        failed=failed,
        error=error if isinstance(error, str) and error else None,
    )
    inputs, outputs = run.get("inputs"), run.get("outputs")
    if kind == "tool":
        _tool(node, run, inputs, outputs)
    elif kind in ("llm", "agent"):
        node.content = lambda: (messages(inputs), [said for said in messages(outputs, "assistant") if _is_answer(said)])
        if kind == "agent":
            node.agent = node.name
            node.content = lambda: (messages(inputs), _final(outputs))
        node.usage = _usage(run, outputs)
        node.cost_usd = _cost(run.get("total_cost"))
        parameters = _extra(run).get("invocation_params")
        parameters = parameters if isinstance(parameters, dict) else {}
        given = inputs if isinstance(inputs, dict) else {}
        node.schemas = parameters.get("tools") or parameters.get("functions") or given.get("tools")
        node.model = _model(run, parameters, outputs) if kind == "llm" else None
        if isinstance(outputs, dict) and kind == "llm":
            node.response_id = word(outputs.get("id"))
    return node


def _is_answer(said: Said) -> bool:
    return said.role in ("assistant", "tool")


def _final(outputs: Any) -> list[Said]:
    """The last answer: a graph's output repeats all messages of its state."""
    return [said for said in messages(outputs, "assistant") if said.role == "assistant"][-1:]


def _tool(node: Node, run: dict[str, Any], inputs: Any, outputs: Any) -> None:
    if isinstance(inputs, dict) and set(inputs) == {"input"}:
        inputs = inputs["input"]
    node.arguments = called_with(inputs)
    node.call_id = word(_extra(run).get("tool_call_id")) or word(_metadata(run).get("tool_call_id"))
    if outputs not in (None, {}):
        answer = answered(outputs)
        node.result, node.has_result = answer.text, True
        node.call_id = answer.call_id or node.call_id
        node.failed = answer.failed if answer.failed else node.failed


def _extra(run: dict[str, Any]) -> dict[str, Any]:
    extra = run.get("extra")
    return extra if isinstance(extra, dict) else {}


def _metadata(run: dict[str, Any]) -> dict[str, Any]:
    inner = _extra(run).get("metadata")
    return inner if isinstance(inner, dict) else {}


def _model(run: dict[str, Any], parameters: dict[str, Any], outputs: Any) -> str | None:
    answer = outputs if isinstance(outputs, dict) else {}
    last = answer.get("llm_output")
    said = last.get("model_name") if isinstance(last, dict) else None
    return (
        word(answer.get("model"))
        or word(said)
        or word(_metadata(run).get("ls_model_name"))
        or word(parameters.get("model"))
        or word(parameters.get("model_name"))
    )


def _usage(run: dict[str, Any], outputs: Any) -> Usage | None:
    for holder in _usages(outputs):
        found = tokens_of(holder)
        if found is not None:
            return found
    into, out = run.get("prompt_token_details"), run.get("completion_token_details")
    return tokens(
        run.get("prompt_tokens"),
        run.get("completion_tokens"),
        total=run.get("total_tokens"),
        cached=into.get("cache_read") if isinstance(into, dict) else None,
        reasoning=out.get("reasoning") if isinstance(out, dict) else None,
    )


def _cost(value: Any) -> float | None:
    """Dollars; the client writes its decimals as text. 0 stands for "not known"."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return (number(value) or None) if value != float("inf") else None


def _usages(outputs: Any) -> Iterator[Any]:
    if not isinstance(outputs, dict):
        return
    yield outputs.get("usage_metadata")
    generations = outputs.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, dict) and isinstance(generations.get("message"), dict):
        message = generations["message"]
        inner = message.get("kwargs") if isinstance(message.get("kwargs"), dict) else message
        yield inner.get("usage_metadata")
    last = outputs.get("llm_output")
    if isinstance(last, dict):
        yield last.get("token_usage") or last.get("usage")
    yield outputs.get("usage")
