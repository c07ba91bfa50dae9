"""One offer for one candidate: its packages, or why it cannot win."""

from __future__ import annotations

from typing import Literal, NamedTuple

from collector.contract.campaign import Campaign, Candidate
from collector.contract.matching import Machine, Mismatch, offer_mismatch
from collector.contract.offers import Offer

from .exchange import campaign_currency, rate_of
from .packages import Need, Package, packages_of
from .quotes import has_wrong_arithmetic

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
    packages = packages_of(
        offer, need.total_ns, as_of=campaign.as_of, used_cards=machine.used_cards, campaign=campaign
    )  # fmt: skip
    blocked = _blocked(offer, packages, campaign)
    if blocked is not None:
        packages = [package._replace(is_valid=False) for package in packages]
    return Offered(offer, packages, blocked, None)


def _blocked(offer: Offer, packages: list[Package], campaign: Campaign) -> OfferBlocked | None:
    if not packages:
        return "no_price"
    if offer.excludes:
        return "incomplete"
    if has_wrong_arithmetic(offer):
        return "arithmetic"
    if not offer.holds_on(campaign.as_of):
        return "expired"
    has_rate = offer.currency == campaign_currency(campaign) or rate_of(campaign, offer.currency) is not None
    return None if has_rate else "no_rate"
