"""Owning, energy and people are optional lines: exact, on a stated basis, never part of a package's price."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest

from collector.contract.campaign import Campaign, Objective
from collector.contract.money import Money
from collector.contract.offers import EnergyPrice, ExchangeRate, Purchase, StaffHours
from collector.contract.tariffs import NS_PER_HOUR
from reporter.optional_costs import MONTH_H, energy_cost, monthly_minor, ownership, staff_cost

DAY = dt.date(2026, 11, 30)
BOUGHT: dict[str, Any] = {
    "price": "9000.00", "currency": "EUR", "residual": "1800.00", "life_months": 36, "monthly_cost": "50.00",
    "device": "d", "basis": "quoted", "source": "s", "on": DAY,
}  # fmt: skip


def campaign(**more: Any) -> Campaign:
    return Campaign(
        format=1, question="q", dossier_id="d", as_of=DAY, issued=DAY, documents_per_corpus=1, currency="EUR",
        objective=Objective(prefer="cheapest"), **more,
    )  # fmt: skip


def rent(per_month: str) -> Any:
    return lambda needed_ns: Money.parse(per_month, "EUR").portion(needed_ns / (MONTH_H * NS_PER_HOUR))


def test_owning_costs_its_loss_in_value_over_its_life_and_its_months() -> None:
    bought = Purchase(**BOUGHT)
    assert monthly_minor(bought) == 25_000  # (9000 - 1800) / 36 + 50
    owned = ownership(bought, Fraction(80 * NS_PER_HOUR), rent("1000.00"), campaign())
    assert owned.for_hours == Money(2_740, "EUR")  # 250 x 80 / 730
    assert (owned.months, owned.for_months) == (1, Money(25_000, "EUR"))
    assert ownership(bought, Fraction(731 * NS_PER_HOUR), rent("1000.00"), campaign()).months == 2


@pytest.mark.parametrize(
    ("per_month", "months"),
    [("1000.00", 8), ("950.00", 8), ("949.99", 9), ("7250.00", 1), ("250.00", 36), ("249.99", None)],
)
def test_months_to_break_even_are_the_first_whole_ones_in_which_owning_costs_no_more(
    per_month: str, months: int | None
) -> None:
    owned = ownership(Purchase(**BOUGHT), Fraction(NS_PER_HOUR), rent(per_month), campaign())
    assert owned.break_even_months == months


def test_g17_owning_in_another_currency_is_converted_before_it_is_compared() -> None:
    bought = Purchase(**(BOUGHT | {"currency": "USD"}))
    rate = ExchangeRate(currency="USD", rate="0.50", on=DAY, source="bank")
    need = Fraction(NS_PER_HOUR)
    assert ownership(bought, need, rent("500.00"), campaign(exchange_rates=[rate])).break_even_months == 8
    assert ownership(bought, need, rent("500.00"), campaign()).break_even_months is None


def test_energy_is_measured_joules_times_the_price_of_a_kilowatt_hour() -> None:
    price = EnergyPrice(price_per_kwh="0.30", currency="EUR", basis="quoted", source="s")
    assert energy_cost(price, Fraction(3_600_000 * 1000 * 10)) == Money(300, "EUR")
    assert energy_cost(price, Fraction(1)) == Money(0, "EUR")


def test_people_cost_their_hours_times_their_rate_rounded_once() -> None:
    staff = StaffHours(role="engineer", hours="2.5", rate_per_hour="80.01", currency="EUR", basis="quoted")
    assert staff_cost(staff) == Money(20_003, "EUR")
