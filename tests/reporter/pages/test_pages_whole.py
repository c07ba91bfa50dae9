"""From records to pages: what selection and assembly say is printed, each number under the id it has in the dossier."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from reporter.assemble import build_dossier
from reporter.document import write_html, write_pdf
from reporter.dossier import Dossier


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
