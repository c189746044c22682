"""Which column of a team's table holds what: field names, suggestions, checks, mappings kept in files.

A mapping is ``{field: column}``, given as a dictionary or a YAML file, with
the options below. Columns are told by their names; where values are at hand,
they decide between columns whose names would both do. Knows no file format.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from poc.errors import InputError, did_you_mean
from poc.ingest.column_values import fits, is_event

FIELDS: dict[str, tuple[str, ...]] = {
    "tool": ("tool", "tool_name", "toolname", "function_name", "function", "action_name", "tool_call_name"),
    "arguments": (
        "arguments",
        "args",
        "tool_args",
        "tool_arguments",
        "params",
        "parameters",
        "tool_input",
        "input",
        "inputs",
    ),
    "result": ("result", "tool_result", "output", "tool_output", "tool_response", "response", "observation"),
    "status": ("status", "success", "ok", "tool_status", "is_success", "succeeded"),
    "failed": ("is_error", "failed", "has_error"),
    "exit_code": ("exit_code", "exitcode", "returncode", "return_code"),
    "error": ("error", "error_message", "exception", "error_type"),
    "started_at": ("started_at", "start_time", "start", "ts", "timestamp", "time", "created_at", "called_at"),
    "ended_at": ("ended_at", "end_time", "end", "finished_at", "completed_at"),
    "duration_s": ("duration_s", "duration_seconds", "seconds", "duration", "latency_s"),
    "duration_ms": ("duration_ms", "latency_ms", "elapsed_ms", "ms"),
    "run_id": (
        "run_id",
        "runid",
        "session_id",
        "sessionid",
        "session_key",
        "trace_id",
        "traceid",
        "conversation_id",
        "ticket_id",
    ),
    "step": ("step_index", "step", "step_number", "index", "seq", "sequence", "order", "position", "round"),
    "turn": ("turn", "turn_index", "message_index"),
    "call_id": ("call_id", "tool_call_id", "callid"),
    "execution_id": ("execution_id", "span_id", "request_id", "invocation_id"),
    "caller": ("caller", "requestor"),
    "task_key": ("task_id", "task_key", "task", "instance_id"),
    "trial": ("trial", "attempt", "repeat"),
    "task_text": ("task_text", "question", "query", "prompt", "user_message", "instruction", "request"),
    "category": ("category", "task_type", "intent"),
    "model": ("model", "model_name"),
    "framework": ("framework",),
    "outcome": ("outcome", "reward", "task_success", "run_success", "run_outcome", "solved", "resolved"),
    "input_tokens": ("input_tokens", "prompt_tokens", "tokens_in"),
    "output_tokens": ("output_tokens", "completion_tokens", "tokens_out"),
    "cached_tokens": ("cached_tokens", "cached_input_tokens"),
    "reasoning_tokens": ("reasoning_tokens",),
    "cost_usd": ("cost_usd", "cost"),
    "event": ("event", "event_type", "event_name", "phase", "lifecycle", "kind", "type"),
    "run_started_at": ("run_started_at", "run_start_time", "run_start"),
    "run_ended_at": ("run_ended_at", "run_end_time", "run_end"),
}
"""Every field that a column can be mapped to, with the column names that suggest it, most telling first."""

OPTIONS: dict[str, str] = {
    "table": "the table of a database that holds the calls",
    "gap_s": "a run ends where nothing happens for longer than this many seconds",
}
"""What a mapping may hold beside fields."""

GAP_S = "1800"
"""Suggested where rows have times and no run: half an hour, as sessions of visitors to a web site are cut."""

RUN_FIELDS: dict[str, tuple[str, ...]] = {
    "outcome": (*FIELDS["outcome"], "run_status", "status", "success"),
    "task_text": (*FIELDS["task_text"], "input_messages", "input", "inputs", "messages"),
    "task_key": FIELDS["task_key"],
    "category": FIELDS["category"],
    "trial": FIELDS["trial"],
    "model": FIELDS["model"],
    "framework": FIELDS["framework"],
    "run_started_at": FIELDS["started_at"],
    "run_ended_at": FIELDS["ended_at"],
    "input_tokens": (*FIELDS["input_tokens"], "total_input_tokens"),
    "output_tokens": (*FIELDS["output_tokens"], "total_output_tokens"),
    "cost_usd": (*FIELDS["cost_usd"], "total_cost", "total_cost_usd"),
}
"""Fields that a table with one row a run may hold, with the column names that suggest them."""

_WEAK_TOOL = ("name", "step", "action", "operation")
"""Names that hold the tool only where arguments or a result stand beside them."""


def suggest_mapping(columns: Sequence[str], rows: Sequence[Mapping[str, Any]] = ()) -> dict[str, str]:
    """The mapping that the column names suggest; each column is used once.

    rows: the first rows, if at hand. A column whose values do not fit a field
    gives way to another that fits; start and end events are told only by values.

    >>> suggest_mapping(["toolName", "args", "sessionKey", "latency_ms"])
    {'tool': 'toolName', 'arguments': 'args', 'duration_ms': 'latency_ms', 'run_id': 'sessionKey'}
    """
    plain = {_plain(column): column for column in reversed(columns)}
    used: set[str] = set()
    mapping: dict[str, str] = {}

    def take(field: str, names: Sequence[str]) -> None:
        found = [plain[name] for name in names if name in plain and plain[name] not in used]
        fitting = [column for column in found if fits(field, [row.get(column) for row in rows])]
        if found:
            mapping[field] = (fitting or found)[0]
            used.add(mapping[field])

    for name in FIELDS["event"]:
        column = plain.get(name)
        if column is not None and is_event([row.get(column) for row in rows]):
            mapping["event"] = column
            used.add(column)
            break
    take("tool", FIELDS["tool"])
    if "tool" not in mapping and any(name in plain for name in FIELDS["arguments"] + FIELDS["result"]):
        take("tool", _WEAK_TOOL)
    for field, names in FIELDS.items():
        if field not in ("tool", "event"):
            take(field, names)
    suggested = {field: mapping[field] for field in FIELDS if field in mapping}
    if rows and "tool" in mapping and "run_id" not in mapping:
        column = mapping.get("started_at", mapping.get("ended_at"))
        if column is not None and fits("started_at", [row.get(column) for row in rows]):
            suggested["gap_s"] = GAP_S
    return suggested


def suggest_run_fields(table: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What a table with one row a run adds to a mapping, as ``table.column``; only where the values fit."""
    plain = {_plain(column): column for column in reversed(columns)}
    mapping: dict[str, str] = {}
    for field, names in RUN_FIELDS.items():
        for name in names:
            column = plain.get(name)
            if column is not None and fits(field, [row.get(column) for row in rows], strict=True):
                mapping[field] = f"{table}.{column}"
                break
    return mapping


