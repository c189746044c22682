"""Where an arm's text goes in a request.

The text is put into a copy of the messages for one request only and is never
kept in the history: in all three placements the next request starts from the
clean history again (the text is *withdrawn*).

- ``system``: appended to the first system message, or a system message of its
  own at the head where there is none. Changes the head of the prompt, so a
  provider's prompt cache starts anew whenever the text changes.
- ``tail``: a last message of its own. It has the role *user*, not *system*:
  many compatible servers and chat templates reject a system message that is
  not the first, or hoist it to the head, while a user message after a tool
  result or another user message is accepted nearly everywhere. The cached
  prefix stays intact.
- ``tool_result``: appended to the last tool message. Before the first tool
  result there is no such place, and nothing is added.

Knows no arm and no progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, get_args

from poc.errors import InputError, did_you_mean

Placement = Literal["system", "tail", "tool_result"]
PLACEMENTS: tuple[Placement, ...] = get_args(Placement)

_SYSTEM_ROLES = ("system", "developer")
_GAP = "\n\n"


def place(messages: Sequence[Mapping[str, Any]], text: str | None, placement: Placement) -> list[dict[str, Any]]:
    """The messages with `text` put where `placement` says; the input is left as it was.

    messages: chat-completions messages. text: None adds nothing. Returns
    copies; the result equals the input where nothing was added.
    Raises `InputError` for an unknown placement.
    """
    if placement not in PLACEMENTS:
        raise InputError(f"There is no placement '{placement}'.{did_you_mean(placement, PLACEMENTS)}")
    copies = [dict(deepcopy(message)) for message in messages]
    if text is None:
        return copies
    if placement == "tail":
        return [*copies, {"role": "user", "content": text}]
    position = _position(copies, placement)
    if position is not None:
        copies[position]["content"] = _with(copies[position].get("content"), text)
    elif placement == "system":
        copies.insert(0, {"role": "system", "content": text})
    return copies


def can_place(messages: Sequence[Mapping[str, Any]], placement: Placement) -> bool:
    """Whether these messages have a place for a text; False only for ``tool_result`` before the first result."""
    return placement != "tool_result" or _position(messages, placement) is not None


def _position(messages: Sequence[Mapping[str, Any]], placement: Placement) -> int | None:
    roles = ("tool",) if placement == "tool_result" else _SYSTEM_ROLES
    found = [position for position, message in enumerate(messages) if message.get("role") in roles]
    if not found:
        return None
    return found[-1] if placement == "tool_result" else found[0]


def _with(content: Any, text: str) -> Any:
    """Content with the text behind it; content may be a string, a list of parts, or absent."""
    if content is None or content == "":
        return text
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return f"{content}{_GAP}{text}"
