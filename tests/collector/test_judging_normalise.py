"""Dates, money, labels and text as people and models write them."""

from __future__ import annotations

import datetime as dt
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.judging import compare, fold_label, normalise
from collector.contract.judging.amounts import parse_money
from collector.contract.judging.dates import parse_date
from collector.contract.judging.parse import JsonNumber
from collector.contract.protocol import FieldRule

DATE = FieldRule(name="date", type="date")
MONEY = FieldRule(name="amount", type="money")
TEXT = FieldRule(name="vendor", type="text")


def label(*labels: str) -> FieldRule:
    return FieldRule(name="category", type="label", labels=list(labels))


@pytest.mark.parametrize(
    "text",
    [
        "2026-04-03", "2026/04/03", "2026.4.3", "20260403", "2026-04-03T10:15:00Z", "2026-04-03 10:15",
        "03/04/2026", "3.4.2026", "03-04-2026", "3 / 4 / 2026", "03.04.26", "3 4 2026",
        "3 April 2026", "April 3, 2026", "3rd of April 2026", "Friday, 3 April 2026", "3-Apr-2026", "3 Apr. 26",
        "3 de abril de 2026", "viernes 3 de abril del 2026", "3 avril 2026", "le 3 avril 2026", "3. April 2026",
        "3 Nisan 2026", "3 NİSAN 2026", "ngày 3 tháng 4 năm 2026", "3 tháng 4, 2026", "Ngày 03 tháng 04 năm 2026",
        "3 aprile 2026", "2026年4月3日",
    ],
)  # fmt: skip
def test_a_date_is_read_in_every_common_form(text: str) -> None:
    assert parse_date(text, day_first=True) == dt.date(2026, 4, 3)
    assert parse_date(unicodedata.normalize("NFD", text), day_first=True) == dt.date(2026, 4, 3)


@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("1er janvier 2026", 1), ("1 février 2026", 2), ("1. März 2026", 3), ("1 Mayıs 2026", 5), ("1 juin 2026", 6),
        ("1 Temmuz 2026", 7), ("1 août 2026", 8), ("1 AĞUSTOS 2026", 8), ("1 Eylül 2026", 9), ("1 setiembre 2026", 9),
        ("1. Oktober 2026", 10), ("1 Ekim 2026", 10), ("1 KASIM 2026", 11), ("1 diciembre 2026", 12),
        ("1 Aralık 2026", 12), ("1 décembre 2026", 12), ("1. Dez. 2026", 12),
    ],
)  # fmt: skip
def test_month_names_are_read_in_their_languages(text: str, month: int) -> None:
    assert parse_date(text, day_first=True) == dt.date(2026, month, 1)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "31/02/2026", "2026-13-01", "3 April 2026 or 4 May 2026", "due 3 April 2026", "April 2026", "3 April",
     "03/04-2026", "٣/٤/٢٠٢٦", "3" * 300],
)  # fmt: skip
def test_what_is_not_exactly_one_date_is_none(text: str) -> None:
    assert parse_date(text, day_first=True) is None


def test_only_an_ambiguous_date_depends_on_day_first() -> None:
    assert parse_date("03/04/2026", day_first=False) == dt.date(2026, 3, 4)
    for day_first in (True, False):
        assert parse_date("13/04/2026", day_first=day_first) == dt.date(2026, 4, 13)
        assert parse_date("04/13/2026", day_first=day_first) == dt.date(2026, 4, 13)
        assert parse_date("2026-03-04", day_first=day_first) == dt.date(2026, 3, 4)


@given(st.dates(dt.date(1969, 1, 1), dt.date(2068, 12, 31)))
def test_every_date_comes_back_from_every_numeric_form(day: dt.date) -> None:
    for form in ("%Y-%m-%d", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%y", "%Y%m%d", "%Y/%m/%d"):
        assert parse_date(day.strftime(form), day_first=True) == day
    assert parse_date(day.strftime("%m/%d/%Y"), day_first=False) == day


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("42.10", "42.10", ""), ("42,10 EUR", "42.10", "EUR"), ("€42.10", "42.10", "EUR"), ("EUR 42,1", "42.1", "EUR"),
        ("1.234,56 €", "1234.56", "EUR"), ("$1,234.56", "1234.56", "USD"), ("1 234,56", "1234.56", ""),
        ("1\u202f234,56\u00a0€", "1234.56", "EUR"), ("1\u00a0234\u00a0567,8 EUR", "1234567.8", "EUR"),
        ("CHF 1'234.50", "1234.50", "CHF"), ("1’234.50 CHF", "1234.50", "CHF"), ("1.250.000 ₫", "1250000", "VND"),
        ("1.250.000 VNĐ", "1250000", "VND"), ("250.000đ", "250000", "VND"), ("1.250,00 TL", "1250.00", "TRY"),
        ("₺1.250", "1250", "TRY"), ("KWD 1.234", "1.234", "KWD"), ("0.123", "0.123", ""), ("1234.567", "1234.567", ""),
        ("1.234", "1234", ""), ("1,234", "1234", ""), ("₹1,23,456.78", "123456.78", "INR"), ("-42.10", "-42.10", ""),
        ("−42.10 €", "-42.10", "EUR"), ("(42.10)", "-42.10", ""), ("42,-", "42", ""), ("42.– CHF", "42", "CHF"),
        ("kr 1 200", "1200", "SEK"), ("42 euros", "42", "EUR"), (".50", "0.50", ""), ("US$ 12", "12", "USD"),
    ],
)  # fmt: skip
def test_money_is_read_exactly(text: str, amount: str, currency: str) -> None:
    money = parse_money(text)
    assert money is not None
    assert money.amount == Decimal(amount)
    assert currency in money.currencies if currency else not money.currencies


