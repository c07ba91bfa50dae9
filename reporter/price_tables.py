"""The table `packages`: every price and hour as a figure with the basis of what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from collector.contract.campaign import Campaign
from collector.contract.money import exact, minor_digits
from collector.contract.offers import PACKAGE_DAYS, Offer
from collector.contract.tariffs import NS_PER_HOUR

from .book import Book, hours, ref, row
from .break_even_tables import put_break_even
from .calendar_tables import calendar_rows
from .calendar_tables import needed_figure as needed_figure
from .dossier import Row, Sentence
from .offer_figures import exchange_inputs, offer_inputs, put_offer_figures
from .offer_tables import offer_labels, put_offers
from .offered import Offered
from .optional_tables import put_optional_costs
from .packages import Package, corpora_fit, offer_price
from .selection import Standing
from .wording import sentence

WANTED = "campaign/volume/wanted_documents"
"""What the buyer wants is a choice: it is no input that could weaken a basis."""
CORPORA = "campaign/volume/corpora_wanted"
TIE = "campaign/objective/tie_percent"
DEADLINE = "campaign/objective/deadline_h"


def package_key(standing: Standing, offer: Offer, term: str) -> str:
    """Return the row key of a package; `term` is `3d`, `7d`, `30d` or `hour`."""
    return f"{standing.key}~{offer.id}~{term}"


def package_figure(standing: Standing, package: Package, column: str) -> str:
    """Return the id of a package's figure."""
    return f"packages/{package_key(standing, package.offer, package.tariff.term)}/{column}"


def compared_figure(standing: Standing, package: Package) -> str:
    """Return the id of the net price in the currency everything is compared in."""
    is_own = package.compared.net.currency == package.offer.currency
    return package_figure(standing, package, "price_net" if is_own else "compared_net")


def bought(standing: Standing, package: Package) -> tuple[str, dict[str, str]]:
    """Return the ending of a sentence's key, and what it says of the quantity: packages of days, or hours."""
    if package.days is None:
        return "_hourly", {"hours": ref(package_figure(standing, package, "paid_hours"))}
    return "", {"packages": ref(package_figure(standing, package, "package_count")), "days": str(package.days)}


def put_price_tables(book: Book, standings: Sequence[Standing], campaign: Campaign) -> None:
    """Add the campaign's own figures and the tables of calendar, packages and offers."""
    _campaign_figures(book, campaign)
    put_offer_figures(book, campaign)
    calendar = [
        entry for standing in standings if standing.need for entry in calendar_rows(book, standing, standing.need)
    ]
    packages = [
        entry
        for standing in standings
        for offered in sorted(standing.offered, key=lambda offered: offered.blocked is not None)
        for entry in _packages(book, standing, offered, campaign)
    ]
    book.put("calendar", "one row per (candidate, phase)", calendar)
    book.put("packages", "one row per (candidate, offer, term)", packages)
    put_offers(book, standings, campaign)
    put_break_even(book, standings, campaign)
    put_optional_costs(book, standings, campaign)


def _campaign_figures(book: Book, campaign: Campaign) -> None:
    wanted = campaign.corpora_wanted * campaign.documents_per_corpus
    book.given(WANTED, wanted, "documents", "assumed")
    book.given(CORPORA, campaign.corpora_wanted, "corpora", "assumed")
    book.given(TIE, float(exact(campaign.objective.tie_percent)), "percent", "assumed")
    if campaign.deadline_h is not None:
        book.given(DEADLINE, float(exact(campaign.deadline_h)), "hours", "assumed")


