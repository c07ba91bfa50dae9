"""Sentences, numbers, dates and money in one language; also the pseudo-language that finds untranslated text."""

from __future__ import annotations

import datetime as dt
import gettext
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

from babel import Locale
from babel.dates import format_date, format_datetime
from babel.numbers import format_decimal

from collector.contract.errors import DossierError
from collector.contract.money import minor_digits
from collector.contract.resources import data_dir

DOMAIN = "gpu-dossier"
SOURCE_LANGUAGE = "en"
PSEUDO_LANGUAGE = "en-XA"
"""Not a language: every message comes out accented and in brackets, so that what is not translated stands out."""

NO_BREAK = "\u00a0"
_KEPT = re.compile(r"(%\(\w+\)[sd]|\{\w+\}|%%)")
_ACCENTED = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "áƀçđéƒğĥíĵķłɱñóþɋŕšťúṽŵẋýžÁƁÇĐÉƑĞĤÍĴĶŁḾÑÓÞɊŔŠŤÚṼŴẊÝŽ",
)


def N_(message: str) -> str:  # noqa: N802 - gettext's own name for "mark now, translate later"
    """Mark a message for extraction and return it unchanged."""
    return message


class PseudoTranslations(gettext.NullTranslations):
    """Accents every letter of every message and puts it in brackets; placeholders stay."""

    def gettext(self, message: str) -> str:
        if not message:
            return message
        parts = _KEPT.split(message)
        return "[" + "".join(p if _KEPT.fullmatch(p) else p.translate(_ACCENTED) for p in parts) + "]"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)

    def pgettext(self, context: str, message: str) -> str:
        return self.gettext(message)

    def npgettext(self, context: str, msgid1: str, msgid2: str, n: int) -> str:
        return self.ngettext(msgid1, msgid2, n)


class Translator:
    """One language: its catalog and its number, date and money formats."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        self.catalog = _catalog(lang)
        self.locale = Locale.parse(SOURCE_LANGUAGE if lang == PSEUDO_LANGUAGE else lang.replace("-", "_"))

    def text(self, message: str) -> str:
        return self.catalog.gettext(message)

    def plural(self, one: str, many: str, n: int) -> str:
        return self.catalog.ngettext(one, many, n)

    def number(self, value: float | Decimal, decimals: int = 0, *, is_signed: bool = False) -> str:
        """Return the number with exactly `decimals` digits, a true minus sign and, when asked, a plus sign."""
        exact = Decimal(str(value)).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN)
        pattern = "#,##0" + ("." + "0" * decimals if decimals else "")
        digits: str = format_decimal(abs(exact), format=pattern, locale=self.locale)
        if exact < 0:
            return "\u2212" + digits
        return "+" + digits if is_signed and exact > 0 else digits

    def money(self, minor_units: int, currency: str, *, with_code: bool = True) -> str:
        """Return an amount of integer minor units with the ISO 4217 decimals and, when asked, the code."""
        precision = minor_digits(currency)
        amount = self.number(Decimal(minor_units).scaleb(-precision), precision)
        return f"{amount}{NO_BREAK}{currency}" if with_code else amount

    def major(self, minor_units: int, currency: str) -> float:
        """Return an amount in the currency's major unit as a number, for a chart's axis only."""
        return float(Decimal(minor_units).scaleb(-minor_digits(currency)))

    def date(self, iso: str) -> str:
        """Return the day of an ISO date or UTC stamp in the language's long form."""
        day = dt.date.fromisoformat(iso[:10])
        result: str = format_date(
            day, format="d MMMM y" if self.locale.language == "en" else "long", locale=self.locale
        )
        return result.replace(" ", NO_BREAK)

    def moment(self, stamp: str) -> str:
        """Return a UTC stamp as day and minute, with the zone named."""
        moment = dt.datetime.fromisoformat(stamp.replace("Z", "+00:00")).astimezone(dt.UTC)
        pattern = "d MMM y, HH:mm" if self.locale.language == "en" else "medium"
        text: str = format_datetime(moment, format=pattern, locale=self.locale, tzinfo=dt.UTC)
        return f"{text.replace(' ', NO_BREAK)}{NO_BREAK}UTC"


def languages() -> list[str]:
    """Return the languages that have a compiled catalog, the source language first."""
    folder = data_dir("templates") / "locale"
    return [SOURCE_LANGUAGE, *sorted(p.parent.parent.name for p in folder.glob(f"*/LC_MESSAGES/{DOMAIN}.mo"))]


def check_catalog(messages: Mapping[str, str]) -> list[str]:
    """Return a problem for each translation whose placeholders differ from its message's."""
    return [
        f"placeholders of {message!r} differ in its translation {translation!r}"
        for message, translation in messages.items()
        if translation and sorted(_KEPT.findall(message)) != sorted(_KEPT.findall(translation))
    ]


def _catalog(lang: str) -> gettext.NullTranslations:
    if lang == SOURCE_LANGUAGE:
        return gettext.NullTranslations()
    if lang == PSEUDO_LANGUAGE:
        return PseudoTranslations()
    folder: Path = data_dir("templates") / "locale"
    try:
        return gettext.translation(DOMAIN, localedir=str(folder), languages=[lang.replace("-", "_")])
    except OSError as missing:
        raise DossierError(
            f"there is no translation of the dossier into {lang!r}",
            next_step=f"use one of: {', '.join(languages())}",
        ) from missing
