"""Write the starter's documents: templates in six languages, filled from the tables below; expected by construction.

`python -m collector.starter.make_documents FILE` writes the same bytes each time. Nothing is drawn: dates, amounts and
names are listed, so a reader can check any document against its row. Names and numbers are invented.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

NBSP = "\u00a0"

_MONTH_NAMES = {
    "en": "January February March April May June July August September October November December",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
}


class Row(NamedTuple):
    """What one document says: its role, template, date (or none), amount (or none), category and two free words."""

    document_id: str
    role: str
    template: str
    date: str | None
    amount: str | None
    category: str
    name: str
    detail: str
    is_critical: bool = False


class Template(NamedTuple):
    """One layout: its language, whether it is hard, and the text of a row."""

    language: str
    is_hard: bool
    text: Callable[[Row], str]


def iso(row: Row) -> str:
    return row.date or ""


def numeric(row: Row, separator: str) -> str:
    """Day first, as all six languages write it outside the United States."""
    day = dt.date.fromisoformat(row.date or "")
    return f"{day.day:02}{separator}{day.month:02}{separator}{day.year}"


def in_words(row: Row) -> str:
    """The date with its month's name, or in the Vietnamese order of words."""
    day = dt.date.fromisoformat(row.date or "")
    language = TEMPLATES[row.template].language
    if language == "vi":
        return f"ngày {day.day} tháng {day.month} năm {day.year}"
    month = _MONTH_NAMES[language].split()[day.month - 1]
    return {
        "es": f"{day.day} de {month} de {day.year}",
        "de": f"{day.day}. {month} {day.year}",
    }.get(language, f"{day.day} {month} {day.year}")


def money(amount: str | None, *, thousands: str, decimal: str, digits: int = 2) -> str:
    """The amount with separators, as its language writes it."""
    value = f"{Decimal(amount or '0'):,.{digits}f}"
    return value.translate({ord(","): thousands, ord("."): decimal})


def point(row: Row) -> str:
    return money(row.amount, thousands=",", decimal=".")


def comma(row: Row) -> str:
    return money(row.amount, thousands=".", decimal=",")


def spaced(row: Row) -> str:
    return money(row.amount, thousands=NBSP, decimal=",")


def dong(row: Row) -> str:
    return money(row.amount, thousands=".", decimal=",", digits=0)


