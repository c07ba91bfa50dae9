"""At which price, volume or other declared input the answer changes: thresholds of what is rented."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor

from collector.contract.campaign import Campaign
from collector.contract.money import exact, minor_digits, percent_rate
from collector.contract.tariffs import bill

from .book import hours, ref
from .case import Case
from .dossier import Sentence
from .exchange import rate_of
from .figure_text import QUOTIENT_DECIMALS
from .offer_figures import offer_inputs
from .packages import Need, Package, documents_within
from .price_tables import bought, compared_figure, needed_figure, package_figure
from .selection import Standing
from .wording import sentence


def runner_up_price(case: Case) -> Iterator[Sentence]:
    """The price of one package, or of one hour, at which another would cost less than the best, all else being equal.

    Of the offers that the best one cannot rent too, for its price would fall as well: the cheapest. Under
    (P1 - fees) / n2 in the currency of that offer: what the best costs, less what the other pays beside its packages,
    shared by its packages.
    """
    found = _nearest_other(case)
    if found is None:
        return
    (second, other), first = found, case.selection.ranked[0]
    assert case.campaign is not None
    assert first.best is not None
    scale = 10 ** minor_digits(other.offer.currency)
    hour = other.tariff.hour if other.days is None else None
    unit, quantity = Fraction(other.unit_net.minor_units, scale), Fraction(other.bought)
    if hour is not None:
        is_gross = other.offer.prices_are == "gross"
        unit, quantity = hour.amount / (1 + percent_rate(other.offer.tax_percent) * is_gross), other.lines[0].quantity
    fees = max(Fraction(other.price.net.minor_units, scale) - unit * quantity, Fraction(0))
    threshold = (_in_currency_of(other, first.best, case.campaign) / scale - fees) / quantity
    finest = scale if hour is None else 10**QUOTIENT_DECIMALS
    stated = ceil(threshold * finest) if hour is None else floor(threshold * finest)
    if 0 < stated < floor(unit * finest):  # else the two would be printed alike
        yield _price_sentence(case, second, other, Fraction(stated, finest), unit)


def _nearest_other(case: Case) -> tuple[Standing, Package] | None:
    ranked = case.selection.ranked
    if case.campaign is None or case.campaign.objective.prefer != "cheapest" or len(ranked) < 2:
        return None
    shared = {offered.offer.id for offered in ranked[0].offered if offered.blocked is None}
    others = [
        (standing, package)
        for standing in ranked[1:]
        for offered in standing.offered
        if offered.blocked is None and offered.offer.id not in shared
        for package in offered.packages
        if package.is_valid
    ]
    return min(others, key=lambda pair: (pair[1].compared.net, pair[1].compared.gross), default=None)


def _price_sentence(case: Case, second: Standing, other: Package, below: Fraction, unit: Fraction) -> Sentence:
    first, currency = case.selection.ranked[0], other.offer.currency
    assert first.best is not None
    ending, units = bought(second, other)
    inputs = [compared_figure(first, first.best), units["packages" if ending == "" else "hours"].removeprefix("#")]
    formula = "(net price of the best, in this currency, - fees of this one) / packages or hours of this one, rounded "
    if ending == "":
        quoted = package_figure(second, other, "unit_net")
        name = case.book.derived(
            inputs, figure_id=f"what_if/{second.key}/package_price", unit="minor_units", currency=currency,
            value=int(below * 10 ** minor_digits(currency)), formula=formula + "up",
        )  # fmt: skip
    else:  # an hour's price may be finer than the currency
        quoted = case.book.derived(
            offer_inputs(other.offer, other.tariff)[:1], figure_id=f"what_if/{second.key}/hour_quoted", unit="amount",
            value=float(unit), currency=currency, formula="price of one hour, net, of all cards rented",
        )  # fmt: skip
        name = case.book.derived(
            inputs, figure_id=f"what_if/{second.key}/package_price", unit="amount", value=float(below),
            currency=currency, formula=formula + f"down to {QUOTIENT_DECIMALS} decimals",
        )  # fmt: skip
    days = {} if other.days is None else {"days": str(other.days)}
    return sentence("change_price" + ending, label=second.label, price=ref(name), quoted=ref(quoted), **days)


def _in_currency_of(other: Package, best: Package, campaign: Campaign) -> Fraction:
    """Return the net price of the best in minor units of the other's currency."""
    amount = Fraction(best.compared.net.minor_units)
    wanted, currency = best.compared.net.currency, other.offer.currency
    rate = rate_of(campaign, currency)
    if currency == wanted or rate is None:
        return amount
    return amount / exact(rate.rate) * Fraction(10) ** (minor_digits(currency) - minor_digits(wanted))


