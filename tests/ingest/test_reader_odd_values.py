"""Real logs with values of the wrong kind: no reader falls over one, and what it yields still counts.

Every JSON log is changed at random places (seeded): members go, and values become others of any kind. That a reader
says of such a record that it is none is right; that it raises is not.
"""

import json
import random

import msgspec
import pytest

from poc.ingest import import_logs
from poc.ingest.detect import detect
from poc.ingest.readers import READERS
from poc.ingest.sources import Source

LARGEST = 200_000
CHANCES = (0.003, 0.02, 0.1)
ODD = (None, 0, -1, 1e300, "", "x", True, [], {}, [1], [[]], ["a", "b"], {"a": 1}, {"type": "text"}, {"type": ["x"]})
FILES = [
    *("anthropic_managed_agents/anthropic_managed_mcp_tools_reject.jsonl", "autogen/whowhen_autogen_114.json"),
    *("claude_code/daaain_edge_cases.jsonl", "claude_code/simonw_sample_session_web_export.json"),
    *("codex_rollout/agtrace_codex_session.jsonl", "google_adk/adk_order_query.test.json"),
    *("google_adk/adk_shopping_text_search.session.json", "inspect_ai/inspect_log_tool_call_error.json"),
    *("anthropic_messages/docent_ctf_inspect_with_anthropic_blocks.json",),
    *("langfuse/langfuse_google-adk-2025-08-28.trace.json", "langgraph/deepeval_langgraph_full_flow_trace.json"),
    *("langsmith/langsmith_ingest_batch_wrap_openai_reasoning.json", "mlflow/SELFMADE_mlflow3_trace.json"),
    *("openai_agents_sdk/agents_sdk_traces_2025-06-29.json",),
    *("openai_agents_sdk/runstate_v1_13_pending_tool_approval.json",),
    *("openai_chat/sap_single_trace_toolsandbox.json", "openai_chat/taubench_single_run_airline.json"),
    *("openai_chat/invariant_webarena.jsonl", "openhands/openhands_traj_basic.json"),
    *("openinference/strands_smolagents_live_spans.json", "otel_genai/otlp_resourceSpans_file.json"),
    *("otel_genai/strands_openai_agents_genai_live_spans.json", "own_tables/shaft_tool_calls_minimal.jsonl"),
    *("swe_agent/mini_swe_github_issue.traj.json", "swe_agent/swe_gpt4_pydicom-1458.traj"),
    *("toolbench/toolbench_G1_answer_57.json", "vercel_ai_sdk/aisdk_v6_all-spans.json"),
]


def changed(value, chance, draw):
    if draw.random() < chance:
        return draw.choice(ODD)
    if isinstance(value, dict):
        return {key: changed(inner, chance, draw) for key, inner in value.items() if draw.random() > chance / 2}
    if isinstance(value, list):
        return [changed(inner, chance, draw) for inner in value]
    return value


def records(text):
    """The records of a log, and how they stand in it: one a line, or a document."""
    try:
        return [msgspec.json.decode(text)], False
    except msgspec.DecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()], True


@pytest.mark.parametrize("name", FILES)
def test_values_of_the_wrong_kind(workspace, shared_log, tmp_path, name):
    path = shared_log(name)
    reader = detect(Source(path)).format
    values, lines = records(path.read_text())
    draw = random.Random(name)
    for number, chance in enumerate(CHANCES):
        odd = [json.dumps(changed(value, chance, draw)) for value in values]
        log = tmp_path / f"odd-{number}{path.suffix}"
        log.write_text("\n".join(odd) if lines else odd[0])
        for other in READERS.values():  # none falls over another's file either
            assert 0.0 <= other.sniff(Source(log).sample, log.name) <= 1.0
        result = import_logs(workspace, log, format=reader)
        (source,) = result.sources
        assert result.read == result.imported + result.rejected + result.skipped
        assert not [reason for reason in source["reasons"] if "the reader failed" in reason], source["reasons"]
