"""Which offers may win for a candidate, and why another cannot: every fault by its name, none of them silent."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest

from collector.contract.campaign import Calendar, Campaign, Candidate, Objective
from collector.contract.matching import Machine
from collector.contract.offers import ExchangeRate, Fee, Offer, QuoteLine
from collector.contract.tariffs import NS_PER_HOUR
from reporter.offered import Offered, offered
from reporter.packages import Need, calendar_need, cheapest
from reporter.quotes import quote_checks

AS_OF = dt.date(2026, 11, 30)
MACHINE = Machine("NVIDIA L40S", 4, 46_068 * 2**20, None, used_count=1)
FIELDS: dict[str, Any] = {
    "id": "o", "provider": "p", "device": "NVIDIA L40S", "pricing_class": "quote", "currency": "EUR",
    "price_7_days": "100.00", "tax_percent": "0", "basis": "quoted", "source": "s",
    "retrieved": dt.date(2026, 11, 1), "valid_until": dt.date(2026, 12, 1),
}  # fmt: skip


def offer(**more: Any) -> Offer:
    return Offer(**(FIELDS | more))


def need(hours: int) -> Need:
    return calendar_need(
        Calendar(), corpus_ns=Fraction(hours * NS_PER_HOUR), loading_ns=0, measured_documents=10, wanted_documents=10
    )


def made(*offers: Offer, rates: list[ExchangeRate] | None = None, currency: str | None = None) -> list[Offered]:
    candidate = Candidate(id="c", label="c", variant="v", device="NVIDIA L40S", offers=[o.id for o in offers])
    campaign = Campaign(
        format=1, question="q", dossier_id="d", as_of=AS_OF, issued=AS_OF, documents_per_corpus=10, currency=currency,
        objective=Objective(prefer="cheapest"), candidates=[candidate], offers=list(offers),
        exchange_rates=rates or [],
    )  # fmt: skip
    return offered(candidate, MACHINE, need(80), campaign)


def winner(entries: list[Offered]) -> str | None:
    best = cheapest([package for entry in entries for package in entry.packages if package.is_valid])
    return best.offer.id if best is not None else None


@pytest.mark.parametrize(
    ("more", "blocked"),
    [
        ({}, None),
        ({"excludes": ["storage"]}, "incomplete"),
        ({"price_7_days": None}, "no_price"),
        ({"valid_until": dt.date(2026, 11, 29)}, "expired"),
        ({"retrieved": dt.date(2026, 12, 1)}, "expired"),
        ({"device": "NVIDIA L4"}, "mismatch"),
        ({"mig_profile": "1g.12gb"}, "mismatch"),
        ({"device_memory_gib": "24"}, "mismatch"),
        ({"currency": "USD"}, "no_rate"),
        ({"device_count": 4}, None),
    ],
)
def test_g06_a_cheaper_offer_that_lacks_something_stays_with_its_reason_and_cannot_win(
    more: dict[str, Any], blocked: str | None
) -> None:
    cheap = {"id": "cheap", "price_7_days": "1.00"} | more
    entries = made(offer(), offer(**cheap))
    assert [entry.blocked for entry in entries] == [None, blocked]
    assert winner(entries) == ("o" if blocked else "cheap")


def test_g06_of_three_offers_the_one_without_a_price_is_unknown_and_two_are_ranked() -> None:
    entries = made(offer(), offer(id="unknown", price_7_days=None), offer(id="dear", price_7_days="200.00"))
    assert [(entry.offer.id, entry.blocked, len(entry.packages)) for entry in entries] == [
        ("o", None, 1), ("unknown", "no_price", 0), ("dear", None, 1),
    ]  # fmt: skip


def test_g01_a_configuration_on_one_of_four_cards_may_rent_a_node_of_one_or_of_eight() -> None:
    entries = made(offer(id="one"), offer(id="eight", device_count=8, price_7_days="700.00"))
    assert [entry.blocked for entry in entries] == [None, None]
    assert [entry.packages[0].tariff.idle_cards for entry in entries] == [0, 7]
    single = offer(id="few", device_count=2, prices_per="card", minimum_cards=2)
    assert made(single)[0].packages[0].price.net.decimal() == "200.00"


def lines(*amounts: tuple[str, str, str]) -> list[QuoteLine]:
    return [QuoteLine(text=f"line {q}", days=7, quantity=q, unit_price=u, amount=a) for q, u, a in amounts]


@pytest.mark.parametrize(
    ("quote", "differences"),
    [
        (lines(("7", "14.00", "98.00"), ("1", "2.00", "2.00")), ["0.00", "0.00", "0.00"]),
        (lines(("7", "14.00", "98.00")), ["0.00", "2.00"]),
        (lines(("7", "14.00", "99.00"), ("1", "1.00", "1.00")), ["1.00", "0.00", "0.00"]),
        # a provider's own example: 1000 GB x 0.00013 x 0.5 h printed as 0.00, truly 0.07
        (lines(("500", "0.00013", "0.00"), ("1", "100.00", "100.00")), ["-0.07", "0.00", "0.00"]),
    ],
)
def test_a_quote_is_multiplied_and_added_again_and_cannot_win_where_it_does_not_hold(
    quote: list[QuoteLine], differences: list[str]
) -> None:
    asked = offer(quote_lines=quote)
    assert [check.difference.decimal() for check in quote_checks(asked)] == differences
    holds = set(differences) == {"0.00"}
    assert [entry.blocked for entry in made(asked)] == [None if holds else "arithmetic"]
    assert winner(made(asked)) == ("o" if holds else None)


USD = ExchangeRate(currency="USD", rate="1.10", on=dt.date(2026, 11, 28), source="bank")


def test_g17_without_a_rate_the_ranking_stays_inside_one_currency() -> None:
    offers = [offer(id="u1", currency="USD"), offer(id="u2", currency="USD", price_7_days="90.00"), offer(id="e")]
    entries = made(*offers)
    assert [entry.blocked for entry in entries] == [None, None, "no_rate"]
    assert winner(entries) == "u2"


def test_g17_with_a_dated_rate_there_is_one_ranking_and_amounts_keep_their_currency() -> None:
    offers = [offer(id="e", price_7_days="100.00"), offer(id="u", currency="USD", price_7_days="90.00")]
    entries = made(*offers, rates=[USD])
    assert [entry.blocked for entry in entries] == [None, None]
    (dollars,) = entries[1].packages
    assert (dollars.price.net.currency, dollars.price.net.decimal()) == ("USD", "90.00")
    assert (dollars.compared.net.currency, dollars.compared.net.decimal()) == ("EUR", "99.00")
    assert winner(entries) == "u"
    assert winner(made(*offers, rates=[USD.__class__(currency="USD", rate="1.12", on=USD.on, source="bank")])) == "e"


def test_g17_a_converted_total_is_rounded_once_between_currencies_of_other_decimals() -> None:
    dong = ExchangeRate(currency="VND", rate="0.0000345", on=AS_OF, source="bank")
    fees = [Fee(name="f", amount="1", per="rental")]
    (entry,) = made(offer(currency="VND", price_7_days="2899999", fees=fees), rates=[dong], currency="KWD")
    assert entry.packages[0].price.net.decimal() == "2900000"
    assert entry.packages[0].compared.net.decimal() == "100.050"


def test_less_time_wins_where_two_tariffs_cost_the_same() -> None:
    (entry,) = made(offer(price_3_days="50.00", price_7_days="100.00"))
    best = cheapest(entry.packages)
    assert best is not None
    assert best.days == 3
