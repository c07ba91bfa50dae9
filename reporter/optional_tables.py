"""Tables `total_view` and `purchase`: the package beside optional lines, each with its basis. Nothing here ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from collector.contract.campaign import Campaign
from collector.contract.money import Money, minor_digits
from collector.contract.offers import EnergyPrice, Purchase, StaffHours

from .book import Book, ref, row
from .break_even_tables import cheapest_rent
from .dossier import Basis, Row, Sentence
from .exchange import campaign_currency, converted
from .offer_figures import exchange_inputs
from .optional_costs import MONTH_H, energy_cost, ownership, staff_cost
from .selection import Standing
from .wording import sentence


class Entry(NamedTuple):
    """One line of the total: its amount, or why it has none, and the figures it is made of."""

    kind: str
    name: str
    amount: Money | None
    missing_reason: str | None
    inputs: list[str]
    formula: str
    said: Sentence


def put_optional_costs(book: Book, standings: Sequence[Standing], campaign: Campaign) -> None:
    """Add the tables for each candidate that has a package which may win, where the campaign asks for such lines."""
    priced = [s for s in standings if s.best is not None and s.need is not None and s.has_qualified]
    if campaign.energy is not None or campaign.staff:
        rows = [entry for standing in priced for entry in _total(book, standing, campaign)]
        if rows:
            book.put("total_view", "one row per (candidate, line), its total last", rows)
    if campaign.purchase is not None and priced:
        _given_purchase(book, campaign.purchase)
        rows = [_owned(book, standing, campaign.purchase, campaign) for standing in priced]
        book.put("purchase", "one row per candidate", rows)


def _total(book: Book, standing: Standing, campaign: Campaign) -> Iterator[Row]:
    entries = [_package(standing)]
    if campaign.energy is not None:
        entries.append(_energy(book, standing, campaign.energy))
    entries += [_staff(book, place, staff) for place, staff in enumerate(campaign.staff)]
    parts: dict[str, Money] = {}
    for place, entry in enumerate(entries):
        key = f"{standing.key}~{place}"
        made, in_one = _line(book, standing, key, entry, campaign)
        if in_one is not None:
            parts[f"total_view/{key}/compared"] = in_one
        yield made
    total = Money(0, campaign_currency(campaign) or "")
    for amount in parts.values():
        total = total + amount
    name = book.derived(
        list(parts), figure_id=f"total_view/{standing.key}~total/compared", value=total.minor_units,
        unit="minor_units", currency=total.currency, formula="sum of the lines that have an amount",
    )  # fmt: skip
    left = len(entries) - len(parts)
    labels = {"candidate": standing.label, "line": "total", "name": ""}
    said = [sentence("total_without", lines=str(left))] if left else []
    yield row(f"{standing.key}~total", labels, {"compared": name}, *said)


def _line(
    book: Book, standing: Standing, key: str, entry: Entry, campaign: Campaign
) -> tuple[Row, Money | None]:  # fmt: skip
    """Return a line's row, and its amount in the campaign's currency; null where there is none."""
    labels = {"candidate": standing.label, "line": entry.kind, "name": entry.name}
    wanted = campaign_currency(campaign)
    in_one = converted(entry.amount, campaign) if entry.amount is not None else None
    reason = entry.missing_reason if entry.amount is None else "no_rate"
    cells: dict[str, str | None] = {}
    if entry.amount is not None and entry.amount.currency != wanted:
        cells["amount"] = book.derived(
            entry.inputs, figure_id=f"total_view/{key}/amount", value=entry.amount.minor_units, unit="minor_units",
            currency=entry.amount.currency, formula=entry.formula,
        )  # fmt: skip
    inputs, formula = entry.inputs, entry.formula
    if "amount" in cells and in_one is not None and entry.amount is not None:
        inputs, formula = (
            [*inputs, *exchange_inputs(entry.amount.currency)],
            f"{formula}; x exchange rate, rounded once",
        )
    cells["compared"] = book.derived(
        inputs, figure_id=f"total_view/{key}/compared", value=in_one.minor_units if in_one else None,
        unit="minor_units", currency=wanted, formula=formula, missing_reason=None if in_one else reason,
    )  # fmt: skip
    return row(key, labels, cells, entry.said), in_one


def _package(standing: Standing) -> Entry:
    best = standing.best
    assert best is not None
    net = f"packages/{standing.key}~{best.offer.id}~{best.tariff.term}/price_net"
    said = sentence("total_package", provider=best.offer.provider)
    return Entry("rental", best.offer.id, best.price.net, None, [net], "price_net of the cheapest package", said)


def _energy(book: Book, standing: Standing, price: EnergyPrice) -> Entry:
    """Energy of processing alone, from joules that were measured; without any there is no amount."""
    given = book.given("campaign/energy/price", f"{price.price_per_kwh} {price.currency}", "text", price.basis)
    measured = [
        (value, entry.cells["energy_mj"])
        for entry in book.rows_of("energy", standing.key)
        if entry.labels.get("purpose") != "reference_repeat" and (value := book.whole(entry, "energy_mj")) is not None
    ]
    need = standing.need
    assert need is not None
    if not measured:
        said = sentence("energy_not_measured")
        return Entry("energy", "", None, "no_energy_measured", [given], "measured joules x price per kWh", said)
    middle = sorted(measured)[(len(measured) - 1) // 2][0]
    wanted = Fraction(middle, need.measured_documents) * need.wanted_documents
    said = sentence("energy_measured", source=price.source, price=ref(given))
    formula = "median joules of a pass / documents x wanted documents, assumes linear, x price per kWh / 3,600,000 J"
    return Entry("energy", "", energy_cost(price, wanted), None, [given, *(n for _, n in measured)], formula, said)


def _staff(book: Book, place: int, staff: StaffHours) -> Entry:
    basis: Basis = staff.basis
    given = [
        book.given(f"campaign/staff~{place}/hours", staff.hours, "text", basis),
        book.given(f"campaign/staff~{place}/rate", f"{staff.rate_per_hour} {staff.currency}", "text", basis),
    ]
    parameters = {"hours": ref(given[0]), "rate": ref(given[1])}
    said = sentence("staff_hours_by", **parameters, by=staff.by) if staff.by else sentence("staff_hours", **parameters)
    return Entry("staff", staff.role, staff_cost(staff), None, given, "hours x rate per hour, rounded once", said)


def _given_purchase(book: Book, purchase: Purchase) -> None:
    for name in ("price", "residual", "monthly_cost"):
        written = f"{getattr(purchase, name)} {purchase.currency}"
        book.given(f"campaign/purchase/{name}", written, "text", purchase.basis)


def _owned(book: Book, standing: Standing, purchase: Purchase, campaign: Campaign) -> Row:
    """Return what owning costs for one candidate's calendar, beside its cheapest rental."""
    configuration, best, need = standing.configuration, standing.best, standing.need
    assert configuration is not None
    assert best is not None
    assert need is not None
    labels = {"candidate": standing.label, "device": purchase.device}
    machine = configuration.machine
    if (purchase.device, purchase.device_count >= machine.used_cards) != (machine.device, True):
        said = sentence("purchase_other_machine", bought=f"{purchase.device_count} x {purchase.device}")
        return row(standing.key, labels, {}, said)
    owned = ownership(purchase, need.total_ns, cheapest_rent(standing, campaign), campaign)
    inputs = [f"campaign/purchase/{name}" for name in ("price", "residual", "monthly_cost")]
    needed = f"calendar/{standing.key}/needed_hours"
    per_month = "((price - residual) / life + monthly cost)"

    def put(column: str, minor_units: int, formula: str, *more: str) -> str:
        return book.derived(
            [*inputs, *more], figure_id=f"purchase/{standing.key}/{column}", value=minor_units, unit="minor_units",
            currency=purchase.currency, formula=formula,
        )  # fmt: skip

    cells: dict[str, str | None] = {
        "monthly": book.derived(
            inputs, figure_id=f"purchase/{standing.key}/monthly", currency=purchase.currency, unit="amount",
            value=float(owned.monthly / 10 ** minor_digits(purchase.currency)),
            formula=f"(price - residual) / {purchase.life_months} months + monthly cost",
        ),
        "for_hours": put(
            "for_hours", owned.for_hours.minor_units, f"{per_month} x needed hours / {MONTH_H} h, rounded once", needed
        ),
        "for_months": put(
            "for_months", owned.for_months.minor_units, f"{per_month} x {owned.months} whole months", needed
        ),
        "needed_hours": needed,
        "rental": f"packages/{standing.key}~{best.offer.id}~{best.tariff.term}/price_net",
    }  # fmt: skip
    cells["break_even_months"] = book.derived(
        [*inputs, cells["rental"] or ""], figure_id=f"purchase/{standing.key}/break_even_months", unit="count",
        value=owned.break_even_months, missing_reason=None if owned.break_even_months else "not_within_life",
        formula=f"first month of {MONTH_H} h up to which price - residual + monthly costs <= the cheapest rental of "
        "the same time",
    )  # fmt: skip
    return row(standing.key, labels, cells)
