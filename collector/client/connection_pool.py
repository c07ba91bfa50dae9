"""The connections of one job: opened before its window, used most recent first, replaced where the server closed one.

An idle connection may hold a thread of the server (llama.cpp's has few more than slots), so no more are open than the
load needs: as many as requests may be under way in a closed loop; in an open loop SPARES ready ones beside those in
use, for the next arrivals must not wait for a handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
from collections import deque
from typing import Any

from collector.client.connection import Connection
from collector.client.messages import Ending, Target

SPARES = 2
_OPENED_TOGETHER = 32
"""A server's queue of connections not yet accepted is often 100 or 128 long; what does not fit waits a second."""
_COLLECTED_TOGETHER = 256
"""asyncio's transports are cycles, about 2 KB each: this many that ended are collected while the collector is off."""
_Address = tuple[Any, ...]
"""As getaddrinfo gives it: host and port, of IPv6 flow and scope too."""


class NotConnected(Exception):
    """No connection came about; ending and words say why."""

    def __init__(self, ending: Ending, fault: str) -> None:
        super().__init__(fault)
        self.ending = ending
        self.fault = fault


class ConnectionPool:
    """spares: how many idle connections are kept open while the window runs."""

    def __init__(self, target: Target, *, connect_s: float, spares: int) -> None:
        self._target = target
        self._connect_s = connect_s
        self._spares = spares
        self._loop = asyncio.get_running_loop()
        self._addresses: list[tuple[socket.AddressFamily, _Address]] = []
        self._tls = _tls_context() if target.is_tls else None
        self._idle: deque[Connection] = deque()
        self._in_use: set[Connection] = set()
        self._openings: set[asyncio.Task[None]] = set()
        self._closed_by_server = 0
        """Not replaced yet."""
        self._ended_count = 0
        self.is_in_window = False
        self.connection_count = 0
        self.reconnect_count = 0

    async def open(self, count: int) -> None:
        """Open connections ahead; one that fails is left to the request that will need it."""
        for begin in range(0, count, _OPENED_TOGETHER):
            group = [self._open_idle() for _ in range(min(_OPENED_TOGETHER, count - begin))]
            await asyncio.gather(*group)

    async def acquire(self) -> tuple[Connection, bool]:
        """Return a connection, and whether it was open already. Raises NotConnected."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                self._in_use.add(connection)
                self._keep_spares()
                return connection, True
        return await self.fresh(), False

    async def fresh(self) -> Connection:
        """Return a connection that was opened for this call. Raises NotConnected."""
        connection = await self.connect()
        self._count()
        self._in_use.add(connection)
        return connection

    def release(self, connection: Connection, *, is_lost_to_server: bool) -> None:
        """Take a connection back; it is used again if its last answer allows that."""
        self._in_use.discard(connection)
        if connection.is_reusable:
            self._idle.append(connection)
        elif is_lost_to_server:
            self._closed_by_server += 1
        self._keep_spares()

    async def connect(self) -> Connection:
        """Return an open connection that belongs to no one. Raises NotConnected."""
        try:
            async with asyncio.timeout(self._connect_s):
                return await self._connect_to_any()
        except TimeoutError:
            raise NotConnected("connect_timeout", f"no connection within {self._connect_s:g} s") from None
        except (OSError, ssl.SSLError) as error:
            raise NotConnected("connect_failed", f"{type(error).__name__}: {error}") from None

    def close(self) -> None:
        """Close every connection and open no more."""
        self.is_in_window = False
        for opening in self._openings:
            opening.cancel()
        for connection in [*self._idle, *self._in_use]:
            connection.close()
        self._idle.clear()
        self._in_use.clear()

    def _ended(self, connection: Connection) -> None:
        with contextlib.suppress(ValueError):
            self._idle.remove(connection)
            self._closed_by_server += 1
        self._ended_count += 1
        if self._ended_count % _COLLECTED_TOGETHER == 0 and not gc.isenabled():
            gc.collect(1)

    def _keep_spares(self) -> None:
        """Idle losses are made good with the next request: a server that closes at once is not asked in a circle."""
        if self.is_in_window and len(self._idle) + len(self._openings) < self._spares:
            opening = self._loop.create_task(self._open_idle())
            self._openings.add(opening)
            opening.add_done_callback(self._openings.discard)

    async def _open_idle(self) -> None:
        with contextlib.suppress(NotConnected):
            connection = await self.connect()
            self._count()
            self._idle.appendleft(connection)  # one that has served before is surely being listened to

    def _count(self) -> None:
        self.connection_count += 1
        if self.is_in_window and self._closed_by_server:
            self._closed_by_server -= 1
            self.reconnect_count += 1

    async def _connect_to_any(self) -> Connection:
        if not self._addresses:
            found = await self._loop.getaddrinfo(self._target.host, self._target.port, type=socket.SOCK_STREAM)
            self._addresses = [(family, address) for family, _, _, _, address in found]
        fault: OSError | None = None
        for place, (family, address) in enumerate(self._addresses):
            try:
                connection = await self._connect_to(family, address)
            except OSError as error:
                fault = fault or error
                continue
            if place:  # the name has several addresses, and the first ones lead nowhere
                self._addresses.insert(0, self._addresses.pop(place))
            return connection
        raise fault or OSError(f"{self._target.host} has no address")

    async def _connect_to(self, family: socket.AddressFamily, address: _Address) -> Connection:
        connected = socket.socket(family, socket.SOCK_STREAM)
        try:
            connected.setblocking(False)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.sock_connect(connected, address)
            name = self._target.host if self._tls else None
            _, connection = await self._loop.create_connection(
                lambda: Connection(self._ended), sock=connected, ssl=self._tls, server_hostname=name
            )
        except BaseException:
            connected.close()
            raise
        return connection


def _tls_context() -> ssl.SSLContext:
    """Return Python's default: certificates and names are checked, SSL_CERT_FILE and SSL_CERT_DIR are honoured."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
