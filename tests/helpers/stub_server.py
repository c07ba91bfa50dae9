"""A scripted HTTP server on loopback, raw bytes over asyncio: what it writes, when, and in how many pieces.

In a test: `with StubServer([stream(chat("Hello", usage=...))]) as stub: ... stub.base_url ... stub.seen`. A reply is
given per POST, in order of arrival, the last one for ever; or by a function of the request. GET paths, and POST paths
that are not counted, are in `pages`: a reply each, or a function of the request.
As a process, for what starts servers by a command: `python stub_server.py --port 8000 --tokens 5 --delay-ms 10`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Ending = Literal["end", "close", "reset", "hang"]
"""end: the body ends as HTTP says; close: the connection closes mid-body; reset: with RST; hang: nothing more, ever."""
Write = tuple[float, bytes]
"""Milliseconds to wait since the write before, and what to write then."""


@dataclass(frozen=True)
class Reply:
    """One answer. writes: the body in parts; split: bytes per write of each part (None: a part is one write)."""

    writes: Sequence[Write] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    head_delay_ms: float = 0.0
    split: int | None = None
    ending: Ending = "end"
    framing: Literal["chunked", "length", "close"] = "chunked"
    """close: neither length nor chunks; the body ends with the connection."""
    closes: bool = False
    """True: the server says `connection: close` and ends the connection after the body."""


@dataclass(frozen=True)
class Seen:
    """One request as it arrived; at_ns by the machine's monotonic clock, when its body was complete."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    at_ns: int

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


Replies = Sequence[Reply] | Callable[[Seen], Reply]
Page = Reply | Callable[[Seen], Reply]


class StubServer:
    """The server in a thread of its own; a context manager."""

    def __init__(
        self,
        replies: Replies = (),
        *,
        pages: Mapping[str, Page] | None = None,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._replies = replies
        self._pages: dict[str, Page] = {**default_pages(), **(pages or {})}
        self._port = port
        self._tls = tls
        self._numbers = itertools.count()
        self._given = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_listening = threading.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.seen: list[Seen] = []
        """Every request, GET as well."""
        self.connections = 0
        """Connections accepted so far."""
        self.in_flight = 0
        self.most_in_flight = 0
        """Most POST requests under way at one moment, each from its complete request to the end of its reply."""
        self.written_ns: list[tuple[int, int]] = []
        """(number of the request in `seen`, stamp) of each body write of a POST, taken just before it."""

    @property
    def base_url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def posts(self) -> list[Seen]:
        """The requests for completions, in order of arrival."""
        return [seen for seen in self.seen if seen.method == "POST" and "completions" in seen.path]

    def __enter__(self) -> StubServer:
        self._thread.start()
        if not self._is_listening.wait(10):
            raise TimeoutError("the stub server did not start to listen within 10 s")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def stop_now(self) -> None:
        """Reset every connection and listen no more, as a server does that is killed."""
        asyncio.run_coroutine_threadsafe(self._die(), self._loop).result(10)

    def set_page(self, path: str, reply: Page) -> None:
        """Answer a path otherwise from now on."""
        self._pages[path] = reply

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self._port, ssl=self._tls, backlog=1024)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._is_listening.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._end())
            self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _die(self) -> None:
        self._server.close()
        for writer in list(self._writers):
            _reset(writer)
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while (seen := await _request(reader, number)) is not None:
                place = len(self.seen)
                self.seen.append(seen)
                if not await self._answer(seen, place, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort() if self._loop.is_closed() else writer.close()

    async def _answer(self, seen: Seen, place: int, writer: asyncio.StreamWriter) -> bool:
        """Write the reply; True where another request may follow on this connection."""
        page = self._pages.get(seen.path.partition("?")[0])
        if page is None and seen.method == "GET":
            page = plain(404, {"error": {"message": "no such path", "code": 404}})
        if page is not None:
            reply = page(seen) if callable(page) else page
            return await self._write(reply, place, writer, is_logged=False)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._write(self._next(seen), place, writer, is_logged=True)
        finally:
            self.in_flight -= 1

    def _next(self, seen: Seen) -> Reply:
        if callable(self._replies):
            return self._replies(seen)
        if not self._replies:
            return stream(chat("Hello", " world") if "chat" in seen.path else completion("Hello", " world"))
        self._given += 1
        return self._replies[min(self._given, len(self._replies)) - 1]

    async def _write(self, reply: Reply, place: int, writer: asyncio.StreamWriter, *, is_logged: bool) -> bool:
        if reply.head_delay_ms:
            await asyncio.sleep(reply.head_delay_ms / 1e3)
        if reply.ending == "hang" and not reply.writes:
            await asyncio.sleep(3600)
        writer.write(_head(reply))
        for delay_ms, part in reply.writes:
            if delay_ms:
                await writer.drain()
                await asyncio.sleep(delay_ms / 1e3)
            for piece in _pieces(part, reply.split):
                if is_logged:
                    self.written_ns.append((place, time.perf_counter_ns()))
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece)
                if reply.split:
                    await asyncio.sleep(0)
        await writer.drain()
        if reply.ending == "hang":
            await asyncio.sleep(3600)
        if reply.ending == "reset":
            _reset(writer)
        if reply.ending != "end":
            return False
        if reply.framing == "chunked":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return reply.framing != "close" and not reply.closes


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _pieces(part: bytes, size: int | None) -> Iterable[bytes]:
    return (part[at : at + size] for at in range(0, len(part), size)) if size else (part,)