TEMPLATES: dict[str, Template] = {
    # Clearly labelled fields; the category is what a bookkeeper wrote on the document.
    "en-invoice": Template("en", False, lambda r: (
        f"INVOICE {r.detail}\n{r.name}\nDate: {iso(r)}\nAmount: {point(r)} USD\nCategory: {r.category}"
    )),
    "en-receipt": Template("en", False, lambda r: (
        f"{r.name}\nReceipt\n{r.detail}\nDate: {in_words(r)}\nAmount: ${point(r)}\nCategory: {r.category}"
    )),
    "en-bill": Template("en", False, lambda r: (
        f"{r.name}\nAccount {r.detail}\nBill date: {numeric(r, '/')}\nAmount due: £{point(r)}\nCategory: {r.category}\n"
        "Please pay by direct debit. Thank you for being our customer."
    )),
    "es-factura": Template("es", False, lambda r: (
        f"FACTURA {r.detail}\n{r.name}\nFecha: {numeric(r, '/')}\nImporte: {comma(r)} €\nCategoría: {r.category}"
    )),
    "tr-fatura": Template("tr", False, lambda r: (
        f"FATURA {r.detail}\n{r.name}\nTarih: {numeric(r, '.')}\nTutar: {comma(r)} TL\nKategori: {r.category}"
    )),
    "vi-hoa-don": Template("vi", False, lambda r: (
        f"HÓA ĐƠN {r.detail}\n{r.name}\nNgày: {numeric(r, '/')}\nSố tiền: {dong(r)} đ\nLoại: {r.category}"
    )),
    "fr-facture": Template("fr", False, lambda r: (
        f"FACTURE {r.detail}\n{r.name}\nDate : {numeric(r, '/')}\nMontant : {spaced(r)} €\nCatégorie : {r.category}"
    )),
    "de-rechnung": Template("de", False, lambda r: (
        f"RECHNUNG {r.detail}\n{r.name}\nDatum: {numeric(r, '.')}\nBetrag: {comma(r)} EUR\nKategorie: {r.category}"
    )),
    # Receipts and tickets without a category: it follows from what was bought.
    "en-ticket": Template("en", False, lambda r: (
        f"RAIL TICKET\n{r.name}\nTravel date: {in_words(r)}\n{r.detail}\nFare: {point(r)} GBP"
    )),
    "es-ticket": Template("es", False, lambda r: (
        f"{r.name}\nMesa 4, {in_words(r)}\n{r.detail}\nTOTAL {comma(r)} EUR\n¡Gracias por su visita!"
    )),
    "vi-bien-lai": Template("vi", False, lambda r: (
        f"BIÊN LAI\n{r.name}\n{in_words(r)}\n{r.detail}\nThành tiền: {dong(r)} đ"
    )),
    "fr-ticket": Template("fr", False, lambda r: (
        f"{r.name}\nLe {in_words(r)}\n{r.detail}\nTotal TTC : {spaced(r)} €\nMerci et à bientôt"
    )),
    "de-bon": Template("de", False, lambda r: (
        f"{r.name}\n{numeric(r, '.')}  09:14\n{r.detail}\nSUMME EUR {comma(r)}\nVielen Dank"
    )),
    # Prose, several dates, missing values.
    "en-letter": Template("en", True, lambda r: (
        f"Dear guest, thank you for staying at {r.name}. On {in_words(r)} we charged ${point(r)} to your card for "
        f"{r.detail}. Your booking was made on 2 January 2026 and your deposit of $50.00 has been returned in full. "
        "We hope to welcome you again soon. The front desk is open day and night if anything is not clear to you."
    )),
    "de-auszug": Template("de", True, lambda r: (
        f"{r.name}, Kontoauszug. Erstellt am 31.12.2025 um 08:00 Uhr. "
        f"Abbuchung am {in_words(r)} für {r.detail}: {comma(r)} EUR. "
        "Alter Saldo 2.310,00 EUR."
    )),
    "fr-lettre": Template("fr", True, lambda r: (
        f"Madame, Monsieur, le {in_words(r)} vous avez réglé {spaced(r)} € à {r.name} pour {r.detail}. "
        "Votre prochain rendez-vous est le 15 janvier 2027."
    )),
    "vi-thu": Template("vi", True, lambda r: (
        f"{r.name} xin cảm ơn. Quý khách đã trả {dong(r)} đồng {in_words(r)} cho {r.detail}."
    )),
    "en-no-date": Template("en", True, lambda r: (
        f"{r.name}\n{r.detail}\nAmount: {point(r)} EUR\nCategory: {r.category}\nThe date was not printed."
    )),
    "es-sin-importe": Template("es", True, lambda r: (
        f"{r.name}\nFecha: {numeric(r, '/')}\nCategoría: {r.category}\n{r.detail}\nImporte: pendiente"
    )),
}  # fmt: skip

