"""Origin charges split among what was measured, by a published convention that never changes the total.

Each charge is split once, whole, by `money.split`; no subtotal is ever split again. A charge that names its candidate
is that candidate's under every convention. What a convention cannot share stays on a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from collector.contract.charges import CONVENTIONS, Charge, Convention, IdleMode
from collector.contract.money import Money, split

CONVENTION_VERSION = 1
"""Changes with the meaning of any convention below; printed beside its name."""
IDLE = "idle"
UNALLOCATED = "unallocated"
OWN_LINES = (IDLE, UNALLOCATED)
Undefined = Literal["no_usage", "no_accepted_output", "no_direct_cost", "no_weights"]
Weights = dict[str, Fraction]


class Target(NamedTuple):
    """What bears cost: a candidate of the campaign, or a measured configuration that is none.

    accepted_corpora: corpora really completed and accepted, 0 or 1; repetitions deliver no further one.
    """

    key: str
    label: str
    accepted_corpora: int = 0


class Pool(NamedTuple):
    """What charges are split by. paid_ns and used_ns are device time: duration x devices.

    paid_ns: rental -> device time rented. used_ns: (rental or null, target) -> device time of all its passes, failed
    attempts, loading and warm-up included. weights: target -> published share. rates: currency -> units of the
    campaign's currency for one unit.
    """

    targets: tuple[Target, ...]
    paid_ns: Mapping[str, int]
    used_ns: Mapping[tuple[str | None, str], Fraction | int]
    weights: Mapping[str, Fraction] = {}
    rates: Mapping[str, Fraction] = {}

    def used_on(self, rental: str | None) -> Weights:
        """Return target -> device time on one rental, for targets that used it."""
        found = ((target, Fraction(ns)) for (name, target), ns in self.used_ns.items() if name == rental)
        return {target: ns for target, ns in sorted(found) if ns > 0}

    def idle_ns(self, rental: str) -> Fraction:
        """Return the device time paid and not used; zero where more was used than paid for."""
        return max(Fraction(0), self.paid_ns[rental] - sum(self.used_on(rental).values(), Fraction(0)))

    def home(self, amount: Money) -> Fraction:
        """Return an amount in the campaign's currency, unrounded: for comparing only, it is never printed as paid."""
        return Fraction(amount.decimal()) * self.rates.get(amount.currency, Fraction(1))


class Origin(NamedTuple):
    """One charge and its amount. target: the one it is for, null where it is shared."""

    charge: Charge
    amount: Money
    target: str | None


class Share(NamedTuple):
    """One allocated charge: a part of one origin charge.

    ratio, exact_cost: its part before rounding, of 1 and in whole units. quantity_ns: device time behind it.
    """

    charge_id: str
    rental: str | None
    target: str
    amount: Money
    ratio: Fraction
    exact_cost: Fraction
    is_direct: bool
    quantity_ns: Fraction | None


class Allocated(NamedTuple):
    """All charges under one convention. undefined: charge id -> why the convention could not share it."""

    convention: Convention
    idle: IdleMode
    shares: tuple[Share, ...]
    undefined: Mapping[str, Undefined]

    def totals(self) -> dict[tuple[str, str], Money]:
        """Return (currency, target) -> sum of its shares."""
        return summed((share.amount.currency, share.target, share.amount) for share in self.shares)


class Filtered(NamedTuple):
    """Some of the shares as they were allocated, and per currency what the others hold: nothing is split anew."""

    shares: tuple[Share, ...]
    rest: dict[str, Money]


def origin(charge: Charge, target_of: Mapping[str, str]) -> Origin:
    """Return a charge with its amount. `target_of` gives the target of a candidate's id."""
    target = target_of[charge.candidate] if charge.candidate is not None else None
    return Origin(charge, Money.parse(charge.amount, charge.currency), target)


def allocate(origins: Iterable[Origin], pool: Pool, convention: Convention, idle: IdleMode = "separate") -> Allocated:
    """Return every charge split by the convention; the order of charges and targets changes nothing.

    Raises ValueError where the shares of a charge do not sum to it, which no input can cause.
    """
    ordered = sorted(origins, key=lambda origin: origin.charge.id)
    weigh = _Weigher(ordered, pool, convention, idle)
    shares: list[Share] = []
    undefined: dict[str, Undefined] = {}
    for each in ordered:
        weights = weigh(each)
        if isinstance(weights, str):
            undefined[each.charge.id] = weights
            weights = {UNALLOCATED: Fraction(1)}
        shares += _shares(each, weights, weigh.quantities(each))
    allocated = Allocated(convention, idle, tuple(shares), undefined)
    reconcile(ordered, allocated)
    return allocated


def reconcile(origins: Iterable[Origin], allocated: Allocated) -> None:
    """Raise ValueError where a charge is missing, comes twice, or is not the sum of its shares."""
    sums = summed((share.charge_id, share.amount.currency, share.amount) for share in allocated.shares)
    wanted = {(each.charge.id, each.amount.currency): each.amount for each in origins}
    if sums != wanted:
        wrong = sorted(key for key in {*sums, *wanted} if sums.get(key) != wanted.get(key))
        raise ValueError(f"{allocated.convention} does not sum to what was paid: {wrong}")


