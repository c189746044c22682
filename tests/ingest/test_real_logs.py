"""Every real log on this machine into one workspace: the runs and calls that each holds, and counts that add up.

The numbers were worked out from the files: by those who collected them (their list, MANIFEST.tsv, is compared below),
and where their quick scripts counted something else, by plain parsing; how is said in DIFFERENT.
"""

import csv
from collections import Counter
from pathlib import Path

import pytest

from poc.ingest import import_logs

# file: (reader, source records, rejected records, runs, calls)
LOGS = {
    "anthropic_managed_agents/anthropic_managed_mcp_tools_reject.jsonl": ("anthropic_managed", 27, 0, 1, 2),
    "anthropic_messages/docent_ctf_inspect_with_anthropic_blocks.json": ("inspect_ai", 2, 0, 2, 11),
    "autogen/whowhen_autogen_114.json": ("autogen", 1, 0, 1, 0),
    "autogen/whowhen_magentic_8.json": ("autogen", 1, 0, 1, 0),
    "claude_code/7acd37a8-2745-4b58-a8a9-46164b22ad9e.jsonl": ("claude_code", 211, 0, 1, 71),
    "claude_code/daaain_edge_cases.jsonl": ("claude_code", 19, 4, 2, 3),
    "claude_code/simonw_sample_session_web_export.json": ("claude_code", 33, 0, 1, 12),
    "codex_rollout/agtrace_codex_session.jsonl": ("codex", 55, 0, 1, 5),
    "codex_rollout/codex-pomodor-timer.jsonl": ("codex", 153, 0, 1, 18),
    "google_adk/adk_order_query.test.json": ("google_adk", 1, 1, 0, 0),
    "google_adk/adk_shopping_text_search.session.json": ("google_adk", 1, 0, 1, 12),
    "google_adk/adk_travel_intrip.test.json": ("google_adk", 1, 1, 0, 0),
    "inspect_ai/docent_intercode_ctf_gpt-4o.eval": ("inspect_ai", 15, 0, 15, 121),
    "inspect_ai/inspect_log_tool_call_error.json": ("inspect_ai", 1, 0, 1, 0),
    "inspect_ai/scout_websearch-addition_sonnet-4-5.eval": ("inspect_ai", 1, 0, 1, 0),
    "langfuse/langfuse_beeai-2025-08-01.trace.json": ("langfuse", 29, 0, 1, 2),
    "langfuse/langfuse_google-adk-2025-08-28.trace.json": ("langfuse", 5, 0, 1, 1),
    "langfuse/langfuse_openai-agents-2025-09-30.trace.json": ("langfuse", 5, 0, 1, 1),
    "langgraph/deepeval_langgraph_full_flow_trace.json": ("deepeval", 1, 0, 1, 1),
    "langsmith/langsmith_ingest_batch_wrap_openai_reasoning.json": ("langsmith", 2, 0, 1, 0),
    "mlflow/SELFMADE_mlflow3_trace.json": ("mlflow", 4, 0, 1, 2),
    "openai_agents_sdk/agents_sdk_traces_2025-06-29.json": ("agents_sdk", 7, 0, 1, 0),
    "openai_agents_sdk/runstate_v1_13_pending_tool_approval.json": ("agents_sdk", 1, 0, 1, 1),
    "openai_chat/invariant_sample_data.jsonl": ("openai_chat", 3, 0, 3, 6),
    "openai_chat/invariant_webarena.jsonl": ("openai_chat", 2, 0, 2, 9),
    "openai_chat/sap_single_trace_toolsandbox.json": ("openai_chat", 2, 0, 2, 2),
    "openai_chat/taubench_gpt-4o-airline.json": ("openai_chat", 200, 0, 200, 1164),
    "openai_chat/taubench_single_run_airline.json": ("openai_chat", 1, 0, 1, 12),
    "openhands/openhands_multi_swe_bench_output.jsonl": ("openhands", 3, 0, 3, 105),
    "openhands/openhands_traj_basic.json": ("openhands", 1, 0, 1, 2),
    "openinference/strands_openai_agents_openinference_live_spans.json": ("openinference", 19, 0, 1, 4),
    "openinference/strands_smolagents_live_spans.json": ("openinference", 7, 0, 1, 2),
    "otel_genai/jaeger_kagent_helm_3.json": ("otel_genai", 125, 0, 1, 1),
    "otel_genai/otlp_resourceSpans_file.json": ("otel_genai", 2, 0, 2, 0),
    "otel_genai/strands_openai_agents_genai_live_spans.json": ("otel_genai", 17, 0, 1, 5),
    "otel_genai/strands_otel_genai_convention_spans.json": ("otel_genai", 5, 0, 1, 2),
    "otel_genai/strands_pydantic_ai_live_spans.json": ("otel_genai", 4, 0, 1, 1),
    "otel_genai/tempo_export_with_batches.json": ("otel_genai", 86, 0, 1, 1),
    "own_tables/infinite-loop_agent_debug_db.sqlite": ("table", 66, 0, 10, 66),
    "own_tables/shaft_tool_calls_minimal.jsonl": ("table", 4, 0, 1, 4),
    "react_text/reflexion_hotpotqa_base_react_thought_log.txt": ("react_text", 102, 0, 102, 369),
    "swe_agent/mini_swe_github_issue.traj.json": ("mini_swe", 1, 0, 1, 10),
    "swe_agent/swe_fc_replace_from_source.traj": ("swe_agent", 1, 0, 1, 13),
    "swe_agent/swe_gpt4_pydicom-1458.traj": ("swe_agent", 1, 0, 1, 12),
    "tau2/tau2_20260531-184109.json": ("openai_chat", 10, 0, 10, 15),
    "tau2/tau2_airline_gpt-4.1-mini_20260601-033543.json": ("openai_chat", 5, 0, 5, 27),
    "tau2/tau2_voice_ticks_49b22f0c.json": ("openai_chat", 1, 1, 0, 0),
    "toolbench/toolbench_G1_answer_57.json": ("toolbench", 1, 0, 1, 10),
    "vercel_ai_sdk/aisdk_v6_all-spans.json": ("vercel_ai_sdk", 10, 0, 10, 0),
}
# Two deliveries of one trace: ten of its records, then the four that were missing, with its root.
PARTS = (
    "langsmith/langsmith_webhook_trace_2025-11-15T17-38-05.316920.json",
    "langsmith/langsmith_webhook_trace_2025-11-15T17-39-08.334291.json",
)
DIFFERENT = {
    # Blocks of type tool_use: lines 4, 9 and 17, the last in a session of its own; lines 13 to 16 are no objects.
    "claude_code/daaain_edge_cases.jsonl",
    # The same call ten times in one state, under one call_id.
    "openai_agents_sdk/runstate_v1_13_pending_tool_approval.json",
    # Expected calls (7 and 12), which nobody made: refused as runs, kept as reference calls.
    "google_adk/adk_order_query.test.json",
    "google_adk/adk_travel_intrip.test.json",
    # Three spans are events (start, success, finish) of one call; the other call stands in the text of a ReAct agent
    # with its own events.
    "langfuse/langfuse_beeai-2025-08-01.trace.json",
    # One object with 16 members is one trace, and it has one tool span.
    "langgraph/deepeval_langgraph_full_flow_trace.json",
    # Audio ticks only, refused.
    "tau2/tau2_voice_ticks_49b22f0c.json",
}


