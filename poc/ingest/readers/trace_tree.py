"""The tree of a trace, cleaned: each model call and each tool call once, and who acts under whom.

The same call is often seen at several layers (an agent framework, its client
library, the dispatcher of a tool). Layers are folded into one node, and what
one layer leaves out is taken from the other. Knows nodes, no format.
"""

from __future__ import annotations

from datetime import UTC, datetime

from poc.ingest.readers.nodes import Node
from poc.trajectory import Usage

_ACTORS = ("tool", "agent")
_ALL = ("llm", "tool", "agent")
_NEVER = datetime.max.replace(tzinfo=UTC)
_FIELDS = (
    "start",
    "end",
    "duration_s",
    "zone",
    "failed",
    "error",
    "call_id",
    "model",
    "wanted",
    "cost_usd",
    "response_id",
)


class Tree:
    """`calls` are the model calls, `tools` the tool calls, `agents` the agents, all in order of time, each once.

    Ids that name no parent in the trace are normal: such nodes stand on top.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self._by_id: dict[str, Node] = {}
        self._folded: dict[int, Node] = {}
        self._scopes: dict[int, Node | None] = {}
        self._wrappers: dict[int, list[Node]] = {}
        joined, instead = _events_joined(_latest(nodes))
        self.nodes = self._ordered(joined)
        self._by_id |= instead
        self._acting: dict[int, list[Node]] = {}
        calls = [node for node in self.nodes if node.kind == "llm"]
        for node in calls:
            above = self.above(node)
            if above is not None and above.kind == "llm":
                self._wrappers.setdefault(above.position, []).append(node)
        self.calls = self._leaves(calls)
        self.tools = self._tools_once()
        self.agents = [node for node in self.nodes if node.kind == "agent"]
        for node in self.calls:
            scope = self.scope(node)
            if scope is not None:
                self._acting.setdefault(scope.position, []).append(node)

    @property
    def root(self) -> Node | None:
        """The first node without a parent in this trace."""
        return next((node for node in self.nodes if self._parent(node) is None), None)

    def above(self, node: Node) -> Node | None:
        """The nearest ancestor that is a model call, a tool call or an agent."""
        return self._nearest(node, _ALL)

    def scope(self, node: Node) -> Node | None:
        """The nearest ancestor that is an agent or a tool: whose conversation this node belongs to."""
        if node.position not in self._scopes:
            self._scopes[node.position] = self._nearest(node, _ACTORS)
        return self._scopes[node.position]

    def delegated(self, scope: Node | None) -> bool:
        """Whether what happens in `scope` is done by a subagent.

        It is where a tool call, or an agent that makes model calls itself,
        stands above. Where an agent hangs under neither, but the whole of it
        lies within a tool call of an agent with another name, that call is
        taken to have started it: some tracers leave this link out.
        """
        seen: set[int] = set()
        top = scope
        while scope is not None and scope.position not in seen:
            seen.add(scope.position)
            if scope.kind == "tool":
                return True
            higher = self.scope(scope)
            if higher is not None and higher.kind == "agent" and higher.position in self._acting:
                return True
            scope = higher
        return top is not None and self._within_a_call(top)

    def _within_a_call(self, agent: Node) -> bool:
        if agent.start is None or agent.end is None or agent.agent is None:
            return False
        for tool in self.tools:
            if tool.start is None or tool.end is None or not tool.start <= agent.start <= agent.end <= tool.end:
                continue
            caller = self.scope(tool)
            if caller is not None and caller is not agent and caller.agent not in (None, agent.agent):
                return True
        return False

    def _parent(self, node: Node) -> Node | None:
        return self._by_id.get(node.parent) if node.parent is not None else None

    def _nearest(self, node: Node, kinds: tuple[str, ...]) -> Node | None:
        at = self._parent(node)
        if at is None:
            return None
        if at.kind in kinds:
            return self._folded.get(at.position, at) if at is not node else None
        seen = {node.position}
        while at is not None and at.position not in seen:
            seen.add(at.position)
            if at.kind in kinds:
                return self._folded.get(at.position, at)
            at = self._parent(at)
        return None

    def _ordered(self, nodes: list[Node]) -> list[Node]:
        self._by_id = {node.id: node for node in nodes if node.id is not None}
        if any(node.start is None for node in nodes):
            return sorted(nodes, key=lambda node: node.position)
        if len({node.start for node in nodes}) == len(nodes):  # no two began at once: the tree is not asked
            return sorted(nodes, key=_began)
        depths: dict[int, int] = {}
        for node in nodes:
            path: list[Node] = []
            at: Node | None = node
            while at is not None and at.position not in depths and at not in path:
                path.append(at)
                at = self._parent(at)
            depth = depths.get(at.position, 0) if at is not None else -1
            for step, member in enumerate(reversed(path), 1):
                depths[member.position] = depth + step

        def key(node: Node) -> tuple[datetime, int, int]:
            assert node.start is not None
            return node.start, depths[node.position], node.position

        return sorted(nodes, key=key)

    def _leaves(self, calls: list[Node]) -> list[Node]:
        """Model calls without the layers around them; two spans of one answer are one call."""
        leaves: list[Node] = []
        answers: dict[str, Node] = {}
        for node in calls:
            if node.position in self._wrappers:
                continue
            at = node
            seen = {node.position}
            while (higher := self.above(at)) is not None and higher.kind == "llm" and higher.position not in seen:
                seen.add(higher.position)
                if len(self._wrappers.get(higher.position, ())) > 1:
                    break
                _fill(node, higher)
                _join_content(node, higher)
                at = higher
            known = answers.get(node.response_id) if node.response_id is not None else None
            if known is not None:
                _fill(known, node)
                _join_content(known, node)
                continue
            if node.response_id is not None:
                answers[node.response_id] = node
            leaves.append(node)
        return leaves

    def _tools_once(self) -> list[Node]:
        """Tool calls; one inside another of the same name, or with the same id, is a layer of it."""
        tools: list[Node] = []
        by_id: dict[str, Node] = {}
        for node in self.nodes:
            if node.kind != "tool":
                continue
            outer = self.above(node)
            if outer is None or outer.kind != "tool" or not _same_call(outer, node):
                outer = by_id.get(node.call_id) if node.call_id is not None else None
                if outer is not None and not _layers(outer, node):
                    outer = None
            if outer is not None:
                _fill(outer, node)
                self._folded[node.position] = outer
                continue
            tools.append(node)
            if node.call_id is not None:
                by_id[node.call_id] = node
        return tools


def _began(node: Node) -> datetime:
    return node.start or _NEVER


def _events_joined(nodes: list[Node]) -> tuple[list[Node], dict[str, Node]]:
    """Nodes that are events of one call as one node; and by which node those that are gone are stood for."""
    groups: dict[tuple[str, str], Node] = {}
    kept: list[Node] = []
    instead: dict[str, Node] = {}
    for node in nodes:
        if node.same is None:
            kept.append(node)
    for node in sorted(
        (node for node in nodes if node.same is not None), key=lambda node: (node.start or _NEVER, node.position)
    ):
        base = groups.setdefault((node.kind, node.same or ""), node)
        if base is node:
            kept.append(node)
            continue
        if node.start is not None:
            # The spans of such events stay open till the run ends: the last event's beginning is the end.
            base.end = node.start
            base.duration_s = (node.start - base.start).total_seconds() if base.start else None
        _fill(base, node)
        _join_content(base, node)
        if node.id is not None:
            instead[node.id] = base
    return kept, instead


def _latest(nodes: list[Node]) -> list[Node]:
    """One node for each id: of a span that was exported twice, the one that has ended."""
    by_id: dict[str, Node] = {}
    kept: list[Node] = []
    for node in nodes:
        known = by_id.get(node.id) if node.id is not None else None
        if known is None:
            kept.append(node)
        elif known.end is None and node.end is not None:
            kept[kept.index(known)] = node
        else:
            continue
        if node.id is not None:
            by_id[node.id] = node
    return kept


def _same_call(outer: Node, inner: Node) -> bool:
    if outer.call_id is not None and inner.call_id is not None:
        return outer.call_id == inner.call_id
    return outer.name == inner.name or outer.stands_for_inner


def _layers(outer: Node, inner: Node) -> bool:
    """Whether two spans with one call id lie in one another in time; ids are used again in some logs."""
    if outer.name != inner.name or outer.start is None or outer.end is None or inner.start is None:
        return False
    return outer.start <= inner.start and inner.start < outer.end and (inner.end is None or inner.end <= outer.end)


def _fill(node: Node, other: Node) -> None:
    """Take from `other` what `node` does not say."""
    for name in _FIELDS:
        if getattr(node, name) is None:
            setattr(node, name, getattr(other, name))
    node.usage = _both(node.usage, other.usage)
    if node.schemas is None:
        node.schemas = other.schemas
    if node.arguments[2] == "absent":
        node.arguments = other.arguments
    if not node.has_result and other.has_result:
        node.result, node.has_result = other.result, True


def _both(mine: Usage | None, other: Usage | None) -> Usage | None:
    if mine is None or other is None:
        return mine or other
    merged = {
        name: getattr(mine, name) if getattr(mine, name) is not None else getattr(other, name)
        for name in Usage.__struct_fields__
    }
    return Usage(**merged)


def _join_content(node: Node, other: Node) -> None:
    """Messages that one layer leaves out are read from the other."""
    mine, theirs = node.content, other.content
    if mine is None or theirs is None:
        node.content = mine or theirs
        return

    def content():
        asked, answer = mine()
        if asked and answer:
            return asked, answer
        their_asked, their_answer = theirs()
        return asked or their_asked, answer or their_answer

    node.content = content
