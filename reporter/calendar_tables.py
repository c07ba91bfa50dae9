"""The table `calendar`: the hours of each phase with their basis, and the sum that has to be rented."""

from __future__ import annotations

from .book import Book, hours, row
from .dossier import Row, Sentence
from .packages import LOADING, PROCESSING, Need
from .selection import Standing
from .wording import sentence


def needed_figure(standing: Standing) -> str:
    """Return the id of a candidate's needed hours."""
    return f"calendar/{standing.key}/needed_hours"


def calendar_rows(book: Book, standing: Standing, need: Need) -> list[Row]:
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
