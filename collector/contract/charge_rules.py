"""What would make the cost of a campaign wrong: faults of its rentals, charges and allocation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from .campaign import Campaign
from .charges import Charge, Rental
from .money import CURRENCIES, Money, MoneyError, exact

LineOf = Callable[[str], int | None]
_RATIO = re.compile(r"([0-9]{1,18})/([0-9]{1,18})", re.ASCII)


class Fault(NamedTuple):
    """One fault at a path such as `charge[0].amount`."""

    where: str
    rule: str
    message: str
    next_step: str


def weight(text: str) -> Fraction:
    """Return a share written as an exact decimal or as a fraction such as "1/3".

    Raises MoneyError for anything else, for a negative one and for a denominator of zero.
    """
    if match := _RATIO.fullmatch(text):
        if int(match[2]) == 0:
            raise MoneyError(f"{text} divides by zero", next_step='write a share such as "1/3" or "0.25"')
        return Fraction(int(match[1]), int(match[2]))
    value = exact(text)
    if value < 0:
        raise MoneyError(f"{text} is no share", next_step='write a share such as "1/3" or "0.25"')
    return value


def home_currency(campaign: Campaign) -> str | None:
    """Return the currency everything is compared in: the campaign's, else that of the first offer or charge."""
    found = [campaign.currency, *(offer.currency for offer in campaign.offers)]
    return next((code for code in [*found, *(charge.currency for charge in campaign.charges)] if code), None)


def charge_faults(campaign: Campaign, line_of: LineOf) -> Iterator[Fault]:
    """Yield each fault; `line_of` gives the line of a path, so that a message can name a second place."""
    yield from _rentals(campaign, line_of)
    yield from _charges(campaign, line_of)
    yield from _allocation(campaign)


def _rentals(campaign: Campaign, line_of: LineOf) -> Iterator[Fault]:
    offers = [offer.id for offer in campaign.offers]
    first: dict[str, int] = {}
    runs: dict[str, tuple[int, str]] = {}
    for index, rental in enumerate(campaign.rentals):
        where = f"rental[{index}]"
        if rental.id in first:
            yield _twice(f"{where}.id", "rental", rental.id, line_of(f"rental[{first[rental.id]}].id"))
        first.setdefault(rental.id, index)
        if rental.offer not in offers:
            yield Fault(
                f"{where}.offer", "unknown-offer",
                f'rental "{rental.id}" names the offer "{rental.offer}", which is not in this file',
                f"add an [[offer]] with this id, or name one of: {', '.join(sorted(offers)) or 'none'}",
            )  # fmt: skip
        yield from _period(where, rental)
        for place, run in enumerate(rental.runs):
            known = runs.setdefault(run, (index, rental.id))
            if known != (index, rental.id) or run in rental.runs[:place]:
                yield Fault(
                    f"{where}.runs[{place}]", "run-of-two-rentals",
                    f'run {run} is claimed by rental "{known[1]}" (line {line_of(f"rental[{known[0]}]")}) and here',
                    "name each run in the one rental whose machine it ran on: its time is paid once",
                )  # fmt: skip


def _period(where: str, rental: Rental) -> Iterator[Fault]:
    naive = [name for name, moment in (("from", rental.start), ("to", rental.end)) if moment.utcoffset() is None]
    for name in naive:
        yield Fault(
            f"{where}.{name}", "no-time-zone",
            f'rental "{rental.id}": {name} has no time zone, so it names no instant',
            "write the offset, e.g. 2026-01-02T09:00:00Z or +07:00",
        )  # fmt: skip
    if not naive and rental.end <= rental.start:
        yield Fault(
            f"{where}.to", "dates", f'rental "{rental.id}" ends {rental.end}, not after its start {rental.start}',
            "correct one of the two",
        )  # fmt: skip


def _charges(campaign: Campaign, line_of: LineOf) -> Iterator[Fault]:
    ids: dict[str, int] = {}
    lines: dict[tuple[str, str, str], int] = {}
    for index, charge in enumerate(campaign.charges):
        where = f"charge[{index}]"
        if charge.id in ids:
            yield _twice(f"{where}.id", "charge", charge.id, line_of(f"charge[{ids[charge.id]}].id"))
        ids.setdefault(charge.id, index)
        key = (charge.issuer, charge.invoice, charge.line)
        if key in lines:
            other = lines[key]
            yield Fault(
                f"{where}.line", "duplicate-invoice-line",
                f'line {charge.line} of invoice {charge.invoice} of {charge.issuer} is here twice: as charge '
                f'"{campaign.charges[other].id}" (line {line_of(f"charge[{other}].line")}) and as "{charge.id}" '
                f'(line {line_of(f"{where}.line")})',
                "remove one of the two: what was paid once counts once",
            )  # fmt: skip
        lines.setdefault(key, index)
        yield from _names(where, charge, campaign)
        yield from _amount(where, charge, campaign)


