"""Result files of the Berkeley Function-Calling Leaderboard (BFCL).

One JSON object a line, although the file is named ``.json``: ``id``,
``result``, ``input_token_count``, ``output_token_count``, ``latency``
(seconds). ``result`` is a list of ``{tool: "<arguments as JSON>"}`` (parallel
calls of one answer), or text: a refusal, or in prompt mode calls written in
Python (``[f(a=1), g(b="x")]``), which are read if their arguments are plain
values. Multi-turn: ``result[turn][step]``, each step again a list of calls or
text, counts and latency nested likewise; ``inference_log`` may hold what the
tools answered (entries of role "tool" under ``step_n``).

The answers of the tools are otherwise not in the file, so calls have no
result; scores are in files of their own, so runs have no outcome; the model is
only in the folder's name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from poc.ingest.arguments import Arguments, from_value
from poc.ingest.jsonstream import compact
from poc.ingest.readers.assembly import Assembly, count, number, plain, word
from poc.ingest.readers.decoding import glimpse, loads
from poc.ingest.readers.records import Record, left_over, records
from poc.ingest.sources import Source
from poc.trajectory import Message, Reject, Run, Usage

NAME = "bfcl"
VERSION = 1

_TASK = re.compile(r"(.+?)_\d+(?:[-_].*)?")
_COUNTS = ("input_token_count", "output_token_count", "latency")
_LONGEST = 100_000


def sniff(sample: bytes, name: str) -> float:
    """By the fields of a result line."""
    heads = glimpse(sample).heads
    hits = sum("id" in head and "result" in head and sum(name in head for name in _COUNTS) >= 2 for head in heads)
    return 0.95 if hits and hits * 2 >= len(heads) else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each line."""
    for record in records(source, flat=True):
        if isinstance(record, Reject):
            yield record
        elif not isinstance(record.value, dict) or "result" not in record.value:
            yield record.reject("no result here")
        else:
            yield _run(record, record.value)


def _run(record: Record, value: dict[str, Any]) -> Run:
    run = Run(place=record.place, framework="bfcl")
    work = Assembly(run)
    run.native_id = run.task_key = word(value.get("id"))
    task = _TASK.fullmatch(run.native_id or "")
    run.category = task[1] if task else None
    answers = _answers(value.get("inference_log"))
    result = value["result"]
    nested = isinstance(result, list) and bool(result) and all(isinstance(turn, list) for turn in result)
    if nested:
        for turn, steps in enumerate(result):
            for step, said in enumerate(steps):
                _answer(work, said, (turn, step), answers.get((turn, step), []))
    else:
        _answer(work, result, (0, 0), [])
    usage = Usage(
        input_tokens=count(_sum(value.get("input_token_count"))),
        output_tokens=count(_sum(value.get("output_token_count"))),
    )
    run.usage = usage if usage != Usage() else None
    run.duration_s = number(_sum(value.get("latency")))
    run.metadata = left_over(value, "id", "result", *_COUNTS)
    return work.finish()


def _answer(work: Assembly, said: Any, place: tuple[int, int], answers: list[Any]) -> None:
    """One answer of the model: calls, or text that may hold calls."""
    calls = _calls(said)
    message: Message = work.message("assistant", None if isinstance(said, list) and calls else plain(said))
    for tool, arguments in calls:
        work.call(tool, arguments, turn=place, message=message)
    if len(answers) == len(calls):
        for answer in answers:
            work.result(plain(answer))


def _calls(said: Any) -> list[tuple[str, Arguments]]:
    if isinstance(said, str):
        return _from_python(said)
    found: list[tuple[str, Arguments]] = []
    for call in said if isinstance(said, list) else [said]:
        if isinstance(call, dict):
            found.extend((tool, from_value(arguments)) for tool, arguments in call.items())
    return found


def _from_python(text: str) -> list[tuple[str, Arguments]]:
    """Calls written in Python, all of them or none."""
    body = text.strip().removeprefix("```python").removeprefix("```").removesuffix("```").strip()
    if body[:1] != "[" or len(body) > _LONGEST:
        return []
    try:
        tree = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    found: list[tuple[str, Arguments]] = []
    for node in tree.elts if isinstance(tree, ast.List) else ():
        if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
            return []
        try:
            values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return []
        _, as_json, status = from_value(values)
        written = ", ".join(ast.get_source_segment(body, keyword) or "" for keyword in node.keywords)
        found.append((ast.unparse(node.func), (written, as_json, "repaired" if status == "parsed" else "unparsed")))
    return found


def _answers(log: Any) -> dict[tuple[int, int], list[Any]]:
    """What the tools answered, by turn and step, where the log of the inference was kept."""
    found: dict[tuple[int, int], list[Any]] = {}
    turns = [entry for entry in log if isinstance(entry, dict)] if isinstance(log, list) else []
    for turn, entry in enumerate(turns):
        for key, items in entry.items():
            if key.startswith("step_") and key[5:].isdigit() and isinstance(items, list):
                tools = [item for item in items if isinstance(item, dict) and item.get("role") == "tool"]
                found[turn, int(key[5:])] = [_content(item.get("content")) for item in tools]
    return found


def _content(content: Any) -> Any:
    if isinstance(content, str):
        value = loads(content.encode())
        return content if not isinstance(value, str) else value
    return compact(content)


def _sum(value: Any) -> float | int | None:
    """A number, or the sum of nested lists of numbers; None where anything else is among them."""
    if not isinstance(value, list):
        return None if isinstance(value, bool) or not isinstance(value, int | float) else value
    parts = [_sum(part) for part in value]
    return None if not parts or any(part is None for part in parts) else sum(part for part in parts if part is not None)
