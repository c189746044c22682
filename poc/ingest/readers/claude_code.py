"""Claude Code sessions: JSONL (``~/.claude/projects/*/<session>.jsonl``), subagent files, web exports, printed streams.

A line has ``type``, ``sessionId``, ``uuid`` / ``parentUuid`` and, for ``user``
and ``assistant``, an API message. A web export is ``{loglines: [...]}`` with
the same lines. ``claude -p --output-format stream-json`` prints them with
``session_id`` and no times, between a ``system/init`` line (model, working
folder) and a ``result`` line (cost, tokens, seconds, how it ended). Lines of a
subagent have ``isSidechain`` (printed: ``parent_tool_use_id``), in a file of
their own, ``agent-<id>.jsonl``, or among the others: see `claude_session`.
Line types that say nothing of the conversation count as read and are passed
over. There is no outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from poc.ingest import jsonstream
from poc.ingest.readers.assembly import word
from poc.ingest.readers.claude_session import Session, decode_line
from poc.ingest.readers.decoding import Head, decode, elements, glimpse, members, text
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

NAME = "claude_code"
VERSION = 2

_TYPES = frozenset(
    [
        "user",
        "assistant",
        "summary",
        "system",
        "attachment",
        "progress",
        "queue-operation",
        "file-history-snapshot",
        "permission-mode",
        "last-prompt",
        "custom-title",
        "ai-title",
        "agent-name",
        "agent-setting",
        "mode",
        "pr-link",
        "tag",
    ]
)
_PRINTED = frozenset({"user", "assistant", "system", "result", "stream_event"})
_AGENT_FILE = re.compile(r"agent-([A-Za-z0-9_-]+)\.jsonl")


def sniff(sample: bytes, name: str) -> float:
    """By the ids that lines carry."""
    seen = glimpse(sample)
    lines = elements(seen.first.get("loglines", b""))
    if lines:
        return 0.97 if any("message" in members(line) for line in lines[:20]) else 0.0
    return 0.97 if any(_is_line(head) for head in seen.heads) else 0.0


def _is_line(head: Head) -> bool:
    kind = text(head.get("type"))
    if kind == "summary":
        return "leafUuid" in head
    if kind == "file-history-snapshot":
        return "messageId" in head
    if "session_id" in head:
        return kind in _PRINTED and bool(head.keys() & {"parent_tool_use_id", "subtype"})
    return "sessionId" in head and (kind in _TYPES or "parentUuid" in head or {"uuid", "timestamp"} <= head.keys())


def read(source: Source) -> Iterator[Run | Reject]:
    """The sessions of the file in the order of their first lines, with broken lines as rejects."""
    named = _AGENT_FILE.fullmatch(source.name)
    reading = _Reading(named[1] if named else None)
    for value in jsonstream.values(source):
        head = members(value.raw) if b'"loglines"' in value.raw[:4000] else {}
        lines = head.get("loglines", b"")
        if lines[:1] != b"[":
            yield from reading.line(value.place, value.raw)
            continue
        parts, broken = jsonstream.elements(lines)
        for index, (_, part) in enumerate(parts):
            yield from reading.line(f"{value.place} .loglines[{index}]", bytes(part).strip())
        if broken is not None:
            reason = "broken JSON: from here on nothing could be read"
            raw = jsonstream.excerpt(lines[broken:])
            yield Reject(place=f"{value.place} .loglines +{broken}", reason=reason, raw=raw)
    yield from reading.end()


class _Reading:
    """The sessions of one file, while its lines go by. `agent` is what the file's name says of whose it is."""

    def __init__(self, agent: str | None) -> None:
        self.agent = agent
        self.sessions: dict[str | None, Session] = {}
        self.nameless = 0
        self.summary: str | None = None

    def line(self, place: str, raw: bytes) -> Iterator[Reject]:
        """One line of the log."""
        if raw[:1] != b"{":
            yield Reject(place=place, reason="not a line of a session: no JSON object", raw=jsonstream.excerpt(raw))
            return
        line, reject = decode(place, raw, decode_line)
        if reject is not None:
            yield reject
        if line is None:
            return
        if line.type is None:
            yield Reject(place=place, reason="not a line of a session: it has no type", raw=jsonstream.excerpt(raw))
            return
        key = word(line.sessionId) or word(line.session_id)
        if key is None and line.message is None:
            # Summaries and snapshots name no session; in a file of one session they are its own.
            self.nameless += 1
            if isinstance(line.summary, str):
                self.summary = line.summary
            return
        session = self.sessions.get(key)
        if session is None:
            session = self.sessions[key] = Session(place, key, self.agent)
        session.line(line, raw)

    def end(self) -> Iterator[Run | Reject]:
        """The runs. Lines that name no session are counted with the first one."""
        runs = [session.finish() for session in self.sessions.values()]
        if not runs and self.nameless:
            yield Reject(place="file", reason="no session: only summaries or snapshots", records=self.nameless)
            return
        if runs:
            runs[0].records += self.nameless
            if self.summary is not None:
                runs[0].metadata["summary"] = self.summary
        yield from runs