def volume(case: Case, winner: Standing) -> Iterator[Sentence]:
    """The largest number of documents that the packages bought still hold."""
    if winner.best is None or winner.need is None:
        return
    most = documents_within(winner.need, winner.best.paid_ns)
    name = case.book.derived(
        [needed_figure(winner), package_figure(winner, winner.best, "paid_hours")],
        figure_id=f"what_if/{winner.key}/most_documents", value=most, unit="documents",
        formula="floor((paid hours - hours that do not grow) / hours per document), assumes linear",
    )  # fmt: skip
    if winner.best.days is not None:
        yield sentence("change_volume", documents=ref(name), label=winner.label)
    else:
        yield _next_hours(case, winner, winner.need, winner.best, name)


def _next_hours(case: Case, winner: Standing, need: Need, best: Package, most: str) -> Sentence:
    """What one document more than fits costs where it is rented by the hour."""
    documents = documents_within(need, best.paid_ns) + 1
    more = bill(best.tariff, need.fixed_ns + need.ns_per_document * documents)
    paid, net = (package_figure(winner, best, column) for column in ("paid_hours", "price_net"))
    further = case.book.derived(
        [paid], figure_id=f"what_if/{winner.key}/next_hours", value=hours(more.paid_ns - best.paid_ns), unit="hours",
        formula="hours billed for one document more - paid hours",
    )  # fmt: skip
    difference = case.book.derived(
        [net], figure_id=f"what_if/{winner.key}/next_price", currency=best.offer.currency, unit="minor_units",
        value=more.price.net.minor_units - best.price.net.minor_units,
        formula="net price for one document more - net price",
    )  # fmt: skip
    return sentence(
        "change_volume_hourly", documents=ref(most), label=winner.label, hours=ref(further), difference=ref(difference)
    )


def varied(case: Case) -> Iterator[Sentence]:
    """Where a declared input changes the answer: prices as near as they do, else the nearest; others within the range.

    Acceptance is left to the rule that is met by the fewest documents. Near is measured in declared ranges.
    """
    of_price = next(_nearest_varied(case, ["price"]), None)
    of_others = next(_nearest_varied(case, ["restarts", "utilisation", "volume"]), None)
    if of_price is not None:
        yield of_price[1]
    if of_others is not None and (of_price is None or of_others[0] <= 1):
        yield of_others[1]


def _nearest_varied(case: Case, factors: Sequence[str]) -> Iterator[tuple[float, Sentence]]:
    near: list[tuple[float, Sentence]] = []
    for entry in case.book.rows("sensitivity"):
        factor = entry.labels.get("factor", "")
        width = case.book.figure(entry, "range")
        for said in entry.sentences if factor in factors and width is not None else ():
            side = "up" if said.key.startswith("sensitivity_up") else "down"
            change = case.book.figure(entry, f"changes_{side}")
            if change is None or not isinstance(change.value, int | float) or not width or not width.value:
                continue
            key = said.key.replace("sensitivity_", "change_varied_")
            told = sentence(key, varied=f"@varied_{factor}", **said.parameters)
            near.append((change.value / float(width.value), told))
    if near:
        yield min(near, key=lambda pair: pair[0])
