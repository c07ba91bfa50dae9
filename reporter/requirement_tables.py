"""The table `requirements`: what the objective asks beside quality, with the figures of each answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from collector.contract.campaign import Campaign
from collector.contract.money import exact
from collector.contract.offers import Offer

from .book import Book, ref, row
from .configurations import Configuration
from .dossier import Row, Sentence
from .feasibility import METRIC, Requirement
from .selection import Standing
from .wording import sentence

_LIMITS = {"first_token": "max_first_token_s", "answer": "max_answer_s"}


def put_requirements(book: Book, standings: Sequence[Standing], campaign: Campaign) -> None:
    """Add the table; it has no rows where the objective asks for quality alone."""
    rows = [
        _row(book, standing, requirement, campaign)
        for standing in standings
        if standing.configuration is not None and standing.configuration.accepted is not None
        for requirement in standing.requirements
    ]
    book.put("requirements", "one row per (configuration, requirement)", rows)


def requirement_figures(book: Book, standing: Standing, requirement: Requirement, campaign: Campaign) -> dict[str, str]:
    """Add the figures of a requirement and return column -> id; without those that were not read."""
    assert standing.configuration is not None
    if requirement.kind == "headroom":
        return _memory(book, standing.configuration, requirement, campaign)
    return _time(book, standing.configuration, requirement, campaign)


def peak_figures(book: Book, configuration: Configuration) -> dict[str, str]:
    """Add how much of its card a peak takes, and return peak, capacity and percent; none where either was not read."""
    peak = configuration.peak
    if peak is None or peak.capacity_bytes is None or peak.capacity_id is None:
        return {}
    found = {"peak": peak.figure_id, "capacity": peak.capacity_id}
    return found | {"percent": _percent(book, configuration, found, peak.capacity_bytes)}


def capacity_figure(book: Book, configuration: Configuration, offer: Offer | None) -> str | None:
    """Return the figure of one card's memory: what the offer names, added here, else what was measured."""
    if offer is not None and offer.device_memory_gib is not None:
        capacity_bytes = math.floor(exact(offer.device_memory_gib) * 2**30)
        return book.given(f"offers/{offer.id}/device_memory_bytes", capacity_bytes, "bytes", offer.basis)
    return configuration.peak.capacity_id if configuration.peak is not None else None


def requirement_sentence(
    book: Book, standing: Standing, requirement: Requirement, campaign: Campaign, *, key: str, **words: str
) -> Sentence:
    """Return the sentence `key` about a requirement, with those of its figures that the sentence prints."""
    figures = {
        name: ref(name_id) for name, name_id in requirement_figures(book, standing, requirement, campaign).items()
    }
    texts = {"percentile": str(requirement.percentile), "needed": str(requirement.needed_requests)}
    return sentence(key, **_wanted(key, figures | texts), **words)


def _wanted(key: str, known: dict[str, str]) -> dict[str, str]:
    from .wording import SENTENCES, placeholders

    wording = SENTENCES[key]
    names = placeholders(wording.message) | placeholders(wording.plural or "")
    return {name: value for name, value in known.items() if name in names}


def _memory(book: Book, configuration: Configuration, requirement: Requirement, campaign: Campaign) -> dict[str, str]:
    peak = configuration.peak
    if peak is None or requirement.capacity is None or requirement.measured is None or requirement.limit is None:
        return {}
    offer = next((offer for offer in campaign.offers if offer.id == requirement.offer_id), None)
    capacity = capacity_figure(book, configuration, offer)
    assert capacity is not None
    found = {"peak": peak.figure_id, "capacity": capacity}
    prefix = f"requirements/{configuration.key}~headroom"
    found["free"] = book.derived(
        found.values(), figure_id=f"{prefix}/free_bytes", value=math.floor(requirement.measured), unit="bytes",
        formula="memory of the card - peak_bytes",
    )  # fmt: skip
    percent = campaign.objective.min_headroom_percent or "0"
    found["wanted"] = book.derived(
        [found["capacity"]], figure_id=f"{prefix}/wanted_bytes", value=math.ceil(requirement.limit), unit="bytes",
        formula=f"{percent} x memory of the card / 100, rounded up",
    )  # fmt: skip
    return found | {"percent": _percent(book, configuration, found, math.floor(requirement.capacity))}


def _percent(book: Book, configuration: Configuration, found: dict[str, str], capacity_bytes: int) -> str:
    peak = configuration.peak
    assert peak is not None
    of_offer = found["capacity"].startswith("offers/")
    return book.derived(
        [found["peak"], found["capacity"]],
        figure_id=f"requirements/{configuration.key}~headroom/{'offered' if of_offer else 'measured'}_percent",
        value=round(100 * peak.peak.peak_bytes / capacity_bytes) if capacity_bytes else None, unit="percent",
        formula="100 x peak_bytes / memory of the card, in whole percent", missing_reason="not_defined",
    )  # fmt: skip


def _time(book: Book, configuration: Configuration, requirement: Requirement, campaign: Campaign) -> dict[str, str]:
    field = _LIMITS[requirement.kind]
    text = getattr(campaign.objective, field)
    found = {"limit": book.given(f"campaign/objective/{field}", float(exact(text)), "seconds", "assumed")}
    reading = configuration.times.get(METRIC[requirement.kind])
    if requirement.result != "not_shown" and reading is not None and requirement.percentile is not None:
        found["measured"] = reading.seconds[requirement.percentile][1]
    name = f"requirements/{configuration.key}~{requirement.kind}/requests"
    found["requests"] = reading.count_id if reading else book.given(name, 0, "requests", "measured")
    return found


def _row(book: Book, standing: Standing, requirement: Requirement, campaign: Campaign) -> Row:
    cells: dict[str, str | None] = {**requirement_figures(book, standing, requirement, campaign)}
    labels = {
        "label": standing.label, "configuration_key": standing.key, "kind": requirement.kind,
        "result": requirement.result, "percentile": str(requirement.percentile or ""),
        "offer": requirement.offer_id or "",
    }  # fmt: skip
    key = f"requirement_{requirement.kind}"
    if requirement.result == "not_shown":
        of_memory = "requirement_claimed" if book.rows_of("engine_phases", standing.key) else "requirement_not_read"
        key = of_memory if requirement.kind == "headroom" else "requirement_not_shown"
    said = requirement_sentence(book, standing, requirement, campaign, key=key)
    return row(f"{standing.key}~{requirement.kind}", labels, cells, said)
