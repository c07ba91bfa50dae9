"""The tables `candidates` and `gates`: where each configuration stands, and the sentence that says why."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from collector.contract.campaign import Campaign
from collector.contract.judging.gates import GateVerdict

from .book import Book, hours, ref, row
from .configurations import Configuration, accepted_id, subset_row
from .dossier import Row, Sentence, Status, Unit
from .price_tables import TIE, needed_figure, package_figure
from .selection import Selection, Standing, merit
from .wording import sentence

_ORDER: dict[Status, int] = {
    "recommended": 0, "equivalent": 1, "feasible": 2, "reference": 3, "not_priced": 4, "rejected": 5, "failed": 6,
    "not_measured": 7,
}  # fmt: skip
_FORMULAS = {
    "cheapest": "price_net - price_net of the best",
    "most_headroom": "headroom of the best - headroom",
    "fastest_corpus": "needed hours - needed hours of the best",
    "most_corpora": "corpora of the best - corpora",
}


_GATE_COLUMNS = ("counted", "limit", "document_count")


def gate_key(key: str, gate: GateVerdict) -> str:
    """Return the row key of one rule's verdict."""
    return f"{key}~{gate.rule}" + (f"~{gate.subset}" if gate.subset else "")


def gate_figure(key: str, gate: GateVerdict, column: str, *, prefix: str = "") -> str:
    """Return the id of a figure of one rule's verdict."""
    return f"{prefix}gates/{gate_key(key, gate)}/{column}"


def put_gates(book: Book, standings: Sequence[Standing], reference: Configuration | None, *, prefix: str = "") -> None:
    """Add the table `gates`; counts are derived from the judged documents, limits from the protocol's rules.

    `prefix` names a stage other than the judged one, whose tables the book then shows.
    """
    rows = [
        _gate(book, standing.configuration, gate, reference, prefix)
        for standing in standings
        if standing.configuration is not None
        for gate in standing.gates
    ]
    book.put(prefix + "gates", "one row per (configuration, rule)", rows)


def _gate(
    book: Book, configuration: Configuration, gate: GateVerdict, reference: Configuration | None, prefix: str
) -> Row:
    key, names = configuration.key, {c: gate_figure(configuration.key, gate, c, prefix=prefix) for c in _GATE_COLUMNS}
    counted, limit, formula = _gate_inputs(book, key, gate, reference, prefix)
    stage = f" ({prefix.removesuffix('_')} documents)" if prefix else ""
    total = f"{prefix}quality/{key}/document_count"
    of_subset = subset_row(book, key, gate.subset) if gate.subset else None
    if of_subset is not None:
        total = of_subset.cells["document_count"]
    book.derived(counted, figure_id=names["counted"], value=gate.counted, unit="documents", formula=formula + stage)
    book.derived([total], figure_id=names["limit"], value=gate.limit, unit="documents", formula=limit + stage)
    book.derived(
        [total], figure_id=names["document_count"], value=gate.document_count, unit="documents",
        formula="documents that the protocol expects" + stage,
    )  # fmt: skip
    return row(
        gate_key(key, gate),
        {
            "label": configuration.label, "rule": gate.rule, "subset": gate.subset or "",
            "result": "pass" if gate.has_passed else "fail", "threshold": gate.threshold,
        },
        names,
    )  # fmt: skip


def _gate_inputs(
    book: Book, key: str, gate: GateVerdict, reference: Configuration | None, prefix: str
) -> tuple[list[str], str, str]:
    """Return the figures a count is made of, and the formulas of limit and count."""
    if gate.rule == "max_lost_points":
        assert reference is not None
        inputs = list(dict.fromkeys(accepted_id(name, prefix=prefix) for name in (reference.key, key)))
        limit = f"floor({gate.threshold} x documents / 100)"
        return inputs, limit, "accepted by the reference - accepted, repetition 1 of each"
    limit = f"ceil({gate.threshold} x documents / 100)"
    of_subset = subset_row(book, key, gate.subset) if gate.subset else None
    name = of_subset.cells["accepted_documents"] if of_subset is not None else accepted_id(key, prefix=prefix)
    return [name], limit, "accepted, repetition 1"


def put_candidates(book: Book, selection: Selection, campaign: Campaign | None, *, is_refuted: bool = False) -> None:
    """Add the table `candidates` in the order of the decision page.

    is_refuted: the recommended one does not meet the rules on the test documents.
    """
    place = {standing.key: index for index, standing in enumerate(selection.ranked)}
    entries = [(status_of(standing, selection), standing) for standing in selection.standings]
    entries.sort(key=lambda entry: (_ORDER[entry[0]], place.get(entry[1].key, len(place))))
    rows = [_candidate(book, status, standing, selection, campaign) for status, standing in entries]
    if is_refuted:
        rows = [
            msgspec.structs.replace(entry, sentences=[sentence("verdict_recommended_not_confirmed")])
            if entry.labels["status"] == "recommended"
            else entry
            for entry in rows
        ]
    book.put("candidates", "one row per candidate, then per measured configuration that is none", rows)


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
    if standing.is_reference:
        return "reference"
    if not standing.has_qualified:
        return "rejected"
    return "not_priced" if standing.blocked in ("no_price", "expired", "mismatch", "no_candidate") else "feasible"


