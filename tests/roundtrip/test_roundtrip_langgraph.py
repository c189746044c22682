"""A database that LangGraph's SqliteSaver writes, read back and compared with what the saver itself says of it.

The graph calls two tools at once, of which one fails; another thread stops at an interrupt, a third dies in a tool,
a fourth has a subgraph. LangGraph runs in a process of its own: importing it warns.
"""

import importlib.util
import json
import subprocess
import sys
import textwrap

import pytest

from poc.ingest.detect import detect
from poc.ingest.sources import Source
from poc.trajectory import Run

NEEDED = ("langgraph", "langchain_core", "langgraph.checkpoint.sqlite")


def missing():
    try:
        return any(importlib.util.find_spec(name) is None for name in NEEDED)
    except ModuleNotFoundError:
        return True


pytestmark = pytest.mark.skipif(
    missing(), reason="langgraph and langgraph-checkpoint-sqlite are not installed (extra: roundtrip)"
)

WRITER = textwrap.dedent(
    '''
    import json, sys, warnings
    warnings.filterwarnings("ignore")
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from langgraph.types import Send, interrupt

    @tool
    def add(x: int, y: int) -> str:
        """Add."""
        return str(x + y)

    @tool
    def broken(path: str) -> str:
        """Fail."""
        raise ValueError("no " + path)

    @tool
    def ask(question: str) -> str:
        """Ask a person."""
        return interrupt({"question": question})

    def ai(text, *calls):
        usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13, "input_token_details": {"cache_read": 4}}
        made = [{"name": name, "args": args, "id": ident} for ident, name, args in calls]
        return AIMessage(text, tool_calls=made, usage_metadata=usage, response_metadata={"model_name": "gpt-x"})

    def graph(script, caught, saver=None, apart=False):
        def think(state):
            return {"messages": [script[sum(isinstance(m, AIMessage) for m in state["messages"])]]}

        def route(state):
            last = state["messages"][-1]
            if not last.tool_calls:
                return END
            return "tools"

        made = StateGraph(MessagesState)
        made.add_node("think", think)
        made.add_node("tools", ToolNode([add, broken, ask], handle_tool_errors=caught))
        made.add_edge(START, "think")
        made.add_conditional_edges("think", route, ["tools", END])
        made.add_edge("tools", "think")
        return made.compile(checkpointer=saver)

    with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
        def start(app, thread, text):
            try:
                app.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}})
            except ValueError:
                pass

        both = ai("both", ("c1", "add", {"x": 1, "y": 2}), ("c2", "broken", {"path": "/x"}))
        start(graph([both, ai("done")], True, saver), "whole", "add up")
        start(graph([ai("", ("c3", "ask", {"question": "sure?"}))], True, saver), "stopped", "ask me")
        start(graph([ai("", ("c4", "broken", {"path": "/y"}))], False, saver), "failed", "break it")
        inner = graph([ai("sub adds", ("c5", "add", {"x": 3, "y": 4})), ai("sub done")], True)

        def delegate(state):
            inner.invoke({"messages": [HumanMessage("please add")]})
            return {"messages": [AIMessage("7, says the helper")]}

        outer = StateGraph(MessagesState)
        outer.add_node("helper", delegate)
        outer.add_edge(START, "helper")
        outer.add_edge("helper", END)
        start(outer.compile(checkpointer=saver), "delegated", "delegate")
        told = {}
        for thread in ("whole", "stopped", "failed", "delegated"):
            config = {"configurable": {"thread_id": thread}}
            last = saver.get_tuple(config)
            talk = last.checkpoint["channel_values"]["messages"]
            told[thread] = {
                "ts": last.checkpoint["ts"],
                "messages": [[message.type, message.content] for message in talk],
                "checkpoints": len(list(saver.list(config))),
            }
        print(json.dumps(told))
    '''
)


def test_threads_come_back(tmp_path):
    path = tmp_path / "graph.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    found = detect(Source(path))
    assert found.format == "langgraph"
    runs = {}
    for item in found.reader.read(Source(path)):
        assert isinstance(item, Run)
        runs[item.native_id] = item
    assert runs.keys() == told.keys()
    for thread, run in runs.items():
        assert run.records == told[thread]["checkpoints"]
        if thread != "delegated":
            roles = {"human": "user", "ai": "assistant", "tool": "tool"}
            outer = [[m.role, m.content or ""] for m in run.messages if m.role != "tool"]
            assert outer == [[roles[kind], text] for kind, text in told[thread]["messages"] if kind != "tool"]
    steps = {thread: [(s.tool, s.call_id, s.status, s.caller) for s in run.steps] for thread, run in runs.items()}
    assert steps == {
        "whole": [("add", "c1", "ok", "agent"), ("broken", "c2", "error", "agent")],
        "stopped": [("ask", "c3", "no_result", "agent")],
        "failed": [("broken", "c4", "error", "agent")],
        "delegated": [("add", "c5", "ok", "subagent")],
    }
    whole = runs["whole"]
    results = [text for kind, text in told["whole"]["messages"] if kind == "tool"]
    assert [step.result for step in whole.steps] == results
    assert whole.model == "gpt-x"
    assert (whole.usage.input_tokens, whole.usage.output_tokens, whole.usage.cached_tokens) == (20, 6, 8)
    assert whole.ended_at.isoformat() == told["whole"]["ts"]
    assert runs["stopped"].metadata["interrupt"][0]["value"] == {"question": "sure?"}
    assert "no /y" in runs["failed"].metadata["errors"][0]
