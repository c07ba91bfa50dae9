"""The PDF: page one alone answers, text comes out as it went in, fonts and files are inside, and the bytes repeat."""

from __future__ import annotations

import builtins
import io
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pikepdf
import pytest
from pypdf import PdfReader

from collector.contract.errors import DossierError, ExitCode, MissingDependency
from collector.contract.resources import data_dir
from reporter import paper
from reporter.document import write_pdf
from reporter.dossier import Dossier, dossier_json
from reporter.fonts import spelled_out, unprintable
from reporter.render import Words
from reporter.translate import Translator

GOLDEN = Path(__file__).parent / "decision_page.txt"


def page_text(pdf: Path, page: int) -> str:
    return PdfReader(pdf).pages[page].extract_text()


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFC", text))


@pytest.fixture(scope="module")
def whole_text(small_pdf: Path) -> str:
    return squeezed(" ".join(page.extract_text() for page in PdfReader(small_pdf).pages))


def test_page_one_alone_says_what_why_how_much_and_until_when(small_pdf: Path) -> None:
    text = squeezed(page_text(small_pdf, 0))
    for said in (
        "Which GPU should read our 12,000 invoices a month?",
        "Rent one L40S 48 GB for one 7-day package",
        "1,092.00 EUR net, 1,299.48 EUR with VAT.",
        "leaves 19.3 GiB free",
        "189", "28.6 GiB", "546.00 EUR", "derived from example",
        "What would change this", "What this does not show",
        "Prepared", "Technical review", "Financial review", "Approved",
    ):  # fmt: skip
        assert squeezed(said) in text, said


def test_page_one_is_the_golden_page(small_pdf: Path) -> None:
    """Accept a wanted change with the file that the message names."""
    actual = "\n".join(line.strip() for line in page_text(small_pdf, 0).splitlines() if line.strip())
    scrubbed = (
        re.sub(r"\d+ of \d+$|page \d+ of \d+", "page N of N", re.sub(r"[0-9a-f]{4}…[0-9a-f]{4}", "dddd…dddd", actual))
        + "\n"
    )
    saved = small_pdf.with_name("decision_page.actual.txt")
    saved.write_text(scrubbed, encoding="utf-8")
    golden = GOLDEN.read_text(encoding="utf-8")
    assert squeezed(scrubbed) == squeezed(golden), f"if the new page is right: cp {saved} {GOLDEN}"


def test_contents_follow_on_page_two_with_true_page_numbers(small_pdf: Path) -> None:
    reader = PdfReader(small_pdf)
    assert 6 <= len(reader.pages) <= 20
    contents = reader.pages[1].extract_text()
    for title in ("Method", "Memory", "How to read the numbers"):
        number = re.search(rf"{title}[ .]*(\d+)", contents)
        assert number, title
        assert title in reader.pages[int(number[1]) - 1].extract_text()


def test_each_page_has_the_running_header_and_footer(small_pdf: Path) -> None:
    pages = PdfReader(small_pdf).pages
    for number, page in enumerate(pages, 1):
        text = page.extract_text()
        assert "SD-2026-014 · revision 2 · issued 30" in text
        assert f"page {number} of {len(pages)}" in text
        assert "EXAMPLE PRICES" in text
    assert "End of document" in pages[-1].extract_text()


def test_outline_names_every_section(small_pdf: Path) -> None:
    titles = [str(o["/Title"]) for o in PdfReader(small_pdf).outline if not isinstance(o, list)]
    assert titles[0].startswith("Which GPU")
    assert [t for t in titles if "Quality reached" in t]
    assert len(titles) >= 13


def test_e06_only_shipped_fonts_are_in_the_file_and_all_are_embedded(small_pdf: Path) -> None:
    seen: set[str] = set()
    with pikepdf.open(small_pdf) as pdf:
        for page in pdf.pages:
            for font in page.obj.Resources.get("/Font", {}).values():
                (descendant,) = font.DescendantFonts
                assert "/FontFile2" in descendant.FontDescriptor
                assert "/ToUnicode" in font
                seen.add(str(font.BaseFont).split("+")[1])
    assert seen <= {
        "Inter",
        "Inter-Medium",
        "Inter-Semi-Bold",
        "Inter-Italic",
        "Inter-Display-Semi-Bold",
        "DejaVu-Sans-Shipped",
    }
    assert {"Inter", "Inter-Display-Semi-Bold"} <= seen


def test_e09_labels_of_charts_are_text_in_the_pdf(whole_text: str) -> None:
    for label in (
        "rule: lose at most 2 of 200",
        "accepted documents against the reference, percentage points",
        "peak, GiB",
        "−3.0",
    ):
        assert squeezed(label) in whole_text


