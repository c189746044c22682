"""JSON-RPC messages out of a log, whatever stands around them: who sent them, when, on which connection.

Senders are "client" and "server" where the log names them, else "out" and
"in" as the one who wrote the log saw it, None where it says nothing. Knows
nothing of calls and runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.readers.decoding import glimpse, loads
from poc.ingest.readers.records import parsed, records
from poc.ingest.sources import Source
from poc.trajectory import Reject

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_FROM = re.compile(r"Message from (client|server)", re.IGNORECASE)
_BRACKET = re.compile(r"\[([^\[\]]+)\]")
_PID = re.compile(r"\bpid[=: ]+(\d+)", re.IGNORECASE)
_LEVELS = frozenset(
    ("info", "error", "warn", "warning", "debug", "trace", "notice", "request", "response", "req", "res", "in", "out")
)
_WORDS: tuple[tuple[str, str], ...] = (
    (r"client[\s_-]*(?:to|->|→|=>|>>)[\s_-]*server|from[\s_-]*client|client_to_server|\bc2s\b", "client"),
    (r"server[\s_-]*(?:to|->|→|=>|>>)[\s_-]*client|from[\s_-]*server|server_to_client|\bs2c\b", "server"),
    (r"\b(?:sent|send|sending|outgoing|outbound|out|tx|stdin)\b|-->|->|→|>>", "out"),
    (r"\b(?:received|recv|receive|incoming|inbound|in|rx|stdout)\b|<--|<-|←|<<", "in"),
    (r"^\W*client\W*$", "client"),
    (r"^\W*server\W*$", "server"),
)
_DIRECTIONS = [(re.compile(pattern, re.IGNORECASE), sender) for pattern, sender in _WORDS]
_INNER = (
    "message",
    "payload",
    "data",
    "msg",
    "rpc",
    "jsonrpc_message",
    "body",
    "content",
    "raw",
    "request",
    "response",
)
_AT = ("timestamp", "ts", "time", "@timestamp", "datetime", "date", "created_at")
_CONNECTION = ("connection_id", "connection", "conn", "session_id", "sessionId", "session", "pid", "server_name")
_SERVER = ("server", "serverName", "mcp_server")
_DIRECTION = ("direction", "dir", "from", "source", "sender", "type", "event", "kind")


class Packet(msgspec.Struct, gc=False):
    """One message and what is known of its way."""

    place: str
    message: dict[str, Any]
    raw: bytes
    text: bytes = b""
    """The message's own text, where the file has it as such."""
    at: Any = None
    sender: str | None = None
    connection: str | None = None


def looks_so(sample: bytes) -> bool:
    """Whether the first lines hold messages of MCP."""
    if b'"jsonrpc"' not in sample and b'\\"jsonrpc\\"' not in sample:
        return False
    heads = glimpse(sample).heads
    if _is_json(sample):
        hits = sum(
            "jsonrpc" in head or any(b"jsonrpc" in head.get(key, b"")[:3000] for key in _INNER) for head in heads
        )
        return hits * 2 >= len(heads) and hits > 0
    lines = sample[: 1 << 16].splitlines()
    return any(_message_at(line) is not None for line in lines)


def packets(source: Source) -> Iterator[Packet | Reject]:
    """The messages of the file in order."""
    if _is_json(source.sample):
        for record in records(source, flat=True):
            if isinstance(record, Reject):
                yield record
                continue
            packet = _unwrap(record.place, record.value, record.raw)
            yield packet if packet is not None else record.reject("no JSON-RPC message here")
        return
    with source.open() as file:
        for number, line in enumerate(file, 1):
            source.consumed += len(line)
            start = _message_at(line)
            if start is not None:
                yield from _text_line(f"line {number}", line, start)


def _is_json(sample: bytes) -> bool:
    body = sample.removeprefix(b"\xef\xbb\xbf").lstrip()
    # "[2025-01-31 10:00:00] .." begins like a list.
    return body[:1] == b"{" or (body[:1] == b"[" and body[1:].lstrip()[:1] in (b"{", b"]"))


def _message_at(line: bytes) -> int | None:
    """Where in a line of text its message begins."""
    if b'"jsonrpc"' not in line:
        return None
    start = line.find(b"{")
    return start if start >= 0 else None


def _text_line(place: str, line: bytes, start: int) -> Iterator[Packet | Reject]:
    before = line[:start].decode(errors="replace")
    end = jsonstream.value_end(line, start)
    raw = line[start : end or len(line)].strip()
    for record in parsed(place, raw):
        if isinstance(record, Reject):
            yield record
            continue
        packet = _unwrap(place, record.value, raw)
        if packet is None:
            yield record.reject("no JSON-RPC message here")
            continue
        time = _TIME.search(before)
        named = _FROM.search(before)
        pid = _PID.search(before)
        names = [name for name in _BRACKET.findall(before) if name.lower() not in _LEVELS and not _TIME.search(name)]
        rest = before.replace(time[0], "") if time else before
        packet.at = packet.at if packet.at is not None else (time[0] if time else None)
        packet.sender = packet.sender or (named[1].lower() if named else _sender(rest))
        if packet.connection is None:
            packet.connection = pid[1] if pid else (names[0] if names and named else None)
        packet.raw = before.replace(time[0], "").encode() + raw if time else before.encode() + raw
        yield packet


def _unwrap(place: str, value: Any, raw: bytes) -> Packet | None:
    """The message itself or the one in an envelope, with what the envelope says."""
    if not isinstance(value, dict):
        return None
    if _is_message(value):
        return Packet(place, value, raw, raw)
    for key in _INNER:
        inner, text = value.get(key), b""
        if isinstance(inner, str) and inner.lstrip()[:1] == "{":
            text = inner.encode("utf-8", "replace")
            inner = loads(text)
        if isinstance(inner, dict) and _is_message(inner):
            way = " ".join(str(value[name]) for name in _DIRECTION if isinstance(value.get(name), str))
            where = [str(value[name]) for name in (*_CONNECTION, *_SERVER) if isinstance(value.get(name), str | int)]
            at = next((value[name] for name in _AT if value.get(name) is not None), None)
            return Packet(place, inner, raw, text, at, _sender(way), " ".join(where) or None)
    return None


def _is_message(value: dict[str, Any]) -> bool:
    return "jsonrpc" in value and ("method" in value or "result" in value or "error" in value)


def _sender(text: str) -> str | None:
    return next((sender for pattern, sender in _DIRECTIONS if pattern.search(text)), None)
