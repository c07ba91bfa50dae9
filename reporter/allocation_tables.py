"""The tables of what was paid: origin charges, shares by the declared convention, all conventions, reconciliation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from collector.contract.charges import Convention
from collector.contract.money import Money

from .allocation import (
    CONVENTION_VERSION,
    IDLE,
    OWN_LINES,
    UNALLOCATED,
    Allocated,
    Share,
    allocate,
    conventions,
    filtered,
    order,
)
from .allocation_usage import Accounts
from .book import Book, ref, row
from .configurations import accepted_id
from .dossier import Row, Sentence
from .wording import sentence

USAGE_CONVENTIONS: tuple[Convention, ...] = ("proportional_usage", "direct")
"""Conventions whose shares depend on measured time."""
USED = "usage/all/device_hours"
"""The figure of the device time of all passes."""


def put_charges(book: Book, found: Accounts) -> None:
    """Add the tables of charges and of their shares, and the statements about both."""
    declared = found.campaign.allocation
    allocated = allocate(found.origins, found.pool, declared.convention, declared.idle)
    every = conventions(found.origins, found.pool, declared.idle)
    book.put("origin_charges", "one row per charge, as paid", list(_charges(book, found)))
    _totals(book, found)
    book.put("allocated_charges", "one row per (charge, who bears a part of it)", list(_leaves(book, found, allocated)))
    book.put("allocation", "one row per (who bears cost, currency)", list(_bearers(book, found, allocated)))
    checks = [entry for each in every for entry in _reconciled(book, found, each)]
    book.put("reconciliation", "one row per (convention, currency)", checks)
    book.put("conventions", "one row per (convention, who bears cost or together, currency)", _each(book, found, every))
    book.put("convention_orders", "one row per convention", list(_orders(found, allocated, every)))
    book.put("allocation_statements", "one row per subject", list(_statements(book, found, allocated)))


def charge_figure(charge_id: str) -> str:
    """Return the id of the figure of a charge as it was paid."""
    return f"origin_charges/{charge_id}/amount"


def usage_figure(rental: str, target: str) -> str:
    """Return the id of the figure of the time that one target took the devices of one rental."""
    return f"usage/{rental}~{target}/device_hours"


def method(allocated: Allocated) -> str:
    """Return a convention's id, with the treatment of idle time where it matters."""
    if allocated.convention != "proportional_usage":
        return allocated.convention
    return f"{allocated.convention}~{allocated.idle}"


def currencies(found: Accounts) -> list[str]:
    """Return the currencies in which something was paid."""
    return sorted({each.amount.currency for each in found.origins})


def paid_total(found: Accounts, currency: str) -> Money:
    """Return the sum of the charges in one currency."""
    total = Money(0, currency)
    for each in found.origins:
        total = total + each.amount if each.amount.currency == currency else total
    return total


def _charges(book: Book, found: Accounts) -> Iterator[Row]:
    names = {standing.candidate.id: standing.label for standing in found.standings.values() if standing.candidate}
    for each in found.origins:
        charge = each.charge
        amount = book.given(
            charge_figure(charge.id), each.amount.minor_units, "minor_units", charge.basis,
            currency=each.amount.currency,
        )  # fmt: skip
        labels = {
            "charge": charge.id, "invoice": charge.invoice, "issuer": charge.issuer, "line": charge.line,
            "on": charge.on.isoformat(), "category": charge.category, "description": charge.description,
            "rental": charge.rental or "", "candidate": names.get(charge.candidate or "", ""), "basis": charge.basis,
        }  # fmt: skip
        yield row(charge.id, labels, {"amount": amount})


def _totals(book: Book, found: Accounts) -> None:
    for currency in currencies(found):
        parts = [charge_figure(each.charge.id) for each in found.origins if each.amount.currency == currency]
        book.derived(
            parts, figure_id=_total_figure(currency), value=paid_total(found, currency).minor_units,
            unit="minor_units", currency=currency, formula="sum of the charges as paid", n=len(parts),
        )  # fmt: skip
        book.derived(
            parts, figure_id=f"origin_charges/{currency}/charge_count", value=len(parts), unit="count",
            formula="charges in this currency",
        )  # fmt: skip


def _total_figure(currency: str) -> str:
    return f"origin_charges/{currency}/total"


