"""A second reader of the starter's documents, independent of how they were made and of how answers are judged.

It knows neither the tables and templates nor the judging code. Days and amounts are found by pattern and read with
Babel's locale data; what stands before them decides which one counts: words of issuing for the day, words of totals
for the amount, words of due days, deliveries, taxes and deposits against them. Where there is no label, the category is
told by the nouns of the text.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from babel.dates import get_month_names
from babel.numbers import parse_decimal

import collector

STARTER = Path(collector.__file__).parent / "starter"
DOCUMENTS: list[dict[str, Any]] = [
    json.loads(line) for line in (STARTER / "documents.jsonl").read_text(encoding="utf-8").splitlines()
]

LOCALES = {"en": "en_GB", "es": "es_ES", "tr": "tr_TR", "vi": "vi_VN", "fr": "fr_FR", "de": "de_DE"}
ISSUED = re.compile(
    r"(invoice date|statement date|letter of|\bdate ?|issued|fecha( de emisión)?|emitid[oa]( en \w+)?( el)?"
    r"|düzenleme tarihi|tarih|lập|ngày|date d'émission|émis(e)?( à [\w-]+)?( le)?|rechnungsdatum|datum"
    r"|ausgestellt am)\W*$",
    re.IGNORECASE,
)
OTHER_DAY = re.compile(
    r"(due( by)?|delivery|valid on|ordered on|paid by|invoice, by|collect on|\bon|vencimiento|entrega|válido el"
    r"|pedido es del|antes del|son ödeme( günü)?|geçerlilik|sipariş günü|hạn trả( là)?|ngày đi|đã trả lại"
    r"|échéance( le)?|livraison|valable le|datait du|zahlbar bis|lieferung|gültig am|bestellt war am)\W*$",
    re.IGNORECASE,
)
TOTAL = re.compile(
    r"(?<!sub)(?<!sub-)(?<!ara )(\btotal( ttc)?|\bamount( due)?|received|fare|importe|precio total|pago total de"
    r"|un total de|tutar|toplam|số tiền|tổng cộng|montant|total de|betrag|summe( eur)?|gesamtbetrag(s von| von)?"
    r"|total of)\W*$",
    re.IGNORECASE,
)
OTHER_SUM = re.compile(
    r"(subtotal|tax[ \d%]*|vat[ \d%]*|deposit of|base|iva[ \d%]*|fianza de|ara toplam|kdv[ \d%]*|tiền hàng|thuế[ \d%]*"
    r"|tiền cọc|sous-total|tva[ \d%]*|acompte de|netto|mwst\.[ \d%]*|anzahlung von)\W*$",
    re.IGNORECASE,
)
NUMBER = r"[0-9]{1,3}(?:[.,'\u00a0][0-9]{3})*(?:[.,][0-9]{2})?"
CURRENCY = r"(?:USD|GBP|EUR|AUD|CHF|MXN|TRY|VND|TL|euros?|đồng|€|đ)"
AMOUNT = re.compile(
    rf"(?:[$£€]|EUR )({NUMBER})(?![0-9])|(?<![0-9.,])({NUMBER})[ \u00a0]{CURRENCY}(?!\w)", re.IGNORECASE
)
NOUNS = {
    "travel": (
        "travel coaches hotel rail taxi flight ferry viajes autobuses tren vuelo turizm otobüs otel bilet "
        "feribot sạn lịch vé tàu bay phà voyages autocars hôtel billet vol reisebüro busreisen bahnfahrkarte "
        "mietwagen"
    ),
    "food": (
        "bakery kitchen cafe lunch bread soup tea panadería restaurante café menú pan sopa fırını lokantası "
        "kahvesi menüsü ekmek çorbası bánh quán ăn phê trà boulangerie restaurant pain soupe bäckerei "
        "gasthaus brot kuchen tee"
    ),
    "office": (
        "stationers supplies print printer desk envelopes papelería oficinas imprenta sobres kırtasiye ofis "
        "matbaa zarf phẩm nội thất giấy mực đèn bảng papeterie bureautique imprimerie bureau schreibwaren "
        "bürobedarf druckerei ordner"
    ),
    "utilities": (
        "energy water telecom electricity gas energía aguas telefonía agua elektrik idaresi çöp telekom sayaç "
        "điện lực cấp viễn thông énergie eaux télécom eau stadtwerke wasserverband telefonie erdgas fernwärme"
    ),
}


class Reading(NamedTuple):
    """What was read: ISO day or null, amount or null, categories with the most nouns."""

    day: str | None
    amount: Decimal | None
    categories: list[str]


def read(text: str, language: str) -> Reading:
    """Read a document."""
    return Reading(read_day(text, language), read_amount(text, language), read_categories(text))


def before(text: str, at: int) -> str:
    """Return the words that lead to a place of the text."""
    return text[max(0, at - 60) : at]


def days_in(text: str, language: str) -> list[tuple[int, str]]:
    """Return each day of the text with where it begins."""
    months = {name.casefold(): number for number, name in get_month_names("wide", locale=LOCALES[language]).items()}
    found = [(match.start(), match[0]) for match in re.finditer(r"\d{4}-\d{2}-\d{2}", text)]
    found += [
        (match.start(), f"{match[3]}-{match[2]}-{match[1]}")
        for match in re.finditer(r"\b(\d{2})[./](\d{2})[./](\d{4})\b", text)
    ]
    for match in re.finditer(r"(?:ngày )?\b(\d{1,2})\.? (?:de )?(?:tháng )?(\w+) (?:de |năm )?(\d{4})", text):
        month = int(match[2]) if match[2].isdigit() else months.get(match[2].casefold())
        if month is not None:
            found.append((match.start(), f"{match[3]}-{month:02}-{int(match[1]):02}"))
    for _, day in found:
        dt.date.fromisoformat(day)
    return sorted(found)


def amounts_in(text: str, language: str) -> list[tuple[int, Decimal]]:
    """Return each amount that names a currency, with where it begins."""
    return [(match.start(), _number(match[1] or match[2], language)) for match in AMOUNT.finditer(text)]


def _number(written: str, language: str) -> Decimal:
    """Read a number by its last mark: a point before two digits is English whatever the language of the text."""
    if "'" in written or re.search(r"\.\d{2}$", written):
        return parse_decimal(written.replace("'", ","), locale="en_GB", strict=True)
    # Babel's French groups are separated by a narrow no-break space.
    return parse_decimal(written.replace("\u00a0", "\u202f"), locale=LOCALES[language], strict=True)


def read_day(text: str, language: str) -> str | None:
    """Return the day of issue: the one that is called so, else the first one that is called nothing else."""
    found = days_in(text, language)
    table = table_of(text)
    free = [(at, day) for at, day in found if at not in table and not OTHER_DAY.search(before(text, at))]
    for at, day in free:
        if ISSUED.search(before(text, at)):
            return day
    return free[0][1] if free else None


def read_amount(text: str, language: str) -> Decimal | None:
    """Return the total: the last amount that is called so and not the sum before tax, the tax or a deposit."""
    totals = [
        amount
        for at, amount in amounts_in(text, language)
        if TOTAL.search(before(text, at)) and not OTHER_SUM.search(before(text, at))
    ]
    return totals[-1] if totals else None


def table_of(text: str) -> range:
    """Return where the table of an account statement stands, which is not about the document itself."""
    rows = [match.span() for match in re.finditer(r"(?m)^\d{2}[./]\d{2}[./]\d{4} \|.*$", text)]
    return range(rows[0][0], rows[-1][1]) if rows else range(0)


def rows_sum(text: str, language: str) -> Decimal | None:
    """Return the sum of an account statement's rows, null where the text has no such table."""
    rows = re.findall(r"(?m)^\d{2}[./]\d{2}[./]\d{4} \|.*\| ([^|\n]+)$", text)
    return sum((_number(row, language) for row in rows), Decimal(0)) if rows else None


