"""One request with all its tries, and every try as it is told to the worker.

A connection that was open before the request and that the server closed at once, without a byte, was closed on its
side already: the request goes out again on a fresh one, as the same try of the retry policy, for the server never had
it. It is counted among the reconnects, and the wait for the fresh connection is part of the try's connection wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from collector.client.alarm import sleep_until
from collector.client.connection import Connection, Reply
from collector.client.connection_pool import ConnectionPool, NotConnected
from collector.client.messages import ClientJob, Exchange, Sending
from collector.client.request_head import post_of
from collector.client.retry import is_tried_again, wait_before_s
from collector.client.self_measurement import SelfMeasurement

STALE_NS = 1_000_000_000
"""Closed later than this after sending, the server had the request, and its loss is a failure."""


class Due(msgspec.Struct, frozen=True):
    """When a request was wanted, and whether it then had to wait for the limit of requests under way."""

    intended_ns: int
    is_held_back: bool = False


class Requester:
    """Sends requests over a pool; `emit` gets each try when it is over and must not block."""

    def __init__(
        self, job: ClientJob, pool: ConnectionPool, measured: SelfMeasurement, emit: Callable[[Exchange], None]
    ) -> None:
        self._job = job
        self._pool = pool
        self._measured = measured
        self._emit = emit
        self.end_ns = 0
        """When the last try so far ended."""

    async def request(self, sending: Sending, due: Due) -> int:
        """Send one request, again where the policy says so, and return when its last try ended."""
        limits = self._job.limits
        request = post_of(self._job.target, sending.path, sending.body)
        try_index, due_ns = 0, due.intended_ns
        while True:
            connection_wait_ns, reply = await self._try(request, due_ns, due, is_first=try_index == 0)
            self.end_ns = max(self.end_ns, reply.done_ns)
            is_final = try_index >= limits.retries or not is_tried_again(
                ending=reply.ending, http_status=reply.http_status, has_content=reply.has_content
            )
            self._emit(_exchange(sending.number, try_index, due, connection_wait_ns, reply, is_final=is_final))
            if is_final:
                return reply.done_ns
            wait_s = wait_before_s(
                try_index, retry_wait_s=limits.retry_wait_s, asked_s=reply.retry_after_s, most_s=limits.request_s
            )
            self._measured.retry_count += 1
            await sleep_until(time.perf_counter_ns() + round(wait_s * 1e9))
            try_index, due_ns = try_index + 1, time.perf_counter_ns()

    async def _try(self, request: bytes, due_ns: int, due: Due, *, is_first: bool) -> tuple[int | None, Reply]:
        """Return how long the try waited for a connection, null where it got none, and what came back."""
        try:
            connection, was_open = await self._pool.acquire()
            wait_ns = 0 if was_open and not due.is_held_back else time.perf_counter_ns() - due_ns
            reply = await self._sent(connection, request)
            if was_open and _is_stale(reply):
                connection = await self._pool.fresh()
                wait_ns = time.perf_counter_ns() - due_ns
                reply = await self._sent(connection, request)
        except NotConnected as none:
            reply = Reply()
            reply.ending, reply.fault, reply.done_ns = none.ending, none.fault, time.perf_counter_ns()
            return None, reply
        if is_first and not due.is_held_back:
            self._measured.delayed((reply.sent_ns or due_ns) - due_ns)
        return wait_ns, reply

    async def _sent(self, connection: Connection, request: bytes) -> Reply:
        limits = self._job.limits
        self._measured.sent()
        reply = await connection.send(
            request, reasoning_fields=self._job.reasoning_fields, first_token_s=limits.first_token_s,
            request_s=limits.request_s,
        )  # fmt: skip
        self._measured.ended()
        self._pool.release(connection, is_lost_to_server=reply.ending in ("complete", "closed"))
        return reply


def _is_stale(reply: Reply) -> bool:
    took_ns = reply.done_ns - (reply.sent_ns or 0)
    return reply.ending == "closed" and not reply.has_bytes and took_ns < STALE_NS


def _exchange(
    number: int, try_index: int, due: Due, connection_wait_ns: int | None, reply: Reply, *, is_final: bool
) -> Exchange:  # fmt: skip
    """The first intended send stands in every try: who waits for an answer waits from then on."""
    return Exchange(
        number=number, try_index=try_index, is_final=is_final, intended_ns=due.intended_ns,
        connection_wait_ns=connection_wait_ns, sent_ns=reply.sent_ns, headers_ns=reply.headers_ns,
        http_status=reply.http_status, content_type=reply.content_type, pieces=reply.pieces, done_ns=reply.done_ns,
        ending=reply.ending, fault=reply.fault, retry_after_s=reply.retry_after_s,
    )  # fmt: skip
