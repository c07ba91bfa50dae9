"""The tables about offers: what blocks one, bills line by line, written quotes recomputed, exchange rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from collector.contract.campaign import Campaign
from collector.contract.money import minor_digits
from collector.contract.offers import PACKAGE_DAYS, Offer
from collector.contract.tariffs import Line, Tariff
from collector.contract.unit_prices import per_card

from .book import Book, ref, row
from .dossier import Row, Sentence
from .exchange import campaign_currency
from .offered import Offered
from .packages import Mismatch, Package, cheapest, offer_price
from .quotes import QuoteCheck, quote_checks
from .selection import Standing
from .wording import sentence


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


def offer_labels(standing: Standing, offered: Offered, campaign: Campaign) -> dict[str, str]:
    """Return what identifies one offer for one candidate, and whether it holds on the campaign's date."""
    offer = offered.offer
    is_valid = offer.retrieved <= campaign.as_of <= offer.valid_until
    return {
        "candidate": standing.label, "offer": offer.id, "provider": offer.provider,
        "pricing_class": offer.pricing_class, "source": offer.source, "retrieved": offer.retrieved.isoformat(),
        "valid_until": offer.valid_until.isoformat(), "basis": offer.basis, "is_valid": "yes" if is_valid else "no",
        "blocked": offered.blocked or "", "currency": offer.currency,
    }  # fmt: skip


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


def put_offers(book: Book, standings: Sequence[Standing], campaign: Campaign) -> None:
    """Add the tables `offers`, `price_lines`, `quote_lines` and `exchange_rates`."""
    pairs = [(standing, offered) for standing in standings for offered in standing.offered]
    used = {offered.offer.id: offered.offer for _, offered in pairs}
    quotes = [entry for offer in used.values() for entry in _quote_rows(book, offer)]
    if quotes:
        book.put("quote_lines", "one row per (offer, line of its quote), then the sum of each package", quotes)
    book.put("offers", "one row per (candidate, offer)", [_offer(book, s, o, campaign) for s, o in pairs])
    lines = [entry for s, o in pairs for entry in _line_rows(book, s, o)]
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
    if tariff.package is None or tariff.rented_cards == 1 or tariff.offer.prices_per == "card":
        return
    single = per_card(tariff.package, tariff.rented_cards)
    assert tariff.days is not None
    name = book.derived(
        [offer_figure(tariff.offer, tariff.days)], figure_id=f"offers/{key}/per_card", value=float(single.amount),
        unit="amount", currency=single.currency, formula=f"price of one package / {tariff.rented_cards} cards",
    )  # fmt: skip
    yield sentence("offer_per_card", amount=ref(name), days=str(tariff.days))


