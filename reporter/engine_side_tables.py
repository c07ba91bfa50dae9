"""The tables of the engine's side: where a request's time goes, what the server counted, its means beside the client's.

Basis: what a server says of itself is claimed, since nothing here could check it; only the client's stamps are
measured. What is made of both, the remainder and the differences, is derived from claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from collector.contract.server_kinds import KINDS

from .book import Book, ref, row
from .dossier import Row, Sentence, Unit, number
from .wording import sentence

PHASES = ("queue_s", "prefill_s", "decode_s", "inference_s")
UNLIKE_SHARE = 0.05
"""Of the larger mean: beyond it two accounts of one phase of the same requests are not the same."""
REUSE_LIMIT_PERCENT = 1.0
"""Of the prompt tokens in a pass that was to find none in the cache."""


def put_engine_side(book: Book) -> None:
    """Add the tables of the engine's side where a pass ran behind a server."""
    if not book.rows("engine_phases"):
        return
    _mark_memory(book)
    counted = [_counted(book, found) for found in book.rows("engine_counts")]
    book.put(
        "engine_window", "one row per judged pass behind a server: what it counted, beside the client's own", counted
    )
    phases = [_phases(book, found) for found in book.rows("engine_phases")]
    grain = "one row per (judged pass behind a server, source of the engine's durations): its phases and the remainder"
    book.put("engine_side", grain, phases)
    grain = "one row per remark on the engine's durations: the configurations that it holds of"
    book.put("engine_notes", grain, list(_notes(phases)))
    beside = [_beside(book, found) for found in book.rows("engine_means")]
    grain = "one row per (judged pass behind a server, duration that its histograms tell): its mean beside the client's"
    book.put("engine_beside", grain, beside)
    grain = "one row per (kind of server, duration): by whose clock it is, and from where to where"
    book.put("engine_boundaries", grain, list(_boundaries(book)))


def engine_side_notices(book: Book) -> Iterator[Sentence]:
    """Yield what a reader must know of servers: others' requests, reuse in a cold pass, preemptions, a restart."""
    for found in book.rows("engine_window"):
        label = found.labels["label"]
        if found.labels["is_restarted"] == "yes":
            yield sentence("notice_server_restarted", label=label)
        if (book.whole(found, "foreign_requests") or 0) > 0:
            yield sentence("notice_foreign", label=label, foreign=ref(found.cells["foreign_requests"]))
        elif _tells_no_requests(book, found) and (book.whole(found, "foreign_tokens") or 0) > 0:
            yield sentence("notice_foreign_tokens", label=label, foreign=ref(found.cells["foreign_tokens"]))
        if is_reused(book, found):
            yield sentence("notice_server_reuse", label=label, reuse=ref(found.cells["reuse_percent"]))
        if book.whole(found, "preemptions"):
            yield sentence("notice_preemptions", label=label, preemptions=ref(found.cells["preemptions"]))
    claimed = [r for r in book.rows("memory") if r.labels.get("need") and book.whole(r, "peak_bytes") is not None]
    if claimed:
        yield sentence("notice_memory_claimed", labels=", ".join(dict.fromkeys(r.labels["label"] for r in claimed)))


def is_reused(book: Book, found: Row) -> bool:
    """Say whether the server's own counters show reuse in a pass that was to be cold."""
    share = number(book.figure(found, "reuse_percent"))
    return found.labels["cache_state"] != "warm" and share is not None and share > REUSE_LIMIT_PERCENT


def reused_configurations(book: Book) -> set[str]:
    """Return the keys of configurations whose cold pass the server's counters contradict."""
    return {r.labels["configuration_key"] for r in book.rows("engine_window") if is_reused(book, r)}


def _mark_memory(book: Book) -> None:
    """Say of each reading behind a server that it is claimed, not needed: no reader may size a device by it."""
    keys = {r.labels["configuration_key"] for r in book.rows("engine_phases")}
    rows = [
        msgspec.structs.replace(r, labels=r.labels | {"need": "claimed"})
        if r.labels.get("configuration_key") in keys
        else r
        for r in book.rows("memory")
    ]
    book.tables["memory"] = msgspec.structs.replace(book.tables["memory"], rows=rows)