def _packages(book: Book, standing: Standing, offered: Offered, campaign: Campaign) -> list[Row]:
    """Return a row per tariff of one offer; of one that is not priced for this candidate, a row with the reason."""
    labels = offer_labels(standing, offered, campaign)
    if offered.blocked == "mismatch":
        offer = offered.offer
        terms = [f"{days}d" for days in PACKAGE_DAYS if offer_price(offer, days) is not None]
        return [
            row(package_key(standing, offer, term), _termed(labels, term), {}, sentence("package_mismatch"))
            for term in (terms or ["hour"])
        ]
    if offered.blocked == "no_price":
        key = package_key(standing, offered.offer, "none")
        name = book.given(
            f"packages/{key}/price_net", None, "minor_units", offered.offer.basis, missing_reason="price_unknown",
            currency=offered.offer.currency,
        )  # fmt: skip
        return [row(key, _termed(labels, ""), {"price_net": name}, sentence("package_no_price"))]
    return [_package(book, standing, package, labels, campaign) for package in offered.packages]


def _termed(labels: dict[str, str], term: str) -> dict[str, str]:
    return {**labels, "tariff": term, "days": term.removesuffix("d") if term != "hour" else ""}


def _package(book: Book, standing: Standing, package: Package, labels: dict[str, str], campaign: Campaign) -> Row:
    cells = [*_hours(book, standing, package), *_prices(book, standing, package)]
    cells += _capacity(book, standing, package, campaign)
    said = [_cost_per_corpus(book, standing, package, campaign)]
    cells.append("cost_per_corpus")
    if labels["is_valid"] == "no":
        said.append(sentence("package_expired", date="~" + campaign.as_of.isoformat()))
    if standing.late_ns is not None:
        said.append(sentence("package_deadline"))
    return row(
        package_key(standing, package.offer, package.tariff.term), _termed(labels, package.tariff.term),
        {**{c: package_figure(standing, package, c) for c in cells}, "needed_hours": needed_figure(standing)}, *said,
    )  # fmt: skip


def _hours(book: Book, standing: Standing, package: Package) -> list[str]:
    """Add packages bought, hours paid, idle and used; return their columns."""
    needed, days, count = needed_figure(standing), package.days, package.bought

    def put(column: str, value: float, formula: str, *inputs: str) -> str:
        return book.derived(
            [needed, *inputs], figure_id=package_figure(standing, package, column), value=value,
            unit="percent" if column == "used_percent" else "hours", formula=formula,
        )  # fmt: skip

    columns = ["paid_hours", "idle_hours", "used_percent"]
    if days is None:
        paid = put("paid_hours", hours(package.paid_ns), _billing(package.offer))
    else:
        book.derived(
            [needed], figure_id=package_figure(standing, package, "package_count"), value=count, unit="packages",
            formula=f"ceil(needed hours / {days * 24} h)",
        )  # fmt: skip
        columns.insert(0, "package_count")
        is_whole = package.paid_ns == count * days * 24 * NS_PER_HOUR
        paid = put("paid_hours", hours(package.paid_ns), f"{count} x {days * 24} h" + ("" if is_whole else ", billed"))
    put("idle_hours", hours(package.idle_ns), "paid hours - needed hours", paid)
    used = float(100 * package.needed_ns / package.paid_ns) if package.paid_ns else 0.0
    put("used_percent", used, "100 x needed hours / paid hours", paid)
    return columns


def _billing(offer: Offer) -> str:
    """Return how a rental by the hour is rounded."""
    return f"needed hours rounded up to {offer.billing_step_s} s, at least {offer.minimum_hours} h"


def _prices(book: Book, standing: Standing, package: Package) -> list[str]:
    """Add fees, net, tax, gross, the price of one unit and the net price in the campaign's currency."""
    offer, needed = package.offer, needed_figure(standing)
    inputs = offer_inputs(offer, package.tariff)
    formulas = _price_formulas(package)

    def put(column: str, minor_units: int, names: list[str], currency: str = offer.currency) -> None:
        book.derived(
            names, figure_id=package_figure(standing, package, column), value=minor_units, unit="minor_units",
            currency=currency, formula=formulas[column],
        )  # fmt: skip

    columns = ["price_net", "tax", "price_gross"]
    if offer.fees:
        put("fees", package.fees.minor_units, [needed, *inputs[1:]])
        columns.insert(0, "fees")
    for column, amount in zip(("price_net", "tax", "price_gross"), package.price, strict=True):
        put(column, amount.minor_units, [needed, *inputs])
    put("unit_net", package.unit_net.minor_units, inputs[:1])
    if package.compared.net.currency != offer.currency:
        names = [package_figure(standing, package, "price_net"), *exchange_inputs(offer.currency)]
        put("compared_net", package.compared.net.minor_units, names, package.compared.net.currency)
        columns.append("compared_net")
    return columns


