"""Events of a Google ADK session put together into a run. Their facts stand in `google_adk`."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from poc.ingest.arguments import from_value
from poc.ingest.readers.assembly import Assembly, plain, word
from poc.ingest.readers.nodes import tokens
from poc.trajectory import Message, Role, Run, Usage

CODE = "code_execution"
"""The tool as which code is shown that the model ran at the provider."""


@cache
def camel(name: str) -> str:
    """The name as the web interface and REST write it."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def field(value: dict[str, Any], name: str) -> Any:
    """A member under its name or under the same in camelCase."""
    found = value.get(name)
    return value.get(camel(name)) if found is None else found


class Session:
    """Feed it the events of one session in order."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.work = Assembly(run)

    def add(self, event: Any, index: int) -> bool:
        """One event; False for what is none."""
        if not isinstance(event, dict):
            return False
        if event.get("partial") is True:
            return True
        at = self.work.time(event.get("timestamp"))
        content = field(event, "content")
        parts = content.get("parts") if isinstance(content, dict) else None
        parts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        self.run.model = self.run.model or word(field(event, "model_version"))
        error = field(event, "error_message") or field(event, "error_code")
        if error:
            self.run.metadata.setdefault("errors", []).append(error)
        author = word(event.get("author"))
        by_user = author == "user"
        results: list[Any] = []
        rest: list[dict[str, Any]] = []
        for part in parts:
            answer = field(part, "function_response")
            if answer is None:
                rest.append(part)
            else:
                results.append(answer)
        usage = _usage(field(event, "usage_metadata"))
        if rest or usage is not None:
            role: Role = "user" if by_user else "assistant"
            name = None if by_user else author
            message = self.work.message(role, _text(rest), name=name, at=at, usage=usage)
            self._calls(rest, message, index, at, by_user=by_user)
        for answer in results:
            self._result(answer, at)
        return True

    def finish(self) -> Run:
        """The run."""
        return self.work.finish()

    def _calls(
        self, parts: list[dict[str, Any]], message: Message, turn: int, at: datetime | None, *, by_user: bool
    ) -> None:
        for part in parts:
            call = field(part, "function_call")
            code = None if call is not None else field(part, "executable_code")
            ran = None if call is not None else field(part, "code_execution_result")
            if isinstance(call, dict):
                tool, arguments, call_id = call.get("name"), call.get("args"), word(call.get("id"))
                caller = "user" if by_user else "agent"
                self.work.call(
                    tool, from_value(arguments), turn=turn, call_id=call_id, message=message, at=at, caller=caller
                )
            elif isinstance(code, dict):
                self.work.call(CODE, from_value(code), turn=(turn, "code"), message=message, at=at)
            elif isinstance(ran, dict):
                ended = ran.get("outcome")
                failed = None if ended is None else ended not in ("OUTCOME_OK", 1)
                self.work.result(plain(ran.get("output")), name=CODE, at=at, failed=failed)

    def _result(self, answer: Any, at: datetime | None) -> None:
        if not isinstance(answer, dict):
            return
        response = answer.get("response")
        if isinstance(response, dict) and set(response) == {"result"}:
            response = response["result"]  # ADK's wrapping of what is no object
        self.work.result(
            plain(response),
            call_id=word(answer.get("id")),
            name=word(answer.get("name")),
            at=at,
            has_result=response is not None,
        )


def _text(parts: list[dict[str, Any]]) -> str | None:
    """What the parts say; thoughts are not kept."""
    found: list[str] = []
    for part in parts:
        if isinstance(part.get("text"), str) and part.get("thought") is not True:
            found.append(part["text"])
        elif field(part, "inline_data") is not None or field(part, "file_data") is not None:
            found.append("[file]")
    return "\n".join(found) if found else None


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    return tokens(
        field(usage, "prompt_token_count"),
        field(usage, "candidates_token_count"),
        total=field(usage, "total_token_count"),
        cached=field(usage, "cached_content_token_count"),
        reasoning=field(usage, "thoughts_token_count"),
    )
