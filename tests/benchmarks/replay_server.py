"""Start the replay server and read its log: when each request was read, and when its first and last content was sent.

All stamps are nanoseconds of CLOCK_MONOTONIC, which `time.perf_counter_ns` of a client on this machine reads too. A
request is known by its number: the server puts it into the id of every event and makes it the first word of the answer.
"""

from __future__ import annotations

import bisect
import os
import subprocess
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

SOURCE = Path(__file__).parent / "replay_server.c"
BUSY_LIMIT = 0.70
"""Share of one core above which the server may have waited for itself: such a run says nothing about a client."""
_WINDOW_NS = 250_000_000
_STOP_S = 20.0


class Timetable(NamedTuple):
    """What every stream looks like: first content after `first_ms`, then one token every `gap_ms`."""

    first_ms: float = 100.0
    gap_ms: float = 10.0
    chunks: int = 32


class Served(NamedTuple):
    """One request in the server's log; a stamp is null where that never happened."""

    number: int
    last_byte_ns: int
    first_content_ns: int | None
    last_content_ns: int | None
    is_whole: bool
    label: str | None
    """The X-Request-Id the client sent."""

    @property
    def first_content_after_ns(self) -> int | None:
        return None if self.first_content_ns is None else self.first_content_ns - self.last_byte_ns


class ServerLog(NamedTuple):
    """The log of one run of the server: its requests, and its CPU time as it grew, (stamp, CPU ns) pairs."""

    served: list[Served]
    cpu: list[tuple[int, int]]

    def busiest_share(self) -> float:
        """Return the largest share of one core the server took in any quarter of a second while streams ran."""
        ends = [each.last_content_ns for each in self.served if each.last_content_ns is not None]
        if not ends or len(self.cpu) < 2:
            return 0.0
        begin = min(each.last_byte_ns for each in self.served)
        span_ns = min(_WINDOW_NS, max(max(ends) - begin, 1))
        stamps = [now for now, _ in self.cpu]
        shares = []
        for index, (now, cpu) in enumerate(self.cpu):
            later = bisect.bisect_left(stamps, now + span_ns)
            if later < len(self.cpu) and later > index:
                shares.append((self.cpu[later][1] - cpu) / (stamps[later] - now))
        return max(shares, default=(self.cpu[-1][1] - self.cpu[0][1]) / max(stamps[-1] - stamps[0], 1))

    def mean_in_progress(self) -> float:
        """Return the streams under way, averaged over the middle eight tenths of the time in which any was."""
        spans = [(each.last_byte_ns, each.last_content_ns) for each in self.served if each.last_content_ns is not None]
        if not spans:
            return 0.0
        begin, end = min(first for first, _ in spans), max(last for _, last in spans)
        low, high = begin + (end - begin) // 10, end - (end - begin) // 10
        inside = sum(max(0, min(last, high) - max(first, low)) for first, last in spans)
        return inside / (high - low) if high > low else 0.0

    def most_in_progress(self) -> int:
        """Return the largest number of streams under way at one moment."""
        steps = [(each.last_byte_ns, 1) for each in self.served if each.last_content_ns is not None]
        steps += [(each.last_content_ns, -1) for each in self.served if each.last_content_ns is not None]
        running = most = 0
        for _, step in sorted(steps):
            running += step
            most = max(most, running)
        return most

    def streams_per_s(self) -> float:
        """Return whole streams per second between the tenth and the ninetieth percentile of their ends."""
        ends = sorted(each.last_content_ns for each in self.served if each.is_whole and each.last_content_ns)
        low, high = len(ends) // 10, len(ends) - 1 - len(ends) // 10
        return (high - low) * 1e9 / (ends[high] - ends[low]) if high > low and ends[high] > ends[low] else 0.0

    def worst_lateness_ns(self, table: Timetable) -> int:
        """Return how late the latest first content left, against the timetable."""
        waited = [each.first_content_after_ns for each in self.served if each.first_content_after_ns is not None]
        return max(waited, default=0) - round(table.first_ms * 1e6)


def read_log(text: str) -> ServerLog:
    """Return what the server's log says."""
    served, cpu = [], []
    for line in text.splitlines():
        kind, *parts = line.split(" ", 8)
        if kind == "C":
            cpu.append((int(parts[0]), int(parts[1])))
            continue
        number, _, last_byte, _, first, last, whole, label = parts
        served.append(
            Served(
                number=int(number),
                last_byte_ns=int(last_byte),
                first_content_ns=int(first) or None,
                last_content_ns=int(last) or None,
                is_whole=whole == "1",
                label=None if label == "-" else label,
            )
        )
    assert all(later >= earlier for (_, earlier), (_, later) in pairwise(cpu))
    return ServerLog(served, cpu)


def compile_server(folder: Path) -> Path:
    """Compile the server into `folder` and return the program."""
    program = folder / "replay_server"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", program, SOURCE], check=True)
    return program


class ReplayServer:
    """A running server, pinned to one core; `stop` ends it and returns its log."""

    def __init__(self, program: Path, table: Timetable, *, folder: Path, core: int | None = None) -> None:
        self._log_path = folder / "replay.log"
        numbers = [str(round(table.first_ms * 1000)), str(round(table.gap_ms * 1000)), str(table.chunks)]
        self._process = subprocess.Popen(
            [str(program), str(self._log_path), *numbers],
            stdout=subprocess.PIPE,
            text=True,
        )
        if core is not None:
            os.sched_setaffinity(self._process.pid, {core})
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> ServerLog:
        """End the server and return its log."""
        self._process.terminate()
        self._process.wait(timeout=_STOP_S)
        return read_log(self._log_path.read_text("ascii"))

    def __enter__(self) -> ReplayServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
