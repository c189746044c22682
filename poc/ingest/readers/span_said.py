"""The messages that a span's attributes and events hold, under all names that are in use.

Whole (``gen_ai.input.messages``), flattened (``gen_ai.prompt.N``,
``llm.input_messages.N``), as events, or as the text of a request. The first
that says something wins. Knows no container and no other attributes.
"""

from __future__ import annotations

from typing import Any

from poc.ingest.readers.assembly import plain, word
from poc.ingest.readers.said import Asked, Said, messages, opened
from poc.ingest.readers.spans import Span

_INPUTS = ("gen_ai.input.messages", "ai.prompt.messages", "gcp.vertex.agent.llm_request", "pydantic_ai.all_messages")
_LATER_INPUTS = ("ai.prompt", "gen_ai.prompt", "traceloop.entity.input", "input.value", "request_data")
_LANGFUSE = "langfuse.observation."
_OUTPUTS = ("gen_ai.output.messages", "gcp.vertex.agent.llm_response")
_LATER_OUTPUTS = ("gen_ai.completion", "final_result", "traceloop.entity.output", "output.value", "response_data")
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_PIECES = 8
"""From so many messages of fewer signs than this on average, an answer is taken to be in pieces."""


def first(attributes: dict[str, Any], *keys: str) -> Any:
    """The first attribute that says something."""
    for key in keys:
        found = attributes.get(key)
        if found is not None and found != "":
            return found
    return None


def asked(span: Span) -> list[Said]:
    """The messages that a model or an agent was given."""
    a = span.attributes
    details = next((e.attributes for e in span.events if "gen_ai.input.messages" in e.attributes), {})
    system = messages(first(a, "gen_ai.system_instructions") or details.get("gen_ai.system_instructions"), "system")
    value = first(a, *_INPUTS) or details.get("gen_ai.input.messages")
    found = messages(value) if value is not None else []
    found = found or _flattened(branches(a, "gen_ai.prompt")) or _flattened(branches(a, "llm.input_messages"))
    found = found or _from_events(span, answers=False)
    if not found:
        value = first(a, *_LATER_INPUTS, f"{_LANGFUSE}input")
        found = messages(value) if value is not None else []
    known = {said.content for said in found if said.role == "system"}
    return [Said("system", said.content) for said in system if said.content not in known] + found


def answer(span: Span) -> list[Said]:
    """The messages that a model or an agent gave back."""
    a = span.attributes
    details = next((e.attributes for e in span.events if "gen_ai.output.messages" in e.attributes), {})
    value = first(a, *_OUTPUTS) or details.get("gen_ai.output.messages")
    found = messages(value, "assistant") if value is not None else []
    found = found or _flattened(branches(a, "gen_ai.completion"), "assistant")
    found = found or _pieces(_flattened(branches(a, "llm.output_messages"), "assistant"))
    found = found or _vercel_answer(a) or _from_events(span, answers=True)
    if not found:
        value = first(a, *_LATER_OUTPUTS, f"{_LANGFUSE}output")
        found = messages(value, "assistant") if value is not None else []
    return [said for said in found if said.role in ("assistant", "tool")]


def _pieces(found: list[Said]) -> list[Said]:
    """Some tracers keep a streamed answer piece by piece, each as a message."""
    texts = [said.content or "" for said in found]
    plain_text = all(said.role == "assistant" and not said.calls for said in found)
    if len(found) >= _PIECES and plain_text and sum(map(len, texts)) < _PIECES * len(texts):
        return [Said("assistant", "".join(texts))]
    return found


def _vercel_answer(a: dict[str, Any]) -> list[Said]:
    text, calls = first(a, "ai.response.text", "ai.response.object"), opened(a.get("ai.response.toolCalls"))
    made = [
        Asked(word(call.get("toolName")), call.get("input", call.get("args")), word(call.get("toolCallId")))
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict)
    ]
    return [Said("assistant", plain(text), made)] if text is not None or made else []


def _from_events(span: Span, *, answers: bool) -> list[Said]:
    """Messages that older conventions keep as events, or as a list of such events in one attribute."""
    listed: list[tuple[str, dict[str, Any]]] = [(event.name, event.attributes) for event in span.events]
    for item in opened(first(span.attributes, "events", "all_messages_events")) or ():
        if isinstance(item, dict):
            listed.append((str(item.get("event.name") or item.get("name")), item))
    found: list[Said] = []
    for name, fields in listed:
        body = opened(fields.get("event_body"))
        fields = {**fields, **body} if isinstance(body, dict) else fields
        if name == "gen_ai.choice" and answers:
            inner = opened(fields.get("message", fields))
            found += messages(inner if isinstance(inner, dict) and "role" in inner else _as(inner, "assistant"))
        elif name in _EVENT_ROLES and not answers:
            found += messages(_as(fields, _EVENT_ROLES[name]))
        elif name == ("gen_ai.content.completion" if answers else "gen_ai.content.prompt"):
            found += messages(first(fields, "gen_ai.completion", "gen_ai.prompt"), "assistant" if answers else "user")
    return found


def _as(value: Any, role: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {"role": role, "content": value}
    inner = {key: opened(item) if key in ("content", "tool_calls") else item for key, item in value.items()}
    return {**inner, "role": inner.get("role") or role}


def _flattened(listed: list[Any], role: str = "user") -> list[Said]:
    """Messages of flattened attributes, grown into objects again."""
    found: list[Said] = []
    for item in listed:
        message = item.get("message", item) if isinstance(item, dict) else None
        if not isinstance(message, dict):
            continue
        content = message.get("content", message.get("contents"))
        if isinstance(content, str) and content[:2] in ("[{", '{"') and "tool_call_id" not in message:
            inner = opened(content)
            blocks = isinstance(inner, list) and all(isinstance(block, dict) and "type" in block for block in inner)
            content = inner if blocks else content
        found += messages({**message, "content": content, "role": message.get("role") or role})
    return found


def branches(attributes: dict[str, Any], prefix: str) -> list[Any]:
    """The list that attributes ``prefix.0.x``, ``prefix.1.y`` describe (or the one that stands there whole)."""
    start = prefix + "."
    root: dict[str, Any] = {}
    whole = opened(attributes.get(prefix))
    if isinstance(whole, list):
        return [_grown(item) if isinstance(item, dict) else item for item in whole]
    for key, value in attributes.items():
        if key.startswith(start):
            _put(root, key[len(start) :].split("."), value)
    return _lists(root) if root and all(map(str.isdecimal, root)) else []


def _grown(item: dict[str, Any]) -> dict[str, Any]:
    """An object with dotted names as a tree."""
    root: dict[str, Any] = {}
    for key, value in item.items():
        if isinstance(value, list):
            value = [_grown(part) if isinstance(part, dict) else part for part in value]
        elif isinstance(value, dict):
            value = _grown(value)
        _put(root, key.split("."), value)
    return root


def _put(root: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        inner = root.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        root = inner
    root.setdefault(path[-1], value)


def _lists(tree: dict[str, Any]) -> Any:
    """The tree, in which objects whose keys are all numbers have become lists. It is changed."""
    for key, value in tree.items():
        if isinstance(value, dict):
            tree[key] = _lists(value)
    if tree and all(map(str.isdecimal, tree)):
        return [tree[key] for key in sorted(tree, key=_rank)]
    return tree


def _rank(number: str) -> tuple[int, str]:
    """The order of whole numbers, however many digits they have."""
    return len(number), number
