"""What a campaign writes about prices as figures: prices of packages and hours, fees, exchange rates; and their ids."""

from __future__ import annotations

from collector.contract.campaign import Campaign
from collector.contract.offers import PACKAGE_DAYS, Offer
from collector.contract.tariffs import Tariff

from .book import Book
from .packages import offer_price


def offer_figure(offer: Offer, days: int) -> str:
    """Return the id of an offer's price of one package, as the offer writes it."""
    return f"offers/{offer.id}/price_{days}_days"


def offer_inputs(offer: Offer, tariff: Tariff) -> list[str]:
    """Return the figures a bill is made of: the price first, then each fee."""
    price = f"offers/{offer.id}/price_hour"
    if tariff.package is not None and tariff.days is not None:
        price = offer_figure(offer, tariff.days)
    return [price, *(f"offers/{offer.id}~{place}/fee" for place in range(len(offer.fees)))]


def exchange_inputs(currency: str) -> list[str]:
    """Return the figure of a currency's exchange rate."""
    return [f"exchange_rates/{currency}/rate"]


def put_offer_figures(book: Book, campaign: Campaign) -> None:
    """Add every price, fee and exchange rate as the campaign writes it."""
    for offer in campaign.offers:
        for days in PACKAGE_DAYS:
            price = offer_price(offer, days)
            if price is not None:
                name = offer_figure(offer, days)
                book.given(name, price.minor_units, "minor_units", offer.basis, currency=offer.currency)
        if offer.price_hour is not None:
            written = f"{offer.price_hour} {offer.currency}"
            book.given(f"offers/{offer.id}/price_hour", written, "text", offer.basis)
        for place, fee in enumerate(offer.fees):
            written = f"{fee.amount} {offer.currency}"
            book.given(f"offers/{offer.id}~{place}/fee", written, "text", offer.basis)
    for rate in campaign.exchange_rates:
        book.given(f"exchange_rates/{rate.currency}/rate", rate.rate, "text", rate.basis)
