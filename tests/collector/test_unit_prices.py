"""A price knows what it buys: two units are neither added nor compared, in the types and when it is tried."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from collector.contract.money import Money
from collector.contract.offers import Offer
from collector.contract.unit_prices import (
    CardHour,
    CardPackage,
    NodeHour,
    NodePackage,
    Price,
    PriceUnitError,
    for_cards,
    for_hours,
    for_packages,
    node_hour,
    node_package,
    per_card,
)

UNITS: list[Any] = [NodePackage(3), NodePackage(7), CardPackage(3), NodeHour(), CardHour()]


def price(unit: Any, amount: str = "4.00", currency: str = "EUR") -> Any:
    return Price(Fraction(amount), currency, unit)


@pytest.mark.parametrize("one", UNITS, ids=str)
@pytest.mark.parametrize("other", UNITS, ids=str)
def test_g01_prices_of_two_units_are_neither_added_nor_compared(one: Any, other: Any) -> None:
    if one == other:
        assert (price(one) + price(other)).amount == 8
        assert not price(one) < price(other)
        assert price(one) == price(other)
        return
    for attempt in (
        lambda: price(one) + price(other), lambda: price(one) < price(other), lambda: price(one) <= price(other),
        lambda: price(one) == price(other),
    ):  # fmt: skip
        with pytest.raises(PriceUnitError, match="cannot be added or compared"):
            attempt()


def test_g17_prices_of_two_currencies_are_neither_added_nor_compared() -> None:
    with pytest.raises(PriceUnitError):
        price(NodeHour()) + price(NodeHour(), currency="USD")


def test_a_price_becomes_an_amount_only_through_a_stated_quantity() -> None:
    assert for_packages(for_cards(price(CardPackage(3), "165.00"), 4), 2) == Money(132_000, "EUR")
    assert for_hours(for_cards(price(CardHour(), "0.0125"), 2), Fraction(3)) == Money(8, "EUR")
    assert per_card(price(NodePackage(7), "100.00"), 3) == Price(Fraction(100, 3), "EUR", CardPackage(7))


def test_an_offer_says_by_its_scope_what_its_prices_buy() -> None:
    fields: dict[str, Any] = {
        "id": "o", "provider": "p", "device": "d", "pricing_class": "quote", "currency": "EUR", "price_3_days": "10.00",
        "price_hour": "0.20", "tax_percent": "0", "basis": "quoted", "source": "s", "retrieved": dt.date(2026, 11, 1),
        "valid_until": dt.date(2026, 12, 1), "device_count": 8,
    }  # fmt: skip
    assert node_package(Offer(**fields), 3, 8) == price(NodePackage(3), "10.00")
    assert node_package(Offer(**fields, prices_per="card"), 3, 4) == price(NodePackage(3), "40.00")
    assert node_hour(Offer(**fields, prices_per="card"), 4) == price(NodeHour(), "0.80")
    assert node_package(Offer(**fields), 7, 8) is None


MIXED = """\
from fractions import Fraction
from collector.contract.unit_prices import CardHour, NodeHour, NodePackage, Price, for_packages
node = Price(Fraction(4), "EUR", NodeHour())
card = Price(Fraction(1), "EUR", CardHour())
node + node
node < node
node + card
node < card
for_packages(node, 2)
"""


def test_g01_the_type_checker_refuses_two_units(tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.py"
    mixed.write_text(MIXED, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(mixed)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    faults = [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]
    assert faults == ["7", "8", "9"], done.stdout + done.stderr
