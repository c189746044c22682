"""Events of OpenHands, of the app and of the newer SDK, put together into a run.

App: action ``{id, timestamp, source, action, args, tool_call_metadata,
llm_metrics}``, observation ``{cause, observation, content, extras, success}``;
they are joined by ``cause == id``. ``tool_call_metadata`` names the function
and repeats the whole answer of the model, in the action and in the
observation: it counts once by its id, and the arguments are those that the
model wrote. Before it there were only action types (``run``, ``edit``, ...).
Times have no zone. Exit codes (-1 is a command still running), ``success`` and
``observation: "error"`` say how a call went; the file editor says it in its text.

SDK: ``kind`` is ``ActionEvent {tool_name, tool_call_id, tool_call, thought,
llm_response_id}``, ``ObservationEvent {action_id, observation {content,
is_error, exit_code}}``, ``AgentErrorEvent``, ``UserRejectObservation``,
``MessageEvent {llm_message}``, ``SystemPromptEvent``.

What only steers the app (state changes, recall, condensation) is passed over.
An error that answers no call is a message. Calls of the user in the app are
marked as the user's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from poc.ingest.arguments import ABSENT, Arguments, from_value
from poc.ingest.readers.assembly import Assembly, blocks_text, word
from poc.ingest.readers.nodes import schemas, tokens_of
from poc.trajectory import Message, Role, Run

KINDS = frozenset(
    {
        *("ActionEvent", "ObservationEvent", "MessageEvent", "SystemPromptEvent", "AgentErrorEvent"),
        *("UserRejectObservation", "ConversationErrorEvent", "ConversationStateUpdateEvent", "PauseEvent"),
        *("Condensation", "CondensationRequest", "CondensationSummaryEvent", "TokenEvent"),
    }
)
_SILENT = frozenset(
    {
        *("null", "recall", "change_agent_state", "agent_state_changed", "condensation", "condensation_request"),
        *("start", "pause", "resume", "stop", "loop_recovery", "ping"),
    }
)
_SPOKEN = frozenset(("message", "system", "finish", "think", "reject", "task_tracking"))
_REFUSED = "ERROR:\n"
"""How the file editor begins when it did nothing."""
_HOW = ("thought", "blocking", "is_static", "hidden", "confirmation_state", "security_risk", "keep_prompt")
"""Arguments of an action that are the app's, not the tool's."""


class Events:
    """Feed it the events of one run in order."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.work = Assembly(run)
        self.spent: Any = None
        self.cost: Any = None
        self._answers: dict[str, Message] = {}
        self._keys: dict[str, str] = {}
        self._last: str | None = None

    def add(self, event: Any, index: int) -> bool:
        """One event, or an old pair of action and observation; False for what is none."""
        if isinstance(event, list):
            known = [self.add(part, index) for part in event]
            return bool(known) and all(known)
        if not isinstance(event, dict):
            return False
        if isinstance(event.get("kind"), str) and "args" not in event:
            self._sdk(event, index)
        elif isinstance(event.get("action"), str):
            self._action(event, index)
        elif isinstance(event.get("observation"), str):
            self._observation(event)
        else:
            return False
        return True

    def finish(self) -> Run:
        """The run."""
        self.work.finish()
        for step in self.run.steps:
            if step.status_evidence == "result" and (step.result or "").startswith(_REFUSED):
                step.status, step.status_evidence = "error", "text_rule"
        return self.run

    # The app ---------------------------------------------------------------------------------------------

    def _action(self, event: dict[str, Any], index: int) -> None:
        kind, args = event["action"], _object(event.get("args"))
        made = _object(event.get("tool_call_metadata"))
        at = self.work.time(event.get("timestamp"))
        metrics = _object(event.get("llm_metrics"))
        self.spent = metrics.get("accumulated_token_usage") or self.spent
        self.cost = metrics.get("accumulated_cost") or self.cost
        by_user = event.get("source") == "user"
        self._last = None
        if kind == "finish":
            self.run.metadata["ended_by"] = kind
        if kind == "system":
            self.work.message("system", blocks_text(args.get("content")), at=at)
            self.run.tools = list(schemas(args.get("tools")))
        elif made or (kind not in _SILENT and kind not in _SPOKEN):
            answer = _object(made.get("model_response"))
            said = self._said(answer, word(args.get("thought")), at) if not by_user else None
            key = word(event.get("id")) or f"entry {index}"
            self._last = key
            self.work.call(
                made.get("function_name") or kind,
                _arguments(answer, made.get("tool_call_id"), args),
                turn=word(answer.get("id")) or index,
                call_id=word(made.get("tool_call_id")),
                key=f"event {key}",
                message=said,
                at=at,
                caller="user" if by_user else "agent",
            )
        elif kind in _SPOKEN:
            content = args.get("content") or args.get("thought") or event.get("message")
            self.work.message("user" if by_user else "assistant", blocks_text(content), at=at)

    def _said(self, answer: dict[str, Any], thought: str | None, at: datetime | None) -> Message:
        """The message of the model that made a call; one answer may make several."""
        ident = word(answer.get("id"))
        if ident is not None and ident in self._answers:
            return self._answers[ident]
        choices = answer.get("choices")
        first = _object(choices[0]) if isinstance(choices, list) and choices else {}
        content = blocks_text(_object(first.get("message")).get("content"))
        usage = tokens_of(answer.get("usage"))
        message = self.work.message("assistant", content or thought, at=at, usage=usage)
        self.run.model = self.run.model or word(answer.get("model"))
        if ident is not None:
            self._answers[ident] = message
        return message

    def _observation(self, event: dict[str, Any]) -> None:
        kind, extras = event["observation"], _object(event.get("extras"))
        at = self.work.time(event.get("timestamp"))
        cause = word(event.get("cause")) or (self._last if "id" not in event else None)
        if kind in _SILENT:
            return
        content = blocks_text(event.get("content"))
        if cause is None:
            # Nothing was called: the model's answer could not be understood, or the user did something.
            self.work.message("other", content, name=kind, at=at)
            return
        code = _object(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
        code = None if code == -1 else code
        failed: bool | None = True if kind in ("error", "user_rejected") else None
        if failed is None and code is None and isinstance(event.get("success"), bool):
            failed = not event["success"]
        self.work.result(content, call_id=f"event {cause}", at=at, failed=failed, exit_code=code)

    # The SDK ---------------------------------------------------------------------------------------------

    def _sdk(self, event: dict[str, Any], index: int) -> None:
        kind = event["kind"]
        at = self.work.time(event.get("timestamp"))
        if kind == "ActionEvent":
            self._sdk_call(event, index, at)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            self._sdk_result(event, at)
        elif kind == "MessageEvent":
            said = _object(event.get("llm_message"))
            role: Role = "user" if event.get("source") == "user" or said.get("role") == "user" else "assistant"
            usage = tokens_of(said.get("usage"))
            self.work.message(role, blocks_text(said.get("content")), at=at, usage=usage)
        elif kind == "SystemPromptEvent":
            prompt = event.get("system_prompt")
            self.work.message("system", _object(prompt).get("text") or blocks_text(prompt), at=at)
            self.run.tools = list(schemas(event.get("tools")))
        elif kind == "ConversationErrorEvent":
            self.run.metadata["error"] = event.get("detail") or event.get("code")

    def _sdk_call(self, event: dict[str, Any], index: int, at: datetime | None) -> None:
        call = _object(event.get("tool_call"))
        response = word(event.get("llm_response_id"))
        said = None if response is None else self._answers.get(response)
        if said is None:
            said = self.work.message("assistant", blocks_text(event.get("thought")) or None, at=at)
            if response is not None:
                self._answers[response] = said
        written = call.get("arguments", _object(call.get("function")).get("arguments"))
        if written is None:
            action = _object(event.get("action"))
            written = {key: value for key, value in action.items() if key != "kind"} or None
        key, native = word(event.get("id")) or f"entry {index}", word(event.get("tool_call_id"))
        if event.get("tool_name") == "finish":
            self.run.metadata["ended_by"] = "finish"
        self.work.call(
            event.get("tool_name") or call.get("name"),
            from_value(written),
            turn=response or index,
            call_id=native,
            key=f"event {key}",
            message=said,
            at=at,
            caller="user" if event.get("source") == "user" else "agent",
        )
        if native is not None:
            self._keys[native] = key

    def _sdk_result(self, event: dict[str, Any], at: datetime | None) -> None:
        native = word(event.get("tool_call_id"))
        key = word(event.get("action_id")) or (None if native is None else self._keys.get(native))
        seen = _object(event.get("observation"))
        code = seen.get("exit_code")
        code = _object(seen.get("metadata")).get("exit_code") if code is None else code
        code = None if code == -1 else code
        failed: bool | None = None
        if event["kind"] != "ObservationEvent":
            failed, content = True, word(event.get("error")) or word(event.get("rejection_reason"))
        else:
            content = blocks_text(seen.get("content", seen.get("output")))
            flag = seen.get("is_error")
            # Of a command, a tool's own "no error" only says that it could be run.
            failed = True if flag is True else (False if flag is False and code is None else None)
        self.work.result(
            content,
            call_id=None if key is None else f"event {key}",
            name=word(event.get("tool_name")),
            at=at,
            failed=failed,
            exit_code=code,
        )


def _arguments(answer: dict[str, Any], call_id: Any, args: dict[str, Any]) -> Arguments:
    """What the model wrote, else the action's arguments without those of the app."""
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        calls = _object(_object(choice).get("message")).get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and call.get("id") == call_id:
                return from_value(_object(call.get("function")).get("arguments"))
    own = {key: value for key, value in args.items() if key not in _HOW and value is not None}
    return from_value(own) if own else ABSENT


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
