"""Runs the simulated model's endpoint on loopback: for the shell, or in a thread for the length of a block.

Listens on this machine only. Knows ports and threads, not what is answered
(`poc.sample.endpoint`).
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import uvicorn
from starlette.applications import Starlette

from poc.errors import InputError, PocError
from poc.sample.endpoint import Cut, ServerOptions, make_app

__all__ = ["ServerOptions", "make_app", "running_server", "serve"]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _NoCuts(logging.Filter):
    """Keeps cuts that were asked for out of uvicorn's error log; everything else passes."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], Cut))


_no_cuts = _NoCuts()


class _Uvicorn(uvicorn.Server):
    """uvicorn that says when it listens, and wakes hanging requests before it shuts down."""

    def __init__(self, app: Starlette, on_listen: Callable[[], None]) -> None:
        super().__init__(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2, ws="none"))
        self.app, self.on_listen = app, on_listen
        logging.getLogger("uvicorn.error").addFilter(_no_cuts)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_listen()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app.state.server.stopping.set()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A bound socket and the base URL. Raises `InputError` for a host beyond loopback or a port that is taken."""
    if host not in _LOOPBACK:
        raise InputError(f"The simulated model listens on this machine only, not on '{host}'.", todo="Use 127.0.0.1.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named so that asyncio turns Nagle's algorithm off; else small answers wait 40 ms for an ACK.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except (OSError, OverflowError) as error:
        sock.close()
        raise InputError(
            f"Port {port} cannot be used: {getattr(error, 'strerror', None) or error}.",
            where=f"{host}:{port}",
            todo="Choose another port; 0 takes a free one.",
        ) from error
    shown = f"[{host}]" if ":" in host else host
    return sock, f"http://{shown}:{sock.getsockname()[1]}/v1"


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 8010,
    heed: float | None = None,
    options: ServerOptions = ServerOptions(),
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted (Ctrl-C, SIGTERM). `ready` is called with the base URL once it listens.

    heed: shorthand for the dial in ``options.temper``; port 0 takes a free
    one. Raises `InputError` for a port that is taken or a host that is not
    this machine.
    """
    if heed is not None:
        options = msgspec.structs.replace(options, temper=msgspec.structs.replace(options.temper, heed=heed))
    app = make_app(options)
    sock, base_url = _listen(host, port)
    try:
        _Uvicorn(app, lambda: ready(base_url) if ready else None).run(sockets=[sock])
    except KeyboardInterrupt:
        # uvicorn has shut down in order and hands the signal on; for a server it is the normal end.
        pass
    finally:
        sock.close()


@contextmanager
def running_server(options: ServerOptions = ServerOptions(), *, port: int = 0) -> Iterator[str]:
    """A server in a thread of this process for the length of a block; gives its base URL (ends in ``/v1``)."""
    sock, base_url = _listen("127.0.0.1", port)
    listening = threading.Event()
    server = _Uvicorn(make_app(options), listening.set)
    failure: list[BaseException] = []

    def run() -> None:
        try:
            server.run(sockets=[sock])
        except BaseException as error:
            failure.append(error)
        finally:
            listening.set()

    thread = threading.Thread(target=run, name="simulated-model", daemon=True)
    thread.start()
    try:
        listening.wait()
        if failure or not server.started:
            raise PocError("The simulated model's server did not start.") from (failure[0] if failure else None)
        yield base_url
    finally:
        server.should_exit = True
        thread.join()
        sock.close()
