"""What a trace says of its run as a whole: task, times, model, tokens, cost, and what goes into the metadata.

Tokens and cost count on model calls; a call that tells none makes the sum
unknown. Where no call tells any, an agent that stands on top may. Knows nodes,
no format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from poc.ingest.readers.assembly import is_uuid, total
from poc.ingest.readers.nodes import Node, Score, scores_as_data
from poc.ingest.readers.trace_tree import Tree
from poc.ingest.times import seconds_between
from poc.trajectory import Run

_NAMES_KEPT = 20


def conclude(run: Run, tree: Tree, main: list[Node], task_text: Callable[[], str | None] | None) -> None:
    """Fill in what holds for the whole run. main: the model calls that no subagent made."""
    run.task_text = next((m.content for m in run.messages if m.role == "user" and m.content), None)
    if run.task_text is None and task_text is not None:
        run.task_text = task_text()
    run.native_id_is_global = _is_global(run.native_id)
    _times(run, tree.nodes)
    names = _counted(node.answered_by for node in main or tree.calls)
    names = names or _counted(node.answered_by for node in tree.agents)
    run.model = max(names, key=lambda name: names[name]) if names else None
    told = [node.usage for node in tree.calls if node.usage is not None]
    if told and not any(node.usage is None and not node.failed for node in tree.calls):
        run.usage = total(told)
    else:
        run.usage = total(node.usage for node in tree.agents if node.usage is not None and tree.scope(node) is None)
    costs = [node.cost_usd for node in tree.calls if node.cost_usd is not None]
    run.cost_usd = sum(costs) if costs and len(costs) == len(tree.calls) else None
    if run.framework is None:
        nodes = (node for listed in (tree.tools, tree.agents, tree.calls) for node in listed)
        run.framework = next((node.scope for node in nodes if node.scope), None)


def metadata(tree: Tree, given: dict[str, Any], scores: list[Score], earlier: int) -> dict[str, Any]:
    """What no field of a run holds. earlier: calls that were made before this trace began."""
    found = {key: value for key, value in given.items() if value not in (None, "", [], {})}
    root = tree.root
    if root is not None:
        found.setdefault("root", root.name)
        if root.failed:
            found.setdefault("root_error", root.error or True)
    agents = list(dict.fromkeys(node.agent for node in tree.agents if node.agent))
    if agents:
        found.setdefault("agents", agents)
    models = {node.answered_by for node in tree.calls if node.answered_by}
    if len(models) > 1:
        found["models"] = sorted(models)
    others = _counted(node.name for node in tree.nodes if node.kind == "other")
    if others:
        commonest = sorted(others, key=lambda name: -others[name])[:_NAMES_KEPT]
        found["other_spans"] = {name: others[name] for name in commonest}
    if earlier:
        found["calls_before_this_trace"] = earlier
    if scores:
        found["scores"] = scores_as_data(scores)
    return found


def _times(run: Run, nodes: list[Node]) -> None:
    """From the first beginning to the last end, as far as they are known."""
    times = [node.start for node in nodes if node.start is not None]
    times += [node.end for node in nodes if node.end is not None]
    if times:
        run.started_at, run.ended_at = min(times), max(times)
        run.duration_s = seconds_between(run.started_at, run.ended_at)
    zones = {node.zone for node in nodes}
    run.zone_in_log = False if False in zones else True if True in zones else None


def _counted(names: Iterable[str | None]) -> dict[str, int]:
    """How often each name comes, in the order in which they come."""
    found: dict[str, int] = {}
    for name in names:
        if name:
            found[name] = found.get(name, 0) + 1
    return found


def _is_global(native_id: str | None) -> bool:
    """Whether the id is of a kind that no other run in the world has."""
    bare = (native_id or "").removeprefix("tr-").removeprefix("trace_")
    return is_uuid(bare) and len(set(bare)) > 4
