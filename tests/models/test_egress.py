"""Where a base URL leads, and that nothing goes elsewhere."""

from __future__ import annotations

import pytest

from poc.errors import InputError, ModelError
from poc.models import destination
from poc.models.egress import check, is_loopback


@pytest.mark.parametrize(
    ("url", "name", "loopback", "encrypted"),
    [
        (None, "api.openai.com", False, True),
        ("https://api.openai.com/v1", "api.openai.com", False, True),
        ("http://127.0.0.1:8080/v1", "127.0.0.1:8080", True, False),
        ("http://localhost", "localhost", True, False),
        ("http://[::1]:9/v1", "[::1]:9", True, False),
        ("http://LOCALHOST.:9", "localhost:9", True, False),
        ("https://Gateway.Example:8443/x", "gateway.example:8443", False, True),
        ("http://10.0.0.7/v1", "10.0.0.7", False, False),
        ("http://127.0.0.1.example.org/v1", "127.0.0.1.example.org", False, False),
    ],
)
def test_hosts(url, name, loopback, encrypted, monkeypatch):
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    found = destination(url)
    assert (found.name, found.loopback, found.encrypted, found.proxy) == (name, loopback, encrypted, None)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("api.openai.com/v1", "not an http"),
        ("ftp://x.org", "not an http"),
        ("http://", "not an http"),
        ("http://x.org:port", "cannot be read"),
        ("https://user:pa55word@x.org/v1", "password or a query"),
        ("https://x.org/v1?api-key=pa55word", "password or a query"),
        ("http://0.0.0.0:8000/v1", "address to listen on"),
    ],
)
def test_bad_addresses_are_named_without_their_secrets(url, message):
    with pytest.raises(InputError, match=message) as caught:
        destination(url)
    assert caught.value.todo
    assert "pa55word" not in str(caught.value)


def test_a_proxy_is_named(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert destination("https://api.example.com/v1").proxy == "proxy.example"
    assert destination("https://inside.example/v1").proxy is None
    assert destination("http://localhost:1/v1").proxy is None


def test_only_the_configured_host_may_be_called():
    allowed = destination("https://api.example.com/v1")
    check(allowed, "https", "API.example.com", None)
    check(allowed, "https", "api.example.com", 443)
    for scheme, host, port in (("https", "evil.example", None), ("http", "api.example.com", None)):
        with pytest.raises(ModelError, match=r"only api\.example\.com"):
            check(allowed, scheme, host, port)
    with pytest.raises(ModelError):
        check(allowed, "https", "api.example.com", 8443)


def test_loopback():
    assert is_loopback("127.8.9.1")
    assert is_loopback("a.localhost")
    assert not is_loopback("localhost.example")
    assert not is_loopback("192.168.0.1")
