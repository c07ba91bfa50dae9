"""Our connection against aiohttp under one load: processor time per stream, and how late the stamps are.

    python tests/benchmarks/client_http.py [--concurrency 1 16 64 256] [--rounds 3] [--clients ours aiohttp ...]

One replay server (a C program, pre-rendered streams of 32 chunks) runs on one core; each client, a fresh process, on
another. Both clients send the same bytes in the same closed loop, stamp each received piece, look for the first content
with the same functions and encode each finished stream as the worker would get it; aiohttp reads with `readany` and
stamps after its await, with as many connections as the concurrency. Late: the client's stamp of the first and of the
last content of a stream, minus the server's own stamp right before it sent them (one clock). Clients take turns within
a round. Each number is the median over the rounds; absolute ones are this machine's, in this hour.

What it decided. On a busy machine with two cores aiohttp took 1.6 to 2.2 times our processor time per stream from 16
requests at a time on, and its stamps were 5 to 7 times as late in the median (at one request at a time: 0.9 and 2.2
times; there our own alarms every 10 ms are as many wake-ups as chunks). So the client parses in the protocol's own
callback. uvloop saved 12 to 30 % of ours while all pieces came apart, less than the 1.5 times that a further dependency
would have to bring. What is left of ours is mostly the loop's system calls: one poll and one receive per chunk.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from replay_server import ReplayServer, Served, ServerLog, Timetable, compile_server

from collector.client.chunks import has_content
from collector.client.generator import LoadRun
from collector.client.messages import ClientJob, Exchange, Limits, ScrapeText, Sending, Target, encode_message
from collector.client.sse import EventReader
from collector.engines.base import Load

CLIENTS = ("ours", "aiohttp", "ours-uvloop", "aiohttp-uvloop")
TABLE = Timetable(first_ms=100.0, gap_ms=10.0, chunks=32)
STREAM_S = (TABLE.first_ms + (TABLE.chunks - 1) * TABLE.gap_ms) / 1e3
PATH = "/v1/chat/completions"
BODY = json.dumps(
    {"model": "replay", "messages": [{"role": "user", "content": "x" * 2000}], "stream": True}, separators=(",", ":")
).encode()
FIELDS = ["reasoning_content"]
Pieces = list[tuple[int, bytes]]


class Cost(NamedTuple):
    """One client at one concurrency. late_*: in microseconds; busy: the server's largest share of its core.

    pieces: receipts per stream; a client that comes too late receives several chunks at once, and does less.
    """

    cpu_s_per_1000: float
    pieces: float
    late_p50_us: float
    late_p99_us: float
    server_busy: float


# inside the client's process


async def ours(port: int, concurrency: int, count: int, keep: Callable[[int, Pieces], None]) -> float:
    """Run the load with our generator, and return the processor seconds of its window."""
    job = ClientJob(
        target=Target(host="127.0.0.1", port=port, is_tls=False, headers=[]),
        sendings=[Sending(number=number, path=PATH, body=BODY) for number in range(count)],
        load=Load(concurrency=concurrency),
        limits=Limits(connect_s=30, first_token_s=60, request_s=300, retries=0, retry_wait_s=0),
        reasoning_fields=FIELDS,
    )

    def emit(message: Exchange | ScrapeText) -> None:
        encode_message(message)
        assert isinstance(message, Exchange)
        keep(message.number, message.pieces)

    window = await LoadRun(job, emit).run()
    return window.cpu_share * window.window_ns / 1e9


async def theirs(port: int, concurrency: int, count: int, keep: Callable[[int, Pieces], None]) -> float:
    """Run the same load with aiohttp."""
    import aiohttp

    url = f"http://127.0.0.1:{port}{PATH}"
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
    connector = aiohttp.TCPConnector(limit=concurrency)
    timeout = aiohttp.ClientTimeout(total=300, connect=30)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

        async def one(number: int) -> None:
            intended_ns = time.perf_counter_ns()
            async with session.post(url, data=BODY, headers=headers) as response:
                headers_ns = time.perf_counter_ns()
                events: EventReader | None = EventReader()
                pieces: Pieces = []
                while data := await response.content.readany():
                    stamp_ns = time.perf_counter_ns()
                    pieces.append((stamp_ns, data))
                    if events is not None and any(
                        has_content(each, ["reasoning_content"]) for each in events.feed(data)
                    ):
                        events = None
            done_ns = time.perf_counter_ns()
            exchange = Exchange(
                number=number, try_index=0, is_final=True, intended_ns=intended_ns, sent_ns=intended_ns,
                headers_ns=headers_ns, http_status=response.status, content_type=response.content_type,
                pieces=pieces, done_ns=done_ns, ending="complete",
            )  # fmt: skip
            encode_message(exchange)
            keep(number, pieces)

        async def warm(_: int) -> None:
            async with session.get(f"http://127.0.0.1:{port}/health") as response:
                await response.read()

        await asyncio.gather(*(warm(each) for each in range(concurrency)))
        numbers = iter(range(count))

        async def slot() -> None:
            for number in numbers:
                await one(number)

        gc.collect()
        gc.freeze()
        gc.disable()
        before_s = time.process_time()
        await asyncio.gather(*(slot() for _ in range(concurrency)))
        return time.process_time() - before_s


def inside(client: str, port: int, concurrency: int, count: int) -> None:
    """Run one client in this process, and print what it cost and its stamps by the server's number of the stream."""
    name, _, loop = client.partition("-")
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if loop:
        import uvloop

        factory = uvloop.new_event_loop
    kept: list[Pieces] = []

    def keep(_: int, pieces: Pieces) -> None:
        kept.append(pieces)

    with asyncio.Runner(loop_factory=factory) as runner:
        cpu_s = runner.run((ours if name == "ours" else theirs)(port, concurrency, count, keep))
    stamps = [found for pieces in kept if (found := content_stamps(pieces))]
    sys.stdout.write(json.dumps({"cpu_s": cpu_s, "stamps": stamps, "pieces": sum(map(len, kept))}))


