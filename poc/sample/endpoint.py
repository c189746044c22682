"""The simulated model's endpoint: OpenAI's chat completions as an ASGI application.

It says in every answer that it is simulated: header ``x-poc-simulated: 1``
(``unknown-tools`` where the agent improvised on tools it does not know), model
``simulated-agent`` and ``system_fingerprint`` ``simulated``. The model name of
the request carries dials: ``simulated-agent@heed=0.8,memory=0.95``. Any key is
good except ``wrong``. Without ``seed`` in the request every call draws anew,
as real servers do. Faults: see `poc.sample.faults`.

Knows nothing of who asks (no arm, no task, no workspace) and nothing of ports.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from poc.errors import PocError
from poc.sample.agent import DEFAULT, Temper, respond
from poc.sample.completion import MODEL, Answer, chunks, make_answer, whole
from poc.sample.faults import FaultKind, Faults
from poc.sample.prompt_cache import PromptCache

SIMULATED = "x-poc-simulated"


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the server behaves. Times in seconds; the default is as fast as it can."""

    temper: Temper = DEFAULT
    first_token_s: float = 0.0
    """Wait before the first token of every answer."""
    prefill_s: float = 0.0
    """Wait for every thousand prompt tokens that were not cached."""
    per_token_s: float = 0.0
    """Wait for every token of the answer."""
    fault_rates: dict[str, float] = {}
    """Probability of each kind of fault (`poc.sample.faults.KINDS`)."""
    fault_seed: int = 0
    retry_after_s: float = 0.05
    """What a 429 tells the caller to wait."""


