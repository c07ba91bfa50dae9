"""Would another repetition flip a rule? Each rule judged again with every repetition of the two passes it compares."""

from __future__ import annotations

from typing import NamedTuple

from collector.contract.protocol import Gates

from .book import Book
from .configurations import Configuration
from .judgement import judged
from .selection import Standing


class Unstable(NamedTuple):
    """A rule whose verdict depends on the repetition."""

    label: str
    rule: str
    subset: str | None


def unstable_gates(
    book: Book, gates: Gates, standings: list[Standing], reference: Configuration | None
) -> list[Unstable]:
    """Return the rules that some repetition, of the configuration or of its reference, would judge otherwise."""
    found = []
    references: dict[str, list[Configuration]] = {}
    for standing in standings:
        if standing.configuration is None or not standing.gates:
            continue
        own = standing.reference or reference
        if own is not None and own.key not in references:
            references[own.key] = _repetitions(book, own)
        again = [
            judged(gates, repeated, repeated_reference)
            for repeated in _repetitions(book, standing.configuration)
            for repeated_reference in (references[own.key] if own is not None else [None])
        ]
        for place, gate in enumerate(standing.gates):
            if any(judgement[place].has_passed != gate.has_passed for judgement in again):
                found.append(Unstable(standing.label, gate.rule, gate.subset))
    return found


def _repetitions(book: Book, configuration: Configuration) -> list[Configuration]:
    """Return the configuration as each of its counted passes shows it."""
    repeated = []
    for row in book.rows_of("quality_repetitions", configuration.key):
        subsets = dict(configuration.subsets)
        for name, (_, documents) in configuration.subsets.items():
            accepted = book.whole(book.row("subset_repetitions", f"{row.key}~subset~{name}"), "accepted_documents")
            subsets[name] = (accepted or 0, documents)
        repeated.append(configuration._replace(accepted=book.whole(row, "accepted_documents"), subsets=subsets))
    return repeated