def _counted(book: Book, found: Row) -> Row:
    cells: dict[str, str | None] = dict(found.cells)
    pairs: tuple[tuple[str, str, str, Unit], ...] = (
        ("foreign_requests", "finished", "own_requests", "requests"),
        ("foreign_tokens", "generated_tokens", "own_tokens", "tokens"),
    )
    for name, whole, own, unit in pairs:
        cells[name] = _difference(book, f"engine_window/{found.key}/{name}", found, whole, own, unit)
    return row(found.key, found.labels, cells)


def _phases(book: Book, found: Row) -> Row:
    cells: dict[str, str | None] = dict(found.cells)
    told = [name for name in PHASES if number(book.figure(found, name)) is not None]
    is_whole = {"prefill_s", "decode_s"} <= set(told) or "inference_s" in told
    inputs = [found.cells[name] for name in (told if is_whole else ["decode_s"])]
    values = [number(book.figures[name]) or 0.0 for name in inputs]
    engine_id = cells["engine_s"] = book.derived(
        inputs, figure_id=f"engine_side/{found.key}/engine_s", value=sum(values) if is_whole else None, unit="seconds",
        formula="sum of the phases that the engine tells", missing_reason=_reason(book, found, "decode_s"),
    )  # fmt: skip
    client = book.figure(found, "client_e2e_s")
    remainder = None
    if client is not None:
        path = number(client)
        remainder = path - sum(values) if is_whole and path is not None else None
        cells["remainder_s"] = book.derived(
            [client.figure_id, engine_id], figure_id=f"engine_side/{found.key}/remainder_s", value=remainder,
            unit="seconds", formula="client_e2e_s - engine_s: a difference of two means of durations, each by its own "
            "clock", missing_reason=_reason(book, found, "decode_s"),
        )  # fmt: skip
    return row(found.key, found.labels, cells, *_said(book, found, is_whole=is_whole, remainder=remainder))


def _unlike(book: Book, answers: Row, counters: Row) -> Iterator[Sentence]:
    """Yield each phase of which the server's answers and its counters tell unlike means for the same requests."""
    for phase in ("queue", "prefill", "decode"):
        one, other = (number(book.figure(found, f"{phase}_s")) for found in (answers, counters))
        if one is not None and other is not None and abs(one - other) > UNLIKE_SHARE * max(one, other):
            told = {"answers": ref(answers.cells[f"{phase}_s"]), "counters": ref(counters.cells[f"{phase}_s"])}
            yield sentence("engine_accounts_differ", phase=f"@phase_{phase}", **told)


def _notes(phases: Sequence[Row]) -> Iterator[Row]:
    """Yield each remark once, with all configurations that it holds of."""
    holders: dict[tuple[str, ...], tuple[Sentence, list[str]]] = {}
    for found in phases:
        for said in found.sentences:
            key = (said.key, *sorted(said.parameters.values()))
            holders.setdefault(key, (said, []))[1].append(found.labels["label"])
    for place, (said, labels) in enumerate(holders.values()):
        yield row(f"{place}~{said.key}", {"label": "; ".join(dict.fromkeys(labels))}, {}, said)


def _said(book: Book, found: Row, *, is_whole: bool, remainder: float | None) -> Iterator[Sentence]:
    """Yield what must be read with a row: others' requests, a restart, pages not read, a queue that is not told."""
    counted = book.row("engine_window", found.labels["configuration_key"])
    if found.labels["source"] == "responses":
        whole = book.row("engine_phases", found.key.removesuffix("responses") + "window")
        told, answered = book.whole(found, "engine_count"), book.whole(whole, "client_count")
        if whole is not None and told is not None and answered is not None and told < answered:
            yield sentence(
                "engine_only_some", told=ref(found.cells["engine_count"]), answered=ref(whole.cells["client_count"])
            )
        elif whole is not None:
            yield from _unlike(book, found, whole)
    elif counted is not None and counted.labels["is_restarted"] == "yes":
        yield sentence("engine_restarted")
    elif counted is not None:
        yield from _of_others(book, counted)
        if not is_whole and _reason(book, found, "decode_s") == "not_measured":
            yield sentence("engine_no_pages")
    if is_whole and number(book.figure(found, "queue_s")) is None:
        yield sentence("engine_no_queue")
    if remainder is not None and remainder < 0:
        yield sentence("engine_negative")


