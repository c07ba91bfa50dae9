"""What would make an offer's price wrong: faults of prices, fees, quotes, exchange rates and optional lines."""

from __future__ import annotations

from collections.abc import Iterator

from .campaign import Campaign
from .charge_rules import Fault, home_currency
from .money import Money, MoneyError, exact, minor_digits
from .offers import PACKAGE_DAYS, ExchangeRate, Fee, Offer, Purchase, StaffHours


def offer_faults(campaign: Campaign) -> Iterator[Fault]:
    """Yield each fault of offers, exchange rates, purchase, energy price and staff."""
    for index, offer in enumerate(campaign.offers):
        yield from _offer(f"offer[{index}]", offer)
    yield from _rates(campaign)
    if campaign.purchase is not None:
        yield from _purchase(campaign.purchase, campaign)
    if campaign.energy is not None:
        yield from _not_negative("energy.price_per_kwh", campaign.energy.price_per_kwh, campaign.energy.currency)
    for index, staff in enumerate(campaign.staff):
        yield from _staff(f"staff[{index}]", staff)


def _offer(where: str, offer: Offer) -> Iterator[Fault]:
    yield from _prices(where, offer)
    yield from _terms(where, offer)
    yield from _cards(where, offer)
    for index, fee in enumerate(offer.fees):
        yield from _fee(f"{where}.fee[{index}]", fee)
    yield from _quote(where, offer)


def _prices(where: str, offer: Offer) -> Iterator[Fault]:
    try:
        minor_digits(offer.currency)
    except MoneyError as error:
        yield Fault(f"{where}.currency", "amount", error.message, error.next_step)
        return
    for days in PACKAGE_DAYS:
        price = getattr(offer, f"price_{days}_days")
        if price is None:
            continue
        try:
            amount = Money.parse(price, offer.currency)
        except MoneyError as error:
            yield Fault(f"{where}.price_{days}_days", "amount", error.message, error.next_step)
            continue
        if amount.minor_units <= 0:
            yield _no_price(f"{where}.price_{days}_days", price, offer.currency, "one package")
    if offer.price_hour is not None and exact(offer.price_hour) <= 0:
        yield _no_price(f"{where}.price_hour", offer.price_hour, offer.currency, "one hour")


def _no_price(where: str, price: str, currency: str, what: str) -> Fault:
    step = f"write what {what} costs, or leave the line out where there is no price"
    return Fault(where, "amount", f"{price} {currency} is no price", step)


def _terms(where: str, offer: Offer) -> Iterator[Fault]:
    if exact(offer.tax_percent) > 100:
        yield Fault(
            f"{where}.tax_percent", "amount", f"a tax of {offer.tax_percent} % is more than the amount itself",
            'write the rate in percent, e.g. "19"',
        )  # fmt: skip
    if offer.valid_until < offer.retrieved:
        yield Fault(
            f"{where}.valid_until", "dates",
            f"valid until {offer.valid_until}, before it was retrieved on {offer.retrieved}",
            "correct one of the two dates",
        )  # fmt: skip
    if offer.price_hour is None and (offer.billing_step_s != 1 or exact(offer.minimum_hours) > 0):
        name, value = ("billing_step_s", f"{offer.billing_step_s} s")
        if offer.billing_step_s == 1:
            name, value = "minimum_hours", f"{offer.minimum_hours} h"
        yield Fault(
            f"{where}.{name}", "step-without-hour",
            f'offer "{offer.id}" has {name} = {value}, which rounds a price of an hour, and no price_hour',
            "add price_hour, or remove the line: packages are whole days",
        )  # fmt: skip


def _cards(where: str, offer: Offer) -> Iterator[Fault]:
    if offer.device_memory_gib is not None and exact(offer.device_memory_gib) <= 0:
        yield Fault(
            f"{where}.device_memory_gib", "amount", f"{offer.device_memory_gib} GiB is no device memory",
            "write the memory of one device, or leave the line out",
        )  # fmt: skip
    if offer.minimum_cards > offer.device_count:
        yield Fault(
            f"{where}.minimum_cards", "cards",
            f'offer "{offer.id}" rents at least {offer.minimum_cards} cards of a node that has {offer.device_count}',
            "write how many cards the node has as device_count, or a smaller minimum",
        )  # fmt: skip
    elif offer.minimum_cards > 1 and offer.prices_per == "node":
        yield Fault(
            f"{where}.minimum_cards", "cards",
            f'offer "{offer.id}" prices the whole node, so a smallest number of cards ({offer.minimum_cards}) says '
            "nothing",
            'write prices_per = "card" where each price is for one card, or remove minimum_cards',
        )  # fmt: skip


