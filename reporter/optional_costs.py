"""Optional costs beside the package: owning the machine, energy from measured joules, hours of people. Never ranked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from collector.contract.campaign import Campaign
from collector.contract.money import Money, exact, minor_digits, rounded
from collector.contract.offers import EnergyPrice, Purchase, StaffHours
from collector.contract.tariffs import NS_PER_HOUR

from .exchange import converted

MONTH_H = 730
"""Hours of a month: a year of 365 days in twelve parts."""
MJ_PER_KWH = 3_600_000_000
Rent = Callable[[Fraction], Money | None]


class Ownership(NamedTuple):
    """What owning costs for a need; `for_hours` and `for_months` in the currency of the purchase.

    monthly: (price - residual) / life + monthly cost, not rounded, in minor units.
    break_even_months: the first month of use without a pause up to which owning costs no more than the cheapest
    rental; null where that is not reached within the machine's life.
    """

    monthly: Fraction
    for_hours: Money
    months: int
    for_months: Money
    break_even_months: int | None


def ownership(purchase: Purchase, needed_ns: Fraction, rent: Rent, campaign: Campaign) -> Ownership:
    """Return what owning costs; `rent` gives the cheapest rental of a need in the campaign's currency."""
    monthly = monthly_minor(purchase)
    months = max(1, -(-needed_ns // (MONTH_H * NS_PER_HOUR)))
    for_hours = Money(rounded(monthly * needed_ns / (MONTH_H * NS_PER_HOUR)), purchase.currency)
    for_months = Money(rounded(monthly * months), purchase.currency)
    return Ownership(monthly, for_hours, months, for_months, _break_even(purchase, rent, campaign))


def monthly_minor(purchase: Purchase) -> Fraction:
    """Return the cost of one month of owning, in minor units, not rounded."""
    lost = exact(purchase.price) - exact(purchase.residual)
    return (lost / purchase.life_months + exact(purchase.monthly_cost)) * _units(purchase.currency)


def _break_even(purchase: Purchase, rent: Rent, campaign: Campaign) -> int | None:
    """The machine is paid for at once, so all that it loses in value counts from the first month on."""
    lost, running = exact(purchase.price) - exact(purchase.residual), exact(purchase.monthly_cost)
    for months in range(1, purchase.life_months + 1):
        paid = Money(rounded((lost + running * months) * _units(purchase.currency)), purchase.currency)
        owned, rented = converted(paid, campaign), rent(Fraction(months * MONTH_H * NS_PER_HOUR))
        if owned is None or rented is None:
            return None
        if owned <= rented:
            return months
    return None


def energy_cost(price: EnergyPrice, energy_mj: Fraction) -> Money:
    """Return what measured millijoules cost, rounded once."""
    amount = exact(price.price_per_kwh) * energy_mj / MJ_PER_KWH
    return Money(rounded(amount * _units(price.currency)), price.currency)


def staff_cost(staff: StaffHours) -> Money:
    """Return what the hours of one role cost, rounded once."""
    return Money(rounded(exact(staff.hours) * exact(staff.rate_per_hour) * _units(staff.currency)), staff.currency)


def _units(currency: str) -> int:
    return int(10 ** minor_digits(currency))
