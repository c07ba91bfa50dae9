"""The table `gates`: each rule of the protocol on each configuration, in whole documents."""

from __future__ import annotations

from collections.abc import Sequence

from collector.contract.judging.gates import GateVerdict

from .book import Book, row
from .configurations import accepted_id, subset_row
from .dossier import Row
from .selection import Standing

_GATE_COLUMNS = ("counted", "limit", "document_count")


def gate_key(key: str, gate: GateVerdict) -> str:
    """Return the row key of one rule's verdict."""
    return f"{key}~{gate.rule}" + (f"~{gate.subset}" if gate.subset else "")


def gate_figure(key: str, gate: GateVerdict, column: str, *, prefix: str = "") -> str:
    """Return the id of a figure of one rule's verdict."""
    return f"{prefix}gates/{gate_key(key, gate)}/{column}"


def put_gates(book: Book, standings: Sequence[Standing], *, prefix: str = "") -> None:
    """Add the table `gates`; counts are derived from the judged documents, limits from the protocol's rules.

    `prefix` names a stage other than the judged one, whose tables the book then shows.
    """
    rows = [
        _gate(book, standing, place, prefix)
        for standing in standings
        if standing.configuration is not None
        for place in range(len(standing.gates))
    ]
    book.put(prefix + "gates", "one row per (configuration, rule)", rows)


def _gate(book: Book, standing: Standing, place: int, prefix: str) -> Row:
    configuration, gate = standing.configuration, standing.gates[place]
    assert configuration is not None
    key, names = configuration.key, {c: gate_figure(configuration.key, gate, c, prefix=prefix) for c in _GATE_COLUMNS}
    counted, limit, formula = _gate_inputs(book, standing, gate, prefix)
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
    is_undecided = bool(standing.outcomes) and standing.outcomes[place] == "inconclusive"
    return row(
        gate_key(key, gate),
        {
            "label": standing.label, "rule": gate.rule, "subset": gate.subset or "",
            "result": "undecided" if is_undecided else "pass" if gate.has_passed else "fail",
            "threshold": gate.threshold,
        },
        names,
    )  # fmt: skip


def _gate_inputs(book: Book, standing: Standing, gate: GateVerdict, prefix: str) -> tuple[list[str], str, str]:
    """Return the figures a count is made of, and the formulas of limit and count."""
    key, reference = standing.key, standing.reference
    if gate.rule == "max_lost_points":
        assert reference is not None
        inputs = list(dict.fromkeys(accepted_id(name, prefix=prefix) for name in (reference.key, key)))
        limit = f"floor({gate.threshold} x documents / 100)"
        return inputs, limit, "accepted by the reference - accepted, repetition 1 of each"
    limit = f"ceil({gate.threshold} x documents / 100)"
    of_subset = subset_row(book, key, gate.subset) if gate.subset else None
    name = of_subset.cells["accepted_documents"] if of_subset is not None else accepted_id(key, prefix=prefix)
    return [name], limit, "accepted, repetition 1"
