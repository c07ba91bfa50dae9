"""An alarm that rings at a nanosecond of the monotonic clock.

Why not the loop's own timers: asyncio and uvloop wait in whole milliseconds, which would make a send late by as much,
and every timer look as late as the loop had been busy. Linux has clocks that become readable like a socket
(timerfd); such an alarm is as late as a received byte would be. Elsewhere the loop's timers have to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import time
from collections.abc import Callable
from typing import Any, Protocol

_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1
_NS = 1_000_000_000


class Alarm(Protocol):
    """Calls back once per `ring_at`; a later call replaces the one that has not rung."""

    def ring_at(self, due_ns: int) -> None: ...

    def close(self) -> None: ...


def alarm(callback: Callable[[], None]) -> Alarm:
    """Return an alarm of the running loop, the finest that this machine has."""
    loop = asyncio.get_running_loop()
    libc = _libc()
    return _LoopAlarm(loop, callback) if libc is None else _ClockAlarm(loop, callback, libc)


async def sleep_until(due_ns: int) -> None:
    """Return at that time of the monotonic clock, by the loop's own timers: late by a millisecond or more, never early.

    They count from when the loop's turn began.
    """
    while (left_ns := due_ns - time.perf_counter_ns()) > 0:
        await asyncio.sleep(left_ns / _NS)


class _Interval(ctypes.Structure):
    _fields_ = [
        ("every_s", ctypes.c_long), ("every_ns", ctypes.c_long), ("due_s", ctypes.c_long), ("due_ns", ctypes.c_long),
    ]  # fmt: skip


def _libc() -> Any:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):
        return None
    return libc if hasattr(libc, "timerfd_create") and hasattr(libc, "timerfd_settime") else None


class _ClockAlarm:
    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None], libc: Any) -> None:
        self._loop = loop
        self._callback = callback
        self._libc = libc
        self._clock = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._clock < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        loop.add_reader(self._clock, self._ring)

    def ring_at(self, due_ns: int) -> None:
        seconds, nanoseconds = divmod(max(1, due_ns), _NS)  # 0 would stop it
        interval = _Interval(0, 0, seconds, nanoseconds)
        if self._libc.timerfd_settime(self._clock, _ABSOLUTE, ctypes.byref(interval), None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        self._loop.remove_reader(self._clock)
        os.close(self._clock)

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # set anew since it became readable
            os.read(self._clock, 8)
            self._callback()


class _LoopAlarm:
    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._timer: asyncio.TimerHandle | None = None

    def ring_at(self, due_ns: int) -> None:
        self.close()
        left_s = max(0, due_ns - time.perf_counter_ns()) / _NS
        self._timer = self._loop.call_later(left_s, self._ring, due_ns)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self, due_ns: int) -> None:
        if time.perf_counter_ns() < due_ns:  # the loop counts from when its turn began
            self.ring_at(due_ns)
        else:
            self._callback()
