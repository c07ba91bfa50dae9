"""The table `batches`: one factor grows, the batch; each pass beside one request at a time, failed batches included."""

from __future__ import annotations

from collections.abc import Sequence

from .book import Book, ref, row
from .dossier import Figure, Row, Sentence, number
from .wording import sentence

GRAIN = "one row per pass of a batch series, failed ones included, and one per batch that was not tried"
_RATIO = "seconds_per_document one request at a time / seconds_per_document"
_DURATIONS = ("measure_ns", "documents_per_h", "output_tokens_per_s", "completed_documents")


def put_batches(book: Book) -> None:
    """Add the table `batches` where a batch series was run."""
    found = book.rows("batch_series")
    if not found:
        return
    starts = {r.labels["environment_id"]: r for r in found if r.labels["purpose"] == "reference"}
    rows = [_batch(book, r, starts.get(r.labels["environment_id"])) for r in found]
    book.put("batches", GRAIN, rows)


def _largest_batch(book: Book, environment_id: str) -> Figure | None:
    """Return the largest batch that came to its end on one machine; null where none did."""
    completed = [r for r in book.rows("batch_series") if r.labels["outcome"] == "completed"]
    there = [r for r in completed if r.labels["environment_id"] == environment_id]
    figures = [f for r in there if (f := book.figure(r, "batch")) is not None]
    return max(figures, key=lambda figure: number(figure) or 0.0, default=None)


def failed_batches(book: Book) -> list[Row]:
    """Return the passes of batch series that failed."""
    return [r for r in book.rows("batch_series") if r.labels["purpose"] == "series" and r.labels["outcome"] == "failed"]


def batch_limits(book: Book) -> list[Sentence]:
    """Return the limit that each failed batch sets on its machine, beside the largest that ran there."""
    said = []
    for found in failed_batches(book):
        largest = _largest_batch(book, found.labels["environment_id"])
        if largest is None:
            continue
        key = "limit_batch_memory" if found.labels["cause"] == "out_of_memory" else "limit_batch_failed"
        more = {} if key == "limit_batch_memory" else {"cause": "@" + found.labels["cause"]}
        said.append(
            sentence(
                key, device=found.labels["device"], largest=ref(largest.figure_id), failed=ref(found.cells["batch"]),
                **more,
            )
        )  # fmt: skip
    return said


def batch_notices(book: Book) -> list[Sentence]:
    """Return what a reader of batched answers must know: checks that differ, and answers that changed."""
    said = []
    for check in book.rows("batch_checks"):
        if book.whole(check, "differing_documents"):
            said.append(
                sentence(
                    "notice_batch_check", label=check.labels["label"], batch=ref(check.cells["batch"]),
                    differing=ref(check.cells["differing_documents"]), checked=ref(check.cells["checked_documents"]),
                )
            )  # fmt: skip
    for found in book.rows("batch_series"):
        if found.labels["purpose"] == "series" and book.whole(found, "different_answers"):
            said.append(
                sentence(
                    "notice_batch_answers", label=found.labels["label"], batch=ref(found.cells["batch"]),
                    different=ref(found.cells["different_answers"]), flipped=ref(found.cells["flipped_documents"]),
                    documents=ref(found.cells["document_count"]),
                )
            )  # fmt: skip
    return said


def _batch(book: Book, found: Row, start: Row | None) -> Row:
    """Gather what the other tables hold of this pass; only the ratio is made here."""
    cells: dict[str, str | None] = dict(found.cells)
    durations = book.row("durations", found.key)
    accepted = book.row("quality_repetitions", found.key)
    for column in _DURATIONS:
        cells[column] = durations.cells[column] if durations else None
    cells["accepted_documents"] = accepted.cells["accepted_documents"] if accepted else None
    cells["judged_documents"] = accepted.cells["document_count"] if accepted else None
    cells["speed_ratio"] = _ratio(book, found, start)
    return row(found.key, found.labels, cells, *_said(found))


def _ratio(book: Book, found: Row, start: Row | None) -> str | None:
    """Add how many times as fast a document is as one request at a time; the repeat's ratio is the noise."""
    if start is None or found.key == start.key:
        return None
    inputs = [book.figure(start, "seconds_per_document"), book.figure(found, "seconds_per_document")]
    values = [number(figure) for figure in inputs]
    first, second = values
    return book.derived(
        [figure.figure_id for figure in inputs if figure is not None],
        figure_id=f"batches/{found.key}/speed_ratio",
        value=first / second if first is not None and second else None,
        unit="ratio",
        formula=_RATIO,
        missing_reason=(inputs[1].missing_reason if inputs[1] else None) or "not_measured",
    )


def _said(found: Row) -> Sequence[Sentence]:
    labels = found.labels
    if labels["outcome"] == "skipped":
        return [sentence("batch_not_tried")]
    if labels["outcome"] == "completed":
        return []
    failed = sentence("batch_failed", cause="@" + labels["cause"], phase="@" + (labels["phase"] or "unknown_phase"))
    if labels["reduced_to"].isdigit():
        return [failed, sentence("batch_reduced_to", batch=labels["reduced_to"])]
    return [failed]
