"""Readings of a configuration under load: its headline times, and what keeps it out of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from .book import Book
from .dossier import Figure, Row, number

Unranked = Literal["failing", "cache_reuse"]
"""Why a configuration's speed is not ranked: requests that were lost, or prompts that the server had kept."""
MOST_FAILED_PERCENT = 1.0
"""Requests without an answer, in percent of all, above which a time says nothing of the load that was asked for."""
MOST_REUSED_PERCENT = 1.0
"""Prompt tokens found in the server's cache, in percent of all, above which a pass declared cold was not."""


def series_rows(book: Book, *, is_judged: bool = True) -> list[Row]:
    """Return the passes of loads; of each configuration the judged one, or all."""
    return [row for row in book.rows("load_series") if not is_judged or row.labels["is_judged"] == "yes"]


def judged_row(book: Book, key: str) -> Row | None:
    """Return the judged pass of a configuration under load; null where it is none, or has no such pass."""
    return next((row for row in book.rows_of("load_series", key) if row.labels["is_judged"] == "yes"), None)


def headline(book: Book, key: str, metric: str) -> Row | None:
    """Return the row of a configuration's times that stands for it: while the load held, else over the whole run."""
    rows = book.rows_of("load_latency", key)
    return next((r for r in rows if r.labels["metric"] == metric and r.labels["is_headline"] == "yes"), None)


def is_served(row: Row) -> bool:
    """True where a server answered: what its client saw is another thing than what a process did by itself."""
    return bool(row.labels["cache_state"])


def has_lost_too_many(book: Book, row: Row) -> bool:
    """True where more requests were lost than a time of the others may hide."""
    return (number(book.figure(row, "failed_percent")) or 0.0) > MOST_FAILED_PERCENT


def reused(book: Book, row: Row) -> Figure | None:
    """Return the share of prompt tokens found in the server's cache: the larger of its answers' and its counters'."""
    told = book.figure(row, "cached_percent")
    if row.labels["is_judged"] != "yes":  # the counters are those of the judged pass
        return told
    counted = book.figure(book.row("engine_counts", row.labels["configuration_key"]), "reuse_percent")
    known = [figure for figure in (told, counted) if figure is not None and figure.value is not None]
    return max(known, key=lambda figure: number(figure) or 0.0, default=told or counted)


def has_reused(book: Book, row: Row) -> bool:
    """True where a pass that was to be cold found its prompts in the server's cache."""
    return row.labels["cache_state"] == "cold" and (number(reused(book, row)) or 0.0) > MOST_REUSED_PERCENT


def unranked(book: Book, key: str) -> Unranked | None:
    """Return why the speed of a configuration behind a server is not ranked; null where it is, or is no such one."""
    row = judged_row(book, key)
    if row is None or not is_served(row):
        return None
    if has_reused(book, row):
        return "cache_reuse"
    return "failing" if has_lost_too_many(book, row) else None


def has_other_prompts(book: Book, key: str) -> bool:
    """True where a configuration's prompts are not shown to be the reference's: its answers are compared with none."""
    row = book.row("load_prompts", key)
    return row is not None and row.labels["is_shown"] == "no"


def by_variant(rows: Iterable[Row], load: Callable[[Row], float]) -> dict[str, list[Row]]:
    """Return name -> the rows of one variant in one engine on one device, by rising load; loops stay apart.

    The name is what the labels of the rows begin with alike; where two would be called the same, all it is told by.
    """
    found: dict[tuple[str, ...], list[Row]] = {}
    for each in rows:
        found.setdefault(tuple(each.labels[name] for name in ("variant", "engine", "device", "loop")), []).append(each)
    names = [_shared_name([r.labels["label"] for r in each]) or key[0] for key, each in found.items()]
    if len(set(names)) < len(names):
        names = [", ".join(part for part in key if part != "closed") for key in found]
    return {name: sorted(each, key=load) for name, each in zip(names, found.values(), strict=True)}


def _shared_name(labels: list[str]) -> str:
    """Return what the labels of one line begin with alike, in whole words: the number at its end is the load's."""
    words = [label.split(" ") for label in labels]
    shared = words[0]
    for other in words[1:]:
        shared = [word for place, word in enumerate(shared) if other[: place + 1] == shared[: place + 1]]
    while len(shared) > 1 and (shared[-1].isdigit() or shared[-1] == "·"):
        shared = shared[:-1]
    return " ".join(shared).rstrip(" ,;:(–-·")
