"""Tools that the simulated agent does not know: valid calls, marked, and an early end."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poc.sample.agent import respond
from poc.sample.unknown_tools import MOST_TURNS, draw


def an_object(required: list[str] | None = None, /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties) if required is None else required}


NODE = an_object(["name"], name={"type": "string"}, next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})
SCHEMAS: list[dict[str, Any]] = [
    an_object(["q"], q={"type": "string"}, n={"type": "integer", "minimum": 3}),
    an_object(),
    {"type": "object"},
    an_object(kind={"enum": ["a", 2, None]}, fixed={"const": "x"}),
    an_object(a={"type": ["string", "null"]}, b={"type": "null"}),
    an_object(a={"anyOf": [{"type": "null"}, {"type": "integer", "maximum": -5}]}),
    an_object(a={"allOf": [{"minLength": 9}, {"type": "string", "maxLength": 10}]}),
    an_object(a={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
    an_object(a={"type": "number", "multipleOf": 0.5, "minimum": 1.2, "maximum": 2}),
    an_object(d={"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}),
    an_object(list={"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 2, "maxItems": 3})
    | {"$defs": {"node": NODE | {"additionalProperties": False}}},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_draws_are_valid(schema: dict[str, Any]) -> None:
    for seed in range(50):
        jsonschema.validate(draw(schema, random.Random(seed)), schema)


leaf = st.one_of(
    st.integers(-50, 50).flatmap(
        lambda low: st.integers(low, low + 20).map(lambda high: {"type": "integer", "minimum": low, "maximum": high})
    ),
    st.integers(0, 9).flatmap(
        lambda least: st.integers(least, 12).map(lambda most: {"type": "string", "minLength": least, "maxLength": most})
    ),
    st.lists(st.text(), min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.just({"type": "boolean"}),
)
schemas = st.recursive(
    leaf,
    lambda inner: (
        st.dictionaries(st.text(max_size=4), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "required": list(properties)[:2]}
        )
        | st.tuples(inner, st.integers(0, 2)).map(lambda p: {"type": "array", "items": p[0], "minItems": p[1]})
        | st.lists(inner, min_size=1, max_size=2).map(lambda options: {"anyOf": options})
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=150)
@given(schemas, st.integers(0, 2**32))
def test_draws_are_valid_under_any_schema_of_these_forms(schema: dict[str, Any], seed: int) -> None:
    jsonschema.validate(draw(schema, random.Random(seed)), schema)


BOOK = an_object(["flight"], flight={"type": "string"}, seats={"type": "integer"})
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": BOOK}}
    for name in ("book_flight", "hold_flight")
]


def run(seed: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Book me a flight."}]
    while True:
        reply = respond(messages, TOOLS, seed=seed)
        assert reply.unknown_tools
        if not reply.calls:
            return messages
        (call,) = reply.calls
        jsonschema.validate(call.arguments, BOOK)
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        made = {"id": "same", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": "same", "content": "ok"})


def test_a_run_with_unknown_tools_is_valid_repeatable_and_ends() -> None:
    lengths = set()
    for seed in range(40):
        messages = run(seed)
        assert messages == run(seed)
        turns = sum(message["role"] == "assistant" for message in messages)
        assert 2 <= turns <= MOST_TURNS
        lengths.add(turns)
        flights = [
            json.loads(m["tool_calls"][0]["function"]["arguments"])["flight"] for m in messages if "tool_calls" in m
        ]
        assert len(set(flights)) == 1, "what a call has named is named again"
    assert len(lengths) > 2


def test_a_tool_without_parameters_and_a_foreign_majority() -> None:
    bare = [{"type": "function", "function": {"name": "ping"}}]
    reply = respond([{"role": "user", "content": "ping"}], bare, seed=1)
    assert (reply.calls[0].name, reply.calls[0].arguments, reply.unknown_tools) == ("ping", {}, True)
    mixed = [*TOOLS, {"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}]
    assert respond([{"role": "user", "content": "W-20101"}], mixed, seed=1).unknown_tools
