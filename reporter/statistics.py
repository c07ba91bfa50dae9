"""Intervals and tests that SQL cannot do: Wilson, Tango, order statistics, exact McNemar, exact binomial bound."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

LEVEL_PERCENT = 95.0
"""Two-sided level of every interval of the dossier."""

MINIMUM_N: dict[int, int] = {50: 6, 90: 36, 95: 72, 99: 368}
"""Percentile -> fewest values for which both limits of its two-sided 95 % interval exist."""


class Bounds(NamedTuple):
    """Lower and upper limit of an interval."""

    low: float
    high: float


class Ranks(NamedTuple):
    """1-based ranks in a sorted sample; a limit that does not exist is null."""

    low: int | None
    high: int | None


def wilson(accepted: int, total: int, *, level_percent: float = LEVEL_PERCENT) -> Bounds | None:
    """Return the Wilson score interval of a share, 0 to 1; null for an empty sample.

    Raises ValueError unless 0 <= accepted <= total.
    """
    if not 0 <= accepted <= total:
        raise ValueError(f"{accepted} of {total} is no share")
    if total == 0:
        return None
    z = normal_quantile(0.5 + level_percent / 200)
    share = accepted / total
    centre = share + z * z / (2 * total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    low = 0.0 if accepted == 0 else (centre - half) / scale
    high = 1.0 if accepted == total else (centre + half) / scale
    return Bounds(low, high)


def quantile_rank(n: int, percent: int) -> int:
    """Return the 1-based rank of the percentile in a sorted sample of n: the smallest k with 100 k >= percent n.

    The definition of `quantile_disc` and numpy's `inverted_cdf`: always a value that was measured.
    """
    if n < 1 or not 0 < percent < 100:
        raise ValueError(f"no rank for percentile {percent} of {n} values")
    return max(1, -(-percent * n // 100))


@lru_cache(maxsize=65536)
def quantile_interval_ranks(n: int, percent: int, *, level_percent: float = LEVEL_PERCENT) -> Ranks:
    """Return the ranks whose values bound the percentile with at least the level's probability, for any distribution.

    With B ~ Binomial(n, p): low = the largest l with P(B <= l-1) <= alpha/2, high = the smallest u with
    P(B >= u) <= alpha/2. A limit is null where no such rank exists in 1..n. Ranks are not meaningful apart: print an
    interval only where both exist (n >= MINIMUM_N).
    """
    from scipy.special import bdtr, bdtrc  # scipy.stats takes a second to import

    if n < 1 or not 0 < percent < 100:
        raise ValueError(f"no interval for percentile {percent} of {n} values")
    tail, p = (1 - level_percent / 100) / 2, percent / 100
    ranks = range(1, n + 1)
    low = bisect.bisect_left(ranks, True, key=lambda rank: bool(bdtr(rank - 1, n, p) > tail))
    high = bisect.bisect_left(ranks, True, key=lambda rank: bool(bdtrc(rank - 1, n, p) <= tail)) + 1
    return Ranks(low if low >= 1 else None, high if high <= n else None)


def mcnemar_exact(lost: int, gained: int) -> float:
    """Return the exact two-sided p of McNemar's test on the discordant pairs; 1 where there is none.

    A large p is not evidence of equality.
    """
    from scipy.special import bdtr

    discordant = lost + gained
    return min(1.0, 2 * float(bdtr(min(lost, gained), discordant, 0.5))) if discordant else 1.0


def upper_bound(failures: int, total: int, *, level_percent: float = LEVEL_PERCENT) -> float | None:
    """Return the exact one-sided upper bound (Clopper-Pearson) of a share of failures; null for an empty sample.

    Without a failure it is 1 - 0.05^(1/n) at 95 %: what `total` good documents support and no more.
    """
    from scipy.special import betaincinv

    if not 0 <= failures <= total:
        raise ValueError(f"{failures} of {total} is no share")
    if total == 0:
        return None
    return 1.0 if failures == total else float(betaincinv(failures + 1, total - failures, level_percent / 100))


def documents_for_bound(failures: int, percent: float, *, level_percent: float = LEVEL_PERCENT) -> int:
    """Return the fewest documents with so many failures whose exact one-sided upper bound is within the percent."""
    sizes = range(failures + 1, 1_000_000)
    place = bisect.bisect_left(
        sizes, True, key=lambda n: (upper_bound(failures, n, level_percent=level_percent) or 1.0) * 100 <= percent
    )
    return sizes[place]


def tango(
    both_right: float, lost: float, gained: float, both_not_right: float, *, level_percent: float = LEVEL_PERCENT
) -> Bounds | None:
    """Return Tango's (1998) score interval of the paired difference (gained - lost) / n, -1 to 1; null for no pair.

    Holds its level for small samples and for tables without a discordant pair, where a normal interval has no width.
    Counts need not be whole: a design effect divides them.
    """
    n = both_right + lost + gained + both_not_right
    if n == 0:
        return None
    z = normal_quantile(0.5 + level_percent / 200)
    centre = (gained - lost) / n

    def score(delta: float) -> float:
        linear = -gained - lost + (2 * n - gained + lost) * delta
        constant = -lost * delta * (1 - delta)
        lost_share = (math.sqrt(max(0.0, linear * linear - 8 * n * constant)) - linear) / (4 * n)
        variance = n * (2 * lost_share + delta * (1 - delta))
        excess = gained - lost - n * delta
        return excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess)

    return Bounds(_root(score, z, -1.0, centre), _root(score, -z, 1.0, centre))


def _root(score: Callable[[float], float], wanted: float, end: float, centre: float) -> float:
    """Return where the score, falling with delta, takes the wanted value, between end and centre."""
    outer, inner = end, centre
    if abs(score(math.nextafter(end, centre))) < abs(wanted):
        return end
    for _ in range(200):
        middle = (outer + inner) / 2
        if middle in (outer, inner):
            break
        if abs(score(middle)) > abs(wanted):
            outer = middle
        else:
            inner = middle
    return (outer + inner) / 2


def normal_quantile(probability: float) -> float:
    """Return z with P(Z <= z) = probability for a standard normal Z."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def t_quantile(degrees: float, *, level_percent: float = LEVEL_PERCENT) -> float:
    """Return the factor of a two-sided t interval with these degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + level_percent / 200))