def strength(columns: Sequence[str]) -> float:
    """How much the column names look like a table of tool calls, 0..1."""
    mapping = suggest_mapping(columns)
    if "tool" not in mapping:
        return 0.0
    certain = _plain(mapping["tool"]) not in (*_WEAK_TOOL, "function")
    beside = sum(field in mapping for field in ("arguments", "result", "status", "started_at", "run_id"))
    return min(1.0, (0.5 if certain else 0.1) + 0.1 * beside)


def check_mapping(mapping: Mapping[str, str], columns: Sequence[str], *, where: str) -> None:
    """Refuse a mapping with unknown fields, columns that the file lacks, or no tool column (`InputError`)."""
    for field, column in mapping.items():
        if field in OPTIONS:
            if field == "gap_s" and not _is_seconds(column):
                raise InputError(
                    f"The mapping's gap_s must be a number of seconds, not '{column}'.",
                    where=where,
                    todo="Write for example 'gap_s: 1800'.",
                )
            continue
        if field not in FIELDS:
            near = did_you_mean(field, [*FIELDS, *OPTIONS])
            raise InputError(
                f"The mapping names the field '{field}', which does not exist.{near}",
                where=where,
                todo="Correct the name of the field in the mapping.",
            )
        if column not in columns:
            raise InputError(
                f"The mapping says that '{field}' is in the column '{column}', which the file does not have."
                + did_you_mean(column, columns),
                where=where,
                todo="Correct the name of the column in the mapping.",
            )
    if "tool" not in mapping:
        raise InputError(
            f"No column can be told to hold the tool's name. Columns: {', '.join(columns[:30]) or 'none'}.",
            where=where,
            todo="Give a mapping, for example {tool: <column>, arguments: <column>, run_id: <column>}.",
        )


def load_mapping(mapping: Mapping[str, str] | str | os.PathLike[str]) -> dict[str, str]:
    """A mapping from a dictionary or a YAML file. Raises `InputError` for anything else."""
    if isinstance(mapping, Mapping):
        return _checked(mapping, None)
    path = Path(mapping)
    try:
        return parse_mapping(path.read_bytes(), where=str(path))
    except OSError as error:
        raise InputError(
            f"The mapping cannot be read: {error.strerror or error}.", where=str(path), todo="Check the path."
        ) from error


def parse_mapping(text: str | bytes, *, where: str) -> dict[str, str]:
    """A mapping from YAML; `where` names it in errors (`InputError`)."""
    try:
        return _checked(yaml.safe_load(text), where)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"The mapping is no valid YAML: {error}", where=where, todo="Correct the file.") from error


def _checked(table: object, where: str | None) -> dict[str, str]:
    if not isinstance(table, Mapping) or not table:
        raise InputError(
            "The mapping must say which column holds which field.",
            where=where,
            todo="Write lines like 'tool: tool_name', one a field.",
        )
    table = {
        field: str(value) if field in OPTIONS and type(value) in (int, float) else value
        for field, value in table.items()
    }
    for field, column in table.items():
        if not isinstance(field, str) or not isinstance(column, str):
            raise InputError(
                f"In the mapping, '{field}' must be the name of one column, not {column!r}.",
                where=where,
                todo="Write lines like 'tool: tool_name', one a field.",
            )
    return table


def save_mapping(mapping: Mapping[str, str], path: str | os.PathLike[str]) -> Path:
    """Keep a mapping as YAML that `load_mapping` reads and people can edit. Raises `InputError` if it cannot."""
    table = load_mapping(mapping)
    text = yaml.safe_dump(table, allow_unicode=True, sort_keys=False)
    target = Path(path)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"The mapping cannot be written: {error.strerror or error}.",
            where=str(target),
            todo="Choose another place.",
        ) from error
    return target


def _is_seconds(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def _plain(column: str) -> str:
    """A column name as the tables above write it: toolName, tool-name and Tool Name are tool_name."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column.strip())
    return re.sub(r"[\s.\-]+", "_", snake).lower()
