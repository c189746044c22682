"""BFCL results: calls as objects, as text, nested turns; no results, no outcome."""

import json

from poc.ingest import import_logs
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage


def read(path):
    items = list(detect(Source(path)).reader.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def line(ident, result, **more):
    return {"id": ident, "result": result, "input_token_count": 100, "output_token_count": 9, "latency": 1.25, **more}


def test_single_turn(workspace, write):
    calls = [{"area": '{"base": 10, "height": 5}'}, {"area": '{"base": 1'}]
    path = write("r.json", [line("parallel_3", calls), line("irrelevance_7", "I cannot do that.")])
    assert detect(Source(path)).format == "bfcl"
    runs, rejects = read(path)
    assert rejects == []
    assert [(step.tool, step.turn, step.ordinal, step.arguments_status, step.status) for step in runs[0].steps] == [
        ("area", 0, 0, "parsed", "no_result"),
        ("area", 0, 1, "unparsed", "no_result"),
    ]
    assert (runs[0].native_id, runs[0].category, runs[0].duration_s) == ("parallel_3", "parallel", 1.25)
    assert runs[0].usage == Usage(input_tokens=100, output_tokens=9)
    assert (runs[1].steps, runs[1].messages[0].content, runs[1].outcome) == ([], "I cannot do that.", None)
    result = import_logs(workspace, path)
    assert (result.read, result.imported, result.runs, result.steps) == (2, 2, 2, 2)


def test_calls_written_in_python(write):
    texts = [
        "[math.area(base=10, name='x'), look()]",
        "[look(x=other)]",
        "[look(1)]",
        "[look(**x)]",
        "[__import__('os').system(command='ls')]",
        "[look(",
    ]
    runs, _ = read(write("r.json", [line(f"simple_python_{n}", text) for n, text in enumerate(texts)]))
    assert [(step.tool, step.arguments_json) for step in runs[0].steps] == [
        ("math.area", '{"base":10,"name":"x"}'),
        ("look", "{}"),
    ]
    assert runs[0].steps[0].arguments_raw == "base=10, name='x'"
    assert runs[0].steps[0].arguments_status == "repaired"
    assert [len(run.steps) for run in runs[1:]] == [0, 0, 0, 1, 0]  # a call is read, never made
    assert [run.messages[0].content for run in runs] == texts
    assert runs[0].category == "simple_python"


def test_multi_turn(write):
    result = [[[{"cd": '{"folder": "x"}'}, {"ls": "{}"}], "done"], [[{"pwd": "{}"}], [{"ls": "{}"}]]]
    log = [
        {"begin_of_turn_query": [{"role": "user", "content": "go"}]}
        | {
            "step_0": [
                {"role": "assistant"},
                {"role": "tool", "content": '{"cwd": "x"}'},
                {"role": "tool", "content": "Error: no"},
            ]
        },
        {"step_0": [{"role": "tool", "content": "a"}, {"role": "tool", "content": "one too many"}]},
    ]
    row = line("multi_turn_base_0", result, inference_log=log)
    row |= {
        "input_token_count": [[10, 11], [12, 13]],
        "output_token_count": [[1, None], [1, 1]],
        "latency": [[1, 0.5], [2, 1]],
    }
    ((run,), _) = read(write("r.json", [row]))
    assert [(step.tool, step.turn, step.ordinal, step.status) for step in run.steps] == [
        ("cd", 0, 0, "ok"),
        ("ls", 0, 1, "error"),
        ("pwd", 1, 0, "no_result"),
        ("ls", 2, 0, "no_result"),
    ]
    assert run.steps[0].result == '{"cwd": "x"}'
    assert (run.usage, run.duration_s) == (Usage(input_tokens=46), 4.5)
    assert run.category == "multi_turn_base"


def test_broken_lines(write):
    rows = [
        json.dumps(line("simple_1", "x")),
        '{"id": "simple_2", "resu',
        json.dumps({"id": 3}),
        json.dumps(line("s_4", "y")),
    ]
    runs, rejects = read(write("r.json", "\n".join(rows)))
    assert [run.native_id for run in runs] == ["simple_1", "s_4"]
    assert [reject.place for reject in rejects] == ["line 2", "line 3"]
