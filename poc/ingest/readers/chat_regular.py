"""The usual chat, read fast: plain texts, every call with an id of its own, every result answering an open call.

Nearly all runs of a large log are so, and reading them takes half the time
that all the allowances of `chat_messages` take. Whatever is not exactly so is
left to that module; a test holds that both read a usual chat alike.
"""

from __future__ import annotations

from typing import Any

import msgspec

from poc.ingest.arguments import from_text
from poc.ingest.evidence import judge
from poc.ingest.readers.chat_messages import ROLES, UNNAMED
from poc.trajectory import Message, Run, Step


class _Function(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    name: str
    arguments: str


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    id: str
    function: _Function
    type: Any = None
    index: Any = None


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: str
    content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    function_call: None = None
    refusal: Any = None
    annotations: Any = None
    audio: Any = None


_decode = msgspec.json.Decoder(list[_Message]).decode


def read_regular(raw: bytes | msgspec.Raw) -> Run | None:
    """A run with the messages, steps and task text of a chat; None where it is not a usual one."""
    try:
        chat = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    messages: list[Message] = []
    steps: list[Step] = []
    answered_by: dict[str, Step] = {}
    task_text: str | None = None
    turn = 0
    for seq, item in enumerate(chat):
        role = ROLES.get(item.role, "other")
        content = item.content
        message = Message(seq=seq, role=role, content=content, name=item.name)
        messages.append(message)
        if role == "tool":
            step = answered_by.pop(item.tool_call_id or "", None)
            if step is None:
                return None
            step.result, message.content = content, None
            step.status, step.status_evidence = judge(has_result=True, text=content)
            step.result_seq = seq
        elif item.tool_calls:
            for ordinal, call in enumerate(item.tool_calls):
                if not call.id or call.id in answered_by:
                    return None
                arguments = from_text(call.function.arguments)
                step = Step(
                    index=len(steps),
                    turn=turn,
                    tool=call.function.name or UNNAMED,
                    ordinal=ordinal,
                    call_id=call.id,
                    arguments_raw=arguments[0],
                    arguments_json=arguments[1],
                    arguments_status=arguments[2],
                    caller="user" if role == "user" else "agent",
                    message_seq=seq,
                )
                answered_by[call.id] = step
                steps.append(step)
            turn += 1
        if role == "user" and task_text is None and content:
            task_text = content
    return Run(place="", messages=messages, steps=steps, task_text=task_text) if messages else None
