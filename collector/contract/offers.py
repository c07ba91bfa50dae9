"""Offers: what a provider asks for which machine, with everything that makes one price differ from another.

Structs of campaign.toml. A price says by its field what it buys: a package of whole days or an hour, of the node or of
one card. Amounts and hours are exact decimals, written as strings.
"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from .protocol import Percent
from .records.base import Label

Amount = Annotated[
    str, Meta(pattern=r"^-?[0-9]{1,15}(\.[0-9]{1,9})?$", description="exact decimal, as a string, below 10^15")
]
Hours = Annotated[
    str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$", description="hours, exact decimal, as a string, below 10^9")
]
Currency = Annotated[str, Meta(pattern="^[A-Z]{3}$", description="ISO 4217 code")]
PricingClass = Literal["on_demand", "reserved", "interruptible", "quote"]
OfferBasis = Literal["quoted", "assumed", "example"]
PriceScope = Literal["node", "card"]
FeeScope = Literal["rental", "package", "day", "gib_month", "gib_transferred"]
PACKAGE_DAYS = (3, 7, 30)


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of campaign.toml: unknown keys are refused."""


class Fee(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One charge beside the packages: set-up, storage while running or stopped, data transfer.

    per: once per rental, once per package bought, per elapsed day paid for, per GiB stored for a month of `month_h`
    hours, or per GiB transferred. `quantity` is how many GiB the last two take.
    """

    name: Label
    amount: Amount
    per: FeeScope
    quantity: Amount | None = None
    month_h: Literal[720, 730] = 730


class QuoteLine(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a written quote, as printed there: the reporter multiplies and adds it again."""

    text: Label
    days: Literal[3, 7, 30]
    """The package whose price this line is a part of."""
    quantity: Amount
    unit_price: Amount
    amount: Amount


class Offer(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One price list of one provider for one machine. Amounts are net of tax unless said otherwise.

    device_count: cards of the node. prices_per: whether each price buys the node with all its cards, or one card; then
    `minimum_cards` is the smallest number of cards that is rented together.
    price_hour is billed in steps of `billing_step_s`, at least `minimum_hours`.
    excludes: what the prices do not hold and no fee covers; such an offer is incomplete and cannot win.
    An offer without any price is printed as `price unknown`.
    """

    id: Label
    provider: Label
    device: Label
    device_count: Annotated[int, Meta(ge=1)] = 1
    device_memory_gib: Amount | None = None
    mig_profile: Label | None = None
    pricing_class: PricingClass
    currency: Currency
    price_3_days: Amount | None = None
    price_7_days: Amount | None = None
    price_30_days: Amount | None = None
    price_hour: Amount | None = None
    prices_per: PriceScope = "node"
    minimum_cards: Annotated[int, Meta(ge=1)] = 1
    billing_step_s: Annotated[int, Meta(ge=1, le=86_400)] = 1
    minimum_hours: Hours = "0"
    prices_are: Literal["net", "gross"] = "net"
    tax_percent: Percent
    fees: list[Fee] = field(name="fee", default_factory=list)
    quote_lines: list[QuoteLine] = field(name="line", default_factory=list)
    excludes: list[Label] = []
    basis: OfferBasis
    source: Label
    retrieved: dt.date
    valid_until: dt.date

    def holds_on(self, day: dt.date) -> bool:
        """Return whether the offer is valid on a day: from when it was retrieved to its last day."""
        return self.retrieved <= day <= self.valid_until


class ExchangeRate(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One unit of `currency` is `rate` units of the campaign's currency, on that day, by that source."""

    currency: Currency
    rate: Amount
    on: dt.date
    source: Label
    basis: OfferBasis = "quoted"


class Purchase(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Buying the machine instead of renting it: price less residual over its life, plus what it costs each month."""

    price: Amount
    currency: Currency
    residual: Amount = "0"
    life_months: Annotated[int, Meta(ge=1, le=240)]
    monthly_cost: Amount = "0"
    """Hosting, maintenance, insurance; energy has its own line."""
    device: Label
    device_count: Annotated[int, Meta(ge=1)] = 1
    basis: OfferBasis
    source: Label
    on: dt.date


class EnergyPrice(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of energy. It is multiplied by measured joules only; where none were measured the line says so."""

    price_per_kwh: Amount
    currency: Currency
    basis: OfferBasis
    source: Label


class StaffHours(Table, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours of people, an optional line of the total; an assumption names who answers for it."""

    role: Label
    hours: Hours
    rate_per_hour: Amount
    currency: Currency
    basis: OfferBasis
    by: Label | None = None
