"""What the OpenTelemetry SDK writes (GenAI and OpenInference names, each from its own package), read back."""

import io
import json

import pytest
from conversation import MODEL, check, conversation, walk

from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Run

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed (extra: dev)")
from opentelemetry import trace as api
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai


def nanoseconds(time):
    return round(time.timestamp() * 1e6) * 1000


def gen_ai_facts(part):
    """A part in the words of the GenAI conventions."""
    if part.kind == "agent":
        return f"invoke_agent {part.name}", {
            gen_ai.GEN_AI_OPERATION_NAME: "invoke_agent",
            gen_ai.GEN_AI_AGENT_NAME: part.name,
            gen_ai.GEN_AI_CONVERSATION_ID: "k1",
        }
    if part.kind == "tool":
        said = {
            gen_ai.GEN_AI_OPERATION_NAME: "execute_tool",
            gen_ai.GEN_AI_TOOL_NAME: part.name,
            gen_ai.GEN_AI_TOOL_CALL_ID: part.call.id,
            gen_ai.GEN_AI_TOOL_CALL_ARGUMENTS: json.dumps(part.call.arguments),
        }
        if part.result is not None:
            said[gen_ai.GEN_AI_TOOL_CALL_RESULT] = part.result
        return f"execute_tool {part.name}", said
    return f"chat {MODEL}", {
        gen_ai.GEN_AI_OPERATION_NAME: "chat",
        gen_ai.GEN_AI_REQUEST_MODEL: "m",
        gen_ai.GEN_AI_RESPONSE_MODEL: MODEL,
        gen_ai.GEN_AI_INPUT_MESSAGES: json.dumps([parts_of(message) for message in part.asked], ensure_ascii=False),
        gen_ai.GEN_AI_OUTPUT_MESSAGES: json.dumps([{**parts_of(part.answer), "finish_reason": "stop"}]),
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: part.tokens.input,
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: part.tokens.output,
        gen_ai.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: part.tokens.cached,
        gen_ai.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: part.tokens.reasoning,
    }


