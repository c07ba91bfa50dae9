"""Checks that processing had settled before counting began; it flags, and never cuts samples away."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

MIN_REQUESTS_PER_HALF = 4
TOLERANCE_PERCENT = 10
"""Wide enough for the noise of an idle machine, narrow enough for a clock that drops or a cache that warms."""


def is_steady(request_gap_medians_ns: Sequence[int]) -> bool | None:
    """Return whether the second half of a measurement was as fast as the first.

    Takes the median token gap of each request in the order of completion. Steady means: the medians of both halves are
    within 10 percent of the smaller one. Null for fewer than four requests in a half: too few to say anything.
    """
    half = len(request_gap_medians_ns) // 2
    if half < MIN_REQUESTS_PER_HALF:
        return None
    first = statistics.median_low(request_gap_medians_ns[:half])
    second = statistics.median_low(request_gap_medians_ns[-half:])
    return abs(second - first) * 100 <= TOLERANCE_PERCENT * min(first, second)
