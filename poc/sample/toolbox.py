"""How a tool of the sample world is declared: one function, its JSON Schema and its effect class.

`tool` registers a function in `TOOLS`; `check_arguments` holds a call against
the schema before the function sees it. Knows no tool and no database.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from poc.errors import did_you_mean
from poc.trajectory import EffectClass, ToolSchema

Function = Callable[..., dict[str, Any]]


class Refusal(Exception):
    """What the shop does not do, in words for the caller of the tool."""


class Tool(msgspec.Struct, frozen=True):
    """A tool: its schema as the model sees it and the function behind it."""

    schema: ToolSchema
    function: Function


TOOLS: dict[str, Tool] = {}

_MOST = 1e9

STRING = {"type": "string", "minLength": 1}


def tool(
    effect: EffectClass, description: str, required: list[str], **properties: Any
) -> Callable[[Function], Function]:
    """Register the decorated function as the tool of its name. properties: JSON Schema by argument, in order."""

    def register(function: Function) -> Function:
        name = function.__name__
        parameters = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        schema = ToolSchema(name=name, description=description, parameters=parameters, origin="given", effect=effect)
        TOOLS[name] = Tool(schema, function)
        return function

    return register


def check_arguments(name: str, arguments: Any) -> str | None:
    """What is wrong with the arguments of a known tool, or None. Covers the keywords that `TOOLS` uses."""
    if not isinstance(arguments, dict):
        return "Arguments must be a JSON object."
    parameters = TOOLS[name].schema.parameters or {}
    properties = parameters["properties"]
    for key in parameters["required"]:
        if key not in arguments:
            return f"Argument '{key}' is missing."
    for key, value in arguments.items():
        rule = properties.get(key)
        if rule is None:
            return f"Unknown argument '{key}'.{did_you_mean(str(key), properties)}"
        if problem := _number_problem(rule, value) if rule["type"] == "number" else _text_problem(rule, value):
            return f"Argument '{key}' {problem}."
    return None


def _text_problem(rule: dict[str, Any], value: Any) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return "must be a text that is not empty"
    if not _is_text(value):
        return "is no valid text (it holds half of a character)"
    if "enum" in rule and value not in rule["enum"]:
        return f"must be one of: {', '.join(rule['enum'])}"
    return None


def _number_problem(rule: dict[str, Any], value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "must be a number"
    # The upper end keeps sums inside what the database can hold; NaN fails the comparison.
    if not rule.get("exclusiveMinimum", -_MOST) < value < _MOST:
        return f"must be greater than {rule.get('exclusiveMinimum', -_MOST)} and less than {_MOST:.0f}"
    return None


def _is_text(value: str) -> bool:
    """Lone surrogates can come out of JSON escapes, but no database takes them."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
