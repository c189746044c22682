"""ToolBench answers: a tree that a depth-first search of the model made.

One object: ``tree.tree`` with nodes ``node_type`` "Thought", "Action" and
"Action Input"; a call is an Action node (``description`` is the tool) with the
Action Input below it (``description`` is the JSON of the arguments,
``observation``, ``observation_code``: 0 went well, 3 answered, 4 gave up, any
other is a failure). ``answer_generation {query, finish_type, final_answer,
total_tokens, function[], valid_data}``.

Every call was really made, so every call is a step, in the order in which the
search came to it (``expand_num``, else the order of the tree). Only one branch
leads to the answer: ``metadata.chain`` names its steps and ``metadata.pruned``
those of the branches that were given up. ``finish_type`` "give_answer" says
that an answer was given, not that it is right: no outcome; a run that gave up
failed. ``total_tokens`` does not tell input from output and stays in the
metadata. Nothing has an id or a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from poc.ingest.arguments import ABSENT, from_value
from poc.ingest.readers.assembly import Assembly, plain, word
from poc.ingest.readers.decoding import glimpse
from poc.ingest.readers.records import Record, left_over, records
from poc.ingest.sources import Source
from poc.trajectory import Outcome, Reject, Run, ToolSchema

NAME = "toolbench"
VERSION = 1
FINISHED, GAVE_UP = 3, 4
_DEEPEST = 10_000


class _Call(msgspec.Struct):
    """An Action with its input, and whether the answer was reached through it."""

    tool: str | None
    thoughts: list[str]
    input: dict[str, Any] | None
    chain: bool
    order: float


def sniff(sample: bytes, name: str) -> float:
    """By the tree, or the node types in it where the sample is cut off."""
    first = glimpse(sample).first
    if "tree" in first and ("answer_generation" in first or "win" in first) and b'"node_type"' in sample:
        return 0.97
    return 0.97 if "answer_generation" in first and b'"finish_type"' in sample else 0.0


def read(source: Source) -> Iterator[Run | Reject]:
    """A run for each tree, usually one."""
    for record in records(source, flat=True):
        if isinstance(record, Reject):
            yield record
            continue
        value = record.value
        tree = value.get("tree") if isinstance(value, dict) else None
        root = tree.get("tree", tree) if isinstance(tree, dict) else None
        if not isinstance(root, dict):
            yield record.reject("no tree of calls here")
        else:
            yield _run(record, value, root)


def _run(record: Record, value: dict[str, Any], root: dict[str, Any]) -> Run:
    run = Run(place=record.place, framework="toolbench")
    work = Assembly(run)
    answer = value["answer_generation"] if isinstance(value.get("answer_generation"), dict) else {}
    if isinstance(answer.get("query"), str):
        work.message("user", answer["query"])
    calls = _in_order(_walk(root))
    for index, call in enumerate(calls):
        message = work.message("assistant", "\n".join(call.thoughts) or None)
        node = call.input or {}
        said = from_value(node.get("description")) if node.get("description") not in (None, "") else ABSENT
        work.call(call.tool, said, turn=index, message=message)
        observation = plain(node.get("observation"))
        if observation:
            code = node.get("observation_code")
            known = isinstance(code, int) and not isinstance(code, bool)
            good = known and code in (0, FINISHED, GAVE_UP)
            work.result(observation, exit_code=(0 if good else code) if known else None)
    run.tools = _tools(answer.get("function"))
    finish = answer.get("finish_type")
    if finish is not None and str(finish).startswith("give_up"):
        run.outcome = Outcome(value=0.0, provenance="log:answer_generation.finish_type")
    run.metadata = left_over(answer, "query", "function", "train_messages", "chain") | left_over(
        value, "tree", "answer_generation", "compare_candidates", "trys"
    )
    run.metadata["chain"] = [index for index, call in enumerate(calls) if call.chain]
    run.metadata["pruned"] = [index for index, call in enumerate(calls) if not call.chain]
    return work.finish()


def _walk(root: dict[str, Any]) -> list[_Call]:
    """The calls of the tree, parents before children. No recursion: a tree may be deep."""
    found: list[_Call] = []
    answers = _leads_to_answer(root)
    pile: list[tuple[dict[str, Any], list[str], _Call | None]] = [(root, [], None)]
    while pile and len(found) < _DEEPEST:
        node, thoughts, action = pile.pop()
        kind, said = node.get("node_type"), node.get("description")
        if kind == "Thought":
            thoughts = [*thoughts, str(said)] if said else thoughts
        elif kind == "Action":
            action = _Call(word(said), thoughts, None, id(node) in answers, 0.0)
            found.append(action)
            thoughts = []
        elif kind == "Action Input" and action is not None:
            if action.input is not None:  # the same action tried with other input
                action = _Call(action.tool, action.thoughts, None, False, 0.0)
                found.append(action)
            action.input = node
            action.chain = id(node) in answers
            number = node.get("expand_num")
            action.order = float(number) if isinstance(number, int | float) else 0.0
            action = None
        children = _children(node)
        pile.extend((child, thoughts, action) for child in reversed(children))
    return found


def _leads_to_answer(root: dict[str, Any]) -> set[int]:
    """The nodes on the way to the input that gave the answer; where several did, to the first."""
    pile: list[tuple[dict[str, Any], tuple[Any, ...] | None]] = [(root, None)]
    while pile:
        node, way = pile.pop()
        here = (id(node), way)
        if node.get("node_type") == "Action Input" and node.get("observation_code") == FINISHED:
            nodes: set[int] = set()
            step: tuple[Any, ...] | None = here
            while step is not None:
                nodes.add(step[0])
                step = step[1]
            return nodes
        children = _children(node)
        pile.extend((child, here) for child in reversed(children))
    return set()


def _in_order(calls: list[_Call]) -> list[_Call]:
    numbers = [call.order for call in calls]
    if all(numbers) and len(set(numbers)) == len(numbers):
        return sorted(calls, key=lambda call: call.order)
    return calls


def _tools(listed: Any) -> list[ToolSchema]:
    tools: list[ToolSchema] = []
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            said, shape = entry.get("description"), entry.get("parameters")
            tools.append(
                ToolSchema(
                    name=entry["name"],
                    description=said if isinstance(said, str) else None,
                    parameters=shape if isinstance(shape, dict) else None,
                )
            )
    return tools


def _children(node: dict[str, Any]) -> list[dict[str, Any]]:
    below = node.get("children")
    return [child for child in below if isinstance(child, dict)] if isinstance(below, list) else []
