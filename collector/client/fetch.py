"""Asking a server outside any load: its metrics before and after, its version, its tokenizer. Blocks, measures nothing.

Redirects are not followed and no proxy is used: what answers is what the requests of the load reach.
"""

from __future__ import annotations

import http.client
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from collector.client.connection_pool import tls_context
from collector.client.messages import Target
from collector.client.request_head import given_headers
from collector.contract.errors import DossierError

_MOST_BYTES = 64 * 2**20


class FetchFault(OSError):
    """No answer came; the words name the address and why."""


class Fetched(NamedTuple):
    """An answer, whatever its status. stamp_ns: when all of it was there, by the machine's monotonic clock."""

    status: int
    content_type: str
    body: bytes
    stamp_ns: int

    @property
    def text(self) -> str:
        """The body as UTF-8; what is none is replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return what the body says. Raises ValueError for what is no JSON."""
        return msgspec.json.decode(self.body)


def target_of(url: str, headers: Sequence[tuple[str, str]]) -> tuple[Target, str]:
    """Return where a URL leads, and its path without a last slash, which goes in front of every path.

    Raises DossierError for what is no http or https address.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise _no_address(url, str(fault)) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _no_address(url, "it needs a scheme (http or https) and a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise _no_address(url, "it may hold scheme, host, port and path only")
    is_tls = parts.scheme == "https"
    target = Target(
        host=parts.hostname, port=port or (443 if is_tls else 80), is_tls=is_tls, headers=list(headers)
    )  # fmt: skip
    return target, parts.path.rstrip("/")


def fetch(target: Target, path: str, *, payload: Any = None, timeout_s: float = 30.0) -> Fetched:
    """GET a path, or POST a payload as JSON to it, with the target's headers. Raises FetchFault where nothing came.

    timeout_s: longest silence of the server, not the whole.
    """
    body = None if payload is None else msgspec.json.encode(payload)
    connection = _connection(target, timeout_s)
    try:
        headers = given_headers(target, accept="application/json, text/plain, */*;q=0.5", is_json=body is not None)
        connection.request("GET" if body is None else "POST", path, body, {**headers, "Connection": "close"})
        response = connection.getresponse()
        content = response.read(_MOST_BYTES + 1)
        stamp_ns = time.perf_counter_ns()
    except (OSError, http.client.HTTPException) as fault:
        scheme = "https" if target.is_tls else "http"
        raise FetchFault(f"{scheme}://{target.host}:{target.port}{path}: {type(fault).__name__}: {fault}") from None
    finally:
        connection.close()
    if len(content) > _MOST_BYTES:
        raise FetchFault(f"{path}: more than {_MOST_BYTES} bytes")
    return Fetched(response.status, response.getheader("Content-Type", ""), content, stamp_ns)


def _connection(target: Target, timeout_s: float) -> http.client.HTTPConnection:
    if not target.is_tls:
        return http.client.HTTPConnection(target.host, target.port, timeout=timeout_s)
    return http.client.HTTPSConnection(target.host, target.port, timeout=timeout_s, context=tls_context())


def _no_address(url: str, why: str) -> DossierError:
    return DossierError(
        f"{url!r} is no address of a server: {why}",
        next_step="write it like http://127.0.0.1:8000 or https://host/path",
    )
