"""The one sentence, with figures, that says why a configuration was selected, rejected or left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from collector.contract.campaign import Campaign
from collector.contract.judging.gates import GateVerdict

from .book import Book, hours, ref
from .dossier import Sentence, Unit, number
from .exchange import campaign_currency, rate_of
from .feasibility import Requirement
from .gate_tables import gate_figure, gate_key
from .judgement import LOSS, more_documents
from .load_series import judged_row, reused
from .offer_figures import exchange_inputs
from .offered import OfferBlocked
from .packages import Package
from .price_tables import DEADLINE, TIE, compared_figure, needed_figure
from .requirement_tables import capacity_figure, peak_figures, requirement_sentence
from .selection import Selection, Standing, merit
from .wording import sentence

_FORMULAS = {
    "cheapest": "net price - net price of the best",
    "most_headroom": "headroom of the best - headroom",
    "fastest_corpus": "needed hours - needed hours of the best",
    "most_corpora": "corpora of the best - corpora",
}


def verdict(book: Book, standing: Standing, selection: Selection, campaign: Campaign | None) -> Sentence:
    """Return the sentence of the verdict column."""
    if standing is selection.overridden and campaign is not None and campaign.override is not None:
        return _overridden(book, standing, selection, campaign)
    return by_rules(book, standing, selection, campaign)


def by_rules(book: Book, standing: Standing, selection: Selection, campaign: Campaign | None) -> Sentence:
    """Return what the rules and the objective say, whatever a person decided."""
    if standing is selection.winner:
        return sentence("verdict_recommended")
    if standing is selection.preferred:
        return sentence("verdict_preferred", tie=ref(TIE))
    if standing in selection.equivalents:
        return sentence("verdict_equivalent", tie=ref(TIE))
    match standing.state:
        case "not_measured":
            return sentence("verdict_not_measured")
        case "failed":
            return failure(standing)
        case "not_judged":
            return _not_judged(book, standing)
        case "rejected":
            return rejection(standing)
        case "inconclusive":
            return undecided(book, standing)
        case "qualified":
            said = _behind(book, standing, selection, campaign) or blocked(book, standing, campaign)
            return said or sentence("verdict_reference" if standing.is_reference else "verdict_meets_rules")


def _overridden(book: Book, standing: Standing, selection: Selection, campaign: Campaign) -> Sentence:
    assert campaign.override is not None
    by = campaign.override.by
    if standing is selection.winner:
        return sentence("verdict_chosen", by=by)
    if not standing.has_qualified:
        return sentence("verdict_chosen_against", by=by)
    return sentence("verdict_chosen_instead", by=by)


def failure(standing: Standing) -> Sentence:
    """Return why no pass of a configuration was completed."""
    failed = standing.configuration.failed if standing.configuration else None
    if failed is None or failed.cause in ("", "unknown"):
        return sentence("verdict_failed_unknown")
    return sentence("verdict_failed", cause="@" + failed.cause, phase="@" + (failed.phase or "unknown_phase"))


def rejection(standing: Standing, *, prefix: str = "") -> Sentence:
    """Return the first rule that a configuration does not meet, or that documents are missing."""
    configuration, gate = standing.configuration, standing.worst_gate
    assert configuration is not None
    if not configuration.is_complete:
        return sentence(
            "verdict_rejected_incomplete", returned=ref(f"{prefix}quality/{configuration.key}/returned_documents"),
            expected=ref(f"{prefix}quality/{configuration.key}/document_count"),
        )  # fmt: skip
    assert gate is not None
    counted, limit = (
        ref(gate_figure(configuration.key, gate, column, prefix=prefix)) for column in ("counted", "limit")
    )
    if standing.is_reference and gate.subset:
        return sentence("verdict_reference_rejected_subset", subset=gate.subset, accepted=counted, needed=limit)
    if standing.is_reference:
        return sentence("verdict_reference_rejected", accepted=counted, needed=limit)
    if gate.rule == LOSS:
        return sentence("verdict_rejected_lost", lost=counted, allowed=limit)
    if gate.subset:
        return sentence("verdict_rejected_subset", accepted=counted, needed=limit, subset=gate.subset)
    return sentence("verdict_rejected_accepted", accepted=counted, needed=limit)


def undecided(book: Book, standing: Standing, *, prefix: str = "") -> Sentence:
    """Return the first rule whose interval decides nothing, and how many more documents could."""
    configuration, gate = standing.configuration, standing.worst_gate
    assert configuration is not None
    assert gate is not None
    counted, limit, documents = (
        ref(gate_figure(configuration.key, gate, column, prefix=prefix))
        for column in ("counted", "limit", "document_count")
    )
    named = {"documents": documents}
    if gate.subset:
        key, named = "verdict_undecided_subset", named | {"subset": gate.subset, "accepted": counted, "needed": limit}
    elif gate.rule != LOSS:
        key, named = "verdict_undecided_accepted", named | {"accepted": counted, "needed": limit}
    else:
        key, named = "verdict_undecided_lost", named | {"lost": counted, "allowed": limit}
    more = more_documents_figure(book, standing, gate, prefix=prefix)
    return sentence(key, **named) if more is None else sentence(f"{key}_more", more=ref(more), **named)


def more_documents_figure(book: Book, standing: Standing, gate: GateVerdict, *, prefix: str = "") -> str | None:
    """Add how many more documents would decide a rule and return the id; null where more of them alone would not."""
    more = more_documents(standing.configuration, gate) if standing.configuration is not None else None
    if more is None:
        return None
    if gate.rule == LOSS:
        inputs = [f"{prefix}paired/{standing.key}/{name}" for name in ("lost_documents", "gained_documents")]
        needed = "(z of the level + z of the power)^2 x discordant share / margin^2"
    else:
        inputs = [gate_figure(standing.key, gate, name, prefix=prefix) for name in ("counted", "document_count")]
        needed = (
            "((z of the level x sqrt(w (1 - w)) + z of the power x sqrt(s (1 - s))) / (s - w))^2 with s the accepted "
            f"share and w = {gate.threshold} percent"
        )
    return book.derived(
        inputs, figure_id=f"{prefix}what_if/{gate_key(standing.key, gate)}/more_documents", value=more,
        unit="documents", formula=f"{needed}, less the documents judged",
    )  # fmt: skip


def _not_judged(book: Book, standing: Standing) -> Sentence:
    if standing.configuration is not None and standing.configuration.has_other_prompts:
        return other_prompts(book, standing.key)
    own = standing.reference
    if own is None or own.accepted is None:
        return sentence("verdict_rejected_no_reference")
    lost, allowed = (f"gates/{own.key}~{LOSS}/{column}" for column in ("counted", "limit"))
    if lost not in book.figures:
        return sentence("verdict_rejected_no_reference")
    return sentence("verdict_reference_fails", reference=own.label, lost=ref(lost), allowed=ref(allowed))


def other_prompts(book: Book, key: str) -> Sentence:
    """Return how many of a configuration's prompts are not shown to be the reference's."""
    row = f"load_prompts/{key}"
    inputs = [f"{row}/{column}" for column in ("different_documents", "unknown_documents")]
    unlike = book.derived(
        inputs, figure_id=f"{row}/unlike_documents", unit="documents",
        formula="different_documents + unknown_documents",
        value=sum(int(number(book.figures[name]) or 0) for name in inputs),
    )  # fmt: skip
    return sentence("verdict_other_prompts", unlike=ref(unlike), documents=ref(f"{row}/document_count"))


def _behind(book: Book, standing: Standing, selection: Selection, campaign: Campaign | None) -> Sentence | None:
    """Return by how much a ranked one is behind the best, in the objective's own quantity."""
    if campaign is None or standing not in selection.ranked or standing is selection.ranked[0]:
        return None
    name = ref(difference_figure(book, standing, selection.ranked[0], campaign))
    prefer = campaign.objective.prefer
    if prefer == "cheapest":
        return sentence("verdict_reference_more" if standing.is_reference else "verdict_more", difference=name)
    if standing.is_reference:
        return sentence("verdict_reference")
    if prefer == "most_headroom":
        return sentence("verdict_less_headroom", difference=name)
    return sentence("verdict_slower" if prefer == "fastest_corpus" else "verdict_fewer_corpora", difference=name)


