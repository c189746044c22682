"""OpenAI chat messages (``chat.completions``) in the wrappers that people keep them in.

Read here: one bare message list; a list of lists; a JSONL file of bare lists,
of run objects or of single messages; run objects with ``messages``, ``traj``,
``trajectory`` or ``conversation``; objects that hold a list of such runs;
tau-bench (``traj``, ``reward``, ``info.task``) and tau2-bench
(``simulations``) results. A first line that holds only metadata describes the
file. A run is read whole or becomes a reject: never half a run.

A run object may also say: its id, task and trial, category, model, tools,
times, usage, outcome (first found of ``reward``, ``outcome``, ``success``).
What is left over goes to the run's metadata. Knows no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from poc.ingest import jsonstream
from poc.ingest.readers import chat_runs
from poc.ingest.readers.chat_messages import decode_messages, fill
from poc.ingest.readers.chat_runs import NotARun
from poc.ingest.sources import NotApart, Source
from poc.trajectory import Reject, Run

NAME = "openai_chat"
VERSION = 1

_HOLD_MESSAGES = frozenset(chat_runs.MESSAGE_KEYS)
_RUN_LISTS = ("simulations", "runs", "trajectories", "conversations", "data")
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
Fields = dict[str, msgspec.Raw]
_OTHERS = tuple(
    f'"{mark}"'.encode()
    for mark in ["tool_use", "tool_result", "input_schema", "function_call_output", "input_text", "output_text"]
)
"""What messages hold that are Anthropic's, or items of OpenAI's other API."""
_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def sniff(sample: bytes, name: str) -> float:
    """How sure this is a chat log, 0..1: by the shape of its first records, which may be cut off."""
    body = sample.removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = [line.strip() for line in body.splitlines()[:20]]
    candidates = [body] if body[:1] in (b"{", b"[") else []
    candidates += [line for line in lines if line[:1] in (b"{", b"[") and len(line) > 2]
    best = max((_likeness(candidate, 0) for candidate in candidates), default=0.0)
    if best and b'"tool_calls"' not in sample and any(mark in sample for mark in _OTHERS):
        return 0.0
    return best


def read(source: Source) -> Iterator[Run | Reject]:
    """The runs of the file. Lines, offsets and JSON paths in `place` are counted here."""
    reader = _Reading(part=source.is_part)
    for number, value in enumerate(jsonstream.values(source)):
        yield from reader.top(value, first=number == 0)
    yield from reader.end()


def apart(source: Source) -> bool:
    """Whether each line of the file is a run of its own, as far as its first lines tell (see `poc.ingest.apart`)."""
    if jsonstream.layout(source) != "lines":
        return False
    for line in source.sample.removeprefix(b"\xef\xbb\xbf").splitlines()[:20]:
        fields = _fields(line.strip())
        if fields is not None and _HOLD_MESSAGES.isdisjoint(fields):
            return False  # a header, or a single message
    return True


class _Reading:
    """What must be remembered across the records of one file."""

    def __init__(self, *, part: bool) -> None:
        self.part = part
        self.header: dict[str, object] = {}
        self.loose: list[bytes] = []
        self.loose_place = ""

    def top(self, value: jsonstream.Value, *, first: bool) -> Iterator[Run | Reject]:
        """One top-level value of the file."""
        fields = _fields(value.raw)
        if fields is not None:
            if not _HOLD_MESSAGES.isdisjoint(fields):  # the usual case
                yield from self._record(value.place, value.raw, fields=fields)
                return
            if first and not self.part and fields and fields.keys() <= {"metadata", "meta", "info", "config"}:
                self.header = msgspec.json.decode(value.raw)
                return
            if "role" in fields:
                if self.part:
                    raise NotApart
                self.loose_place = self.loose_place or value.place
                self.loose.append(value.raw)
                return
        yield from self._value(value.place, value.raw, 0, fields)

    def end(self) -> Iterator[Run | Reject]:
        """The run made of single messages, if the file held such."""
        if self.loose:
            raw = b"[" + b",".join(self.loose) + b"]"
            yield from self._record(self.loose_place, raw, records=len(self.loose))

    def _value(self, place: str, raw: bytes, depth: int, fields: Fields | None = None) -> Iterator[Run | Reject]:
        if raw[:1] == b"[" and depth < 4:
            yield from self._list(place, raw, depth)
        elif raw[:1] == b"{":
            yield from self._object(place, raw, depth, fields or _fields(raw))
        else:
            reason = "not a JSON object or list" if depth else jsonstream.why(raw)
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw))

    def _list(self, place: str, raw: bytes, depth: int) -> Iterator[Run | Reject]:
        parts, broken = jsonstream.elements(raw)
        if parts and "role" in (_fields(bytes(parts[0][1]).strip()) or ()):
            yield from self._record(place, raw)
            return
        if not parts and broken is None:
            yield Reject(place=place, reason="an empty list: no messages", raw="[]")
        for index, (offset, part) in enumerate(parts):
            inner = f"{place} [{index}]" + (f" +{offset}" if offset >= 0 else "")
            yield from self._value(inner, bytes(part).strip(), depth + 1)
        if broken is not None:
            yield _rest(place, raw, broken)

    def _object(self, place: str, raw: bytes, depth: int, fields: Fields | None) -> Iterator[Run | Reject]:
        broken: int | None = None
        known: Mapping[str, msgspec.Raw | bytes] = fields or {}
        if fields is None:  # broken: only a list of whole runs inside it is worth looking for
            known, broken = jsonstream.members(raw)
        runs = next((key for key in _RUN_LISTS if bytes(known.get(key, b""))[:1] == b"["), None)
        if runs is None or depth >= 4 or not _HOLD_MESSAGES.isdisjoint(known):
            yield from self._record(place, raw, fields=fields)
            return
        inside = bytes(known[runs])
        tau2 = chat_runs.Tau2File(known) if runs == "simulations" else None
        parts, cut = jsonstream.elements(inside)
        for index, (_, part) in enumerate(parts):
            part_place = f"{place} .{runs}[{index}]"
            if tau2 is None:
                yield from self._value(part_place, bytes(part).strip(), depth + 1)
            else:
                yield from self._record(part_place, bytes(part).strip(), tau2=tau2)
        if cut is not None:
            yield _rest(f"{place} .{runs}", inside, cut)
        elif broken is not None:
            yield _rest(place, raw, broken)

    def _record(
        self,
        place: str,
        raw: bytes,
        *,
        records: int = 1,
        fields: Fields | None = None,
        tau2: chat_runs.Tau2File | None = None,
    ) -> Iterator[Run | Reject]:
        """One run; where its text is not quite JSON it is mended, and the change is noted as a reject of 0 records."""
        try:
            try:
                yield self._build(place, raw, records, fields, tau2)
            except _DECODE_ERRORS as error:
                if isinstance(error, msgspec.ValidationError) and "out of range" not in str(error):
                    raise
                mended = jsonstream.mend(raw)
                if mended is None:
                    raise
                run = self._build(place, mended[0], records, None, tau2)
                note = f"kept, with changes: {mended[1]}"
                yield Reject(place=place, reason=note, raw=jsonstream.excerpt(raw), records=0)
                yield run
        except NotARun as error:
            yield Reject(place=place, reason=str(error), raw=jsonstream.excerpt(raw), records=records)
        except msgspec.ValidationError as error:
            reason = f"the messages are not as this format has them: {error}"
            yield Reject(place=place, reason=reason, raw=jsonstream.excerpt(raw), records=records)
        except _DECODE_ERRORS:
            yield Reject(place=place, reason=jsonstream.why(raw), raw=jsonstream.excerpt(raw), records=records)

    def _build(
        self, place: str, raw: bytes, records: int, fields: Fields | None, tau2: chat_runs.Tau2File | None
    ) -> Run:
        run = Run(place=place, records=records)
        if raw[:1] == b"[":
            fill(run, decode_messages(raw))
        else:
            chat_runs.build(run, fields or _decode_fields(raw), tau2)
        if self.header:
            run.metadata = {**run.metadata, "file": self.header}
        return run


def _rest(place: str, raw: bytes, offset: int) -> Reject:
    rest = raw[offset:]
    if not rest.strip():
        return Reject(place=f"{place} +{offset}", reason="the file ends in the middle of a value", raw=None)
    reason = "broken JSON: from here on nothing could be read"
    return Reject(place=f"{place} +{offset}", reason=reason, raw=jsonstream.excerpt(rest))


def _fields(raw: bytes) -> Fields | None:
    """The members of an object, unparsed; None for anything else and for broken text."""
    if raw[:1] != b"{":
        return None
    try:
        return _decode_fields(raw)
    except _DECODE_ERRORS:
        return None


def _likeness(raw: bytes, depth: int) -> float:
    """How much a value, perhaps cut off, looks like something that this reader can read."""
    if raw[:1] == b"[" and depth < 5:
        return _likeness(_first(raw), depth + 1)
    if raw[:1] != b"{":
        return 0.0
    fields, _ = jsonstream.members(raw)
    for key in chat_runs.MESSAGE_KEYS:
        inside = bytes(fields.get(key, b""))
        if inside[:1] == b"[":
            if key == "messages" and not _first(inside):
                return 0.6
            # The list itself must hold messages, not things that hold messages.
            message, _ = jsonstream.members(_first(inside)) if _first(inside)[:1] == b"{" else ({}, None)
            return 0.9 if "role" in message else 0.0
    for key in _RUN_LISTS:
        inside = bytes(fields.get(key, b""))
        if inside[:1] == b"[":
            return _likeness(inside, depth + 1)
    if "ticks" in fields and "termination_reason" in fields:
        return 0.9
    if "role" in fields:
        return 0.9 if any(key in fields for key in ("content", "tool_calls", "function_call")) else 0.5
    # A large results file may be cut before its runs begin.
    return 0.8 if "tasks" in fields and "info" in fields and "timestamp" in fields else 0.0


def _first(raw: bytes) -> bytes:
    """The first element of a list, perhaps cut off; empty for an empty list."""
    parts, broken = jsonstream.elements(raw)
    if parts:
        return bytes(parts[0][1]).strip()
    return raw[broken:].strip() if broken is not None else b""