def _price_formulas(package: Package) -> dict[str, str]:
    """Return column -> how it is computed: of net, tax and gross only the tax is ever rounded."""
    offer, tariff, rate = package.offer, package.tariff, package.offer.tax_percent
    cards = f" of one card x {tariff.rented_cards} cards" if offer.prices_per == "card" else ""
    unit = "price of one package" if tariff.package else "price of one hour"
    count = f"{package.bought}" if tariff.package else f"{hours(package.paid_ns):g}"
    paid = f"{count} x {unit}{cards}" + (" + fees" if offer.fees else "")
    same = {"fees": "sum of the fees, each rounded once", "compared_net": "price_net x exchange rate, rounded once"}
    if offer.prices_are == "net":
        return same | {
            "price_net": paid, "tax": f"price_net x {rate} / 100, rounded once, half away from zero",
            "price_gross": "price_net + tax", "unit_net": unit + cards,
        }  # fmt: skip
    share = f"{rate} / (100 + {rate})"
    return same | {
        "price_net": "price_gross - tax", "tax": f"price_gross x {share}, rounded once, half away from zero",
        "price_gross": paid,
        "unit_net": f"{unit}{cards} - its tax (price x {share}, rounded half away from zero)",
    }  # fmt: skip


def _capacity(book: Book, standing: Standing, package: Package, campaign: Campaign) -> list[str]:
    """Add how many corpora fit in the time that is paid."""
    if standing.need is None:
        return []
    book.derived(
        [needed_figure(standing), package_figure(standing, package, "paid_hours")],
        figure_id=package_figure(standing, package, "corpora_fit"), unit="corpora",
        value=corpora_fit(standing.need, package.paid_ns, campaign.documents_per_corpus),
        formula="floor((paid hours - hours that do not grow) / hours per corpus), assumes linear",
    )  # fmt: skip
    return ["corpora_fit"]


def _cost_per_corpus(book: Book, standing: Standing, package: Package, campaign: Campaign) -> Sentence:
    """Add the net price over the corpora that are complete and accepted: the wanted ones, or none at all."""
    name, net = package_figure(standing, package, "cost_per_corpus"), package_figure(standing, package, "price_net")
    currency = package.offer.currency
    corpora = campaign.corpora_wanted if standing.is_deliverable else 0
    formula = f"{package.price.net.decimal()} {currency} net / {corpora} accepted corpora"
    if corpora == 0:
        book.derived(
            [net], figure_id=name, value=None, unit="amount", formula=formula, currency=currency,
            missing_reason="not_defined",
        )  # fmt: skip
        return sentence(_why_not_defined(standing), paid=ref(net))
    quotient = Fraction(package.price.net.minor_units, corpora * 10 ** minor_digits(currency))
    book.derived([net], figure_id=name, value=float(quotient), unit="amount", formula=formula, currency=currency)
    return sentence("cost_per_corpus", paid=ref(net), corpora=ref(CORPORA))


def _why_not_defined(standing: Standing) -> str:
    """Return the sentence that says why no corpus counts, although documents of it may have been accepted."""
    if standing.configuration is not None and not standing.configuration.is_complete:
        return "cost_not_defined_incomplete"
    return "cost_not_defined_not_judged" if standing.state == "not_judged" else "cost_not_defined"
