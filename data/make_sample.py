"""Make the sample's logs: the simulated agent at the sample world's order desk, written as two log formats.

    python data/make_sample.py [folder]

Writes ``orders.jsonl`` (OpenAI chat messages, one run a line, two runs a
task), ``orders.csv`` with its ``mapping.yaml`` (one call a row, a third run a
task), and ``outcomes.csv`` (outcomes of the runs in the table, to be joined).
As in real logs some things are broken: a line cut in the middle, a line that
is no JSON, a run that ends without a result, a row without a tool. The same
program makes the same bytes. Times are made up; the rest is what happened.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import json
import random
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from poc import tokens
from poc.sample.drive import Attempt, attempt, request_tools
from poc.sample.tasks import SampleTask, all_tasks
from poc.sample.world import World

MODEL = "simulated-agent"
ZONE = timezone(timedelta(hours=1))
START = datetime(2025, 6, 16, 8, 0, tzinfo=ZONE)
CHAT_TRIALS, TABLE_TRIAL = (0, 1), 2
LOST_RESULT = ("delivery-03", 1)
"""The chat run that breaks off at a call, without its result and without a reward."""
MAPPING = """\
# Which column of orders.csv holds what.
run_id: session
task_key: ticket
trial: attempt
task_text: request
category: queue
step: n
call_id: call
execution_id: span
tool: action
arguments: input
result: output
started_at: begun
ended_at: ended
model: agent_model
"""
COLUMNS = [
    "session", "ticket", "attempt", "queue", "request", "n", "call", "span", "action", "input", "output", "begun",
    "ended", "agent_model",
]  # fmt: skip


def main(folder: Path) -> None:
    """Write all files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    attempts = asyncio.run(_attempts())
    chat = [one for one in attempts if one[1] in CHAT_TRIALS]
    table = [one for one in attempts if one[1] == TABLE_TRIAL]
    (folder / "orders.jsonl").write_text("".join(_chat_lines(chat)), encoding="utf-8")
    with (folder / "orders.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(_table_rows(table))
    with (folder / "outcomes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["run_id", "outcome"])
        writer.writerows([_session(result), int(result.success)] for result, _ in table)
    (folder / "mapping.yaml").write_text(MAPPING, encoding="utf-8")


async def _attempts() -> list[tuple[Attempt, int]]:
    """Three runs of every task, in the order of the day."""
    runs = [
        (await attempt(task, _seed(task, trial)), trial)
        for task in all_tasks().values()
        for trial in (*CHAT_TRIALS, TABLE_TRIAL)
    ]
    random.Random("order of the day").shuffle(runs)
    return runs


def _seed(task: SampleTask, trial: int) -> int:
    return int.from_bytes(hashlib.sha256(f"logs:{task.key}:{trial}".encode()).digest()[:4], "big")


def _clock(result: Attempt) -> Iterator[datetime]:
    """A time for every message: a few seconds for the model, less for a tool."""
    rng = random.Random(f"clock:{result.seed}")
    now = START + timedelta(seconds=rng.randrange(9 * 3600))
    for message in result.messages:
        wait = {"assistant": rng.uniform(0.8, 4.0), "tool": rng.uniform(0.05, 0.6)}.get(message["role"], 0.0)
        now += timedelta(milliseconds=round(1000 * wait))
        yield now


def _chat_lines(attempts: list[tuple[Attempt, int]]) -> Iterator[str]:
    tools = request_tools(World())
    for number, (result, trial) in enumerate(attempts):
        messages = [
            message | {"timestamp": time.isoformat(timespec="milliseconds")}
            for message, time in zip(result.messages, _clock(result), strict=True)
        ]
        for place, message in enumerate(messages):
            if message["role"] == "assistant":
                message["usage"] = {
                    "prompt_tokens": tokens.count_request(result.messages[:place], tools),
                    "completion_tokens": tokens.count_message(message),
                }
        run: dict[str, Any] = {
            "task_id": result.task.key,
            "trial": trial,
            "category": result.task.category,
            "model": MODEL,
            "reward": result.success,
            "messages": messages,
        }
        if (result.task.key, trial) == LOST_RESULT:
            last_call = max(place for place, message in enumerate(messages) if message.get("tool_calls"))
            run |= {"reward": None, "messages": messages[: last_call + 1]}
        if number == 0:
            run["tools"] = tools
        line = json.dumps(run, ensure_ascii=False)
        if number == 40:
            yield line[: len(line) // 2] + "\n"
        if number == 80:
            yield "worker 3 restarted, resuming the queue\n"
        yield line + "\n"


def _session(result: Attempt) -> str:
    return f"desk-{result.seed:08x}"


def _table_rows(attempts: list[tuple[Attempt, int]]) -> Iterator[list[Any]]:
    for number, (result, trial) in enumerate(attempts):
        results = {m["tool_call_id"]: m["content"] for m in result.messages if m["role"] == "tool"}
        times = list(_clock(result))
        step = 0
        for message, time in zip(result.messages, times, strict=True):
            for call in message.get("tool_calls", ()):
                step += 1
                rng = random.Random(f"tool:{result.seed}:{step}")
                ended = time + timedelta(milliseconds=rng.randrange(50, 600))
                name = call["function"]["name"]
                yield [
                    _session(result), result.task.key, trial, result.task.category, result.task.text, step, call["id"],
                    f"{rng.getrandbits(64):016x}", "" if (number, step) == (30, 2) else name,
                    call["function"]["arguments"], results[call["id"]], time.isoformat(timespec="milliseconds"),
                    ended.isoformat(timespec="milliseconds"), MODEL,
                ]  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "logs")
