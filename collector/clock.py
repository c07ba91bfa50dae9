"""The one place that reads a clock. Durations come from a monotonic clock, calendar stamps from UTC."""

from __future__ import annotations

import datetime as dt
import time
from typing import Protocol


class Clock(Protocol):
    """Time as the collector sees it; tests use `FakeClock`."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds of a clock that never goes back."""
        ...

    def utc(self) -> str:
        """Return the wall clock as UTC with microseconds and `Z`."""
        ...

    def sleep_until_ns(self, deadline_ns: int) -> None:
        """Return when `monotonic_ns()` has reached the deadline."""
        ...


class SystemClock:
    """The machine's clocks: `perf_counter_ns` (monotonic, highest resolution) and UTC."""

    def monotonic_ns(self) -> int:
        return time.perf_counter_ns()

    def utc(self) -> str:
        return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def sleep_until_ns(self, deadline_ns: int) -> None:
        while (left_ns := deadline_ns - time.perf_counter_ns()) > 0:
            time.sleep(left_ns / 1e9)


class FakeClock:
    """A clock that moves only when told to, or when someone sleeps."""

    def __init__(self, start_ns: int = 0, start_utc: str = "2026-01-01T00:00:00.000000Z") -> None:
        self._start_ns = start_ns
        self._now_ns = start_ns
        self._start_utc = dt.datetime.strptime(start_utc, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=dt.UTC)

    def monotonic_ns(self) -> int:
        return self._now_ns

    def utc(self) -> str:
        now = self._start_utc + dt.timedelta(microseconds=(self._now_ns - self._start_ns) // 1000)
        return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def sleep_until_ns(self, deadline_ns: int) -> None:
        self._now_ns = max(self._now_ns, deadline_ns)

    def advance_ns(self, step_ns: int) -> None:
        """Move the clock forward."""
        self._now_ns += step_ns
