"""What has been said in one conversation, so that history which every request repeats counts once.

A repetition is not always letter by letter: calls come back under another id,
split into several messages, or an answer with a stop sequence added. Knows
messages, no format.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

import msgspec

from poc.ingest.arguments import Arguments
from poc.ingest.readers.nodes import called_with
from poc.ingest.readers.said import Asked, Said

_LONG = 20
"""Signs of an answer from which on one that only continues it is taken for the same."""


class Heard:
    """The messages of one conversation so far."""

    def __init__(self) -> None:
        self._texts: defaultdict[Hashable, int] = defaultdict(int)
        self._ids: defaultdict[str, int] = defaultdict(int)
        self._calls: defaultdict[Hashable, int] = defaultdict(int)
        self._answers: list[str] = []

    def add(self, said: Said) -> None:
        """A message was said."""
        if said.calls:
            for call in said.calls:
                self._calls[_mark(call)] += 1
                if call.call_id is not None:
                    self._ids[call.call_id] += 1
            return
        self._texts[_text_mark(said)] += 1
        if said.role == "assistant" and said.content:
            self._answers.append(said.content.strip())

    def new(self, request: list[Said]) -> Iterator[Said]:
        """The messages of a request that were not said before; they count as said from now on."""
        texts: dict[Hashable, int] = {}
        calls: defaultdict[Hashable, int] = defaultdict(int)
        ids: defaultdict[str, int] = defaultdict(int)
        for said in request:
            if said.calls:
                fresh: list[Asked] = []
                for call in said.calls:
                    mark = _mark(call)
                    by_id = call.call_id is not None and ids[call.call_id] < self._ids[call.call_id]
                    if by_id or calls[mark] < self._calls[mark]:
                        calls[mark] += 1
                        if call.call_id is not None:
                            ids[call.call_id] += 1
                    else:
                        fresh.append(call)
                if not fresh:
                    continue
                said = Said(said.role, said.content, fresh, said.call_id, said.name, said.failed)
                for call in fresh:
                    calls[_mark(call)] += 1
                    if call.call_id is not None:
                        ids[call.call_id] += 1
            else:
                mark = _text_mark(said)
                times = texts[mark] = texts.get(mark, 0) + 1
                if times <= self._texts[mark] or self._continued(said):
                    continue
            self.add(said)
            yield said

    def _continued(self, said: Said) -> bool:
        """Whether a message is an answer that came back with something added at its end."""
        if said.role != "assistant" or not said.content:
            return False
        text = said.content.strip()
        return any(len(answer) >= _LONG and text.startswith(answer) for answer in self._answers)


def canonical(arguments: Arguments) -> str | None:
    """Arguments in a form in which equal ones are equal text; None where they cannot be parsed."""
    if arguments[1] is None:
        return None
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments[1]), order="sorted").decode()
    except (msgspec.DecodeError, RecursionError):
        return arguments[1]


def _mark(call: Asked) -> Hashable:
    if call.mark is None:
        arguments = called_with(call.arguments)
        call.mark = call.name, canonical(arguments) or arguments[0]
    return call.mark


def _text_mark(said: Said) -> Hashable:
    if said.role == "tool" and said.call_id is not None:
        return "tool", said.call_id
    return said.role, (said.content or "").strip()
