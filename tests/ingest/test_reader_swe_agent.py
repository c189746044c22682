"""SWE-agent trajectories against the files' own lists; mini-SWE-agent 1 and 2."""

import json
import re

import pytest

from poc.ingest import import_logs, load_run
from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Reject, Run, Usage


def read(path):
    items = list(detect(Source(path)).reader.read(Source(path)))
    return [item for item in items if isinstance(item, Run)], [item for item in items if isinstance(item, Reject)]


def stored(workspace):
    return load_run(workspace, workspace.value("SELECT run_id FROM runs"))


# SWE-agent ------------------------------------------------------------------------------------------------


def test_function_calls(workspace, shared_log):
    path = shared_log("swe_agent/swe_fc_replace_from_source.traj")
    raw = json.loads(path.read_text())
    made = [item["tool_calls"][0] for item in raw["history"] if item.get("tool_calls")]
    assert (len(raw["trajectory"]), len(made)) == (13, 13)
    result = import_logs(workspace, path)
    assert (result.runs, result.steps, result.messages, result.rejected) == (1, 13, 28, 0)
    run = stored(workspace)
    assert [step.tool for step in run.steps] == [call["function"]["name"] for call in made]
    assert [step.arguments_raw for step in run.steps] == [call["function"]["arguments"] for call in made]
    assert [step.call_id for step in run.steps] == [call["id"] for call in made]
    assert [step.result for step in run.steps] == [entry["observation"] for entry in raw["trajectory"]]
    assert [step.duration_s for step in run.steps] == [entry["execution_time"] for entry in raw["trajectory"]]
    assert (run.outcome, run.started_at, run.metadata["info"]["exit_status"]) == (None, None, "submitted")
    assert run.task_text == raw["history"][1]["content"]


def test_actions_as_text(workspace, shared_log):
    path = shared_log("swe_agent/swe_gpt4_pydicom-1458.traj")
    raw = json.loads(path.read_text())
    assert len(raw["trajectory"]) == 12
    result = import_logs(workspace, path)
    assert (result.runs, result.steps, result.messages, result.rejected) == (1, 12, 27, 0)
    run = stored(workspace)
    assert [step.tool for step in run.steps] == [entry["action"].split()[0] for entry in raw["trajectory"]]
    assert [step.result for step in run.steps] == [entry["observation"] for entry in raw["trajectory"]]
    assert (run.usage, run.cost_usd) == (Usage(input_tokens=122612, output_tokens=1369), 1.26719)
    edit = run.steps[1]
    assert edit.arguments_raw.startswith("1:1\nimport numpy")
    assert (edit.arguments_json, edit.arguments_status) == (None, "unparsed")
    # The demonstration is a message, and the task is what comes after it.
    assert run.messages[1].content.startswith("Here is a demonstration")
    assert run.task_text.startswith("We're currently solving the following issue")
    assert run.outcome is None


def trajectory(**more):
    return {
        "trajectory": [
            {"action": "ls\n", "observation": "a.py", "response": "look\n```\nls\n```", "state": "{}"},
            {"action": "", "observation": "Your output was not formatted correctly", "response": "hm"},
            {"action": "submit", "observation": None, "response": "done", "execution_time": 1.5},
        ],
        "history": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "fix"}]}],
        "info": {"exit_status": "exit_cost"},
        **more,
    }