def difference_figure(book: Book, standing: Standing, best: Standing, campaign: Campaign) -> str:
    """Add how far a standing is behind the best, never negative, and return its id."""
    prefer = campaign.objective.prefer
    gap = merit(best, campaign) - merit(standing, campaign)
    value, unit, inputs = _gap(book, gap, [standing, best], prefer)
    return book.derived(
        inputs, figure_id=f"candidates/{standing.key}/behind_best", value=value, unit=unit,
        formula=_FORMULAS[prefer], currency=campaign_currency(campaign) if prefer == "cheapest" else None,
    )  # fmt: skip


def _gap(book: Book, gap: Fraction, both: Sequence[Standing], prefer: str) -> tuple[int | float, Unit, list[str]]:
    if prefer == "cheapest":
        return int(gap), "minor_units", [compared_figure(s, s.best) for s in both if s.best]
    if prefer == "most_headroom":
        return int(gap), "bytes", [name for s in both for name in headroom_inputs(book, s)]
    needed = [needed_figure(s) for s in both]
    return (hours(gap), "hours", needed) if prefer == "fastest_corpus" else (int(gap), "corpora", needed)


def headroom_inputs(book: Book, standing: Standing) -> list[str]:
    """Return the figures a headroom is computed from: the peak, and the memory of the card to be rented or measured."""
    configuration = standing.configuration
    if configuration is None or configuration.peak is None:
        return []
    capacity = capacity_figure(book, configuration, standing.best.offer if standing.best else None)
    return [configuration.peak.figure_id, *([capacity] if capacity else [])]


