"""The interval of a mean of judgements by degrees, which lie between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

from .latency_statistics import mean_interval
from .statistics import Bounds


def mean_of_values(values: Sequence[float]) -> Bounds | None:
    """Return the t interval of the documents' mean, cut to 0 to 1; null for so few or so equal values that none holds.

    It takes documents as independent. Close to 0 or 1 it is only about right: the values are bounded and skewed.
    """
    bounds = mean_interval(values)
    return None if bounds is None else Bounds(max(0.0, bounds.low), min(1.0, bounds.high))
