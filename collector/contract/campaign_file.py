"""Read campaign.toml: its shape, and everything in it that would make a price or a comparison wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from .campaign import Campaign
from .charge_rules import charge_faults
from .errors import Finding, Refused
from .money import Money, MoneyError, exact
from .offers import PACKAGE_DAYS, Offer
from .toml_lines import read_toml


class LoadedCampaign(NamedTuple):
    """A campaign file that can be used. `line_of` gives the line of a path such as `offer[0].price_3_days`."""

    campaign: Campaign
    path: Path
    line_of: Callable[[str], int | None]


class _Fault(NamedTuple):
    where: str
    rule: str
    message: str
    next_step: str


def read_campaign(path: Path) -> LoadedCampaign:
    """Return the campaign.

    Raises Refused with one finding per fault: of shape first, and of sense where the shape is right.
    """
    text = read_toml(path)
    findings = text.findings(Campaign)
    if not findings:
        campaign = msgspec.convert(text.data, Campaign)
        findings = [
            Finding(path, text.line_of(fault.where) or 1, fault.rule, fault.message, fault.next_step)
            for fault in (*_unprintable(text.data), *_faults(campaign), *_of_charges(campaign, text.line_of))
        ]
    if findings:
        raise Refused(findings)
    return LoadedCampaign(campaign, path, text.line_of)


def _of_charges(campaign: Campaign, line_of: Callable[[str], int | None]) -> Iterator[_Fault]:
    yield from (_Fault(*fault) for fault in charge_faults(campaign, line_of))


def _faults(campaign: Campaign) -> Iterator[_Fault]:
    yield from _repeated(campaign)
    if campaign.deadline_h is not None and exact(campaign.deadline_h) == 0:
        yield _Fault(
            "deadline_h", "amount", "a deadline of 0 hours is met by nothing", "write the hours, or leave the line out"
        )
    yield from _candidates(campaign)
    for index, offer in enumerate(campaign.offers):
        yield from _offer(f"offer[{index}]", offer)
    yield from _currencies(campaign)
    yield from _calendar(campaign)


def _unprintable(value: object, where: str = "") -> Iterator[_Fault]:
    """Yield each text that a page or a terminal could not print as one line."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _unprintable(inner, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unprintable(inner, f"{where}[{index}]")
    elif isinstance(value, str) and not value.isprintable() and any(ord(c) < 32 or ord(c) == 127 for c in value):
        yield _Fault(where, "control-character", f"{value!r} holds a control character", "write it in one plain line")


def _repeated(campaign: Campaign) -> Iterator[_Fault]:
    for table, ids in (
        ("candidate", [candidate.id for candidate in campaign.candidates]),
        ("offer", [offer.id for offer in campaign.offers]),
    ):
        for index, name in enumerate(ids):
            if name in ids[:index]:
                yield _Fault(
                    f"{table}[{index}].id", "duplicate-id", f'the {table} id "{name}" is given twice',
                    f"give each {table} an id of its own",
                )  # fmt: skip


def _candidates(campaign: Campaign) -> Iterator[_Fault]:
    known = {offer.id for offer in campaign.offers}
    seen: dict[tuple[str, str, int, int, str | None], str] = {}
    for index, candidate in enumerate(campaign.candidates):
        for place, name in enumerate(candidate.offers):
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                yield _Fault(
                    f"candidate[{index}].offers[{place}]", "unknown-offer",
                    f'candidate "{candidate.id}" names the offer "{name}", which is not in this file',
                    f"add an [[offer]] with this id, or name one of: {listed}",
                )  # fmt: skip
            if name in candidate.offers[:place]:
                yield _Fault(
                    f"candidate[{index}].offers[{place}]", "duplicate-offer",
                    f'candidate "{candidate.id}" names the offer "{name}" twice', "name each offer once",
                )  # fmt: skip
        if candidate.label in (earlier.label for earlier in campaign.candidates[:index]):
            yield _Fault(
                f"candidate[{index}].label", "duplicate-label", f'two candidates are labelled "{candidate.label}"',
                "give each candidate a label of its own: the dossier tells them apart by it",
            )  # fmt: skip
        key = (
            candidate.variant, candidate.device, candidate.batch, candidate.concurrency, candidate.configuration,
        )  # fmt: skip
        if key in seen:
            yield _Fault(
                f"candidate[{index}]", "duplicate-candidate",
                f'candidates "{seen[key]}" and "{candidate.id}" are one configuration',
                "keep one of them and list all its offers there",
            )  # fmt: skip
        seen.setdefault(key, candidate.id)


def _offer(where: str, offer: Offer) -> Iterator[_Fault]:
    prices = {days: getattr(offer, f"price_{days}_days") for days in PACKAGE_DAYS}
    if all(price is None for price in prices.values()):
        yield _Fault(
            where, "no-price", f'offer "{offer.id}" has no price',
            "give at least one of price_3_days, price_7_days, price_30_days, or remove the offer: the candidate's "
            "price is then printed as unknown",
        )  # fmt: skip
    for days, price in prices.items():
        if price is None:
            continue
        try:
            amount = Money.parse(price, offer.currency)
        except MoneyError as error:
            yield _Fault(f"{where}.price_{days}_days", "amount", error.message, error.next_step)
            continue
        if amount.minor_units <= 0:
            yield _Fault(
                f"{where}.price_{days}_days", "amount", f"{price} {offer.currency} is no price",
                "write what one package costs, or leave the line out where there is no price",
            )  # fmt: skip
    if offer.device_memory_gib is not None and exact(offer.device_memory_gib) <= 0:
        yield _Fault(
            f"{where}.device_memory_gib", "amount", f"{offer.device_memory_gib} GiB is no device memory",
            "write the memory of one device, or leave the line out",
        )  # fmt: skip
    if exact(offer.tax_percent) > 100:
        yield _Fault(
            f"{where}.tax_percent", "amount", f"a tax of {offer.tax_percent} % is more than the amount itself",
            'write the rate in percent, e.g. "19"',
        )  # fmt: skip
    if offer.valid_until < offer.retrieved:
        yield _Fault(
            f"{where}.valid_until", "dates",
            f"valid until {offer.valid_until}, before it was retrieved on {offer.retrieved}",
            "correct one of the two dates",
        )  # fmt: skip


def _currencies(campaign: Campaign) -> Iterator[_Fault]:
    for index, offer in enumerate(campaign.offers):
        first = campaign.offers[0].currency
        if offer.currency != first:
            yield _Fault(
                f"offer[{index}].currency", "mixed-currencies",
                f'offer "{offer.id}" is in {offer.currency}, offer "{campaign.offers[0].id}" in {first}',
                "give all offers in one currency, at a rate you can defend, or make one campaign per currency",
            )  # fmt: skip


def _calendar(campaign: Campaign) -> Iterator[_Fault]:
    for phase in campaign.calendar.__struct_fields__:
        duration = getattr(campaign.calendar, phase)
        if duration is not None and duration.basis == "assumed" and duration.by is None:
            yield _Fault(
                f"calendar.{phase}", "assumed-by-nobody",
                f"{duration.hours} hours of {phase} are assumed, but not by whom",
                'add by = "name of the person who answers for it"',
            )  # fmt: skip
