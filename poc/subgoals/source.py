"""YAML as people write it: plain data with the line of every key, and errors that name the line.

Stricter and plainer than YAML 1.1: a repeated key is refused; only ``true``
and ``false`` are booleans; dates, ``yes`` and ``12:30`` stay texts, since
JSON has none of them. Knows nothing of subgoals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from poc.errors import InputError

Place = tuple[str | int, ...]
_MOST_NODES = 100_000


class SpecError(InputError):
    """A file of subgoals that cannot be used as written; `where` names file and line."""


class _Loader(yaml.SafeLoader):
    """Resolves plain scalars as JSON knows them."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"~|null|", ["~", "n", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})$"), list(_first))


@dataclass
class Source:
    """A parsed file: its data, and the line (from 1) where each place in it was written."""

    where: str
    text: str
    data: Any = None
    lines: dict[Place, int] = field(default_factory=dict)

    def at(self, place: Place) -> str:
        """File, line and field, as precisely as known."""
        shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
        while place not in self.lines and place:
            place = place[:-1]
        line = f", line {self.lines[place]}" if place in self.lines else ""
        return f"{self.where}{line}" + (f", field {shown}" if shown else "")

    def error(self, what: str, place: Place, todo: str | None = None) -> SpecError:
        """An error at a place of this file."""
        return SpecError(what, where=self.at(place), todo=todo)


def parse_yaml(text: str, where: str) -> Source:
    """Read one YAML document. Raises `SpecError` with the line for anything that is not plain data."""
    source = Source(where, text)
    loader = None
    try:
        loader = _Loader(text.removeprefix("\ufeff"))
        node = loader.get_single_node()
        if node is None:
            raise SpecError("The file is empty.", where=where, todo="Write a subgoal set; `poc sample` makes examples.")
        source.data = _Reader(source, loader).read(node, (), ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SpecError(
            f"The YAML cannot be read: {error.problem or error.context}.",
            where=f"{where}{line}",
            todo="Check the indentation, quotes and colons there; inside {}, a JSON path with [ ] needs quotes.",
        ) from error
    except yaml.reader.ReaderError as error:
        raise SpecError(
            f"The YAML holds a character that is not allowed: {error.reason}.",
            where=f"{where}, character {error.position + 1}",
            todo="Remove it, or write it as an escape inside double quotes.",
        ) from error
    except RecursionError as error:
        raise SpecError("The YAML is nested too deeply.", where=where, todo="Flatten it.") from error
    finally:
        if loader is not None:
            loader.dispose()
    return source


class _Reader:
    """Turns nodes into plain data and notes their lines."""

    def __init__(self, source: Source, loader: _Loader) -> None:
        self.source = source
        self.loader = loader
        self.nodes = 0

    def read(self, node: yaml.Node, place: Place, parents: tuple[int, ...]) -> Any:
        self.source.lines.setdefault(place, node.start_mark.line + 1)
        self.nodes += 1
        if self.nodes > _MOST_NODES or id(node) in parents:
            raise self.source.error("An alias repeats itself or too much.", place, "Write the part out instead.")
        below = (*parents, id(node))
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, place, below)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.read(item, (*place, index), below) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        raise self.source.error(f"The tag '{node.tag}' is not allowed.", place, "Write plain YAML without tags.")

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        text = str(node.value)
        if kind == "str":
            if "\0" in text:
                raise self.source.error("A text holds a NUL character.", place, "Remove it.")
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text == "true"
        try:
            number = int(text) if kind == "int" else float(text) if kind == "float" else None
        except ValueError as error:
            raise self.source.error(f"'{text[:40]}' is no usable number.", place, "Put it in quotes.") from error
        if number is None:
            raise self.source.error(f"The tag '{node.tag}' is not allowed.", place, "Write plain YAML without tags.")
        return number

    def _mapping(self, node: yaml.MappingNode, place: Place, below: tuple[int, ...]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node, place) if isinstance(key_node, yaml.ScalarNode) else None
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                self.source.lines[(*place, str(key))] = line
                raise self.source.error("A key must be a text.", (*place, str(key)), "Put it in quotes.")
            if key in data:
                first = self.source.lines[(*place, key)]
                self.source.lines[(*place, key)] = line
                raise self.source.error(
                    f"The key '{key}' is given twice (first in line {first}).", (*place, key), "Keep one of them."
                )
            self.source.lines[(*place, key)] = line
            data[key] = self.read(value_node, (*place, key), below)
        return data