def _names(where: str, charge: Charge, campaign: Campaign) -> Iterator[Fault]:
    for table, name, known in (
        ("rental", charge.rental, [rental.id for rental in campaign.rentals]),
        ("candidate", charge.candidate, [candidate.id for candidate in campaign.candidates]),
    ):
        if name is not None and name not in known:
            yield Fault(
                f"{where}.{table}", f"unknown-{table}",
                f'charge "{charge.id}" names the {table} "{name}", which is not in this file',
                f"add a [[{table}]] with this id, or name one of: {', '.join(sorted(known)) or 'none'}",
            )  # fmt: skip
    if charge.rental is not None and charge.candidate is not None:
        yield Fault(
            where, "two-purposes", f'charge "{charge.id}" is for a rental and for a candidate',
            "keep candidate where the line is for that candidate alone, rental where all that ran there share it",
        )  # fmt: skip


def _amount(where: str, charge: Charge, campaign: Campaign) -> Iterator[Fault]:
    try:
        amount = Money.parse(charge.amount, charge.currency)
    except MoneyError as error:
        place = "amount" if charge.currency in CURRENCIES else "currency"
        yield Fault(f"{where}.{place}", "amount", f'charge "{charge.id}": {error.message}', error.next_step)
        return
    units = amount.minor_units
    if charge.category == "credit" and units >= 0:
        yield Fault(
            f"{where}.amount", "sign", f'charge "{charge.id}" is a credit of {charge.amount} {charge.currency}',
            f'write what was given back as a negative amount: "-{charge.amount}"',
        )  # fmt: skip
    if charge.category in ("usage", "purchase", "tax") and units < 0:
        yield Fault(
            f"{where}.amount", "sign",
            f'charge "{charge.id}" of category {charge.category} is negative: {charge.amount} {charge.currency}',
            'write category = "credit" for what was given back, or "adjustment" for a correction',
        )  # fmt: skip
    home = home_currency(campaign)
    rates = {rate.currency for rate in campaign.exchange_rates}
    if charge.currency != home and charge.currency not in rates:
        yield Fault(
            f"{where}.currency", "no-exchange-rate",
            f'charge "{charge.id}" is in {charge.currency}, the campaign compares in {home}, and no rate is given',
            f'add [[exchange_rate]] with currency = "{charge.currency}", rate, on and source',
        )  # fmt: skip


def _allocation(campaign: Campaign) -> Iterator[Fault]:
    allocation, known = campaign.allocation, [candidate.id for candidate in campaign.candidates]
    if not allocation.weights:
        if allocation.convention == "fixed":
            yield Fault(
                "allocation", "no-weights", "the convention is fixed, and no weights are given",
                'add weights = { candidate = "1/2", ... }, which sum to 1, or another convention',
            )  # fmt: skip
        return
    shares: dict[str, Fraction] = {}
    for name, text in allocation.weights.items():
        where = f"allocation.weights.{name}"
        try:
            shares[name] = weight(text)
        except MoneyError as error:
            yield Fault(where, "weight", f'weight of "{name}": {error.message}', error.next_step)
        if name not in known:
            yield Fault(
                where, "unknown-candidate", f'a weight is given to "{name}", which is no candidate of this file',
                f"name one of: {', '.join(sorted(known)) or 'none'}",
            )  # fmt: skip
    if unweighted := [name for name in known if name not in allocation.weights]:
        yield Fault(
            "allocation.weights", "no-weights", f"no weight is given to {', '.join(unweighted)}",
            'give each candidate a weight; "0" where it bears nothing',
        )  # fmt: skip
    total = sum(shares.values(), Fraction(0))
    if len(shares) == len(allocation.weights) and total != 1:
        yield Fault(
            "allocation.weights", "weights-sum", f"the weights sum to {total}, not to 1",
            'correct them; thirds are written "1/3", since no decimal is exactly a third',
        )  # fmt: skip


def _twice(where: str, table: str, name: str, line: int | None) -> Fault:
    return Fault(
        where, "duplicate-id", f'the {table} id "{name}" is given twice, first in line {line}',
        f"give each {table} an id of its own",
    )  # fmt: skip
