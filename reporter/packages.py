"""Whole packages for a whole calendar: hours needed, packages, price with tax, idle hours. Fractions, never floats."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from collector.contract.campaign import Calendar, Campaign
from collector.contract.money import Money, Taxed, exact
from collector.contract.offers import Offer
from collector.contract.tariffs import NS_PER_HOUR, Line, Tariff, bill, tariffs_of, taxed
from collector.contract.unit_prices import for_hours, for_packages

from .dossier import Basis
from .exchange import converted_price

PROCESSING = "processing"
LOADING = "load_and_warmup"


class PhaseHours(NamedTuple):
    """Time of one calendar phase, exact nanoseconds; null where the campaign does not foresee it."""

    phase: str
    duration_ns: Fraction | None
    basis: Basis
    by: str | None


class Need(NamedTuple):
    """What one candidate needs from the first preparation to the export of the wanted volume."""

    phases: list[PhaseHours]
    total_ns: Fraction
    ns_per_document: Fraction
    measured_documents: int
    wanted_documents: int

    @property
    def fixed_ns(self) -> Fraction:
        """Everything that does not grow with the number of documents."""
        return self.total_ns - self.ns_per_document * self.wanted_documents

    @property
    def is_extrapolated(self) -> bool:
        """The wanted volume is not the measured one, so processing is assumed to grow linearly."""
        return self.wanted_documents != self.measured_documents


class Package(NamedTuple):
    """What covers the need under one tariff: packages of one length, one after the other, or a rental by the hour."""

    offer: Offer
    days: int | None
    """Null by the hour."""
    bought: int
    """How many packages, one after the other; 1 by the hour."""
    price: Taxed
    """Packages and fees, as billed, in the offer's currency."""
    unit_net: Money
    """Net price of one package, or of one hour, without fees."""
    needed_ns: Fraction
    is_valid: bool
    """It may win: the quote holds on the campaign's date, and nothing blocks the offer."""
    tariff: Tariff
    paid_ns: Fraction
    lines: tuple[Line, ...]
    compared: Taxed
    """The price in the currency that everything is compared in; the price itself where no rate is given."""

    @property
    def idle_ns(self) -> Fraction:
        return self.paid_ns - self.needed_ns

    @property
    def fees(self) -> Money:
        """All lines but the first, as the offer writes its prices."""
        total = Money(0, self.offer.currency)
        for line in self.lines[1:]:
            total = total + line.amount
        return total


def calendar_need(
    calendar: Calendar, *, corpus_ns: Fraction, loading_ns: int, measured_documents: int, wanted_documents: int
) -> Need:
    """Return the need: the campaign's calendar, loading and warm-up once, and processing in proportion to documents.

    `corpus_ns` is the measured time of `measured_documents`. Linear growth is an assumption and is printed as such.
    """
    per_document = corpus_ns / measured_documents
    phases = [
        PhaseHours(LOADING, Fraction(loading_ns), "measured", None),
        PhaseHours(PROCESSING, per_document * wanted_documents, "measured", None),
    ]
    for phase in calendar.__struct_fields__:
        duration = getattr(calendar, phase)
        if duration is None:
            phases.append(PhaseHours(phase, None, "assumed", None))
        else:
            phases.append(PhaseHours(phase, exact(duration.hours) * NS_PER_HOUR, duration.basis, duration.by))
    total = sum((phase.duration_ns for phase in phases if phase.duration_ns is not None), Fraction(0))
    return Need(phases, total, per_document, measured_documents, wanted_documents)


def documents_within(need: Need, paid_ns: Fraction | int) -> int:
    """Return the largest number of documents whose processing, with the rest of the calendar, fits in the time."""
    return max(0, (paid_ns - need.fixed_ns) // need.ns_per_document)


def offer_price(offer: Offer, days: int) -> Money | None:
    """Return the price of one package as the offer writes it, net or gross, per node or card; null without one."""
    text = {3: offer.price_3_days, 7: offer.price_7_days, 30: offer.price_30_days}[days]
    return None if text is None else Money.parse(text, offer.currency)


def corpora_fit(need: Need, paid_ns: Fraction, documents_per_corpus: int) -> int:
    """Return the whole corpora whose processing, with the rest of the calendar, fits in the time that is paid."""
    return documents_within(need, paid_ns) // documents_per_corpus


def packages_of(
    offer: Offer, needed_ns: Fraction, *, as_of: dt.date, used_cards: int = 1, campaign: Campaign | None = None
) -> list[Package]:
    """Return what the need costs under each tariff of the offer, the shortest package first and by the hour last."""
    is_valid = offer.holds_on(as_of)
    return [_package(tariff, needed_ns, campaign, is_valid=is_valid) for tariff in tariffs_of(offer, used_cards)]


def _package(tariff: Tariff, needed_ns: Fraction, campaign: Campaign | None, *, is_valid: bool) -> Package:
    offer, billed = tariff.offer, bill(tariff, needed_ns)
    if tariff.package is not None:
        unit = for_packages(tariff.package, 1)
    else:
        assert tariff.hour is not None
        unit = for_hours(tariff.hour, Fraction((tariff.days or 0) * 24 or 1))
    in_one_currency = converted_price(billed.price, campaign) if campaign is not None else None
    return Package(
        offer=offer, days=tariff.days, bought=billed.bought, price=billed.price, unit_net=taxed(offer, unit).net,
        needed_ns=needed_ns, is_valid=is_valid, tariff=tariff, paid_ns=billed.paid_ns, lines=billed.lines,
        compared=in_one_currency or billed.price,
    )  # fmt: skip


def cheapest(packages: Sequence[Package]) -> Package | None:
    """Return the package with the lowest net price; equal prices go to the lower gross, then to less idle time.

    Raises MoneyError where offers are in a currency without a rate to compare them by.
    """
    ordered = sorted(packages, key=lambda p: (p.idle_ns, p.offer.id, p.days or 0))
    return min(ordered, key=lambda p: (p.compared.net, p.compared.gross), default=None)
