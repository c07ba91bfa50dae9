"""Read an amount of money exactly: decimal comma or point, thousands separators, symbols and ISO 4217 codes."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

_CODES = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD "
    "CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
    "GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT "
    "LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR "
    "NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP "
    "STN SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XOF "
    "XPF YER ZAR ZMW ZWG"
)
_ISO_4217 = frozenset(_CODES.split())
_DOLLARS = frozenset(
    {"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN", "ARS", "CLP", "COP", "TWD", "BBD", "BSD", "JMD", "TTD"}
)
_CROWNS = frozenset({"SEK", "NOK", "DKK", "ISK"})
_SIGNS: dict[str, frozenset[str]] = {
    "€": frozenset({"EUR"}), "euro": frozenset({"EUR"}), "euros": frozenset({"EUR"}),
    "£": frozenset({"GBP"}), "¥": frozenset({"JPY", "CNY"}), "元": frozenset({"CNY"}), "円": frozenset({"JPY"}),
    "$": _DOLLARS, "us$": frozenset({"USD"}), "c$": frozenset({"CAD"}), "a$": frozenset({"AUD"}),
    "r$": frozenset({"BRL"}), "mx$": frozenset({"MXN"}), "hk$": frozenset({"HKD"}), "s$": frozenset({"SGD"}),
    "dollar": _DOLLARS, "dollars": _DOLLARS, "₫": frozenset({"VND"}), "đ": frozenset({"VND"}),
    "đồng": frozenset({"VND"}), "vnđ": frozenset({"VND"}), "₺": frozenset({"TRY"}), "tl": frozenset({"TRY"}),
    "kr": _CROWNS, "kr.": _CROWNS, "zł": frozenset({"PLN"}), "kč": frozenset({"CZK"}), "ft": frozenset({"HUF"}),
    "fr.": frozenset({"CHF"}), "sfr.": frozenset({"CHF"}), "₹": frozenset({"INR"}), "₽": frozenset({"RUB"}),
    "₩": frozenset({"KRW"}), "₴": frozenset({"UAH"}), "₪": frozenset({"ILS"}), "฿": frozenset({"THB"}),
    "₱": frozenset({"PHP"}), "₦": frozenset({"NGN"}),
}  # fmt: skip
_THREE_DECIMALS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})

_BODY = re.compile(
    r"(?P<before>[^0-9]*?)(?P<number>\.?[0-9](?:[0-9.,'’_\s]*[0-9])?)(?P<whole>[.,]\s?[-–—])?(?P<after>[^0-9]*)"
)
_LITERAL = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,2})?")
_MINUS = re.compile(r"[-−‒–]")
MAX_LENGTH = 60


class Money(NamedTuple):
    """An exact amount; `currencies` holds what its sign or code can mean, empty where it names none."""

    amount: Decimal
    currencies: frozenset[str]


def same_money(expected: Money, given: Money) -> bool:
    """Tell whether amount and currency agree.

    Where the expected value names no currency the given one's is ignored. Where it does, the given value must name it
    too: `42.10` is not `42.10 EUR`. A sign that several currencies share (`$`, `kr`) agrees with each of them.
    """
    return expected.amount == given.amount and (not expected.currencies or bool(expected.currencies & given.currencies))


def parse_number_literal(literal: str) -> Money | None:
    """Return the amount of a JSON number, whose point is always the decimal point."""
    return Money(Decimal(literal), frozenset()) if _LITERAL.fullmatch(literal) else None


def parse_money(text: str) -> Money | None:
    """Return the one amount that the text is, or null.

    The last of `.` and `,` is the decimal mark where both stand. One mark alone, followed by exactly three digits and
    led by one to three that do not begin with 0, separates thousands (1.234 is 1234), unless the currency has three
    decimals; otherwise it is the decimal mark. Spaces (no-break ones too), apostrophes and underscores only separate
    thousands. A minus before or after, or brackets, make the amount negative; `42,-` is 42. Words other than a currency
    are refused.
    """
    text = " ".join(text.split())
    if not text or len(text) > MAX_LENGTH:
        return None
    is_negative = text.startswith("(") and text.endswith(")")
    match = _BODY.fullmatch(text[1:-1].strip() if is_negative else text)
    if match is None:
        return None
    before, before_minus = _take_minus(match["before"])
    after, after_minus = _take_minus(match["after"])
    if is_negative + before_minus + after_minus > 1:
        return None
    currencies = _currencies(before, after)
    if currencies is None:
        return None
    number = _amount(match["number"], has_three_decimals=bool(currencies & _THREE_DECIMALS))
    if number is None:
        return None
    return Money(-number if is_negative or before_minus or after_minus else number, currencies)


def _take_minus(affix: str) -> tuple[str, int]:
    rest = _MINUS.sub("", affix)
    return rest.replace("+", "", 1).strip(), len(affix) - len(rest)


def _currencies(before: str, after: str) -> frozenset[str] | None:
    """Return what both sides name together, null where a word is no currency or two of them disagree."""
    common: frozenset[str] | None = None
    for word in (before + " " + after).split():
        named = frozenset({word.upper()}) if word.upper() in _ISO_4217 else _SIGNS.get(word.casefold())
        if named is None:
            return None
        common = named if common is None else common & named
        if not common:
            return None
    return common or frozenset()


def _amount(number: str, *, has_three_decimals: bool) -> Decimal | None:
    marks = [char for char in number if char in ".,"]
    decimal_mark = ""
    if len(set(marks)) == 2:
        decimal_mark = marks[-1]
    elif len(marks) == 1:
        head, tail = number.split(marks[0])
        looks_like_thousands = len(tail) == 3 and re.fullmatch(r"[1-9][0-9]{0,2}", head) and not has_three_decimals
        decimal_mark = "" if looks_like_thousands else marks[0]
    if decimal_mark and marks.count(decimal_mark) > 1:
        return None
    whole, _, fraction = number.partition(decimal_mark) if decimal_mark else (number, "", "")
    digits = _ungrouped(whole)
    if digits is None or (fraction and not re.fullmatch("[0-9]+", fraction)):
        return None
    return Decimal(f"{digits or '0'}.{fraction or '0'}")


def _ungrouped(whole: str) -> str | None:
    """Return the digits of a number whose groups are all of three, or of two before the last (1,23,456)."""
    if re.fullmatch("[0-9]*", whole):
        return whole
    marks = {char for char in whole if not char.isdigit()}
    if len(marks) != 1:
        return None
    separator = re.escape(marks.pop())
    if re.fullmatch(rf"[0-9]{{1,3}}(?:{separator}[0-9]{{3}})+", whole) or (
        separator == "," and re.fullmatch(r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}", whole)
    ):
        return re.sub("[^0-9]", "", whole)
    return None