def part_of(source, folder):
    return str(Path(source["path"]).relative_to(folder.resolve()))


def test_every_file_is_in_the_table(real_logs):
    there = {str(path.relative_to(real_logs)) for path in real_logs.glob("*/*")}
    assert there == LOGS.keys() | set(PARTS)


def test_the_table_agrees_with_the_list_of_those_who_collected_the_files(real_logs):
    with (real_logs / "MANIFEST.tsv").open(newline="") as file:
        listed = {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}
    differing = set()
    for name, (_, _, _, runs, calls) in LOGS.items():
        told = [listed[name]["runs"], listed[name]["tool_calls"]]
        if any(text and int(text.split()[0]) != number for text, number in zip(told, (runs, calls), strict=True)):
            differing.add(name)
    assert differing == DIFFERENT


def test_all_of_them_in_one_workspace(workspace, real_logs):
    result = import_logs(workspace, [real_logs / name for name in LOGS])
    found = {
        part_of(source, real_logs): tuple(source[key] for key in ("format", "read", "rejected", "runs", "steps"))
        for source in result.sources
    }
    assert found == LOGS
    for source in result.sources:
        assert source["read"] == source["imported"] + source["rejected"] + source["skipped"], source["path"]
        assert source["skipped"] == 0, source["path"]
    runs, calls = (sum(row[place] for row in LOGS.values()) for place in (3, 4))
    assert (result.runs, result.steps) == (runs, calls)
    assert workspace.value("SELECT count(*) FROM runs") == runs
    assert workspace.value("SELECT count(*) FROM steps") == calls
    assert workspace.value("SELECT sum(records) FROM rejects") == result.rejected == 7
    assert workspace.value("SELECT count(*) FROM messages") == result.messages
    # Nothing is invented: a call without an answer has none, every other says how it is known to have gone.
    assert workspace.value("SELECT count(*) FROM steps WHERE (status = 'no_result') <> (status_evidence = 'none')") == 0
    assert workspace.value("SELECT count(*) FROM steps WHERE result IS NOT NULL AND status = 'no_result'") == 0

    again = import_logs(workspace, [real_logs / name for name in LOGS])
    assert (again.read, again.imported, again.rejected) == (result.read, 0, result.rejected)
    assert workspace.value("SELECT count(*) FROM runs") == runs


def test_outcomes_that_the_logs_themselves_hold(workspace, real_logs):
    """Successes and failures by the list: rewards, scores, sections, labels; nothing else says how a run went."""
    import_logs(workspace, [real_logs / name for name in LOGS])
    found: dict[str, Counter[float]] = {}
    for row in workspace.rows("SELECT s.path, r.outcome FROM runs r JOIN sources s USING (source_id)"):
        if row["outcome"] is not None:
            found.setdefault(Path(row["path"]).name, Counter())[row["outcome"]] += 1
    assert found["taubench_gpt-4o-airline.json"] == {1.0: 84, 0.0: 116}
    assert found["docent_intercode_ctf_gpt-4o.eval"] == {1.0: 9, 0.0: 6}
    assert found["docent_ctf_inspect_with_anthropic_blocks.json"] == {1.0: 1, 0.0: 1}
    assert found["scout_websearch-addition_sonnet-4-5.eval"] == {1.0: 1}
    assert found["tau2_20260531-184109.json"] == {1.0: 8, 0.0: 2}
    assert found["tau2_airline_gpt-4.1-mini_20260601-033543.json"] == {1.0: 1, 0.0: 4}
    assert found["whowhen_autogen_114.json"] == found["whowhen_magentic_8.json"] == {0.0: 1}
    quiet = {"openhands_multi_swe_bench_output.jsonl", "adk_shopping_text_search.session.json"}
    assert not found.keys() & quiet


@pytest.mark.xfail(reason="files that share runs are not yet read together")
def test_a_trace_delivered_in_two_files_is_one_run(workspace, real_logs):
    result = import_logs(workspace, [real_logs / name for name in PARTS])
    assert (result.read, result.imported, result.rejected, result.skipped) == (14, 14, 0, 0)
    assert (result.runs, result.steps) == (1, 2)
