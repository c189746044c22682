"""What the replay tests share: a workspace with a small log, subgoals, and a scripted agent for the desk."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import desk_world
from scripted_server import Say

from poc.ingest import import_logs
from poc.models import ModelSettings
from poc.progress import score
from poc.replay import BudgetLimits, Experiment, make_plan, store_plan
from poc.subgoals import parse_set, store_sets
from poc.workspace import Workspace

DESK = f"{Path(desk_world.__file__)}:Desk"
SUBGOALS = """
category: paint
runs: all
subgoals:
  - id: looked
    title: Item looked up
    done_when: {tool: look_up}
  - id: painted
    title: Item painted red
    done_when: {tool: paint, arguments: {"$.colour": {equals: red}}}
  - id: sent
    title: Item sent
    after: [painted]
    done_when: {tool: send}
"""
STEPS = [
    ("look_up", {"item": "{n}"}, {"item": "{n}", "colour": "white", "owner": "ann{n}@example.com"}),
    ("paint", {"item": "{n}", "colour": "red"}, {"painted": "{n}"}),
    ("send", {"item": "{n}"}, {"sent": "{n}", "times": 1}),
]


def logged_run(number: int, *, success: bool = True, trial: int = 0) -> dict[str, Any]:
    """One run as a chat log; a failed one never sends."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You work at a paint desk."},
        {"role": "user", "content": desk_world.TEXT.format(n=number)},
    ]
    for place, (name, arguments, result) in enumerate(STEPS if success else STEPS[:2]):
        filled = json.dumps(arguments).replace("{n}", str(number))
        call = {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": filled}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        text = json.dumps(result).replace("{n}", str(number))
        messages.append({"role": "tool", "tool_call_id": f"c{place}", "content": text})
    messages.append({"role": "assistant", "content": "Done."})
    return {
        "messages": messages,
        "run_id": f"run-{number}-{trial}",
        "task_id": f"t{number}",
        "reward": float(success),
    }


def fill(workspace: Workspace, folder: Path, *, tasks: int = 4, subgoals: str = SUBGOALS) -> Workspace:
    """Import a small log (even tasks fail in their second trial) and score it."""
    lines = [
        json.dumps(logged_run(number, success=trial == 0 or number % 2 == 1, trial=trial))
        for number in range(tasks)
        for trial in range(2)
    ]
    log = folder / "log.jsonl"
    log.write_text("\n".join(lines) + "\n")
    import_logs(workspace, [log])
    store_sets(workspace, [parse_set(subgoals)])
    score(workspace)
    return workspace


def planned(workspace: Workspace, base_url: str, **options: Any) -> Experiment:
    """A stored experiment at the desk."""
    chosen: dict[str, Any] = {
        "mode": "closed_loop",
        "environment": DESK,
        "model": settings(base_url),
        "budget": BudgetLimits(tokens=10_000_000),
        "concurrency": 4,
        "seed": 3,
    }
    chosen.update(options)
    if chosen["mode"] == "next_step":
        chosen["environment"] = None
    return store_plan(workspace, make_plan(workspace, **chosen))


def settings(base_url: str, **more: Any) -> ModelSettings:
    return ModelSettings(name="scripted-1", base_url=base_url, max_output_tokens=64, **{"max_retries": 0, **more})


def called(body: dict[str, Any]) -> list[str]:
    """The tools that the agent has called so far in a request."""
    return [call["function"]["name"] for m in body["messages"] for call in m.get("tool_calls") or ()]


def item_of(body: dict[str, Any]) -> str:
    """The item that the request is about."""
    request = next(m["content"] for m in body["messages"] if m["role"] == "user")
    found = re.search(r"item (\w+)", request)
    assert found
    return found[1]


def diligent(body: dict[str, Any]) -> Say:
    """Looks up, paints, sends, and says so."""
    item, past = item_of(body), called(body)
    if "look_up" not in past:
        return Say(calls=[("look_up", json.dumps({"item": item}))])
    if "paint" not in past:
        return Say(calls=[("paint", json.dumps({"item": item, "colour": "red"}))])
    if "send" not in past:
        return Say(calls=[("send", json.dumps({"item": item}))])
    return Say(content="Done.")


def forgetful(body: dict[str, Any]) -> Say:
    """Diligent, but stops now and then before the end, less often when the text shows an open point."""
    shown = "\n".join(str(m.get("content")) for m in body["messages"])
    chance = 0.05 if "[ ]" in shown else 0.35
    draw = random.Random(f"{body.get('seed')}:{len(body['messages'])}").random()
    return Say(content="I think that is all.") if called(body) and draw < chance else diligent(body)
