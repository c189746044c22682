"""What happened in a trace, as the trace formats agree on it: model calls, tool calls, agents, the rest.

Readers turn their own records into `Node`; `trace_runs` makes a run of them.
Also here: tokens normalised once for all providers, tool schemas in whatever
form a request had them, and results unwrapped from what frameworks put around
them. Knows no file and no attribute names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

from poc.ingest.arguments import ABSENT, Arguments, from_parsed, from_text
from poc.ingest.evidence import judge
from poc.ingest.jsonstream import compact
from poc.ingest.outcome_values import read_outcome
from poc.ingest.readers.assembly import plain, word
from poc.ingest.readers.said import Said, messages, opened
from poc.trajectory import Evidence, Outcome, Status, ToolSchema, Usage

Kind = Literal["llm", "tool", "agent", "other"]
Content = Callable[[], tuple[list[Said], list[Said]]]

_OUTCOMES = frozenset(
    {
        *("outcome", "success", "successful", "succeeded", "task_success", "goal_success", "goal_completion"),
        *("task_completion", "task_completed", "correct", "correctness", "is_correct", "accuracy", "exact_match"),
        *("reward", "resolved", "solved", "passed", "pass"),
    }
)
_LIMIT = 20
"""Most scores of a run that are kept in its metadata."""


class Node(msgspec.Struct, kw_only=True):
    """One span. `failed` is its own flag; `error` what it says went wrong; `content` reads its messages when asked."""

    position: int
    kind: Kind
    name: str
    id: str | None = None
    parent: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    duration_s: float | None = None
    zone: bool | None = None
    failed: bool | None = None
    error: str | None = None
    scope: str | None = None
    same: str | None = None
    """Nodes of one trace with the same text here are events of one thing."""
    stands_for_inner: bool = False
    """A tool call whose own spans carry another name: what lies inside it is the same call."""
    # Model calls, and agents for what their model calls do not say.
    content: Content | None = None
    model: str | None = None
    wanted: str | None = None
    """The model that was asked for: it counts where no layer names the one that answered."""
    usage: Usage | None = None
    cost_usd: float | None = None
    response_id: str | None = None
    schemas: Any = None
    # Tool calls.
    call_id: str | None = None
    arguments: Arguments = ABSENT
    result: str | None = None
    has_result: bool = False
    # Agents.
    agent: str | None = None

    @property
    def answered_by(self) -> str | None:
        """The model, as exactly as it is known."""
        return self.model or self.wanted


class Score(msgspec.Struct):
    """A judgement that the log holds."""

    name: str
    value: Any
    source: str | None = None


def tokens(
    read: Any,
    written: Any,
    *,
    total: Any = None,
    cached: Any = None,
    stored: Any = None,
    reasoning: Any = None,
    fresh_only: bool = False,
) -> Usage | None:
    """Tokens of one call so that cached and reasoning ones are parts of the totals. None where nothing is said.

    `cached` were read from the provider's cache, `stored` written to it. Some
    report the input without them: `fresh_only` says so, or the figures do
    (more cached than input; or a `total` that only adds up with them). The
    same for reasoning tokens and the output.
    """
    into, out, in_all = _count(read), _count(written), _count(total)
    hit, put, thought = _count(cached), _count(stored), _count(reasoning)
    beside = (hit or 0) + (put or 0)
    if into is not None and beside:
        parts = into + (out or 0) + beside
        adds_up = in_all is not None and in_all in (parts, parts + (thought or 0))
        if fresh_only or beside > into or adds_up:
            into += beside
    if out is not None and thought and (thought > out or in_all == (into or 0) + out + thought):
        out += thought
    if not into and not out:
        # A call that read nothing and wrote nothing: exporters fill in 0 for "not known".
        return None
    return Usage(input_tokens=into, output_tokens=out, cached_tokens=hit, reasoning_tokens=thought)


def tokens_of(usage: Any) -> Usage | None:
    """Tokens from a provider's or a framework's usage object, under whatever names."""
    if not isinstance(usage, dict):
        return None
    into = _dict(usage, "prompt_tokens_details", "input_tokens_details", "input_token_details", "inputTokenDetails")
    out = _dict(
        usage, "completion_tokens_details", "output_tokens_details", "output_token_details", "outputTokenDetails"
    )
    return tokens(
        _any(usage, "input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "prompt_token_count"),
        _any(usage, "output_tokens", "completion_tokens", "outputTokens", "completionTokens", "candidates_token_count"),
        total=_any(usage, "total_tokens", "totalTokens", "total_token_count"),
        # 0 is an answer: only what is not there is looked for elsewhere.
        cached=_any(
            {**into, **usage},
            *("cache_read_input_tokens", "cachedInputTokens", "cached_content_token_count"),
            *("cached_tokens", "cache_read", "cacheReadTokens"),
        ),
        stored=_any({**into, **usage}, "cache_creation_input_tokens", "cache_creation", "cacheWriteTokens"),
        reasoning=_any(
            {**out, **usage},
            *("reasoning_tokens", "reasoningTokens", "thoughts_token_count", "reasoning"),
        ),
        # Anthropic's own names stand for its own way of counting.
        fresh_only="cache_read_input_tokens" in usage and "prompt_tokens" not in usage and "total_tokens" not in usage,
    )


def tokens_in(buckets: dict[str, Any]) -> Usage | None:
    """Tokens from Langfuse's buckets: ``input``, ``output``, ``total``, and parts under names that vary."""
    return tokens(
        buckets.get("input"),
        buckets.get("output"),
        total=buckets.get("total"),
        cached=_sum(buckets, ("cache", "read"), ("cached",)),
        stored=_sum(buckets, ("cache", "creation"), ("cache", "write")),
        reasoning=_sum(buckets, ("reasoning",)),
    )