def test_files_travel_inside_byte_for_byte_with_their_kind(
    small_pdf: Path, small_factory: Callable[..., Dossier]
) -> None:
    reader = PdfReader(small_pdf)
    held = {name: contents[0] for name, contents in reader.attachments.items()}
    assert held["dossier.json"] == dossier_json(small_factory("example"))
    assert held["campaign.toml"] == b'question = "Which?"\n'
    assert held["20261118T080000Z-runa.jsonl"] == b'{"kind":"header"}\n'
    with pikepdf.open(small_pdf) as pdf:
        files = {str(f.UF): (str(f.AFRelationship), str(f.EF.F.Subtype)) for f in pdf.Root.AF}
        assert len(pdf.Root.AF) == len(files) == 3
    assert files["20261118T080000Z-runa.jsonl"] == ("/Source", "/application/jsonl")
    assert files["dossier.json"] == ("/Data", "/application/json")


def test_e12_tagged_with_language_title_scopes_alternatives_and_no_stray_content(small_pdf: Path) -> None:
    with pikepdf.open(small_pdf) as pdf:
        assert str(pdf.Root.Lang) == "en"
        assert bool(pdf.Root.MarkInfo.Marked)
        xmp = bytes(pdf.Root.Metadata.read_bytes())
        assert b'pdfaid:part="3"' in xmp or b"<pdfaid:part>3" in xmp
        assert b'pdfuaid:part="1"' in xmp
        heads, figures = [], []
        stack: list[Any] = [pdf.Root.StructTreeRoot]
        while stack:
            node = stack.pop()
            if str(node.get("/S", "")) == "/TH":
                heads.append(node)
            if str(node.get("/S", "")) == "/Figure":
                figures.append(node)
            kids = node.get("/K")
            kids = list(kids) if isinstance(kids, pikepdf.Array) else [kids] if kids is not None else []
            stack += [k for k in kids if isinstance(k, pikepdf.Dictionary) and "/S" in k]
        assert heads
        assert all(any("/Scope" in a for a in (h.A if isinstance(h.A, pikepdf.Array) else [h.A])) for h in heads)
        assert len(figures) >= 4
        assert all(str(f.get("/Alt", "")) for f in figures)
        for page in pdf.pages:
            assert all(int(a.F) & 4 for a in page.obj.get("/Annots", []))
        footers = sum(
            1
            for i in pikepdf.parse_content_stream(pdf.pages[0])
            if str(i.operator) == "BDC" and str(i.operands[0]) == "/Artifact"
        )
        assert footers >= 4


@pytest.mark.slow
def test_e13_another_process_with_another_hash_seed_makes_the_same_bytes(small_pdf: Path, tmp_path: Path) -> None:
    out = tmp_path / "again" / "dossier.pdf"
    code = (
        "import importlib.util, sys, pathlib; from reporter.document import write_pdf\n"
        "s = importlib.util.spec_from_file_location('fixture', sys.argv[1]); m = importlib.util.module_from_spec(s)\n"
        "sys.modules['fixture'] = m; s.loader.exec_module(m)\n"
        "files = [pathlib.Path(p) for p in sys.argv[3:]]\n"
        "write_pdf(m.make_small('example'), pathlib.Path(sys.argv[2]), attachments=files, words=m.make_words())\n"
    )
    files = [str(small_pdf.with_name("campaign.toml")), str(small_pdf.with_name("20261118T080000Z-runa.jsonl"))]
    subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent / "conftest.py"), str(out), *files],
        check=True, env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Ho_Chi_Minh"}, timeout=300,
    )  # fmt: skip
    assert out.read_bytes() == small_pdf.read_bytes()


@pytest.mark.slow
def test_e07_letters_of_many_scripts_come_out_as_they_went_in_and_others_are_spelled_out(
    small: Dossier, words: Words, tmp_path: Path
) -> None:
    decision = msgspec.structs.replace(small.decision, does_not_show=[], would_change=[])
    names = ["Hóa đơn điện tử cho mỗi", "¿Cuánto cuesta?", "İSTANBUL ılık ğüş", "Ελληνικά", "Счёт-фактура", "فاتورة"]
    rows = [
        msgspec.structs.replace(r, labels=r.labels | {"detail": f"{name} 発注書 🧾"})
        for r, name in zip(small.tables["decisions"].rows * 3, names, strict=True)
    ]
    tables = {
        "decisions": msgspec.structs.replace(small.tables["decisions"], rows=rows),
        "candidates": small.tables["candidates"],
    }
    write_pdf(msgspec.structs.replace(small, decision=decision, tables=tables), tmp_path / "d.pdf", words=words)
    text = squeezed(" ".join(p.extract_text() for p in PdfReader(tmp_path / "d.pdf").pages))
    for name in names[:-1]:
        assert squeezed(name) in text, name
    assert squeezed(names[-1]) in text or squeezed(names[-1])[::-1] in text
    assert squeezed("[U+767A][U+6CE8][U+66F8]") in text
    assert "[U+1F9FE]" in text
    assert squeezed("Characters that no font of this document holds") in text


