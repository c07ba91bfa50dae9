"""Printed money has the decimals of ISO 4217, from the same table that amounts are read with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.money import CURRENCIES, Money
from reporter.translate import Translator

ENGLISH = Translator("en")


@pytest.mark.parametrize(
    ("text", "currency", "printed"),
    [("1092.00", "EUR", "1,092.00"), ("1250000", "VND", "1,250,000"), ("12.345", "KWD", "12.345"),
     ("12.345", "IQD", "12.345"), ("-0.05", "TRY", "\u22120.05")],
)  # fmt: skip
def test_what_was_read_is_what_is_printed(text: str, currency: str, printed: str) -> None:
    amount = Money.parse(text, currency)
    assert ENGLISH.money(amount.minor_units, currency, with_code=False) == printed


@given(st.integers(0, 10**12), st.sampled_from(sorted(CURRENCIES)))
def test_no_currency_loses_or_gains_a_decimal_in_print(minor_units: int, currency: str) -> None:
    printed = ENGLISH.money(minor_units, currency, with_code=False).replace(",", "")
    assert Money.parse(printed, currency).minor_units == minor_units
