"""What a span's attributes say, under all names that are in use.

OpenTelemetry GenAI old and new (``gen_ai.*``, events, ``gcp.vertex.agent.*``
of Google ADK, pydantic-ai), OpenLLMetry (``traceloop.*``, flattened
``gen_ai.prompt.N``), OpenInference (``llm.*``, ``input.value``), the Vercel
AI SDK (``ai.*``) and Langfuse's SDK (``langfuse.observation.*``). Several stand
on one span at times; the first that says something wins. Names of spans are
the last resort. Knows no container.
"""

from __future__ import annotations

import re
from typing import Any

from poc.ingest.readers.assembly import number, word
from poc.ingest.readers.nodes import Kind, Node, Score, answered, called_with, tokens, tokens_in
from poc.ingest.readers.said import opened, unquoted
from poc.ingest.readers.span_said import answer, asked, branches, first
from poc.ingest.readers.spans import Span

_MODEL_CALLS = frozenset({"chat", "text_completion", "generate_content", "completion", "responses", "generate"})
_AGENTS = frozenset({"invoke_agent", "invoke_workflow"})
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "gcp.vertex.agent.tool_call_args",
    "tool_arguments",
    "ai.toolCall.args",
    "traceloop.entity.input",
    "input.value",
    "langfuse.observation.input",
)
_RESULTS = (
    "gen_ai.tool.call.result",
    "gcp.vertex.agent.tool_response",
    "tool_response",
    "ai.toolCall.result",
    "traceloop.entity.output",
    "output.value",
    "langfuse.observation.output",
)
_QUOTED = ("ai.toolCall.result", "traceloop.entity.output")
"""Always JSON, so that a text stands in quotes."""
_SCHEMAS = ("gen_ai.tool.definitions", "model_request_parameters", "ai.prompt.tools", "gen_ai.agent.tools", "llm.tools")
_IN = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
    "llm.usage.prompt_tokens",
)
_OUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
    "llm.usage.completion_tokens",
)
_TOTAL = ("gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens")
_CACHED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.cachedInputTokens",
    "ai.usage.inputTokenDetails.cacheReadTokens",
)
_STORED = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
    "ai.usage.inputTokenDetails.cacheWriteTokens",
)
_REASONING = (
    "gen_ai.usage.reasoning_tokens",
    "llm.usage.reasoning_tokens",
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.details.reasoning_tokens",
    "llm.token_count.completion_details.reasoning",
    "ai.usage.reasoningTokens",
    "ai.usage.outputTokenDetails.reasoningTokens",
)
_PARTS = frozenset((*_CACHED, *_STORED, *_REASONING))
_MODELS = (
    "gen_ai.response.model",
    "ai.response.model",
    "llm.response.model",
    "llm.response.model_name",
    "langfuse.observation.model.name",
)
_OBSERVED: dict[Any, Kind] = {"tool": "tool", "generation": "llm", "agent": "agent"}
_WANTED = ("gen_ai.request.model", "llm.model_name", "llm.request.model_name", "llm.request.model", "ai.model.id")
_LANGFUSE = "langfuse.observation."
_ABOUT = {
    "gen_ai.conversation.id": "conversation_id",
    "session.id": "session_id",
    "gcp.vertex.agent.session_id": "session_id",
    "traceloop.association.properties.session_id": "session_id",
    "user.id": "user_id",
    "gen_ai.task.id": "agent_task_id",
    "tag.tags": "tags",
}
_ABOUT_KEYS = frozenset(_ABOUT)
_JUDGED = tuple(
    (f"{prefix}{kind}s.0.{kind}.name", f"{prefix}{kind}s", kind)
    for kind in ("evaluation", "annotation")
    for prefix in ("", "trace.", "session.")
)
_JUDGED_KEYS = frozenset(judged[0] for judged in _JUDGED)
_PHASE = re.compile(r"((?:tool|backend)\..+)\.(start|success|finish|error|retry)")
_NUMBERED = re.compile(r"-\d+$")


