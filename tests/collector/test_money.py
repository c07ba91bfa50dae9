"""Money is exact: no float, one currency at a time, sums kept to the last minor unit."""

from __future__ import annotations

from fractions import Fraction

import pytest
from babel import numbers
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.money import (
    CURRENCIES,
    Money,
    MoneyError,
    exact,
    minor_digits,
    percent_rate,
    rounded,
    split,
    taxed_from_gross,
    taxed_from_net,
)

CURRENCY = st.sampled_from(["EUR", "TRY", "VND", "KWD"])
MONEY = st.builds(Money, st.integers(-(10**12), 10**12), CURRENCY)
RATE = st.fractions(min_value=0, max_value=Fraction(1, 2), max_denominator=10_000)
WEIGHTS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3), st.integers(0, 10**6), min_size=1, max_size=12
).filter(lambda weights: sum(weights.values()) > 0)


def test_decimals_of_the_currencies_named_in_the_reference_are_right() -> None:
    assert {code: minor_digits(code) for code in ("EUR", "USD", "TRY", "CHF", "VND", "JPY", "KRW", "CLP", "ISK")} == {
        "EUR": 2, "USD": 2, "TRY": 2, "CHF": 2, "VND": 0, "JPY": 0, "KRW": 0, "CLP": 0, "ISK": 0,
    }  # fmt: skip
    assert {minor_digits(code) for code in ("KWD", "BHD", "OMR", "JOD", "TND", "IQD", "LYD")} == {3}


def test_every_listed_code_is_known_to_an_independent_catalogue() -> None:
    assert numbers.list_currencies() >= CURRENCIES


@pytest.mark.parametrize("code", ["EUE", "eur", "", "XXX"])
def test_an_unknown_currency_is_refused(code: str) -> None:
    with pytest.raises(MoneyError, match="ISO 4217"):
        Money(1, code)


@pytest.mark.parametrize(
    ("text", "currency", "minor_units"),
    [("1092.00", "EUR", 109_200), ("1092", "EUR", 109_200), ("1092.5", "EUR", 109_250), ("1250000", "VND", 1_250_000),
     ("12.345", "KWD", 12_345), ("-0.01", "EUR", -1), ("1250000.0", "VND", 1_250_000), ("1.230", "EUR", 123)],
)  # fmt: skip
def test_decimals_are_read_exactly(text: str, currency: str, minor_units: int) -> None:
    assert Money.parse(text, currency) == Money(minor_units, currency)


@pytest.mark.parametrize(("text", "currency"), [("1.001", "EUR"), ("1.5", "VND"), ("1.0001", "KWD")])
def test_more_decimals_than_the_currency_has_are_refused_not_rounded(text: str, currency: str) -> None:
    with pytest.raises(MoneyError, match="more decimals than"):
        Money.parse(text, currency)


@pytest.mark.parametrize("text", ["1,000", "1e3", " 1", "+1", "1.", ".5", "", "١٢", "1_000", "0x10", "NaN"])
def test_anything_but_a_plain_decimal_is_refused(text: str) -> None:
    with pytest.raises(MoneyError, match="no exact decimal"):
        exact(text)


def test_floats_cannot_become_money() -> None:
    with pytest.raises(TypeError):
        Money(1.0, "EUR")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Money(True, "EUR")
    with pytest.raises(TypeError):
        Money(1, "EUR").times(1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Money(1, "EUR").portion(0.19)  # type: ignore[arg-type]


def test_g17_two_currencies_are_neither_added_nor_compared() -> None:
    euro, lira = Money(100, "EUR"), Money(100, "TRY")
    for operation in (lambda: euro + lira, lambda: euro - lira, lambda: euro < lira, lambda: euro <= lira):
        with pytest.raises(MoneyError, match="cannot be added or compared"):
            operation()
    assert euro != lira


def test_half_goes_away_from_zero() -> None:
    assert [rounded(Fraction(n, 2)) for n in (-3, -1, 1, 3, 5)] == [-2, -1, 1, 2, 3]
    assert rounded(Fraction(49, 100)) == 0


def test_tax_is_rounded_once_and_net_plus_tax_is_gross() -> None:
    assert taxed_from_net(Money.parse("1092.00", "EUR"), percent_rate("19")).gross == Money.parse("1299.48", "EUR")
    assert taxed_from_gross(Money.parse("1299.48", "EUR"), percent_rate("19")).net == Money.parse("1092.00", "EUR")


@given(MONEY, RATE)
def test_net_tax_and_gross_always_add_up(amount: Money, rate: Fraction) -> None:
    for taxed in (taxed_from_net(amount, rate), taxed_from_gross(amount, rate)):
        assert taxed.net + taxed.tax == taxed.gross


@given(MONEY, RATE)
def test_taking_the_tax_out_of_a_gross_amount_gives_the_net_back(net: Money, rate: Fraction) -> None:
    assert taxed_from_gross(taxed_from_net(net, rate).gross, rate).net == net


@given(MONEY)
def test_an_amount_survives_printing_and_parsing(amount: Money) -> None:
    assert Money.parse(amount.decimal(), amount.currency) == amount


@given(MONEY, WEIGHTS)
def test_a_split_sums_exactly_and_stays_within_one_minor_unit(total: Money, weights: dict[str, int]) -> None:
    shares = split(total, weights)
    assert sum(share.minor_units for share in shares.values()) == total.minor_units
    whole = sum(weights.values())
    for key, share in shares.items():
        assert abs(share.minor_units - Fraction(total.minor_units * weights[key], whole)) < 1


@given(MONEY, WEIGHTS)
def test_the_order_of_the_weights_changes_no_share(total: Money, weights: dict[str, int]) -> None:
    assert split(total, dict(reversed(weights.items()))) == split(total, weights)


def test_equal_remainders_are_served_by_key() -> None:
    assert split(Money(10_000, "EUR"), {"c": 1, "a": 1, "b": 1}) == {
        "a": Money(3334, "EUR"), "b": Money(3333, "EUR"), "c": Money(3333, "EUR"),
    }  # fmt: skip
    assert split(Money(-10_000, "EUR"), {"a": 1, "b": 1, "c": 1})["a"] == Money(-3334, "EUR")


@pytest.mark.parametrize("weights", [{}, {"a": 0}, {"a": 2, "b": -1}])
def test_a_split_without_usable_weights_is_refused(weights: dict[str, int]) -> None:
    with pytest.raises(MoneyError, match="no weights"):
        split(Money(1, "EUR"), weights)
