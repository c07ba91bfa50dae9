"""One currency to compare in: amounts keep their own, the converted one is a second figure, rounded once."""

from __future__ import annotations

from collector.contract.campaign import Campaign
from collector.contract.charge_rules import home_currency
from collector.contract.money import Money, Taxed, exact, minor_digits, rounded
from collector.contract.offers import ExchangeRate


def campaign_currency(campaign: Campaign) -> str | None:
    """Return the currency everything is compared in: the campaign's, or that of its first offer."""
    return home_currency(campaign)


def rate_of(campaign: Campaign, currency: str) -> ExchangeRate | None:
    """Return the rate of a currency; null for the campaign's own, and where none is given."""
    return next((rate for rate in campaign.exchange_rates if rate.currency == currency), None)


def converted(amount: Money, campaign: Campaign) -> Money | None:
    """Return a total in the campaign's currency, rounded once; null without a rate."""
    wanted = campaign_currency(campaign)
    if wanted is None or amount.currency == wanted:
        return amount
    rate = rate_of(campaign, amount.currency)
    if rate is None:
        return None
    major = exact(rate.rate) * amount.minor_units / 10 ** minor_digits(amount.currency)
    return Money(rounded(major * 10 ** minor_digits(wanted)), wanted)


def converted_price(price: Taxed, campaign: Campaign) -> Taxed | None:
    """Return net and gross in the campaign's currency, each rounded once; the tax is their difference."""
    net, gross = converted(price.net, campaign), converted(price.gross, campaign)
    return None if net is None or gross is None else Taxed(net, gross - net, gross)
