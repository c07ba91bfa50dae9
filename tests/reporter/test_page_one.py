"""What a first reader of page one stumbled over: two words for two things, the losing offer, every basis, the trace."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from reporter.charts import ChartMaker
from reporter.dossier import Dossier, Sentence
from reporter.figure_text import FigureText
from reporter.render import MOST_TRACED, View, render, shipped_words
from reporter.summary import plain_view
from reporter.translate import Translator

Decide = Any
Say = Callable[[Dossier, Sentence], str]
CALENDAR = '[calendar]\nexport = { hours = "1", basis = "assumed", by = "the buyer" }\n'


@pytest.fixture
def priced(campaign_text: Any) -> Path:
    """One quoted price and two example prices for one candidate, and an assumed hour of the calendar."""
    text = campaign_text.candidate("CPU bf16", "bf16", "cheap", "middle", "dear").candidate("CPU fp32", "fp32", "dear")
    text.offer("cheap", {3: "100.00"}).offer("middle", {3: "120.00", 7: "130.00"}, basis="example")
    text.offer("dear", {3: "300.00"}, basis="example").calendar = CALENDAR
    path: Path = text.write()
    return path


def test_the_next_best_offer_of_the_recommended_candidate_is_named_with_its_price(
    decide: Decide, priced: Path, said: Say
) -> None:
    dossier = decide("plain", priced)
    reasons = [said(dossier, reason) for reason in dossier.decision.reasons]
    assert "Rent Example CPU 2 cores" in said(dossier, dossier.decision.recommendation)
    assert (
        "The next best offer for CPU bf16, from Example Cloud, costs 120.00 EUR net for 1 package of 3 days." in reasons
    )


def test_a_candidate_with_one_usable_offer_has_no_next_best(decide: Decide, campaign_text: Any) -> None:
    text = campaign_text.candidate("CPU bf16", "bf16", "cheap", "past").offer("cheap", {3: "100.00"})
    dossier = decide("plain", text.offer("past", {3: "90.00"}, valid_until="2026-01-10").write())
    assert dossier.decision.has_winner
    assert "reason_other_offer" not in {reason.key for reason in dossier.decision.reasons}


def test_a_derived_price_names_every_basis_that_entered_it_the_weakest_first(decide: Decide, priced: Path) -> None:
    dossier = decide("plain", priced)
    text = FigureText(Translator("en"))
    prices = {
        figure.figure_id.split("~")[-2]: figure
        for name, figure in dossier.figures.items()
        if re.search(r"^packages/.*bf16.*~3d/price_net$", name)
    }
    assert {offer: text.basis(figure) for offer, figure in prices.items()} == {
        "cheap": "derived from assumed, quoted, measured",
        "middle": "derived from example, assumed, measured",
        "dear": "derived from example, assumed, measured",
    }
    assert all(figure.basis == figure.bases[0] for figure in prices.values())
    accepted = next(f for name, f in dossier.figures.items() if name.startswith("gates/") and name.endswith("/counted"))
    assert (accepted.bases, text.basis(accepted)) == ([], "derived from measured")


def test_a_rejected_configuration_says_that_its_corpus_is_not_accepted_and_why(
    tmp_path: Path, campaign_records: Any, decide: Decide, campaign_text: Any, said: Say
) -> None:
    def rejected(kit: Any, runs: Path) -> None:
        many = dict.fromkeys(range(8), "wrong")
        short = kit.variant(name="short", missing=frozenset({2}))
        kit(runs, variants=[kit.fp32, kit.variant(name="bf16", outcomes=many), short])

    text = campaign_text.candidate("lossy", "bf16", "o").candidate("incomplete", "short", "o").offer("o", {3: "100.00"})
    dossier = decide("rejected", text.write(), write=rejected)
    told = {
        row.labels["candidate"]: said(dossier, row.sentences[0]) for row in dossier.tables["packages"].rows
    }  # fmt: skip
    assert told == {
        "lossy": "not defined: 100.00 EUR paid, 0 corpora accepted, since a rule is not met",
        "incomplete": "not defined: 100.00 EUR paid, 0 corpora accepted, since documents are missing",
    }


def test_every_figure_of_page_one_is_among_those_whose_origin_the_annex_prints(decide: Decide, priced: Path) -> None:
    dossier = decide("plain", priced)
    page = dossier.decision
    said = [page.recommendation, page.chart_finding, *page.reasons, *page.headline_captions, *page.would_change]
    cited = {p[1:] for sentence in said for p in sentence.parameters.values() if p.startswith("#")}
    assert any(name.startswith("what_if/") for name in cited)
    view = View(dossier, Translator("en"), shipped_words(), "paper", 0)
    printed = [figure.figure_id for figure in view.traced()][: MOST_TRACED["paper"]]
    assert cited <= set(printed)
    assert set(page.headline) <= set(printed)


def test_the_measured_documents_and_the_wanted_corpus_have_two_names(decide: Decide, priced: Path) -> None:
    html = render(decide("plain", priced), lang="en", medium="paper")
    heads = re.findall(r'<th role="columnheader".*?</th>', html, re.DOTALL)
    assert [head for head in heads if "measured documents" in head]
    assert not [head for head in heads if "corpus" in head]
    assert "per accepted corpus of " in html


def test_on_a_narrow_screen_no_line_crosses_the_words_above_a_row(decide: Decide, campaign_text: Any) -> None:
    def failing(kit: Any, runs: Path) -> None:
        kit(runs, variants=[kit.fp32, kit.variant(name="bf16", outcomes=dict.fromkeys(range(3), "wrong"))])

    dossier = decide("failing", campaign_text.candidate("x", "bf16").write(), write=failing)
    chart = ChartMaker(dossier, plain_view(dossier, "en").text).difference("a title")
    assert chart is not None
    places: dict[str, list[tuple[float, float, str]]] = {"line": [], "text": []}
    _walk(ElementTree.fromstring(chart.narrow), 0.0, places)
    upright = [(top, bottom) for top, bottom, what in places["line"] if bottom - top > 5 and what == "0"]
    words = [(y, text) for y, _, text in places["text"] if "accepted, " in text or text == "x"]
    assert len(upright) >= 2
    assert len(words) >= 2
    for y, text in words:
        assert not [piece for piece in upright if piece[0] < y < piece[1]], text


def _walk(node: ElementTree.Element, above: float, places: dict[str, list[tuple[float, float, str]]]) -> None:
    """Collect upright lines and texts with their height in the picture."""
    moved = re.search(r"translate\([^,]+,([^)]+)\)", node.get("transform", ""))
    y = above + (float(moved[1]) if moved else 0.0)
    tag = node.tag.rpartition("}")[2]
    if tag == "line":
        ends = sorted((y, y + float(node.get("y2", "0"))))
        places["line"].append((ends[0], ends[1], node.get("x2", "")))
    elif tag == "text" and node.text:
        places["text"].append((y, y, node.text))
    for child in node:
        _walk(child, y, places)
