"""Written quotes multiplied and added again: each line against its printed amount, their sum against the price."""

from __future__ import annotations

from typing import NamedTuple

from collector.contract.money import Money, exact, minor_digits, rounded
from collector.contract.offers import PACKAGE_DAYS, Offer


class QuoteCheck(NamedTuple):
    """One line of a quote, or the sum of the lines of one package (`place` is null)."""

    days: int
    place: int | None
    text: str
    computed: Money
    printed: Money

    @property
    def difference(self) -> Money:
        """Printed less computed."""
        return self.printed - self.computed


def quote_checks(offer: Offer) -> list[QuoteCheck]:
    """Return each line of the offer's quote and each sum, as printed and as computed; none where it has no lines."""
    checks = []
    for days in PACKAGE_DAYS:
        lines = [(index, line) for index, line in enumerate(offer.quote_lines) if line.days == days]
        if not lines:
            continue
        total = Money(0, offer.currency)
        for index, line in lines:
            minor = rounded(exact(line.quantity) * exact(line.unit_price) * 10 ** minor_digits(offer.currency))
            printed = Money.parse(line.amount, offer.currency)
            checks.append(QuoteCheck(days, index, line.text, Money(minor, offer.currency), printed))
            total = total + printed
        price = {3: offer.price_3_days, 7: offer.price_7_days, 30: offer.price_30_days}[days]
        if price is not None:
            checks.append(QuoteCheck(days, None, "", total, Money.parse(price, offer.currency)))
    return checks


def has_wrong_arithmetic(offer: Offer) -> bool:
    """Say whether a line or a sum of the offer's quote differs from what it prints."""
    return any(check.difference.minor_units != 0 for check in quote_checks(offer))
