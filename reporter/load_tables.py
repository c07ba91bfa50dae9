"""The tables of loads: closed and open loops apart, what was lost, and goodput under the campaign's limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from collector.contract.campaign import Campaign, Objective
from collector.contract.money import exact

from .book import Book, row
from .dossier import Row, number
from .load import Store
from .load_flags import put_flags
from .load_series import headline, series_rows
from .statistics import MINIMUM_N

CLOSED = "one row per configuration in a closed loop: its judged pass, with what was lost on the same line"
OPEN = "one row per configuration in an open loop: its judged pass, with what was lost on the same line"
PERCENTILES = (50, 90, 95)


class _Good(NamedTuple):
    """Requests of one pass within every limit of the objective."""

    good_count: int
    limits: str


def put_load(book: Book, store: Store, campaign: Campaign | None) -> None:
    """Add the tables `load_closed`, `load_open`, `load_needs` and `load_flags` where a load was measured."""
    rows = series_rows(book)
    if not any(row.labels["cache_state"] or (number(book.figure(row, "concurrency")) or 1) > 1 for row in rows):
        return
    good = _good(store, campaign.objective) if campaign is not None else {}
    closed = [r for r in rows if r.labels["loop"] == "closed"]
    book.put("load_closed", CLOSED, [_line(book, r, good.get(r.key)) for r in closed])
    opened = [r for r in rows if r.labels["loop"] != "closed"]
    book.put("load_open", OPEN, [_line(book, r, good.get(r.key)) for r in opened])
    _put_needs(book)
    _put_lost(book)
    put_flags(book)


def _line(book: Book, found: Row, good: _Good | None) -> Row:
    """Put the headline times and the goodput beside a pass's counts and rates."""
    cells: dict[str, str | None] = dict(found.cells)
    key = found.labels["configuration_key"]
    labels = dict(found.labels)
    for metric in ("ttft_s", "e2e_s", "send_delay_s"):
        times = headline(book, key, metric)
        if times is not None:
            name = metric.removesuffix("_s")
            cells |= {f"{name}_p{p}_s": times.cells[f"p{p}_s"] for p in PERCENTILES}
            labels["measured_window"] = times.labels["measured_window"]
    client = book.row("load_clients", found.key)
    if client is not None:
        cells |= {name: client.cells[name] for name in ("cpu_share", "loop_lag_p99_ns", "send_delay_p99_ns")}
    if good is not None:
        cells |= _goodput(book, found, good)
    return row(found.key, labels, cells)


def _goodput(book: Book, found: Row, good: _Good) -> dict[str, str | None]:
    """Add how many requests kept every limit: per second of the whole run, and of all that were asked for."""
    wall_ns, requests = (number(book.figure(found, name)) or 0.0 for name in ("wall_ns", "request_count"))
    inputs = [found.cells[name] for name in ("request_count", "wall_ns")]
    within = f"final tries with {good.limits}"
    return {
        "good_requests": book.derived(
            inputs[:1], figure_id=f"load_goodput/{found.key}/good_requests", value=good.good_count, unit="requests",
            formula=within,
        ),
        "goodput_per_s": book.derived(
            inputs, figure_id=f"load_goodput/{found.key}/goodput_per_s", unit="requests_per_second",
            value=good.good_count / (wall_ns / 1e9) if wall_ns else None, formula=f"{within} / wall_ns x 10^9",
            missing_reason="not_measured",
        ),
        "good_percent": book.derived(
            inputs[:1], figure_id=f"load_goodput/{found.key}/good_percent", unit="percent",
            value=100 * good.good_count / requests if requests else None, missing_reason="not_measured",
            formula=f"100 x {within} / request_count: one that failed is not within",
        ),
    }  # fmt: skip


def _good(store: Store, objective: Objective) -> dict[str, _Good]:
    """Return pass key -> requests within all limits of the objective; nothing where it names none."""
    limits = [
        (column, words, exact(text))
        for column, words, text in (
            ("ttft_ns", "first token", objective.max_first_token_s),
            ("e2e_ns", "complete answer", objective.max_answer_s),
        )
        if text is not None
    ]  # fmt: skip
    if not limits:
        return {}
    within = " and ".join(f"{column} <= ?" for column, _, _ in limits)
    said = ", ".join(f"{words} within {float(limit):g} s" for _, words, limit in limits)
    found: Sequence[tuple[str, int]] = store.con.execute(
        f"select pass_key, count(*) filter (where {within}) from load_requests group by pass_key order by pass_key",
        [int(limit * 10**9) for _, _, limit in limits],
    ).fetchall()
    return {key: _Good(count, said) for key, count in found}


def _put_lost(book: Book) -> None:
    """Put what was lost on the line of every other time and rate of a load: no number of the others stands alone."""
    passes = {r.key: r for r in book.rows("load_series")}
    judged = {r.labels["configuration_key"]: r for r in passes.values() if r.labels["is_judged"] == "yes"}
    for name in ("durations", "latency_between"):
        table = book.tables[name]
        rows = []
        for old in table.rows:
            found = passes.get(old.key) or judged.get(old.labels["configuration_key"])
            cells = {"failed_percent": found.cells["failed_percent"]} if found is not None else {}
            rows.append(row(old.key, old.labels, {**old.cells, **cells}, *old.sentences))
        book.tables[name] = msgspec.structs.replace(table, rows=rows)


def _put_needs(book: Book) -> None:
    """Add how many requests each percentile's interval needs."""
    rows = [
        row(
            f"p{percent}", {"percentile": str(percent)},
            {"needed": book.given(f"load_needs/p{percent}/needed", MINIMUM_N[percent], "requests", "assumed")},
        )
        for percent in PERCENTILES
    ]  # fmt: skip
    book.put("load_needs", "one row per percentile: the fewest values of which its interval exists", rows)
