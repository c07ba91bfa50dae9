"""Break-even: total price over needed hours under each tariff, and the exact hours at which the cheapest changes.

One tariff covers the whole need; packages of several lengths are not combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import NamedTuple

from collector.contract.campaign import Campaign
from collector.contract.money import Money, exact
from collector.contract.tariffs import NS_PER_HOUR, Tariff, bill

from .exchange import converted_price

LEAST_HORIZON_NS = 720 * NS_PER_HOUR
MOST_HORIZON_NS = 8_760 * NS_PER_HOUR
"""A year: beyond it buying is the question."""
FINE_NS = 1_800 * 10**9
"""Billing steps shorter than this are too many to list; their crossings are bisected, step by step as billed."""


class Segment(NamedTuple):
    """Needed hours over `start_ns`, up to and including `end_ns`, where one tariff is the cheapest.

    lowest, highest: its net price just over the start and at the end.
    """

    start_ns: int
    end_ns: int
    tariff: Tariff
    lowest: Money
    highest: Money


class Totals:
    """Net totals of tariffs in the currency everything is compared in; equal totals go to the lower gross, then order.

    A tariff whose currency has no rate is not compared.
    """

    def __init__(self, tariffs: Sequence[Tariff], campaign: Campaign) -> None:
        self._campaign = campaign
        self.tariffs = [t for t in tariffs if converted_price(bill(t, Fraction(1)).price, campaign) is not None]
        self._known: dict[tuple[int, int], tuple[Money, Money]] = {}

    def price(self, index: int, needed_ns: int) -> tuple[Money, Money]:
        """Return net and gross of one tariff for a need; each step of its bill is computed once."""
        key = (index, _step(self.tariffs[index], needed_ns))
        if key not in self._known:
            price = converted_price(bill(self.tariffs[index], Fraction(needed_ns)).price, self._campaign)
            assert price is not None
            self._known[key] = (price.net, price.gross)
        return self._known[key]

    def cheapest(self, needed_ns: int) -> int:
        """Return the index of the cheapest tariff for a need."""
        return min(range(len(self.tariffs)), key=lambda index: (*self.price(index, needed_ns), index))


def _step(tariff: Tariff, needed_ns: int) -> int:
    """Return which step of a tariff a need falls into: its bill is the same for the whole step."""
    step_ns = tariff.offer.billing_step_s * 10**9 if tariff.days is None else tariff.days * 24 * NS_PER_HOUR
    return -(-needed_ns // step_ns)


def horizon_ns(needs: Sequence[Fraction]) -> int:
    """Return up to which need tariffs are compared: 720 h, or a quarter beyond the largest need, at most a year."""
    largest = max((-(-need // 1) for need in needs), default=0)
    wanted = -(-largest * 5 // (4 * 24 * NS_PER_HOUR)) * 24 * NS_PER_HOUR
    return min(max(LEAST_HORIZON_NS, wanted), MOST_HORIZON_NS)


def segments(totals: Totals, until_ns: int) -> list[Segment]:
    """Return which tariff is cheapest up to `until_ns`, without gaps: the exact hours at which that changes.

    Totals never fall as the need grows, so within the steps of all packages each crossing is found by halving the
    steps of the billing by the hour. Two tariffs that are both billed in steps under half an hour may cross several
    times within a few steps, since each amount is rounded; then one of these crossings is given.
    """
    if not totals.tariffs:
        return []
    grid = _fine_grid_ns(totals.tariffs)
    found: list[tuple[int, int, int]] = []
    firsts: list[int] = []
    start = 0
    for end in breakpoints(totals.tariffs, until_ns):
        for piece in _split(totals, start, end, grid):
            if found and found[-1][2] == piece[2]:
                found[-1] = (found[-1][0], piece[1], piece[2])
            else:
                found.append(piece)
                firsts.append(_first_after(piece[0], piece[1], grid))
        start = end
    return [
        Segment(a, b, totals.tariffs[i], totals.price(i, first)[0], totals.price(i, b)[0])
        for (a, b, i), first in zip(found, firsts, strict=True)
    ]


def breakpoints(tariffs: Sequence[Tariff], until_ns: int) -> list[int]:
    """Return the needs at which a package is full, a coarse billing step ends or a minimum is used up."""
    points = {until_ns}
    for tariff in tariffs:
        step = _coarse_step_ns(tariff)
        if step is not None:
            points.update(range(step, until_ns, step))
        if tariff.days is None:
            minimum = int(exact(tariff.offer.minimum_hours) * NS_PER_HOUR)
            points.update({minimum} if 0 < minimum < until_ns else ())
            if any(fee.per == "day" for fee in tariff.offer.fees):
                points.update(range(24 * NS_PER_HOUR, until_ns, 24 * NS_PER_HOUR))
    return sorted(points)


def _coarse_step_ns(tariff: Tariff) -> int | None:
    if tariff.days is not None:
        return tariff.days * 24 * NS_PER_HOUR
    step = tariff.offer.billing_step_s * 10**9
    return step if step >= FINE_NS else None


def _fine_grid_ns(tariffs: Sequence[Tariff]) -> int | None:
    """Return the step in which all fine tariffs are constant; null where none is fine."""
    steps = [t.offer.billing_step_s * 10**9 for t in tariffs if t.days is None and _coarse_step_ns(t) is None]
    return reduce(gcd, steps) if steps else None


def _first_after(start: int, end: int, grid: int | None) -> int:
    """Return a need in the first step over `start`: the step's end, where prices are those of the whole step."""
    return end if grid is None else min(end, (start // grid + 1) * grid)


def _split(totals: Totals, start: int, end: int, grid: int | None) -> list[tuple[int, int, int]]:
    """Return the pieces of (start, end] by cheapest tariff; all but the fine ones are constant in it."""
    if grid is None:
        return [(start, end, totals.cheapest(end))]
    pieces = []
    while start < end:
        first = _first_after(start, end, grid)
        best = totals.cheapest(first)
        low, high = first, end
        if totals.cheapest(end) == best:
            low = end
        else:
            while high - low > grid:  # the cheapest at `low` is `best`, at `high` it is another
                middle = (low + high) // 2 // grid * grid
                middle = middle if middle > low else low + grid
                if totals.cheapest(middle) == best:
                    low = middle
                else:
                    high = middle
        pieces.append((start, low, best))
        start = low
    return pieces
