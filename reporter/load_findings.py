"""What was found under load and on the engine's side, a sentence each: what those sections of the dossier open with.

Of each variant the lowest and the highest load that it bore stand against one another, with times of one kind of
window; a load at which too much was lost is said to be one, without a time. Nothing is ranked here.
"""

from __future__ import annotations

from collections.abc import Iterator

from .book import Book, ref, row
from .dossier import Row, Sentence, number
from .load_series import by_variant, has_lost_too_many
from .wording import sentence

GRAIN = "one row per kind of finding: its sentences"
MOST = 6
"""Sentences of one kind; the tables have the rest."""


def put_load_findings(book: Book) -> None:
    """Add the table `load_findings`: the closed loops, and the open ones apart from them."""
    rows = [
        row(name, {}, {}, *found)
        for name, found in (("closed", list(_closed(book))[:MOST]), ("open", list(_open(book))[:MOST]))
        if found
    ]
    book.put("load_findings", GRAIN, rows)


def put_engine_findings(book: Book) -> None:
    """Add the table `engine_findings`: where a request's time goes, and how far the two sides' means are apart."""
    found = [*list(_phases(book))[:MOST], *_farthest(book)]
    book.put("engine_findings", GRAIN, [row("phases", {}, {}, *found)] if found else [])


def _closed(book: Book) -> Iterator[Sentence]:
    """Yield a sentence per engine and variant, the one that gains most by more requests first, then what failed."""
    gains: list[tuple[float, Sentence]] = []
    failing: list[Sentence] = []
    for name, rows in by_variant(book.rows("load_closed"), lambda r: _value(book, r, "concurrency")).items():
        failing += _failing(book, rows, "load_fails", "requests", "concurrency")
        borne = _borne(book, rows, "output_tokens_per_s")
        if not borne:
            continue
        low, high = borne[0], borne[-1]
        if low is high:
            at = {"requests": ref(low.cells["concurrency"]), "rate": ref(low.cells["output_tokens_per_s"])}
            gains.append((0.0, sentence("load_at_one", label=low.labels["label"], **at, **_time_and_lost(low))))
            continue
        factor_id, factor = _factor(book, low, high)
        cells = {
            f"{column}_{end}": ref(r.cells[name])
            for column, name in (("requests", "concurrency"), ("rate", "output_tokens_per_s"), ("time", "e2e_p50_s"))
            for end, r in (("low", low), ("high", high))
        }
        lost = ref(high.cells["failed_percent"])
        gains.append((factor, sentence("load_grows", label=name, factor=ref(factor_id), lost=lost, **cells)))
    yield from (said for _, said in sorted(gains, key=lambda pair: -pair[0]))
    yield from failing


def _open(book: Book) -> Iterator[Sentence]:
    """Yield a sentence per engine and variant, in the order of the tables, then what failed."""
    failing: list[Sentence] = []
    for name, rows in by_variant(book.rows("load_open"), lambda r: _value(book, r, "rate_per_s")).items():
        failing += _failing(book, rows, "load_arrivals_fail", "rate", "rate_per_s")
        borne = _borne(book, rows, "rate_per_s", "requests_per_s")
        if not borne:
            continue
        low, high = borne[0], borne[-1]
        answered = ref(high.cells["requests_per_s"])
        if low is high:
            yield sentence(
                "load_arrives", label=low.labels["label"], rate=ref(low.cells["rate_per_s"]), answered=answered,
                **_time_and_lost(low),
            )  # fmt: skip
            continue
        yield sentence(
            "load_arrivals_grow",
            label=name,
            answered=answered,
            lost=ref(high.cells["failed_percent"]),
            **{
                f"{column}_{end}": ref(r.cells[cell])
                for column, cell in (("rate", "rate_per_s"), ("time", "e2e_p50_s"))
                for end, r in (("low", low), ("high", high))
            },
        )
    yield from failing


def _borne(book: Book, rows: list[Row], *columns: str) -> list[Row]:
    """Return the rows with a time and these values, not too much lost, and times of the first one's window."""
    found = [r for r in rows if _has(book, r, "e2e_p50_s", *columns) and not has_lost_too_many(book, r)]
    return [r for r in found if r.labels.get("measured_window") == found[0].labels.get("measured_window")]


def _failing(book: Book, rows: list[Row], key: str, parameter: str, column: str) -> Iterator[Sentence]:
    """Yield the lowest load at which too much was lost."""
    for found in [r for r in rows if has_lost_too_many(book, r)][:1]:
        at = {parameter: ref(found.cells[column])}
        yield sentence(key, label=found.labels["label"], lost=ref(found.cells["failed_percent"]), **at)


def _time_and_lost(found: Row) -> dict[str, str]:
    return {"time": ref(found.cells["e2e_p50_s"]), "lost": ref(found.cells["failed_percent"])}


def _factor(book: Book, low: Row, high: Row) -> tuple[str, float]:
    """Add how many times as much is generated at the higher load; return its figure and its value."""
    inputs = [r.cells["output_tokens_per_s"] for r in (high, low)]
    before = _value(book, low, "output_tokens_per_s")
    factor = _value(book, high, "output_tokens_per_s") / before if before else 0.0
    figure_id = book.derived(
        inputs, figure_id=f"load_findings/{high.key}/factor", value=factor if before else None, unit="ratio",
        formula="output_tokens_per_s at the highest load / output_tokens_per_s at the lowest",
        missing_reason="not_measured",
    )  # fmt: skip
    return figure_id, factor


def _phases(book: Book) -> Iterator[Sentence]:
    """Yield a sentence per configuration whose engine tells prefill and decode: by counters, else by answers."""
    rows: dict[str, Row] = {}
    for found in book.rows("engine_side"):
        is_first = found.labels["configuration_key"] not in rows
        if (is_first or found.labels["source"] == "window") and _has(book, found, "prefill_s", "decode_s"):
            rows[found.labels["configuration_key"]] = found
    unlike = {
        r.labels["configuration_key"] for r in book.rows("engine_side") for said in r.sentences
        if said.key == "engine_accounts_differ"
    }  # fmt: skip
    for key, found in rows.items():
        if key in unlike:
            yield sentence("engine_where_unlike", label=found.labels["label"])
            continue
        if not _has(book, found, "client_e2e_s", "remainder_s") or _value(book, found, "remainder_s") < 0:
            continue  # a remark beside the table says why such a remainder means nothing
        cells = {name: ref(found.cells[f"{name}_s"]) for name in ("decode", "prefill", "remainder")}
        whole = ref(found.cells["client_e2e_s"])
        if _has(book, found, "queue_s"):
            queue = ref(found.cells["queue_s"])
            yield sentence("engine_where", label=found.labels["label"], whole=whole, queue=queue, **cells)
        else:
            yield sentence("engine_where_no_queue", label=found.labels["label"], whole=whole, **cells)


def _farthest(book: Book) -> Iterator[Sentence]:
    """Yield the largest difference between a client's mean and the server's own of the same duration."""
    known = [found for found in book.rows("engine_beside") if _has(book, found, "difference_s")]
    if known:
        most = max(known, key=lambda found: abs(_value(book, found, "difference_s")))
        yield sentence(
            "engine_farthest", difference=ref(most.cells["difference_s"]), label=most.labels["label"],
            duration=f"@mean_{most.labels['measure']}",
        )  # fmt: skip


def _has(book: Book, found: Row, *columns: str) -> bool:
    return all(number(book.figure(found, column)) is not None for column in columns)


def _value(book: Book, found: Row, column: str) -> float:
    return number(book.figure(found, column)) or 0.0