def read_categories(text: str) -> list[str]:
    """Return the category that is written there, else those whose nouns the text has most of."""
    label = re.search(r"(?:Category|Categoría|Kategori|Loại|Catégorie ?|Kategorie): (\w+)", text)
    if label:
        return [label[1]]
    words = re.findall(r"\w+", text.replace("İ", "i").casefold())
    counts = {name: sum(words.count(noun) for noun in set(known.split())) for name, known in NOUNS.items()}
    return [name for name, count in counts.items() if count and count == max(counts.values())]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: str(one["id"]))
def test_a_second_reader_finds_the_expected_values(document: dict[str, Any]) -> None:
    found, expected = read(document["text"], document["language"]), document["expected"]
    assert found.day == expected["date"]
    assert found.amount == (None if expected["amount"] is None else Decimal(expected["amount"]))
    assert found.categories == [expected["category"]]


def test_the_second_reader_follows_the_text_and_not_the_expected_values() -> None:
    """Another year and another amount in the text are other readings, so agreement above is no accident."""
    for document in DOCUMENTS:
        text, language = document["text"], document["language"]
        found = read(text, language)
        shifted = read(re.sub(r"\b2026\b", "2024", text), language)
        assert shifted.day == (found.day and found.day.replace("2026", "2024"))
        at = max((at for at, amount in amounts_in(text, language) if amount == found.amount), default=None)
        if at is not None and found.amount is not None:
            changed = text[:at] + re.sub(r"[1-9]", lambda digit: str(9 - int(digit[0]) or 1), text[at:])
            assert read_amount(changed, language) != found.amount, document["id"]


def test_an_account_statements_rows_add_up_to_its_total() -> None:
    statements = [one for one in DOCUMENTS if rows_sum(one["text"], one["language"]) is not None]
    assert len(statements) >= 19
    for one in statements:
        text, language = one["text"], one["language"]
        below = [amount for _, amount in amounts_in(text, language)][-3:]
        subtotal, tax, total = below
        assert rows_sum(text, language) == subtotal
        assert subtotal + tax == total == Decimal(one["expected"]["amount"])


def test_invoices_with_tax_add_up() -> None:
    invoices = [one for one in DOCUMENTS if one["cluster"].split("-", 1)[1] in {"invoice", "factura", "fatura",
                "hoa-don", "facture", "rechnung"}]  # fmt: skip
    assert len(invoices) >= 20
    for one in invoices:
        subtotal, tax, total = (amount for _, amount in amounts_in(one["text"], one["language"]))
        assert subtotal + tax == total