def test_characters_without_a_glyph_are_found_before_they_become_boxes() -> None:
    assert unprintable("aé発\u200f\n🧾") == ["発", "🧾"]
    assert spelled_out("a発b") == "a[U+767A]b"
    assert spelled_out("Hóa đơn – −0.5 × … ·") == "Hóa đơn – −0.5 × … ·"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/x.png", "https://example.org/x.css", "file:///etc/passwd", "data:text/css,body{}",
        "https://dossier.invalid/../../etc/passwd", "https://dossier.invalid/fonts/../base.html.j2", "ftp://x/y",
    ],
)  # fmt: skip
def test_the_layout_engine_may_read_the_package_s_fonts_and_nothing_else(url: str) -> None:
    import weasyprint

    fetcher = paper._fetcher(weasyprint, data_dir("templates"), "<svg/>")
    with pytest.raises(ValueError, match="refused"):
        fetcher.fetch(url)
    assert fetcher.fetch(f"{paper.BASE_URL}fonts/Inter-Regular.ttf").read(4) == b"\x00\x01\x00\x00"


def test_a_reference_to_another_place_stops_the_pdf(
    small: Dossier, words: Words, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = '<html lang="en"><head><title>t</title></head><body><img src="file:///etc/passwd" alt="x"></body></html>'
    monkeypatch.setattr(paper, "render", lambda *_, **__: plain)
    with pytest.raises(DossierError, match=r"the PDF could not be made whole.*refused"):
        write_pdf(small, tmp_path / "d.pdf", words=words)
    assert not list(tmp_path.iterdir())


def test_texts_of_header_and_footer_cannot_leave_their_string(small: Dossier) -> None:
    assert paper.css_string('a"} x') == '"a\\000022\\00007d\\000020x"'
    hostile = msgspec.structs.replace(small, dossier_id='x" } body { display: none } /*')
    css = paper._running_texts(hostile, Translator("en"))
    assert "display" in css
    assert "display:" not in css
    assert css.count("{") == css.count("}") == 5


def test_without_pango_the_next_step_is_the_install_command(
    small: Dossier, words: Words, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name == "weasyprint":
            raise OSError("cannot load library 'libpango-1.0-0'")
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependency) as missing:
        write_pdf(small, tmp_path / "d.pdf", words=words)
    assert missing.value.next_step == "apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"
    assert missing.value.exit_code == ExitCode.MISSING_DEPENDENCY
    assert not list(tmp_path.iterdir())


def test_attachments_that_cannot_be_read_or_share_a_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for path in (tmp_path / "x.toml", tmp_path / "a" / "x.toml"):
        path.write_bytes(b"")
    with pytest.raises(DossierError, match="two attachments are named"):
        paper.attached_files([tmp_path / "x.toml", tmp_path / "a" / "x.toml"], {})
    with pytest.raises(DossierError, match="cannot be attached"):
        paper.attached_files([tmp_path / "none"], {})


def test_a_given_dossier_json_is_attached_once_as_data() -> None:
    made = paper.attached_files([], {"dossier.json": b"{}"})
    assert [(f.name, f.relationship) for f in made] == [("dossier.json", "Data")]


def test_repair_keeps_a_file_without_tags_readable() -> None:
    from reporter.pdf_tags import repaired

    raw = io.BytesIO()
    pdf = pikepdf.new()
    pdf.add_blank_page()
    pdf.save(raw)
    assert len(PdfReader(io.BytesIO(repaired(raw.getvalue()))).pages) == 1


@pytest.mark.slow
def test_e01_a_large_campaign_stays_within_pages_and_says_what_it_leaves_out(
    dossier: Dossier, words: Words, tmp_path: Path
) -> None:
    source = [row for row in dossier.tables["changed_documents"].rows if row.labels["severity"] != "critical"]
    rows = [msgspec.structs.replace(source[n % len(source)], key=str(n)) for n in range(10_000)]
    tables = {
        **dossier.tables,
        "changed_documents": msgspec.structs.replace(dossier.tables["changed_documents"], rows=rows),
    }
    write_pdf(msgspec.structs.replace(dossier, tables=tables), tmp_path / "d.pdf", words=words)
    reader = PdfReader(tmp_path / "d.pdf")
    assert len(reader.pages) < 40
    assert squeezed("Showing 60 of 10000 rows") in squeezed(" ".join(p.extract_text() for p in reader.pages))
