"""Saved run states of the OpenAI Agents SDK (``RunState.to_json``), in Python's spelling or JavaScript's.

One object: ``$schemaVersion``, ``original_input`` (a text, or the items of the
conversation so far), ``session_items[]`` / ``generated_items[]`` ``{type,
raw_item, agent}``, ``model_responses[].{output[], usage}``, ``current_step``.
The same call stands in it up to ten times: it counts once, by ``call_id``. A
call that waits for approval (``tool_approval_item``) has no result; one whose
approval was refused has failed. ``handoff_*_item`` pass the run on to another
agent and are no steps. JavaScript writes ``callId``, ``rawItem``, and
``function_call_result``. Neither times nor the model are in it. One trace may
have several states, so its id does not name the run alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from poc.ingest.readers.assembly import Assembly, word
from poc.ingest.readers.chat_messages import usage_of
from poc.ingest.readers.responses_items import Item, Items, schemas
from poc.trajectory import Run, Usage

_MARK = "$schemaVersion"
_FIELDS = frozenset(
    {"current_agent", "original_input", "model_responses", "generated_items"}
    | {"currentAgent", "originalInput", "modelResponses", "generatedItems"}
)
_RESULT_ITEMS = ("tool_call_output_item", "handoff_output_item")


def is_state(fields: Mapping[str, Any]) -> bool:
    """Whether an object, or what of it a sample shows, is a run state."""
    return _MARK in fields and bool(_FIELDS & fields.keys())


def run_of(place: str, value: dict[str, Any]) -> Run:
    """The run of a saved state."""
    state = _python(value)
    run = Run(place=place, framework="openai-agents")
    trace = _dict(state.get("trace"))
    run.native_id = word(trace.get("id")) or word(state.get("conversation_id"))
    assembly = Assembly(run)
    _Conversation(state, Items(assembly, repeats=True), assembly).tell()
    run.usage = _tokens(_dict(_dict(state.get("context")).get("usage")))
    functions = _dicts(_dict(state.get("last_processed_response")).get("functions"))
    run.tools = schemas([entry.get("tool") for entry in functions])
    about = {
        "workflow_name": trace.get("workflow_name"),
        "agent": _dict(state.get("current_agent")).get("name"),
        "current_step": _dict(state.get("current_step")).get("type"),
        "turns": state.get("current_turn"),
    }
    run.metadata |= {name: value for name, value in about.items() if value is not None}
    return assembly.finish()


class _Conversation:
    """The items of a state in their order, each once."""

    def __init__(self, state: dict[str, Any], items: Items, assembly: Assembly) -> None:
        self.state = state
        self.items = items
        self.assembly = assembly
        self.responses = _dicts(state.get("model_responses"))
        self.of: dict[str, int] = {}
        """The response that an item came with, by the item's id or call id."""
        for number, response in enumerate(self.responses):
            for item in _dicts(response.get("output")):
                for key in (word(item.get("call_id")), word(item.get("id"))):
                    if key is not None:
                        self.of.setdefault(key, number)
        self.called: set[str] = set()
        self.answered: set[str] = set()
        self.refused = _refused(_dict(state.get("context")).get("approvals"))
        self.current: int | None = None
        self.handoffs: list[dict[str, Any]] = []

    def tell(self) -> None:
        """Give all items to the assembly."""
        first = self.state.get("original_input")
        if isinstance(first, str):
            self.assembly.message("user", first)
        for item in _dicts(first):
            self._add(item, "")
        generated = _dicts(self.state.get("generated_items"))
        session = _dicts(self.state.get("session_items"))
        for entry in session or generated:
            self._add(_raw(entry), str(entry.get("type")), entry)
        # What follows repeats the above, but for calls that wait or were left out by a filter.
        for entry in [*generated, *self._waiting()]:
            raw = _raw(entry)
            if word(raw.get("call_id")) is not None:
                self._add(raw, str(entry.get("type")), entry)
        for raw in self._made():
            self._add(raw, "")
        self.items.finish()
        if self.handoffs:
            self.assembly.run.metadata["handoffs"] = self.handoffs

    def _waiting(self) -> list[dict[str, Any]]:
        return _dicts(_dict(_dict(self.state.get("current_step")).get("data")).get("interruptions"))

    def _made(self) -> Iterator[dict[str, Any]]:
        """Calls of model responses that no item shows: their responses have not been acted upon."""
        for response in self.responses:
            for item in _dicts(response.get("output")):
                if item.get("type") == "function_call" and word(item.get("call_id")) is not None:
                    yield item

    def _add(self, raw: dict[str, Any], kind: str, entry: dict[str, Any] | None = None) -> None:
        call_id = word(raw.get("call_id"))
        if kind.startswith("handoff_"):
            self._passed_on(kind, call_id, entry or {})
            return
        is_result = kind in _RESULT_ITEMS or str(raw.get("type")).endswith("_output")
        seen = self.answered if is_result else self.called
        if call_id is not None:
            if call_id in seen:
                return
            seen.add(call_id)
        item = _item(raw)
        if item is None:
            return
        if is_result and item.output is None and entry is not None:
            item.output = entry.get("output")
        if is_result and call_id in self.refused:
            item.status = "failed"
        number = self.of.get(call_id or word(raw.get("id")) or "") if not is_result else None
        if number is not None and number != self.current:
            self.current = number
            self.items.begin(number, _tokens(_dict(self.responses[number].get("usage"))))
        self.items.add(item, turn=None if number is None else ("response", number))

    def _passed_on(self, kind: str, call_id: str | None, entry: dict[str, Any]) -> None:
        if call_id is not None:
            self.called.add(call_id)
        if kind == "handoff_output_item":
            source, target = _dict(entry.get("source_agent")).get("name"), _dict(entry.get("target_agent")).get("name")
            if {"from": source, "to": target} not in self.handoffs:
                self.handoffs.append({"from": source, "to": target})


