"""What the runner knows of a worker: a stream of events with deadlines, and an end. With the worker of order tests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, Protocol

from collector.clock import Clock
from collector.events import Event, PassJob
from collector.memory import MemoryMeter
from collector.worker import run_job


class WorkerSilent(Exception):
    """No event came before the deadline."""


class WorkerStopped(Exception):
    """The run was asked to stop while waiting for an event."""


class WorkerBabble(Exception):
    """A line came that is no event; the lines after it may be."""


class WorkerExit(NamedTuple):
    """How a worker ended. `exit_code`: null where there is no process; negative for a signal."""

    exit_code: int | None
    last_words: str


class Worker(Protocol):
    """One started job."""

    @property
    def pid(self) -> int | None:
        """Process id, or null for a worker without a process of its own."""
        ...

    def next_event(self, deadline_ns: int, is_stopping: Callable[[], bool]) -> Event | None:
        """Return the next event, or null when the worker has ended.

        Raises WorkerSilent when the monotonic clock reaches the deadline first, WorkerStopped when `is_stopping` turns
        true, WorkerBabble for a line that is no event.
        """
        ...

    def has_event(self) -> bool:
        """Return whether an event is waiting already."""
        ...

    def output(self) -> list[str]:
        """Return the lines printed by libraries since the last call."""
        ...

    def end(self, *, grace_s: float, with_stack: bool = False) -> WorkerExit:
        """End the worker and all that it started, after at most `grace_s` seconds for leaving by itself.

        with_stack: first have a hung worker print where it hangs. Returns how it ended; a second call returns the same.
        """
        ...

    def close(self) -> None:
        """End the worker and give back what it held."""
        ...


class WorkerFactory(Protocol):
    """Starts workers, one per pass."""

    def start(self, job: PassJob) -> Worker:
        """Start a job in a fresh worker."""
        ...


class InProcessWorkerFactory:
    """Runs jobs in this process, event by event, so that tests with a fake clock see one exact order."""

    def __init__(self, *, clock: Clock, meter: Callable[[], MemoryMeter]) -> None:
        self._clock = clock
        self._meter = meter

    def start(self, job: PassJob) -> Worker:
        return InProcessWorker(run_job(job, clock=self._clock, meter=self._meter()), self._clock)


class InProcessWorker:
    """The worker's generator, asked for one event at a time. A deadline is seen once the late event is there."""

    pid: int | None = None

    def __init__(self, events: Iterator[Event], clock: Clock) -> None:
        self._events = events
        self._clock = clock

    def next_event(self, deadline_ns: int, is_stopping: Callable[[], bool]) -> Event | None:
        if is_stopping():
            raise WorkerStopped
        event = next(self._events, None)
        if event is not None and self._clock.monotonic_ns() > deadline_ns:
            raise WorkerSilent
        return event

    def has_event(self) -> bool:
        return False

    def output(self) -> list[str]:
        return []

    def end(self, *, grace_s: float, with_stack: bool = False) -> WorkerExit:
        if isinstance(self._events, Generator):
            self._events.close()
        return WorkerExit(None, "")

    def close(self) -> None:
        self.end(grace_s=0)
