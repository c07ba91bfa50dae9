"""What else the tables hold of a configuration: pairs, times of a request at percentiles, the check after a reload."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from .book import Book
from .dossier import number
from .load_series import headline
from .paired_statistics import Pairs

PERCENTILES = (50, 90, 95, 99)
METRICS = ("ttft_s", "e2e_s")
"""Times that an objective may limit: to the first token, and to the complete answer."""


class TimeReading(NamedTuple):
    """The percentiles of one metric: percentile -> (exact seconds, figure id). valued_count: requests that have it."""

    valued_count: int
    seconds: dict[int, tuple[Fraction, str]]
    count_id: str


class Reload(NamedTuple):
    """The artefact loaded again in a fresh process and asked again."""

    checked: int | None
    equal: int | None
    is_same_artefact: bool
    has_failed: bool

    @property
    def has_passed(self) -> bool:
        """All of at least one checked answers are equal, and it is the same artefact."""
        return not self.has_failed and bool(self.checked) and self.checked == self.equal and self.is_same_artefact


def pairs_of(book: Book, key: str) -> Pairs | None:
    """Return a configuration's documents against its reference's; null where nothing was paired."""
    row = book.row("paired", key)
    names = ("both_right", "lost_documents", "gained_documents", "both_not_right")
    counts = [book.whole(row, name) for name in names]
    return None if None in counts else Pairs(*(count for count in counts if count is not None))


def times_of(book: Book, key: str) -> dict[str, TimeReading]:
    """Return metric -> its percentiles over all lengths of document; values are whole nanoseconds made exact.

    Behind a server and with several requests at a time they are those of the steady time, where enough fell into it.
    """
    found: dict[str, TimeReading] = {}
    for metric in METRICS:
        row = book.row("latency", f"{key}~{metric}~all") or headline(book, key, metric)
        valued = book.whole(row, "valued_count")
        if row is None or valued is None:
            continue
        seconds = {}
        for percentile in PERCENTILES:
            value = number(book.figure(row, f"p{percentile}_s"))
            if value is not None:
                seconds[percentile] = Fraction(round(value * 10**9), 10**9), row.cells[f"p{percentile}_s"]
        found[metric] = TimeReading(valued, seconds, row.cells["valued_count"])
    return found


def reload_of(book: Book, key: str) -> Reload | None:
    """Return the last check after a reload; null where none was made."""
    row = book.row("reload_checks", key)
    if row is None:
        return None
    return Reload(
        checked=book.whole(row, "checked_document_count"), equal=book.whole(row, "equal_answer_count"),
        is_same_artefact=row.labels.get("is_same_artefact") == "yes", has_failed=row.labels.get("outcome") == "failed",
    )  # fmt: skip