def _inputs(book: Book, found: Accounts, allocated: Allocated, paid: Sequence[str]) -> list[str]:
    """Return what shares are made from: figures of what was paid, and of what the convention measures it by."""
    inputs = list(paid)
    if allocated.convention in USAGE_CONVENTIONS and USED in book.figures:
        inputs.append(USED)
    if allocated.convention == "accepted_output":
        keys = [accepted_id(s.configuration.key) for s in found.standings.values() if s.configuration is not None]
        inputs += [name for name in keys if name in book.figures]
    return inputs


def _leaves(book: Book, found: Accounts, allocated: Allocated) -> Iterator[Row]:
    origins = {each.charge.id: each for each in found.origins}
    for share in allocated.shares:
        whole = origins[share.charge_id].amount
        key = f"{share.charge_id}~{share.target}"
        amount = book.derived(
            _inputs(book, found, allocated, [charge_figure(share.charge_id)]),
            figure_id=f"allocated_charges/{key}/amount",
            value=share.amount.minor_units, unit="minor_units", currency=share.amount.currency,
            formula=f"{whole.decimal()} {whole.currency} x {share.ratio}, largest remainder",
        )  # fmt: skip
        labels = {
            "charge": share.charge_id, "target": share.target, "label": _label(found, share.target),
            "method": "direct" if share.is_direct else method(allocated),
        }  # fmt: skip
        yield row(key, labels, {"amount": amount})


def _label(found: Accounts, target: str) -> str:
    """Return a target's label; `idle` and `unallocated` are words."""
    return next((each.label for each in found.pool.targets if each.key == target), target)


def _lines(found: Accounts, *every: Allocated) -> list[str]:
    """Return every target, and the lines of their own that hold something under one of the conventions."""
    used = {share.target for allocated in every for share in allocated.shares}
    return [*(target.key for target in found.pool.targets), *(line for line in OWN_LINES if line in used)]


def _bearers(book: Book, found: Accounts, allocated: Allocated) -> Iterator[Row]:
    """Yield what each bears under the declared convention: directly, as its share, and both."""
    totals = allocated.totals()
    for currency in currencies(found):
        whole = paid_total(found, currency).minor_units
        for target in _lines(found, allocated):
            own = filtered(allocated, _borne_by(target, currency)).shares
            key = f"{target}~{currency}"
            charges = [charge_figure(name) for name in sorted({share.charge_id for share in own})]
            inputs = _inputs(book, found, allocated, charges or [_total_figure(currency)])
            amount = totals.get((currency, target), Money(0, currency)).minor_units
            parts = {
                "direct": sum(s.amount.minor_units for s in own if s.is_direct),
                "shared": sum(s.amount.minor_units for s in own if not s.is_direct),
                "amount": amount,
            }
            cells: dict[str, str | None] = {
                column: book.derived(
                    inputs, figure_id=f"allocation/{key}/{column}", value=value, unit="minor_units",
                    currency=currency, formula=_FORMULAS[column], n=len(own) if column == "amount" else None,
                )
                for column, value in parts.items()
            }  # fmt: skip
            cells["share_percent"] = book.derived(
                inputs, figure_id=f"allocation/{key}/share_percent",
                value=float(Fraction(100 * amount, whole)) if whole else None, unit="percent",
                formula="amount / total paid x 100", missing_reason="not_defined",
            )  # fmt: skip
            hours = f"usage/{target}/device_hours"
            cells["device_hours"] = hours if hours in book.figures else None
            kind = "line" if target in OWN_LINES else target.partition("~")[0]
            yield row(key, {"target": target, "label": _label(found, target), "currency": currency, "of": kind}, cells)


def _borne_by(target: str, currency: str) -> Callable[[Share], bool]:
    return lambda share: (share.target, share.amount.currency) == (target, currency)


_FORMULAS = {
    "direct": "sum of the charges that name it alone",
    "shared": "sum of its shares of shared charges",
    "amount": "sum of its allocated charges",
}


