"""ReAct transcripts as plain text: HotpotQA, WebShop, ALFWorld, and agents that print the same.

``Question: ..`` / ``Thought N: ..`` / ``Action N: Tool[argument]`` /
``Observation N: ..`` (HotpotQA; numbers may be absent); ``Action: click[Buy
Now]`` / ``Observation: ..`` (WebShop); ``> go to cabinet 1`` and the lines
after it (ALFWorld); ``Action: name`` / ``Action Input: ..`` (LangChain).
A text goes on until the next marker. A run begins at ``Question:``, at
``Action: reset``, at ``Environment #n``, and after a separator line between
moves. What stands
before ``Here is the task`` in a run are examples: kept as a system message,
their actions are no steps. ``think[..]`` and ``think: ..`` are thoughts.

Arguments are text. An answer that begins with "Invalid action" is an error by
that text. Outcome, first found: ``Your score (min 0.0, max 1.0): x``; ``Answer
is CORRECT`` or INCORRECT; ``STATUS: OK`` or FAIL; the section's header (BEGIN
CORRECT / INCORRECT / HALTED AGENTS; halted is not answered, so a failure).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from poc.ingest.arguments import ABSENT, Arguments, from_text
from poc.ingest.readers.assembly import Assembly
from poc.ingest.readers.chat_messages import UNNAMED
from poc.ingest.sources import Source
from poc.trajectory import Message, Outcome, Reject, Run

NAME = "react_text"
VERSION = 1

_MARK = re.compile(
    r"(?P<kind>Question|Thought|Action Input|Action|Observation|Final Answer|Correct answer)(?: \d+)?: ?(?P<text>.*)"
    r"|> ?(?P<verb>[a-z].*)"
    r"|(?P<rule>[-#=_*]{5,})\s*"
    r"|-+ BEGIN (?P<section>CORRECT|INCORRECT|HALTED) AGENTS -+\s*"
    r"|BEGIN TRIAL (?P<trial>\d+).*"
    r"|Environment #(?P<world>\d+)(?: Trial #\d+)?:\s*(?P<ended>\w*).*"
    r"|STATUS: (?P<status>OK|FAIL)\b.*"
    r"|(?P<task>Here is the task)\b.*",
    re.DOTALL,
)
_FIRST = frozenset("QTAOFC>-#=_*BESH")
"""The signs that a marker may begin with: most lines are told by this alone."""
_RULE = re.compile(r"[-#=_*]{5,}\s*")
_SHORT = 100
"""Signs after a separator that still belong to it, such as the number of the next run."""
_CALL = re.compile(r"\s*(\w[\w -]*?)\s*\[(.*)\]\s*", re.DOTALL)
_THOUGHT = re.compile(r"think\s*(?::|\[)", re.IGNORECASE)
_SCORE = re.compile(r"Your score \(min 0\.0, max 1\.0\)\s*(?::|\[SEP\])\s*([01](?:\.\d+)?)")
_ANSWER = re.compile(r"\s*Answer is (CORRECT|INCORRECT)")
_INVALID = re.compile(r"\s*Invalid action", re.IGNORECASE)
_ASKED = re.compile(r"(?:Your task is to|Instruction):\s*(.+)")
_SECTIONS = {"CORRECT": 1.0, "INCORRECT": 0.0, "HALTED": 0.0}


def sniff(sample: bytes, name: str) -> float:
    """By the markers at the beginnings of lines."""
    body = sample.removeprefix(b"\xef\xbb\xbf").lstrip()
    if body[:1] in (b"{", b"["):
        return 0.0
    text = body[: 1 << 16].decode(errors="replace")
    actions = len(re.findall(r"^Action(?: \d+)?: ?\S", text, re.MULTILINE))
    seen = len(re.findall(r"^Observation(?: \d+)?:", text, re.MULTILINE))
    moves = len(re.findall(r"^> ?[a-z]", text, re.MULTILINE))
    if actions and seen:
        return 0.95
    return 0.9 if moves > 1 and re.search(r"^Your task is to:|^You are in the middle of a room", text, re.M) else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each question or episode."""
    reading = _Reading()
    replaced: int | None = None
    with source.open() as file:
        for number, line in enumerate(file, 1):
            source.consumed += len(line)
            try:
                text = line.decode()
            except UnicodeDecodeError:
                text = line.decode(errors="replace")
                replaced = replaced or number
            yield from reading.line(number, text.rstrip("\r\n"))
    yield from reading.end()
    if replaced is not None:
        yield Reject(place=f"line {replaced}", reason="kept, with changes: invalid UTF-8 replaced", records=0)


