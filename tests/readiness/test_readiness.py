"""What the checks count, worked out by hand, and which gaps decide the level."""

import json

import pytest

from poc.ingest import import_logs
from poc.language import LANGUAGES
from poc.readiness import assess, describe, headline, stored
from poc.readiness.checks import CHECKS, ODDITIES

FULL = """run_id,step,call_id,tool,args,output,is_error,start_time,end_time,question,outcome,input_tokens,output_tokens
r1,1,c1,look,{},ok,false,2025-01-01T00:00:00Z,2025-01-01T00:00:01Z,what,1,10,2
r1,2,c2,look,{},no,true,2025-01-01T00:00:02Z,2025-01-01T00:00:03Z,what,1,10,2
r2,1,c1,look,{},ok,false,2025-01-01T00:00:00Z,2025-01-01T00:00:01Z,where,0,10,2
"""


@pytest.fixture
def load(workspace, tmp_path):
    """Import rows (as JSON lines), runs or CSV text, and assess."""

    def put(content):
        text = content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content)
        path = tmp_path / "log.txt"
        path.write_text(text)
        import_logs(workspace, path)
        return assess(workspace)

    return put


def without(*columns):
    header, *lines = FULL.strip().split("\n")
    names = header.split(",")
    return [
        {
            name: json.loads(cell) if name == "args" else cell
            for name, cell in zip(names, line.split(","), strict=True)
            if name not in columns
        }
        for line in lines
    ]


def test_a_full_log_is_ready(load):
    readiness = load(FULL)
    assert (readiness.level, readiness.reasons) == ("READY", ())
    assert (readiness.runs, readiness.steps) == (2, 3)
    assert {check.level for check in readiness.checks} == {"ok"}
    assert {check.share for check in readiness.checks} == {1.0}
    assert all(check.blocks is None and check.remedy is None for check in readiness.checks)


@pytest.mark.parametrize(
    ("columns", "gaps", "level"),
    [
        (("outcome",), {"outcome"}, "PARTIAL"),
        (("start_time", "end_time"), {"start_time", "duration"}, "PARTIAL"),
        (("input_tokens",), {"tokens"}, "PARTIAL"),
        (("run_id",), {"run_id"}, "PARTIAL"),
        (("output",), {"result"}, "PARTIAL"),
        (("question",), {"task_text"}, "NOT READY"),
        (("args",), {"arguments"}, "NOT READY"),
        (("output", "is_error"), {"result", "status"}, "NOT READY"),
        (("call_id",), set(), "READY"),
        (("step",), set(), "READY"),
        (("step", "start_time"), {"order", "start_time", "duration"}, "PARTIAL"),
    ],
)
def test_what_a_missing_column_means(load, columns, gaps, level):
    readiness = load(without(*columns))
    # Without a result there is nothing that could be paired.
    assert {c.check_id for c in readiness.checks if c.level != "ok" and c.weight != "helpful"} - {
        "paired_results"
    } == gaps
    assert readiness.level == level
    if level == "NOT READY":
        assert set(readiness.reasons) <= gaps


def test_counts_by_hand(load, workspace):
    function = {"name": "look", "arguments": "{}"}
    broken = {"name": "look", "arguments": "{"}
    first = [
        {"role": "user", "content": "go"},
        {"role": "tool", "content": "answers nothing"},
        {"role": "assistant", "tool_calls": [{"id": "x", "function": function}]},
        {"role": "tool", "tool_call_id": "x", "content": "Error: no"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "x", "function": broken}, {"id": "y", "function": {"arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "x", "content": "fine"},
    ]
    readiness = load([{"messages": first, "reward": 1}, {"messages": first[:1], "usage": {"prompt_tokens": 1}}])
    counts = {check.check_id: (check.present, check.total) for check in readiness.checks}
    assert counts == {
        "tool": (2, 3),
        "arguments": (2, 3),
        "result": (2, 3),
        "status": (2, 3),
        "status_evidence": (1, 3),
        "order": (1, 1),
        "start_time": (0, 3),
        "duration": (0, 3),
        "run_id": (0, 2),
        "execution_id": (1, 3),
        "task_text": (2, 2),
        "outcome": (1, 2),
        "tokens": (0, 2),
        "paired_results": (2, 3),
    }
    assert readiness.level == "PARTIAL"
    assert workspace.value("SELECT level FROM findings WHERE check_id = 'tool'") == "gap"


def test_times_that_run_backwards_against_the_step_column(load):
    rows = [
        {"run_id": "a", "step": n, "tool": "t", "start_time": f"2025-01-01T00:00:0{9 - n}Z", "question": "q"}
        for n in range(3)
    ]
    order = load(rows).check("order")
    assert (order.present, order.total) == (0, 1)


def test_taubench_is_partial_for_what_it_lacks(workspace, real_logs):
    import_logs(workspace, real_logs / "openai_chat" / "taubench_gpt-4o-airline.json")
    readiness = assess(workspace)
    assert (readiness.level, readiness.reasons) == ("PARTIAL", ("start_time", "duration", "tokens"))
    counts = {check.check_id: (check.present, check.total) for check in readiness.checks}
    assert counts["paired_results"] == counts["result"] == (1164, 1164)
    assert counts["outcome"] == (200, 200)
    assert counts["status_evidence"] == (73, 1164)


def test_a_simulated_users_calls_are_not_the_agents(workspace, real_logs):
    import_logs(workspace, real_logs / "tau2" / "tau2_20260531-184109.json")
    readiness = assess(workspace)
    assert readiness.steps == workspace.value("SELECT count(*) FROM steps WHERE caller = 'agent'") == 14
    assert readiness.level == "READY"


def test_an_empty_workspace(workspace):
    assert stored(workspace) is None
    readiness = assess(workspace)
    assert readiness.level == "NOT READY"
    assert all(check.share is None for check in readiness.checks)
    assert "no runs" in headline(readiness)


def test_runs_without_steps(load):
    readiness = load([{"messages": [{"role": "user", "content": "hello"}]}] * 2)
    assert readiness.level == "NOT READY"
    assert "not a single tool call" in headline(readiness)


def test_the_stored_assessment_is_the_same(load, workspace):
    readiness = load(without("outcome"))
    assert stored(workspace) == readiness
    assert assess(workspace).checks == readiness.checks
    assert workspace.value("SELECT count(*) FROM findings") == len((*CHECKS, *ODDITIES))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_gap_is_put_in_words(load, workspace, language):
    empty = describe(assess(workspace), language)
    assert len(empty) == len(CHECKS)
    assert all(spoken.title and spoken.blocks and spoken.remedy for spoken in empty)
    partial = load(without("outcome"))
    spoken = {item.check_id: item for item in describe(partial, language)}
    assert spoken["tool"].blocks is None
    assert spoken["outcome"].blocks
    assert spoken["outcome"].title in headline(partial, language)
    assert "PARTIAL" in headline(partial, language)


def test_shares_are_rounded_down(load):
    rows = [{"run_id": "r", "tool": "t", "step": n, "args": {}, "output": "x" if n else None} for n in range(300)]
    spoken = {item.check_id: item for item in describe(load(rows))}
    assert spoken["result"].count == "299 of 300 steps (99 %)"
