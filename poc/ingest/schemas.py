"""JSON Schema of a tool's arguments, worked out from the calls in the log.

The types come from DuckDB's ``json_group_structure``; a property is required
when every call had it. Such a schema describes what was seen, not what the
tool accepts, so it is marked as inferred wherever it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from poc.ingest.readers.chat_messages import UNNAMED
from poc.trajectory import ToolSchema

_TYPES = {
    "VARCHAR": "string",
    "BOOLEAN": "boolean",
    "BIGINT": "integer",
    "UBIGINT": "integer",
    "HUGEINT": "integer",
    "DOUBLE": "number",
}


def inferred_tools(steps: pa.RecordBatchReader) -> dict[str, ToolSchema]:
    """A schema for each tool that the agent called in the staged steps. Calls of a simulated user are left out."""
    # In memory, so that the workspace is not held while a large log is looked through.
    with duckdb.connect() as db:
        db.execute("SET preserve_insertion_order = false")
        db.register("arriving", steps)
        # One example of each shape stands for all calls of that shape: memory does not grow with the log.
        db.execute(
            "CREATE TABLE shapes AS WITH calls AS (SELECT tool, TRY_CAST(arguments AS JSON) AS arguments FROM arriving"
            " WHERE caller <> 'user' AND tool <> ?), objects AS ("
            "SELECT tool, CASE WHEN json_type(arguments) = 'OBJECT' THEN arguments END AS arguments FROM calls)"
            " SELECT tool, json_structure(arguments) AS shape, any_value(arguments) AS example, count(*) AS times"
            " FROM objects GROUP BY tool, shape",
            [UNNAMED],
        )
        tools = db.execute(
            "SELECT tool, coalesce(sum(times) FILTER (example IS NOT NULL), 0),"
            " json_group_structure(example)::VARCHAR FROM shapes GROUP BY tool ORDER BY tool"
        ).fetchall()
        keys: dict[str, dict[str, int]] = {}
        for tool, key, times in db.execute(
            "SELECT tool, key, sum(times) FROM ("
            "SELECT tool, unnest(list_distinct(json_keys(example))) AS key, times FROM shapes) GROUP BY tool, key"
        ).fetchall():
            keys.setdefault(tool, {})[key] = times
    return {
        tool: ToolSchema(name=tool, parameters=infer(shape, calls, keys.get(tool, {})), origin="inferred")
        for tool, calls, shape in tools
    }


def infer(structure: str | None, calls: int, present: Mapping[str, int]) -> dict[str, Any]:
    """A schema from the merged structure of `calls` argument objects and how many had each property.

    >>> infer('{"id":"VARCHAR","n":"UBIGINT"}', 3, {"id": 3, "n": 1})["required"]
    ['id']
    """
    schema = _schema(json.loads(structure)) if structure else {}
    if schema.get("type") != "object":
        schema = {"type": "object", "properties": {}}
    required = [name for name in schema["properties"] if present.get(name, 0) == calls]
    if required:
        schema["required"] = required
    return schema


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """One schema for what two inferred ones describe: all properties, required only where both require."""
    properties: dict[str, Any] = dict(old.get("properties", {}))
    for name, schema in new.get("properties", {}).items():
        properties[name] = _either(properties[name], schema) if name in properties else schema
    merged: dict[str, Any] = {"type": "object", "properties": properties}
    required = [name for name in old.get("required", []) if name in new.get("required", [])]
    if required:
        merged["required"] = required
    return merged


def _schema(structure: Any) -> dict[str, Any]:
    if isinstance(structure, dict):
        return {"type": "object", "properties": {name: _schema(value) for name, value in structure.items()}}
    if isinstance(structure, list):
        items = _schema(structure[0]) if structure else {}
        return {"type": "array", "items": items} if items else {"type": "array"}
    kind = _TYPES.get(structure)
    return {"type": kind} if kind else {}


def _either(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    if a == b:
        return a
    kinds = {a.get("type"), b.get("type")}
    if kinds == {"integer", "number"}:
        return {"type": "number"}
    if kinds == {"object"}:
        nested = merge(a, b)
        return nested if nested["properties"] else {"type": "object"}
    if kinds == {"array"}:
        items = _either(a.get("items", {}), b.get("items", {}))
        return {"type": "array", "items": items} if items else {"type": "array"}
    return {}