def _candidate(book: Book, status: Status, standing: Standing, selection: Selection, campaign: Campaign | None) -> Row:
    configuration, best = standing.configuration, standing.best
    labels = {"label": standing.label, "status": status}
    cells: dict[str, str | None] = {}
    if configuration is not None:
        labels |= {
            "variant": configuration.variant, "device": configuration.device, "purpose": configuration.purpose,
            "configuration_key": configuration.key, "batch": str(configuration.batch),
            "concurrency": str(configuration.concurrency),
        }  # fmt: skip
        if configuration.environment_id is not None:
            labels["environment_id"] = configuration.environment_id
        if configuration.peak is not None:
            labels["peak_scope"] = configuration.peak.peak.memory_scope
        cells = _measured_cells(book, configuration)
    if best is not None and standing.has_qualified:
        labels["package_days"] = str(best.days)
        cells["package_price"] = package_figure(standing, best, "price_net")
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


def verdict(book: Book, standing: Standing, selection: Selection, campaign: Campaign | None) -> Sentence:
    """Return the sentence of the verdict column."""
    if standing is selection.winner:
        return sentence("verdict_recommended")
    if standing in selection.equivalents:
        return sentence("verdict_equivalent", tie=ref(TIE))
    match standing.state:
        case "not_measured":
            return sentence("verdict_not_measured")
        case "failed":
            return failure(standing)
        case "not_judged":
            return sentence("verdict_rejected_no_reference")
        case "rejected":
            return rejection(standing)
        case "qualified":
            said = _behind(book, standing, selection, campaign) or _blocked(book, standing, campaign)
            return said or sentence("verdict_reference" if standing.is_reference else "verdict_meets_rules")


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
    if standing.is_reference:
        return sentence("verdict_reference_rejected", accepted=counted, needed=limit)
    if gate.rule == "max_lost_points":
        return sentence("verdict_rejected_lost", lost=counted, allowed=limit)
    if gate.subset:
        return sentence("verdict_rejected_subset", accepted=counted, needed=limit, subset=gate.subset)
    return sentence("verdict_rejected_accepted", accepted=counted, needed=limit)


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
    value, unit, inputs = _gap(gap, [standing, best], prefer)
    currency = standing.best.offer.currency if prefer == "cheapest" and standing.best else None
    return book.derived(
        inputs, figure_id=f"candidates/{standing.key}/behind_best", value=value, unit=unit,
        formula=_FORMULAS[prefer], currency=currency,
    )  # fmt: skip


def _gap(gap: Fraction, both: Sequence[Standing], prefer: str) -> tuple[int | float, Unit, list[str]]:
    if prefer == "cheapest":
        return int(gap), "minor_units", [package_figure(s, s.best, "price_net") for s in both if s.best]
    if prefer == "most_headroom":
        return int(gap), "bytes", [name for s in both for name in headroom_inputs(s)]
    needed = [needed_figure(s) for s in both]
    return (hours(gap), "hours", needed) if prefer == "fastest_corpus" else (int(gap), "corpora", needed)


def headroom_inputs(standing: Standing) -> list[str]:
    """Return the figures a headroom is computed from: the memory peaks and the device's memory."""
    peak = standing.configuration.peak if standing.configuration else None
    return [] if peak is None else [peak.figure_id, *([peak.capacity_id] if peak.capacity_id else [])]


def _blocked(book: Book, standing: Standing, campaign: Campaign | None) -> Sentence | None:
    prefix = "verdict_reference_" if standing.is_reference else "verdict_"
    match standing.blocked:
        case "no_price":
            return sentence(prefix + "no_price")
        case "mismatch":
            return sentence(prefix + "mismatch")
        case "expired":
            assert campaign is not None
            return sentence(prefix + "expired", date="~" + campaign.as_of.isoformat())
        case "deadline":
            return sentence(prefix + "deadline", hours=ref(late_figure(book, standing)))
        case "no_duration":
            return sentence("verdict_no_duration")
        case "no_headroom":
            return sentence("verdict_no_headroom")
        case "no_candidate" | None:
            if standing.is_reference or campaign is None:
                return None
            return sentence("verdict_no_price")


def late_figure(book: Book, standing: Standing) -> str:
    """Add the hours beyond the deadline and return the figure's id."""
    assert standing.late_ns is not None
    return book.derived(
        [needed_figure(standing)], figure_id=f"candidates/{standing.key}/late_hours", value=hours(standing.late_ns),
        unit="hours", formula="needed hours - deadline",
    )  # fmt: skip