def conventions(origins: Sequence[Origin], pool: Pool, idle: IdleMode) -> list[Allocated]:
    """Return the charges under each convention, usage under each treatment of idle time; `fixed` where published."""
    found = []
    for convention in CONVENTIONS:
        if convention == "fixed" and not pool.weights:
            continue
        modes: tuple[IdleMode, ...] = (
            ("separate", "even", "weighted") if convention == "proportional_usage" else (idle,)
        )
        found += [allocate(origins, pool, convention, mode) for mode in modes]
    return found


def filtered(allocated: Allocated, keep: Callable[[Share], bool]) -> Filtered:
    """Return the shares to show, unchanged, and the sum of the others."""
    rest = summed((share.amount.currency, "", share.amount) for share in allocated.shares if not keep(share))
    return Filtered(tuple(filter(keep, allocated.shares)), {currency: amount for (currency, _), amount in rest.items()})


def order(allocated: Allocated, pool: Pool) -> list[list[str]]:
    """Return the targets from the dearest to the cheapest, equal ones together: by exact shares, before rounding."""
    cost = dict.fromkeys((target.key for target in pool.targets), Fraction(0))
    for share in allocated.shares:
        if share.target in cost:
            cost[share.target] += share.exact_cost * pool.rates.get(share.amount.currency, Fraction(1))
    levels = sorted(set(cost.values()), reverse=True)
    return [sorted(key for key in cost if cost[key] == level) for level in levels]


def summed(parts: Iterable[tuple[str, str, Money]]) -> dict[tuple[str, str], Money]:
    """Return the sum of amounts per pair of keys."""
    sums: dict[tuple[str, str], Money] = {}
    for first, second, amount in parts:
        key = (first, second)
        sums[key] = sums[key] + amount if key in sums else amount
    return dict(sorted(sums.items()))


def _shares(each: Origin, weights: Weights, quantities: Mapping[str, Fraction]) -> list[Share]:
    kept = {target: weight for target, weight in weights.items() if weight > 0}
    whole = sum(kept.values(), Fraction(0))
    paid = Fraction(each.amount.decimal())
    return [
        Share(
            each.charge.id, each.charge.rental, target, amount, kept[target] / whole, paid * kept[target] / whole,
            each.target is not None, quantities.get(target),
        )
        for target, amount in sorted(split(each.amount, kept).items())
    ]  # fmt: skip


class _Weigher:
    """Gives the weights of one charge under one convention, or why it gives none."""

    def __init__(self, origins: Sequence[Origin], pool: Pool, convention: Convention, idle: IdleMode) -> None:
        self._pool = pool
        self._convention = convention
        self._idle = idle
        self._direct: dict[str, Fraction] = {}
        for each in origins:
            if each.target is not None:
                self._direct[each.target] = self._direct.get(each.target, Fraction(0)) + pool.home(each.amount)

    def __call__(self, each: Origin) -> Weights | Undefined:
        if each.target is not None:
            return {each.target: Fraction(1)}
        sharing = self._sharing(each.charge.rental)
        match self._convention:
            case "even":
                return dict.fromkeys(sharing, Fraction(1)) if sharing else "no_usage"
            case "proportional_usage":
                return self._by_usage(each.charge.rental, sharing)
            case "proportional_direct":
                direct = {target: self._direct.get(target, Fraction(0)) for target in sharing}
                is_defined = all(cost >= 0 for cost in direct.values()) and any(direct.values())
                return direct if is_defined else "no_direct_cost"
            case "fixed":
                return dict(self._pool.weights) if any(self._pool.weights.values()) else "no_weights"
            case "accepted_output":
                accepted = {t.key: Fraction(t.accepted_corpora) for t in self._pool.targets if t.key in sharing}
                return accepted if any(accepted.values()) else "no_accepted_output"
            case "direct":
                # what one target alone had rented is traced to it
                alone = self._pool.used_on(each.charge.rental) if each.charge.rental is not None else {}
                return dict.fromkeys(alone if len(alone) == 1 else (UNALLOCATED,), Fraction(1))
            case "unallocated":
                return {UNALLOCATED: Fraction(1)}

    def quantities(self, each: Origin) -> Mapping[str, Fraction]:
        """Return the device time that stands behind shares by usage; nothing where usage was not the measure."""
        if each.target is not None or self._convention != "proportional_usage":
            return {}
        rental = each.charge.rental
        return self._used(rental) | ({IDLE: self._pool.idle_ns(rental)} if rental is not None else {})

    def _sharing(self, rental: str | None) -> list[str]:
        """Return who shares a charge: what ran on its rental, else everything."""
        used = self._pool.used_on(rental) if rental is not None else {}
        return sorted(used) or sorted(target.key for target in self._pool.targets)

    def _used(self, rental: str | None) -> Weights:
        """Return the usage of one rental; for a charge of the whole campaign that of all rentals together."""
        if rental is not None:
            return self._pool.used_on(rental)
        used: Weights = {}
        for name in self._pool.paid_ns:
            for target, ns in self._pool.used_on(name).items():
                used[target] = used.get(target, Fraction(0)) + ns
        return used

    def _by_usage(self, rental: str | None, sharing: Sequence[str]) -> Weights | Undefined:
        used = self._used(rental)
        idle = self._pool.idle_ns(rental) if rental is not None else Fraction(0)
        if self._idle == "separate" and idle:
            return used | {IDLE: idle}
        if self._idle == "even" and idle and sharing:
            return {target: used.get(target, Fraction(0)) + idle / len(sharing) for target in sharing}
        return used or "no_usage"