async def _request(reader: asyncio.StreamReader, connection: int) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method, path, headers, body, connection, time.perf_counter_ns())


def _head(reply: Reply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in reply.headers.items())]
    if reply.framing == "chunked":
        lines.append("transfer-encoding: chunked")
    if reply.framing == "length":
        lines.append(f"content-length: {sum(len(part) for _, part in reply.writes)}")
    if reply.closes or reply.framing == "close":
        lines.append("connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


# What replies are made of


def plain(status: int, body: Any, **headers: str) -> Reply:
    """A body in one piece: JSON, or a text as it is (`retry_after="1"` becomes the header Retry-After)."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    kind = "application/json" if not isinstance(body, str | bytes) else "text/plain; charset=utf-8"
    named = {"content-type": kind} | {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(writes=[(0, data)], status=status, headers=named, framing="length")


def busy(retry_after_s: float = 0) -> Reply:
    """503 with Retry-After."""
    return plain(
        503, {"error": {"message": "busy", "type": "overloaded", "code": 503}}, retry_after=f"{retry_after_s:g}"
    )


def stream(events: Iterable[bytes | Write], *, gap_ms: float = 0.0, first_ms: float = 0.0, **reply: Any) -> Reply:
    """A stream of events, each after its own delay where given, else `first_ms` and then `gap_ms` apart."""
    timed = (each if isinstance(each, tuple) else (None, each) for each in events)
    writes = [
        ((gap_ms if place else first_ms) if delay is None else delay, part) for place, (delay, part) in enumerate(timed)
    ]
    return Reply(writes=writes, **reply)


def event(data: Any, *, line_end: str = "\n", blank: str = " ") -> bytes:
    """One event with JSON (or a text as it is) as its data."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data:{blank}{text}{line_end}{line_end}".encode()


DONE = b"data: [DONE]\n\n"


def chat_chunk(delta: Mapping[str, Any] | None = None, *, finish_reason: str | None = None, **more: Any) -> bytes:
    """One chunk of a chat stream; `more` are fields beside `choices` (usage, timings ...)."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish_reason}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "stub", "choices": [choice]} | more)


def completion_chunk(text: str = "", *, finish_reason: str | None = None, **more: Any) -> bytes:
    """One chunk of a completions stream."""
    choice = {"index": 0, "text": text, "finish_reason": finish_reason}
    return event({"id": "cmpl-1", "object": "text_completion", "model": "stub", "choices": [choice]} | more)


def usage(prompt: int, output: int, *, cached: int | None = None, reasoning: int | None = None) -> dict[str, Any]:
    """The counts as a server writes them."""
    counts: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    if cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    if reasoning is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return counts


def usage_chunk(counts: Mapping[str, Any] | None, **more: Any) -> bytes:
    """The chunk without choices that carries the counts."""
    body: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": counts}
    return event(body | more)


def error_event(message: str = "engine died", *, code: int = 500, kind: str = "InternalServerError") -> bytes:
    """An error inside a stream."""
    return event({"error": {"message": message, "type": kind, "param": None, "code": code}})


def chat(
    *texts: str, counts: Mapping[str, Any] | None = None, finish_reason: str | None = "stop", is_done: bool = True
) -> list[bytes]:
    """The events of a whole chat answer: role, texts, reason, counts where given, end marker."""
    events = [chat_chunk({"role": "assistant", "content": ""}), *(chat_chunk({"content": text}) for text in texts)]
    if finish_reason is not None:
        events.append(chat_chunk(finish_reason=finish_reason))
    return events + ([usage_chunk(counts)] if counts is not None else []) + ([DONE] if is_done else [])


def completion(
    *texts: str, counts: Mapping[str, Any] | None = None, finish_reason: str | None = "stop", is_done: bool = True
) -> list[bytes]:
    """The events of a whole completions answer."""
    events = [completion_chunk(text) for text in texts]
    if finish_reason is not None:
        events.append(completion_chunk(finish_reason=finish_reason))
    return events + ([usage_chunk(counts)] if counts is not None else []) + ([DONE] if is_done else [])


def default_pages() -> dict[str, Reply]:
    """What every server answers: ready, one model, no metrics that move, one token per character."""
    return {
        "/health": plain(200, ""),
        "/v1/models": plain(200, {"object": "list", "data": [{"id": "stub", "object": "model"}]}),
        "/version": plain(200, {"version": "0.0.stub"}),
        "/metrics": plain(200, metrics_text({"vllm:num_requests_running": 0.0, "vllm:num_requests_waiting": 0.0})),
    }


def metrics_text(values: Mapping[str, float]) -> str:
    """A Prometheus page of single values; a name may carry labels in braces."""
    return "".join(f"# TYPE {name.partition('{')[0]} untyped\n{name} {value}\n" for name, value in values.items())


def _main() -> None:
    options = argparse.ArgumentParser(description="A scripted server on loopback.")
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--tokens", type=int, default=5, help="chunks of an answer")
    options.add_argument("--text", default="", help="the answer, in as many chunks as --tokens; else `t0 t1 ...`")
    options.add_argument("--prompt-tokens", type=int, default=10, help="what it says that each prompt has")
    options.add_argument("--first-ms", type=float, default=0.0)
    options.add_argument("--gap-ms", type=float, default=0.0)
    options.add_argument("--ready-after-s", type=float, default=0.0, help="503 on /health until then")
    options.add_argument("--exit-after", type=int, default=0, help="end the process at this request, mid-stream")
    chosen = options.parse_args()
    size = -(-len(chosen.text) // chosen.tokens)
    texts = [chosen.text[at : at + size] for at in range(0, len(chosen.text), size)] if chosen.text else []
    texts = texts or [f"t{number} " for number in range(chosen.tokens)]
    number = itertools.count(1)
    exits = threading.Event()

    def answer(seen: Seen) -> Reply:
        make = chat if "chat" in seen.path else completion
        events: list[bytes | Write] = list(make(*texts, counts=usage(chosen.prompt_tokens, len(texts))))
        if chosen.exit_after and next(number) >= chosen.exit_after:
            threading.Timer(0.2, exits.set).start()
            return stream(events[:3], first_ms=chosen.first_ms, gap_ms=chosen.gap_ms, ending="hang")
        return stream(events, first_ms=chosen.first_ms, gap_ms=chosen.gap_ms)

    pages: dict[str, Page] = {"/health": busy()} if chosen.ready_after_s else {}
    with StubServer(answer, pages=pages, port=chosen.port) as stub:
        if chosen.ready_after_s:
            time.sleep(chosen.ready_after_s)
            stub.set_page("/health", plain(200, ""))
        exits.wait()


if __name__ == "__main__":
    _main()
