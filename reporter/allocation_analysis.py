"""What testing each candidate alone would cost, what dropping it would save, and Shapley's mean: never an allocation.

A cost game gives the cost of every subset of what was tested. Its sums differ from what was paid: it is analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import factorial
from typing import NamedTuple

MOST_PLAYERS = 10
"""Shapley's mean looks at every subset: 1,024 of ten, a million of twenty."""

Cost = Callable[[frozenset[str]], Fraction]


class Utilisation(NamedTuple):
    """Device time of one rental: what was rented by its dates, what passes used by the worker's clock.

    The two come from different inputs; where they coincide the devices were busy all the time.
    """

    paid_ns: int
    busy_ns: Fraction

    @property
    def ratio(self) -> Fraction:
        """Busy part of the rented time; above 1 where more was used than paid for."""
        return self.busy_ns / self.paid_ns

    @property
    def idle_ns(self) -> Fraction:
        return max(Fraction(0), self.paid_ns - self.busy_ns)

    def used_cost(self, paid: Fraction) -> Fraction:
        """Return the part of what was paid that falls on busy time; all of it where nothing was idle."""
        return paid * min(Fraction(1), self.ratio)


def per_unit(answers: int, cost: Fraction) -> Fraction | None:
    """Return how many documents were answered for one unit of the currency; null where nothing was paid.

    `answers` counts documents: a batch has as many as it has rows, and its size enters nowhere else.
    """
    return answers / cost if cost > 0 else None


def stand_alone(players: Sequence[str], cost: Cost) -> dict[str, Fraction]:
    """Return what each would cost if it alone were tested."""
    return {player: cost(frozenset([player])) for player in players}


def incremental(players: Sequence[str], cost: Cost) -> dict[str, Fraction]:
    """Return what leaving each one out would save: the cost of all less that of all others."""
    everyone = frozenset(players)
    return {player: cost(everyone) - cost(everyone - {player}) for player in players}


def shapley(players: Sequence[str], cost: Cost) -> dict[str, Fraction] | None:
    """Return the mean of what each adds over all orders of joining, exact; null for more than ten.

    Sums to the cost of all less that of none.
    """
    if len(players) > MOST_PLAYERS:
        return None
    count = len(players)
    costs = {
        subset: cost(subset)
        for size in range(count + 1)
        for subset in map(frozenset, combinations(players, size))
    }  # fmt: skip
    share = [Fraction(factorial(size) * factorial(count - size - 1), factorial(count)) for size in range(count)]
    return {
        player: sum(
            (
                share[len(subset)] * (costs[subset | {player}] - costs[subset])
                for subset in costs
                if player not in subset
            ),
            Fraction(0),
        )
        for player in players
    }


def hours_game(
    needed_ns: Mapping[tuple[str, str], Fraction | int], price_of: Callable[[str, Fraction], Fraction]
) -> Cost:
    """Return the game in which a subset costs the packages its hours need on each machine.

    needed_ns: (machine, target) -> time of its passes there. price_of: machine and hours -> price of whole packages.
    """
    known: dict[tuple[str, Fraction], Fraction] = {}

    def cost(subset: frozenset[str]) -> Fraction:
        total = Fraction(0)
        for machine in sorted({machine for machine, target in needed_ns if target in subset}):
            needed = sum(
                (Fraction(ns) for (name, target), ns in needed_ns.items() if name == machine and target in subset),
                Fraction(0),
            )
            if (machine, needed) not in known:
                known[machine, needed] = price_of(machine, needed)
            total += known[machine, needed]
        return total

    return cost
