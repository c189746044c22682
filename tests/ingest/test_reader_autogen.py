"""AutoGen: Who&When dumps against counts by hand, agentchat events in each holder, damage."""

import json

import pytest

from poc.ingest import import_logs, load_run
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage


def read(path):
    items = list(detect(Source(path), format="autogen").reader.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


@pytest.mark.parametrize(
    ("name", "messages", "agent", "step"),
    [
        ("autogen/whowhen_autogen_114.json", 7, "Verification_Expert", "1"),
        ("autogen/whowhen_magentic_8.json", 129, "WebSurfer", "8"),
    ],
)
def test_who_and_when(workspace, shared_log, name, messages, agent, step):
    path = shared_log(name)
    raw = json.loads(path.read_text())
    assert len(raw["history"]) == messages
    result = import_logs(workspace, path)
    assert (result.runs, result.steps, result.messages, result.rejected) == (1, 0, messages, 0)
    run = load_run(workspace, workspace.value("SELECT run_id FROM runs"))
    assert [message.content for message in run.messages] == [item["content"] for item in raw["history"]]
    assert (run.native_id, run.task_text, run.outcome.value) == (raw["question_ID"], raw["question"], 0.0)
    assert run.outcome.provenance in ("log:is_correct", "log:is_corrected")
    assert (run.metadata["mistake_agent"], run.metadata["mistake_step"]) == (agent, step)
    assert run.started_at is None


def test_speakers_of_a_group_chat_are_agents(shared_log):
    ((run,), _) = read(shared_log("autogen/whowhen_autogen_114.json"))
    assert [(message.role, message.name) for message in run.messages[:3]] == [
        ("assistant", "DataAnalysis_Expert"),
        ("assistant", "Verification_Expert"),
        ("tool", "Computer_terminal"),
    ]
    ((run,), _) = read(shared_log("autogen/whowhen_magentic_8.json"))
    assert [(message.role, message.name) for message in run.messages[:2]] == [
        ("user", None),
        ("assistant", "Orchestrator (thought)"),
    ]


def events():
    at = "2025-02-01T10:00:0{}Z".format
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    calls = [
        {"id": "c1", "name": "look", "arguments": '{"x": 1}'},
        {"id": "c2", "name": "peek", "arguments": "{}"},
    ]
    results = [
        {"call_id": "c2", "name": "peek", "content": "no", "is_error": True},
        {"call_id": "c1", "name": "look", "content": "Error? not at all", "is_error": False},
    ]
    return [
        {"type": "TextMessage", "source": "user", "content": "please look", "models_usage": None, "created_at": at(0)},
        {"type": "ModelClientStreamingChunkEvent", "source": "helper", "content": "I", "created_at": at(1)},
        {
            "type": "ToolCallRequestEvent",
            "source": "helper",
            "content": calls,
            "models_usage": usage,
            "created_at": at(1),
        },
        {"type": "ToolCallExecutionEvent", "source": "helper", "content": results, "created_at": at(3)},
        {"type": "ToolCallRequestEvent", "source": "helper", "content": [{"id": "c3", "name": "look"}]},
        {"type": "TextMessage", "source": "helper", "content": "done", "models_usage": usage},
    ]


HOLDERS = {
    "lines": lambda items: "".join(json.dumps(item) + "\n" for item in items),
    "list": json.dumps,
    "result": lambda items: json.dumps({"messages": items, "stop_reason": "done"}, indent=1),
    "studio": lambda items: json.dumps({"task_result": {"messages": items, "stop_reason": "done"}, "duration": 4.5}),
    "team": lambda items: json.dumps(
        {"type": "TeamState", "agent_states": {"a": {"type": "x"}, "manager": {"message_thread": items}}}
    ),
    "team, nested": lambda items: json.dumps(
        {"type": "TeamState", "agent_states": {"manager": {"agent_state": {"message_thread": items}}}}
    ),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_agentchat(write, holder):
    path = write("log.json", HOLDERS[holder](events()))
    assert detect(Source(path)).format == "autogen"
    (run,), rejects = read(path)
    assert rejects == []
    assert run.records == (6 if holder == "lines" else 1)
    assert [
        (step.tool, step.turn, step.ordinal, step.result, step.status, step.status_evidence) for step in run.steps
    ] == [
        ("look", 0, 0, "Error? not at all", "ok", "flag"),
        ("peek", 0, 1, "no", "error", "flag"),
        ("look", 1, 0, None, "no_result", "none"),
    ]
    assert (run.steps[0].arguments_json, run.steps[0].duration_s, run.steps[2].arguments_status) == (
        '{"x": 1}',
        2.0,
        "absent",
    )
    assert (run.task_text, run.usage, run.outcome) == ("please look", Usage(input_tokens=20, output_tokens=4), None)
    assert [message.role for message in run.messages] == ["user", "assistant", "tool", "tool", "assistant", "assistant"]
    assert run.duration_s == (4.5 if holder == "studio" else 3.0)
    if holder in ("result", "studio"):
        assert run.metadata["stop_reason"] == "done"


def test_flags_that_are_not_there_are_not_made_up(write):
    items = [
        {"type": "ToolCallRequestEvent", "source": "a", "content": [{"id": "1", "name": "look", "arguments": "x"}]},
        {"type": "ToolCallExecutionEvent", "source": "a", "content": [{"call_id": "1", "content": "fine"}]},
        {"type": "ToolCallExecutionEvent", "source": "a", "content": [{"call_id": "9", "content": "whose?"}]},
        {"type": "ToolCallRequestEvent", "source": "a", "content": "[FunctionCall(id='2', name='look')]"},
    ]
    ((run,), _) = read(write("log.json", items))
    (step,) = run.steps
    assert (step.status, step.status_evidence, step.arguments_status) == ("ok", "result", "unparsed")
    assert [message.content for message in run.messages] == [
        None,
        None,
        "whose?",
        "[FunctionCall(id='2', name='look')]",
    ]
    assert (run.usage, run.started_at, run.zone_in_log) == (None, None, None)


def test_what_is_no_message(write):
    runs, rejects = read(
        write("a.json", json.dumps({"messages": ["x", {"type": "TextMessage", "source": "a", "content": "b"}]}))
    )
    assert ([len(run.messages) for run in runs], [reject.records for reject in rejects]) == ([1], [0])
    runs, rejects = read(write("b.json", json.dumps({"messages": [1, 2]})))
    assert (runs, [reject.records for reject in rejects]) == ([], [0, 0, 1])
    runs, rejects = read(write("c.json", '{"history": [{"content": "x", "role": "hum'))
    assert (runs, len(rejects)) == ([], 1)
    assert "broken JSON" in rejects[0].reason
