"""Tables of a team's own: suggested and given mappings, order, runs, faults."""

import json

import pytest

from poc.errors import InputError
from poc.ingest import describe, import_logs, iter_runs, suggest_mapping
from poc.ingest.columns import FIELDS, load_mapping

CSV = """session_id,step,tool_name,args,output,success,ts,latency_ms,task_id,question,reward
s1,2,refund,"{""id"": 1}",done,true,2025-01-01T00:00:05Z,1500,t1,refund me,1
s1,1,get_order,"{""id"": 1}","{""total"": 5}",true,2025-01-01T00:00:01Z,250,t1,refund me,1
s2,1,get_order,{'id': 2},Error: none,false,2025-01-01T00:00:09Z,100,t2,where is it,0
"""


def by_native(workspace):
    return {run.native_id: run for _, run in iter_runs(workspace)}


def test_shaft_minimal(workspace, shared_log):
    path = shared_log("own_tables/shaft_tool_calls_minimal.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.runs, result.steps) == (4, 4, 1, 4)
    assert result.sources[0]["mapping"] == {"tool": "tool", "arguments": "args", "step": "round"}
    ((_, run),) = iter_runs(workspace)
    assert [step.tool for step in run.steps] == [line["tool"] for line in lines]
    assert [json.loads(step.arguments_json) for step in run.steps] == [line["args"] for line in lines]
    assert {step.status for step in run.steps} == {"no_result"}
    assert (run.native_id, run.task_text, run.outcome, run.started_at) == (None, None, None, None)


def test_csv_with_a_suggested_mapping(workspace, write):
    result = import_logs(workspace, write("calls.csv", CSV))
    assert (result.read, result.imported, result.rejected, result.runs, result.steps) == (3, 3, 0, 2, 3)
    runs = by_native(workspace)
    first = runs["s1"]
    assert [step.tool for step in first.steps] == ["get_order", "refund"]
    assert [(step.index, step.turn, step.ordinal) for step in first.steps] == [(0, 0, 0), (1, 1, 0)]
    assert [step.duration_s for step in first.steps] == [0.25, 1.5]
    assert (first.task_key, first.task_text, first.outcome.value) == ("t1", "refund me", 1.0)
    assert (first.started_at.isoformat(), first.duration_s) == ("2025-01-01T00:00:01+00:00", 5.5)
    assert first.zone_in_log is True
    step = runs["s2"].steps[0]
    assert (step.status, step.status_evidence, step.arguments_status) == ("error", "flag", "repaired")
    assert json.loads(step.arguments_json) == {"id": 2}


def test_rows_of_a_run_may_lie_apart_and_order_by_time(workspace, write):
    rows = [
        {"run_id": "b", "tool": "t2", "timestamp": 1735689602.0},
        {"run_id": "a", "tool": "t1", "timestamp": 1735689600.0},
        {"run_id": "b", "tool": "t1", "timestamp": 1735689601.0},
    ]
    import_logs(workspace, write("rows.jsonl", rows))
    runs = by_native(workspace)
    assert [step.tool for step in runs["b"].steps] == ["t1", "t2"]
    assert len(runs["a"].steps) == 1


def test_parallel_rows_share_a_turn(workspace, write):
    rows = [{"run_id": "a", "tool": f"t{n}", "turn": turn, "step": n} for n, turn in enumerate([0, 0, 1])]
    import_logs(workspace, write("rows.jsonl", rows))
    steps = by_native(workspace)["a"].steps
    assert [(step.turn, step.ordinal) for step in steps] == [(0, 0), (0, 1), (1, 0)]


def test_a_given_mapping(workspace, write):
    rows = [{"who": "r1", "what": "look", "with": {"a": 1}, "said": "yes"}]
    mapping = write("map.yaml", "tool: what\narguments: with\nrun_id: who\nresult: said\n")
    result = import_logs(workspace, write("rows.jsonl", rows * 2), mapping=mapping)
    assert (result.runs, result.steps) == (1, 2)
    stored = json.loads(workspace.value("SELECT mapping FROM sources"))
    assert stored == {"tool": "what", "arguments": "with", "run_id": "who", "result": "said"}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"tool": "tol_name"}, 'Did you mean "tool_name"'),
        ({"tol": "tool_name"}, 'Did you mean "tool"'),
        ({"arguments": "args"}, "No column can be told"),
        ({}, "must say which column"),
        ({"tool": 3}, "must be the name of one column"),
        ("/no/such/map.yaml", "cannot be read"),
    ],
)
def test_a_wrong_mapping_is_refused_and_nothing_is_stored(workspace, write, mapping, message):
    with pytest.raises(InputError, match=message):
        import_logs(workspace, write("calls.csv", CSV), mapping=mapping)
    assert workspace.value("SELECT count(*) FROM sources") == 0


