"""Tariffs: the ways in which one offer can be paid for a need of so many hours, each with a bill line by line."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, NamedTuple

from .money import (
    Money,
    Taxed,
    exact,
    minor_digits,
    percent_rate,
    rounded,
    taxed_from_gross,
    taxed_from_net,
)
from .offers import PACKAGE_DAYS, Fee, FeeScope, Offer
from .unit_prices import NodeHour, NodePackage, Price, for_hours, for_packages, node_hour, node_package

NS_PER_HOUR = 3_600_000_000_000
LineKind = Literal["packages", "hours", "rental", "package", "day", "gib_month", "gib_transferred"]
"""What a line counts: packages, hours, or what a fee is charged per."""


class Line(NamedTuple):
    """One line of a bill: `amount` is quantity x unit price, rounded once; as the offer writes it, net or gross."""

    kind: LineKind
    name: str
    quantity: Fraction
    unit_price: Fraction
    amount: Money


class Tariff(NamedTuple):
    """One way of paying an offer; its price is for all cards that are rented together.

    days: whole days rented at a time; null by the hour, for as long as it is needed.
    package, hour: the price by which it is billed, the other is null.
    """

    offer: Offer
    days: int | None
    package: Price[NodePackage] | None
    hour: Price[NodeHour] | None
    rented_cards: int
    used_cards: int

    @property
    def term(self) -> str:
        """`3d`, `7d`, `30d` or `hour`."""
        return "hour" if self.days is None else f"{self.days}d"

    @property
    def idle_cards(self) -> int:
        return self.rented_cards - self.used_cards


class Bill(NamedTuple):
    """What a need costs under one tariff. `bought` packages follow one another; by the hour it is one rental."""

    bought: int
    paid_ns: Fraction
    lines: tuple[Line, ...]
    price: Taxed


def cards_rented(offer: Offer, used_cards: int) -> int:
    """Return the cards that are paid for: the whole node's, or single cards, those used and at least the minimum."""
    return offer.device_count if offer.prices_per == "node" else max(used_cards, offer.minimum_cards)


def tariffs_of(offer: Offer, used_cards: int = 1) -> list[Tariff]:
    """Return the offer's tariffs, the shortest package first and by the hour last.

    Where a package has no price of its own but an hour has one, its days are rented by the hour.
    """
    rented = cards_rented(offer, used_cards)
    hour = node_hour(offer, rented)
    found = []
    for days in PACKAGE_DAYS:
        package = node_package(offer, days, rented)
        if package is not None or hour is not None:
            found.append(Tariff(offer, days, package, None if package else hour, rented, used_cards))
    return [*found, Tariff(offer, None, None, hour, rented, used_cards)] if hour is not None else found


def package_count(needed_ns: Fraction, days: int) -> int:
    """Return how many packages of `days` elapsed days (24 h each) cover the need; at least one.

    72 hours are exactly one package of 3 days; one nanosecond more is two.
    """
    return max(1, _ceil(needed_ns / (days * 24 * NS_PER_HOUR)))


def billed_ns(offer: Offer, rented_ns: Fraction) -> Fraction:
    """Return the time that is billed by the hour: the minimum, or the time rounded up to the next billing step."""
    step = offer.billing_step_s * 10**9
    return max(exact(offer.minimum_hours) * NS_PER_HOUR, Fraction(_ceil(rented_ns / step) * step))


def bill(tariff: Tariff, needed_ns: Fraction) -> Bill:
    """Return what the need costs: packages or hours, then each fee; tax once on the whole, as an invoice has it."""
    offer, days = tariff.offer, tariff.days
    bought = 1 if days is None else package_count(needed_ns, days)
    rented_ns = needed_ns if days is None else Fraction(bought * days * 24 * NS_PER_HOUR)
    if tariff.hour is not None:
        rented_ns = billed_ns(offer, rented_ns)
        quantity = rented_ns / NS_PER_HOUR
        first = Line("hours", "", quantity, tariff.hour.amount, for_hours(tariff.hour, quantity))
    else:
        assert tariff.package is not None
        amount = for_packages(tariff.package, bought)
        first = Line("packages", "", Fraction(bought), tariff.package.amount, amount)
    lines = (first, *(_fee(fee, offer, rented_ns, bought) for fee in offer.fees))
    return Bill(bought, rented_ns, lines, taxed(offer, _sum(lines)))


def taxed(offer: Offer, amount: Money) -> Taxed:
    """Return an amount of this offer with its tax, computed once on the whole amount as an invoice does."""
    rate = percent_rate(offer.tax_percent)
    return taxed_from_net(amount, rate) if offer.prices_are == "net" else taxed_from_gross(amount, rate)


def _fee(fee: Fee, offer: Offer, paid_ns: Fraction, bought: int) -> Line:
    unit_price, quantity = exact(fee.amount), fee_quantity(fee, paid_ns, bought)
    minor = rounded(unit_price * quantity * 10 ** minor_digits(offer.currency))
    return Line(fee.per, fee.name, quantity, unit_price, Money(minor, offer.currency))


def fee_quantity(fee: Fee, paid_ns: Fraction, bought: int) -> Fraction:
    """Return how often a fee is charged over the time that is paid for, whether the machine runs or is stopped."""
    scope: FeeScope = fee.per
    match scope:
        case "rental":
            return Fraction(1)
        case "package":
            return Fraction(bought)
        case "day":
            return Fraction(_ceil(paid_ns / (24 * NS_PER_HOUR)))
        case "gib_month":
            return exact(fee.quantity or "0") * paid_ns / (fee.month_h * NS_PER_HOUR)
        case "gib_transferred":
            return exact(fee.quantity or "0")


def _sum(lines: tuple[Line, ...]) -> Money:
    total = lines[0].amount
    for line in lines[1:]:
        total = total + line.amount
    return total


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
