"""What the memory meters share: a value or its reason, a sampling thread, and the reading made of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

from collector.contract.records import Reading
from collector.contract.records.base import MissingReason, Phase
from collector.contract.records.passes import CounterMethod, MemoryScope, Statistic

Value = int | MissingReason
"""Bytes, or why there are none."""


class Sampler:
    """A thread that keeps the highest of each value that `read` returns, until stopped."""

    def __init__(self, read: Callable[[], tuple[Value, ...]], interval_s: float) -> None:
        self._read = read
        self._interval_s = interval_s
        self._peaks = read()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-sampler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            self._take()

    def _take(self) -> None:
        self._peaks = tuple(highest([old, new]) for old, new in zip(self._peaks, self._read(), strict=True))

    def stop(self) -> tuple[Value, ...]:
        """Return the highest value of each, this moment included."""
        self._stopping.set()
        self._thread.join()
        self._take()
        return self._peaks


def highest(values: list[Value]) -> Value:
    """Return the highest number; the first reason where there is no number."""
    numbers = [value for value in values if isinstance(value, int)]
    return max(numbers) if numbers else values[0]


def reading(
    phase: Phase,
    device_id: str,
    scope: MemoryScope,
    statistic: Statistic,
    value: Value,
    *,
    sampled_every_s: float | None = None,
) -> Reading:
    """Return one reading; pass_id is left empty. A reason becomes a null with that reason, never a zero."""
    method: CounterMethod = "counter" if sampled_every_s is None else "sampled"
    is_known = isinstance(value, int)
    return Reading(
        pass_id="",
        phase=phase,
        device_id=device_id,
        memory_scope=scope,
        statistic=statistic,
        value_bytes=value if isinstance(value, int) else None,
        counter_method=method,
        sample_interval_ns=None if sampled_every_s is None else round(sampled_every_s * 1e9),
        missing={} if is_known else {"value_bytes": cast(MissingReason, value)},
    )