def content_stamps(pieces: Pieces) -> tuple[int, int, int] | None:
    """Return the server's number of a stream, and the stamps of its first and last content."""
    reader = EventReader()
    found: list[tuple[int, Any]] = []
    for stamp_ns, data in pieces:
        found += ((stamp_ns, json.loads(each)) for each in reader.feed(data) if has_content(each, []))
    if len(found) != TABLE.chunks:
        return None
    return int(found[0][1]["id"].rpartition("-")[2]), found[0][0], found[-1][0]


# around it


def measured(client: str, concurrency: int, count: int, program: Path, cores: tuple[int, int]) -> Cost:
    """Run one client against a fresh server, each on its core."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ReplayServer(program, TABLE, folder=Path(folder), core=cores[0]) as server,
    ):
        command = [sys.executable, __file__, "--inside", client, str(server.port), str(concurrency), str(count)]
        done = subprocess.run(
            ["taskset", "-c", str(cores[1]), *command], check=True, capture_output=True, text=True
        )  # fmt: skip
        log = server.stop()
    said = json.loads(done.stdout)
    if len(said["stamps"]) != count:
        raise RuntimeError(f"{client} at {concurrency}: {len(said['stamps'])} of {count} streams were whole")
    late_us = sorted(lateness_us(said["stamps"], log))
    return Cost(
        cpu_s_per_1000=said["cpu_s"] / count * 1000,
        pieces=said["pieces"] / count,
        late_p50_us=late_us[len(late_us) // 2],
        late_p99_us=late_us[min(len(late_us) - 1, len(late_us) * 99 // 100)],
        server_busy=log.busiest_share(),
    )


def lateness_us(stamps: list[tuple[int, int, int]], log: ServerLog) -> Iterator[float]:
    """Return how long after the server sent them the first and last content of each stream were stamped."""
    served: dict[int, Served] = {each.number: each for each in log.served}
    for number, first_ns, last_ns in stamps:
        row = served[number]
        assert row.first_content_ns is not None
        assert row.last_content_ns is not None
        yield (first_ns - row.first_content_ns) / 1e3
        yield (last_ns - row.last_content_ns) / 1e3


def table(costs: dict[tuple[str, int], list[Cost]], clients: list[str]) -> list[str]:
    """Return the lines of the table, each with its ratios to our own client at that concurrency."""
    lines = [
        "concurrency client         cpu s/1000 (ratio) pieces  late p50 us (ratio)  late p99 us (ratio)  server busy"
    ]
    for concurrency in dict.fromkeys(each for _, each in costs):
        own = middle(costs[clients[0], concurrency])
        for client in clients:
            cost = middle(costs[client, concurrency])
            ratios = [mine / max(each, 1e-9) for mine, each in zip(cost, own, strict=True)]
            lines.append(
                f"{concurrency:11d} {client:15s} {cost.cpu_s_per_1000:10.3f} ({ratios[0]:5.2f}) "
                f"{cost.pieces:6.1f} {cost.late_p50_us:12.0f} ({ratios[2]:5.2f}) {cost.late_p99_us:12.0f} "
                f"({ratios[3]:5.2f}) "
                f"{cost.server_busy:11.0%}"
            )
    return lines


def middle(costs: list[Cost]) -> Cost:
    """Return the median of each number."""
    return Cost(*(statistics.median(each) for each in zip(*costs, strict=True)))


def main() -> None:
    options = argparse.ArgumentParser(description="Our HTTP client against aiohttp under one load.")
    options.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64, 256])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=4.0, help="of each client, each round, at least")
    options.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    options.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.inside:
        client, *numbers = chosen.inside
        inside(client, *(int(number) for number in numbers))
        return
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        sys.exit("needs two cores: one for the server, one for the client")
    costs: dict[tuple[str, int], list[Cost]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = compile_server(Path(folder))
        for _ in range(chosen.rounds):
            for concurrency in chosen.concurrency:
                count = concurrency * max(2, round(chosen.seconds / STREAM_S))
                for client in chosen.clients:
                    cost = measured(client, concurrency, count, program, (usable[0], usable[1]))
                    costs.setdefault((client, concurrency), []).append(cost)
    sys.stdout.write("\n".join([*table(costs, chosen.clients), ""]))


if __name__ == "__main__":
    main()
