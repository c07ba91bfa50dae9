"""Write the starter's 330 documents: templates in six languages, filled by arithmetic; expected values by construction.

`python -m collector.starter.make_documents FILE` writes the same bytes each time: nothing is drawn. Which language,
template, day, price and name a document has follows from its place in the plan below, so a reader can work it out.
The date is the day of issue, the amount is the total with tax, the category is that of the goods.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from collector.contract.protocol import DocumentLine
from collector.contract.records.base import Role
from collector.corpus_statistics import corpus_page
from collector.starter import CORPUS_TITLES, TIERS, starter_text
from collector.starter.language import LANGUAGES, Language, Template, Tier, read_language
from collector.starter.values import Day, Sum

TOKENIZER = "SmolLM2-135M-Instruct"
ROLES: tuple[Role, ...] = ("development", "validation", "test")
ID_PREFIX: dict[Role, str] = {"development": "dev", "validation": "val", "test": "test"}


class Share(NamedTuple):
    """How many documents of a role a tier has, how many of them are critical, and how many (the last ones) are long."""

    documents: int
    critical: int
    long: int


PLAN: dict[tuple[Role, Tier], Share] = {
    ("development", "labelled"): Share(12, 0, 0),
    ("development", "semi-structured"): Share(10, 0, 1),
    ("development", "prose"): Share(8, 0, 1),
    ("validation", "labelled"): Share(40, 4, 0),
    ("validation", "semi-structured"): Share(35, 4, 6),
    ("validation", "prose"): Share(25, 2, 2),
    ("test", "labelled"): Share(80, 8, 0),
    ("test", "semi-structured"): Share(70, 8, 12),
    ("test", "prose"): Share(50, 4, 4),
}
FIRST_DAY = dt.date(2026, 1, 5)
PRICES = {
    "travel": ("84", "46", "32", "59", "138", "41", "23", "18"),
    "food": ("12.5", "8.9", "16.4", "4.2", "38", "6.7", "22", "9.8"),
    "office": ("27.9", "14.5", "89", "6.3", "45", "119", "11.2", "33.6"),
    "utilities": ("62.4", "38.1", "71.9", "29.9", "24.5", "18.7", "54.2", "12"),
}
PRICE_LEVEL = {"USD": 1, "GBP": 1, "EUR": 1, "CHF": 1, "AUD": 2, "MXN": 20, "TRY": 40, "VND": 27_000}
QUANTITIES = (1, 2, 12, 3, 25)
SHORT_BELOW_BYTES = 110
LONG_FROM_BYTES = 2_000


class Place(NamedTuple):
    """Where a document stands: in the whole corpus, in its role and tier, and among those of its language."""

    role: Role
    tier: Tier
    serial: int
    in_tier: int
    in_language: int
    in_cell: int
    """Among the documents of its role, tier and language that are not long."""
    is_critical: bool
    is_long: bool
    language: str


class Made(NamedTuple):
    """A document and the template that it was made from."""

    line: dict[str, object]
    template: Template


def places() -> Iterator[Place]:
    """Yield the place of each document: role by role, tier by tier, the languages in turn."""
    serial = 0
    in_language: Counter[str] = Counter()
    in_cell: Counter[tuple[str, str, str]] = Counter()
    for role in ROLES:
        for tier_number, tier in enumerate(TIERS):
            share = PLAN[role, cast("Tier", tier)]
            # A step through the tier and another through the languages, so that critical documents are of each.
            critical = {
                number * share.documents // share.critical + (3 + number) % 6 for number in range(share.critical)
            }
            for index in range(share.documents):
                language = LANGUAGES[(index + 4 * tier_number) % len(LANGUAGES)]
                cell = (role, tier, language)
                is_long = index >= share.documents - share.long
                yield Place(
                    role, cast("Tier", tier), serial, index, in_language[language], in_cell[cell],
                    index in critical, is_long, language,
                )  # fmt: skip
                serial += 1
                in_language[language] += 1
                in_cell[cell] += not is_long


def template_for(place: Place, language: Language) -> Template:
    """Return the template whose turn it is."""
    fitting = [
        one
        for one in language.templates
        if one.tier == place.tier and one.is_long == place.is_long and place.role in one.roles
    ]
    turn = place.in_cell + LANGUAGES.index(place.language)
    for rare in (one for one in fitting if one.share > 1):
        if turn % rare.share == rare.share - 1:
            return rare
    regular = [one for one in fitting if one.share == 1]
    return regular[turn % len(regular)]


def category_for(place: Place, template: Template) -> str:
    """Return the category whose turn it is among those that the template can have."""
    return template.categories[(place.in_language + LANGUAGES.index(place.language)) % len(template.categories)]


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


def made(*, tier: str | None = None) -> list[Made]:
    """Return the documents in the order of their ids, all or those of one tier, with their templates."""
    languages = {code: read_language(code) for code in LANGUAGES}
    result: list[Made] = []
    numbers: Counter[str] = Counter()
    for place in places():
        numbers[place.role] += 1
        template = template_for(place, languages[place.language])
        if tier in (None, place.tier):
            line = _document(place, template, languages[place.language], numbers[place.role])
            result.append(Made(line, template))
    return result


def _document(place: Place, template: Template, language: Language, number: int) -> dict[str, object]:
    writer = Writer(place, template, language)
    text = writer.text()
    return {
        "id": f"{ID_PREFIX[place.role]}-{number:03}",
        "role": place.role,
        "text": text,
        "expected": {
            "date": None if template.missing == "date" else writer.issued.isoformat(),
            "amount": None if template.missing == "amount" else writer.total.plain,
            "category": writer.category,
        },
        "length_class": length_class(text),
        "is_hard": template.is_hard,
        "subsets": [template.tier, *(["critical"] if place.is_critical else [])],
        "cluster": template.id,
        "language": place.language,
    }


def length_class(text: str) -> str:
    """Return short, usual or long by the text's bytes of UTF-8, which follow tokens better than characters do."""
    size = len(text.encode())
    return "short" if size < SHORT_BELOW_BYTES else "usual" if size < LONG_FROM_BYTES else "long"


