"""Which host a base URL means, and that nothing goes anywhere else.

The preview of a run names the destination; the client checks every request
against it. Redirects are not followed, so the check is the whole story.
Knows no message and no key.
"""

from __future__ import annotations

import ipaddress
import urllib.request
from urllib.parse import urlsplit

import msgspec

from poc.errors import InputError, ModelError
from poc.prices import OPENAI_URL


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where requests go.

    `loopback`: the server runs on this machine, nothing leaves it.
    `encrypted`: HTTPS. `proxy`: host of the proxy that the environment sets
    for this destination, or None.
    """

    base_url: str
    scheme: str
    host: str
    port: int
    loopback: bool
    encrypted: bool
    proxy: str | None = None

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: what a request must match."""
        return (self.scheme, self.host, self.port)

    @property
    def name(self) -> str:
        """``host:port``, without the port where it is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(self.scheme) else f"{host}:{self.port}"


def destination(base_url: str | None) -> Destination:
    """Read a base URL; None is OpenAI's own.

    Raises `InputError` when it is no HTTP address, or when it carries a
    password or a query, since base URLs are stored and shown.
    """
    url = (base_url or OPENAI_URL).strip()
    where = f"base_url '{_without_secrets(url)}'"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError(f"The base URL cannot be read: {error}.", where=where, todo=_EXAMPLE) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("The base URL is not an http or https address.", where=where, todo=_EXAMPLE)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            "The base URL carries a password or a query; it is stored and shown, so it must not.",
            where=where,
            todo="Put the key into an environment variable and name that variable (api_key_env).",
        )
    host = parts.hostname.rstrip(".").lower()
    if host in ("0.0.0.0", "::"):
        raise InputError(
            f"'{host}' is an address to listen on, not one to call.", where=where, todo="Write 127.0.0.1 instead."
        )
    return Destination(
        base_url=url,
        scheme=parts.scheme,
        host=host,
        port=port or _default_port(parts.scheme),
        loopback=is_loopback(host),
        encrypted=parts.scheme == "https",
        proxy=None if is_loopback(host) else _proxy(parts.scheme, host),
    )


def is_loopback(host: str) -> bool:
    """True for localhost, its subdomains and the loopback addresses of IPv4 and IPv6."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check(allowed: Destination, scheme: str, host: str, port: int | None) -> None:
    """Raise `ModelError` unless a request goes to the configured destination."""
    actual = (scheme, host.rstrip(".").lower(), port or _default_port(scheme))
    if actual != allowed.origin:
        raise ModelError(
            f"A request to '{host}' was stopped: only {allowed.name} may be called.",
            where=f"base_url {allowed.base_url}",
            todo="If the other host is meant, make it the base URL and look at the preview again.",
        )


_EXAMPLE = "Write it like https://api.example.com/v1 or http://127.0.0.1:8080/v1."


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _proxy(scheme: str, host: str) -> str | None:
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(host):
        return None
    return urlsplit(proxy if "//" in proxy else f"//{proxy}").hostname


def _without_secrets(url: str) -> str:
    head, _, tail = url.partition("//")
    rest = tail.rsplit("@", 1)[-1] if tail else head
    return (f"{head}//{rest}" if tail else rest).split("?", 1)[0][:200]
