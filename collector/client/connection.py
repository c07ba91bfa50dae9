"""One HTTP/1.1 connection: one request at a time, and what comes back with the stamp of its receipt.

A stamp is taken when the loop hands over received bytes, before anything is parsed, so it is late by the loop's lag
alone (and by decryption under TLS). Bytes that arrived together have one stamp; how the server cut its chunks is
unknown here and decides nothing. A body ends as HTTP says: by its chunks, by its length, or with the connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import cast

import httptools

from collector.client.chunks import has_content
from collector.client.messages import Ending
from collector.client.retry import asked_wait_s
from collector.client.sse import EventReader

_BODILESS = (204, 304)
_RECEIVED = memoryview(bytearray(256 * 1024))
"""Where the loop puts what it received, for all connections: each is called right after, and keeps none of it. Else the
loop would ask the system for 256 KiB to receive some hundred bytes."""


class Reply:
    """What one request got: filled while bytes arrive, complete once `ending` stands."""

    __slots__ = (
        "content_type", "done_ns", "encoding", "ending", "fault", "has_bytes", "has_content", "headers_ns",
        "http_status", "pieces", "retry_after_s", "sent_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.sent_ns: int | None = None
        self.headers_ns: int | None = None
        self.http_status: int | None = None
        self.content_type: str | None = None
        self.encoding: str | None = None
        self.retry_after_s: float | None = None
        self.pieces: list[tuple[int, bytes]] = []
        self.has_bytes = False
        """Something came back at all."""
        self.has_content = False
        """Generated content came; of an answer that is no stream, any byte of its body."""
        self.done_ns = 0
        self.ending: Ending = "closed"
        self.fault: str | None = None


class Connection(asyncio.BufferedProtocol):
    """An open connection. on_end is called when it has ended, whoever ended it."""

    def __init__(self, on_end: Callable[[Connection], None]) -> None:
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reply: Reply | None = None
        self._done: asyncio.Future[Reply] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._reasoning_fields: Sequence[str] = ()
        self._events: EventReader | None = None
        self._bodies: list[bytes] = []
        self._retry_after: bytes | None = None
        self._date: bytes | None = None
        self._stamp_ns = 0
        self._has_length = self._is_complete = self._is_kept = False
        self.is_reusable = False
        """True while it is open and may take another request."""

    def send(
        self, request: bytes, *, reasoning_fields: Sequence[str], first_token_s: float, request_s: float
    ) -> asyncio.Future[Reply]:
        """Send one request; the future holds its reply, also where it failed, and never an exception."""
        transport = self._transport
        if transport is None or self._reply is not None:
            raise RuntimeError("this connection is closed or already has a request under way")
        reply = self._reply = Reply()
        done = self._done = self._loop.create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._reasoning_fields = reasoning_fields
        self._events = None
        self._retry_after = self._date = None
        self._has_length = self._is_complete = self._is_kept = self.is_reusable = False
        transport.write(request)
        reply.sent_ns = time.perf_counter_ns()
        self._timers = [
            self._timer(place, reply.sent_ns + round(limit_s * 1e9), expire)
            for place, (limit_s, expire) in enumerate(
                ((first_token_s, self._expire_first_token), (request_s, lambda: self._expire_whole(request_s)))
            )
        ]
        return done

    def close(self) -> None:
        """End the connection; a request under way ends as closed."""
        self.is_reusable = False
        if self._transport is not None:
            self._transport.abort()

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)  # what is written goes to the socket at once, then is stamped
        self.is_reusable = True

    def get_buffer(self, sizehint: int) -> memoryview:  # no bytearray: TLS slices it and writes into the slice
        return _RECEIVED

    def buffer_updated(self, nbytes: int) -> None:
        stamp_ns = self._stamp_ns = time.perf_counter_ns()
        reply, parser = self._reply, self._parser
        if reply is None or parser is None:  # bytes that no request asked for: nothing after them can be trusted
            self.close()
            return
        reply.has_bytes = True
        fault: str | None = None
        try:
            parser.feed_data(_RECEIVED[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            fault = f"{type(error).__name__}: {error}"
        if self._bodies:
            body = self._bodies[0] if len(self._bodies) == 1 else b"".join(self._bodies)
            self._bodies.clear()
            reply.pieces.append((stamp_ns, body))
            if not reply.has_content and reply.http_status is not None and reply.http_status // 100 == 2:
                self._look_for_content(body)
        if self._is_complete:
            self._finish("complete", stamp_ns, is_kept=self._is_kept and fault is None)
        elif fault is not None:
            self._finish("not_http", stamp_ns, fault)

    def eof_received(self) -> None:
        self._stamp_ns = time.perf_counter_ns()
        self._end_by_close(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stamp_ns = time.perf_counter_ns()
        self._transport = None
        self.is_reusable = False
        self._end_by_close(exc)
        self._on_end(self)

    # what the parser calls

    def on_message_begin(self) -> None:
        if self._is_complete:  # a second answer to one request
            self._is_kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        reply = self._reply
        if reply is None or reply.headers_ns is not None:  # a trailer
            return
        name = name.lower()
        if name == b"content-type":
            reply.content_type = value.decode("latin-1")
        elif name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower()):
            self._has_length = True
        elif name == b"content-encoding":
            reply.encoding = value.decode("latin-1")
        elif name == b"retry-after":
            self._retry_after = value
        elif name == b"date":
            self._date = value

    def on_headers_complete(self) -> None:
        reply, parser = self._reply, self._parser
        if reply is None or parser is None or self._is_complete:
            return
        status = parser.get_status_code()
        if status < 200:  # informational: the answer is still to come
            self._has_length = False
            return
        reply.http_status = status
        reply.headers_ns = self._stamp_ns
        reply.retry_after_s = asked_wait_s(self._retry_after, date=self._date)
        if status in _BODILESS:
            self._has_length = True
        if "json" not in (reply.content_type or ""):
            self._events = EventReader()
        if reply.encoding not in (None, "identity"):
            reply.fault = f"the body is encoded as {reply.encoding}, though identity was asked for"

    def on_body(self, body: bytes) -> None:
        if not self._is_complete:
            self._bodies.append(body)

    def on_message_complete(self) -> None:
        reply, parser = self._reply, self._parser
        if reply is not None and parser is not None and reply.headers_ns is not None and not self._is_complete:
            self._is_complete = True
            self._is_kept = parser.should_keep_alive()

    # how it ends

    def _look_for_content(self, body: bytes) -> None:
        reply, events = self._reply, self._events
        assert reply is not None
        if events is None or any(has_content(event, self._reasoning_fields) for event in events.feed(body)):
            reply.has_content = True
            self._events = None
            self._timers[0].cancel()

    def _timer(self, place: int, due_ns: int, expire: Callable[[], None]) -> asyncio.TimerHandle:
        """Call `expire` when it is due; the loop, which counts whole milliseconds of its own turns, may be early."""

        def ring() -> None:
            if time.perf_counter_ns() < due_ns:
                self._timers[place] = self._timer(place, due_ns, expire)
            else:
                expire()

        return self._loop.call_later(max(0, due_ns - time.perf_counter_ns()) / 1e9, ring)

    def _expire_first_token(self) -> None:
        self._expire("first_token_timeout", "no generated content in time")

    def _expire_whole(self, request_s: float) -> None:
        self._expire("total_timeout", f"nothing more after {request_s:g} s")

    def _expire(self, ending: Ending, fault: str) -> None:
        self._finish(ending, time.perf_counter_ns(), fault)

    def _end_by_close(self, exc: Exception | None) -> None:
        reply = self._reply
        if reply is None:
            return
        if exc is None and reply.headers_ns is not None and not self._has_length:
            self._finish("complete", self._stamp_ns)
            return
        words = f"{type(exc).__name__}: {exc}" if exc is not None else "the server closed the connection"
        self._finish("closed", self._stamp_ns, words)

    def _finish(self, ending: Ending, stamp_ns: int, fault: str | None = None, *, is_kept: bool = False) -> None:
        reply, done = self._reply, self._done
        if reply is None or done is None:
            return
        for timer in self._timers:
            timer.cancel()
        # The parser holds this object's methods: with it goes the only cycle, which no collector would break meanwhile.
        self._reply = self._done = self._parser = self._events = None
        self._timers = []
        reply.done_ns = stamp_ns
        reply.ending = ending
        reply.fault = fault or reply.fault
        self.is_reusable = is_kept and self._transport is not None and not self._transport.is_closing()
        if not self.is_reusable and self._transport is not None:
            self._transport.abort()
        if not done.done():
            done.set_result(reply)