def file_text(*, tier: str | None = None) -> str:
    """Return the documents file: one JSON object per line, letters as they are."""
    return "".join(json.dumps(one.line, ensure_ascii=False) + "\n" for one in made(tier=tier))


def page_text() -> str:
    """Return corpus.md: the statistics of all documents, with the tokens that were counted last."""
    lines = made()
    counted = json.loads(starter_text("token_counts.json"))
    if counted["documents_sha256"] != sha256(file_text().encode()).hexdigest():
        raise ValueError("token_counts.json belongs to other documents: write it again with --tokenizer")
    return corpus_page(
        [msgspec.convert(one.line, DocumentLine) for one in lines],
        title=CORPUS_TITLES["extraction"],
        currencies={str(one.line["id"]): one.template.currency for one in lines},
        token_counts=counted["tokens"],
        tokenizer=counted["tokenizer"],
    )


def token_counts_text(folder: Path) -> str:
    """Return token_counts.json: the tokens of each document's text, counted with the tokenizer of a model's folder."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = {one.line["id"]: len(tokenizer(one.line["text"]).input_ids) for one in made()}
    digest = sha256(file_text().encode()).hexdigest()
    return json.dumps({"tokenizer": TOKENIZER, "documents_sha256": digest, "tokens": tokens}, indent=1) + "\n"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m collector.starter.make_documents", description=__doc__)
    parser.add_argument("file", type=Path, help="where to write; without an option, the documents")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--tier", choices=TIERS, help="write the documents of this tier alone")
    what.add_argument("--tokenizer", type=Path, help="write token_counts.json, counted with this model's tokenizer")
    what.add_argument("--statistics", action="store_true", help="write corpus.md")
    options = parser.parse_args(arguments)
    if options.tokenizer:
        text = token_counts_text(options.tokenizer)
    else:
        text = page_text() if options.statistics else file_text(tier=options.tier)
    options.file.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
