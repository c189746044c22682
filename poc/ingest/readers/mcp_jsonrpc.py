"""Logs of MCP (Model Context Protocol): JSON-RPC messages between a client and a server.

Layouts: one message a line; messages in an envelope of a proxy (``{timestamp,
direction, session_id, message: {..}}``); text lines with a message at their
end, as Claude Desktop writes them: ``TS [server] [info] Message from client:
{..} { metadata: undefined }`` (mcp-server-X.log) or ``TS [info] [server]
Message from server: {..}`` (mcp.log). Lines without a message (what a server
wrote to stderr, dumps over several lines) are not records.

A call is a request ``tools/call {name, arguments}``. Its answer has the same
id, comes from the other side and on the same connection: servers send requests
with ids of their own (``roots/list``), and ids begin anew in each session.
``result.isError: true`` is a failure of the tool, ``error`` one of the
protocol. A call starts with the line of its request and ends with that of its
answer. A message that is logged twice counts once.

A run is a session: a connection from one ``initialize`` to the next; where
requests name a conversation (``_meta["vscode.conversationId"]``), that is the
run. ``tools/list`` gives the tools. There is no task, model or outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest.arguments import Arguments, from_raw, from_value
from poc.ingest.jsonstream import compact
from poc.ingest.readers.assembly import Assembly, blocks_text, word
from poc.ingest.readers.decoding import DECODE_ERRORS
from poc.ingest.readers.mcp_lines import Packet, looks_so, packets
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Step, ToolSchema

NAME = "mcp_jsonrpc"
VERSION = 1

_CONVERSATION = ("vscode.conversationId", "conversationId", "conversation_id")


class _Request(msgspec.Struct, gc=False):
    """A request that waits for its answer."""

    method: str
    sender: str | None
    session: _Session
    params: Any
    call_key: str | None = None
    run: _Session | None = None


class _Session:
    """What becomes one run."""

    def __init__(self, place: str, connection: str | None) -> None:
        self.run = Run(place=place, framework="mcp", records=0)
        self.work = Assembly(self.run)
        self.connection = connection
        self.calls = 0
        self.ids: list[tuple[Step, str]] = []
        """The log's ids; while calls are open they are known by keys that do not come again."""


def sniff(sample: bytes, name: str) -> float:
    """By the messages in the first lines."""
    return 0.96 if looks_so(sample) else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """The runs in the order of their first messages, after the rejects."""
    log = _Log()
    for packet in packets(source):
        if isinstance(packet, Reject):
            yield packet
        else:
            log.add(packet)
    yield from log.end()


class _Params(msgspec.Struct, gc=False):
    arguments: msgspec.Raw = msgspec.Raw(b"")


class _Call(msgspec.Struct, gc=False):
    params: _Params


_decode_call = msgspec.json.Decoder(_Call).decode


