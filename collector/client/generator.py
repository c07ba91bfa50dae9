"""One job of the load generator: opens connections, puts the requests to the server as the load says, reports.

A closed loop has `concurrency` slots, each with one request under way; the next request in the order is due when a slot
becomes free, at the end of the last try of the one before. In an open loop requests are due by the schedule, whatever
was answered; one that finds `concurrency` requests under way waits, and counts from when it was due all the same.

The window begins when connections are open. Python's cyclic garbage collector is off in it, for a collection would fall
between the receipt of bytes and their stamp; nothing here leaves cycles behind but connections that ended.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Iterator

from collector.client.alarm import alarm, sleep_until
from collector.client.connection_pool import SPARES, ConnectionPool, NotConnected
from collector.client.messages import ClientJob, Exchange, ScrapeText, Sending
from collector.client.request_head import get_of
from collector.client.requester import Due, Requester
from collector.client.schedule import due_offsets_ns
from collector.client.self_measurement import SelfMeasurement
from collector.contract.records import ClientWindow

Emit = Callable[[Exchange | ScrapeText], None]

_SCRAPE_S = 5.0


class LoadRun:
    """Runs one job once, in the running loop. `emit` gets each try when it is over, each scrape; it must not block."""

    def __init__(self, job: ClientJob, emit: Emit) -> None:
        self._job = job
        self._emit = emit
        self._is_open_loop = job.load.arrivals != "closed"
        spares = SPARES if self._is_open_loop else 0
        self._pool = ConnectionPool(job.target, connect_s=job.limits.connect_s, spares=spares)
        self._measured = SelfMeasurement()
        self._requester = Requester(job, self._pool, self._measured, emit)
        self._begin_ns = 0
        self._is_stopped = False
        self._arrivals: Arrivals | None = None

    def stop(self) -> None:
        """Begin no further request; those under way end as they do, their tries included."""
        self._is_stopped = True
        if self._arrivals is not None:
            self._arrivals.stop()

    async def run(self) -> ClientWindow:
        """Send every request, and return what the generator measured of itself."""
        first = min(len(self._job.sendings), self._job.load.concurrency)
        await self._pool.open(min(first, SPARES) if self._is_open_loop else first)
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            return await self._window()
        finally:
            self._pool.close()
            gc.enable()
            gc.unfreeze()
            gc.collect()

    async def _window(self) -> ClientWindow:
        self._pool.is_in_window = True
        self._begin_ns = time.perf_counter_ns()
        self._measured.begin(self._begin_ns)
        async with asyncio.TaskGroup() as group:
            scraper = group.create_task(self._scrape(self._job.scrape_path)) if self._job.scrape_path else None
            if self._is_open_loop:
                await self._open_loop(group)
            else:
                await self._closed_loop()
            if scraper is not None:
                scraper.cancel()
        rate_per_s = self._job.load.rate_per_s if self._is_open_loop else None
        return self._measured.window(
            max(self._begin_ns, self._requester.end_ns),
            mean_gap_ns=1e9 / rate_per_s if rate_per_s else None,
            connection_count=self._pool.connection_count,
            reconnect_count=self._pool.reconnect_count,
        )

    async def _closed_loop(self) -> None:
        sendings = iter(self._job.sendings)
        async with asyncio.TaskGroup() as slots:
            for _ in range(min(self._job.load.concurrency, len(self._job.sendings))):
                slots.create_task(self._slot(sendings))

    async def _slot(self, sendings: Iterator[Sending]) -> None:
        free_ns = self._begin_ns
        while not self._is_stopped and (sending := next(sendings, None)) is not None:
            free_ns = await self._requester.request(sending, Due(free_ns))

    async def _open_loop(self, group: asyncio.TaskGroup) -> None:
        if not self._job.sendings or self._is_stopped:
            return
        arrivals = Arrivals(self._job, self._begin_ns, self._requester, self._measured, group)
        self._arrivals = arrivals
        try:
            await arrivals.all_ended.wait()
        finally:
            arrivals.close()

    async def _scrape(self, path: str) -> None:
        """Read the server's metrics now and then, on a connection of its own that each time ends: it would hold one of
        the server's threads in between."""
        every_ns = round(self._job.scrape_every_s * 1e9)
        due_ns = self._begin_ns
        while True:
            due_ns += every_ns
            await sleep_until(due_ns)
            self._emit(await self._scraped(get_of(self._job.target, path)))

    async def _scraped(self, request: bytes) -> ScrapeText:
        try:
            connection = await self._pool.connect()
        except NotConnected:
            return ScrapeText(stamp_ns=time.perf_counter_ns(), text=None)
        try:
            reply = await connection.send(
                request, reasoning_fields=(), first_token_s=_SCRAPE_S, request_s=_SCRAPE_S
            )  # fmt: skip
        finally:
            connection.close()
        is_read = reply.ending == "complete" and reply.http_status == 200
        text = b"".join(body for _, body in reply.pieces).decode("utf-8", "replace") if is_read else None
        return ScrapeText(stamp_ns=reply.done_ns, text=text)


class Arrivals:
    """The requests of an open loop, each started when it is due, or when the limit of those under way lets it."""

    def __init__(
        self, job: ClientJob, begin_ns: int, requester: Requester, measured: SelfMeasurement, group: asyncio.TaskGroup
    ) -> None:
        load = job.load
        offsets_ns = due_offsets_ns(
            len(job.sendings), rate_per_s=load.rate_per_s or 0.0, arrivals=load.arrivals, seed=load.seed
        )
        self._ahead = deque(
            (begin_ns + offset_ns, each) for offset_ns, each in zip(offsets_ns, job.sendings, strict=True)
        )
        self._held_back: deque[tuple[int, Sending]] = deque()
        self._limit = load.concurrency
        self._under_way = 0
        self._requester = requester
        self._measured = measured
        self._group = group
        self.all_ended = asyncio.Event()
        self._alarm = alarm(self._arrive)
        self._arrive()

    def close(self) -> None:
        self._alarm.close()

    def stop(self) -> None:
        self._ahead.clear()
        self._held_back.clear()
        if not self._under_way:
            self.all_ended.set()

    def _arrive(self) -> None:
        while self._ahead and self._ahead[0][0] <= time.perf_counter_ns():
            intended_ns, sending = self._ahead.popleft()
            if self._under_way < self._limit:
                self._start(sending, Due(intended_ns))
            else:
                self._measured.limit_wait_count += 1
                self._held_back.append((intended_ns, sending))
        if self._ahead:
            self._alarm.ring_at(self._ahead[0][0])

    def _start(self, sending: Sending, due: Due) -> None:
        self._under_way += 1
        self._group.create_task(self._answered(sending, due))

    async def _answered(self, sending: Sending, due: Due) -> None:
        await self._requester.request(sending, due)
        self._under_way -= 1
        if self._held_back:
            intended_ns, waiting = self._held_back.popleft()
            self._start(waiting, Due(intended_ns, is_held_back=True))
        elif not self._ahead and not self._under_way:
            self.all_ended.set()
