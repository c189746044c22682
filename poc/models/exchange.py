"""One HTTP exchange with the configured server: send a body, read the answer, time it.

The `openai` SDK sends the request. The stream is read event by event without
the SDK's response models: building those would cost most of the CPU of a
call, and they refuse what half-compatible servers send.

Knows no budget, no price and no retry; a failed attempt is returned as a
`Failure`, never raised.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from poc.models import egress, failures
from poc.models.failures import CallFailed, Failure
from poc.models.parameters import encode
from poc.models.settings import ModelSettings
from poc.models.stream import Assembler

if TYPE_CHECKING:
    import httpx2
    import openai

_DEFAULT_KEY_ENV = "OPENAI_API_KEY"
_OPENAI_ONLY = ("openai-organization", "openai-project")
_CONNECT_S = 10.0
_DRAIN_S = 1.0


class Answer(msgspec.Struct, kw_only=True):
    """A complete response with its times in seconds. `first_token_s` is None when it was not streamed."""

    body: Assembler
    headers: Mapping[str, str]
    http_status: int
    sent_at: datetime
    first_token_s: float | None
    total_s: float


class Exchange:
    """A pool of connections to one server, and the key that goes with it."""

    def __init__(
        self, settings: ModelSettings, destination: egress.Destination, *, api_key: str | None, concurrency: int
    ) -> None:
        self._model = settings.name
        self._destination = destination
        self._key = _find_key(settings, destination, api_key)
        self._key_hint = "the key that was given" if api_key else f"the environment variable {settings.api_key_env}"
        self._reached = False
        self._sdk = self._open(concurrency)

    @property
    def official(self) -> bool:
        """True for OpenAI's own server."""
        return self._destination.host == "api.openai.com"

    def scrub(self, text: str) -> str:
        """A text without the key."""
        return text.replace(self._key, "***") if self._key else text

    async def aclose(self) -> None:
        """Close all connections."""
        await self._sdk.close()

    async def send(self, body: Mapping[str, Any], allowed_s: float) -> Answer | Failure:
        """Send `body` once; the whole answer must be there within `allowed_s` seconds."""
        import httpx2
        import openai

        host = self._destination.name
        sent_at, started = datetime.now(UTC), time.perf_counter()
        response: httpx2.Response | None = None
        try:
            async with asyncio.timeout(allowed_s):
                received: Any = await self._sdk.post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=encode(body),
                    # Only the bearer key: the SDK would fall back to an admin key from the environment.
                    options={"security": {"bearer_auth": True}},
                    stream=True,
                    stream_cls=openai.AsyncStream[Any],
                )
                response, self._reached = received, True
                return await self._read(received, sent_at, started)
        except openai.APIStatusError as error:
            self._reached = True
            said = error.body if error.body is not None else error.response.text
            return failures.from_status(
                error.status_code, said, error.response.headers, model=self._model, key_hint=self._key_hint
            )
        except TimeoutError:
            return failures.timed_out(host, allowed_s)
        except (openai.APIConnectionError, httpx2.HTTPError, httpx2.StreamError) as error:
            return failures.from_transport(error, host=host, reached=self._reached)
        except ValueError as error:
            return failures.malformed(host, f"it is not valid JSON ({error})")
        finally:
            if response is not None:
                await response.aclose()

    async def _read(self, response: httpx2.Response, sent_at: datetime, started: float) -> Answer | Failure:
        body = Assembler()
        first_token_s: float | None = None
        ended = False
        whole = "json" in response.headers.get("content-type", "")
        chunks = _whole(response) if whole else _events(response, body)
        async with aclosing(chunks):
            async for chunk in chunks:
                if chunk is None:
                    ended = True
                    break
                if not isinstance(chunk, Mapping):
                    return failures.malformed(self._destination.name, f"it holds a JSON {type(chunk).__name__}")
                if chunk.get("error") and not chunk.get("choices"):
                    return failures.from_error_event(chunk["error"], model=self._model, key_hint=self._key_hint)
                if body.feed(chunk) and first_token_s is None and not whole:
                    first_token_s = time.perf_counter() - started
            total_s = time.perf_counter() - started
            if not body.choices_seen:
                host = self._destination.name
                return failures.malformed(host, "it holds no choice") if ended or whole else failures.cut(host)
            if not (ended or whole or body.finish_reason):
                return failures.cut(self._destination.name)
            if ended:
                await _drain(chunks)
        return Answer(
            body=body,
            headers=response.headers,
            http_status=response.status_code,
            sent_at=sent_at,
            first_token_s=first_token_s,
            total_s=total_s,
        )

    def _open(self, concurrency: int) -> openai.AsyncOpenAI:
        # Imported late: the SDK takes a second, and most verbs ask no model.
        import httpx2
        import openai

        http = httpx2.AsyncClient(
            limits=httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
            # The attempt as a whole has a deadline; a limit a read would only add work to each chunk.
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            follow_redirects=False,
            event_hooks={"request": [self._guard]},
            # A proxy must not see what is meant to stay on this machine.
            trust_env=not self._destination.loopback,
        )
        return openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._destination.base_url,
            max_retries=0,
            timeout=http.timeout,
            http_client=http,
        )

    async def _guard(self, request: httpx2.Request) -> None:
        egress.check(self._destination, request.url.scheme, request.url.host, request.url.port)
        if not self._key:
            request.headers.pop("authorization", None)
        if not self.official:
            for name in _OPENAI_ONLY:
                request.headers.pop(name, None)


async def _events(response: httpx2.Response, body: Assembler) -> AsyncGenerator[Any, None]:
    """The decoded events of a stream; None at its proper end."""
    import httpx2

    # Some servers stream under another name; the reader insists on the right one.
    response.headers["content-type"] = "text/event-stream"
    try:
        async for event in httpx2.EventSource(response):
            if event.data.startswith("[DONE]"):
                yield None
            elif event.data:
                yield _decode(event.data)
    except httpx2.HTTPError:
        # Broken off after the answer was complete: it is all there, only its usage may be missing.
        if body.finish_reason is None:
            raise


async def _whole(response: httpx2.Response) -> AsyncGenerator[Any, None]:
    yield _decode((await response.aread()).decode("utf-8"))


async def _drain(chunks: AsyncGenerator[Any, None]) -> None:
    """Read what follows the end, so that the connection can be used again; not for long."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass
    except (TimeoutError, ValueError):
        return  # The answer is complete; only this connection is given up.


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)  # Lone surrogates, which models do write, are allowed here.


def _find_key(settings: ModelSettings, destination: egress.Destination, given: str | None) -> str | None:
    if given:
        return given
    variable = settings.api_key_env
    if destination.loopback:
        # OpenAI's key is no business of another program on this machine.
        return None if variable == _DEFAULT_KEY_ENV else os.environ.get(variable) or None
    key = os.environ.get(variable)
    if not key:
        raise CallFailed(
            f"There is no key for {destination.name}: the environment variable {variable} is not set.",
            kind="key",
            where=f"model '{settings.name}'",
            todo=f"Set {variable} to your key, or give another variable's name (api_key_env).",
        )
    return key.strip()
