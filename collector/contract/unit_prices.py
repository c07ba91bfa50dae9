"""Prices that know what they buy: a package or an hour, of the node or of one card. Two units are never mixed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar, overload

from .errors import DossierError
from .money import Money, exact, minor_digits, rounded
from .offers import Offer


class PriceUnitError(DossierError):
    """Two prices of different units met, or of different currencies."""


@dataclass(frozen=True)
class NodePackage:
    """So many whole days of the node with all its cards."""

    days: int


@dataclass(frozen=True)
class CardPackage:
    """So many whole days of one card."""

    days: int


@dataclass(frozen=True)
class NodeHour:
    """One hour of the node with all its cards."""


@dataclass(frozen=True)
class CardHour:
    """One hour of one card."""


U = TypeVar("U", NodePackage, CardPackage, NodeHour, CardHour)


@dataclass(frozen=True, eq=False)
class Price(Generic[U]):
    """An exact amount of `currency` (in its major unit, not rounded) for one `unit`.

    Adding or comparing prices of two units is a type error, and PriceUnitError where it is tried all the same: they
    are converted first, through the number of cards, of packages or of hours.
    """

    amount: Fraction
    currency: str
    unit: U

    def _same(self, other: Price[U]) -> Fraction:
        if (self.unit, self.currency) != (other.unit, other.currency):
            raise PriceUnitError(
                f"{self} and {other} cannot be added or compared",
                next_step="convert one of them with for_cards, for_packages or for_hours",
            )
        return other.amount

    def __add__(self, other: Price[U]) -> Price[U]:
        return Price(self.amount + self._same(other), self.currency, self.unit)

    def __lt__(self, other: Price[U]) -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: Price[U]) -> bool:
        return self.amount <= self._same(other)

    def __eq__(self, other: object) -> bool:
        return self.amount == self._same(other) if isinstance(other, Price) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.amount, self.currency, self.unit))

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} per {self.unit}"


def node_package(offer: Offer, days: int, cards: int) -> Price[NodePackage] | None:
    """Return what one package of so many days costs for the cards rented together; null where it has no price."""
    text = {3: offer.price_3_days, 7: offer.price_7_days, 30: offer.price_30_days}[days]
    if text is None:
        return None
    if offer.prices_per == "card":
        return for_cards(Price(exact(text), offer.currency, CardPackage(days)), cards)
    return Price(exact(text), offer.currency, NodePackage(days))


def node_hour(offer: Offer, cards: int) -> Price[NodeHour] | None:
    """Return what one hour costs for the cards rented together; null where the offer has no price of an hour."""
    if offer.price_hour is None:
        return None
    if offer.prices_per == "card":
        return for_cards(Price(exact(offer.price_hour), offer.currency, CardHour()), cards)
    return Price(exact(offer.price_hour), offer.currency, NodeHour())


@overload
def for_cards(price: Price[CardPackage], cards: int) -> Price[NodePackage]: ...
@overload
def for_cards(price: Price[CardHour], cards: int) -> Price[NodeHour]: ...
def for_cards(price: Price[CardPackage] | Price[CardHour], cards: int) -> Price[NodePackage] | Price[NodeHour]:
    """Return what so many cards cost together."""
    if isinstance(price.unit, CardPackage):
        return Price(price.amount * cards, price.currency, NodePackage(price.unit.days))
    return Price(price.amount * cards, price.currency, NodeHour())


def for_packages(price: Price[NodePackage], count: int) -> Money:
    """Return what so many packages cost, rounded once."""
    return _money(price.amount * count, price.currency)


def for_hours(price: Price[NodeHour], hours: Fraction) -> Money:
    """Return what so many hours cost, rounded once."""
    return _money(price.amount * hours, price.currency)


@overload
def per_card(price: Price[NodePackage], cards: int) -> Price[CardPackage]: ...
@overload
def per_card(price: Price[NodeHour], cards: int) -> Price[CardHour]: ...
def per_card(price: Price[NodePackage] | Price[NodeHour], cards: int) -> Price[CardPackage] | Price[CardHour]:
    """Return a node's price divided by its cards: a convention of speech. No card can be rented at it."""
    if isinstance(price.unit, NodePackage):
        return Price(price.amount / cards, price.currency, CardPackage(price.unit.days))
    return Price(price.amount / cards, price.currency, CardHour())


def _money(amount: Fraction, currency: str) -> Money:
    return Money(rounded(amount * 10 ** minor_digits(currency)), currency)
