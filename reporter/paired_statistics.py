"""What a paired comparison can decide: an outcome against a margin, the smallest margin in reach, documents needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from .statistics import LEVEL_PERCENT, Bounds, normal_quantile, t_quantile, tango, wilson

Outcome = Literal["accept", "reject", "inconclusive"]

POWER_PERCENT = 80
"""An equally good variant is accepted in so many of 100 campaigns of the size that `documents_needed` names."""


FEWEST_CLUSTERS = 15
"""From so many clusters on, the clustered interval holds its level in simulation without being far too wide."""


class Pairs(NamedTuple):
    """The documents by what became of them in the reference and in the variant; together N, none left out."""

    both_right: int
    lost: int
    gained: int
    both_not_right: int

    @property
    def total(self) -> int:
        return sum(self)

    @property
    def discordant(self) -> int:
        return self.lost + self.gained


def margin_outcome(points: str, pairs: Pairs, *, level_percent: float = LEVEL_PERCENT) -> Outcome:
    """Return what the paired interval says of a margin, as the protocol writes it (`"3"`, `"0.5"`: exact, in points).

    accept: the interval of (gained - lost) / N lies above -margin. reject: it lies below. Anything else, and no
    document at all, is inconclusive.
    """
    bounds = tango(*pairs, level_percent=level_percent)
    if bounds is None:
        return "inconclusive"
    margin = Fraction(points) / 100
    if Fraction(bounds.low) > -margin:
        return "accept"
    return "reject" if Fraction(bounds.high) < -margin else "inconclusive"


def share_outcome(percent: str, accepted: int, total: int, *, level_percent: float = LEVEL_PERCENT) -> Outcome:
    """Return what the Wilson interval of a share says of the share that a rule wants (exact, in percent).

    accept: the interval lies at or above it. reject: it lies below. Anything else is inconclusive.
    """
    bounds = wilson(accepted, total, level_percent=level_percent)
    if bounds is None:
        return "inconclusive"
    wanted = Fraction(percent) / 100
    if Fraction(bounds.low) >= wanted:
        return "accept"
    return "reject" if Fraction(bounds.high) < wanted else "inconclusive"


def share_documents_needed(
    percent: str,
    accepted: int,
    total: int,
    *,
    level_percent: float = LEVEL_PERCENT,
    power_percent: float = POWER_PERCENT,
) -> int | None:
    """Return how many documents decide a share that a rule wants, if the share observed is the true one.

    N = ceil(((z_a sqrt(w (1 - w)) + z_b sqrt(s (1 - s))) / (s - w))^2) with w the share wanted and s the one observed:
    the interval then lies on one side of the line in so many of 100 trials as the power says. Null where the two are
    equal, which no number of documents decides, and for no document.
    """
    if total == 0 or Fraction(accepted, total) == Fraction(percent) / 100:
        return None
    wanted, share = float(Fraction(percent) / 100), accepted / total
    z_level, z_power = normal_quantile(0.5 + level_percent / 200), normal_quantile(power_percent / 100)
    spread = z_level * math.sqrt(wanted * (1 - wanted)) + z_power * math.sqrt(share * (1 - share))
    return math.ceil((spread / (share - wanted)) ** 2)


def smallest_decidable_points(count: int, discordant: int, *, level_percent: float = LEVEL_PERCENT) -> float | None:
    """Return the margin, in points, from which on an equally good variant is accepted; null for no document.

    The distance of the lower limit from zero where the same number of discordant pairs falls evenly to both sides (the
    odd one to the lost): a smaller margin stays undecided even then.
    """
    gained = discordant // 2
    bounds = tango(count - discordant, discordant - gained, gained, 0, level_percent=level_percent)
    return None if bounds is None else -100 * bounds.low


def documents_needed(
    points: str, discordant_share: float, *, level_percent: float = LEVEL_PERCENT, power_percent: float = POWER_PERCENT
) -> int | None:
    """Return how many documents decide the margin for an equally good variant; null for a margin of zero.

    N = ceil((z_a + z_b)^2 x share / margin^2) with a the one-sided error of the interval and b = 1 - power, and no
    fewer than the interval needs where no pair is discordant: its lower limit is then -z^2 / (N + z^2).
    """
    margin = float(Fraction(points) / 100)
    if margin <= 0:
        return None
    z_level, z_power = normal_quantile(0.5 + level_percent / 200), normal_quantile(power_percent / 100)
    by_power = math.ceil((z_level + z_power) ** 2 * discordant_share / margin**2)
    fewest = math.floor(z_level**2 * (1 / margin - 1)) + 1 if margin < 1 else 1
    return max(by_power, fewest)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p of each test of one family, in the given order."""
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        reached = max(reached, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = reached
    return adjusted


class ClusterSums(NamedTuple):
    """Whole-number sums over the clusters of paired documents: what a variance between clusters is made of.

    net = gained - lost of one cluster, size = its documents.
    """

    clusters: int
    net_net: int
    net_size: int
    size_size: int


def tango_clustered(pairs: Pairs, sums: ClusterSums, *, level_percent: float = LEVEL_PERCENT) -> Bounds | None:
    """Return Tango's interval for documents that come in clusters; null below FEWEST_CLUSTERS.

    The counts are divided by the design effect (Rao and Scott): variance of the difference between cluster sums over
    that of independent documents, never below 1, times (t / z)^2 with clusters - 1 degrees of freedom. A percentile
    bootstrap of the clusters and a plain t interval fall short of the level where few documents change (simulated: 67
    to 95 and 75 to 97 %).
    """
    if sums.clusters < FEWEST_CLUSTERS or pairs.total == 0:
        return None
    total, mean = pairs.total, (pairs.gained - pairs.lost) / pairs.total
    squares = sums.net_net - 2 * mean * sums.net_size + mean * mean * sums.size_size
    between = sums.clusters / (sums.clusters - 1) * squares / total**2
    independent = (pairs.discordant / total - mean * mean) / total
    effect = max(1.0, between / independent) if independent > 0 else 1.0
    factor = t_quantile(sums.clusters - 1, level_percent=level_percent) / normal_quantile(0.5 + level_percent / 200)
    effect *= factor * factor
    return tango(*(count / effect for count in pairs), level_percent=level_percent)
