"""The verdicts for a terminal: the decision in lines, the candidates as one table, waiting times as another."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from .dossier import Dossier, Row
from .figure_text import EN_DASH
from .render import View, shipped_words
from .translate import N_, Translator


def summary_lines(dossier: Dossier, lang: str) -> list[str]:
    """Return question, recommendation, reasons and notices as lines of text."""
    view = plain_view(dossier, lang)
    decision = dossier.decision
    found = dossier.confirmation
    tested = [found.verdict, *found.remarks] if found is not None and found.verdict is not None else []
    said = [*decision.override, decision.recommendation, *tested, *decision.reasons]
    return [
        dossier.question,
        *(view.say_plain(sentence) for sentence in said),
        *(f"{view.tr.text(N_('note'))}: {view.say_plain(notice)}" for notice in dossier.notices),
    ]


def summary_table(dossier: Dossier, lang: str) -> Table:
    """Return one row per candidate: accepted of all and in each subset, memory peak, measured time, price, verdict."""
    view = plain_view(dossier, lang)
    headings = [
        N_("configuration"),
        N_("accepted"),
        N_("memory peak"),
        N_("time, measured documents"),
        N_("price, net"),
    ]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for place, heading in enumerate([*headings[:2], *view.subsets(), *headings[2:]]):
        is_number = place > 0
        table.add_column(
            _stacked(view.tr.text(heading)),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
        )
    table.add_column(view.tr.text(N_("verdict")), min_width=10, overflow="fold")
    for row in view.rows("candidates"):
        counted = [_of(view, row, "accepted_documents", "document_count")]
        counted += [_of(view, row, f"subset_accepted:{name}", f"subset_documents:{name}") for name in view.subsets()]
        rest = [_value(view, row, column) for column in ("peak_bytes", "corpus_hours", "package_price")]
        verdict = view.say_plain(row.sentences[0])
        style = "dim" if row.labels["status"] in ("rejected", "failed", "not_measured") else ""
        cells = [row.labels["label"], *counted, *rest, verdict]
        table.add_row(*(Text(cell) for cell in cells), style="bold" if row.labels["status"] == "recommended" else style)
    return table


def times_table(dossier: Dossier, lang: str) -> Table | None:
    """Return one row per configuration that was timed: its loop, its requests, and medians with 95th percentiles.

    Of loads the window that the dossier's headline is of. Null where nothing was timed.
    """
    view = plain_view(dossier, lang)
    timed: dict[str, dict[str, Row]] = {}
    for row in view.rows("latency"):
        if row.labels["length_class"] == "all":
            timed.setdefault(row.labels["configuration_key"], {})[row.labels["metric"]] = row
    for row in view.rows("load_latency"):
        if row.labels["is_headline"] == "yes":
            timed.setdefault(row.labels["configuration_key"], {})[row.labels["metric"]] = row
    if not timed:
        return None
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    headings = [
        N_("configuration"), N_("loop"), N_("requests"), N_("time to first token, median"), N_("95th percentile"),
        N_("complete answer, median"), N_("95th percentile"),
    ]  # fmt: skip
    for place, heading in enumerate(headings):
        words = view.tr.text(heading)
        table.add_column(
            _stacked(words) if place else words, justify="right" if place > 1 else "left", no_wrap=place > 1,
            overflow="fold",
        )  # fmt: skip
    for found in timed.values():
        whole = found.get("e2e_s") or next(iter(found.values()))
        cells = [
            whole.labels["label"],
            view.text.word(whole.labels["loop"]),
            _of(view, whole, "valued_count", "request_count"),
        ]
        for metric in ("ttft_s", "e2e_s"):
            of_metric = found.get(metric)
            cells += [_value(view, of_metric, name) if of_metric else EN_DASH for name in ("p50_s", "p95_s")]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def plain_view(dossier: Dossier, lang: str) -> View:
    """Return what prints figures and sentences of a dossier as plain text."""
    return View(dossier, Translator(lang), shipped_words(), "screen", density=0)


def _stacked(heading: str) -> str:
    """One word a line, so that a column of numbers is as narrow as its numbers."""
    return "\n".join(heading.split())


def _value(view: View, row: Row, column: str) -> str:
    figure = view.figure(row, column)
    return view.text.in_sentence(figure) if figure is not None else EN_DASH


def _of(view: View, row: Row, part: str, whole: str) -> str:
    value, total = _value(view, row, part), _value(view, row, whole)
    return value if EN_DASH in (value, total) else f"{value} / {total}"
