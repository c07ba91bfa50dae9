"""Exact money: integer minor units with an ISO 4217 currency, one rounding, tax, and splitting to the last cent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from .errors import DossierError

_DECIMAL = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?")

_CODES = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF
CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF
IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS
VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_CODES.split())
"""Active ISO 4217 codes of currencies and funds, without metals, baskets and test codes."""

_DIGITS = {  # every other currency has two
    "BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0,
    "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
    "BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
    "CLF": 4, "UYW": 4,
}  # fmt: skip


class MoneyError(DossierError):
    """An amount that cannot be used: not a decimal, too precise, an unknown or another currency."""


def minor_digits(currency: str) -> int:
    """Return how many decimals the currency's minor unit has by ISO 4217: 2 for EUR and TRY, 0 for VND, 3 for KWD.

    Raises MoneyError for a code that ISO 4217 does not list.
    """
    if currency not in CURRENCIES:
        raise MoneyError(f"{currency!r} is no ISO 4217 currency", next_step="write the three-letter code, e.g. EUR")
    return _DIGITS.get(currency, 2)


def rounded(value: Fraction) -> int:
    """Return the nearest integer; exactly half goes away from zero.

    The one rounding of money in this project: the commercial rule of invoices, equal for a debit and its credit.
    """
    magnitude = (2 * abs(value.numerator) + value.denominator) // (2 * value.denominator)
    return magnitude if value >= 0 else -magnitude


def exact(text: str) -> Fraction:
    """Return the decimal written in `text` (`-?digits[.digits]`, nothing else) as a fraction.

    Raises MoneyError for signs other than `-`, separators, exponents, spaces and digits outside ASCII.
    """
    if not isinstance(text, str) or not (match := _DECIMAL.fullmatch(text)):
        raise MoneyError(f"{text!r} is no exact decimal", next_step='write digits with a point, in quotes: "1092.00"')
    sign, whole, decimals = match[1], match[2], match[3] or ""
    value = Fraction(int(whole + decimals), 10 ** len(decimals))
    return -value if sign else value


def decimal_text(units: int, digits: int) -> str:
    """Return `units` of the last of so many decimals as the exact decimal that `exact` reads, all decimals written."""
    sign = "-" if units < 0 else ""
    whole, rest = divmod(abs(units), 10**digits)
    return f"{sign}{whole}.{rest:0{digits}d}" if digits else f"{sign}{whole}"


def percent_rate(text: str) -> Fraction:
    """Return a percentage written as an exact decimal as a rate: "19" is 19/100."""
    return exact(text) / 100


class Money:
    """An amount in whole minor units of one currency. Adding or comparing two currencies is an error."""

    __slots__ = ("_currency", "_minor_units")

    def __init__(self, minor_units: int, currency: str) -> None:
        if type(minor_units) is not int:
            raise TypeError(f"money is a whole number of minor units, not {minor_units!r}")
        minor_digits(currency)
        self._minor_units = minor_units
        self._currency = currency

    @classmethod
    def parse(cls, text: str, currency: str) -> Money:
        """Return the amount of an exact decimal such as "1092.00".

        Raises MoneyError when the currency has fewer decimals than the text: nothing is rounded while reading.
        """
        scaled = exact(text) * 10 ** minor_digits(currency)
        if scaled.denominator != 1:
            digits = minor_digits(currency)
            raise MoneyError(
                f"{text} has more decimals than {currency} has ({digits})",
                next_step=f"write the amount with at most {digits} decimals",
            )
        return cls(scaled.numerator, currency)

    @property
    def minor_units(self) -> int:
        """The amount in minor units, e.g. cents."""
        return self._minor_units

    @property
    def currency(self) -> str:
        """ISO 4217 code."""
        return self._currency

    def decimal(self) -> str:
        """Return the amount as `parse` reads it, with all decimals of the currency."""
        return decimal_text(self._minor_units, minor_digits(self._currency))

    def times(self, count: int) -> Money:
        """Return `count` times the amount; exact."""
        if type(count) is not int:
            raise TypeError(f"money is multiplied by whole numbers, not {count!r}; use `portion` for a ratio")
        return Money(self._minor_units * count, self._currency)

    def portion(self, ratio: Fraction) -> Money:
        """Return the amount times an exact ratio, rounded once to a minor unit (`rounded`)."""
        if not isinstance(ratio, Fraction):
            raise TypeError(f"a ratio of money is a Fraction, not {ratio!r}")
        return Money(rounded(self._minor_units * ratio), self._currency)

    def _same(self, other: Money) -> int:
        if other._currency != self._currency:
            raise MoneyError(
                f"{self._currency} and {other._currency} cannot be added or compared",
                next_step="give an [[exchange_rate]] for one of them, or all offers of a campaign in one currency",
            )
        return other._minor_units

    def __add__(self, other: Money) -> Money:
        if not isinstance(other, Money):
            return NotImplemented
        return Money(self._minor_units + self._same(other), self._currency)

    def __sub__(self, other: Money) -> Money:
        if not isinstance(other, Money):
            return NotImplemented
        return Money(self._minor_units - self._same(other), self._currency)

    def __neg__(self) -> Money:
        return Money(-self._minor_units, self._currency)

    def __lt__(self, other: Money) -> bool:
        if not isinstance(other, Money):
            return NotImplemented
        return self._minor_units < self._same(other)

    def __le__(self, other: Money) -> bool:
        if not isinstance(other, Money):
            return NotImplemented
        return self._minor_units <= self._same(other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Money):
            return NotImplemented
        return (self._minor_units, self._currency) == (other._minor_units, other._currency)

    def __hash__(self) -> int:
        return hash((self._minor_units, self._currency))

    def __repr__(self) -> str:
        return f"Money({self.decimal()} {self._currency})"


class Taxed(NamedTuple):
    """An amount before tax, its tax and the amount with tax: net + tax = gross, to the minor unit."""

    net: Money
    tax: Money
    gross: Money


def taxed_from_net(net: Money, rate: Fraction) -> Taxed:
    """Return net, tax and gross; the tax is rounded once, on the whole amount."""
    tax = net.portion(rate)
    return Taxed(net, tax, net + tax)


def taxed_from_gross(gross: Money, rate: Fraction) -> Taxed:
    """Return net, tax and gross of an amount that includes its tax; the tax contained is rounded once."""
    tax = gross.portion(rate / (1 + rate))
    return Taxed(gross - tax, tax, gross)


def split(total: Money, weights: Mapping[str, int | Fraction]) -> dict[str, Money]:
    """Return each key's share of `total`, summing to it exactly; a credit is split as its absolute value.

    Every share is within one minor unit of the exact one (`apportioned`).

    Raises MoneyError for a negative weight and where all weights are zero: another convention must be named then.
    """
    sign = -1 if total.minor_units < 0 else 1
    shares = apportioned(abs(total.minor_units), weights)
    return {key: Money(sign * share, total.currency) for key, share in shares.items()}


def apportioned(total: int, weights: Mapping[str, int | Fraction]) -> dict[str, int]:
    """Return whole numbers that sum to a total of 0 or more, in proportion to weights (largest remainder, Hamilton).

    The units left over go to the largest remainders; equal remainders are served by key, ascending.

    Raises MoneyError for a negative weight and where all weights are zero.
    """
    whole = sum((Fraction(weight) for weight in weights.values()), Fraction(0))
    if whole <= 0 or any(weight < 0 for weight in weights.values()):
        raise MoneyError("no weights to split by", next_step="name a convention whose weights are not all zero")
    quotas = {key: total * Fraction(weight) / whole for key, weight in weights.items()}
    shares = {key: quota.numerator // quota.denominator for key, quota in quotas.items()}
    left_over = total - sum(shares.values())
    for key in sorted(quotas, key=lambda key: (shares[key] - quotas[key], key))[:left_over]:
        shares[key] += 1
    return shares
