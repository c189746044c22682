"""Items of OpenAI's Responses API to messages and steps: the part that its wrappers share.

``function_call`` and ``custom_tool_call`` (free text input) are answered by a
later ``*_call_output`` with the same ``call_id`` (not ``id``); the same holds
for the shell, patch and computer calls. Tools that run at the provider
(``web_search_call``, ``file_search_call``, ``code_interpreter_call``,
``mcp_call``, ``image_generation_call``) carry their result, status or error in
the item itself. ``mcp_approval_request`` is a call that waits for a person.
``mcp_list_tools`` holds schemas. Reasoning and unknown items are passed over.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from poc.ingest.arguments import ABSENT, Arguments, from_raw, from_text
from poc.ingest.evidence import read_flag
from poc.ingest.readers.assembly import Assembly, blocks_text, plain, word
from poc.trajectory import Message, Role, Step, ToolSchema, Usage

_NOTHING = Raw(b"")
_ROLES: dict[Any, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call"})
_CLIENT = {"local_shell_call": "local_shell", "shell_call": "shell", "apply_patch_call": "apply_patch"}
PROVIDED = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "tool_search_call": "tool_search",
}
"""Calls that the provider carries out, with the name of the tool."""
TYPES = (
    CALLS
    | PROVIDED.keys()
    | {f"{name}_output" for name in CALLS}
    | {"computer_call", "computer_call_output", "mcp_call", "mcp_list_tools", "mcp_approval_request", "reasoning"}
)
"""Types that only such items have; ``message`` is left out, since others have it too."""


class Item(msgspec.Struct, gc=False):
    """One item as it stands in the file; unknown fields are passed over."""

    type: Any = None
    id: Any = None
    call_id: Any = None
    role: Any = None
    content: Any = None
    name: Any = None
    arguments: Raw = _NOTHING
    input: Raw = _NOTHING
    action: Raw = _NOTHING
    actions: Raw = _NOTHING
    operation: Raw = _NOTHING
    queries: Raw = _NOTHING
    code: Raw = _NOTHING
    output: Any = None
    outputs: Any = None
    results: Any = None
    result: Any = None
    error: Any = None
    status: Any = None
    tools: Any = None
    approval_request_id: Any = None
    approve: Any = None
    reason: Any = None


decode_item = msgspec.json.Decoder(Item).decode


class Items:
    """Feed items in the order of the log. `repeats` says that the wrapper shows the same item several times."""

    def __init__(self, assembly: Assembly, *, repeats: bool = False) -> None:
        self.assembly = assembly
        self._repeats = repeats
        self._seen: set[tuple[Any, ...]] = set()
        self._current: Message | None = None
        self._usage: Usage | None = None
        self._response: Hashable | None = None
        self._count = 0
        self._answered = False
        self._waiting: dict[str, Item] = {}

    def begin(self, response: Hashable, usage: Usage | None = None) -> None:
        """What follows is one response of the model, until `end`."""
        self._response, self._usage, self._current = ("response", response), usage, None

    def end(self) -> None:
        """The response is over; tokens that no message took are kept with an empty one."""
        if self._usage is not None:
            self._assistant(None)
        self._response = None

    def add(
        self,
        item: Item,
        *,
        at: datetime | None = None,
        exit_code: Any = None,
        duration_s: float | None = None,
        turn: Hashable | None = None,
    ) -> Step | None:
        """One item; the step where it is a call. `exit_code` and `duration_s` are for results that say so beside."""
        kind = item.type if isinstance(item.type, str) else None
        if kind == "message" or (kind is None and item.role is not None):
            self._message(item, at)
        elif kind in CALLS or kind == "computer_call":
            if not self._repeated("call", item.call_id, item.name, bytes(item.arguments), bytes(item.input)):
                return self._call(item, _CLIENT.get(kind, item.name or kind), _arguments(item), at, turn)
        elif isinstance(kind, str) and kind.endswith("_call_output"):
            if not self._repeated("output", item.call_id):
                self._close()
                code, timed_out = _ends(item.output)
                self.assembly.result(
                    _output(item.output),
                    call_id=word(item.call_id),
                    at=at,
                    failed=True if timed_out or item.status == "failed" else None,
                    exit_code=code if exit_code is None else exit_code,
                    duration_s=duration_s,
                )
        elif kind in PROVIDED or kind == "mcp_call":
            if not self._repeated("call", item.id or item.call_id, item.name, bytes(item.arguments)):
                return self._inline(item, at, turn)
        elif kind == "mcp_list_tools":
            self._tools(item.tools)
        elif kind == "mcp_approval_request" and word(item.id):
            self._waiting.setdefault(str(item.id), item)
        elif kind == "mcp_approval_response" and item.approve is False:
            self._denied(item, at)
        return None

    def finish(self) -> None:
        """No more items: approvals that were never given are calls without a result."""
        for item in self._waiting.values():
            self._call(item, item.name, _arguments(item), None, None)
        self._waiting.clear()

    def _message(self, item: Item, at: datetime | None) -> None:
        if self._repeated("message", item.id) if item.id else False:
            return
        role = _ROLES.get(word(item.role), "other")
        content = content_of(item.content)
        if role == "assistant":
            if self._answered:
                self._close_turn()
            self._current = None
            self._assistant(content, at)
        else:
            self._close()
            self.assembly.message(role, content, at=at)

    def _call(self, item: Item, tool: Any, arguments: Arguments, at: datetime | None, turn: Hashable | None) -> Step:
        if self._answered:
            self._close_turn()
        message = self._current or self._assistant(None, at)
        call_id = word(item.call_id) or word(item.id)
        return self.assembly.call(
            tool, arguments, turn=turn or self._response or self._count, call_id=call_id, message=message, at=at
        )

    def _inline(self, item: Item, at: datetime | None, turn: Hashable | None) -> Step:
        """A call that ran at the provider: its result is in the item."""
        self._waiting.pop(str(item.approval_request_id), None)
        step = self._call(item, PROVIDED.get(item.type, item.name), _arguments(item), at, turn)
        failed = read_flag(item.status)
        if failed is None and item.type == "mcp_call" and item.error is not None:
            failed = True
        found = next((value for value in (item.output, item.results, item.outputs) if value is not None), None)
        if found is None and item.result is not None:
            found = "[image]" if item.type == "image_generation_call" else item.result
        if found is None and item.error is not None:
            found = item.error
        if found is not None or failed is not None:
            self.assembly.result(
                _output(found),
                call_id=step.call_id,
                failed=failed,
                error=item.error,
                has_result=found is not None,
            )
        return step

    def _denied(self, item: Item, at: datetime | None) -> None:
        request = self._waiting.pop(str(item.approval_request_id), None)
        if request is not None:
            step = self._call(request, request.name, _arguments(request), None, None)
            self.assembly.result(
                word(item.reason), call_id=step.call_id, at=at, failed=True, has_result=bool(item.reason)
            )

    def _assistant(self, content: str | None, at: datetime | None = None) -> Message:
        self._current = self.assembly.message("assistant", content, at=at, usage=self._usage)
        self._usage = None
        return self._current

    def _close(self) -> None:
        self._answered = True
        self._current = None

    def _close_turn(self) -> None:
        self._answered = False
        self._count += 1

    def _repeated(self, *key: Any) -> bool:
        if not self._repeats or word(key[1]) is None:
            return False
        key = (*key[:1], *map(str, key[1:]))
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    def _tools(self, listed: Any) -> None:
        known = {tool.name for tool in self.assembly.run.tools}
        self.assembly.run.tools.extend(tool for tool in schemas(listed) if tool.name not in known)


def schemas(listed: Any) -> list[ToolSchema]:
    """Tools as the Responses API lists them (``parameters``) or MCP does (``input_schema``)."""
    tools: list[ToolSchema] = []
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("function"), dict):
            entry = entry["function"]  # the chat API's layer around it
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            parameters = next(
                (
                    entry[key]
                    for key in ("parameters", "input_schema", "inputSchema", "paramsJsonSchema")
                    if key in entry
                ),
                None,
            )
            description = entry.get("description")
            tools.append(
                ToolSchema(
                    name=entry["name"],
                    description=description if isinstance(description, str) and description else None,
                    parameters=parameters if isinstance(parameters, dict) else None,
                )
            )
    return tools


def _arguments(item: Item) -> Arguments:
    if item.type == "custom_tool_call":
        try:
            return from_text(msgspec.json.decode(item.input, type=str))
        except (msgspec.ValidationError, msgspec.DecodeError):
            return from_raw(item.input)
    for raw in (item.arguments, item.action, item.actions, item.operation, item.queries, item.code):
        if bytes(raw) not in (b"", b"null"):
            return from_raw(raw)
    return ABSENT


def mark(item: Item) -> Hashable:
    """What tells an item from others when it comes again, as input of a later request; None for what may be left out.

    Ids of messages and states are often dropped on the way, so they do not count.
    """
    kind = item.type
    if kind == "message" or (kind is None and item.role is not None):
        return "message", item.role, (content_of(item.content) or "").strip()
    if kind == "reasoning" or not isinstance(kind, str):
        return None
    if kind.endswith("_call_output"):
        return "output", word(item.call_id)
    return kind, word(item.call_id) or word(item.id) or (word(item.name), bytes(item.arguments))


def content_of(content: Any) -> str | None:
    """The text of a message's content."""
    if isinstance(content, list):
        parts = [_refusal(block) for block in content]
        return blocks_text(parts) if parts else None
    return plain(content)


def _refusal(block: Any) -> Any:
    if isinstance(block, dict) and isinstance(block.get("refusal"), str):
        return {"text": block["refusal"]}
    return block


def _ends(output: Any) -> tuple[Any, bool]:
    """The exit code of a shell call (the first that is not 0), and whether it was stopped for taking too long."""
    ends = [part.get("outcome") for part in output if isinstance(part, dict)] if isinstance(output, list) else []
    ends = [end for end in ends if isinstance(end, dict)]
    codes = [end.get("exit_code") for end in ends if end.get("exit_code") is not None]
    return next((code for code in codes if code != 0), codes[0] if codes else None), any(
        end.get("type") == "timeout" for end in ends
    )


def _output(output: Any) -> str | None:
    if isinstance(output, dict) and output.get("type") == "computer_screenshot":
        return "[image]"
    if isinstance(output, list) and all(isinstance(part, dict) and "type" in part for part in output):
        return blocks_text(output)
    return plain(output)