def node_of(span: Span, position: int, kind: Kind | None = None) -> Node:
    """The span as a node of its trace. `kind`: where something surer than its attributes says it."""
    a = span.attributes
    kind = kind or kind_of(span)
    node = bare_node(span, position, kind)
    phase = None
    if "target" in a or span.name.startswith(("tool.", "backend.")):
        phase = _PHASE.fullmatch(str(a.get("target") or _NUMBERED.sub("", span.name)))
    if "target" in a or phase:
        _beeai(node, span, phase)
        kind = node.kind
    if a.get(f"{_LANGFUSE}level") == "ERROR":
        node.failed, node.error = True, node.error or word(a.get(f"{_LANGFUSE}status_message"))
    if kind == "tool":
        _tool(node, span, phase[1].removeprefix("tool.") if phase else None)
    elif kind in ("llm", "agent"):
        node.content = lambda: (asked(span), answer(span))
        node.model = word(first(a, *_MODELS))
        node.wanted = word(first(a, *_WANTED))
        node.usage = _usage(a)
        node.cost_usd = number(first(a, "operation.cost", "gen_ai.usage.cost", "llm.cost.total"))
        if "langfuse.observation.type" in a:
            spent, paid = opened(a.get(f"{_LANGFUSE}usage_details")), opened(a.get(f"{_LANGFUSE}cost_details"))
            node.usage = node.usage or (tokens_in(spent) if isinstance(spent, dict) else None)
            node.cost_usd = node.cost_usd or (number(paid.get("total")) if isinstance(paid, dict) else None)
        node.response_id = word(first(a, "gen_ai.response.id", "ai.response.id"))
        node.agent = word(first(a, "gen_ai.agent.name", "agent.name", "graph.node.id", "traceloop.entity.name"))
        node.schemas = _schemas(a)
    return node


def bare_node(span: Span, position: int, kind: Kind) -> Node:
    """The span as a node, without what its attributes say."""
    return Node(
        position=position,
        kind=kind,
        name=span.name,
        id=span.span_id,
        parent=span.parent_id,
        start=span.start,
        end=span.end,
        duration_s=span.duration_s,
        zone=span.zone,
        failed=span.failed,
        error=_error(span) if span.events or span.failed else None,
        scope=span.scope,
    )


def _beeai(node: Node, span: Span, phase: re.Match[str] | None) -> None:
    """BeeAI keeps a span for each event of one call, and the agent's own events beside them."""
    a = span.attributes
    numbered = _NUMBERED.search(span.name)
    if phase and node.kind in ("llm", "tool"):
        node.same = phase[1] + (numbered[0] if numbered else f" in {span.parent_id}")
    elif str(a.get("target")).startswith("agent.") and node.kind == "agent":
        node.kind = "other"
        node.schemas = _schemas(a)
        if a.get("tool.name") and isinstance(opened(a.get("tool.parameters")), dict):
            node.kind = "tool"
            node.same = f"{a['tool.name']} in {span.parent_id}"
            node.stands_for_inner = True


def kind_of(span: Span) -> Kind:
    """What a span stands for. Its name counts only where no attribute says it."""
    a = span.attributes
    operation = word(a.get("gen_ai.operation.name"))
    inference = str(a.get("openinference.span.kind", "")).upper()
    loop = a.get("traceloop.span.kind")
    vercel = str(a.get("ai.operationId", ""))
    if (
        operation == "execute_tool"
        or inference == "TOOL"
        or loop == "tool"
        or vercel == "ai.toolCall"
        or a.get("mcp.method.name") == "tools/call"
        or span.name.startswith("execute_tool ")
        or ("gen_ai.tool.name" in a and operation is None)
        or (span.name == "ai.toolCall")
    ):
        return "tool"
    if operation in _MODEL_CALLS or inference == "LLM" or vercel.endswith((".doGenerate", ".doStream")):
        return "llm"
    if operation in _AGENTS or inference == "AGENT" or loop in ("agent", "workflow"):
        return "agent"
    if vercel in ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"):
        return "agent"
    if (observed := a.get("langfuse.observation.type")) is not None and str(observed) in _OBSERVED:
        return _OBSERVED[str(observed)]
    if inference or loop or operation or observed:
        return "other"
    if a.get("llm.request.type") in ("chat", "completion") or "gcp.vertex.agent.llm_request" in a:
        return "llm"
    if any(key in a for key in (_IN[0], _IN[1], "gen_ai.prompt.0.role", "gen_ai.response.model")):
        return "llm"
    if any(key in a for key in ("gen_ai.agent.name", "pydantic_ai.all_messages", "all_messages_events")):
        return "agent"
    return "other"


def about(span: Span) -> dict[str, Any]:
    """What a span says about its run as a whole: conversation, session, user, service."""
    a = span.attributes
    found: dict[str, Any] = {}
    if not _ABOUT_KEYS.isdisjoint(a):
        found = {name: a[key] for key, name in _ABOUT.items() if a.get(key) not in (None, "")}
    if span.resource.get("service.name"):
        found["service"] = span.resource["service.name"]
    return found


