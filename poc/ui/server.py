"""The simulated model on demand: a process of its own on loopback, used again while it is healthy.

A plan freezes the server's address, so a resumed experiment gets its server
back at the same port and with the same dial. Knows nothing of replays.
"""

from __future__ import annotations

import atexit
import time
import urllib.error
import urllib.request
from functools import cache
from urllib.parse import urlsplit

from poc import api, jobs
from poc.errors import PocError
from poc.ui.words import say

VERB = "simulate-model"
MODEL = "simulated-agent"
_PATIENCE_S = 20.0
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Loopback is never asked through a proxy."""


def simulated_server(workspace: api.Workspace, *, heed: float = 1.0) -> str:
    """The base URL of a healthy simulated model with this dial; started where there is none.

    Raises `PocError` when it does not start.
    """
    for job in jobs.jobs(workspace, VERB):
        address = _address(job)
        if job.running and _heed(job) == heed and address and healthy(address):
            return address
    return _started(workspace, port=0, heed=heed)


def bring_back(workspace: api.Workspace, base_url: str | None) -> None:
    """Start the simulated model that a plan was made with, where it is gone. Does nothing for any other server."""
    for job in jobs.jobs(workspace, VERB):
        if base_url and _address(job) == base_url:
            if not healthy(base_url):
                _started(workspace, port=urlsplit(base_url).port or 0, heed=_heed(job))
            return


def healthy(base_url: str) -> bool:
    """Whether a server answers at this address."""
    try:
        with _opener.open(f"{base_url}/models", timeout=2) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


def _started(workspace: api.Workspace, *, port: int, heed: float) -> str:
    job = jobs.start(workspace, VERB, ["--port", str(port), "--heed", str(heed)])
    _end_with_the_app()
    _mine.append((workspace, job))
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        address = _address(job)
        if address and healthy(address):
            return address
        if not job.running:
            break
        time.sleep(0.1)
    jobs.cancel(job, grace_s=2)
    raise job.error or PocError(say("replay.server_failed", seconds=int(_PATIENCE_S)), todo=say("replay.server_todo"))


def _address(job: jobs.Job) -> str | None:
    """Where it listens, as it said itself once it did."""
    return (job.result or {}).get("base_url")


def _heed(job: jobs.Job) -> float:
    return float(job.argv[job.argv.index("--heed") + 1]) if "--heed" in job.argv else 1.0


_mine: list[tuple[api.Workspace, jobs.Job]] = []


@cache
def _end_with_the_app() -> None:
    """A server that nobody uses any more goes with the app; one that a running replay needs stays."""

    def farewell() -> None:
        for workspace, job in _mine:
            if not any(other.running for other in jobs.jobs(workspace, "replay run")):
                jobs.cancel(job, force=True)

    atexit.register(farewell)
