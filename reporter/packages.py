"""Whole packages for a whole calendar: hours needed, packages, price with tax, idle hours. Fractions, never floats."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from collector.contract.campaign import Calendar
from collector.contract.money import Money, Taxed, exact, percent_rate, taxed_from_gross, taxed_from_net
from collector.contract.offers import PACKAGE_DAYS, Offer

from .dossier import Basis

NS_PER_HOUR = 3_600_000_000_000
PROCESSING = "processing"
LOADING = "load_and_warmup"
MEMORY_TOLERANCE_PERCENT = 8
"""An offer's memory matches within this: sold sizes are rounded, and error correction takes its part (46,068 of 49,152
MiB on one 48 GB card). Neighbouring sizes of one card differ by more (40 and 80, 20 and 24 GB)."""

MismatchReason = Literal["device", "count", "memory", "mig"]


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


class Machine(NamedTuple):
    """What a candidate was measured on, as far as an offer can name it."""

    device: str
    device_count: int
    memory_bytes: int | None
    mig_profile: str | None


class Mismatch(NamedTuple):
    """Why an offer is not for the measured machine."""

    reason: MismatchReason
    offered: str
    measured: str


class Package(NamedTuple):
    """Packages of one length of one offer that cover the need, one after the other."""

    offer: Offer
    days: int
    bought: int
    """How many packages, one after the other."""
    price: Taxed
    unit_net: Money
    """Net price of one package."""
    needed_ns: Fraction
    is_valid: bool
    """The quote holds on the campaign's date."""

    @property
    def paid_ns(self) -> int:
        return self.bought * self.days * 24 * NS_PER_HOUR

    @property
    def idle_ns(self) -> Fraction:
        return self.paid_ns - self.needed_ns


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


def package_count(needed_ns: Fraction, days: int) -> int:
    """Return how many packages of `days` elapsed days (24 h each) cover the need; at least one.

    72 hours are exactly one package of 3 days; one nanosecond more is two.
    """
    return max(1, -(-needed_ns // (days * 24 * NS_PER_HOUR)))


def documents_within(need: Need, paid_ns: int) -> int:
    """Return the largest number of documents whose processing, with the rest of the calendar, fits in the time."""
    return max(0, (paid_ns - need.fixed_ns) // need.ns_per_document)


def offer_price(offer: Offer, days: int) -> Money | None:
    """Return the price of one package as the offer writes it, net or gross; null where it has none."""
    text = {3: offer.price_3_days, 7: offer.price_7_days, 30: offer.price_30_days}[days]
    return None if text is None else Money.parse(text, offer.currency)


def taxed(offer: Offer, amount: Money) -> Taxed:
    """Return an amount of this offer with its tax, computed once on the whole amount as an invoice does."""
    rate = percent_rate(offer.tax_percent)
    return taxed_from_net(amount, rate) if offer.prices_are == "net" else taxed_from_gross(amount, rate)


def packages_of(offer: Offer, needed_ns: Fraction, *, as_of: dt.date) -> list[Package]:
    """Return what the need costs under each package length the offer has a price for, shortest first."""
    packages = []
    for days in PACKAGE_DAYS:
        price = offer_price(offer, days)
        if price is None:
            continue
        count = package_count(needed_ns, days)
        packages.append(
            Package(
                offer=offer, days=days, bought=count, price=taxed(offer, price.times(count)),
                unit_net=taxed(offer, price).net, needed_ns=needed_ns,
                is_valid=offer.retrieved <= as_of <= offer.valid_until,
            )
        )  # fmt: skip
    return packages


def cheapest(packages: Sequence[Package]) -> Package | None:
    """Return the package with the lowest net price; equal prices go to the lower gross, then to less idle time.

    Raises MoneyError where the offers are in several currencies: there is no rate to compare them with.
    """
    ordered = sorted(packages, key=lambda p: (p.idle_ns, p.offer.id, p.days))
    return min(ordered, key=lambda p: (p.price.net, p.price.gross), default=None)


def offer_mismatch(offer: Offer, machine: Machine) -> Mismatch | None:
    """Return why the offer is not for the measured machine, or null where it is.

    Memory is compared only where the offer names it, within MEMORY_TOLERANCE_PERCENT of what it names.
    """
    if offer.device != machine.device:
        return Mismatch("device", offer.device, machine.device)
    if offer.device_count != machine.device_count:
        return Mismatch("count", str(offer.device_count), str(machine.device_count))
    if offer.mig_profile != machine.mig_profile:
        return Mismatch("mig", offer.mig_profile or "none", machine.mig_profile or "none")
    if offer.device_memory_gib is not None:
        offered = exact(offer.device_memory_gib)
        if machine.memory_bytes is None:
            return Mismatch("memory", offer.device_memory_gib, "not detected")
        measured = Fraction(machine.memory_bytes, 2**30)
        if abs(measured - offered) * 100 > offered * MEMORY_TOLERANCE_PERCENT:
            return Mismatch("memory", offer.device_memory_gib, f"{float(measured):.1f}")
    return None