def test_a_mapping_file_that_is_no_yaml(write):
    with pytest.raises(InputError, match="no valid YAML"):
        load_mapping(write("map.yaml", "a: [1"))


def test_rows_that_are_no_calls_are_rejects_with_their_line(workspace, write):
    text = CSV + "s3,1,,{},x,true,2025-01-01T00:00:00Z,1,t,q,1\ns3,1,only three\n"
    result = import_logs(workspace, write("calls.csv", text))
    assert (result.read, result.imported, result.rejected) == (5, 3, 2)
    rejects = workspace.rows("SELECT place, reason FROM rejects ORDER BY place")
    assert [reject["place"] for reject in rejects] == ["line 5", "line 6"]
    assert "no tool name" in rejects[0]["reason"]
    assert "3 cells" in rejects[1]["reason"]


def test_cells_that_cannot_be_read_are_said_and_left_empty(workspace, write):
    text = "run_id,tool,timestamp,outcome\na,look,soon,9\na,look,later,1\n"
    result = import_logs(workspace, write("calls.csv", text))
    assert (result.rejected, result.imported) == (0, 2)
    reasons = [row["reason"] for row in workspace.rows("SELECT reason FROM rejects WHERE records = 0")]
    assert sum("the time" in reason for reason in reasons) == 2
    assert sum("the outcome" in reason for reason in reasons) == 1
    run = by_native(workspace)["a"]
    assert (run.started_at, run.outcome.value) == (None, 1.0)


def test_quoted_line_breaks_and_semicolons(workspace, write):
    text = 'run_id;tool;output\na;look;"one\ntwo"\na;;x\n'
    result = import_logs(workspace, write("calls.csv", text))
    assert by_native(workspace)["a"].steps[0].result == "one\ntwo"
    assert (result.rejected, workspace.value("SELECT place FROM rejects")) == (1, "line 4")


def test_invalid_utf8_in_a_cell(workspace, write):
    result = import_logs(workspace, write("calls.csv", b"run_id,tool,output\na,look,caf\xe9\n"))
    assert by_native(workspace)["a"].steps[0].result == "caf\ufffd"
    assert (result.rejected, workspace.value("SELECT records FROM rejects")) == (0, 0)


def test_a_json_array_of_rows_and_naive_times(workspace, write):
    rows = [{"tool": "look", "run_id": 7, "start_time": "2025-01-01 00:00:00", "end_time": "2025-01-01 00:00:02"}]
    import_logs(workspace, write("rows.json", json.dumps(rows)))
    run = by_native(workspace)["7"]
    assert (run.zone_in_log, run.steps[0].duration_s) == (False, 2.0)


def test_tokens_with_a_hole_are_unknown(workspace, write):
    rows = [
        {"run_id": "a", "tool": "t", "input_tokens": 5, "output_tokens": 1},
        {"run_id": "a", "tool": "t", "input_tokens": 7, "output_tokens": None},
    ]
    import_logs(workspace, write("rows.jsonl", rows))
    usage = by_native(workspace)["a"].usage
    assert (usage.input_tokens, usage.output_tokens) == (12, None)


def test_suggestions_name_only_real_fields_and_columns():
    columns = ["name", "params", "Session Key", "exit_code", "duration", "note"]
    mapping = suggest_mapping(columns)
    assert mapping == {
        "tool": "name",
        "arguments": "params",
        "run_id": "Session Key",
        "exit_code": "exit_code",
        "duration_s": "duration",
    }
    assert set(mapping) <= set(FIELDS)
    assert suggest_mapping(["name", "age"]) == {}


def test_a_file_described_before_its_import(write):
    facts = describe(write("calls.csv", CSV))
    assert facts.format == "table"
    assert facts.columns == CSV.split("\n", 1)[0].split(",")
    assert facts.mapping == suggest_mapping(facts.columns)
    unknown = describe(write("odd.csv", "what,who\nlook,me\n"))
    assert (unknown.format, unknown.columns, unknown.mapping) == ("table", ["what", "who"], {})
    chat = describe(write("chat.json", json.dumps([{"role": "user", "content": "hello"}])))
    assert (chat.format, chat.columns) == ("openai_chat", [])