def _sum(details: dict[str, Any], *namings: tuple[str, ...]) -> int | None:
    """The bucket whose name has all words of one of the namings; they are tried in order."""
    for words in namings:
        found = [n for key, n in details.items() if isinstance(n, int) and all(part in key for part in words)]
        if found:
            return sum(found)
    return None


def schemas(value: Any) -> Iterator[ToolSchema]:
    """Tools as a request described them."""
    value = opened(value)
    if isinstance(value, dict):
        for key in ("function_tools", "tools", "function_declarations", "functionDeclarations", "functions"):
            if isinstance(value.get(key), list):
                yield from schemas(value[key])
                return
        value = [value]
    for entry in value if isinstance(value, list) else ():
        tool = opened(entry)
        if not isinstance(tool, dict):
            continue
        for holder in ("tool", "toolSpec", "json_schema", "tool.json_schema", "function"):
            inner = opened(tool.get(holder))
            tool = inner if isinstance(inner, dict) else tool
        if any(isinstance(tool.get(key), list) for key in ("function_declarations", "functionDeclarations")):
            yield from schemas(tool)
            continue
        name = word(tool.get("name")) or word(tool.get("tool.name"))
        if name is None:
            continue
        parameters = opened(
            _any(tool, "parameters", "input_schema", "inputSchema", "parameters_json_schema", "tool.parameters")
        )
        if isinstance(parameters, dict) and isinstance(parameters.get("json"), dict):
            parameters = parameters["json"]
        description = _any(tool, "description", "tool.description")
        yield ToolSchema(
            name=name,
            description=description if isinstance(description, str) and description else None,
            parameters=parameters if isinstance(parameters, dict) else None,
        )


class Answered(msgspec.Struct):
    """A tool's result out of its wrapping."""

    text: str | None
    call_id: str | None = None
    failed: bool | None = None
    name: str | None = None


def answered(value: Any) -> Answered:
    """The result of a tool call, taken out of LangChain's ``ToolMessage``, ``{"output": ..}`` and the like."""
    if isinstance(value, str) and '"output"' not in value and '"type"' not in value and '"role"' not in value:
        return Answered(value)  # nothing is wrapped around it
    inner = opened(value) if isinstance(value, str) and value.lstrip()[:1] == "{" else value
    for _ in range(2):
        if isinstance(inner, dict) and "output" in inner and set(inner) <= {"output", "kwargs"}:
            value = inner["output"]
            inner = opened(value) if isinstance(value, str) and value.lstrip()[:1] == "{" else value
    if isinstance(inner, dict) and (
        inner.get("type") in ("tool", "constructor") or (inner.get("role") == "tool" and "content" in inner)
    ):
        said = [message for message in messages(inner, "tool") if message.role == "tool"]
        if said:
            first = said[0]
            return Answered("\n".join(s.content for s in said if s.content), first.call_id, first.failed, first.name)
    return Answered(plain(value))


def called_with(value: Any, names: list[str] | None = None) -> Arguments:
    """Arguments of a call; ``{"args": [..], "kwargs": {..}}`` of a Python call becomes what was passed.

    names: of the parameters in order, for what was passed by position.
    """
    found = from_text(value) if isinstance(value, str) else from_parsed(value)
    if found[1] is None or ('"kwargs"' not in found[1] and '"input_str"' not in found[1]):
        return found  # nothing was noted around the call
    inner = opened(found[1])
    if not isinstance(inner, dict):
        return found
    if "kwargs" in inner and "args" in inner and isinstance(inner["args"], list):
        passed = dict(inner["kwargs"]) if isinstance(inner["kwargs"], dict) else {}
        by_place = inner["args"]
        if by_place and names and len(names) >= len(by_place):
            passed = {**dict(zip(names, by_place, strict=False)), **passed}
        elif by_place:
            passed = {"args": by_place, **passed}
        return found[0], compact(passed), "repaired"
    if "input_str" in inner and {"tags", "metadata", "kwargs"} & inner.keys():  # OpenLLMetry around LangChain
        passed = inner["inputs"] if isinstance(inner.get("inputs"), dict) else inner["input_str"]
        _, as_json, _ = called_with(passed)
        if as_json is not None:
            return found[0], as_json, "repaired"
    return found


def verdict(has_result: bool, text: str | None, failed: bool | None, error: str | None) -> tuple[Status, Evidence]:
    """Status of a call in a trace.

    A span that says "error" is believed. One that says "ok" only says that
    nothing was raised: a result that itself reports a failure by flag, exit
    code or error field outweighs it, a text that begins with "Error" does not.
    """
    if failed is not False:
        return judge(has_result=has_result, text=text, failed=failed, error=error)
    status, evidence = judge(has_result=has_result, text=text)
    if status == "error" and evidence != "text_rule":
        return status, evidence
    return "ok", "flag"


def outcome(scores: list[Score]) -> Outcome | None:
    """The first score whose name says that it is about success and whose value says how much."""
    for score in scores:
        if score.name.lower().replace("-", "_").replace(" ", "_").replace(".", "_") in _OUTCOMES:
            value = read_outcome(score.value)
            if value is not None:
                by = f" ({score.source})" if score.source else ""
                return Outcome(value=value, provenance=f"log:{score.name}{by}")
    return None


def scores_as_data(scores: list[Score]) -> list[dict[str, Any]]:
    """Scores for a run's metadata."""
    return [msgspec.to_builtins(score) for score in scores[:_LIMIT]]


def _any(value: dict[str, Any], *keys: str) -> Any:
    for key in keys:
        found = value.get(key)
        if found is not None:
            return found
    return None


def _dict(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return next((value[key] for key in keys if isinstance(value.get(key), dict)), {})


def _count(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip().isdigit() and len(value) < 19:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None
