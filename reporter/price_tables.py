"""The tables `packages` and `calendar`: every price and hour as a figure with the basis of what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from collector.contract.campaign import Campaign
from collector.contract.money import exact, rounded
from collector.contract.offers import PACKAGE_DAYS, Offer

from .book import Book, hours, ref, row
from .dossier import Row, Sentence
from .offered import Offered
from .packages import LOADING, PROCESSING, Need, Package, offer_price
from .selection import Standing
from .wording import sentence

WANTED = "campaign/volume/wanted_documents"
"""What the buyer wants is a choice: it is no input that could weaken a basis."""
CORPORA = "campaign/volume/corpora_wanted"
TIE = "campaign/objective/tie_percent"
DEADLINE = "campaign/objective/deadline_h"


def package_key(standing: Standing, offer: Offer, days: int) -> str:
    """Return the row key of a package."""
    return f"{standing.key}~{offer.id}~{days}d"


def package_figure(standing: Standing, package: Package, column: str) -> str:
    """Return the id of a package's figure."""
    return f"packages/{package_key(standing, package.offer, package.days)}/{column}"


def needed_figure(standing: Standing) -> str:
    """Return the id of a candidate's needed hours."""
    return f"calendar/{standing.key}/needed_hours"


def offer_figure(offer: Offer, days: int) -> str:
    """Return the id of an offer's price of one package."""
    return f"offers/{offer.id}/price_{days}_days"


def put_price_tables(book: Book, standings: Sequence[Standing], campaign: Campaign) -> None:
    """Add the campaign's own figures and the tables `packages` and `calendar`."""
    _campaign_figures(book, campaign)
    calendar = [entry for standing in standings if standing.need for entry in _calendar(book, standing, standing.need)]
    packages = [
        entry
        for standing in standings
        for offered in standing.offered
        for entry in _packages(book, standing, offered, campaign)
    ]
    book.put("calendar", "one row per (candidate, phase)", calendar)
    book.put("packages", "one row per (candidate, offer, days)", packages)


def _campaign_figures(book: Book, campaign: Campaign) -> None:
    wanted = campaign.corpora_wanted * campaign.documents_per_corpus
    book.given(WANTED, wanted, "documents", "assumed")
    book.given(CORPORA, campaign.corpora_wanted, "corpora", "assumed")
    book.given(TIE, float(exact(campaign.objective.tie_percent)), "percent", "assumed")
    if campaign.deadline_h is not None:
        book.given(DEADLINE, float(exact(campaign.deadline_h)), "hours", "assumed")
    for offer in campaign.offers:
        for days in PACKAGE_DAYS:
            price = offer_price(offer, days)
            if price is not None:
                book.given(
                    offer_figure(offer, days), price.minor_units, "minor_units", offer.basis, currency=offer.currency
                )


def _calendar(book: Book, standing: Standing, need: Need) -> list[Row]:
    """Return a row per phase and add the sum of the foreseen ones."""
    assert standing.configuration is not None
    measured = {
        PROCESSING: standing.configuration.corpus_figure_ids,
        LOADING: standing.configuration.loading_figure_ids,
    }
    formulas = {
        PROCESSING: (
            f"median(measure_ns) / {need.measured_documents} documents x {need.wanted_documents} documents"
            + (", assumes linear" if need.is_extrapolated else "")
        ),
        LOADING: "load_ns + warmup_ns, once",
    }
    rows, parts = [], []
    for phase in need.phases:
        name = f"calendar/{standing.key}~{phase.phase}/hours"
        said: list[Sentence] = []
        if phase.duration_ns is None:
            book.given(name, None, "hours", phase.basis, missing_reason="not_foreseen")
            said = [sentence("calendar_not_foreseen")]
        elif phase.phase in measured and not measured[phase.phase]:
            book.given(name, None, "hours", "measured", missing_reason="not_measured")
        elif phase.phase in measured:
            value = hours(phase.duration_ns)
            book.derived(
                measured[phase.phase], figure_id=name, value=value, unit="hours", formula=formulas[phase.phase]
            )
            parts.append(name)
        else:
            book.given(name, hours(phase.duration_ns), "hours", phase.basis)
            parts.append(name)
        labels = {"candidate": standing.label, "phase": phase.phase, "by": phase.by or ""}
        rows.append(row(f"{standing.key}~{phase.phase}", labels, {"hours": name}, *said))
    book.derived(
        parts, figure_id=needed_figure(standing), value=hours(need.total_ns), unit="hours",
        formula="sum of the calendar's phases",
    )  # fmt: skip
    return rows


