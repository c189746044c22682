"""Real files go to the reader of their family: these readers win for their own and claim nothing else."""

from collections import Counter

import pytest

from poc.ingest.detect import detect
from poc.ingest.readers import READERS
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run

OWN = {
    "autogen": ["autogen/*"],
    "mini_swe": ["swe_agent/mini_swe_*"],
    "swe_agent": ["swe_agent/swe_*"],
    "toolbench": ["toolbench/*"],
    "react_text": ["react_text/*"],
    "table": ["own_tables/*"],
    "crewai": [],
    "bfcl": [],
    "mcp_jsonrpc": [],
    "openhands": ["openhands/*"],
    "atif": [],
    "google_adk": ["google_adk/*"],
    "langgraph": [],
    "deepeval": ["langgraph/deepeval_*"],
    "inspect_ai": ["inspect_ai/*", "anthropic_messages/docent_ctf_*"],
}
COUNTS = {
    "whowhen_autogen_114.json": (1, 0),
    "whowhen_magentic_8.json": (1, 0),
    "mini_swe_github_issue.traj.json": (1, 10),
    "swe_fc_replace_from_source.traj": (1, 13),
    "swe_gpt4_pydicom-1458.traj": (1, 12),
    "toolbench_G1_answer_57.json": (1, 10),
    "reflexion_hotpotqa_base_react_thought_log.txt": (102, 369),
    "infinite-loop_agent_debug_db.sqlite": (10, 66),
    "shaft_tool_calls_minimal.jsonl": (1, 4),
}


@pytest.mark.parametrize("name", OWN)
def test_a_reader_wins_its_files_and_no_others(real_logs, name):
    own = {path for pattern in OWN[name] for path in real_logs.glob(pattern)}
    claimed = set()
    for path in sorted(real_logs.glob("*/*")):
        source = Source(path)
        magic = source.magic
        if magic is not None and magic not in getattr(READERS[name], "MAGIC", ()):
            continue
        sure = READERS[name].sniff(source.sample, source.name)
        if path in own:
            assert detect(source).format == name, path.name
            claimed.add(path)
        elif name == "table":
            # Rows of other logs may look a little like a table; a reader of their own must be surer.
            assert sure < 0.6, path.name
        else:
            assert sure == 0.0, path.name
    assert claimed == own


@pytest.mark.parametrize("name", COUNTS)
def test_runs_and_steps(real_logs, name):
    (path,) = real_logs.glob(f"*/{name}")
    source = Source(path)
    items = list(detect(source).reader.read(source))
    kinds = Counter(type(item) for item in items)
    assert (kinds[Run], kinds[Reject]) == (COUNTS[name][0], 0)
    assert sum(len(item.steps) for item in items if isinstance(item, Run)) == COUNTS[name][1]


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize(
    "sample", [b"", b"\n", b"{", b"[", b'{"a', b"\xff\xfe\x00", b"[[[[", b'"', b"SQLite format 3\x00", b"PAR1"]
)
def test_odd_samples_are_not_claimed(name, sample):
    assert READERS[name].sniff(sample, "x") == 0.0


TRACES = {
    # reader: its files, and files of another family that look like it from afar (the same spans, other names on them)
    "otel_genai": (["otel_genai/*"], ["openinference/*", "vercel_ai_sdk/*", "mlflow/*"]),
    "openinference": (["openinference/*"], []),
    "langsmith": (["langsmith/*"], []),
    "langfuse": (["langfuse/*"], []),
    "mlflow": (["mlflow/*"], []),
    "weave": ([], []),
    "vercel_ai_sdk": (["vercel_ai_sdk/*"], []),
    "codex": (["codex_rollout/*"], []),
    "openai_responses": ([], []),
    "agents_sdk": (["openai_agents_sdk/*"], []),
    "claude_code": (["claude_code/*"], []),
    "anthropic_messages": ([], []),
    "anthropic_managed": (["anthropic_managed_agents/*"], []),
}


@pytest.mark.parametrize("name", TRACES)
def test_readers_of_traces_claim_their_own_alone(real_logs, name):
    own, alike = ({path for pattern in patterns for path in real_logs.glob(pattern)} for patterns in TRACES[name])
    for path in sorted(real_logs.glob("*/*")):
        source = Source(path)
        if source.magic is not None and source.magic not in getattr(READERS[name], "MAGIC", ()):
            continue
        sure = READERS[name].sniff(source.sample, source.name)
        if path in own:
            assert detect(source).format == name, path.name
            assert sure >= 0.6
        else:
            assert sure <= (0.3 if path in alike else 0.0), path.name
