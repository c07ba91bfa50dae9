"""Fill one template: name, day, prices and goods follow by arithmetic from the document's place in the plan."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from collector.starter.language import Language, Template
from collector.starter.plan import Place, category_for
from collector.starter.values import Day, Sum

FIRST_DAY = dt.date(2026, 1, 5)
PRICES = {
    "travel": ("84", "46", "32", "59", "138", "41", "23", "18"),
    "food": ("12.5", "8.9", "16.4", "4.2", "38", "6.7", "22", "9.8"),
    "office": ("27.9", "14.5", "89", "6.3", "45", "119", "11.2", "33.6"),
    "utilities": ("62.4", "38.1", "71.9", "29.9", "24.5", "18.7", "54.2", "12"),
}
PRICE_LEVEL = {"USD": 1, "GBP": 1, "EUR": 1, "CHF": 1, "AUD": 2, "MXN": 20, "TRY": 40, "VND": 27_000}
QUANTITIES = (1, 2, 12, 3, 25)


class Writer:
    """Fills one template."""

    def __init__(self, place: Place, template: Template, language: Language) -> None:
        self._place, self._template, self._language = place, template, language
        self.category = category_for(place, template)
        self.issued = FIRST_DAY + dt.timedelta(days=place.serial * 53 % 330)
        self._has_cents = template.currency != "VND"

    def text(self) -> str:
        """Return the document's text; a long one has as many lines as its template's size asks for."""
        count = self._template.lines
        text = self._filled(count)
        while len(text.encode()) < self._template.bytes_wanted:
            count += 1
            text = self._filled(count)
        self.total = self._sums(count)["total"]
        return text

    def _filled(self, count: int) -> str:
        place, template, language = self._place, self._template, self._language
        towns = language.places
        names = language.names[self.category]
        name = names[1 if template.kind == "ticket" else place.in_language // len(towns) % len(names)]
        clauses = language.phrases.clauses
        values: dict[str, object] = {
            "name": name.format(place=towns[place.in_language % len(towns)]),
            "town": towns[(place.in_language * 3 + 7) % len(towns)],
            "number": f"{'ABCDEFGHJK'[place.serial % 10]}-{1000 + place.serial * 619 % 9000}",
            "category": self.category,
            "item": self._item(0),
            "date": self._day(0),
            "due": self._day(14 + 7 * (place.serial % 3)),
            "delivery": self._day(-3 - place.serial % 5),
            "other": self._sum(Decimal(10 * (place.serial % 6 + 2) * PRICE_LEVEL[template.currency])),
            "lines": template.join.join(self._line(number, count) for number in range(count)),
            "clauses": template.join.join(
                clauses[(place.serial + 3 * number) % len(clauses)] for number in range(template.clauses)
            ),
            **self._sums(count),
        }
        return template.text.format_map(values)

    def _line(self, number: int, count: int) -> str:
        price, quantity = self._price(number), self._quantity(number)
        towns = self._language.places
        return self._template.line[number % len(self._template.line)].format_map(
            {
                "day": self._day(2 * (number - count) - 1),
                "item": self._item(number),
                "town": towns[(self._place.in_language + 5 * number + 2) % len(towns)],
                "quantity": quantity,
                "price": self._sum(price),
                "sum": self._sum(price * quantity),
            }
        )

    def _sums(self, count: int) -> dict[str, Sum]:
        subtotal = sum((self._price(number) * self._quantity(number) for number in range(count)), Decimal(0))
        tax = self._rounded(subtotal * self._template.tax / 100)
        return {"subtotal": self._sum(subtotal), "tax": self._sum(tax), "total": self._sum(subtotal + tax)}

    def _quantity(self, number: int) -> int:
        return QUANTITIES[(self._place.serial + number) % len(QUANTITIES)]

    def _price(self, number: int) -> Decimal:
        percent = 90 + (7 * self._place.serial + 3 * number) % 31
        listed = Decimal(PRICES[self.category][self._item_number(number)]) * PRICE_LEVEL[self._template.currency]
        return self._rounded(listed * percent / 100)

    def _rounded(self, amount: Decimal) -> Decimal:
        return amount.quantize(Decimal("0.01")) if self._has_cents else round(amount, -3).quantize(Decimal(1))

    def _item(self, number: int) -> str:
        return self._language.items[self.category][self._item_number(number)]

    def _item_number(self, number: int) -> int:
        goods = self._template.goods
        return goods[(5 * self._place.serial + 3 * number) % len(goods)]

    def _day(self, offset_days: int) -> Day:
        day = self.issued + dt.timedelta(days=offset_days)
        return Day(day, language=self._language.language, months=self._language.months)

    def _sum(self, amount: Decimal) -> Sum:
        return Sum(amount, has_cents=self._has_cents)