def parts_of(message):
    """A chat message in the shape of the conventions (1.37 and later)."""
    parts = []
    if message["role"] == "tool":
        parts.append({"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]})
    elif message["content"] is not None:
        parts.append({"type": "text", "content": message["content"]})
    for call in message.get("tool_calls", ()):
        function = call["function"]
        arguments = json.loads(function["arguments"])
        parts.append({"type": "tool_call", "id": call["id"], "name": function["name"], "arguments": arguments})
    return {"role": message["role"], "parts": parts}


def openinference_facts(part):
    """A part in the words of OpenInference."""
    names = pytest.importorskip(
        "openinference.semconv.trace", reason="openinference-semantic-conventions is not installed"
    )
    span, kind = names.SpanAttributes, names.OpenInferenceSpanKindValues
    as_json = names.OpenInferenceMimeTypeValues.JSON.value
    if part.kind == "agent":
        return part.name, {span.OPENINFERENCE_SPAN_KIND: kind.AGENT.value, span.AGENT_NAME: part.name}
    if part.kind == "tool":
        said = {
            span.OPENINFERENCE_SPAN_KIND: kind.TOOL.value,
            span.TOOL_NAME: part.name,
            span.TOOL_ID: part.call.id,
            span.INPUT_VALUE: json.dumps(part.call.arguments),
            span.INPUT_MIME_TYPE: as_json,
        }
        if part.result is not None:
            said[span.OUTPUT_VALUE] = part.result
        return part.name, said
    said = {
        span.OPENINFERENCE_SPAN_KIND: kind.LLM.value,
        span.LLM_REQUEST_MODEL_NAME: "m",
        span.LLM_RESPONSE_MODEL_NAME: MODEL,
        span.LLM_TOKEN_COUNT_PROMPT: part.tokens.input,
        span.LLM_TOKEN_COUNT_COMPLETION: part.tokens.output,
        span.LLM_TOKEN_COUNT_TOTAL: part.tokens.input + part.tokens.output,
        span.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_READ: part.tokens.cached,
        span.LLM_TOKEN_COUNT_COMPLETION_DETAILS_REASONING: part.tokens.reasoning,
    }
    for holder, messages in ((span.LLM_INPUT_MESSAGES, part.asked), (span.LLM_OUTPUT_MESSAGES, [part.answer])):
        for number, message in enumerate(messages):
            said |= {f"{holder}.{number}.{key}": value for key, value in flattened(message, names).items()}
    return "ChatCompletion", said


def flattened(message, names):
    keys, calls = names.MessageAttributes, names.ToolCallAttributes
    found = {keys.MESSAGE_ROLE: message["role"]}
    if message["content"] is not None:
        found[keys.MESSAGE_CONTENT] = message["content"]
    if "tool_call_id" in message:
        found[keys.MESSAGE_TOOL_CALL_ID] = message["tool_call_id"]
    for number, call in enumerate(message.get("tool_calls", ())):
        start = f"{keys.MESSAGE_TOOL_CALLS}.{number}."
        found[start + calls.TOOL_CALL_ID] = call["id"]
        found[start + calls.TOOL_CALL_FUNCTION_NAME] = call["function"]["name"]
        found[start + calls.TOOL_CALL_FUNCTION_ARGUMENTS_JSON] = call["function"]["arguments"]
    return found


NAMES = {"otel_genai": gen_ai_facts, "openinference": openinference_facts}


def record(exporter, facts):
    """The conversation, told to the SDK."""
    provider = TracerProvider(resource=Resource.create({"service.name": "desk"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("my-agent", "1.0")

    def tell(part, above):
        name, said = facts(part)
        context = None if above is None else api.set_span_in_context(above)
        span = tracer.start_span(name, context, start_time=nanoseconds(part.start), attributes=said)
        for inner in part.inside:
            tell(inner, span)
        if part.error is not None:
            span.record_exception(RuntimeError(part.error), timestamp=nanoseconds(part.end))
            span.set_status(api.StatusCode.ERROR, part.error)
        elif part.kind == "tool" and part.result is not None:
            span.set_status(api.StatusCode.OK)
        span.end(nanoseconds(part.end))

    tell(conversation(), None)
    provider.shutdown()


def console(facts, formatter=None):
    out = io.StringIO()
    more = {} if formatter is None else {"formatter": formatter}
    record(ConsoleSpanExporter(out=out, **more), facts)
    return out.getvalue()


def otlp(facts, **options):
    """An export request as protobuf's own JSON."""
    encoder = pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.common.trace_encoder",
        reason="opentelemetry-exporter-otlp-proto-common is not installed (extra: dev)",
    )
    from google.protobuf.json_format import MessageToJson

    exporter = InMemorySpanExporter()
    record(exporter, facts)
    return MessageToJson(encoder.encode_spans(exporter.get_finished_spans()), **options)


WRITERS = {
    "console": console,
    "lines": lambda facts: console(facts, lambda span: span.to_json(indent=None) + "\n"),
    "OTLP": otlp,
    "OTLP in snake case": lambda facts: otlp(facts, preserving_proto_field_name=True),
    "OTLP on one line": lambda facts: otlp(facts, indent=None),
}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("writer", WRITERS)
def test_what_was_told_comes_back(tmp_path, writer, names):
    path = tmp_path / "spans.json"
    path.write_text(WRITERS[writer](NAMES[names]), encoding="utf-8")
    source = Source(path)
    detected = detect(source)
    assert detected.format == names
    (run,) = detected.reader.read(source)
    assert isinstance(run, Run)
    check(run)
    assert run.usage.reasoning_tokens == 6
    assert run.records == len(list(walk(conversation())))
    assert run.metadata["agents"] == ["clerk", "expert"]
    assert (run.metadata["service"], run.native_id_is_global) == ("desk", True)
    if writer.startswith("OTLP"):
        assert run.framework == "my-agent"
