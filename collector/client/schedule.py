"""When the requests of an open loop are due: a pure function of their number, the rate and the seed.

Drawn arrivals are those of a Poisson process: independent gaps, each `random.Random(seed).expovariate(rate)`, in
seconds, added up and rounded to nanoseconds. Python documents that one seed gives one sequence of `random()` in every
version, and a gap is `-log(1 - random()) / rate`. The first request is due at once, for a window begins with a request.
"""

from __future__ import annotations

import random

from collector.contract.records.passes import LoopKind


def due_offsets_ns(count: int, *, rate_per_s: float, arrivals: LoopKind, seed: int) -> list[int]:
    """Return when each of `count` requests is due, in nanoseconds from the first, never falling.

    Raises ValueError for a closed loop, whose requests are due when one before them ends, and for no rate.
    """
    if arrivals == "closed":
        raise ValueError("a closed loop has no schedule: a request is due when a slot becomes free")
    if not rate_per_s > 0:
        raise ValueError(f"an open loop needs a rate above 0, not {rate_per_s}")
    if arrivals == "constant":
        return [round(place * 1e9 / rate_per_s) for place in range(count)]
    draw = random.Random(seed)
    offsets_ns: list[int] = []
    due_s = 0.0
    for _ in range(count):
        offsets_ns.append(round(due_s * 1e9))
        due_s += draw.expovariate(rate_per_s)
    return offsets_ns
