"""What MLflow's tracing SDK makes of the conversation (``Trace.to_json``), read back."""

import json

import pytest
from conversation import MODEL, check, conversation, walk

from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Run

# The SDK warns of its own type hints while it is imported; as errors these would keep it from tracing.
pytestmark = pytest.mark.filterwarnings("ignore")
KINDS = {"agent": "AGENT", "llm": "CHAT_MODEL", "tool": "TOOL"}


@pytest.fixture
def mlflow(monkeypatch, tmp_path):
    """The SDK, keeping to a folder of this test; nothing is sent anywhere."""
    for name in ("MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    module = pytest.importorskip("mlflow", reason="mlflow-skinny is not installed (extra: roundtrip)")
    module.set_tracking_uri((tmp_path / "mlruns").as_uri())
    return module


def nanoseconds(time):
    return round(time.timestamp() * 1e6) * 1000


def tell(mlflow, part, above=None):
    """A part and what lies inside it, as spans; the span of the whole."""
    from mlflow.entities import SpanEvent
    from mlflow.tracing.constant import SpanAttributeKey

    given = {
        "agent": {"question": part.name},
        "llm": {"model": "m", "messages": part.asked},
        "tool": None if part.call is None else part.call.arguments,
    }[part.kind]
    span = mlflow.start_span_no_context(
        part.name, span_type=KINDS[part.kind], parent_span=above, inputs=given, start_time_ns=nanoseconds(part.start)
    )
    for inner in part.inside:
        tell(mlflow, inner, span)
    if part.kind == "llm":
        usage = {
            "input_tokens": part.tokens.input,
            "output_tokens": part.tokens.output,
            "total_tokens": part.tokens.input + part.tokens.output,
            "cache_read_input_tokens": part.tokens.cached,
        }
        span.set_attribute(SpanAttributeKey.CHAT_USAGE, usage)
        span.set_attribute(SpanAttributeKey.MODEL, MODEL)
        span.set_outputs({"choices": [{"index": 0, "message": part.answer}]})
    elif part.kind == "agent":
        span.set_outputs(part.name)
    elif part.result is not None:
        span.set_outputs(part.result)
    if part.error is not None:
        span.add_event(SpanEvent.from_exception(RuntimeError(part.error)))
        span.set_status("ERROR")
    span.end(end_time_ns=nanoseconds(part.end))
    return span


def test_what_was_told_comes_back(tmp_path, mlflow):
    span = tell(mlflow, conversation())
    trace = mlflow.get_trace(span.trace_id)
    path = tmp_path / "trace.json"
    path.write_text(trace.to_json(), encoding="utf-8")
    source = Source(path)
    detected = detect(source)
    assert detected.format == "mlflow"
    (run,) = detected.reader.read(source)
    assert isinstance(run, Run)
    check(run, silence="ok")  # a span that ends without a word is "OK" for MLflow
    assert run.records == len(list(walk(conversation())))
    assert run.native_id == span.trace_id
    assert json.loads(trace.to_json())["info"]["trace_id"] == run.native_id