def test_no_action_is_no_call_and_no_observation_is_no_result(write):
    path = write("owner__repo-12.traj", json.dumps(trajectory()))
    (run,), rejects = read(path)
    assert rejects == []
    assert [(step.tool, step.turn, step.status, step.result) for step in run.steps] == [
        ("ls", 0, "ok", "a.py"),
        ("submit", 1, "no_result", None),
    ]
    assert [message.role for message in run.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert (run.native_id, run.task_text, run.outcome) == ("owner__repo-12", "fix", None)


def test_configuration_as_text(write):
    config = {"agent": {"model": {"name": "m-1"}}, "problem_statement": {"id": "inst-1"}}
    path = write("x.traj", json.dumps(trajectory(replay_config=json.dumps(config)), indent=2))
    assert detect(Source(path)).format == "swe_agent"
    ((run,), _) = read(path)
    assert (run.native_id, run.task_key, run.model) == ("inst-1", "inst-1", "m-1")


def test_broken_trajectories(write):
    runs, rejects = read(write("x.traj", json.dumps(trajectory())[:-20]))
    assert (runs, [reject.records for reject in rejects]) == ([], [1])
    good = trajectory()
    good["trajectory"].append("odd")
    runs, rejects = read(write("y.traj", json.dumps(good)))
    assert ([len(run.steps) for run in runs], [reject.records for reject in rejects]) == ([2], [0])


# mini-SWE-agent -------------------------------------------------------------------------------------------


def test_mini_1(workspace, shared_log):
    path = shared_log("swe_agent/mini_swe_github_issue.traj.json")
    raw = json.loads(path.read_text())
    blocks = [
        block
        for item in raw
        if item["role"] == "assistant"
        for block in re.findall(r"```mswea_bash_command\n(.*?)\n```", item["content"], re.DOTALL)
    ]
    answers = [item["content"] for item in raw[3:] if item["role"] == "user"]
    assert (len(raw), len(blocks), len(answers)) == (22, 10, 10)
    assert detect(Source(path)).format == "mini_swe"
    result = import_logs(workspace, path)
    assert (result.runs, result.steps, result.messages, result.rejected) == (1, 10, 22, 0)
    run = stored(workspace)
    assert [step.arguments_raw for step in run.steps] == blocks
    assert [json.loads(step.arguments_json) for step in run.steps] == [{"command": block} for block in blocks]
    assert [step.result for step in run.steps] == answers
    codes = [re.match(r"<returncode>(\d+)", answer) for answer in answers]
    expected = ["ok" if code is None or code[1] == "0" else "error" for code in codes]
    assert [step.status for step in run.steps] == expected
    assert expected.count("error") == 2
    assert [step.status_evidence for step in run.steps] == ["exit_code"] * 9 + ["result"]
    assert (run.outcome, run.started_at, run.task_text) == (None, None, raw[1]["content"])


def test_mini_1_wrong_answers_and_timeouts(write):
    block = "```bash\n{}\n```".format
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": "no block"},
        {"role": "user", "content": "Please always provide EXACTLY ONE action"},
        {"role": "assistant", "content": block("sleep 99")},
        {"role": "user", "content": "The last command <command>sleep 99</command> timed out and has been killed."},
        {"role": "assistant", "content": block("ls")},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na\n</output>"},
        {"role": "assistant", "content": block("pwd")},
    ]
    info = {"exit_status": "LimitsExceeded", "model_stats": {"instance_cost": 0.5}}
    path = write("t.json", json.dumps({"info": info, "messages": messages}))
    assert detect(Source(path)).format == "mini_swe"
    ((run,), _) = read(path)
    assert [(step.arguments_raw, step.status, step.status_evidence) for step in run.steps] == [
        ("sleep 99", "error", "text_rule"),
        ("ls", "ok", "exit_code"),
        ("pwd", "no_result", "none"),
    ]
    assert (run.cost_usd, run.outcome, len(run.messages)) == (0.5, None, 9)
    assert run.messages[3].role == "user"


def mini_2(tool_mode):
    commands = ["ls", "cat nope"]
    call_ids = ["c0", "c1"] if tool_mode else [None, None]
    actions = [{"command": c, **({"tool_call_id": i} if i else {})} for c, i in zip(commands, call_ids, strict=True)]
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}
    assistant = {
        "role": "assistant",
        "content": "both",
        "extra": {
            "actions": actions,
            "response": {"model": "m-2-dated", "usage": usage},
            "cost": 0.01,
            "timestamp": 1760000000.5,
        },
    }
    if tool_mode:
        assistant["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": c})}}
            for c, i in zip(commands, call_ids, strict=True)
        ]
    observations = [
        {
            "role": "tool" if tool_mode else "user",
            "content": f"<returncode>{code}</returncode>\n<output>\nx\n</output>",
            "extra": {"returncode": code, "raw_output": "x", "timestamp": 1760000000.5 + second, "exception_info": ""},
            **({"tool_call_id": call_id} if call_id else {}),
        }
        for code, second, call_id in [(0, 1, call_ids[0]), (1, 2, call_ids[1])]
    ]
    return {
        "info": {
            "config": {"model": {"model_name": "m-2"}},
            "model_stats": {"instance_cost": 0.01, "api_calls": 1},
            "exit_status": "Submitted",
            "mini_version": "2.0.0",
        },
        "instance_id": "owner__repo-3",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "fix it"},
            assistant,
            *observations,
            {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}},
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    }


@pytest.mark.parametrize("tool_mode", [True, False])
def test_mini_2(write, tool_mode):
    path = write("t.traj.json", json.dumps(mini_2(tool_mode), indent=2))
    assert detect(Source(path)).format == "mini_swe"
    (run,), rejects = read(path)
    assert rejects == []
    assert [(step.tool, json.loads(step.arguments_json), step.status, step.duration_s) for step in run.steps] == [
        ("bash", {"command": "ls"}, "ok", 1.0),
        ("bash", {"command": "cat nope"}, "error", 2.0),
    ]
    assert [(step.turn, step.ordinal) for step in run.steps] == [(0, 0), (0, 1)]
    assert (run.model, run.native_id, run.cost_usd, run.zone_in_log) == ("m-2", "owner__repo-3", 0.01, True)
    assert run.usage == Usage(input_tokens=100, output_tokens=7, cached_tokens=60)
    assert [message.role for message in run.messages] == ["system", "user", "assistant", "tool", "tool", "other"]