def _step(seconds: int) -> str:
    for name, size in (("h", 3600), ("min", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def quote_key(offer: Offer, check: QuoteCheck) -> str:
    """Return the row key of a line of a quote, or of the sum of one package."""
    return f"{offer.id}~{check.days}d~{'sum' if check.place is None else check.place}"


def _quote_rows(book: Book, offer: Offer) -> Iterator[Row]:
    for check in quote_checks(offer):
        key, cells = quote_key(offer, check), dict[str, str | None]()
        inputs = [book.given(f"quote_lines/{key}/printed", check.printed.minor_units, "minor_units", offer.basis,
                             currency=offer.currency)]  # fmt: skip
        cells["printed"] = inputs[0]
        formula = "sum of the printed amounts"
        if check.place is not None:
            line = offer.quote_lines[check.place]
            formula = "quantity x unit price, rounded once"
            for column, text in (("quantity", line.quantity), ("unit_price", line.unit_price)):
                cells[column] = book.given(f"quote_lines/{key}/{column}", text, "text", offer.basis)
            inputs = [name for column in ("quantity", "unit_price") if (name := cells[column]) is not None]
        for column, amount, made in (
            ("computed", check.computed, formula), ("difference", check.difference, "printed - computed"),
        ):  # fmt: skip
            cells[column] = book.derived(
                inputs, figure_id=f"quote_lines/{key}/{column}", value=amount.minor_units, unit="minor_units",
                currency=offer.currency, formula=made,
            )  # fmt: skip
        labels = {
            "offer": offer.id,
            "days": str(check.days),
            "text": check.text,
            "kind": "sum" if not check.text else "",
        }
        yield row(key, labels, cells)


def _line_rows(book: Book, standing: Standing, offered: Offered) -> Iterator[Row]:
    """Return every line of every bill; those of the offer's cheapest tariff are the ones shown."""
    best = cheapest(offered.packages)
    for package in offered.packages:
        if len(package.lines) == 1 and not package.tariff.idle_cards and package.tariff.package is not None:
            continue
        for place, line in enumerate(package.lines):
            yield _line(book, standing, package, place, line, is_shown=package is best)
        if package.tariff.idle_cards:
            yield _idle(book, standing, package, is_shown=package is best)


def _line_labels(standing: Standing, package: Package, *, is_shown: bool) -> dict[str, str]:
    return {
        "candidate": standing.label, "offer": package.offer.id, "tariff": package.tariff.term,
        "is_shown": "yes" if is_shown else "no",
    }  # fmt: skip


def _line(book: Book, standing: Standing, package: Package, place: int, line: Line, *, is_shown: bool) -> Row:
    offer, tariff = package.offer, package.tariff
    key = f"{standing.key}~{offer.id}~{tariff.term}~{place}"
    quantity, unit_price, kind = line.quantity, line.unit_price, line.kind.__str__()
    if offer.prices_per == "card" and line.kind in ("packages", "hours"):
        quantity, unit_price, kind = quantity * tariff.rented_cards, unit_price / tariff.rented_cards, f"card_{kind}"
    inputs = [f"calendar/{standing.key}/needed_hours", offer_inputs(offer, tariff)[place]]
    names = {column: f"price_lines/{key}/{column}" for column in ("quantity", "unit_price", "amount")}
    book.derived(
        inputs, figure_id=names["quantity"], value=_number(quantity), unit="count", formula=f"per {kind}"
    )  # fmt: skip
    book.given(names["unit_price"], _decimal(unit_price, minor_digits(offer.currency)), "text", offer.basis)
    book.derived(
        inputs, figure_id=names["amount"], value=line.amount.minor_units, unit="minor_units", currency=offer.currency,
        formula="quantity x unit price, rounded once",
    )  # fmt: skip
    return row(key, _line_labels(standing, package, is_shown=is_shown) | {"kind": kind, "name": line.name}, {**names})


def _idle(book: Book, standing: Standing, package: Package, *, is_shown: bool) -> Row:
    """Return the line that says how many cards are paid for and idle; it has no amount of its own."""
    key = f"{standing.key}~{package.offer.id}~{package.tariff.term}~idle"
    tariff = package.tariff
    idle = book.derived(
        [f"calendar/{standing.key}/needed_hours", offer_inputs(package.offer, tariff)[0]],
        figure_id=f"price_lines/{key}/quantity", value=tariff.idle_cards, unit="count",
        formula=f"{tariff.rented_cards} cards rented - {tariff.used_cards} used",
    )  # fmt: skip
    labels = _line_labels(standing, package, is_shown=is_shown) | {"kind": "idle_cards", "name": ""}
    return row(key, labels, {"quantity": idle}, sentence("line_idle_cards", cards=ref(idle)))


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _decimal(value: Fraction, least_digits: int) -> str:
    """Return a fraction that came from a decimal as that decimal, with the decimals of the currency at least."""
    for digits in range(least_digits, least_digits + 10):
        scaled = value * 10**digits
        if scaled.denominator == 1:
            whole = str(abs(scaled.numerator)).rjust(digits + 1, "0")
            sign = "-" if scaled < 0 else ""
            return sign + (f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole)
    return str(float(value))
