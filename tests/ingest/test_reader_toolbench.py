"""ToolBench trees against a walk of the file; branches, endings, damage."""

import json

from poc.ingest import import_logs, load_run
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run


def read(path):
    items = list(detect(Source(path)).reader.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def inputs(node):
    """All Action Input nodes that have an observation, by a plain recursion."""
    own = [node] if node.get("observation") else []
    return own + [found for child in node.get("children", ()) for found in inputs(child)]


def test_real_tree(workspace, shared_log):
    path = shared_log("toolbench/toolbench_G1_answer_57.json")
    raw = json.loads(path.read_text())
    nodes = sorted(inputs(raw["tree"]["tree"]), key=lambda node: node["expand_num"])
    assert (len(nodes), [node["observation_code"] for node in nodes].count(11)) == (10, 1)
    result = import_logs(workspace, path)
    assert (result.runs, result.steps, result.rejected) == (1, 10, 0)
    run = load_run(workspace, workspace.value("SELECT run_id FROM runs"))
    assert [step.arguments_raw for step in run.steps] == [node["description"] for node in nodes]
    assert [step.result for step in run.steps] == [node["observation"] for node in nodes]
    assert [step.tool for step in run.steps] == [
        "products_for_seo_api",
        "news_for_seo_api",
        "search_for_seo_api",
        "Finish",
        "search_b_for_seo_api",
        "search_for_seo_api",
        "search_for_seo_api",
        "search_for_seo_api",
        "search_b_for_seo_api",
        "Finish",
    ]
    assert run.metadata["chain"] == [0, 1, 8, 9]
    assert run.metadata["pruned"] == [2, 3, 4, 5, 6, 7]
    assert [step.status for step in run.steps] == ["ok", "error"] + ["ok"] * 8
    assert {step.status_evidence for step in run.steps} == {"exit_code"}
    assert run.task_text == raw["answer_generation"]["query"]
    assert (run.outcome, run.metadata["finish_type"]) == (None, "give_answer")


def tree(finish_type="give_answer", code=3):
    def node(kind, said, *children, **more):
        return {"node_type": kind, "description": said, "children": list(children), **more}

    end = node(
        "Action", "Finish", node("Action Input", '{"return_type": "x"}', observation="end", observation_code=code)
    )
    cut = node("Action", "slow", node("Action Input", "{}", observation="", observation_code=0))
    first = node(
        "Action Input",
        '{"a": 1}',
        node("Thought", "hm", end),
        node("Thought", "or", cut),
        observation="1",
        observation_code=0,
    )
    return {
        "win": True,
        "tree": {"size": 9, "tree": node("Action Input", "", node("Action", "look", first))},
        "answer_generation": {
            "query": "q",
            "finish_type": finish_type,
            "function": [{"name": "look", "parameters": {}}],
        },
    }


def test_order_of_the_tree_and_calls_without_answer(write):
    path = write("t.json", json.dumps(tree()))
    assert detect(Source(path)).format == "toolbench"
    (run,), rejects = read(path)
    assert rejects == []
    assert [(step.tool, step.status) for step in run.steps] == [("look", "ok"), ("Finish", "ok"), ("slow", "no_result")]
    assert (run.metadata["chain"], run.metadata["pruned"]) == ([0, 1], [2])
    assert [message.content for message in run.messages if message.role == "assistant"] == [None, "hm", "or"]
    assert [tool.name for tool in run.tools] == ["look"]


def test_giving_up_is_a_failure(write):
    ((run,), _) = read(write("t.json", json.dumps(tree("give_up", 4))))
    assert (run.outcome.value, run.outcome.provenance) == (0.0, "log:answer_generation.finish_type")
    assert (run.metadata["chain"], run.metadata["pruned"]) == ([], [0, 1, 2])


def test_deep_trees_and_broken_ones(write):
    node = {"node_type": "Action Input", "description": "{}", "observation": "x", "observation_code": 3, "children": []}
    for _ in range(150):
        node = {"node_type": "Action", "description": "go", "children": [node]}
        node = {
            "node_type": "Action Input",
            "description": "{}",
            "observation": "y",
            "observation_code": 0,
            "children": [node],
        }
    ((run,), _) = read(write("d.json", json.dumps({"tree": {"tree": node}, "answer_generation": {}, "win": False})))
    assert (len(run.steps), run.metadata["pruned"]) == (150, [])
    runs, rejects = read(write("b.json", json.dumps(tree())[:-9]))
    assert (runs, [reject.records for reject in rejects]) == ([], [1])
