"""Placeholders for what the shapes find: given out once a value, and resolved again.

JSON inside a text stays JSON: a bare number becomes a quoted placeholder.
Knows no message format: strings, lists and mappings in any depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from poc.errors import InputError, did_you_mean
from poc.redaction.shapes import KINDS, SHAPES, Shape, is_card, kind_of_field

T = TypeVar("T")

_NAMES = "|".join(KINDS)
_ISSUED = re.compile(rf'"<(?P<quoted>(?:{_NAMES})_number_[0-9]+)>"|<(?P<plain>(?:{_NAMES})(?:_number)?_[0-9]+)>')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class Redactor:
    """Redacts and restores for one trial. Give the kinds to look for, or all of `KINDS`.

    The same value always gets the same placeholder (``<email_1>``), so that a
    model can tell values apart and hand them on. The values stay in memory.
    Names of unknown kinds raise `InputError`.
    """

    def __init__(self, kinds: Iterable[str] = KINDS) -> None:
        chosen = tuple(kinds)
        for kind in chosen:
            if kind not in KINDS:
                raise InputError(f"There is no kind of redaction '{kind}'.{did_you_mean(kind, KINDS)}")
        self._kinds = frozenset(chosen)
        self._shapes = tuple(shape for shape in SHAPES if shape.kind in self._kinds)
        self._placeholders: dict[tuple[str, str], str] = {}
        self._values: dict[str, str] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}
        self._done: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Redactor({self.counts})"

    @property
    def counts(self) -> dict[str, int]:
        """How many different values were found, by kind; a kind without any is left out."""
        found: dict[str, set[str]] = {}
        for kind, value in self._placeholders:
            found.setdefault(kind.removesuffix("_number"), set()).add(value)
        return {kind: len(values) for kind, values in found.items()}

    def redact(self, value: T) -> T:
        """The same structure with placeholders in its texts; the input is left as it is.

        Doing it again changes nothing, and later texts keep the placeholders
        of earlier ones.
        """
        # Text that only looks like a placeholder must never be given out as one.
        for text in _texts(value):
            if "<" in text and text not in self._done:
                for match in _ISSUED.finditer(text):
                    name = match["quoted"] or match["plain"]
                    if name not in self._values:
                        self._taken.add(name)
        return self._forth(value, None)

    def restore(self, value: T) -> T:
        """The same structure with the values in place of the placeholders.

        Give it parsed arguments rather than their JSON text: a value may hold
        quotes. A number that was redacted becomes a number again.
        """
        return self._back(value)

    def _forth(self, value: Any, field: str | None) -> Any:
        if isinstance(value, str):
            return self._text(value, field)
        if isinstance(value, Mapping):
            return {
                self._forth(name, None): self._forth(part, name if isinstance(name, str) else None)
                for name, part in value.items()
            }
        if isinstance(value, list | tuple):
            return type(value)([self._forth(part, None) for part in value])
        if isinstance(value, int) and not isinstance(value, bool) and value > 999:
            kind = self._kind_of_number(str(value), field)
            return value if kind is None else f"<{self._placeholder(f'{kind}_number', str(value))}>"
        return value

    def _back(self, value: Any) -> Any:
        if isinstance(value, str):
            if "<" not in value:
                return value
            whole = _ISSUED.fullmatch(value)
            if whole and (name := whole["plain"]) in self._values and "_number_" in name:
                return int(self._values[name])
            return _ISSUED.sub(lambda match: self._values.get(match["quoted"] or match["plain"], match[0]), value)
        if isinstance(value, Mapping):
            return {self._back(name): self._back(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return type(value)([self._back(part) for part in value])
        return value

    def _text(self, text: str, field: str | None) -> str:
        if field is not None and not self._is_issued(text):
            kind = kind_of_field(field, text)
            if kind in self._kinds:
                return f"<{self._placeholder(kind, text)}>"
        done = self._done.get(text)
        if done is None:
            done = text
            # What stands beside a value may only show its shape once the value is gone.
            while (after := self._once(done)) != done:
                done = after
            self._done[text] = done
        return done

    def _once(self, text: str) -> str:
        folded = text.lower()
        for shape in self._shapes:
            if shape.may_be_in(text, folded):
                text = shape.regex.sub(lambda match, shape=shape: self._replaced(match, shape), text)
        return text

    def _replaced(self, match: re.Match[str], shape: Shape) -> str:
        begin, value = shape.found(match)
        if not value:
            return match[0]
        end = begin + len(value)
        if _is_bare_number(match.string, begin, end):
            shown = f'"<{self._placeholder(f"{shape.kind}_number", value)}>"'
        else:
            shown = f"<{self._placeholder(shape.kind, value)}>"
        return match.string[match.start() : begin] + shown + match.string[end : match.end()]

    def _placeholder(self, kind: str, value: str) -> str:
        name = self._placeholders.get((kind, value))
        if name is None:
            number = self._last.get(kind, 0) + 1
            while f"{kind}_{number}" in self._taken:
                number += 1
            self._last[kind] = number
            name = f"{kind}_{number}"
            self._placeholders[kind, value] = name
            self._values[name] = value
        return name

    def _is_issued(self, text: str) -> bool:
        match = _ISSUED.fullmatch(text)
        return match is not None and (match["quoted"] or match["plain"]) in self._values

    def _kind_of_number(self, digits: str, field: str | None) -> str | None:
        kind = kind_of_field(field, digits) if field is not None else None
        if kind is None and len(digits) >= 13 and is_card(digits):
            kind = "card"
        return kind if kind in self._kinds else None


def _is_bare_number(text: str, begin: int, end: int) -> bool:
    """Whether digits stand where JSON has a number: a placeholder there needs quotes."""
    value = text[begin:end]
    if not (value.isascii() and value.isdigit()) or value[0] == "0":
        return False
    head = text[:begin]
    if head.rstrip()[-1:] not in (":", "[", ",") or text[end : end + 20].lstrip()[:1] not in (",", "}", "]"):
        return False
    # Inside an object or a list, and not inside a string of it.
    frame = _STRING.sub("", head)
    return '"' not in frame and frame.count("{") + frame.count("[") > frame.count("}") + frame.count("]")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _texts(name)
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
