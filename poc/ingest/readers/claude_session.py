"""One session of Claude Code out of its lines.

Results come in the next user line as ``tool_result`` blocks, with a structured
copy in ``toolUseResult``; that line's time is the end of the call. One API
message is written as several lines with the same ``message.id``: its calls are
one turn and its tokens count once (the lines repeat them; where it was logged
while it streamed, the last figure is the whole). A user who rejects a call
leaves an ``is_error`` result with a fixed text. ``<synthetic>`` is no model.

Subagents: their calls are marked as such; a file of nothing but one subagent
is a run of its own, named ``<session>/agent-<id>``, and the call that started
it has that id as its execution id.

A session may be rewound: a prompt with the same parent as an earlier one takes
its place, and what followed the earlier one is forgotten by the model. Those
calls were made all the same, so they stay, in the order of the file, and are
named in the metadata (``rewound_steps``).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from poc.ingest.readers import anthropic_blocks as blocks
from poc.ingest.readers.anthropic_blocks import Block, Content
from poc.ingest.readers.assembly import Assembly, anthropic_usage, is_uuid, number, plain, word
from poc.trajectory import Caller, Message, Run, Usage

_REJECTED = ("The user doesn't want to proceed with this tool use", "[Request interrupted by user")
_ASIDE = ("<ide_", "<system-reminder>")
_COMMANDS = (  # what the program itself writes in the user's name
    "<command-",
    "<local-command-",
    "Caveat: The messages below",
    "<bash-",
    "[Request interrupted by user",
)


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
    parentUuid: Any = None
    agentId: Any = None
    isSidechain: Any = None
    isMeta: Any = None
    isCompactSummary: Any = None
    timestamp: Any = None
    message: ApiMessage | str | None = None
    toolUseResult: Any = None
    attachment: Any = None
    summary: Any = None
    cwd: Any = None
    gitBranch: Any = None
    version: Any = None
    # Of printed streams.
    parent_tool_use_id: Any = None
    model: Any = None
    usage: Any = None
    total_cost_usd: Any = None
    duration_ms: Any = None
    num_turns: Any = None
    is_error: Any = None


decode_line = msgspec.json.Decoder(Line).decode


class Session:
    """Feed it the lines in their order, then call `finish`. `agent` names whose file it is, if the file says so."""

    def __init__(self, place: str, session_id: str | None, agent: str | None = None) -> None:
        self.run = Run(place=place, records=0, framework="claude-code", native_id=session_id)
        self.assembly = Assembly(self.run)
        self._agent = agent
        self._calls: set[str] = set()
        self._said: dict[str, Message] = {}
        self._lines: set[int] = set()
        self._models: dict[bool, list[str]] = {False: [], True: []}
        self._agents: set[str] = set()
        self._started: dict[str, str] = {}
        """The subagent that a call started, by the call's id."""
        self._has_main = False
        self._has_side = False
        self._rejections = 0
        self._ends: list[Line] = []
        self._tree = _Tree()

    def line(self, line: Line, raw: bytes) -> None:
        """The next line of the session; a line that stands in it twice is said once."""
        run = self.run
        run.records += 1
        if line.uuid is not None:
            if hash(raw) in self._lines:
                return
            self._lines.add(hash(raw))
        at = self.assembly.time(line.timestamp)
        for name in ("cwd", "gitBranch", "version"):
            value = getattr(line, name)
            if isinstance(value, str) and value:
                run.metadata.setdefault(name, value)
        side = line.isSidechain is True or word(line.parent_tool_use_id) is not None
        self._tree.add(line)
        if line.type in ("user", "assistant"):
            self._has_main |= not side
            self._has_side |= side
            if side and word(line.agentId):
                self._agents.add(str(line.agentId))
            message = ApiMessage(content=line.message) if not isinstance(line.message, ApiMessage) else line.message
            if line.type == "assistant":
                self._assistant(line, message, at, side)
            else:
                self._user(line, message, at, side)
        elif line.type == "attachment" and isinstance(line.attachment, dict):
            prompt = line.attachment.get("prompt")
            if line.attachment.get("type") == "queued_command" and isinstance(prompt, str):
                self.assembly.message("user", prompt, at=at)  # what a person said while the agent was at work
        elif line.type == "system" and line.subtype == "init" and word(line.model):
            self._models[False].append(str(line.model))
        elif line.type == "result":
            self._ends.append(line)

    def finish(self) -> Run:
        """The run. A file that holds nothing but one subagent is a run of that subagent."""
        run = self.run
        if self._has_side and not self._has_main and run.native_id:
            agent = "+".join(sorted(self._agents)) or self._agent or "sidechain"
            run.metadata["session"], run.metadata["agent"] = run.native_id, agent
            run.native_id_is_global = is_uuid(run.native_id)
            run.native_id = f"{run.native_id}/agent-{agent}"
        models = list(dict.fromkeys([*self._models[False], *self._models[True]]))
        if models:
            run.model = models[0]
        if len(models) > 1:
            run.metadata["models"] = models
        if self._rejections:
            run.metadata["calls_rejected_by_user"] = self._rejections
        self._ended()
        self.assembly.finish()
        rewound = self._tree.rewound()
        steps = [step.index for step in run.steps if self._tree.line_of.get(step.index) in rewound]
        if self._tree.prompts_taken_back:
            run.metadata["rewound_prompts"] = self._tree.prompts_taken_back
            run.metadata["rewound_steps"] = steps
        for step in run.steps:
            step.execution_id = self._started.get(step.call_id or "")
        return run

    def _ended(self) -> None:
        """What the last line of a printed stream says of the whole; several such lines count different spans."""
        if len(self._ends) != 1:
            return
        (end,) = self._ends
        self.run.usage = anthropic_usage(end.usage)
        self.run.cost_usd = number(end.total_cost_usd)
        took = number(end.duration_ms)
        self.run.duration_s = None if took is None else took / 1000
        for name, value in (("ended_by", end.subtype), ("turns", end.num_turns)):
            if value is not None:
                self.run.metadata[name] = value

    def _assistant(self, line: Line, message: ApiMessage, at: datetime | None, side: bool) -> None:
        model = word(message.model)
        if model and model != "<synthetic>":
            self._models[side].append(model)
        listed = blocks.blocks_of(message.content)
        key = word(message.id) or word(line.uuid) or str(self.run.records)
        usage = None if model == "<synthetic>" else anthropic_usage(message.usage)
        content = blocks.words([block for block in listed if not blocks.is_result(block)])
        said = self._said.get(key)
        if said is None:
            name = "subagent" if side else None
            said = self._said[key] = self.assembly.message("assistant", content, name=name, at=at, usage=usage)
        else:
            if content is not None:
                said.content = content if said.content is None else f"{said.content}\n{content}"
            said.usage = _later(said.usage, usage)
        caller: Caller = "subagent" if side else "agent"
        made = blocks.calls(self.assembly, listed, said, turn=key, at=at, caller=caller, seen=self._calls)
        for step in made:
            self._tree.line_of[step.index] = word(line.uuid)

    def _user(self, line: Line, message: ApiMessage, at: datetime | None, side: bool) -> None:
        listed = blocks.blocks_of(message.content)
        results = [block for block in listed if blocks.is_result(block)]
        started = line.toolUseResult.get("agentId") if isinstance(line.toolUseResult, dict) else None
        for block in results:
            came = blocks.result(self.assembly, block, at=at)
            self._rejections += (came.content or "").startswith(_REJECTED)
            if word(started) and word(block.tool_use_id):
                self._started[str(block.tool_use_id)] = str(started)
        if not results and line.toolUseResult is not None:
            # The message is damaged, but the copy beside it says that a result came.
            self.assembly.result(plain(line.toolUseResult), at=at)
        content = blocks.words([block for block in listed if not blocks.is_result(block)])
        if content is None:
            return
        said = self.assembly.message("user", content, at=at, name="subagent" if side else None)
        program = line.isMeta is True or line.isCompactSummary is True or content.lstrip().startswith(_COMMANDS)
        if not (side or results or program):
            if word(line.uuid):
                self._tree.prompts.add(str(line.uuid))
            if self.run.task_text is None:
                own: list[Block] = [block for block in listed if not str(block.text or "").startswith(_ASIDE)]
                self.run.task_text = blocks.words(own) or said.content


