"""The load generator as the worker sees it: jobs in, tries out, its own measurement last.

Start it before a server: it is also what ends that server's process group when the worker dies without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec

import msgspec

from collector.client.framing import GOODBYE, LENGTH_BYTES, STOP, frame, length_of
from collector.client.messages import ClientDone, ClientFault, ClientJob, ClientMessage, decode_message
from collector.contract.errors import MissingDependency
from collector.processes import PipedProcess

NEEDED = ("httptools", "uvloop")
_GOODBYE_S = 5.0


class LoadGeneratorFault(RuntimeError):
    """The load generator broke or died; nothing more comes from it."""


class LoadGenerator:
    """A process that sends requests and stamps what comes back, in the group of the process that made it.

    Raises MissingDependency.
    """

    def __init__(self) -> None:
        if missing := [name for name in NEEDED if find_spec(name) is None]:
            raise MissingDependency(
                f"requests to a server need {' and '.join(missing)}", next_step="pip install 'gpu-dossier[collector]'"
            )
        self._process = PipedProcess("collector.client")
        self._is_idle = True

    @property
    def pid(self) -> int:
        """The generator's process id."""
        return self._process.pid

    def run(self, job: ClientJob) -> Iterator[ClientMessage]:
        """Yield what happens, ending with ClientDone; stamps are of `time.perf_counter_ns` of this machine.

        Raises LoadGeneratorFault. A caller that stops before the end can only close the generator.
        """
        if not self._is_idle:
            raise LoadGeneratorFault("the load generator still has a job that nobody waited for")
        self._is_idle = False
        try:
            self._process.write(frame(msgspec.msgpack.encode(job)))
        except BrokenPipeError:
            raise self._died() from None
        while True:
            message = decode_message(self._read())
            if isinstance(message, ClientFault):
                raise LoadGeneratorFault(f"the load generator broke: {message.message}")
            if isinstance(message, ClientDone):
                self._is_idle = True
                yield message
                return
            yield message

    def stop(self) -> None:
        """Have the job under way begin no further request; those under way end as they do, and ClientDone follows."""
        with suppress(BrokenPipeError):  # a dead generator is told of where its messages are read
            self._process.write(frame(STOP))

    def close(self) -> None:
        """End the generator, also in the middle of a job; what it has not told by then is lost."""
        self._process.end(last_bytes=GOODBYE, grace_s=_GOODBYE_S)

    def _read(self) -> bytes:
        head = self._process.read(LENGTH_BYTES)
        message = self._process.read(length_of(head)) if len(head) == LENGTH_BYTES else b""
        if not message or len(message) < length_of(head):
            raise self._died()
        return message

    def _died(self) -> LoadGeneratorFault:
        exit_code = self._process.end(last_bytes=GOODBYE, grace_s=_GOODBYE_S)
        return LoadGeneratorFault(f"the load generator died with exit code {exit_code}")
