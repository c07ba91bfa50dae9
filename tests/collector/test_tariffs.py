"""Bills as a provider makes them: whole packages, hours in billing steps, cards, fees; tax once on the whole."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.money import Money
from collector.contract.offers import Fee, Offer
from collector.contract.tariffs import NS_PER_HOUR, Bill, Tariff, bill, tariffs_of

HOUR = NS_PER_HOUR
FIELDS: dict[str, Any] = {
    "id": "o", "provider": "p", "device": "d", "pricing_class": "quote", "currency": "EUR", "tax_percent": "0",
    "basis": "quoted", "source": "s", "retrieved": dt.date(2026, 11, 1), "valid_until": dt.date(2026, 12, 1),
}  # fmt: skip


def offer(**more: Any) -> Offer:
    return Offer(**(FIELDS | more))


def by_term(made: Offer, needed_h: Fraction | int | str, used_cards: int = 1) -> dict[str, tuple[Tariff, Bill]]:
    needed = Fraction(needed_h) * HOUR
    return {tariff.term: (tariff, bill(tariff, needed)) for tariff in tariffs_of(made, used_cards)}


def net(bills: dict[str, tuple[Tariff, Bill]], term: str) -> str:
    return bills[term][1].price.net.decimal()


@pytest.mark.parametrize(
    ("step_s", "minimum_h", "expected"),
    [(3600, "0", "3.00"), (60, "0", "1.00"), (1, "0", "1.00"), (1, "1", "3.00"), (60, "1", "3.00")],
)
def test_g03_twenty_minutes_are_billed_by_step_and_minimum(step_s: int, minimum_h: str, expected: str) -> None:
    made = offer(price_hour="3.00", billing_step_s=step_s, minimum_hours=minimum_h)
    assert net(by_term(made, Fraction(20, 60)), "hour") == expected


def test_g03_packages_without_a_price_are_days_at_the_price_of_an_hour() -> None:
    bills = by_term(offer(price_hour="2.49", price_7_days="336.00"), 80)
    assert {term: net(bills, term) for term in bills} == {
        "3d": "358.56", "7d": "336.00", "30d": "1792.80", "hour": "199.20",
    }  # fmt: skip
    odd = by_term(offer(price_hour="1.00", billing_step_s=7 * 3600), 80)
    assert (odd["3d"][1].bought, odd["3d"][1].paid_ns) == (2, 147 * HOUR)  # 144 h, rounded up to steps of 7 h


def test_toy_of_eighty_hours_and_how_much_of_each_package_is_used() -> None:
    made = offer(price_3_days="165.00", price_7_days="336.00", price_30_days="1188.00", price_hour="2.49")
    bills = by_term(made, 80)
    assert {term: net(bills, term) for term in bills} == {
        "3d": "330.00", "7d": "336.00", "30d": "1188.00", "hour": "199.20",
    }  # fmt: skip
    used = {term: round(float(80 * HOUR * 100 / one.paid_ns), 1) for term, (_, one) in bills.items()}
    assert used == {"3d": 55.6, "7d": 47.6, "30d": 11.1, "hour": 100.0}


def test_g01_a_node_of_four_is_paid_whole_and_three_cards_are_idle() -> None:
    made = offer(price_hour="4.00", price_3_days="288.00", device_count=4)
    tariff, one = by_term(made, 10)["hour"]
    assert (one.price.net.decimal(), tariff.rented_cards, tariff.idle_cards) == ("40.00", 4, 3)
    assert net(by_term(made, 10), "3d") == "288.00"
    assert net(by_term(made, 10, used_cards=4), "hour") == "40.00"


def test_g01_a_price_per_card_is_multiplied_by_the_cards_rented_together() -> None:
    made = offer(price_hour="1.00", price_3_days="60.00", device_count=8, prices_per="card", minimum_cards=2)
    assert [net(by_term(made, 10, used_cards=n), "hour") for n in (1, 2, 3)] == ["20.00", "20.00", "30.00"]
    assert [by_term(made, 10, used_cards=n)["3d"][0].idle_cards for n in (1, 2, 3)] == [1, 0, 0]
    assert net(by_term(made, 73, used_cards=3), "3d") == "360.00"


def storage(**more: Any) -> Fee:
    return Fee(**({"name": "disk", "amount": "0.10", "per": "gib_month", "quantity": "100"} | more))


@pytest.mark.parametrize(("month_h", "expected"), [(730, "2.30"), (720, "2.33")])
def test_g04_storage_is_paid_for_all_hours_of_the_package_running_or_stopped(month_h: Any, expected: str) -> None:
    made = offer(price_7_days="100.00", fees=[storage(month_h=month_h)])
    one = by_term(made, 7 * 8)["7d"][1]  # eight hours of work on each of seven days
    (first, fee) = one.lines
    assert fee.quantity == Fraction(100 * 7 * 24, month_h)
    assert (first.amount.decimal(), fee.amount.decimal()) == ("100.00", expected)
    assert one.price.net == first.amount + fee.amount


def test_g04_each_fee_is_a_line_of_its_own_and_tax_is_taken_once_on_the_whole() -> None:
    fees = [
        Fee(name="set-up", amount="5.00", per="rental"), Fee(name="image", amount="1.01", per="package"),
        Fee(name="support", amount="0.33", per="day"), storage(),
        Fee(name="transfer", amount="0.015", per="gib_transferred", quantity="30"),
    ]  # fmt: skip
    one = by_term(offer(price_3_days="50.01", tax_percent="19", fees=fees), 80)["3d"][1]
    assert [(line.kind, line.name, line.amount.decimal()) for line in one.lines] == [
        ("packages", "", "100.02"), ("rental", "set-up", "5.00"), ("package", "image", "2.02"),
        ("day", "support", "1.98"), ("gib_month", "disk", "1.97"), ("gib_transferred", "transfer", "0.45"),
    ]  # fmt: skip
    assert one.price.net == Money(11_144, "EUR")
    assert one.price.tax == Money(2_117, "EUR")  # 21.1736, not the sum of taxes of lines


def test_fees_of_gross_offers_are_gross_as_well() -> None:
    fees = [Fee(name="set-up", amount="11.90", per="rental")]
    one = by_term(offer(price_3_days="119.00", prices_are="gross", tax_percent="19", fees=fees), 1)["3d"][1]
    assert [part.decimal() for part in one.price] == ["110.00", "20.90", "130.90"]


def test_g16_three_days_over_a_change_of_clocks_are_72_hours() -> None:
    berlin = dt.timezone(dt.timedelta(hours=1)), dt.timezone(dt.timedelta(hours=2))
    start = dt.datetime(2026, 3, 28, 12, tzinfo=berlin[0])
    end = dt.datetime(2026, 3, 31, 12, tzinfo=berlin[1])  # three calendar days later by the clock on the wall
    elapsed_h = Fraction((end - start) // dt.timedelta(hours=1))
    bills = by_term(offer(price_3_days="10.00", price_hour="1.00"), elapsed_h)
    assert elapsed_h == 71
    assert (bills["3d"][1].bought, bills["3d"][1].paid_ns) == (1, 72 * HOUR)
    assert net(bills, "hour") == "71.00"


@given(
    st.integers(1, 2_000 * 3600), st.integers(1, 86_400), st.integers(0, 100), st.integers(1, 10**6),
    st.sampled_from(["rental", "package", "day", "gib_month"]),
)  # fmt: skip
def test_a_longer_need_never_costs_less(seconds: int, step_s: int, minimum_h: int, price: int, per: Any) -> None:
    quantity = "17" if per == "gib_month" else None
    fees = [Fee(name="f", amount="0.37", per=per, quantity=quantity)]
    made = offer(
        price_3_days="10.00", price_hour=f"{price}.0001", billing_step_s=step_s, minimum_hours=str(minimum_h), fees=fees
    )
    for tariff in tariffs_of(made):
        shorter, longer = (bill(tariff, Fraction((seconds + more) * 10**9)) for more in (0, 1))
        assert shorter.price.net <= longer.price.net
        assert shorter.paid_ns >= seconds * 10**9


def test_an_offer_without_a_price_has_no_tariff() -> None:
    assert tariffs_of(offer()) == []