def scores(span: Span) -> list[Score]:
    """Evaluations that a span carries (conventions from 1.38 on; OpenInference's, and its annotations)."""
    found: list[Score] = []
    for holder in [span.attributes, *(event.attributes for event in span.events)]:
        name = holder.get("gen_ai.evaluation.name")
        if isinstance(name, str):
            value = first(holder, "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label")
            found.append(Score(name, value, "gen_ai.evaluation"))
    for first_name, prefix, kind in () if _JUDGED_KEYS.isdisjoint(span.attributes) else _JUDGED:
        for item in branches(span.attributes, prefix) if first_name in span.attributes else ():
            told = item.get(kind) if isinstance(item, dict) else None
            if isinstance(told, dict):
                value = first(told, "score", "label")
                found.append(Score(str(told.get("name")), value, word(told.get("annotator_kind")) or kind))
    return found


def _error(span: Span) -> str | None:
    for event in span.events:
        kind, text = event.attributes.get("exception.type"), event.attributes.get("exception.message")
        if text or kind:
            return ": ".join(str(part) for part in (kind, text) if part)
    if span.message and span.failed:
        return span.message
    return word(first(span.attributes, "error.type", "exception.message")) if span.failed else None


def _usage(a: dict[str, Any]) -> Any:
    into, out, total = first(a, *_IN), first(a, *_OUT), first(a, *_TOTAL)
    if _PARTS.isdisjoint(a):
        return tokens(into, out, total=total) if into is not None or out is not None else None
    provider = str(first(a, "ai.model.provider", "gen_ai.provider.name", "gen_ai.system") or "")
    own_names = "ai.usage.cachedInputTokens" in a and "ai.usage.inputTokenDetails.cacheReadTokens" not in a
    return tokens(
        into,
        out,
        total=total,
        cached=first(a, *_CACHED),
        stored=first(a, *_STORED),
        reasoning=first(a, *_REASONING),
        # Version 5 of the AI SDK hands Anthropic's input through as it is; the conventions count cached input in.
        fresh_only=own_names and provider.startswith("anthropic"),
    )


def _schemas(a: dict[str, Any]) -> Any:
    found = first(a, *_SCHEMAS)
    if found is not None:
        return found
    if "openinference.span.kind" in a or "llm.request.type" in a or "llm.tools" in a:
        listed = branches(a, "llm.tools") or branches(a, "llm.request.functions")
        if listed:
            return listed
    request = opened(a.get("gcp.vertex.agent.llm_request"))
    config = request.get("config") if isinstance(request, dict) else None
    return config.get("tools") if isinstance(config, dict) else None


# Tools ---------------------------------------------------------------------------------------------------


def _tool(node: Node, span: Span, called: str | None) -> None:
    a = span.attributes
    named = first(a, "gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
    node.name = word(named) or called or span.name.removeprefix("execute_tool ").removesuffix(".tool")
    node.call_id = word(first(a, "gen_ai.tool.call.id", "tool_call.id", "tool.call_id", "ai.toolCall.id", "tool.id"))
    parameters = opened(a.get("tool.parameters"))
    is_schema = _is_schema(parameters)
    raw = next((a[key] for key in _ARGUMENTS if a.get(key) is not None), None)
    if raw is None and parameters is not None and not is_schema:
        raw = a["tool.parameters"]
    result: Any = None
    for event in span.events:  # Strands keeps both as events
        if event.name == "gen_ai.tool.message" and raw is None:
            raw = event.attributes.get("content")
        elif event.name == "gen_ai.choice" and result is None:
            result = event.attributes.get("message")
    names = list(parameters.get("properties", parameters)) if is_schema and isinstance(parameters, dict) else None
    node.arguments = called_with(raw, names)
    key = next((key for key in _RESULTS if a.get(key) is not None), None)
    if key is not None:
        result = unquoted(a[key]) if key in _QUOTED else a[key]
    if result is not None:
        answer = answered(result)
        node.result, node.has_result = answer.text, True
        node.call_id = node.call_id or answer.call_id
        node.failed = answer.failed if node.failed is None else node.failed
    if node.failed is None and a.get("gen_ai.tool.status") in ("success", "error"):
        node.failed = a["gen_ai.tool.status"] == "error"
    if is_schema or first(a, "gen_ai.tool.description", "tool.description"):
        schema = parameters if is_schema else None
        if schema is not None and "properties" not in schema:
            schema = {"type": "object", "properties": schema}
        described = {"name": node.name, "description": first(a, "gen_ai.tool.description", "tool.description")}
        node.schemas = [{**described, "parameters": schema}]


def _is_schema(value: Any) -> bool:
    """Whether ``tool.parameters`` describes the arguments; some instrumentors put the arguments themselves there."""
    if not isinstance(value, dict) or not value:
        return False
    if isinstance(value.get("properties"), dict):
        return True
    return all(isinstance(inner, dict) and "type" in inner for inner in value.values())
