"""Claude Code sessions: JSONL (``~/.claude/projects/*/<session>.jsonl``), subagent files, web exports.

A line has ``type``, ``sessionId``, ``uuid`` / ``parentUuid`` and, for ``user``
and ``assistant``, an API message. Results come in the next user line as
``tool_result`` blocks, with a structured copy in ``toolUseResult``; that line's
time is the end of the call. One API message is written as several lines with
the same ``message.id`` and the same usage: its tokens count once, and its calls
are one turn. A user who rejects a call leaves an ``is_error`` result with a
fixed text. Lines of a subagent have ``isSidechain``, in a file of their own
(``agentId``) or among the others; its calls are marked as such, and a file of
its own is a run of its own. ``<synthetic>`` is no model. A web export is
``{loglines: [...]}`` with the same lines. Other line types are passed over.
There is no outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest import jsonstream
from poc.ingest.readers import anthropic_blocks as blocks
from poc.ingest.readers.anthropic_blocks import Content
from poc.ingest.readers.assembly import Assembly, anthropic_usage, is_uuid, plain, word
from poc.ingest.readers.decoding import Head, decode, elements, glimpse, members, text
from poc.ingest.sources import Source
from poc.trajectory import Caller, Message, Reject, Run

NAME = "claude_code"
VERSION = 1

_TYPES = frozenset(
    {"user", "assistant", "summary", "system", "attachment", "queue-operation", "file-history-snapshot", "progress"}
)
_REJECTED = ("The user doesn't want to proceed with this tool use", "[Request interrupted by user")


class ApiMessage(msgspec.Struct, gc=False):
    """The API's message inside a line."""

    id: Any = None
    role: Any = None
    model: Any = None
    content: Content = None
    usage: Any = None


class Line(msgspec.Struct, gc=False):
    """One line; unknown fields are passed over."""

    type: Any = None
    subtype: Any = None
    sessionId: Any = None
    session_id: Any = None
    uuid: Any = None
    agentId: Any = None
    isSidechain: Any = None
    isMeta: Any = None
    isCompactSummary: Any = None
    timestamp: Any = None
    message: ApiMessage | str | None = None
    toolUseResult: Any = None
    content: Any = None
    summary: Any = None
    cwd: Any = None
    gitBranch: Any = None
    version: Any = None


_line = msgspec.json.Decoder(Line).decode


def sniff(sample: bytes, name: str) -> float:
    """How sure this is a session, 0..1."""
    seen = glimpse(sample)
    lines = elements(seen.first.get("loglines", b""))
    if lines:
        return 0.97 if any("message" in members(line) for line in lines[:20]) else 0.0
    return 0.97 if any(_is_line(head) for head in seen.heads) else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """The sessions of the file in the order of their first lines, with broken lines as rejects."""
    reading = _Reading()
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
    """The sessions of one file, while its lines go by."""

    def __init__(self) -> None:
        self.sessions: dict[str | None, _Session] = {}
        self.nameless = 0
        self.summary: str | None = None

    def line(self, place: str, raw: bytes) -> Iterator[Reject]:
        """One line of the log."""
        if raw[:1] != b"{":
            yield Reject(place=place, reason="not a line of a session: no JSON object", raw=jsonstream.excerpt(raw))
            return
        line, reject = decode(place, raw, _line)
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
            session = self.sessions[key] = _Session(place, key)
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


