"""Memory of a server per phase: its process tree on the host, and on a card what the driver says of tree and card.

A phase is a window as for every meter. Nothing of a server can be asked from within, so there is no exact peak: start
and end are read, and the peak is the highest of regular samples, a lower bound, recorded as `sampled` with the longest
time between two samples. What torch allocated in another process is not known here and never a zero.

host: the sum over the server's process and what it started, without the worker's own; on Linux the proportional set
size, in which a page that several share counts once, else resident sets, in which it counts for each, and a warning
says so. Reading it walks page tables, which holds the server up a little: at most a fiftieth of one processor is spent.

The load phase begins before the server exists: its zero is a fact. A server that was there is nobody's to measure: all
its values are null. device: the whole card, everybody's; an engine claims most of it at its start whatever it needs.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import psutil

from collector.contract.records import Reading
from collector.contract.records.base import Phase
from collector.contract.records.passes import MemoryScope
from collector.memory_readings import Value, highest, reading
from collector.nvidia import DriverReading, NvmlDriver, driver_facts, visible_ordinal
from collector.server_process import RunningServer, watched

SHORTEST_S = 0.1
_COST_FACTOR = 50
"""Between two samples passes at least so many times the processor time of one."""
_HIDDEN: tuple[MemoryScope, ...] = ("allocated", "reserved")


class Driver(Protocol):
    """The driver's view of a card; tests give a fake."""

    def read_tree(self, uuid: str | None, pids: Iterable[int]) -> DriverReading:
        """Return the bytes in use on the card by these processes together, and by everybody."""
        ...


class TreeBytes(NamedTuple):
    """Memory of several processes; is_shared_once: shared pages are counted once, not once for each process."""

    value: int
    is_shared_once: bool


class ServerMeter:
    """The meter of a pass whose engine is a server; it learns of the server when that is started."""

    def __init__(
        self,
        device: str,
        server: Callable[[], RunningServer | None] = watched,
        *,
        is_started: bool = True,
        driver: Driver | None = None,
        shortest_s: float = SHORTEST_S,
    ) -> None:
        self._device = device if device.startswith("cuda") else None
        self._server = server
        self._is_started = is_started
        self._driver = driver or NvmlDriver()
        self._shortest_s = shortest_s
        self._start: tuple[Value, ...] = ()
        self._samples: _Samples | None = None
        self._has_warned = False
        facts = driver_facts(visible_ordinal(device)) if self._device and driver is None else None
        self._uuid = facts.device_uuid if facts else None

    def begin(self, phase: Phase) -> None:
        self._start = self._now()
        self._samples = _Samples(self._now, self._shortest_s)

    def end(self, phase: Phase) -> list[Reading]:
        last = self._now()
        samples, self._samples = self._samples, None
        peaks, gap_s = samples.stop() if samples else (last, 0.0)
        readings: list[Reading] = []
        for place, (device, scope) in enumerate(self._scopes()):
            start, end = self._start[place], last[place]
            peak = highest([peaks[place], start, end])
            if peak == 0:  # where the end cannot be read, the zero from before the start is no peak
                peak = end
            readings += [
                reading(phase, device, scope, "start", start),
                reading(phase, device, scope, "peak", peak, sampled_every_s=max(gap_s, self._shortest_s)),
                reading(phase, device, scope, "end", end),
            ]
        for scope in _HIDDEN if self._device else ():
            for statistic in ("start", "peak", "end"):
                readings.append(reading(phase, self._device or "", scope, statistic, "not_exposed_by_engine"))
        return readings

    def _scopes(self) -> list[tuple[str, MemoryScope]]:
        on_card: list[tuple[str, MemoryScope]] = []
        if self._device:
            on_card = [(self._device, "process"), (self._device, "device")]
        return [("cpu", "host"), *on_card]

    def _now(self) -> tuple[Value, ...]:
        if not self._is_started:
            hidden: Value = "not_exposed_by_engine"
            return (hidden,) * len(self._scopes())
        server = self._server()
        processes = server.processes() if server else []
        host, process = self._host(server, processes), self._state(server, processes)
        if self._device is None:
            return (host,)
        pids = [each.pid for each in processes]
        on_card = self._driver.read_tree(self._uuid, pids)
        return (host, on_card.process if pids else process, on_card.device)

    def _host(self, server: RunningServer | None, processes: Sequence[psutil.Process]) -> Value:
        if not processes:
            return self._state(server, processes)
        found = tree_bytes(processes)
        if not found.is_shared_once and not self._has_warned:
            self._has_warned = True
            logging.getLogger(__name__).warning(
                "the server's memory on the host is the sum of resident sets: pages that its processes share count "
                "once for each"
            )
        return found.value

    def _state(self, server: RunningServer | None, processes: Sequence[psutil.Process]) -> Value:
        """Before its start a server has nothing; of one that ended there is nothing to read."""
        return 0 if server is None else "failed" if not processes else "not_measured"


class _Samples:
    """A thread that keeps the highest of each value, as often as their cost allows, and the longest gap between two."""

    def __init__(self, read: Callable[[], tuple[Value, ...]], shortest_s: float) -> None:
        self._read = read
        self._shortest_s = shortest_s
        self._peaks: tuple[Value, ...] = ()
        self._gap_s = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="server-memory", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        before = time.monotonic()
        wait_s = 0.0
        while not self._stopping.wait(wait_s):
            began, spent_s = time.monotonic(), time.thread_time()
            found = self._read()
            self._gap_s = max(self._gap_s, began - before)
            before = began
            self._peaks = tuple(map(_higher, self._peaks, found)) if self._peaks else found
            wait_s = max(self._shortest_s, (time.thread_time() - spent_s) * _COST_FACTOR)

    def stop(self) -> tuple[tuple[Value, ...], float]:
        """Return the highest values and the longest gap in seconds."""
        self._stopping.set()
        self._thread.join()
        return self._peaks or self._read(), self._gap_s


def tree_bytes(processes: Sequence[psutil.Process]) -> TreeBytes:
    """Return the host memory of processes together; one that ends meanwhile has none."""
    shared_once = [_proportional(each.pid) for each in processes]
    if all(value is not None for value in shared_once):
        return TreeBytes(sum(value or 0 for value in shared_once), True)
    return TreeBytes(sum(map(_resident, processes)), False)


def _proportional(pid: int) -> int | None:
    """Return the kernel's Pss; zero for a process that is gone, null where it cannot be read."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0 if not psutil.pid_exists(pid) else None
    except OSError:
        return None
    return 0  # it ended and waits to be reaped


def _resident(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def _higher(old: Value, new: Value) -> Value:
    return highest([old, new])
