"""Memory of one CUDA device per phase: torch's two counters, our process and the whole card by the driver.

The one module that touches torch's counters; `nvidia` asks the driver. Allocated and reserved peaks are torch's own,
exact within the window; process and card have no peak counter, so theirs is the highest of regular samples: a lower
bound.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Protocol, cast

from collector.contract.records import Reading
from collector.contract.records.base import Phase
from collector.contract.records.passes import MemoryScope
from collector.memory_readings import Sampler, Value, highest, reading
from collector.nvidia import DriverReading, NvmlDriver

DRIVER_INTERVAL_S = 0.1


class CudaCounters(Protocol):
    """What is used of `torch.cuda` (CUDA and ROCm alike); tests give a fake."""

    def synchronize(self, device: int) -> None: ...
    def reset_peak_memory_stats(self, device: int) -> None: ...
    def memory_allocated(self, device: int) -> int: ...
    def max_memory_allocated(self, device: int) -> int: ...
    def memory_reserved(self, device: int) -> int: ...
    def max_memory_reserved(self, device: int) -> int: ...
    def mem_get_info(self, device: int) -> tuple[int, int]: ...
    def get_device_properties(self, device: int) -> Any: ...


class Driver(Protocol):
    """The driver's view of a card; tests give a fake."""

    def read(self, uuid: str | None, pid: int) -> DriverReading:
        """Return the bytes in use on the card with this UUID, by process `pid` and by everybody.

        Without a UUID (before CUDA starts) only a machine with one card can be read: the driver's numbering is not
        CUDA's.
        """
        ...


class CudaMeter:
    """One CUDA device: torch's counters, the process's and the card's use by the driver."""

    def __init__(
        self,
        index: int,
        *,
        counters: Callable[[], CudaCounters | None] | None = None,
        driver: Driver | None = None,
        interval_s: float = DRIVER_INTERVAL_S,
    ) -> None:
        self._index = index
        self._counters = counters or _started_cuda
        self._driver = driver or NvmlDriver()
        self._interval_s = interval_s
        self._start: tuple[Value, ...] = ()
        self._sampler: Sampler | None = None

    def begin(self, phase: Phase) -> None:
        if cuda := self._counters():
            cuda.synchronize(self._index)
            cuda.reset_peak_memory_stats(self._index)
        self._start = (*self._torch_now(), *self._driver_now())
        self._sampler = Sampler(self._driver_now, self._interval_s)

    def end(self, phase: Phase) -> list[Reading]:
        cuda = self._counters()
        if cuda:
            cuda.synchronize(self._index)
        sampled = self._sampler.stop() if self._sampler else ("not_measured", "not_measured")
        self._sampler = None
        last = (*self._torch_now(), *self._driver_now())
        # Before CUDA starts torch has allocated nothing: that zero is a fact, not an unknown.
        counted: tuple[Value, ...] = (
            (cuda.max_memory_allocated(self._index), cuda.max_memory_reserved(self._index)) if cuda else (0, 0)
        )
        device = f"cuda:{self._index}"
        readings: list[Reading] = []
        scopes: tuple[MemoryScope, ...] = ("allocated", "reserved", "process", "device")
        for place, scope in enumerate(scopes):
            start, end = self._start[place], last[place]
            readings.append(reading(phase, device, scope, "start", start))
            if place < len(counted):
                readings.append(reading(phase, device, scope, "peak", counted[place]))
            else:
                # Where the end cannot be read, neither could the samples: the zero from before CUDA is no peak.
                peak = highest([sampled[place - len(counted)], start, end]) if isinstance(end, int) else end
                readings.append(reading(phase, device, scope, "peak", peak, sampled_every_s=self._interval_s))
            readings.append(reading(phase, device, scope, "end", end))
        return readings

    def _torch_now(self) -> tuple[Value, Value]:
        cuda = self._counters()
        return (cuda.memory_allocated(self._index), cuda.memory_reserved(self._index)) if cuda else (0, 0)

    def _driver_now(self) -> tuple[Value, Value]:
        cuda = self._counters()
        uuid = str(getattr(cuda.get_device_properties(self._index), "uuid", "")) or None if cuda else None
        process, device = self._driver.read(uuid, os.getpid())
        if cuda is None:
            process = 0
        elif not isinstance(device, int):
            free, total = cuda.mem_get_info(self._index)
            device = total - free
        return process, device


def _started_cuda() -> CudaCounters | None:
    """Return torch.cuda once the engine has started it; never starts it, which would cost its memory early."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized") or not cuda.is_initialized():
        return None
    return cast(CudaCounters, cuda)