def _each(book: Book, found: Accounts, every: Sequence[Allocated]) -> list[Row]:
    rows = []
    for allocated in every:
        totals, name = allocated.totals(), method(allocated)
        for currency in currencies(found):
            inputs = _inputs(book, found, allocated, [_total_figure(currency)])
            amounts = {
                target: book.derived(
                    inputs, figure_id=f"conventions/{name}~{target}~{currency}/amount", unit="minor_units",
                    currency=currency, value=totals.get((currency, target), Money(0, currency)).minor_units,
                    formula=f"sum of its shares, {name}",
                )
                for target in _lines(found, *every)
            }  # fmt: skip
            amounts["together"] = book.derived(
                inputs, figure_id=f"conventions/{name}~together~{currency}/amount", unit="minor_units",
                currency=currency, formula=f"sum of what each bears, {name}",
                value=sum(amount.minor_units for (code, _), amount in totals.items() if code == currency),
            )  # fmt: skip
            labels = {
                "method": name, "convention": allocated.convention, "idle": allocated.idle, "currency": currency
            }  # fmt: skip
            rows += [
                row(
                    f"{name}~{target}~{currency}", {**labels, "target": target, "label": _label(found, target)},
                    {"amount": amount},
                )
                for target, amount in amounts.items()
            ]  # fmt: skip
    return rows


def _orders(found: Accounts, declared: Allocated, every: Sequence[Allocated]) -> Iterator[Row]:
    """Yield who bears more than whom under each convention, and whether that differs from the declared one."""
    wanted = order(declared, found.pool)
    for each in every:
        levels = order(each, found.pool)
        is_declared = method(each) == method(declared)
        is_defined = not each.undefined
        changes = "" if is_declared or not is_defined else "yes" if levels != wanted else "no"
        text = " > ".join(" = ".join(_label(found, key) for key in level) for level in levels)
        labels = {
            "method": method(each), "convention": each.convention, "idle": each.idle,
            "is_declared": "yes" if is_declared else "no", "changes": changes, "order": text if is_defined else "",
        }  # fmt: skip
        yield row(method(each), labels, {}, *undefined(each))


def undefined(allocated: Allocated) -> list[Sentence]:
    """Return why the convention could not share some charges: they stay unallocated, no other convention steps in."""
    reasons: dict[str, list[str]] = {}
    for charge, reason in allocated.undefined.items():
        reasons.setdefault(reason, []).append(charge)
    return [
        sentence(f"allocation_{reason}", convention=allocated.convention, charges=", ".join(charges))
        for reason, charges in sorted(reasons.items())
    ]


def _reconciled(book: Book, found: Accounts, allocated: Allocated) -> Iterator[Row]:
    """Yield what the invoices say, what was allocated and the difference, which is 0 in every currency."""
    for currency in currencies(found):
        parts = [amount for (code, _), amount in allocated.totals().items() if code == currency]
        total = sum(amount.minor_units for amount in parts)
        key = f"{method(allocated)}~{currency}"
        given = _total_figure(currency)
        summed = book.derived(
            [given], figure_id=f"reconciliation/{key}/allocated", value=total, unit="minor_units", currency=currency,
            formula="sum of what every one bears",
        )  # fmt: skip
        difference = book.derived(
            [given, summed], figure_id=f"reconciliation/{key}/difference",
            value=total - paid_total(found, currency).minor_units, unit="minor_units", currency=currency,
            formula="sum of allocated charges - sum of the invoices",
        )  # fmt: skip
        labels = {"method": method(allocated), "convention": allocated.convention, "idle": allocated.idle}
        cells = {"invoices": given, "allocated": summed, "difference": difference}
        yield row(key, {**labels, "currency": currency}, cells)


def _statements(book: Book, found: Accounts, allocated: Allocated) -> Iterator[Row]:
    paid = [
        sentence(
            "allocation_paid", total=ref(_total_figure(currency)),
            charges=ref(f"origin_charges/{currency}/charge_count"),
        )
        for currency in currencies(found)
    ]  # fmt: skip
    rates = [
        sentence(
            "allocation_rate", currency=rate.currency, rate=rate.rate, home=found.home, source=rate.source,
            day="~" + rate.on.isoformat(),
        )
        for rate in found.campaign.exchange_rates
        if rate.currency in currencies(found) and rate.currency != found.home
    ]  # fmt: skip
    yield row("paid", {}, {}, *paid, *rates)
    declared = found.campaign.allocation
    said = [sentence(f"convention_{declared.convention}", id=declared.convention, version=str(CONVENTION_VERSION))]
    if declared.convention == "proportional_usage":
        said.append(sentence(f"idle_{declared.idle}"))
    if declared.reason is not None:
        said.append(sentence("allocation_reason", reason=declared.reason))
    else:
        said.append(sentence("allocation_no_reason"))
    yield row("convention", {}, {}, *said)
    own = [sentence(f"allocation_line_{line}") for line in (IDLE, UNALLOCATED) if line in _lines(found, allocated)]
    yield row("lines", {}, {}, *own, *undefined(allocated))