@pytest.mark.parametrize(
    "text",
    ["", "free", "Total 42", "42 or 43", "1.2.3", "1,23,4", "12..3", "12.345.67", "EUR 5 USD", "42 XYZ", "1 23", "--5",
     "٤٢", "9" * 200],
)  # fmt: skip
def test_what_is_not_exactly_one_amount_is_none(text: str) -> None:
    assert parse_money(text) is None


_STYLES = [
    (",", "."), (".", ","), (" ", ","), ("\u00a0", ","), ("\u202f", ","), ("'", "."), ("’", "."), ("", "."), ("", ","),
]  # fmt: skip


@given(
    st.decimals(min_value=0, max_value=Decimal("9999999999.99"), places=2),
    st.sampled_from(_STYLES),
    st.sampled_from(["", "EUR", "VND", "USD"]),
    st.booleans(),
)
def test_every_amount_comes_back_from_every_style(
    amount: Decimal, style: tuple[str, str], currency: str, is_before: bool
) -> None:
    thousands, decimal = style
    written = f"{amount:,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))
    text = f"{currency} {written}" if is_before else f"{written} {currency}"
    money = parse_money(text)
    assert money is not None
    assert money.amount == amount
    assert money.currencies == ({currency} if currency else set())


@pytest.mark.parametrize(
    ("expected", "given_value", "is_equal"),
    [
        ("42.10", "42.1", True),
        ("42.10", "42,10 €", True),  # the expected value names no currency: any is ignored
        ("42.10 EUR", "42,10 €", True),
        ("42.10 EUR", "42.10", False),  # it names one: the answer must, too
        ("42.10 EUR", "42.10 USD", False),
        ("42.10 USD", "$42.10", True),
        ("42.10 CAD", "$42.10", True),  # a shared sign agrees with each of its currencies
        ("42.10 EUR", "$42.10", False),
        ("42.10", "42.11", False),
        ("0.1", "0.1000000000000000055511151231257827", False),  # exact decimals: no binary rounding makes them equal
    ],
)
def test_amount_and_named_currency_decide(expected: str, given_value: str, is_equal: bool) -> None:
    assert compare(MONEY, expected=expected, given=given_value).is_equal is is_equal


def test_in_a_json_number_the_point_is_always_the_decimal_point() -> None:
    assert compare(MONEY, expected="1.234,00", given="1.234").is_equal
    assert not compare(MONEY, expected="1.234,00", given=JsonNumber("1.234")).is_equal
    assert compare(MONEY, expected="1234.50", given=JsonNumber("1.2345e3")).is_equal
    assert not compare(MONEY, expected="1234.50", given=JsonNumber("1e999999999")).is_equal


def test_a_label_is_one_of_the_labels_whatever_its_case() -> None:
    rule = label("Travel", "Straße", "Fiş")
    for written in ("travel", " TRAVEL ", "Travel"):
        assert compare(rule, expected="Travel", given=written).is_equal
    assert compare(rule, expected="Straße", given="STRASSE").is_equal
    assert compare(rule, expected="Fiş", given="FİŞ").is_equal
    assert compare(rule, expected="Fiş", given="FIŞ").is_equal
    assert normalise(rule, "taxi") is None
    assert fold_label("KASIM") == fold_label("kasım")


def test_text_keeps_case_and_ignores_the_kind_and_number_of_blanks() -> None:
    assert compare(TEXT, expected="Blue Door Cafe", given=" Blue\u00a0Door \n Cafe").is_equal
    assert not compare(TEXT, expected="Blue Door Cafe", given="blue door cafe").is_equal


def test_c19_composed_and_decomposed_are_equal_and_counted() -> None:
    composed = "Hóa đơn"
    decomposed = unicodedata.normalize("NFD", composed)
    assert composed != decomposed
    for rule in (TEXT, label(composed, "Biên lai")):
        assert compare(rule, expected=composed, given=decomposed) == (True, True)
        assert compare(rule, expected=composed, given=composed) == (True, False)
    assert compare(label("Straße", "Weg"), expected="Straße", given="STRASSE") == (True, False)


def test_c19_compatibility_forms_are_equal_only_by_option() -> None:
    full_width = "ＡＢ１２"
    assert not compare(TEXT, expected="AB12", given=full_width).is_equal
    optional = FieldRule(name="vendor", type="text", unicode_form="NFKC")
    assert compare(optional, expected="AB12", given=full_width) == (True, True)
    assert normalise(DATE, "２０２６-０４-０３") is None
    assert normalise(FieldRule(name="date", type="date", unicode_form="NFKC"), "２０２６-０４-０３") == dt.date(
        2026, 4, 3
    )