def missed(standing: Standing) -> Requirement | None:
    """Return the first requirement that is not met."""
    return next((requirement for requirement in standing.requirements if requirement.result != "met"), None)


def blocked(book: Book, standing: Standing, campaign: Campaign | None) -> Sentence | None:
    """Return why one that meets the rules cannot win; null where nothing but its being no candidate does."""
    prefix = "verdict_reference_" if standing.is_reference else "verdict_"
    stands = "@stands_reference" if standing.is_reference else "@stands_meets"
    out = "@stands_out_reference" if standing.is_reference else "@stands_out"
    match standing.blocked:
        case "no_price" | "mismatch":
            return sentence(prefix + standing.blocked)
        case "expired":
            assert campaign is not None
            return sentence(prefix + "expired", date="~" + campaign.as_of.isoformat())
        case "incomplete" | "arithmetic" | "no_rate":
            assert campaign is not None
            return _offers(standing, campaign, standing.blocked, stands)
        case "headroom" | "first_token" | "answer":
            assert campaign is not None
            return _requirement(book, standing, campaign, out)
        case "impossible_peak":
            assert standing.configuration is not None
            figures = {name: ref(name_id) for name, name_id in peak_figures(book, standing.configuration).items()}
            return sentence("verdict_impossible_peak", stands=out, **figures)
        case "deadline":
            return sentence(prefix + "deadline", hours=ref(late_figure(book, standing)), deadline=ref(DEADLINE))
        case "no_duration":
            return sentence("verdict_no_duration")
        case "no_headroom":
            return sentence("verdict_no_headroom")
        case "coverage":
            return _coverage(standing, out)
        case "failing" | "cache_reuse":
            return _unranked(book, standing, out)
        case "no_candidate" | None:
            if standing.is_reference or campaign is None:
                return None
            return sentence("verdict_no_price")


def _offers(standing: Standing, campaign: Campaign, reason: OfferBlocked, stands: str) -> Sentence:
    """Name the offers that share the reason; of incomplete ones what they leave out."""
    named = [
        offered.offer.id + (f" ({', '.join(offered.offer.excludes)})" if reason == "incomplete" else "")
        for offered in standing.offered
        if offered.blocked == reason
    ]
    parameters = {"currency": campaign_currency(campaign) or ""} if reason == "no_rate" else {}
    return sentence(f"verdict_{reason}", stands=stands, offers=", ".join(named), **parameters)


def _requirement(book: Book, standing: Standing, campaign: Campaign, stands: str) -> Sentence:
    requirement = missed(standing)
    assert requirement is not None
    key = f"verdict_{requirement.kind}"
    if requirement.result == "not_shown":
        key += "_not_shown"
    elif requirement.kind == "headroom" and campaign.objective.min_headroom_percent is None:
        key = "verdict_memory"
    return requirement_sentence(book, standing, requirement, campaign, key=key, stands=stands)


def _unranked(book: Book, standing: Standing, stands: str) -> Sentence:
    row = judged_row(book, standing.key)
    assert row is not None
    if standing.blocked == "failing":
        return sentence("verdict_failing", stands=stands, failed=ref(row.cells["failed_percent"]))
    figure = reused(book, row)
    assert figure is not None
    return sentence("verdict_cache_reuse", stands=stands, cached=ref(figure.figure_id))


def _coverage(standing: Standing, stands: str) -> Sentence:
    row = f"coverage/{standing.key}"
    return sentence(
        "verdict_coverage", stands=stands, judged=ref(f"{row}/scored_documents"),
        documents=ref(f"{row}/document_count"), most=ref("selection/all/most_scored_documents"),
    )  # fmt: skip


def late_figure(book: Book, standing: Standing) -> str:
    """Add the hours beyond the deadline and return the figure's id."""
    assert standing.late_ns is not None
    return book.derived(
        [needed_figure(standing)], figure_id=f"candidates/{standing.key}/late_hours", value=hours(standing.late_ns),
        unit="hours", formula="needed hours - deadline",
    )  # fmt: skip


def converted(standing: Standing, best: Package, campaign: Campaign | None) -> Iterator[Sentence]:
    """The price in the currency that everything is compared in, where the offer is in another one."""
    rate = rate_of(campaign, best.offer.currency) if campaign is not None else None
    if rate is not None:
        yield sentence(
            "reason_converted", home=best.compared.net.currency, net=ref(compared_figure(standing, best)),
            rate=ref(exchange_inputs(rate.currency)[0]), currency=rate.currency, date="~" + rate.on.isoformat(),
        )  # fmt: skip
