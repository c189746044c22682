"""What the simulated agent does with tools that it does not know: schema-valid calls, and an early end.

Such calls have the right form and no sense. Whoever uses them must say so;
the server marks each answer. Draws cover what tool schemas use: types, enum,
const, unions, nested objects and arrays, bounds, common formats, local
references. A regular expression is met by trying common forms; where none
fits the value may break the pattern. Knows no tool by name.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Mapping
from typing import Any

from poc.sample.reading import Reading

LEAST_TURNS, MOST_TURNS = 2, 6
_STOP = 0.35
_DEPTH = 6

_FORMATS = {
    "date": "2025-06-16",
    "date-time": "2025-06-16T09:00:00Z",
    "time": "09:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "uuid": "6f1f6f0e-3d1c-4a53-9a35-0f4f0c8f2b11",
    "ipv4": "192.0.2.1",
}
_FORMS = ("a", "A", "1", "12", "123", "1234", "12345", "123456", "12345678", "abc", "ABC", "ABC123", "a-b", "A1",
          "10:00", "AB-123", "#W1234567", *_FORMATS.values())  # fmt: skip


def improvise(
    reading: Reading, offered: Mapping[str, Mapping[str, Any]], rng: random.Random, *, must_call: bool
) -> list[tuple[str, dict[str, Any]]]:
    """One call of a tool drawn at random, or none: it stops by chance from the third turn on, and after the sixth.

    A text argument takes the value that an earlier call gave to an argument of
    the same name, where there is one that fits.
    """
    turn = reading.turn
    if not must_call and (turn >= MOST_TURNS or (turn >= LEAST_TURNS and rng.random() < _STOP)):
        return []
    name = rng.choice(sorted(offered))
    schema = offered[name].get("parameters") or {"type": "object", "properties": {}}
    arguments = draw(schema, rng)
    arguments = arguments if isinstance(arguments, dict) else {}
    for call in reading.calls:
        for key in arguments.keys() & call.arguments.keys():
            rule = schema.get("properties", {}).get(key, {})
            plain = (
                isinstance(rule, Mapping)
                and rule.get("type") == "string"
                and set(rule) <= {"type", "description", "title"}
            )
            if plain and isinstance(call.arguments[key], str):
                arguments[key] = call.arguments[key]
    return [(name, arguments)]


def draw(schema: Any, rng: random.Random, root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """A value that is valid under a JSON Schema, for the keywords named in the module's docstring."""
    if not isinstance(schema, Mapping):
        return "x"
    root = schema if root is None else root
    if "$ref" in schema:
        return draw(_resolve(str(schema["$ref"]), root), rng, root, depth + 1) if depth < 3 * _DEPTH else None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return rng.choice(list(schema["enum"]))
    for union in ("anyOf", "oneOf"):
        if schema.get(union):
            options = [option for option in schema[union] if option.get("type") != "null"] or list(schema[union])
            rest = {key: value for key, value in schema.items() if key != union}
            return draw({**rest, **rng.choice(options)}, rng, root, depth + 1)
    if schema.get("allOf"):
        return draw(_merged(schema, root), rng, root, depth + 1)
    kind = schema.get("type") or ("object" if "properties" in schema else "array" if "items" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    return _DRAWS.get(kind, _null)(schema, rng, root, depth)


def _object(schema: Mapping[str, Any], rng: random.Random, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    wanted = [name for name in properties if name in required or (depth < 2 and rng.random() < 0.3)]
    drawn = {name: draw(properties[name], rng, root, depth + 1) for name in wanted}
    return drawn | dict.fromkeys(required - set(properties), "x")


def _array(schema: Mapping[str, Any], rng: random.Random, root: Mapping[str, Any], depth: int) -> list[Any]:
    least = int(schema.get("minItems", 0))
    most = int(schema.get("maxItems", max(least, 2)))
    size = least if depth >= _DEPTH else min(max(least, 1), most)
    items = [draw(schema.get("items", {"type": "string"}), rng, root, depth + 1) for _ in range(size)]
    return items


def _string(schema: Mapping[str, Any], rng: random.Random, root: Mapping[str, Any], depth: int) -> str:
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    least = int(schema.get("minLength", 1))
    most = int(schema.get("maxLength", max(least, 8)))
    if pattern := schema.get("pattern"):
        longest = schema.get("maxLength", float("inf"))
        try:
            fitting = [form for form in _FORMS if re.search(pattern, form) and least <= len(form) <= longest]
        except re.error:
            fitting = []
        if fitting:
            return rng.choice(fitting)
    size = max(least, min(most, 6))
    return "".join(rng.choices(string.ascii_lowercase, k=size))


def _number(schema: Mapping[str, Any], rng: random.Random, root: Mapping[str, Any], depth: int) -> int | float:
    step = schema.get("multipleOf", 1)
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema and not isinstance(schema["exclusiveMinimum"], bool):
        low = max(schema["exclusiveMinimum"] + step, low if low is not None else float("-inf"))
    if "exclusiveMaximum" in schema and not isinstance(schema["exclusiveMaximum"], bool):
        high = min(schema["exclusiveMaximum"] - step, high if high is not None else float("inf"))
    low = low if low is not None else min(1, high) if high is not None else 1
    high = high if high is not None else low + 9 * step
    if schema.get("type") != "integer" and low > high:
        # A narrow open interval holds no whole step: its middle.
        bottom, top = schema.get("exclusiveMinimum", low), schema.get("exclusiveMaximum", high)
        return (bottom + top) / 2
    first = -(-low // step)
    value = (first + rng.randint(0, max(int(high // step - first), 0))) * step
    if schema.get("type") == "integer":
        return int(value)
    return value if low <= value <= high else low


def _boolean(schema: Mapping[str, Any], rng: random.Random, root: Mapping[str, Any], depth: int) -> bool:
    return rng.random() < 0.5


def _null(schema: Mapping[str, Any], rng: random.Random, root: Mapping[str, Any], depth: int) -> None:
    return None


_DRAWS = {
    "object": _object, "array": _array, "string": _string, "number": _number, "integer": _number, "boolean": _boolean,
}  # fmt: skip


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    """A local reference (``#/$defs/name``); an empty schema for any other."""
    node: Any = root
    if not reference.startswith("#"):
        return {}
    for part in filter(None, reference[1:].split("/")):
        part = part.replace("~1", "/").replace("~0", "~")
        node = node.get(part, {}) if isinstance(node, Mapping) else {}
    return node


def _merged(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema["allOf"]:
        part = _resolve(str(part["$ref"]), root) if "$ref" in part else part
        for key, value in part.items():
            if key == "properties":
                merged[key] = {**merged.get(key, {}), **value}
            elif key == "required":
                merged[key] = list(dict.fromkeys([*merged.get(key, []), *value]))
            else:
                merged.setdefault(key, value)
    return merged
