"""What went wrong with a call: whether to try again, how long to wait, what to tell the reader.

Knows status codes, error bodies and transport errors; knows no budget and
sends nothing.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import msgspec

from poc.errors import ModelError

Kind = Literal[
    "key", "permission", "quota", "rate_limit", "not_found", "request", "redirect",
    "unreachable", "timeout", "cut", "malformed", "server",
]  # fmt: skip

# Nothing about these changes between one call and the next.
_STOPS_ALL: frozenset[Kind] = frozenset({"key", "permission", "quota", "not_found", "redirect", "unreachable"})

_RETRY_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
# A gateway gave up waiting, but the model behind it may have worked and be charged.
_MAYBE_CHARGED = frozenset({408, 502, 504, 524})
_QUOTA_CODES = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded")
_SHOWN = 300


class CallFailed(ModelError):
    """A model call that failed for good, after its retries where it had any.

    kind: what sort of failure. http_status: None when there was no response.
    retries, backoff_s: attempts before the last one and the waiting between.
    stops_everything: every other call would fail in the same way.
    """

    def __init__(
        self,
        what: str,
        *,
        kind: Kind,
        where: str | None = None,
        todo: str | None = None,
        http_status: int | None = None,
        retries: int = 0,
        backoff_s: float = 0.0,
    ) -> None:
        super().__init__(what, where=where, todo=todo)
        self.kind: Kind = kind
        self.http_status = http_status
        self.retries = retries
        self.backoff_s = backoff_s

    @property
    def stops_everything(self) -> bool:
        """True when going on with other trials would only repeat this failure."""
        return self.kind in _STOPS_ALL


class Failure(msgspec.Struct, kw_only=True):
    """One failed attempt.

    wait_s: what the server asked for, else None. charged: whether tokens may
    have been billed although no usage came back.
    """

    kind: Kind
    what: str
    todo: str | None = None
    retry: bool = False
    wait_s: float | None = None
    charged: bool = True
    status: int | None = None
    param: str | None = None
    said: str = ""


def from_status(status: int, body: Any, headers: Mapping[str, str], *, model: str, key_hint: str) -> Failure:
    """A response that is no answer. key_hint: where the key comes from, for the reader."""
    said, code, param = read_body(body)
    tail = f": {said}" if said else "."

    def failure(kind: Kind, what: str, todo: str | None, *, retry: bool = False) -> Failure:
        return Failure(
            kind=kind,
            what=f"{what} (HTTP {status}){tail}",
            todo=todo,
            retry=retry,
            wait_s=retry_after(headers) if retry else None,
            charged=status in _MAYBE_CHARGED,
            status=status,
            param=param,
            said=said,
        )

    if status == 401:
        return failure("key", "The server refused the key", f"Check {key_hint}.")
    if status == 403:
        return failure(
            "permission",
            "The server does not allow this call",
            f"Check that the key may use '{model}'; it comes from {key_hint}.",
        )
    if status == 404:
        return failure(
            "not_found",
            f"The server knows no model '{model}', or no such path",
            "Check the model's name and the base URL; it usually ends in /v1.",
        )
    if status == 402 or (status == 429 and any(word in f"{code} {said}".lower() for word in _QUOTA_CODES)):
        return failure("quota", "The account's quota is used up", "Check the plan and billing, then resume.")
    if 300 <= status < 400:
        target = headers.get("location", "another address")
        return failure(
            "redirect",
            f"The server sends calls on to {target[:_SHOWN]}, which is not followed",
            "If that address is meant, make it the base URL and look at the preview again.",
        )
    if status == 429:
        return failure("rate_limit", "The server limits the rate of calls", "Lower the concurrency.", retry=True)
    if status in _RETRY_STATUS:
        kind: Kind = "timeout" if status == 408 else "server"
        return failure(kind, "The server failed", "Try again later; finished calls are kept.", retry=True)
    if status >= 500:
        return failure("server", "The server failed", "Look into the server's own log.")
    return failure("request", "The server refused the request", "Change the setting that the server names.")


def from_error_event(error: Any, *, model: str, key_hint: str) -> Failure:
    """An error that arrived inside a stream, after HTTP 200."""
    said, code, _ = read_body(error)
    status = int(code) if code and code.isdigit() else None
    if status is None:
        words = f"{code or ''} {error.get('type') or '' if isinstance(error, Mapping) else ''}".lower()
        known = {"quota": 402, "rate_limit": 429, "overloaded": 529, "invalid_request": 400, "authentication": 401}
        status = next((number for word, number in known.items() if word in words), 500)
    failure = from_status(status, error, {}, model=model, key_hint=key_hint)
    failure.what = f"The stream broke off with an error: {said or 'no reason given'}"
    failure.charged = True
    failure.status = 200
    return failure


def from_transport(error: BaseException, *, host: str, reached: bool) -> Failure:
    """A connection that could not be made, or broke. reached: the server has answered before."""
    causes = _chain(error)
    names = {type(cause).__name__ for cause in causes}
    if names & {"ConnectError", "ConnectTimeout"}:
        unknown_host = any(isinstance(cause, socket.gaierror) for cause in causes)
        return Failure(
            kind="unreachable",
            what=f"The server {host} cannot be reached" + (": no such host." if unknown_host else "."),
            todo="Check the base URL, that the server runs, and the network.",
            # A server that never answered is a wrong address, not a hiccup.
            retry=reached and not unknown_host,
            charged=False,
        )
    if any(isinstance(cause, TimeoutError) for cause in causes) or any("Timeout" in name for name in names):
        return Failure(kind="timeout", what=f"The server {host} did not answer in time.", todo=_TIMEOUT, retry=True)
    return Failure(
        kind="cut",
        what=f"The connection to {host} broke off.",
        todo="Try again later; finished calls are kept.",
        retry=True,
    )


_TIMEOUT = "Raise the time limit of a call (timeout_s), or lower the concurrency."


def timed_out(host: str, seconds: float) -> Failure:
    """An attempt that took longer than allowed."""
    what = f"The server {host} did not finish its answer within {seconds:g} s."
    return Failure(kind="timeout", what=what, todo=_TIMEOUT, retry=True)


def cut(host: str) -> Failure:
    """A stream that ended before the answer did."""
    return Failure(
        kind="cut",
        what=f"The answer of {host} was cut off.",
        todo="Try again later; finished calls are kept.",
        retry=True,
    )


def malformed(host: str, detail: str) -> Failure:
    """A response that is no chat completion."""
    return Failure(
        kind="malformed",
        what=f"The answer of {host} cannot be read: {detail[:_SHOWN]}.",
        todo="Check that the base URL is that of an OpenAI-compatible server.",
        retry=True,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: ``retry-after-ms``, seconds or an HTTP date; None when it does not."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if not text:
            continue
        try:
            wait = float(text) * scale
        except ValueError:
            try:
                wait = parsedate_to_datetime(text).timestamp() - time.time()
            except ValueError:
                continue
        if wait == wait:  # not NaN
            return max(0.0, wait)
    return None


def read_body(body: Any) -> tuple[str, str | None, str | None]:
    """What an error body says, its code and the parameter it names, in the shapes that servers use."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping):
        inner = body.get("error")
        if isinstance(inner, Mapping):
            body = inner
        elif isinstance(inner, str):
            return _one_line(inner), None, None
        said = next((body[key] for key in ("message", "detail", "msg") if body.get(key)), "")
        code = body.get("code") if body.get("code") is not None else body.get("status", body.get("type"))
        param = body.get("param")
        return (
            _one_line(said if isinstance(said, str) else msgspec.json.encode(said).decode()),
            None if code is None else str(code),
            param if isinstance(param, str) else None,
        )
    return (_one_line(body) if isinstance(body, str) else ""), None, None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and len(chain) < 10:
        chain.append(current)
        current = current.__cause__ or current.__context__
    return chain
