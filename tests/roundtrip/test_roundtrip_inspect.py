"""Logs that Inspect writes of an evaluation with its own mock model, read back and compared with its own reading.

The evaluation calls two tools at once, of which one fails; an agent as a tool, which calls a tool itself; and runs
into a message limit. Inspect runs in a process of its own: importing it warns.
"""

import importlib.util
import json
import subprocess
import sys
import textwrap
import zipfile

import pytest

from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Run, Usage

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("inspect_ai") is None, reason="inspect-ai is not installed (extra: roundtrip)"
)

WRITER = textwrap.dedent(
    '''
    import glob, json, sys
    from inspect_ai import Task, eval as evaluate
    from inspect_ai.agent import agent, as_tool, react
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, system_message, use_tools
    from inspect_ai.tool import ToolCall, ToolError, tool

    @tool
    def add():
        async def execute(x: int, y: int):
            """Add two numbers.

            Args:
                x: first
                y: second
            """
            return x + y
        return execute

    @tool
    def broken():
        async def execute(path: str):
            """Always fails.

            Args:
                path: a path
            """
            raise ToolError("no such thing: " + path)
        return execute

    @agent
    def helper():
        return react(name="helper", description="adds numbers", tools=[add()])

    def said(text, *calls):
        output = ModelOutput.from_content("mockllm/model", text)
        made = [ToolCall(id=ident, function=name, arguments=arguments) for ident, name, arguments in calls]
        output.choices[0].message.tool_calls = made or None
        output.choices[0].stop_reason = "tool_calls" if calls else "stop"
        output.usage = ModelUsage(
            input_tokens=10, output_tokens=3, total_tokens=17, input_tokens_cache_read=4, reasoning_tokens=1
        )
        return output

    script = [
        said("both", ("c1", "add", {"x": 1, "y": 2}), ("c2", "broken", {"path": "/x"})),
        said("long " * 100, ("c3", "helper", {"input": "please add"})),
        said("sub adds", ("c4", "add", {"x": 5, "y": 6})),
        said("sub done", ("c5", "submit", {"answer": "11"})),
        said("It is 11."),
        *[said("again", (f"d{n}", "add", {"x": n, "y": 1})) for n in range(20)],
    ]
    task = Task(
        name="sums",
        dataset=[
            Sample(id="a", input="What is 5 and 6? " + "long " * 60, target="11"),
            Sample(id=2, input="Add on.", target="99"),
        ],
        solver=[system_message("be kind"), use_tools(add(), broken(), as_tool(helper())), generate()],
        scorer=includes(),
        message_limit=12,
    )
    form, folder = sys.argv[1:]
    model = get_model("mockllm/model", custom_outputs=script)
    (log,) = evaluate(
        task, model=model, log_dir=folder, log_format=form, display="none", max_samples=1, sample_shuffle=False
    )
    log = read_eval_log(log.location, resolve_attachments="full")
    print(json.dumps({"location": log.location, "samples": [sample.model_dump(mode="json") for sample in log.samples]}))
    '''
)


@pytest.fixture(scope="module", params=["eval", "json"])
def written(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"inspect-{request.param}")
    done = subprocess.run(
        [sys.executable, "-c", WRITER, request.param, str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = [path for path in folder.iterdir() if path.suffix == f".{request.param}"]
    return path, json.loads(done.stdout.splitlines()[-1])["samples"]


def test_a_log_of_inspect_comes_back(written):
    path, samples = written
    source = Source(path)
    found = detect(source)
    assert found.format == "inspect_ai"
    runs = list(found.reader.read(source))
    assert all(isinstance(run, Run) for run in runs)
    by_id = {str(sample["id"]): sample for sample in samples}
    assert {run.task_key for run in runs} == by_id.keys() == {"a", "2"}
    for run in runs:
        sample = by_id[run.task_key]
        assert (run.native_id, run.native_id_is_global) == (sample["uuid"], True)
        assert (run.task_text, run.model, run.category) == (sample["input"], "mockllm/model", "sums")
        done = [event for event in sample["events"] if event["event"] == "tool"]
        assert [step.call_id for step in run.steps] == [event["id"] for event in done]
        assert [json.loads(step.arguments_json) for step in run.steps] == [event["arguments"] for event in done]
        for step, event in zip(run.steps, done, strict=True):
            assert step.result == (event["error"]["message"] if event["error"] else str(event["result"]))
            assert step.status == ("error" if event["error"] else "ok")
            assert (step.started_at.isoformat(), step.ended_at.isoformat()) == (event["timestamp"], event["completed"])
        # What the agents said, the helper's words among the others'.
        answers = [event for event in sample["events"] if event["event"] == "model"]
        assert [m.content for m in run.messages if m.role == "assistant"] == [
            event["output"]["choices"][0]["message"]["content"] for event in answers
        ]
        count = len(answers)
        assert run.usage == Usage(
            input_tokens=14 * count, output_tokens=3 * count, cached_tokens=4 * count, reasoning_tokens=count
        )
        assert run.outcome.value == (1.0 if sample["scores"]["includes"]["value"] == "C" else 0.0)
        assert (run.metadata.get("limit") or {}).get("type") == (sample["limit"] or {}).get("type")
        assert {tool.name for tool in run.tools} >= {"add", "broken", "helper"}
        assert run.zone_in_log is True
    first = next(run for run in runs if run.task_key == "a")
    assert [(s.tool, s.turn, s.ordinal, s.caller) for s in first.steps] == [
        ("add", 0, 0, "agent"),
        ("broken", 0, 1, "agent"),
        ("helper", 1, 0, "agent"),
        ("add", 2, 0, "subagent"),
        ("submit", 3, 0, "subagent"),
    ]
    assert "limit" in next(run for run in runs if run.task_key == "2").metadata


@pytest.mark.parametrize("written", ["eval"], indirect=True)
def test_a_log_that_was_interrupted_comes_back(written, tmp_path):
    """Archives are written sample by sample; what ends them comes last."""
    path, samples = written
    cut = tmp_path / "cut.eval"
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        cut.write_bytes(data[: archive.getinfo("summaries.json").header_offset])
    items = list(detect(Source(cut)).reader.read(Source(cut)))
    runs = [item for item in items if isinstance(item, Run)]
    assert len(runs) == len(samples)
    assert [(item.records, "cut off" in item.reason) for item in items if not isinstance(item, Run)] == [(0, True)]
    assert {run.category for run in runs} == {"sums"}
