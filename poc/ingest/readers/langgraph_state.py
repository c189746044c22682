"""The state that a LangGraph checkpoint holds, taken out of its bytes without importing or unpickling anything.

Values are ``msgpack`` or ``json``. What is no plain value in msgpack stands in
extensions: ``[module, class, argument, ..]``, of which the argument is taken
for what it is (a message's fields) and the class is only a name. ``pickle`` is
never read, and nor is what is encrypted. Knows bytes and states, no run.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from poc.ingest.jsonstream import compact
from poc.ingest.readers.assembly import word

_POSITIONAL, _ARRAY, _DELTA = 1, 6, 7
"""Extensions: a class with a list of arguments, an array, and the value itself. The others hold one argument."""
_MESSAGE_KINDS = frozenset({"human", "user", "ai", "assistant", "system", "tool", "function", "chat", "developer"})
_INNER_CHANNELS = ("__", "branch:", "start:")
_SAYING = ("type", "role", "content", "tool_call_id", "tool_calls")
_LONGEST_VALUE = 2000


class Unreadable(Exception):
    """Why a value cannot be read, in words for a reject."""


class State(msgspec.Struct):
    """One checkpoint: its time `at`, its messages and what else it holds.

    keys: one for each message, the same as long as the message stays.
    asked: ids of the calls that the step after it was to make, a task each.
    """

    at: Any
    messages: list[dict[str, Any]]
    keys: list[bytes]
    others: dict[str, Any]
    asked: list[str | None]


def unpack(kind: Any, data: Any) -> Any:
    """The value in a column, by what its ``type`` says. Raises `Unreadable`."""
    if data is None or kind == "null":
        return None
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)
    try:
        if kind == "msgpack":
            return msgspec.msgpack.decode(raw, ext_hook=_extension)
        if kind == "json" or (kind is None and raw[:1] in b'{["'):
            return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise Unreadable(f"the {kind} value is broken: {error}") from error
    if kind == "pickle" or (kind is None and raw[:1] == b"\x80"):
        raise Unreadable("the value is pickled, and that is never unpacked here: it could run any code")
    if kind in ("bytes", "bytearray"):
        return None
    raise Unreadable(f"values of type {kind} cannot be read here")


def _extension(code: int, data: memoryview) -> Any:
    if code == _ARRAY:
        return None  # numbers of numpy
    inner = msgspec.msgpack.decode(data, ext_hook=_extension)
    if code == _DELTA or not isinstance(inner, list) or len(inner) < 3:
        return inner
    argument = inner[2]
    if code == _POSITIONAL and isinstance(argument, list) and len(argument) == 1:
        return argument[0]
    return argument


def state_of(value: Any) -> State:
    """What a checkpoint says. Raises `Unreadable` when it is none."""
    channels = value.get("channel_values") if isinstance(value, dict) else None
    if not isinstance(channels, dict):
        raise Unreadable("no checkpoint of LangGraph: it has no channel values")
    talks = [name for name, held in channels.items() if _is_talk(held)]
    name = "messages" if "messages" in talks or not talks else talks[0]
    messages = [fields(message) for message in channels[name]] if name in talks else []
    others = {
        str(key): small
        for key, held in channels.items()
        if key != name and not str(key).startswith(_INNER_CHANNELS) and (small := plain_value(held)) is not None
    }
    sent = channels.get("__pregel_tasks")
    asked = [_asked(task) for task in sent] if isinstance(sent, list) else []
    return State(value.get("ts"), messages, [key_of(message) for message in messages], others, asked)


def plain_value(value: Any) -> Any:
    """A value as JSON has it, for a run's metadata; None for one that is empty, long or cannot be said in JSON."""
    if value in (None, "", [], {}):
        return None
    try:
        text = compact(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= _LONGEST_VALUE else None


def _asked(task: Any) -> str | None:
    """The id of the call that a task was sent to make."""
    argument = task[1] if isinstance(task, list) and len(task) == 2 else None
    call = argument.get("tool_call") if isinstance(argument, dict) else None
    return word(call.get("id")) if isinstance(call, dict) else None


def fields(message: Any) -> dict[str, Any]:
    """A message's fields; of one that was serialised by LangChain, with its class as the type."""
    if isinstance(message, dict) and isinstance(message.get("kwargs"), dict):
        path = message.get("id")
        name = str(path[-1]) if isinstance(path, list) and path else ""
        return {"type": name.removesuffix("Chunk").removesuffix("Message").lower(), **message["kwargs"]}
    if isinstance(message, dict):
        return message
    if isinstance(message, list) and len(message) == 2:
        return {"type": message[0], "content": message[1]}
    return {"type": "user", "content": message}


def key_of(message: dict[str, Any]) -> bytes:
    """What tells a message from others: its id, else what it says."""
    told = message.get("id") or compact([message.get(name) for name in _SAYING])
    return hashlib.blake2b(str(told).encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _is_talk(value: Any) -> bool:
    """Whether a channel holds messages."""
    if not isinstance(value, list) or not value:
        return False
    for item in value:
        message = fields(item)
        kind = message.get("type") or message.get("role")
        if "content" not in message or str(kind).lower().removesuffix("messagechunk") not in _MESSAGE_KINDS:
            return False
    return True
