"""The tables `price_lines` and `quote_lines`: each bill line by line, each written quote multiplied and added again."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from collector.contract.money import decimal_text, minor_digits
from collector.contract.offers import Offer
from collector.contract.tariffs import Line

from .book import Book, ref, row
from .dossier import Row
from .offer_figures import offer_inputs
from .offered import Offered
from .packages import Package, cheapest
from .quotes import QuoteCheck, quote_checks
from .selection import Standing
from .wording import sentence


def quote_key(offer: Offer, check: QuoteCheck) -> str:
    """Return the row key of a line of a quote, or of the sum of one package."""
    return f"{offer.id}~{check.days}d~{'sum' if check.place is None else check.place}"


def quote_rows(book: Book, offer: Offer) -> Iterator[Row]:
    for check in quote_checks(offer):
        key, cells = quote_key(offer, check), dict[str, str | None]()
        inputs = [book.given(f"quote_lines/{key}/printed", check.printed.minor_units, "minor_units", offer.basis,
                             currency=offer.currency)]  # fmt: skip
        cells["printed"] = inputs[0]
        formula = "sum of the printed amounts"
        if check.place is not None:
            line = offer.quote_lines[check.place]
            formula = "quantity x unit price, rounded once"
            for column, text in (("quantity", line.quantity), ("unit_price", line.unit_price)):
                cells[column] = book.given(f"quote_lines/{key}/{column}", text, "text", offer.basis)
            inputs = [name for column in ("quantity", "unit_price") if (name := cells[column]) is not None]
        for column, amount, made in (
            ("computed", check.computed, formula), ("difference", check.difference, "printed - computed"),
        ):  # fmt: skip
            cells[column] = book.derived(
                inputs, figure_id=f"quote_lines/{key}/{column}", value=amount.minor_units, unit="minor_units",
                currency=offer.currency, formula=made,
            )  # fmt: skip
        labels = {
            "offer": offer.id,
            "days": str(check.days),
            "text": check.text,
            "kind": "sum" if not check.text else "",
        }
        yield row(key, labels, cells)


def line_rows(book: Book, standing: Standing, offered: Offered) -> Iterator[Row]:
    """Return every line of every bill; those of the offer's cheapest tariff are the ones shown."""
    best = cheapest(offered.packages)
    for package in offered.packages:
        if len(package.lines) == 1 and not package.tariff.idle_cards and package.tariff.package is not None:
            continue
        for place, line in enumerate(package.lines):
            yield _line(book, standing, package, place, line, is_shown=package is best)
        if package.tariff.idle_cards:
            yield _idle(book, standing, package, is_shown=package is best)


def _line_labels(standing: Standing, package: Package, *, is_shown: bool) -> dict[str, str]:
    return {
        "candidate": standing.label, "offer": package.offer.id, "tariff": package.tariff.term,
        "is_shown": "yes" if is_shown else "no",
    }  # fmt: skip


def _line(book: Book, standing: Standing, package: Package, place: int, line: Line, *, is_shown: bool) -> Row:
    offer, tariff = package.offer, package.tariff
    key = f"{standing.key}~{offer.id}~{tariff.term}~{place}"
    quantity, unit_price, kind = line.quantity, line.unit_price, line.kind.__str__()
    if offer.prices_per == "card" and line.kind in ("packages", "hours"):
        quantity, unit_price, kind = quantity * tariff.rented_cards, unit_price / tariff.rented_cards, f"card_{kind}"
    inputs = [f"calendar/{standing.key}/needed_hours", offer_inputs(offer, tariff)[place]]
    names = {column: f"price_lines/{key}/{column}" for column in ("quantity", "unit_price", "amount")}
    book.derived(
        inputs, figure_id=names["quantity"], value=_number(quantity), unit="count", formula=f"per {kind}"
    )  # fmt: skip
    book.given(names["unit_price"], _decimal(unit_price, minor_digits(offer.currency)), "text", offer.basis)
    book.derived(
        inputs, figure_id=names["amount"], value=line.amount.minor_units, unit="minor_units", currency=offer.currency,
        formula="quantity x unit price, rounded once",
    )  # fmt: skip
    return row(key, _line_labels(standing, package, is_shown=is_shown) | {"kind": kind, "name": line.name}, {**names})


def _idle(book: Book, standing: Standing, package: Package, *, is_shown: bool) -> Row:
    """Return the line that says how many cards are paid for and idle; it has no amount of its own."""
    key = f"{standing.key}~{package.offer.id}~{package.tariff.term}~idle"
    tariff = package.tariff
    idle = book.derived(
        [f"calendar/{standing.key}/needed_hours", offer_inputs(package.offer, tariff)[0]],
        figure_id=f"price_lines/{key}/quantity", value=tariff.idle_cards, unit="count",
        formula=f"{tariff.rented_cards} cards rented - {tariff.used_cards} used",
    )  # fmt: skip
    labels = _line_labels(standing, package, is_shown=is_shown) | {"kind": "idle_cards", "name": ""}
    return row(key, labels, {"quantity": idle}, sentence("line_idle_cards", cards=ref(idle)))


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _decimal(value: Fraction, least_digits: int) -> str:
    """Return a fraction that came from a decimal as that decimal, with the decimals of the currency at least."""
    for digits in range(least_digits, least_digits + 10):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            return decimal_text(scaled.numerator, digits)
    return str(float(value))
