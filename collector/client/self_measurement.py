"""What the load generator measures of itself while its window runs, and whether it was the limit.

From the first intended send to the end of the last request, by the machine's monotonic clock. Loop lag: an alarm every
TICK_NS; how late its callback runs is how late a stamp of received bytes may be, since both wait for the same loop.
Ticks that a busy loop swallowed are counted as late as they would have been, else the worst would be seen once. Send
delay: from the intended send to the bytes being handed to the socket, of first tries that had not to wait for the limit
of requests under way. Processor share: time of this process, all its threads, over the window.
"""

from __future__ import annotations

import time
from array import array

from collector.client.alarm import alarm
from collector.contract.records import ClientWindow
from collector.contract.records.base import MissingReason

TICK_NS = 50_000_000
"""Every 10 ms, these would wake the process more often than a stream with a token each 10 ms does."""
PROCESSOR_SHARE = 0.8
"""Of the one core that a loop can use: with random arrivals, bytes then wait four times as long as handling them takes
(M/M/1), and longer with every further per cent."""
LATE_SEND_SHARE = 0.05
"""Of the mean gap between arrivals: later sends make another load than the one that was asked for."""
LAG_LIMIT_NS = 10_000_000
"""A lag at p99 that is as long as the gap between two tokens of a fast server."""
SHORTEST_SHARE_NS = 1_000_000_000
"""A processor share over less is about the start, which sends all first requests at once."""

_NO_PASS = "0" * 16
"""Until the engine fills in its own."""


class SelfMeasurement:
    """One window's counts and stamps."""

    def __init__(self) -> None:
        self._lags_ns = array("q")
        self._delays_ns = array("q")
        self._ticker = alarm(self._tick)
        self._due_ns = 0
        self._begin_ns = 0
        self._begin_cpu_ns = 0
        self._under_way = 0
        self.in_flight_max = 0
        self.retry_count = 0
        self.limit_wait_count = 0
        """Arrivals that found as many requests under way as may be."""

    def begin(self, begin_ns: int) -> None:
        """Start measuring; begin_ns is the first intended send."""
        self._begin_ns = begin_ns
        self._begin_cpu_ns = time.process_time_ns()
        self._due_ns = time.perf_counter_ns() + TICK_NS
        self._ticker.ring_at(self._due_ns)

    def sent(self) -> None:
        """A request is on its way."""
        self._under_way += 1
        self.in_flight_max = max(self.in_flight_max, self._under_way)

    def ended(self) -> None:
        """It is no more."""
        self._under_way -= 1

    def delayed(self, delay_ns: int) -> None:
        """Take the time from a request's intended send to its real one."""
        self._delays_ns.append(max(0, delay_ns))

    def window(
        self, end_ns: int, *, mean_gap_ns: float | None, connection_count: int, reconnect_count: int
    ) -> ClientWindow:
        """Stop, and return what was measured. mean_gap_ns: between an open loop's arrivals, null in a closed one."""
        self._ticker.close()
        cpu_ns = time.process_time_ns() - self._begin_cpu_ns
        window_ns = max(0, end_ns - self._begin_ns)
        lags_ns, delays_ns = sorted(self._lags_ns), sorted(self._delays_ns)
        measured_ns = max(1, time.perf_counter_ns() - self._begin_ns)
        cpu_share = cpu_ns / measured_ns
        reasons = limit_reasons(
            cpu_share=cpu_share if measured_ns >= SHORTEST_SHARE_NS else None,
            loop_lag_p99_ns=quantile(lags_ns, 0.99),
            send_delay_p99_ns=quantile(delays_ns, 0.99),
            mean_gap_ns=mean_gap_ns,
            limit_wait_count=self.limit_wait_count,
        )
        return ClientWindow(
            pass_id=_NO_PASS, phase="measure", window_ns=window_ns, cpu_share=cpu_share,
            loop_lag_p50_ns=quantile(lags_ns, 0.5), loop_lag_p99_ns=quantile(lags_ns, 0.99),
            loop_lag_max_ns=quantile(lags_ns, 1.0), send_delay_p50_ns=quantile(delays_ns, 0.5),
            send_delay_p99_ns=quantile(delays_ns, 0.99), send_delay_max_ns=quantile(delays_ns, 1.0),
            connection_count=connection_count, reconnect_count=reconnect_count, retry_count=self.retry_count,
            in_flight_max=self.in_flight_max, is_limit=bool(reasons), limit_reasons=reasons,
            missing=_missing(has_lags=bool(lags_ns), has_delays=bool(delays_ns)),
        )  # fmt: skip

    def _tick(self) -> None:
        lag_ns = time.perf_counter_ns() - self._due_ns
        while lag_ns >= 0:
            self._lags_ns.append(lag_ns)
            lag_ns -= TICK_NS
            self._due_ns += TICK_NS
        self._ticker.ring_at(self._due_ns)


def _missing(*, has_lags: bool, has_delays: bool) -> dict[str, MissingReason]:
    """A window shorter than a tick has no lag, and one in which nothing was sent no delay."""
    empty = [*(() if has_lags else ("loop_lag",)), *(() if has_delays else ("send_delay",))]
    return {f"{name}_{rank}_ns": "too_few_samples" for name in empty for rank in ("p50", "p99", "max")}


def quantile(ordered_ns: list[int], share: float) -> int | None:
    """Return the smallest value that at least this share of all values does not exceed; null of none."""
    if not ordered_ns:
        return None
    return ordered_ns[max(0, -int(-share * len(ordered_ns) // 1) - 1)]


def limit_reasons(
    *, cpu_share: float | None, loop_lag_p99_ns: int | None, send_delay_p99_ns: int | None, mean_gap_ns: float | None,
    limit_wait_count: int,
) -> list[str]:  # fmt: skip
    """Return by what the client limited its own measurement, nothing where it did not.

    cpu_share: null where the window was too short to say. mean_gap_ns: null in a closed loop.
    """
    reasons: list[str] = []
    if cpu_share is not None and cpu_share > PROCESSOR_SHARE:
        reasons.append("processor")
    if mean_gap_ns is not None and send_delay_p99_ns is not None and send_delay_p99_ns > LATE_SEND_SHARE * mean_gap_ns:
        reasons.append("late_sends")
    if loop_lag_p99_ns is not None and loop_lag_p99_ns > LAG_LIMIT_NS:
        reasons.append("loop_lag")
    if limit_wait_count:
        reasons.append("in_flight_limit")
    return reasons