class _Session:
    """One session."""

    def __init__(self, place: str, session_id: str | None) -> None:
        self.run = Run(place=place, records=0, framework="claude-code", native_id=session_id)
        self.assembly = Assembly(self.run)
        self.seen_calls: set[str] = set()
        self.said: dict[str, Message] = {}
        self.lines: set[int] = set()
        self.models: list[str] = []
        self.agents: set[str] = set()
        self.main_lines = 0
        self.rejections = 0

    def line(self, line: Line, raw: bytes) -> None:
        """The next line of the session; a line that stands in it twice is said once."""
        run = self.run
        run.records += 1
        if line.uuid is not None:
            if hash(raw) in self.lines:
                return
            self.lines.add(hash(raw))
        at = self.assembly.time(line.timestamp)
        for name in ("cwd", "gitBranch", "version"):
            value = getattr(line, name)
            if isinstance(value, str) and value:
                run.metadata.setdefault(name, value)
        if line.type not in ("user", "assistant"):
            return
        side = line.isSidechain is True
        if side and word(line.agentId):
            self.agents.add(str(line.agentId))
        self.main_lines += not side
        message = ApiMessage(content=line.message) if not isinstance(line.message, ApiMessage) else line.message
        if line.type == "assistant":
            self._assistant(line, message, at, "subagent" if side else "agent")
        else:
            self._user(line, message, at, side)

    def finish(self) -> Run:
        """The run. A file that holds nothing but one subagent is a run of that subagent."""
        run = self.run
        if not self.main_lines and self.agents and run.native_id:
            agent = "+".join(sorted(self.agents))
            run.metadata["session"], run.metadata["agent"] = run.native_id, agent
            run.native_id_is_global = is_uuid(run.native_id)
            run.native_id = f"{run.native_id}/agent-{agent}"
        if self.models:
            run.model = self.models[0]
            if len(self.models) > 1:
                run.metadata["models"] = self.models
        if self.rejections:
            run.metadata["calls_rejected_by_user"] = self.rejections
        return self.assembly.finish()

    def _assistant(self, line: Line, message: ApiMessage, at: Any, caller: Caller) -> None:
        model = word(message.model)
        if model and model != "<synthetic>" and model not in self.models:
            self.models.append(model)
        listed = blocks.blocks_of(message.content)
        key = word(message.id) or word(line.uuid) or str(self.run.records)
        # Where the lines of one message differ, the last one has the tokens of all of it.
        usage = None if model == "<synthetic>" else anthropic_usage(message.usage)
        content = blocks.words([block for block in listed if not blocks.is_result(block)])
        said = self.said.get(key)
        if said is None:
            said = self.said[key] = self.assembly.message("assistant", content, at=at, usage=usage)
        else:
            if content is not None:
                said.content = content if said.content is None else f"{said.content}\n{content}"
            said.usage = usage or said.usage
        blocks.calls(self.assembly, listed, said, turn=key, at=at, caller=caller, seen=self.seen_calls)

    def _user(self, line: Line, message: ApiMessage, at: Any, side: bool) -> None:
        listed = blocks.blocks_of(message.content)
        results = [block for block in listed if blocks.is_result(block)]
        for block in results:
            came = blocks.result(self.assembly, block, at=at)
            if (came.content or "").startswith(_REJECTED):
                self.rejections += 1
        if not results and line.toolUseResult is not None:
            # The message is damaged, but the copy beside it says that a result came.
            self.assembly.result(plain(line.toolUseResult), at=at)
        content = blocks.words([block for block in listed if not blocks.is_result(block)])
        if content is None:
            return
        said = self.assembly.message("user", content, at=at, name="subagent" if side else None)
        asked = not (side or line.isMeta is True or line.isCompactSummary is True)
        if asked and self.run.task_text is None and not _is_command(content):
            own = [block for block in listed if not str(block.text or "").startswith(("<ide_", "<system-reminder>"))]
            self.run.task_text = blocks.words(own) or said.content


def _is_command(content: str) -> bool:
    """Whether a user line was written by the program: a slash command, its output, or a note about them."""
    return content.lstrip().startswith(("<command-", "<local-command-", "Caveat: The messages below"))


def _is_line(head: Head) -> bool:
    kind = text(head.get("type"))
    if kind == "summary":
        return "leafUuid" in head
    if kind == "file-history-snapshot":
        return "messageId" in head
    return "sessionId" in head and (
        kind in _TYPES or "parentUuid" in head or ("uuid" in head and "timestamp" in head) or kind == "last-prompt"
    )