class _Log:
    """The sessions of a file and what is open in them."""

    def __init__(self) -> None:
        self.sessions: list[_Session] = []
        self.current: dict[str | None, _Session] = {}
        self.conversations: dict[str, _Session] = {}
        self.open: dict[tuple[str | None, str], list[_Request]] = {}
        self.last: dict[str | None, bytes] = {}

    def add(self, packet: Packet) -> None:
        message, where = packet.message, packet.connection
        session = self.current.get(where)
        method = message.get("method")
        if session is None or (method == "initialize" and session.run.records and not self._again(packet)):
            session = self.current[where] = self._begin(packet)
            for key in [key for key in self.open if key[0] == where]:
                del self.open[key]  # nobody answers a session that is over
        again = self._again(packet)
        self.last[where] = packet.raw
        session.run.records += 1
        if again:
            return
        ident = word(message.get("id"))
        at = session.work.time(packet.at)
        if isinstance(method, str):
            if ident is not None:
                self._ask(session, packet, method, ident, at)
        elif ident is not None:
            self._answer(session, packet, ident)

    def end(self) -> Iterator[Run | Reject]:
        for session in self.sessions:
            if session.calls:
                if session.connection:
                    session.run.metadata["connection"] = session.connection
                run = session.work.finish()
                for step, ident in session.ids:
                    step.call_id = ident
                yield run
            elif session.run.records:
                reason = "a session without any tool call"
                yield Reject(place=session.run.place, reason=reason, records=session.run.records)

    def _again(self, packet: Packet) -> bool:
        return self.last.get(packet.connection) == packet.raw

    def _begin(self, packet: Packet) -> _Session:
        session = _Session(packet.place, packet.connection)
        self.sessions.append(session)
        return session

    def _ask(self, session: _Session, packet: Packet, method: str, ident: str, at: Any) -> None:
        params = packet.message.get("params")
        request = _Request(method, packet.sender, session, params)
        self.open.setdefault((packet.connection, ident), []).append(request)
        if method != "tools/call" or not isinstance(params, dict):
            return
        target = self._conversation(session, packet, params)
        if target is not session:
            session.run.records -= 1
            target.run.records += 1
            at = target.work.time(packet.at)
        target.calls += 1
        request.run, request.call_key = target, f"{target.calls}"
        arguments = _arguments(packet, params)
        step = target.work.call(params.get("name"), arguments, turn=target.calls, call_id=request.call_key, at=at)
        target.ids.append((step, ident))

    def _conversation(self, session: _Session, packet: Packet, params: dict[str, Any]) -> _Session:
        meta = params.get("_meta")
        named = (
            next((word(meta[key]) for key in _CONVERSATION if key in meta), None) if isinstance(meta, dict) else None
        )
        if named is None:
            return session
        known = self.conversations.get(named)
        if known is None:
            known = self.conversations[named] = self._begin(packet)
            known.run.native_id = named
            known.run.tools = session.run.tools
        return known

    def _answer(self, session: _Session, packet: Packet, ident: str) -> None:
        message = packet.message
        waiting = self.open.get((packet.connection, ident), [])
        # The answer comes from the other side; of several the one that it fits, the oldest first.
        fitting = [r for r in waiting if r.sender is None or packet.sender is None or r.sender != packet.sender]
        result = message.get("result")
        shaped = isinstance(result, dict) and ("content" in result or "structuredContent" in result)
        fitting.sort(key=lambda request: (request.method == "tools/call") is not shaped)
        if not fitting:
            return
        request = fitting[0]
        waiting.remove(request)
        if request.method == "tools/list" and isinstance(result, dict):
            session.run.tools.extend(_tools(result.get("tools")))
        if request.run is None:
            return
        target = request.run
        if target is not session:
            session.run.records -= 1
            target.run.records += 1
        at, error = target.work.time(packet.at), message.get("error")
        if error is not None:
            target.work.result(compact(error), call_id=request.call_key, at=at, error=error)
            return
        flag = result.get("isError") if isinstance(result, dict) else None
        failed = flag if isinstance(flag, bool) else None
        target.work.result(_text(result), call_id=request.call_key, at=at, failed=failed)


def _arguments(packet: Packet, params: dict[str, Any]) -> Arguments:
    """As they stand in the file, where the message does."""
    if packet.text:
        try:
            return from_raw(_decode_call(packet.text).params.arguments)
        except DECODE_ERRORS:
            pass  # a text that had to be mended: its values are used
    return from_value(params.get("arguments"))


def _text(result: Any) -> str | None:
    if isinstance(result, dict):
        if result.get("content"):
            return blocks_text(result["content"])
        if result.get("structuredContent") is not None:
            return compact(result["structuredContent"])
        if "content" in result:
            return ""
    return None if result is None else compact(result)


def _tools(listed: Any) -> list[ToolSchema]:
    tools: list[ToolSchema] = []
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            said, shape = entry.get("description"), entry.get("inputSchema")
            tools.append(
                ToolSchema(
                    name=entry["name"],
                    description=said if isinstance(said, str) else None,
                    parameters=shape if isinstance(shape, dict) else None,
                )
            )
    return tools
