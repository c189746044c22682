"""One small agent conversation, and what must come back after it went through a format's own SDK.

The agent calls two tools at once, of which one fails; asks a subagent, which
calls a tool itself; and makes a last call that gets no result. Knows no
format: an SDK's test walks the tree of `Part` in order of time.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from poc.trajectory import Run

START = dt.datetime(2026, 2, 3, 4, 5, 6, 700_000, tzinfo=dt.UTC)
ASKED = "東京の天気は?"
INSTRUCTIONS = "Be brief.\n「はい」か「いいえ」で。"
MODEL = "m-1"


class Call(msgspec.Struct, frozen=True):
    """A call as the model makes it."""

    id: str
    tool: str
    arguments: dict[str, Any]

    @property
    def as_openai(self) -> dict[str, Any]:
        """As a chat completion holds it."""
        function = {"name": self.tool, "arguments": json.dumps(self.arguments, ensure_ascii=False)}
        return {"id": self.id, "type": "function", "function": function}


class Tokens(msgspec.Struct, frozen=True):
    """Tokens of one model call; cached and reasoning ones are parts."""

    input: int
    output: int
    cached: int
    reasoning: int


class Part(msgspec.Struct, kw_only=True):
    """An agent, a model call or a tool call; seconds from the start, and what lies inside."""

    kind: Literal["agent", "llm", "tool"]
    name: str
    at: float
    seconds: float
    inside: list[Part] = []
    # Model calls.
    asked: list[dict[str, Any]] = []
    text: str | None = None
    calls: list[Call] = []
    tokens: Tokens | None = None
    # Tool calls.
    call: Call | None = None
    result: str | None = None
    error: str | None = None

    @property
    def start(self) -> dt.datetime:
        """When it began."""
        return START + dt.timedelta(seconds=self.at)

    @property
    def end(self) -> dt.datetime:
        """When it ended."""
        return self.start + dt.timedelta(seconds=self.seconds)

    @property
    def answer(self) -> dict[str, Any]:
        """The model's answer as a chat message."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        return {**message, "tool_calls": [call.as_openai for call in self.calls]} if self.calls else message


LOOK = Call("call_1", "look", {"city": "東京", "days": [1, 2], "deep": {"on": True}})
PEEK = Call("call_2", "peek", {})
ASK = Call("call_3", "ask_expert", {"question": "傘は?"})
RAIN = Call("call_4", "rain", {"mm": 0.5})
LAST = Call("call_5", "look", {"city": "京都"})


def conversation() -> Part:
    """The whole of it, the agent on top."""
    system, user = {"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": ASKED}
    first = Part(kind="llm", name="chat", at=0.5, seconds=1, asked=[system, user], calls=[LOOK, PEEK])
    first.tokens = Tokens(100, 20, 60, 5)
    look = Part(kind="tool", name="look", at=2, seconds=1.25, call=LOOK, result='{"空": "晴れ", "°C": 21}')
    peek = Part(kind="tool", name="peek", at=2.5, seconds=0.5, call=PEEK, error="窓 is broken")
    heard = [
        {"role": "tool", "tool_call_id": LOOK.id, "content": look.result},
        {"role": "tool", "tool_call_id": PEEK.id, "content": "窓 is broken"},
    ]
    history = [system, user, first.answer, *heard]
    second = Part(kind="llm", name="chat", at=4, seconds=1, asked=history, text="ask somebody", calls=[ASK])
    second.tokens = Tokens(200, 10, 100, 0)

    question = [{"role": "user", "content": "傘は?"}]
    inner = Part(kind="llm", name="chat", at=6, seconds=0.5, asked=question, calls=[RAIN], tokens=Tokens(30, 5, 0, 0))
    rain = Part(kind="tool", name="rain", at=7, seconds=0.25, call=RAIN, result="いいえ")
    told = [*question, inner.answer, {"role": "tool", "tool_call_id": RAIN.id, "content": "いいえ"}]
    said = Part(
        kind="llm", name="chat", at=7.5, seconds=0.5, asked=told, text="no umbrella", tokens=Tokens(40, 3, 0, 0)
    )
    expert = Part(kind="agent", name="expert", at=5.75, seconds=2.5, inside=[inner, rain, said])
    ask = Part(kind="tool", name="ask_expert", at=5.5, seconds=3, call=ASK, result="no umbrella", inside=[expert])

    history = [*history, second.answer, {"role": "tool", "tool_call_id": ASK.id, "content": "no umbrella"}]
    third = Part(kind="llm", name="chat", at=9, seconds=1, asked=history, calls=[LAST], tokens=Tokens(300, 7, 200, 1))
    last = Part(kind="tool", name="look", at=10.5, seconds=1, call=LAST)
    return Part(kind="agent", name="clerk", at=0, seconds=12, inside=[first, look, peek, second, ask, third, last])


def walk(part: Part) -> Iterator[Part]:
    """The part and all inside it, outer ones first."""
    yield part
    for inner in part.inside:
        yield from walk(inner)


def tools() -> list[Part]:
    """The tool calls in order of time."""
    return [part for part in walk(conversation()) if part.kind == "tool"]


CALLERS = ["agent", "agent", "agent", "subagent", "agent"]
TURNS = [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)]


def check(run: Run, *, zone: bool = True, cut: bool = False, silence: str = "no_result") -> None:
    """That a run says what the conversation says.

    zone: whether the format writes a time zone. cut: whether the last call has
    no end at all in it (else it ended, and said nothing). silence: what the
    format makes of that: some SDKs note for themselves that it went well.
    """
    parts, whole = tools(), conversation()
    assert [step.tool for step in run.steps] == [part.name for part in parts]
    assert [step.caller for step in run.steps] == CALLERS
    assert [(step.turn, step.ordinal) for step in run.steps] == TURNS
    for step, part in zip(run.steps, parts, strict=True):
        assert part.call is not None
        assert step.call_id == part.call.id
        assert step.arguments_json is not None
        assert json.loads(step.arguments_json) == part.call.arguments
        assert step.started_at == part.start
        unfinished = cut and part is parts[-1]
        assert (step.ended_at, step.duration_s) == ((None, None) if unfinished else (part.end, part.seconds))
    assert [step.status for step in run.steps] == ["ok", "error", "ok", "ok", silence]
    assert run.steps[1].status_evidence == "flag"
    got = [step.result for step in run.steps if step.status != "error"]
    assert got == [part.result for part in parts if part.error is None]
    assert "窓 is broken" in (run.steps[1].result or "")
    spent = [part.tokens for part in walk(whole) if part.tokens is not None]
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens) == (
        sum(t.input for t in spent),
        sum(t.output for t in spent),
    )
    assert run.usage.cached_tokens == sum(t.cached for t in spent)
    assert run.usage.reasoning_tokens in (sum(t.reasoning for t in spent), None)
    assert (run.model, run.task_text, run.outcome) == (MODEL, ASKED, None)
    assert (run.started_at, run.ended_at, run.zone_in_log) == (whole.start, whole.end, zone)
    assert run.messages[0].content == INSTRUCTIONS
    said = [message.content for message in run.messages if message.role == "assistant" and message.content]
    assert said == ["ask somebody", "no umbrella"]
