"""Subsets that a rule names: new failures against the reference, and what so few documents support."""

from __future__ import annotations

import msgspec

from collector.contract.protocol import Gates

from .book import Book, ref
from .dossier import Row
from .statistics import documents_for_bound, upper_bound
from .wording import sentence

SUBSET_LIMIT_PERCENT = 1
"""Share of new failures for which the documents needed are told."""


def put_critical_subsets(book: Book, gates: Gates) -> None:
    """Add the table `critical_subsets`; none where no rule names a subset."""
    names = {gate.subset for gate in gates.subsets}
    subsets = [_subset(book, r) for r in book.rows("paired_subsets") if r.labels["subset"] in names]
    if subsets:
        grain = "one row per (configuration other than the reference, subset that a rule names)"
        book.put("critical_subsets", grain, subsets)


def _subset(book: Book, found: Row) -> Row:
    """Return a critical subset's row: new failures, what so many documents support, and how many one percent needs."""
    failures, documents = book.whole(found, "lost_documents") or 0, book.whole(found, "document_count") or 0
    bound = upper_bound(failures, documents)
    counted = [found.cells["lost_documents"], found.cells["document_count"]]
    cells = {
        "document_count": found.cells["document_count"],
        "new_failures": found.cells["lost_documents"],
        "supported_percent": book.derived(
            counted, figure_id=f"critical_subsets/{found.key}/supported_percent", unit="percent",
            value=None if bound is None else 100 * bound,
            missing_reason="not_measured" if bound is None else None, n=documents,
            formula="exact one-sided 95 % upper bound (Clopper-Pearson) of the share of new failures",
        ),
        "needed_documents": book.derived(
            counted[:1], figure_id=f"critical_subsets/{found.key}/needed_documents", unit="documents",
            value=documents_for_bound(failures, SUBSET_LIMIT_PERCENT),
            formula=f"fewest documents with so many new failures whose bound is within {SUBSET_LIMIT_PERCENT} %",
        ),
    }  # fmt: skip
    return msgspec.structs.replace(
        found, cells=cells, sentences=[sentence("subset_supports", supported=ref(cells["supported_percent"]))]
    )
