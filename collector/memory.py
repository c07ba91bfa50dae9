"""Memory per phase and device: the worker's resident set, torch's CUDA counters, and what the driver sees.

A phase is a window: `begin` resets the peaks and reads the start, `end` reads peak and end, so that one phase's peak
never hides in another's. Devices are synchronised at both boundaries. Scopes stay apart: allocated (tensors), reserved
(torch's allocator), process (our process on the card, context included), device (whole card, everybody), host (resident
set of this process). They overlap and are never added.

Peaks of allocated, reserved and (on Linux) host are counters and exact. Process and device have no peak counter: theirs
is the highest of regular samples, so a lower bound, recorded as `sampled` with the interval.

The resident set holds what was touched: weights that a library maps from their file appear in it only when they are
first read, in the warm-up rather than in the load, and weights that are converted while loading appear twice meanwhile.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Protocol

from collector.contract.protocol import ServerChoice
from collector.contract.records import Reading
from collector.contract.records.base import Phase
from collector.memory_cuda import CudaMeter
from collector.memory_readings import Sampler, Value, highest, reading
from collector.nvidia import visible_ordinal

HOST_INTERVAL_S = 0.02
"""Only where the kernel's peak cannot be reset. A resident set moves faster than a driver answers."""


class MemoryMeter(Protocol):
    """Readings of one phase. `begin` and `end` come in pairs; phases do not nest."""

    def begin(self, phase: Phase) -> None:
        """Reset the peaks and read the start of the phase."""
        ...

    def end(self, phase: Phase) -> list[Reading]:
        """Return start, peak and end of each device and scope; pass_id is empty and filled by the worker."""
        ...


def meter_for(device: str, server: ServerChoice | None = None) -> MemoryMeter:
    """Return a meter for the engine's device (`cpu`, `cuda:0` ...): host always, plus that CUDA device.

    server: what answers instead of this process; then it is its memory that is read.

    Importing torch and starting CUDA are left to the engine, so their memory belongs to the load phase.
    """
    if server is not None:
        from collector.memory_server import ServerMeter

        return ServerMeter(device, is_started=bool(server.start))
    if not device.startswith("cuda"):
        return host_meter()
    return _Together([host_meter(), CudaMeter(visible_ordinal(device))])


def host_meter() -> MemoryMeter:
    """Return the meter of this process's resident set alone."""
    return HostMeter()


class HostMeter:
    """Resident set of this process: the kernel's peak (VmHWM), reset at `begin`; sampled where it cannot be reset."""

    def __init__(self, proc: Path = Path("/proc/self"), interval_s: float = HOST_INTERVAL_S) -> None:
        self._proc = proc
        self._interval_s = interval_s
        self._start: Value = "not_measured"
        self._sampler: Sampler | None = None

    def begin(self, phase: Phase) -> None:
        if not self._reset_peak():
            self._sampler = Sampler(lambda: (self._resident(),), self._interval_s)
        self._start = self._resident()

    def end(self, phase: Phase) -> list[Reading]:
        every_s = None if self._sampler is None else self._interval_s
        (peak,) = (self._status("VmHWM"),) if self._sampler is None else self._sampler.stop()
        self._sampler = None
        last = self._resident()
        return [
            reading(phase, "cpu", "host", "start", self._start),
            # The kernel updates its peak lazily; both ends lie inside the window and bound it from below.
            reading(phase, "cpu", "host", "peak", highest([peak, self._start, last]), sampled_every_s=every_s),
            reading(phase, "cpu", "host", "end", last),
        ]

    def _reset_peak(self) -> bool:
        try:
            (self._proc / "clear_refs").write_text("5", encoding="ascii")
        except OSError:
            return False
        return isinstance(self._status("VmHWM"), int)

    def _resident(self) -> Value:
        found = self._status("VmRSS")
        if isinstance(found, int):
            return found
        try:
            import psutil
        except ImportError:
            return "unsupported"
        return int(psutil.Process().memory_info().rss)

    def _status(self, field: str) -> Value:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (self._proc / "status").read_text(encoding="ascii", errors="replace").splitlines():
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
        return "unsupported"


class _Together:
    """Several meters as one; the first begun is the last ended."""

    def __init__(self, meters: list[MemoryMeter]) -> None:
        self._meters = meters

    def begin(self, phase: Phase) -> None:
        for meter in self._meters:
            meter.begin(phase)

    def end(self, phase: Phase) -> list[Reading]:
        by_meter = [meter.end(phase) for meter in reversed(self._meters)]
        return [reading for readings in reversed(by_meter) for reading in readings]
