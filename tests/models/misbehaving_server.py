"""A chat-completions server over loopback that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 7,
    "total_tokens": 57,
    "prompt_tokens_details": {"cached_tokens": 20},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


def delta(content: str | None = None, *, finish: str | None = None, **more: Any) -> dict[str, Any]:
    inner = {**({"content": content} if content is not None else {}), **more}
    return {"model": "served-model", "choices": [{"index": 0, "delta": inner, "finish_reason": finish}]}


def plain_events(text: str = "Hello there", usage: dict[str, Any] | None = USAGE) -> list[Any]:
    words = [delta(word) for word in text.split(" ")]
    tail = [] if usage is None else [{"model": "served-model", "choices": [], "usage": usage}]
    return [delta("", role="assistant"), *words, delta(finish="stop"), *tail, "[DONE]"]


@dataclass
class Act:
    """What the server does with one request. `events` are sent as SSE; strings go out as they are."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    events: list[Any] | None = None
    content_type: str = "text/event-stream"
    hang: bool = False
    hang_after: bool = False
    break_after: bool = False


class Server:
    """Scripted answers and a record of what was asked."""

    def __init__(self) -> None:
        self.base_url = ""
        self.stopping = threading.Event()
        self.reset()

    def reset(self) -> None:
        """Forget script and record, and let go of what still hangs."""
        self.stopping.set()
        self.stopping = threading.Event()
        self.asked = threading.Event()
        self.script: deque[Act] = deque()
        self.usual = Act(events=plain_events())
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.client_ports: list[int] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def answer(self, request: Request) -> Response:
        self.requests.append(json.loads(await request.body()))
        self.headers.append(dict(request.headers))
        self.asked.set()
        self.client_ports.append(request.client.port if request.client else 0)
        act = self.script.popleft() if self.script else self.usual
        if act.hang:
            await asyncio.to_thread(self.stopping.wait)
            return Response(status_code=500)
        if act.events is None:
            if isinstance(act.body, str):
                return Response(act.body, act.status, act.headers, media_type=act.content_type)
            return JSONResponse(act.body, act.status, act.headers)
        return StreamingResponse(self.stream(act), act.status, act.headers, media_type=act.content_type)

    async def stream(self, act: Act) -> AsyncIterator[str]:
        stopping = self.stopping
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            for event in act.events or []:
                text = event if isinstance(event, str) else json.dumps(event)
                yield f"data: {text}\n\n"
            if act.hang_after:
                await asyncio.to_thread(stopping.wait)
            if act.break_after:
                raise ConnectionAbortedError("broken off on purpose")
        finally:
            self.in_flight -= 1


class _Quiet(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """Signals belong to pytest."""


@contextmanager
def serving() -> Iterator[Server]:
    """The server in a thread of its own, on a free port."""
    server = Server()
    app = Starlette(routes=[Route("/v1/chat/completions", server.answer, methods=["POST"])])
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off")
    uvicorn_server = _Quiet(config)
    thread = threading.Thread(target=uvicorn_server.run, daemon=True)
    thread.start()
    while not uvicorn_server.started:
        thread.join(0.01)
        assert thread.is_alive(), "the test server did not start"
    port = uvicorn_server.servers[0].sockets[0].getsockname()[1]
    server.base_url = f"http://127.0.0.1:{port}/v1"
    try:
        yield server
    finally:
        server.reset()
        uvicorn_server.should_exit = True
        thread.join(5)