def _later(before: Usage | None, now: Usage | None) -> Usage | None:
    """The figures of one message that was logged twice: those of the one that had written more."""
    if before is None or now is None:
        return now or before
    return now if (now.output_tokens or 0) >= (before.output_tokens or 0) else before


class _Tree:
    """Which line follows which, to tell what a rewind left behind."""

    def __init__(self) -> None:
        self.prompts: set[str] = set()
        self.line_of: dict[int, str | None] = {}
        """The line that made a step, by the step's index."""
        self.prompts_taken_back = 0
        self._parents: dict[str, str] = {}

    def add(self, line: Line) -> None:
        uuid, parent = word(line.uuid), word(line.parentUuid)
        if uuid is not None and parent is not None:
            self._parents.setdefault(uuid, parent)

    def rewound(self) -> set[str]:
        """The lines that came after prompts whose place another took, and these prompts."""
        last: dict[str, str] = {}
        gone: set[str] = set()
        for uuid, parent in self._parents.items():  # in the order of the file
            if uuid in self.prompts:
                if parent in last:
                    gone.add(last[parent])
                last[parent] = uuid
        self.prompts_taken_back = len(gone)
        if not gone:
            return gone
        known: dict[str, bool] = {}
        for uuid in self._parents:
            path: list[str] = []
            at: str | None = uuid
            while at is not None and at not in known and at not in gone and len(path) <= len(self._parents):
                path.append(at)
                at = self._parents.get(at)
            lost = at is not None and (at in gone or known.get(at, False))
            known |= dict.fromkeys(path, lost)
        return gone | {uuid for uuid, lost in known.items() if lost}