def _item(raw: dict[str, Any]) -> Item | None:
    try:
        return msgspec.json.decode(msgspec.json.encode(raw), type=Item)
    except (msgspec.DecodeError, msgspec.EncodeError, ValueError, RecursionError):
        return None


def _refused(approvals: Any) -> set[str]:
    """The calls that a person would not let happen."""
    found: set[str] = set()
    for entry in _dict(approvals).values():
        ids = _dict(entry).get("rejected")
        found |= {str(call_id) for call_id in ids} if isinstance(ids, list) else set()
    return found


def _tokens(usage: dict[str, Any]) -> Usage | None:
    """Tokens of a usage object; one that counts no request says nothing."""
    if not usage.get("requests"):
        return None
    return usage_of({name: value[0] if isinstance(value, list) and value else value for name, value in usage.items()})


_NAMES = {
    "callId": "call_id",
    "rawItem": "raw_item",
    "currentAgent": "current_agent",
    "originalInput": "original_input",
    "modelResponses": "model_responses",
    "generatedItems": "generated_items",
    "sessionItems": "session_items",
    "currentStep": "current_step",
    "currentTurn": "current_turn",
    "lastProcessedResponse": "last_processed_response",
    "workflowName": "workflow_name",
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "inputTokensDetails": "input_tokens_details",
    "outputTokensDetails": "output_tokens_details",
    "cachedTokens": "cached_tokens",
    "reasoningTokens": "reasoning_tokens",
    "sourceAgent": "source_agent",
    "targetAgent": "target_agent",
}
_HELD = frozenset({"arguments", "content", "output"})
"""What tools and people said is not respelt."""
_DEPTH = 12


def _python(value: Any, depth: int = 0) -> Any:
    """A state in Python's spelling."""
    if depth > _DEPTH:
        return value
    if isinstance(value, list):
        return [_python(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {
        _NAMES.get(key, key): item if key in _HELD and depth > 3 else _python(item, depth + 1)
        for key, item in value.items()
    }
    if plain.get("type") == "function_call_result":
        plain["type"] = "function_call_output"
        text = _dict(plain.get("output")).get("text")
        plain["output"] = text if isinstance(text, str) else plain.get("output")
    return plain


def _raw(entry: dict[str, Any]) -> dict[str, Any]:
    inner = entry.get("raw_item")
    return inner if isinstance(inner, dict) else {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
