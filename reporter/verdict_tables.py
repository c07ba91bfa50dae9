"""The table `candidates`: where each configuration stands, and the sentence that says why."""

from __future__ import annotations

import msgspec

from collector.contract.campaign import Campaign

from .book import Book, hours, row
from .configurations import Configuration, subset_row
from .dossier import Row, Status
from .price_tables import compared_figure, package_figure
from .selection import Selection, Standing
from .verdicts import verdict
from .wording import sentence

_ORDER: dict[Status, int] = {
    "recommended": 0, "equivalent": 1, "feasible": 2, "reference": 3, "not_priced": 4, "excluded": 5, "undecided": 6,
    "rejected": 7, "failed": 8, "not_measured": 9,
}  # fmt: skip
_NO_PRICE = ("no_price", "expired", "mismatch", "no_candidate", "incomplete", "arithmetic", "no_rate")
_NOT_FEASIBLE = ("headroom", "first_token", "answer", "impossible_peak", "coverage", "failing", "cache_reuse")


def put_candidates(book: Book, selection: Selection, campaign: Campaign | None, *, is_refuted: bool = False) -> None:
    """Add the table `candidates` in the order of the decision page.

    is_refuted: the recommended one does not meet the rules on the test documents.
    """
    _most_scored(book, selection)
    place = {standing.key: index for index, standing in enumerate(selection.ranked)}
    entries = [(status_of(standing, selection), standing) for standing in selection.standings]
    entries.sort(key=lambda entry: (_ORDER[entry[0]], place.get(entry[1].key, len(place))))
    rows = [_candidate(book, status, standing, selection, campaign) for status, standing in entries]
    if is_refuted and selection.overridden is None:
        rows = [
            msgspec.structs.replace(entry, sentences=[sentence("verdict_recommended_not_confirmed")])
            if entry.labels["status"] == "recommended"
            else entry
            for entry in rows
        ]
    book.put("candidates", "one row per candidate, then per measured configuration that is none", rows)


def _most_scored(book: Book, selection: Selection) -> None:
    """Add the most documents judged of one that may win, where another had fewer."""
    if not any(standing.blocked == "coverage" for standing in selection.standings):
        return
    free = [s.configuration for s in selection.standings if s.has_qualified and s.blocked is None and s.configuration]
    book.derived(
        [f"coverage/{c.key}/scored_documents" for c in free],
        figure_id="selection/all/most_scored_documents", value=max(c.scored or 0 for c in free), unit="documents",
        formula="highest of scored_documents among those that may win",
    )  # fmt: skip


def status_of(standing: Standing, selection: Selection) -> Status:
    """Return the one word for where a configuration stands."""
    if standing is selection.winner:
        return "recommended"
    if standing in selection.equivalents:
        return "equivalent"
    if standing.state == "not_measured":
        return "not_measured"
    if standing.state == "failed":
        return "failed"
    if standing.is_reference and standing.blocked not in _NOT_FEASIBLE:
        return "reference"
    if standing.state == "inconclusive":
        return "undecided"
    if not standing.has_qualified:
        return "rejected"
    if standing.blocked == "deadline" or standing.blocked in _NOT_FEASIBLE:
        return "excluded"
    return "not_priced" if standing.blocked in _NO_PRICE else "feasible"


def _candidate(book: Book, status: Status, standing: Standing, selection: Selection, campaign: Campaign | None) -> Row:
    configuration, best = standing.configuration, standing.best
    labels = {"label": standing.label, "status": status}
    if standing is selection.overridden:
        labels["is_chosen"] = "yes"
    elif standing is selection.preferred and selection.overridden is None:
        labels["is_preferred"] = "yes"
    cells: dict[str, str | None] = {}
    if configuration is not None:
        labels |= {
            "variant": configuration.variant, "device": configuration.device, "purpose": configuration.purpose,
            "configuration_key": configuration.key, "batch": str(configuration.batch),
            "concurrency": str(configuration.concurrency),
        }  # fmt: skip
        if configuration.environment_id is not None:
            labels["environment_id"] = configuration.environment_id
        labels |= {"model": configuration.model, "factor": configuration.factor}
        if configuration.engine:
            labels["engine"] = configuration.engine
        if configuration.reference_key is not None:
            labels["reference_key"] = configuration.reference_key
        if configuration.peak is not None:
            labels["peak_scope"] = configuration.peak.peak.memory_scope
        cells = _measured_cells(book, configuration)
    if best is not None and standing.has_qualified:
        labels["package_days"] = str(best.days or "")
        cells["package_price"] = compared_figure(standing, best)
        if best.days is not None:
            cells["package_count"] = package_figure(standing, best, "package_count")
    return row(standing.key, labels, cells, verdict(book, standing, selection, campaign))


def corpus_figure(key: str) -> str:
    """Return the id of a configuration's hours for the measured documents."""
    return f"candidates/{key}/corpus_hours"


def _measured_cells(book: Book, configuration: Configuration) -> dict[str, str | None]:
    key, cells = configuration.key, dict[str, str | None]()
    quality = book.row("quality", key)
    if quality is not None:
        cells["accepted_documents"] = quality.cells["accepted_documents"]
        cells["document_count"] = quality.cells["document_count"]
    for name in configuration.subsets:
        of_subset = subset_row(book, key, name)
        if of_subset is not None:
            cells[f"subset_accepted:{name}"] = of_subset.cells["accepted_documents"]
            cells[f"subset_documents:{name}"] = of_subset.cells["document_count"]
    if configuration.peak is not None:
        cells["peak_bytes"] = configuration.peak.figure_id
    if configuration.corpus_ns is not None:
        cells["corpus_hours"] = book.derived(
            configuration.corpus_figure_ids, figure_id=corpus_figure(key), value=hours(configuration.corpus_ns),
            unit="hours", formula=f"median of measure_ns over {configuration.repetition_count} passes",
            n=configuration.repetition_count,
        )  # fmt: skip
    return cells