class _Reading:
    """Where in the text we are: the run, and the part of it that goes on."""

    def __init__(self) -> None:
        self.section: str | None = None
        self.trial: str | None = None
        self.work: Assembly | None = None
        self.kind = ""
        self.part: list[str] = []
        self.thought: list[str] = []
        self.turn = 0
        self.waiting = False
        self.moves = False

    def line(self, number: int, line: str) -> Iterator[Run | Reject]:
        mark = _MARK.fullmatch(line) if line[:1] in _FIRST else None
        if mark is None:
            if self.work is None and line.strip():
                self._open(number)
            if self.work is not None:
                self.part.append(line)
        elif mark["kind"] is not None:
            yield from self._marked(number, mark["kind"], mark["text"])
        elif mark["verb"] is not None:
            if self.kind == "Observation":  # a quotation in what a marked observation says
                self.part.append(line)
            else:
                self.moves = True
                yield from self._marked(number, "Action", mark["verb"])
        elif mark["rule"] is not None:
            if self.moves:
                yield from self._close()
            elif self.work is not None:  # may be part of a text: `_close` cuts it off where a run ends with it
                self.part.append(line)
        elif mark["section"] is not None:
            yield from self._close()
            self.section = mark["section"]
        elif mark["trial"] is not None:
            yield from self._close()
            self.trial, self.section = mark["trial"], None
        elif mark["world"] is not None:
            yield from self._close()
            if not mark["ended"]:
                self._open(number).run.task_key = mark["world"]
        elif mark["status"] is not None:
            self._settle()
            if self.work is not None and self.work.run.outcome is None:
                value = float(mark["status"] == "OK")
                self.work.run.outcome = Outcome(value=value, provenance="log:STATUS")
        else:
            self._settle()
            self._forget_examples(number)

    def end(self) -> Iterator[Run | Reject]:
        yield from self._close()

    def _marked(self, number: int, kind: str, text: str) -> Iterator[Run | Reject]:
        if kind == "Question" or (kind == "Action" and text.strip() == "reset"):
            yield from self._close()
        else:
            self._settle()
        if self.work is None:
            self._open(number)
        self.kind, self.part = kind, [text]

    def _open(self, number: int) -> Assembly:
        run = Run(place=f"line {number}", framework="react", trial=self.trial)
        self.work = Assembly(run)
        self.kind, self.part, self.thought, self.turn = "", [], [], 0
        self.waiting = self.moves = False
        return self.work

    def _settle(self) -> None:
        """The part that went on until here is whole."""
        text, kind = "\n".join(self.part).strip(), self.kind
        self.kind, self.part = "", []
        if self.work is None:
            return
        if kind == "Action":
            self._act(self.work, text)
        elif kind == "Action Input":
            step = self.work.run.steps[-1] if self.work.run.steps and self.waiting else None
            if step is not None and step.arguments_status == "absent":
                step.arguments_raw, step.arguments_json, step.arguments_status = from_text(text)
        elif kind == "Observation":
            self._observe(self.work, text)
        elif kind == "Thought":
            self.thought.append(text)
        elif kind == "Final Answer":
            self._say(self.work, f"Final Answer: {text}")
        elif kind == "Correct answer":
            self.work.run.metadata["correct_answer"] = text
        elif kind == "Question":
            self.work.run.task_text = text
            self.work.message("user", text)
        elif text:
            self._told(self.work, text)

    def _act(self, work: Assembly, action: str) -> None:
        # In ALFWorld the answer is the text after the line of the action.
        first, _, rest = action.partition("\n")
        action, rest = (first, rest.strip()) if not _CALL.fullmatch(action) else (action, "")
        if action.strip() == "reset":
            if rest:
                self._told(work, rest)
            return
        if _THOUGHT.match(action):
            self.thought.append(action)
            self.waiting = False
            return
        message = self._say(work, action)
        tool, arguments = _parts(action)
        work.call(tool, arguments, turn=self.turn, message=message)
        self.turn += 1
        self.waiting = True
        if rest:
            self._observe(work, rest)

    def _observe(self, work: Assembly, text: str) -> None:
        score, answer = _SCORE.search(text), _ANSWER.match(text)
        if score:
            work.run.outcome = Outcome(value=float(score[1]), provenance="log:Your score")
        elif answer:
            work.run.outcome = Outcome(value=_SECTIONS[answer[1]], provenance="log:Answer is")
        if self.waiting:
            work.result(text)
            self.waiting = False
        elif work.run.steps or self.thought:
            if self.thought and text == "OK.":
                return  # what the environment says to a thought
            work.message("tool", text)
        else:
            self._told(work, text)

    def _told(self, work: Assembly, text: str) -> None:
        """What the environment says before the first action: the task is in it."""
        asked = _ASKED.search(text)
        if asked and work.run.task_text is None:
            work.run.task_text = asked[1].strip()
        work.message("user", text)

    def _say(self, work: Assembly, text: str) -> Message:
        parts, self.thought = [*self.thought, text], []
        return work.message("assistant", "\n".join(parts))

    def _forget_examples(self, number: int) -> None:
        old = self.work
        if old is None:
            self._open(number)
            return
        told = [message.content or "" for message in old.run.messages]
        for step in old.run.steps:
            told.append(step.result or "")
        new = self._open(number)
        new.run.place, new.run.task_key = old.run.place, old.run.task_key
        examples = "\n".join(part for part in told if part)
        if examples:
            new.message("system", examples)

    def _close(self) -> Iterator[Run | Reject]:
        rules = [index for index, line in enumerate(self.part) if _RULE.fullmatch(line)]
        if rules and sum(map(len, self.part[rules[-1] + 1 :])) < _SHORT:
            del self.part[rules[-1] :]
        self._settle()
        work, self.work = self.work, None
        if work is None:
            return
        if self.thought:
            work.message("assistant", "\n".join(self.thought))
            self.thought = []
        run = work.finish()
        if not run.steps and not any(message.role == "assistant" for message in run.messages):
            said = "\n".join(message.content or "" for message in run.messages)
            if said.strip():
                yield Reject(place=run.place, reason="text without any action", raw=said[:500], records=0)
            return
        for step in run.steps:
            if step.result is not None and step.status == "ok" and _INVALID.match(step.result):
                step.status, step.status_evidence = "error", "text_rule"
        if run.outcome is None and self.section is not None:
            run.outcome = Outcome(value=_SECTIONS[self.section], provenance=f"log:section {self.section}")
        if self.section is not None:
            run.metadata["section"] = self.section
        yield run


def _parts(action: str) -> tuple[str, Arguments]:
    """Tool and argument: ``Search[x]``, ``go to x``, a bare name; the whole text where no name can be told."""
    call = _CALL.fullmatch(action)
    if call:
        return call[1], (call[2], None, "unparsed") if call[2] else ABSENT
    text = action.strip()
    if text.startswith("go to "):
        return "go to", (text[6:], None, "unparsed")
    tool, _, rest = text.partition(" ")
    if not rest:
        return tool or UNNAMED, ABSENT
    if tool.islower() and tool.isalpha():
        return tool, (rest, None, "unparsed")
    return UNNAMED, (text, None, "unparsed")
