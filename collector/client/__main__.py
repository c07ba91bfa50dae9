"""The load generator's process: jobs come over one pipe, what happened goes back over the other; see messages.

Its loop is uvloop's: between the bytes and their stamp lies half the work of asyncio's own.

Writing never blocks the loop that stamps: what the worker has not read yet waits in this process's memory.

When the pipe of jobs ends without a goodbye, the worker is dead, and what it started must not live on: this process
then kills its whole group, itself included, where that group is the dead worker's own (it leads its session).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

import msgspec
import uvloop

from collector.client.framing import STOP, FrameReader, frame
from collector.client.generator import LoadRun
from collector.client.messages import ClientDone, ClientFault, ClientJob, ClientMessage, encode_message


class Inbox(asyncio.Protocol):
    """Jobs from the worker, until its goodbye. Its end without one ends the group at once, whatever is under way."""

    def __init__(self, worker_pid: int) -> None:
        self._is_workers_own_group = worker_pid == os.getsid(0) == os.getpgrp()
        self._frames = FrameReader()
        self.jobs: asyncio.Queue[bytes] = asyncio.Queue()
        self.goodbye = asyncio.Event()
        self.under_way: LoadRun | None = None

    def data_received(self, data: bytes) -> None:
        for message in self._frames.feed(data):
            if message == STOP:
                if self.under_way is not None:  # else the job is over, and the stop came too late for it
                    self.under_way.stop()
            elif message:
                self.jobs.put_nowait(message)
            else:
                self.goodbye.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.goodbye.is_set():
            return
        if self._is_workers_own_group:
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


class Outbox(asyncio.BaseProtocol):
    """Messages to the worker. Where it does not read any more, they are dropped: its end is the inbox's to notice."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a pipe's writing end

    def put(self, message: ClientMessage) -> None:
        """Hand a message over without waiting for anyone."""
        if self.transport is None or self.transport.is_closing():
            return
        self.transport.write(frame(encode_message(message)))

    async def emptied(self) -> None:
        """Return when the worker has read everything."""
        while self.transport is not None and not self.transport.is_closing() and self.transport.get_write_buffer_size():
            await asyncio.sleep(0.01)


async def serve(job_fd: int, message_fd: int, worker_pid: int) -> None:
    """Run jobs until the goodbye."""
    loop = asyncio.get_running_loop()
    inbox, outbox = Inbox(worker_pid), Outbox()
    await loop.connect_read_pipe(lambda: inbox, os.fdopen(job_fd, "rb", buffering=0))
    await loop.connect_write_pipe(lambda: outbox, os.fdopen(message_fd, "wb", buffering=0))
    working = loop.create_task(_work(inbox, outbox))
    leaving = loop.create_task(inbox.goodbye.wait())
    await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    working.cancel()
    if not inbox.goodbye.is_set():  # a fault was told; what the worker does now is its own
        await inbox.goodbye.wait()


async def _work(inbox: Inbox, outbox: Outbox) -> None:
    decoder = msgspec.msgpack.Decoder(ClientJob)
    while True:
        message = await inbox.jobs.get()
        try:
            inbox.under_way = LoadRun(decoder.decode(message), outbox.put)
            window = await inbox.under_way.run()
            inbox.under_way = None
        except Exception as error:
            outbox.put(ClientFault(message="; ".join(_words(error))))
            return
        del message
        await outbox.emptied()
        outbox.put(ClientDone(window=window))


def _words(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [words for each in error.exceptions for words in _words(each)]
    return [f"{type(error).__name__}: {error}"]


def main(arguments: Sequence[str]) -> None:
    """Arguments: descriptors of the jobs' pipe and of the messages', and the worker's process id."""
    job_fd, message_fd, worker_pid = (int(argument) for argument in arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to act on
    for descriptor in (job_fd, message_fd):
        os.set_inheritable(descriptor, False)
    uvloop.run(serve(job_fd, message_fd, worker_pid))
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
