"""Reading error bodies and waits in the shapes that servers use; the room's names and its cheap import."""

from __future__ import annotations

import subprocess
import sys
import time
from email.utils import formatdate

import pytest

import poc.models
from poc.models.failures import from_error_event, from_status, read_body, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
    ],
)
def test_waits(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_wait_until_a_date():
    wait = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert wait is not None
    assert 57 < wait <= 60


@pytest.mark.parametrize(
    ("body", "said", "code", "param"),
    [
        ({"error": {"message": "no", "code": "c", "param": "seed"}}, "no", "c", "seed"),
        ({"message": "no", "code": 400}, "no", "400", None),
        ({"error": "plain"}, "plain", None, None),
        ({"detail": [{"msg": "extra"}]}, '[{"msg":"extra"}]', None, None),
        ([{"error": {"message": "no", "status": "UNAVAILABLE"}}], "no", "UNAVAILABLE", None),
        ("  two\n lines ", "two lines", None, None),
        ({}, "", None, None),
        (None, "", None, None),
    ],
)
def test_error_bodies(body, said, code, param):
    assert read_body(body) == (said, code, param)


def test_long_bodies_are_bounded():
    assert len(read_body("x" * 10_000)[0]) == 300


@pytest.mark.parametrize(
    ("status", "retry", "charged"),
    [(429, True, False), (500, True, False), (502, True, True), (504, True, True), (529, True, False),
     (400, False, False), (401, False, False), (404, False, False), (422, False, False), (501, False, False)],
)  # fmt: skip
def test_what_is_tried_again_and_what_may_be_charged(status, retry, charged):
    failure = from_status(status, {}, {}, model="m", key_hint="the key")
    assert (failure.retry, failure.charged) == (retry, charged)
    assert failure.todo


@pytest.mark.parametrize(
    ("error", "kind", "retry"),
    [
        ({"message": "busy", "type": "overloaded_error"}, "server", True),
        ({"message": "slow", "code": "rate_limit_exceeded"}, "rate_limit", True),
        ({"message": "pay", "code": "insufficient_quota"}, "quota", False),
        ({"message": "bad", "type": "invalid_request_error"}, "request", False),
        ({"message": "bad", "code": 401}, "key", False),
        ("just text", "server", True),
    ],
)
def test_errors_inside_a_stream(error, kind, retry):
    failure = from_error_event(error, model="m", key_hint="the key")
    assert (failure.kind, failure.retry, failure.charged) == (kind, retry, True)


def test_the_rooms_names():
    assert sorted(poc.models.__all__) == poc.models.__all__
    assert all(hasattr(poc.models, name) for name in poc.models.__all__)


def test_importing_the_room_loads_neither_sdk_nor_prices():
    code = "import sys, poc.models; print([n for n in ('openai', 'httpx2', 'genai_prices') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
