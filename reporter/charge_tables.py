"""Charges as DuckDB tables under the column names of FOCUS 1.3; columns of our own begin with `x_`.

FOCUS (FinOps Open Cost and Usage Specification) names what an invoice line and its allocated parts are called. A direct
charge carries a method too, `direct`, so that every allocated row answers who bears it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import msgspec

from collector.contract.charges import Charge
from collector.contract.money import Money, apportioned, decimal_text, rounded
from collector.contract.tariffs import NS_PER_HOUR

from .allocation import CONVENTION_VERSION, OWN_LINES, Allocated, Origin, Share, allocate, conventions
from .allocation_usage import Accounts

RATIO_DIGITS = 12
HOUR_DIGITS = 9
ORIGIN_COLUMNS = {
    "x_ChargeId": "varchar", "BilledCost": "decimal(28, 4)", "x_BilledMinorUnits": "bigint",
    "BillingCurrency": "varchar", "ChargeCategory": "varchar", "ChargeDescription": "varchar",
    "ChargePeriodStart": "timestamp", "ChargePeriodEnd": "timestamp", "InvoiceId": "varchar",
    "InvoiceIssuerName": "varchar", "ResourceId": "varchar", "x_InvoiceLine": "varchar", "x_InvoiceDate": "date",
    "x_Basis": "varchar",
}  # fmt: skip
SHARE_COLUMNS = {
    "AllocatedMethodId": "varchar", "AllocatedMethodDetails": "varchar", "AllocatedResourceId": "varchar",
    "AllocatedResourceName": "varchar", "x_BorneBy": "varchar",
}  # fmt: skip
COLUMNS = {
    "origin_charges": ORIGIN_COLUMNS,
    "allocated_charges": ORIGIN_COLUMNS | SHARE_COLUMNS,
    "allocated_charges_by_convention": {"x_Convention": "varchar", "x_Idle": "varchar"}
    | ORIGIN_COLUMNS
    | SHARE_COLUMNS,
}
"""Table -> column -> type. Only the first two sum to what was paid; the third holds it once per convention."""
GRAINS = {
    "origin_charges": "one row per charge, as paid",
    "allocated_charges": "one row per (charge, who bears a part of it), by the declared convention",
    "allocated_charges_by_convention": "one row per (convention, charge, who bears a part of it)",
}


def create_charge_tables(con: duckdb.DuckDBPyConnection, found: Accounts | None) -> None:
    """Create the three tables; empty where the campaign has no charge."""
    for table, columns in COLUMNS.items():
        listed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        con.execute(f"create or replace table {table} ({listed})")
    if found is None:
        return
    declared = found.campaign.allocation
    chosen = allocate(found.origins, found.pool, declared.convention, declared.idle)
    every = conventions(found.origins, found.pool, declared.idle)
    _insert(con, "origin_charges", [_origin(found, each, each.amount) for each in _ordered(found)])
    _insert(con, "allocated_charges", list(_shares(found, chosen)))
    _insert(
        con, "allocated_charges_by_convention",
        [[each.convention, each.idle, *row] for each in every for row in _shares(found, each)],
    )  # fmt: skip


def method_id(allocated: Allocated, share: Share) -> str:
    """Return a share's method: the convention with its version, and how it treats idle time where that matters."""
    if share.is_direct:
        return f"direct-v{CONVENTION_VERSION}"
    idle = f"-idle-{allocated.idle}" if allocated.convention == "proportional_usage" else ""
    return f"{allocated.convention}-v{CONVENTION_VERSION}{idle}"


def _ordered(found: Accounts) -> list[Origin]:
    return sorted(found.origins, key=lambda each: each.charge.id)


def _origin(found: Accounts, each: Origin, amount: Money) -> list[Any]:
    charge = each.charge
    start, end = _period(found, charge)
    return [
        charge.id, Decimal(amount.decimal()), amount.minor_units, amount.currency, charge.category.capitalize(),
        charge.description, start, end, charge.invoice, charge.issuer, charge.rental, charge.line, charge.on,
        charge.basis,
    ]  # fmt: skip


def _period(found: Accounts, charge: Charge) -> tuple[dt.datetime, dt.datetime]:
    """Return the time that a charge is for, in UTC, its end exclusive: its rental's, else the invoice's day."""
    rental = next((rental for rental in found.campaign.rentals if rental.id == charge.rental), None)
    if rental is not None:
        start, end = (moment.astimezone(dt.UTC).replace(tzinfo=None) for moment in (rental.start, rental.end))
        return start, end
    day = dt.datetime.combine(charge.on, dt.time())
    return day, day + dt.timedelta(days=1)


def _shares(found: Accounts, allocated: Allocated) -> Iterator[list[Any]]:
    labels = {target.key: target.label for target in found.pool.targets}
    by_charge: dict[str, list[Share]] = {}
    for share in allocated.shares:
        by_charge.setdefault(share.charge_id, []).append(share)
    for each in _ordered(found):
        shares = by_charge[each.charge.id]
        ratios = apportioned(10**RATIO_DIGITS, {share.target: share.ratio for share in shares})
        for share in shares:
            kind, _, name = share.target.partition("~")
            yield [
                *_origin(found, each, share.amount), method_id(allocated, share),
                details(ratios[share.target], share), name or None, labels.get(share.target),
                kind if share.target not in OWN_LINES else share.target,
            ]  # fmt: skip


def details(ratio_units: int, share: Share) -> str:
    """Return AllocatedMethodDetails: the ratio as a decimal that sums to 1 over a charge, and exact beside it."""
    element: dict[str, Any] = {"AllocatedRatio": msgspec.Raw(_decimal(ratio_units, RATIO_DIGITS).encode())}
    if share.quantity_ns is not None:
        hours = rounded(Fraction(share.quantity_ns * 10**HOUR_DIGITS, NS_PER_HOUR))
        element |= {"UsageUnit": "Hours", "UsageQuantity": msgspec.Raw(_decimal(hours, HOUR_DIGITS).encode())}
    element["x_ExactRatio"] = str(share.ratio)
    return msgspec.json.encode({"Elements": [element]}).decode()


def _decimal(units: int, digits: int) -> str:
    return decimal_text(units, digits).rstrip("0").rstrip(".")


def _insert(con: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        con.executemany(f"insert into {table} values ({', '.join('?' * len(COLUMNS[table]))})", rows)
