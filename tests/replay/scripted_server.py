"""A real chat-completions server over loopback whose answers come from a function of the request.

It streams like OpenAI's API and keeps every body, so that tests can read what
left and count what was answered. Used instead of a mock of the client.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 10,
    "total_tokens": 110,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


@dataclass
class Say:
    """One answer: text, calls as (name, arguments as text), or an HTTP error."""

    content: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    status: int = 200
    usage: dict[str, Any] | None = field(default_factory=lambda: dict(USAGE))
    simulated: str | None = None
    finish: str | None = None
    hang: bool = False


Policy = Callable[[dict[str, Any]], Say]


class ScriptedServer:
    """What was asked (`bodies`), and how many answers went out whole (`answered`)."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answered = 0
        self.lock = threading.Lock()
        self.base_url = ""
        self.gate: threading.Event | None = None
        """When set, answers beyond `gate_after` wait for it."""
        self.gate_after = 0
        self.gate_waits_for = 1
        """`reached_gate` is set when so many requests wait."""
        self.reached_gate = threading.Event()

    async def respond(self, request: Request) -> Response:
        body = json.loads(await request.body())
        with self.lock:
            self.bodies.append(body)
            self.keys.append(request.headers.get("authorization"))
            number = len(self.bodies)
        say = self.policy(body)
        if self.gate is not None and number > self.gate_after:
            if number >= self.gate_after + self.gate_waits_for:
                self.reached_gate.set()
            await asyncio.to_thread(self.gate.wait)
        if say.hang:
            while (await request.receive())["type"] != "http.disconnect":
                pass
        if say.status != 200:
            return JSONResponse({"error": {"message": f"scripted {say.status}"}}, status_code=say.status)
        headers = {} if say.simulated is None else {"x-poc-simulated": say.simulated}
        return StreamingResponse(self._events(body, say), media_type="text/event-stream", headers=headers)

    async def _events(self, body: dict[str, Any], say: Say) -> AsyncIterator[str]:
        def event(delta: dict[str, Any], finish: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return f"data: {json.dumps({'id': 'x', 'model': 'scripted-1', 'choices': [choice]})}\n\n"

        yield event({"role": "assistant", "content": say.content})
        made = sum(len(message.get("tool_calls") or ()) for message in body["messages"])
        for place, (name, arguments) in enumerate(say.calls):
            call = {"index": place, "id": f"c{made + place}", "type": "function"}
            yield event({"tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]})
        yield event({}, say.finish or ("tool_calls" if say.calls else "stop"))
        if say.usage is not None:
            yield f"data: {json.dumps({'id': 'x', 'model': 'scripted-1', 'choices': [], 'usage': say.usage})}\n\n"
        with self.lock:
            self.answered += 1
        yield "data: [DONE]\n\n"


def call_of(body: dict[str, Any]) -> tuple[str, int]:
    """Which model call a request is: the trial's nonce and the turn. Seen twice, it was paid twice."""
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    return body["messages"][0]["content"].split()[1], turn


@contextmanager
def scripted_server(policy: Policy, *, port: int = 0) -> Iterator[ScriptedServer]:
    """A running server; `base_url` says where."""
    state = ScriptedServer(policy)
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    # Connections wait in the backlog until the loop below takes them: nobody needs to poll for readiness.
    listening.listen(128)
    state.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    app = Starlette(routes=[Route("/v1/chat/completions", state.respond, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        if state.gate is not None:
            state.gate.set()
        server.should_exit = True
        thread.join()
        listening.close()
