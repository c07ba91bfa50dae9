"""Where a server listens: its parts, whether that is this machine, and what one short question brings."""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from collector.contract.errors import DossierError
from collector.contract.protocol import ServerChoice

HOST = "127.0.0.1"
"""Where started servers listen, and nowhere else."""
PAGE_BYTES = 4 << 20
"""Read of one page at most."""


class Address(NamedTuple):
    """Where a server listens."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


class Page(NamedTuple):
    """What a question brought: the status, and the text of an answer with status 200; else why there was no answer."""

    status: int | None
    text: str | None
    fault: str


def page_of(
    address: Address, path: str, *, timeout_s: float, headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Page:  # fmt: skip
    """Return what one GET of the path brings, or a POST of JSON where there is a body; PAGE_BYTES at most are read."""
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=timeout_s)
    try:
        connection.request(
            "GET" if body is None else "POST", address.path + path, body=body,
            headers={**(headers or {}), "Content-Type": "application/json", "Connection": "close"},
        )  # fmt: skip
        answer = connection.getresponse()
        text = answer.read(PAGE_BYTES)
    except (OSError, http.client.HTTPException) as fault:
        return Page(None, None, f"{type(fault).__name__}: {fault}")
    finally:
        connection.close()
    return Page(answer.status, text.decode("utf-8", "replace") if answer.status == http.client.OK else None, "")


def address_of(url: str) -> Address:
    """Return the parts of a server's url. Raises DossierError for one that is no http or https address."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise DossierError(
            f"{re.sub(r'[^/@]*@', '...@', url)!r} is no address of a server",  # what stands before @ may be a password
            next_step="write scheme, host, port, e.g. http://127.0.0.1:8000, and the path before /v1 if there is one",
        )
    usual = 443 if parts.scheme == "https" else 80
    return Address(parts.scheme, parts.hostname, port or usual, parts.path.rstrip("/"))


def is_loopback(host: str) -> bool:
    """Return whether every address of a host is this machine's own loopback; a name nobody knows is not."""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError:
        return False
    return all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found)


def ports_here(servers: Iterable[ServerChoice]) -> list[int]:
    """Return where servers with `url` listen on this machine's loopback: they run here, and nobody started them."""
    addresses = [address_of(server.url) for server in servers if server.url is not None]
    return [address.port for address in addresses if is_loopback(address.host)]


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def listens(host: str, port: int) -> bool:
    """Return whether anybody listens there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0
