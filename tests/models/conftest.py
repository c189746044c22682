"""One misbehaving server for all tests of this room, forgetful between them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from misbehaving_server import Server, serving


@pytest.fixture(scope="session")
def _running() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def server(_running: Server) -> Server:
    _running.reset()
    return _running