class _Refused(Exception):
    """A request that gets an error in OpenAI's form."""

    def __init__(self, status: int, message: str, kind: str, code: str | None = None, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": code}}


class _Server:
    """The routes with what they share: options, prompt cache, faults, and the wish to stop."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.cache = PromptCache()
        self.faults = Faults(options.fault_rates, options.fault_seed)
        self.stopping = asyncio.Event()

    async def health(self, request: Request) -> Response:
        return _json({"status": "ok", "simulated": True})

    async def models(self, request: Request) -> Response:
        _check_key(request)
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "simulated"}
        return _json({"object": "list", "data": [model]})

    async def completions(self, request: Request) -> Response:
        body = await request.body()
        _check_key(request)
        try:
            fault = self.faults.draw(body, request.headers.get("x-poc-fault"))
        except PocError as error:
            raise _Refused(400, str(error), "invalid_request_error") from error
        self._refuse(fault)
        wanted = _decode(body)
        if fault == "timeout":
            await self._hang(request)
            return _json({})
        answer = self._answer(wanted, fault)
        headers = {SIMULATED: "unknown-tools" if answer.unknown_tools else "1"}
        if wanted.get("stream"):
            usage = bool((wanted.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(
                self._stream(answer, usage, fault), media_type="text/event-stream", headers=headers
            )
        await self._wait(answer)
        content = msgspec.json.encode(whole(answer))
        if fault == "malformed":
            content = content[: len(content) // 2]
        if fault == "cut":
            # More is promised than comes: the connection breaks off in the middle.
            headers |= {"content-length": str(len(content))}
            return StreamingResponse(
                _cut_short(content[: len(content) // 2]), media_type="application/json", headers=headers
            )
        return Response(content, media_type="application/json", headers=headers)

    def _refuse(self, fault: FaultKind | None) -> None:
        if fault == "429":
            wait = {"retry-after": f"{self.options.retry_after_s:g}"}
            raise _Refused(429, "Too many requests (simulated).", "requests", "rate_limit_exceeded", **wait)
        if fault == "500":
            raise _Refused(500, "The server had an error (simulated).", "server_error")
        if fault == "401":
            raise _wrong_key()

    def _answer(self, wanted: dict[str, Any], fault: FaultKind | None) -> Answer:
        messages, tools = wanted["messages"], wanted.get("tools") or []
        seed = wanted.get("seed")
        reply = respond(
            messages,
            tools,
            seed=seed if seed is not None else random.SystemRandom().getrandbits(48),
            temper=self._temper(str(wanted.get("model"))),
            tool_choice=wanted.get("tool_choice"),
            parallel=wanted.get("parallel_tool_calls") is not False,
        )
        prompt, cached = self.cache.measure(messages, tools)
        most = wanted.get("max_completion_tokens") or wanted.get("max_tokens")
        return make_answer(
            reply,
            prompt_tokens=prompt,
            cached_tokens=cached,
            most_tokens=most,
            broken_arguments=fault == "bad_arguments",
        )

    def _temper(self, model: str) -> Temper:
        name, _, dials = model.partition("@")
        if name != MODEL:
            raise _Refused(
                404, f"The model '{name}' does not exist here; there is '{MODEL}'.", "invalid_request_error",
                "model_not_found",
            )  # fmt: skip
        try:
            return self.options.temper.changed(dials)
        except PocError as error:
            raise _Refused(400, str(error), "invalid_request_error") from error

    async def _wait(self, answer: Answer, share: float = 1.0, *, first: bool = True) -> None:
        usage, options = answer.usage, self.options
        seconds = share * options.per_token_s * usage["completion_tokens"]
        if first:
            fresh = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
            seconds += options.first_token_s + options.prefill_s * fresh / 1000
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def _stream(self, answer: Answer, include_usage: bool, fault: FaultKind | None) -> AsyncIterator[bytes]:
        parts = list(chunks(answer, include_usage=include_usage))
        await self._wait(answer, 0.0)
        for number, part in enumerate(parts):
            if number and self.options.per_token_s:
                await self._wait(answer, 1.0 / len(parts), first=False)
            text = b"data: " + msgspec.json.encode(part) + b"\n\n"
            if number == len(parts) // 2 and fault == "malformed":
                yield text[: len(text) // 2] + b"\n\n"
            elif number == len(parts) // 2 and fault == "cut":
                raise Cut
            else:
                yield text
        yield b"data: [DONE]\n\n"

    async def _hang(self, request: Request) -> None:
        """Keep the caller waiting until it gives up, or the server stops."""

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        waits = {asyncio.ensure_future(gone()), asyncio.ensure_future(self.stopping.wait())}
        _, left = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in left:
            wait.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class Cut(Exception):
    """Ends a stream in its middle: uvicorn then closes the connection."""


async def _cut_short(content: bytes) -> AsyncIterator[bytes]:
    yield content
    raise Cut


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    content = msgspec.json.encode(value)
    return Response(content, status, media_type="application/json", headers={SIMULATED: "1", **(headers or {})})


def _wrong_key() -> _Refused:
    return _Refused(401, "Incorrect API key provided (simulated).", "invalid_request_error", "invalid_api_key")


def _check_key(request: Request) -> None:
    if request.headers.get("authorization", "").removeprefix("Bearer ").strip() == "wrong":
        raise _wrong_key()


def _decode(body: bytes) -> dict[str, Any]:
    """The request, its shape checked as far as the server uses it."""
    try:
        wanted = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _Refused(400, f"The body is no JSON: {error}", "invalid_request_error") from error
    wrong = None
    if not isinstance(wanted, dict):
        wrong = "The body must be an object."
    elif not isinstance(wanted.get("messages"), list) or not wanted["messages"]:
        wrong = "'messages' must be a list with at least one message."
    elif not all(isinstance(message, dict) for message in wanted["messages"]):
        wrong = "Every message must be an object."
    elif not isinstance(wanted.get("tools") or [], list) or not all(_is_tool(t) for t in wanted.get("tools") or []):
        wrong = "'tools' must be a list of functions with a name."
    elif not isinstance(wanted.get("seed"), int | None):
        wrong = "'seed' must be a whole number."
    elif wanted.get("n") not in (None, 1):
        wrong = "'n' must be 1 here."
    if wrong:
        raise _Refused(400, wrong, "invalid_request_error")
    return wanted


def _is_tool(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("function"), dict) and bool(tool["function"].get("name"))


async def _on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, _Refused)
    return _json(error.body, error.status, error.headers)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {"error": {"message": error.detail, "type": "invalid_request_error", "param": None, "code": None}}
    return _json(body, error.status_code)


def make_app(options: ServerOptions = ServerOptions()) -> Starlette:
    """The ASGI application. Raises `InputError` for unknown faults."""
    server = _Server(options)
    app = Starlette(
        routes=[
            Route("/health", server.health),
            Route("/v1/models", server.models),
            Route("/v1/chat/completions", server.completions, methods=["POST"]),
        ],
        exception_handlers={_Refused: _on_refusal, HTTPException: _on_http_error},
    )
    app.state.server = server
    return app
