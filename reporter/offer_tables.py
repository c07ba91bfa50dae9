"""The tables about offers: what blocks one and what its price buys; bills, quotes and exchange rates beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from collector.contract.campaign import Campaign
from collector.contract.matching import Mismatch
from collector.contract.tariffs import Tariff
from collector.contract.unit_prices import per_card

from .bill_tables import line_rows, quote_key, quote_rows
from .book import Book, ref, row
from .dossier import Row, Sentence
from .exchange import campaign_currency
from .offer_figures import offer_inputs
from .offered import Offered
from .quotes import quote_checks
from .selection import Standing
from .wording import sentence


def offer_labels(standing: Standing, offered: Offered, campaign: Campaign) -> dict[str, str]:
    """Return what identifies one offer for one candidate, and whether it holds on the campaign's date."""
    offer = offered.offer
    return {
        "candidate": standing.label, "offer": offer.id, "provider": offer.provider,
        "pricing_class": offer.pricing_class, "source": offer.source, "retrieved": offer.retrieved.isoformat(),
        "valid_until": offer.valid_until.isoformat(), "basis": offer.basis,
        "is_valid": "yes" if offer.holds_on(campaign.as_of) else "no",
        "blocked": offered.blocked or "", "currency": offer.currency,
    }  # fmt: skip


def put_offers(book: Book, standings: Sequence[Standing], campaign: Campaign) -> None:
    """Add the tables `offers`, `price_lines`, `quote_lines` and `exchange_rates`."""
    pairs = [(standing, offered) for standing in standings for offered in standing.offered]
    used = {offered.offer.id: offered.offer for _, offered in pairs}
    quotes = [entry for offer in used.values() for entry in quote_rows(book, offer)]
    if quotes:
        book.put("quote_lines", "one row per (offer, line of its quote), then the sum of each package", quotes)
    book.put("offers", "one row per (candidate, offer)", [_offer(book, s, o, campaign) for s, o in pairs])
    lines = [entry for s, o in pairs for entry in line_rows(book, s, o)]
    if lines:
        book.put("price_lines", "one row per (candidate, offer, term, line of the bill)", lines)
    wanted = campaign_currency(campaign)
    rates = [
        row(
            rate.currency,
            {
                "currency": rate.currency, "wanted": wanted or "", "on": rate.on.isoformat(), "source": rate.source,
                "basis": rate.basis,
            },
            {"rate": f"exchange_rates/{rate.currency}/rate"},
        )
        for rate in campaign.exchange_rates
    ]  # fmt: skip
    if rates:
        book.put("exchange_rates", "one row per currency", rates)


def _offer(book: Book, standing: Standing, offered: Offered, campaign: Campaign) -> Row:
    labels = offer_labels(standing, offered, campaign)
    key = f"{standing.key}~{offered.offer.id}"
    return row(key, labels, {}, *_why(offered, campaign), *_facts(book, key, offered))


def _why(offered: Offered, campaign: Campaign) -> Iterator[Sentence]:
    """Return why an offer cannot win."""
    offer = offered.offer
    match offered.blocked:
        case "mismatch":
            assert offered.mismatch is not None
            yield _mismatch(offered.mismatch)
        case "no_price":
            yield sentence("offer_no_price")
        case "incomplete":
            yield sentence("offer_incomplete", excludes=", ".join(offer.excludes))
        case "arithmetic":
            wrong = next(check for check in quote_checks(offer) if check.difference.minor_units)
            key = quote_key(offer, wrong)
            name = "offer_wrong_sum" if wrong.place is None else "offer_wrong_line"
            said = {"days": str(wrong.days)} if wrong.place is None else {"text": wrong.text}
            yield sentence(
                name, printed=ref(f"quote_lines/{key}/printed"), computed=ref(f"quote_lines/{key}/computed"), **said
            )
        case "expired":
            dates = {"first": offer.retrieved, "last": offer.valid_until, "as_of": campaign.as_of}
            yield sentence("offer_expired", **{name: "~" + day.isoformat() for name, day in dates.items()})
        case "no_rate":
            yield sentence("offer_no_rate", currency=offer.currency, wanted=campaign_currency(campaign) or "")
        case None:
            return


def _mismatch(mismatch: Mismatch) -> Sentence:
    return sentence(
        f"offer_mismatch_{mismatch.reason}", offered=mismatch.offered, measured=mismatch.measured
    )  # fmt: skip


def _facts(book: Book, key: str, offered: Offered) -> Iterator[Sentence]:
    """Return what a price buys beside what is used, how hours are rounded, and what runs on while stopped."""
    offer = offered.offer
    if not offered.packages:
        return
    tariff = offered.packages[0].tariff
    if tariff.idle_cards:
        rented = book.given(f"offers/{key}/rented_cards", tariff.rented_cards, "count", "assumed")
        idle = book.given(f"offers/{key}/idle_cards", tariff.idle_cards, "count", "assumed")
        whole = "offer_idle_cards" if offer.prices_per == "node" else "offer_idle_minimum"
        yield sentence(whole, idle=ref(idle), rented=ref(rented))
    yield from _per_card(book, key, tariff)
    if offer.price_hour is not None:
        yield sentence(
            "offer_by_the_hour", price=ref(f"offers/{offer.id}/price_hour"), step=_step(offer.billing_step_s),
            minimum=offer.minimum_hours,
        )  # fmt: skip
    for fee in offer.fees:
        if fee.per == "gib_month":
            yield sentence("offer_storage", name=fee.name, quantity=fee.quantity or "", month=str(fee.month_h))


def _per_card(book: Book, key: str, tariff: Tariff) -> Iterator[Sentence]:
    """The price divided by the cards, where a node is sold whole: a manner of speaking, never a price."""
    if tariff.rented_cards == 1 or tariff.offer.prices_per == "card":
        return
    amount = Fraction(0)
    if tariff.package is not None:
        amount = per_card(tariff.package, tariff.rented_cards).amount
    elif tariff.hour is not None:
        amount = per_card(tariff.hour, tariff.rented_cards).amount
    unit = "hour" if tariff.package is None else "package"
    name = book.derived(
        offer_inputs(tariff.offer, tariff)[:1], figure_id=f"offers/{key}/per_card", value=float(amount), unit="amount",
        currency=tariff.offer.currency, formula=f"price of one {unit} / {tariff.rented_cards} cards",
    )  # fmt: skip
    if tariff.package is None:
        yield sentence("offer_per_card_hour", amount=ref(name))
    else:
        yield sentence("offer_per_card", amount=ref(name), days=str(tariff.days))


def _step(seconds: int) -> str:
    for name, size in (("h", 3600), ("min", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {name}"
    return f"{seconds} s"
