"""How long a worker that has requests under way may say nothing before it is taken to hang.

It ends requests at their limits by itself and tells each try's end, so that only waits between two of them count: what
lies between tries at a server, and between the arrivals of an open loop.
"""

from __future__ import annotations

from itertools import pairwise

from collector.client.schedule import due_offsets_ns
from collector.events import PassJob

_ASKED_S = 60.0
"""A server's tokenizer and metrics are asked beside the requests; each answer is waited for, half as long."""


def patience_s(job: PassJob) -> float:
    """Return the seconds without any event after which the worker hangs: two requests' limits, and what waits need."""
    request_s, server = job.setup.limits.request_s, job.setup.engine.server
    if server is None:
        return 2 * request_s
    # After a try: the wait before the next (request_s at most), a stale connection's end, a fresh one, the next try.
    return 2 * (request_s + server.connect_s) + _ASKED_S + _longest_gap_s(job)


def _longest_gap_s(job: PassJob) -> float:
    load = job.load
    if load.rate_per_s is None:
        return 0.0
    # Each phase begins the same row of arrivals.
    count = max(len(job.warmup), len(job.measure), 2)
    offsets_ns = due_offsets_ns(count, rate_per_s=load.rate_per_s, arrivals=load.arrivals, seed=load.seed)
    return max(later - earlier for earlier, later in pairwise(offsets_ns)) / 1e9
