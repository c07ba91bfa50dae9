"""From records to pages: what selection and assembly say is printed, each number under the id it has in the dossier."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.contract import protocol as p
from reporter.assemble import build_dossier
from reporter.document import write_html, write_pdf
from reporter.dossier import Dossier
from reporter.grids import Column
from reporter.render import View, shipped_words
from reporter.translate import Translator


class Figures(HTMLParser):
    """Collects `data-figure` -> printed text, and whether every element was closed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: str | None = None
        self.printed: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open = dict(attrs).get("data-figure") if tag == "span" else None

    def handle_data(self, data: str) -> None:
        if self.open:
            self.printed.setdefault(self.open, data)


@pytest.fixture
def real(tmp_path: Path, campaign_records: Any, campaign_text: Any) -> Dossier:
    failing = campaign_records.variant(name="fp16", dtype="float16", failure="out_of_memory")
    campaign_records(tmp_path / "runs", variants=(campaign_records.fp32, campaign_records.bf16, failing))
    campaign = (
        campaign_text.candidate("small", "bf16", "o1").offer("o1", {3: "12.00", 7: "25.00"}, basis="example").write()
    )
    return build_dossier([tmp_path / "runs"], campaign)


def test_a_dossier_of_records_prints_each_number_under_its_own_id(real: Dossier, tmp_path: Path) -> None:
    write_html(real, tmp_path / "d.html")
    html = (tmp_path / "d.html").read_text(encoding="utf-8")
    printed = Figures(html).printed
    assert set(printed) <= set(real.figures)
    accepted = next(f for f in printed if f.endswith("/accepted_documents"))
    assert printed[accepted] == str(real.figures[accepted].value)
    assert len(printed) > 100
    assert "EXAMPLE PRICES" in html
    for number in re.findall(r'data-figure="[^"]*">([^<]*)<', html):
        assert "nan" not in number
        assert "None" not in number


def test_records_without_a_campaign_print_without_prices(tmp_path: Path, campaign_records: Any) -> None:
    campaign_records(tmp_path / "runs")
    write_html(build_dossier([tmp_path / "runs"], None), tmp_path / "d.html")
    html = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert "No recommendation" in html
    assert "Offers and packages of 3, 7 and 30 days" in html.partition("Sections without evidence")[2]


@pytest.mark.slow
def test_a_dossier_of_records_becomes_a_pdf_whose_first_page_is_the_whole_decision(
    real: Dossier, tmp_path: Path
) -> None:
    from pypdf import PdfReader

    write_pdf(real, tmp_path / "d.pdf")
    pages = PdfReader(tmp_path / "d.pdf").pages
    assert "Approved" in pages[0].extract_text()
    assert "Contents" in pages[1].extract_text()


@pytest.fixture
def view(tmp_path: Path, campaign_records: Any, campaign_text: Any) -> View:
    """One variant within the rule on lost documents that fails the rule on a subset; both are priced candidates."""
    failing = campaign_records.variant(name="bf16", dtype="bfloat16", outcomes={0: "wrong", 1: "wrong", 2: "wrong"})
    gates = p.Gates(max_lost_points="50", subsets=[p.SubsetGate(subset="critical", min_accepted_percent="60")])
    campaign_records(tmp_path / "runs", variants=(campaign_records.fp32, failing), gates=gates)
    campaign_text.candidate("our fp32", "fp32", "o1").candidate("our bf16", "bf16", "o1")
    campaign = campaign_text.offer("o1", {3: "12.00", 7: "25.00"}).write()
    return View(build_dossier([tmp_path / "runs"], campaign), Translator("en"), shipped_words(), "paper", 0)


def test_a_variant_within_the_drawn_rule_that_fails_another_is_explained_in_heading_and_mark(view: View) -> None:
    finding = view.say_plain(view.dossier.decision.chart_finding)
    assert finding == "The variant stays within the rule on lost documents, but fails another rule"
    chart = view.charts.difference(finding)
    assert chart is not None
    assert "critical: 3 accepted, 4 needed" in chart.wide
    assert "critical: 3 accepted, 4 needed" in chart.description


def test_a_large_number_has_its_whole_beside_it_and_the_subset_below(view: View) -> None:
    beside, below = (re.sub("<[^>]*>", "", part) for part in view.caption(view.dossier.decision.headline_captions[0]))
    assert (beside, below) == ("of 24", "documents accepted (reference 21); critical 5 of 6")


def test_a_cost_that_is_not_defined_is_noted_once_per_candidate(view: View) -> None:
    notes = [(n.candidate, view.say_plain(n.sentence), n.is_first_of_several) for n in view.package_notes()]
    assert notes == [
        ("our bf16", "not defined: 12.00\u00a0EUR paid, 0 corpora accepted, since a rule is not met", True)
    ]


def test_the_head_of_the_time_says_of_how_many_passes_it_is_the_median(view: View) -> None:
    column = Column("corpus_hours", "corpus", is_median=True)
    (head,) = [h for h in view.grid(view.rows("candidates"), [column]).heads if h.role == "value"]
    assert (head.heading, head.unit, head.is_unit_beside, head.n) == ("corpus", "s", True, "1 to 2")


def test_threads_are_those_a_variant_observed_where_the_machine_does_not_tell(view: View) -> None:
    environment = view.rows("environments")[0]
    variant = view.rows("variants")[0]
    figures = view.dossier.figures
    assert [f.value for f in view.threads(environment)] == [figures[environment.cells["thread_count"]].value]
    for name, value in ((environment.cells["thread_count"], None), (variant.cells["thread_count"], 6)):
        figures[name] = msgspec.structs.replace(figures[name], value=value)
    assert [f.value for f in view.threads(environment)] == [6]