def _packages(book: Book, standing: Standing, offered: Offered, campaign: Campaign) -> list[Row]:
    offer = offered.offer
    is_valid = offer.retrieved <= campaign.as_of <= offer.valid_until
    labels = {
        "candidate": standing.label, "offer": offer.id, "provider": offer.provider,
        "pricing_class": offer.pricing_class, "source": offer.source, "retrieved": offer.retrieved.isoformat(),
        "valid_until": offer.valid_until.isoformat(), "basis": offer.basis, "is_valid": "yes" if is_valid else "no",
    }  # fmt: skip
    if offered.mismatch is not None:
        return [
            row(
                package_key(standing, offer, days), {**labels, "days": str(days)}, {},
                sentence("package_mismatch"),
            )
            for days in PACKAGE_DAYS
            if offer_price(offer, days) is not None
        ]  # fmt: skip
    return [_package(book, standing, package, labels, campaign) for package in offered.packages]


def _package(book: Book, standing: Standing, package: Package, labels: dict[str, str], campaign: Campaign) -> Row:
    offer, count = package.offer, package.bought

    def name(column: str) -> str:
        return package_figure(standing, package, column)

    needed, price = needed_figure(standing), offer_figure(offer, package.days)
    book.derived(
        [needed], figure_id=name("package_count"), value=count, unit="packages",
        formula=f"ceil(needed hours / {package.days * 24} h)",
    )  # fmt: skip
    paid = book.derived(
        [needed], figure_id=name("paid_hours"), value=hours(package.paid_ns), unit="hours",
        formula=f"{count} x {package.days * 24} h",
    )  # fmt: skip
    book.derived(
        [paid, needed], figure_id=name("idle_hours"), value=hours(package.idle_ns), unit="hours",
        formula="paid hours - needed hours",
    )  # fmt: skip
    formulas = _price_formulas(offer, count)
    for column, amount in (
        ("price_net", package.price.net), ("tax", package.price.tax), ("price_gross", package.price.gross),
    ):  # fmt: skip
        book.derived(
            [needed, price], figure_id=name(column), value=amount.minor_units, unit="minor_units",
            currency=offer.currency, formula=formulas[column],
        )  # fmt: skip
    book.derived(
        [price], figure_id=name("unit_net"), value=package.unit_net.minor_units, unit="minor_units",
        currency=offer.currency, formula=formulas["unit_net"],
    )  # fmt: skip
    cost = _cost_per_corpus(book, standing, package, campaign)
    said = [cost]
    if not package.is_valid:
        said.append(sentence("package_expired", date="~" + campaign.as_of.isoformat()))
    if standing.late_ns is not None:
        said.append(sentence("package_deadline"))
    cells = ("package_count", "paid_hours", "idle_hours", "price_net", "tax", "price_gross", "cost_per_corpus")
    return row(
        package_key(standing, offer, package.days),
        {**labels, "days": str(package.days)},
        {**{column: name(column) for column in cells}, "needed_hours": needed}, *said,
    )  # fmt: skip


def _price_formulas(offer: Offer, count: int) -> dict[str, str]:
    """Return column -> how it is computed: of net, tax and gross only the tax is ever rounded."""
    paid, rate = f"{count} x price of one package", offer.tax_percent
    if offer.prices_are == "net":
        return {
            "price_net": paid, "tax": f"price_net x {rate} / 100, rounded once, half away from zero",
            "price_gross": "price_net + tax", "unit_net": "price of one package",
        }  # fmt: skip
    share = f"{rate} / (100 + {rate})"
    return {
        "price_net": "price_gross - tax", "tax": f"price_gross x {share}, rounded once, half away from zero",
        "price_gross": paid,
        "unit_net": f"price of one package - its tax (price x {share}, rounded half away from zero)",
    }  # fmt: skip


def _cost_per_corpus(book: Book, standing: Standing, package: Package, campaign: Campaign) -> Sentence:
    """Add the net price over the corpora that are complete and accepted: the wanted ones, or none at all."""
    name, net = package_figure(standing, package, "cost_per_corpus"), package_figure(standing, package, "price_net")
    corpora = campaign.corpora_wanted if standing.is_deliverable else 0
    formula = f"{package.price.net.decimal()} {package.offer.currency} net / {corpora} accepted corpora"
    if corpora == 0:
        book.derived(
            [net], figure_id=name, value=None, unit="minor_units", formula=formula, currency=package.offer.currency,
            missing_reason="not_defined",
        )  # fmt: skip
        return sentence(_why_not_defined(standing), paid=ref(net))
    book.derived(
        [net], figure_id=name, value=rounded(Fraction(package.price.net.minor_units, corpora)), unit="minor_units",
        formula=formula, currency=package.offer.currency,
    )  # fmt: skip
    return sentence("cost_per_corpus", paid=ref(net), corpora=ref(CORPORA))


def _why_not_defined(standing: Standing) -> str:
    """Return the sentence that says why no corpus counts, although documents of it may have been accepted."""
    if standing.configuration is not None and not standing.configuration.is_complete:
        return "cost_not_defined_incomplete"
    return "cost_not_defined_not_judged" if standing.state == "not_judged" else "cost_not_defined"
