"""Days and sums of money as the starter's documents write them: each property is one way of writing."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

NO_BREAK_SPACE = "\u00a0"


class Day:
    """A calendar day; day first wherever it is written with numbers alone."""

    def __init__(self, day: dt.date, *, language: str, months: list[str]) -> None:
        self._day, self._language, self._months = day, language, months

    @property
    def iso(self) -> str:
        return self._day.isoformat()

    @property
    def slash(self) -> str:
        return f"{self._day:%d/%m/%Y}"

    @property
    def dots(self) -> str:
        return f"{self._day:%d.%m.%Y}"

    @property
    def words(self) -> str:
        """With the month's name, or in the Vietnamese order of words."""
        day = self._day
        if self._language == "vi":
            return f"ngày {day.day} tháng {day.month} năm {day.year}"
        month = self._months[day.month - 1]
        pattern = {"es": "{} de {} de {}", "de": "{}. {} {}"}.get(self._language, "{} {} {}")
        return pattern.format(day.day, month, day.year)


class Sum:
    """An exact amount; a currency without subunits is written without decimals."""

    def __init__(self, amount: Decimal, *, has_cents: bool) -> None:
        self.amount, self._digits = amount, 2 if has_cents else 0

    @property
    def plain(self) -> str:
        return f"{self.amount:.{self._digits}f}"

    @property
    def point(self) -> str:
        return f"{self.amount:,.{self._digits}f}"

    @property
    def comma(self) -> str:
        return self.point.translate({ord(","): ".", ord("."): ","})

    @property
    def space(self) -> str:
        return self.point.translate({ord(","): NO_BREAK_SPACE, ord("."): ","})

    @property
    def swiss(self) -> str:
        return self.point.replace(",", "'")