ROWS: tuple[Row, ...] = (
    # development: the prompt is tuned on these six alone
    Row("dev-01", "development", "en-invoice", "2026-01-14", "318.40", "office", "Paper & Pen Ltd", "A-1007"),
    Row("dev-02", "development", "en-receipt", "2026-02-09", "45.10", "food", "Mill Lane Bakery", "Bread and cakes"),
    Row("dev-03", "development", "en-bill", "2026-03-23", "96.70", "utilities", "River Power", "20-5518"),
    Row("dev-04", "development", "es-factura", "2026-05-27", "1250.00", "travel", "Viajes Sol, S.L.", "F-221"),
    Row("dev-05", "development", "vi-hoa-don", "2026-04-17", "1850000", "office", "Cửa hàng Minh Anh", "HD-305"),
    Row("dev-06", "development", "en-no-date", None, "27.90", "food", "Blue Door Cafe", "Two lunches"),
    # validation: 24, of which 18 clearly labelled
    Row("val-01", "validation", "en-invoice", "2026-02-03", "1284.50", "office", "Northgate Supplies", "B-2041", True),
    Row("val-02", "validation", "en-invoice", "2026-03-19", "742.00", "travel", "Harbour Travel Inc", "B-2057"),
    Row("val-03", "validation", "en-invoice", "2026-06-30", "59.95", "utilities", "City Water Board", "W-9913"),
    Row("val-04", "validation", "en-receipt", "2026-04-11", "23.75", "food", "Corner Kitchen", "Soup, bread, tea"),
    Row("val-05", "validation", "en-receipt", "2026-01-27", "118.20", "office", "Desk & Lamp", "One desk lamp"),
    Row("val-06", "validation", "en-receipt", "2026-07-08", "36.00", "travel", "Airport Shuttle", "Two adults"),
    Row("val-07", "validation", "en-bill", "2026-05-21", "87.34", "utilities", "Bright Energy", "55-0193", True),
    Row("val-08", "validation", "en-bill", "2026-08-13", "41.60", "utilities", "Fibre North", "70-4471"),
    Row("val-09", "validation", "es-factura", "2026-03-05", "432.15", "office", "Papelería Ríos", "F-318", True),
    Row("val-10", "validation", "es-factura", "2026-05-28", "2140.80", "travel", "Hotel Miramar", "F-340"),
    Row("val-11", "validation", "tr-fatura", "2026-02-18", "1675.25", "utilities", "Anadolu Elektrik", "T-510", True),
    Row("val-12", "validation", "en-bill", "2026-06-09", "54.12", "utilities", "Coast Water", "33-8046"),
    Row("val-13", "validation", "vi-hoa-don", "2026-01-22", "675000", "food", "Quán Cơm Hoa Sen", "HD-412", True),
    Row("val-14", "validation", "vi-hoa-don", "2026-07-15", "2450000", "travel", "Khách sạn Biển Xanh", "HD-431"),
    Row("val-15", "validation", "fr-facture", "2026-04-02", "1036.90", "office", "Bureau Lefèvre", "N-77", True),
    Row("val-16", "validation", "de-rechnung", "2026-05-12", "289.00", "travel", "Reisebüro Kranich", "2026-104"),
    Row("val-17", "validation", "en-invoice", "2026-09-01", "164.35", "food", "Garden Catering", "B-2071"),
    Row("val-18", "validation", "en-ticket", "2026-03-14", "48.60", "travel", "London to Leeds", "Coach B, seat 21"),
    Row("val-19", "validation", "es-ticket", "2026-06-17", "31.40", "food", "Bar La Plaza", "2 menús del día"),
    Row("val-20", "validation", "en-receipt", "2026-04-25", "212.50", "office", "Print Works", "Toner, two boxes"),
    Row("val-21", "validation", "vi-bien-lai", "2026-08-04", "185000", "travel", "Taxi Sài Gòn", "Sân bay - Quận 1"),
    Row("val-22", "validation", "en-letter", "2026-03-09", "212.40", "travel", "the Lakeside Hotel", "two nights"),
    Row("val-23", "validation", "de-auszug", "2026-01-05", "74.90", "utilities", "Sparbank Auental", "Strom"),
    Row("val-24", "validation", "es-sin-importe", "2026-02-26", None, "office", "Muebles Vega", "Dos sillas"),
    # test: looked at once, to confirm a choice
    Row("test-01", "test", "en-invoice", "2026-04-29", "905.10", "travel", "Compass Tours", "B-2090", True),
    Row("test-02", "test", "en-receipt", "2026-02-12", "14.85", "food", "Green Bowl", "One salad"),
    Row("test-03", "test", "en-bill", "2026-06-18", "132.08", "utilities", "Valley Gas", "61-2280"),
    Row("test-04", "test", "es-factura", "2026-08-07", "78.30", "food", "Casa Paco", "F-377"),
    Row("test-05", "test", "tr-fatura", "2026-05-04", "3120.00", "travel", "Kapadokya Otel", "T-588", True),
    Row("test-06", "test", "vi-hoa-don", "2026-03-26", "1320000", "utilities", "Điện lực Hòa Bình", "HD-450"),
    Row("test-07", "test", "fr-ticket", "2026-05-19", "27.60", "food", "Crêperie du Port", "2 galettes, 1 cidre"),
    Row("test-08", "test", "de-bon", "2026-07-02", "19.95", "office", "Schreibwaren Holm", "5 Hefte, 2 Stifte"),
    Row("test-09", "test", "fr-lettre", "2026-06-11", "1140.00", "travel", "Voyages Alizé", "un vol", True),
    Row("test-10", "test", "vi-thu", "2026-04-08", "540000", "utilities", "Công ty Nước sạch", "hóa đơn nước"),
)  # fmt: skip


def documents() -> list[dict[str, object]]:
    """Return the documents in the order of ROWS, as the documents file holds them."""
    made: list[dict[str, object]] = []
    for row in ROWS:
        template = TEMPLATES[row.template]
        text = template.text(row)
        made.append(
            {
                "id": row.document_id,
                "role": row.role,
                "text": text,
                "expected": {"date": row.date, "amount": row.amount, "category": row.category},
                "length_class": length_class(text),
                "is_hard": template.is_hard,
                "subsets": ["critical"] if row.is_critical else [],
                "cluster": row.template,
                "language": template.language,
            }
        )
    return made


def length_class(text: str) -> str:
    """Return short below 90 characters, long from 160 on, usual between."""
    return "short" if len(text) < 90 else "usual" if len(text) < 160 else "long"


def file_text() -> str:
    """Return the documents file: one JSON object per line, letters as they are."""
    return "".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(file_text(), encoding="utf-8", newline="\n")
