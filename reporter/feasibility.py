"""What the objective asks beside quality, held against one configuration: memory left free, time of one request.

Everything is compared in one unit, exactly: memory in bytes, times in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from collector.contract.campaign import Objective
from collector.contract.money import exact
from collector.contract.offers import Offer

from .configurations import Configuration
from .offered import OfferBlocked, Offered
from .statistics import MINIMUM_N

RequirementKind = Literal["headroom", "first_token", "answer"]
Result = Literal["met", "missed", "not_shown"]
DEFAULT_PERCENTILE = 95
"""Times are limited at this percentile where the objective names none."""
NEAREST: tuple[OfferBlocked, ...] = ("expired", "no_rate", "arithmetic", "incomplete", "no_price", "mismatch")
"""Why no offer can win, the reason nearest to an offer that could first."""
METRIC: dict[RequirementKind, str] = {"first_token": "ttft_s", "answer": "e2e_s"}


class Requirement(NamedTuple):
    """One requirement of the objective, held against one configuration.

    headroom: `measured` bytes are free at the peak and `limit` bytes must be, of `capacity` bytes: those that the offer
    names, else those that the card has. first_token, answer: seconds at `percentile`, at most `limit`.
    needed_requests: how many requests show the percentile, where there are too few.
    """

    kind: RequirementKind
    result: Result
    measured: Fraction | None
    limit: Fraction | None
    capacity: Fraction | None = None
    offer_id: str | None = None
    percentile: int | None = None
    requests: int | None = None
    needed_requests: int | None = None


def requirements(
    configuration: Configuration, offers: Sequence[Offered], objective: Objective
) -> list[Requirement]:  # fmt: skip
    """Return the requirements of the objective; memory once, on the offer's card that leaves most free."""
    of_memory = [memory_requirement(configuration, offered.offer, objective) for offered in usable(offers)]
    if not of_memory:
        of_memory = [memory_requirement(configuration, None, objective)]
    best = max(of_memory, key=lambda one: (one.result == "met", one.measured or 0))
    is_asked = objective.min_headroom_percent is not None or best.result == "missed"
    return [*([best] if is_asked else []), *_times(configuration, objective)]


def usable(offers: Sequence[Offered]) -> list[Offered]:
    """Return the offers that nothing blocks and that have a price which may win."""
    return [o for o in offers if o.blocked is None and any(package.is_valid for package in o.packages)]


def memory_requirement(configuration: Configuration, offer: Offer | None, objective: Objective) -> Requirement:
    """Return whether the card holds the highest peak and leaves the wanted share of its memory free."""
    peak, capacity = configuration.peak, capacity_bytes(configuration, offer)
    offer_id = offer.id if offer is not None and offer.device_memory_gib is not None else None
    if peak is None or capacity is None:
        return Requirement("headroom", "not_shown", None, None, capacity, offer_id)
    free = capacity - peak.peak.peak_bytes
    wanted = capacity * exact(objective.min_headroom_percent or "0") / 100
    return Requirement("headroom", "met" if free >= wanted else "missed", free, wanted, capacity, offer_id)


def capacity_bytes(configuration: Configuration, offer: Offer | None) -> Fraction | None:
    """Return the memory of one card: what the offer names, else what was measured."""
    if offer is not None and offer.device_memory_gib is not None:
        return exact(offer.device_memory_gib) * 2**30
    peak = configuration.peak
    return Fraction(peak.capacity_bytes) if peak is not None and peak.capacity_bytes is not None else None


def is_impossible(configuration: Configuration) -> bool:
    """Return whether a peak is higher than the memory of the card it was read on: then one of the two is wrong."""
    peak = configuration.peak
    return peak is not None and peak.capacity_bytes is not None and peak.peak.peak_bytes > peak.capacity_bytes


def offers_blocked(offers: Sequence[Offered]) -> OfferBlocked | None:
    """Return why none of the offers can win, null where one can or there is none."""
    reasons = {offered.blocked for offered in offers}
    if not offers or usable(offers):
        return None
    return next((reason for reason in NEAREST if reason in reasons), "no_price")


def _times(configuration: Configuration, objective: Objective) -> list[Requirement]:
    percentile = objective.time_percentile or DEFAULT_PERCENTILE
    limits: tuple[tuple[RequirementKind, str | None], ...] = (
        ("first_token", objective.max_first_token_s), ("answer", objective.max_answer_s),
    )  # fmt: skip
    return [_time(configuration, kind, exact(text), percentile) for kind, text in limits if text is not None]


def _time(configuration: Configuration, kind: RequirementKind, limit_s: Fraction, percentile: int) -> Requirement:
    """A percentile of fewer requests than its interval needs is not shown, and so does not pass."""
    reading, needed = configuration.times.get(METRIC[kind]), MINIMUM_N[percentile]
    requests = reading.valued_count if reading is not None else 0
    found = reading.seconds.get(percentile) if reading is not None else None
    if found is None or requests < needed:
        return Requirement(
            kind, "not_shown", None, limit_s, percentile=percentile, requests=requests, needed_requests=needed
        )  # fmt: skip
    result: Result = "met" if found[0] <= limit_s else "missed"
    return Requirement(kind, result, found[0], limit_s, percentile=percentile, requests=requests)