def _fee(where: str, fee: Fee) -> Iterator[Fault]:
    if exact(fee.amount) < 0:
        yield Fault(
            f"{where}.amount", "amount", f'the fee "{fee.name}" of {fee.amount} is negative',
            "write what is charged; a discount belongs into the price",
        )  # fmt: skip
    is_by_size = fee.per in ("gib_month", "gib_transferred")
    if is_by_size and fee.quantity is None:
        yield Fault(
            f"{where}.per", "quantity", f'the fee "{fee.name}" is per {fee.per}, but it does not say for how many GiB',
            'add quantity = "..." with the GiB that are stored or transferred',
        )  # fmt: skip
    if fee.quantity is not None and not is_by_size:
        yield Fault(
            f"{where}.quantity", "quantity",
            f'the fee "{fee.name}" is per {fee.per}: its quantity of {fee.quantity} would not be used',
            "remove quantity, or charge it per gib_month or gib_transferred",
        )  # fmt: skip
    elif fee.quantity is not None and exact(fee.quantity) < 0:
        yield Fault(
            f"{where}.quantity", "quantity", f'the fee "{fee.name}" is for {fee.quantity} GiB',
            "write how many GiB are stored or transferred",
        )  # fmt: skip


def _quote(where: str, offer: Offer) -> Iterator[Fault]:
    for index, line in enumerate(offer.quote_lines):
        place = f"{where}.line[{index}]"
        if getattr(offer, f"price_{line.days}_days") is None:
            yield Fault(
                f"{place}.days", "line-without-price",
                f'the line "{line.text}" is of {line.days} days, for which offer "{offer.id}" has no price',
                f"add price_{line.days}_days as the quote prints it, or correct days",
            )  # fmt: skip
        try:
            Money.parse(line.amount, offer.currency)
        except MoneyError as error:
            yield Fault(f"{place}.amount", "amount", error.message, error.next_step)


def _rates(campaign: Campaign) -> Iterator[Fault]:
    own = home_currency(campaign)
    if campaign.currency is not None:
        yield from _code("currency", campaign.currency)
    seen: set[str] = set()
    for index, rate in enumerate(campaign.exchange_rates):
        yield from _rate(f"exchange_rate[{index}]", rate, own, is_repeated=rate.currency in seen)
        seen.add(rate.currency)


def _rate(where: str, rate: ExchangeRate, own: str | None, *, is_repeated: bool) -> Iterator[Fault]:
    yield from _code(f"{where}.currency", rate.currency)
    if rate.currency == own:
        yield Fault(
            f"{where}.currency", "own-currency",
            f"{rate.currency} is the currency everything is compared in; it needs no rate",
            "remove the rate, or name another currency for the campaign with currency",
        )  # fmt: skip
    if is_repeated:
        yield Fault(
            f"{where}.currency", "duplicate-rate", f"a rate of {rate.currency} is given twice", "keep one of them"
        )  # fmt: skip
    if exact(rate.rate) <= 0:
        yield Fault(
            f"{where}.rate", "amount", f"{rate.rate} is no exchange rate",
            f"write how many {own or 'units'} one {rate.currency} is",
        )  # fmt: skip


def _code(where: str, currency: str) -> Iterator[Fault]:
    try:
        minor_digits(currency)
    except MoneyError as error:
        yield Fault(where, "amount", error.message, error.next_step)


def _purchase(purchase: Purchase, campaign: Campaign) -> Iterator[Fault]:
    devices = sorted({candidate.device for candidate in campaign.candidates})
    if purchase.device not in devices:
        yield Fault(
            "purchase.device", "other-device",
            f'the purchase is of "{purchase.device}", which no candidate was measured on',
            f"write the device's name as recorded; candidates name: {', '.join(devices) or 'none'}",
        )  # fmt: skip
    for name in ("price", "residual", "monthly_cost"):
        yield from _not_negative(f"purchase.{name}", getattr(purchase, name), purchase.currency)
    if exact(purchase.residual) > exact(purchase.price) >= 0:
        yield Fault(
            "purchase.residual", "amount",
            f"a residual of {purchase.residual} is more than the price of {purchase.price}",
            "write what the machine is worth at the end of its life",
        )  # fmt: skip


def _not_negative(where: str, amount: str, currency: str) -> Iterator[Fault]:
    faults = list(_code(where.rpartition(".")[0] + ".currency", currency))
    if not faults and exact(amount) < 0:
        faults = [Fault(where, "amount", f"{amount} {currency} is negative", "write what is paid")]
    yield from faults


def _staff(where: str, staff: StaffHours) -> Iterator[Fault]:
    if staff.basis == "assumed" and staff.by is None:
        yield Fault(
            where, "assumed-by-nobody", f"{staff.hours} hours of {staff.role} are assumed, but not by whom",
            'add by = "name of the person who answers for it"',
        )  # fmt: skip
    yield from _not_negative(f"{where}.rate_per_hour", staff.rate_per_hour, staff.currency)