def _of_others(book: Book, counted: Row) -> Iterator[Sentence]:
    foreign, tokens = book.whole(counted, "foreign_requests"), book.whole(counted, "foreign_tokens")
    if foreign is not None and foreign > 0:
        yield sentence("engine_foreign", foreign=ref(counted.cells["foreign_requests"]))
    elif foreign is not None and foreign < 0:
        yield sentence("engine_fewer", finished=ref(counted.cells["finished"]), own=ref(counted.cells["own_requests"]))
    elif _tells_no_requests(book, counted) and tokens is not None and tokens > 0:
        yield sentence(
            "engine_foreign_tokens", foreign=ref(counted.cells["foreign_tokens"]),
            generated=ref(counted.cells["generated_tokens"]),
        )  # fmt: skip


def _tells_no_requests(book: Book, counted: Row) -> bool:
    return _reason(book, counted, "finished") == "not_exposed_by_engine"


def _beside(book: Book, found: Row) -> Row:
    cells: dict[str, str | None] = dict(found.cells)
    name = f"engine_beside/{found.key}/difference_s"
    cells["difference_s"] = _difference(
        book, name, found, "client_mean_s", "engine_mean_s", "seconds",
        formula="client_mean_s - engine_mean_s: a difference of two means of durations, each by its own clock",
    )  # fmt: skip
    return row(found.key, found.labels, cells)


def _difference(
    book: Book, name: str, found: Row, first: str, second: str, unit: Unit, *, formula: str | None = None
) -> str | None:  # fmt: skip
    """Add the difference of two cells of a row; null where one of them is."""
    figures = [book.figure(found, column) for column in (first, second)]
    if None in figures:
        return None
    known = [figure for figure in figures if figure is not None]
    values = [figure.value for figure in known if isinstance(figure.value, int | float)]
    reason = next((figure.missing_reason for figure in known if figure.value is None), None)
    return book.derived(
        [figure.figure_id for figure in known], figure_id=name, unit=unit, formula=formula or f"{first} - {second}",
        value=values[0] - values[1] if len(values) == len(known) else None, missing_reason=reason or "not_measured",
    )  # fmt: skip


def _reason(book: Book, found: Row, column: str) -> str | None:
    figure = book.figure(found, column)
    return figure.missing_reason if figure is not None and figure.value is None else None


def _boundaries(book: Book) -> Iterator[Row]:
    """Yield a row per duration and boundary that the dossier's kinds of server tell, then those of the client."""
    rows: Sequence[Row] = book.rows("engine_phases")
    for kind in dict.fromkeys(r.labels["server_kind"] for r in rows):
        facts = next((facts for name, facts in KINDS.items() if name == kind), None)
        if facts is None:
            continue
        is_told = any(r.labels["server_kind"] == kind and r.labels["source"] == "responses" for r in rows)
        told: dict[str, str] = {}
        if facts.timings is not None and is_told:
            told |= {str(phase): words for phase, words in facts.timings.boundaries.items()}
        for capability, metric in facts.metrics.items():
            if metric.unit == "seconds":
                is_same = told.get(capability) == metric.boundary
                labels = {"kind": kind, "told_by": "both" if is_same else "window", "duration": capability}
                yield row(f"{kind}~{capability}", labels | {"boundary": f"{kind}_{capability}"}, {})
                if is_same:
                    del told[capability]
        for phase in told:
            labels = {"kind": kind, "told_by": "responses", "duration": phase}
            yield row(f"{kind}~told~{phase}", labels | {"boundary": f"{kind}_told_{phase}"}, {})
    for duration in ("before", "ttft", "per_token", "e2e"):
        labels = {"kind": "", "told_by": "client", "duration": duration, "boundary": f"client_{duration}"}
        yield row(f"client~{duration}", labels, {})
