"""One offer for one candidate: its packages, or why it cannot win."""

from __future__ import annotations

from typing import Literal, NamedTuple

from collector.contract.campaign import Campaign, Candidate
from collector.contract.offers import Offer

from .packages import Machine, Mismatch, Need, Package, offer_mismatch, packages_of

OfferBlocked = Literal["mismatch", "no_price", "incomplete", "arithmetic", "expired", "no_rate"]
"""Why no package of an offer may win: it is for another machine, has no price, leaves something out, does not add up,
does not hold on the campaign's date, or is in a currency without a rate."""


class Offered(NamedTuple):
    """One offer for one candidate. A blocked one stays in the tables with its reason; it cannot win."""

    offer: Offer
    packages: list[Package]
    blocked: OfferBlocked | None
    mismatch: Mismatch | None
    """What differs, where `blocked` is `mismatch`."""


def offered(
    candidate: Candidate | None, machine: Machine, need: Need | None, campaign: Campaign | None
) -> list[Offered]:
    """Return the candidate's offers in the order in which it names them; none where nothing can be priced."""
    if campaign is None or candidate is None or need is None:
        return []
    by_id = {offer.id: offer for offer in campaign.offers}
    return [_offered(by_id[name], machine, need, campaign) for name in candidate.offers]


def _offered(offer: Offer, machine: Machine, need: Need, campaign: Campaign) -> Offered:
    mismatch = offer_mismatch(offer, machine)
    if mismatch is not None:
        return Offered(offer, [], "mismatch", mismatch)
    packages = packages_of(offer, need.total_ns, as_of=campaign.as_of)
    blocked: OfferBlocked | None = None
    if not packages:
        blocked = "no_price"
    elif not offer.retrieved <= campaign.as_of <= offer.valid_until:
        blocked = "expired"
    return Offered(offer, packages, blocked, None)
