"""The page: strict policy, no inline code, figures with ids, hostile text shown as text, one folder that travels."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from collector.contract.errors import DossierError
from collector.contract.resources import data_dir
from reporter.document import write_html
from reporter.dossier import Dossier, Figure, Row, Table
from reporter.figure_text import FigureText
from reporter.render import Words, render
from reporter.translate import Translator

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Collects elements, attributes and visible text, with the stack of elements around each text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, list[tuple[str, dict[str, str]]]]] = []
        self.stack: list[tuple[str, dict[str, str]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = (tag, {k: v or "" for k, v in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack
        assert self.stack[-1][0] == tag, f"</{tag}> closes <{self.stack[-1][0]}>"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((data, list(self.stack)))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(t for t, _ in self.texts))


@pytest.fixture(scope="module")
def page(small: Dossier, words: Words) -> Page:
    return Page(render(small, lang="en", medium="screen", words=words, assets="x_files"))


def test_the_page_is_well_nested_and_holds_no_inline_style_script_or_handler(page: Page) -> None:
    assert page.stack == []
    assert not {"style", "script", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert "style" not in attributes, (tag, attributes)
        assert not [a for a in attributes if a.startswith("on")], (tag, attributes)


def test_the_policy_allows_the_own_folder_and_nothing_else(page: Page) -> None:
    (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self' data:")


def test_e16_nothing_is_fetched_from_anywhere_else(page: Page, small: Dossier, words: Words, tmp_path: Path) -> None:
    references = [v for _, a in page.elements for k, v in a.items() if k in ("href", "src", "xlink:href")]
    assert references
    assert all(r.startswith(("x_files/", "#")) for r in references)
    write_html(small, tmp_path / "dossier.html", words=words)
    for sheet in (tmp_path / "dossier_files").glob("*.css"):
        for url in re.findall(r'url\("?([^")]+)', sheet.read_text(encoding="utf-8")):
            assert (sheet.parent / url).is_file() or url == "watermark.svg", url
            assert "://" not in url


def test_links_inside_the_page_have_targets_and_ids_are_unique(page: Page) -> None:
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in page.all("a")} <= set(ids)
    described = [a[k] for _, a in page.elements for k in ("aria-labelledby", "aria-describedby") if k in a]
    assert set(described) <= set(ids)


def test_every_figure_carries_an_id_of_the_dossier_and_prints_its_value(small: Dossier, words: Words) -> None:
    page = Page(render(small, lang="en", medium="screen", words=words))
    cited = {a["data-figure"] for a in page.all("span") if "data-figure" in a}
    assert cited <= set(small.figures)
    headline = [t for t, stack in page.texts if stack[-1][1].get("data-figure") == small.decision.headline[0]]
    assert "189" in headline
    shown = {a["data-figure"] for a in page.all("span") if "data-figure" in a}
    candidates = [f for row in small.tables["candidates"].rows for k, f in row.cells.items() if k in ("peak_bytes",)]
    assert set(candidates) <= shown


def test_tables_have_captions_and_scoped_heads_and_headings_do_not_skip_a_level(page: Page) -> None:
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(th.get("scope") in ("col", "row", "rowgroup") for th in page.all("th"))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert {"main", "nav", "header", "footer"} <= {tag for tag, _ in page.elements}


def test_example_prices_are_named_on_the_page_and_behind_it(
    small_factory: Callable[..., Dossier], words: Words, tmp_path: Path
) -> None:
    write_html(small_factory("example"), tmp_path / "a.html", words=words)
    html = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "EXAMPLE PRICES" in Page(html).text()
    assert "example-prices" in html
    assert "EXAMPLE PRICES" in (tmp_path / "a_files" / "watermark.svg").read_text(encoding="utf-8")
    write_html(small_factory("quoted"), tmp_path / "b.html", words=words)
    assert "EXAMPLE PRICES" not in (tmp_path / "b.html").read_text(encoding="utf-8")
    assert not (tmp_path / "b_files" / "watermark.svg").exists()


HOSTILE = (
    "</td></tr></script><script>document.title='x'</script><img src=x onerror=1> {{ 7*7 }} {% raw %} &"
    " \u202e\u05d0\u05d1 😀"
)


def poisoned(dossier: Dossier, text: str) -> Dossier:
    """Put the text into every label, name, reason and parameter of the dossier."""

    def row(old: Row) -> Row:
        kept = (
            "status",
            "days",
            "package_days",
            "valid_until",
            "retrieved",
            "began_at",
            "ended_at",
            "metric",
            "scope",
            "phase",
            "length_class",
            "severity",
            "clusters",
            "is_reference",
            "is_repeated",
        )
        labels = {k: v if k in kept else f"{text} {v}" for k, v in old.labels.items()}
        said = [
            msgspec.structs.replace(
                s, parameters={k: v if v.startswith("#") else text for k, v in s.parameters.items()}
            )
            for s in old.sentences
        ]
        return msgspec.structs.replace(old, labels=labels, sentences=said)

    tables = {k: msgspec.structs.replace(t, rows=[row(r) for r in t.rows]) for k, t in dossier.tables.items()}
    figures = {
        k: msgspec.structs.replace(f, missing_reason=text, formula=text, sources=[text])
        for k, f in dossier.figures.items()
    }
    return msgspec.structs.replace(
        dossier,
        tables=tables,
        figures=figures,
        question=text,
        issuer=text,
        prepared_for=text,
        supersedes=text,
        dossier_id=text,
        protocol_name=text,
    )


def test_e23_e24_hostile_texts_are_shown_as_text_and_change_no_structure(
    small: Dossier, words: Words, page: Page
) -> None:
    clean = page
    page = Page(render(poisoned(small, HOSTILE), lang="en", medium="screen", words=words))
    assert page.stack == []
    assert not {"script", "img"} & {tag for tag, _ in page.elements}
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    for tag in ("table", "section", "svg", "caption"):
        assert len(page.all(tag)) == len(clean.all(tag)), tag
    assert "{{ 7*7 }}" in page.text()
    assert "49" not in re.findall(r"\b49\b", page.text())
    (title,) = [t for t, stack in page.texts if [tag for tag, _ in stack[-2:]] == ["head", "title"]]
    assert "<script>" in title


def test_e08_data_is_isolated_so_that_its_direction_moves_no_number(page: Page) -> None:
    isolated = page.all("bdi")
    assert isolated
    assert all(a.get("translate") == "no" for a in isolated)


def test_no_template_uses_the_safe_filter_on_data() -> None:
    for template in data_dir("templates").rglob("*.j2"):
        for line in template.read_text(encoding="utf-8").splitlines():
            for use in re.findall(r"[^{]*\|\s*safe", line):
                assert """' class="group"'|safe""" in use, (template.name, line)
        assert "autoescape" not in template.read_text(encoding="utf-8")


def test_what_pairs_show_stands_once_severe_changes_first_and_a_small_p_is_never_printed_as_zero(
    dossier: Dossier, words: Words
) -> None:
    html = render(dossier, lang="en", medium="screen", words=words)
    text = re.sub(r"<[^>]+>", "", html)
    assert text.count("The rules are applied to the documents counted here.") == 1
    assert "&lt; 0.0001" in text
    one_by_one = text.index("Newly wrong in a subset with a rule of its own, one by one")
    assert one_by_one < text.index("Other documents whose acceptance changed, hard ones first")
    assert "takes the 24 templates or sources as the unit" in text
    assert "Median against the reference, as a ratio" in text


def test_templates_compute_nothing() -> None:
    arithmetic = re.compile(r"\{[{%][^}]*[\w)\]]\s+[-+*/]\s+[\w(][^}]*[}%]\}|\|\s*(sum|round)\b|//")
    for template in data_dir("templates").rglob("*.j2"):
        assert not arithmetic.findall(re.sub(r'"[^"]*"', '""', template.read_text(encoding="utf-8"))), template.name


def test_two_writings_of_one_dossier_are_the_same_bytes(small: Dossier, words: Words, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_html(small, tmp_path / name / "dossier.html", words=words)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert len(files) > 8
    assert files == sorted(p.relative_to(tmp_path / "b") for p in (tmp_path / "b").rglob("*") if p.is_file())
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)


def test_dossier_json_beside_the_page_is_the_dossier(small: Dossier, words: Words, tmp_path: Path) -> None:
    write_html(small, tmp_path / "d.html", words=words)
    assert msgspec.json.decode((tmp_path / "d_files" / "dossier.json").read_bytes(), type=Dossier) == small


def test_a_place_that_cannot_be_written_is_a_clear_error_and_leaves_nothing(
    small: Dossier, words: Words, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(DossierError, match="cannot be written") as refused:
        write_html(small, tmp_path / "file" / "d.html", words=words)
    assert "choose a folder" in refused.value.next_step
    (tmp_path / "taken.html").mkdir()
    with pytest.raises(DossierError, match="cannot be written"):
        write_html(small, tmp_path / "taken.html", words=words)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "taken.html"]


def test_a_dossier_with_no_winner_no_prices_and_no_tables_still_prints(small: Dossier, words: Words) -> None:
    from reporter.dossier import Sentence

    nothing = msgspec.structs.replace(
        small.decision,
        has_winner=False,
        recommendation=Sentence(key="fixture.none"),
        headline=[],
        headline_captions=[],
        prices_valid_until=None,
    )
    bare = msgspec.structs.replace(
        small, decision=nothing, tables={}, not_tested=[], notices=[], first_run_at=None, issuer=None
    )
    text = Page(render(bare, lang="en", medium="screen", words=words)).text()
    assert "No candidate meets every rule; nothing is recommended." in text
    assert "No recommendation" in text
    assert "Offers and packages of 3, 7 and 30 days" in text.partition("Sections without evidence")[2]


def test_each_offer_prints_its_provider_class_source_dates_and_basis(page: Page) -> None:
    assert (
        "Offer l40s-a of Provider A: reserved for a term; source: price list 17, retrieved 20 November 2026, "
        "valid until 14 December 2026; basis: quoted."
    ) in page.text().replace("\u00a0", " ")


def test_a_missing_value_prints_as_a_dash_with_its_reason(small: Dossier, words: Words) -> None:
    key = "candidates/int8~l40s~b1~c8/peak_bytes"
    gone = Figure(figure_id=key, value=None, unit="bytes", basis="measured", missing_reason="not_permitted")
    changed = msgspec.structs.replace(small, figures={**small.figures, key: gone})
    page = Page(render(changed, lang="en", medium="screen", words=words))
    cells = [a for a in page.all("span") if a.get("data-figure") == key and "missing" in a.get("class", "")]
    assert "not permitted" in {a.get("title") for a in cells}


def test_a_value_of_zero_is_printed_as_zero(words: Words, small: Dossier) -> None:
    row = Row(key="w", labels={"warning_class": "W", "phase": "load"}, cells={"repeat_count": "w/z"})
    table = Table(name="warnings", grain="", rows=[row])
    zero = Figure(figure_id="w/z", value=0, unit="count", basis="measured")
    changed = msgspec.structs.replace(
        small, figures={**small.figures, "w/z": zero}, tables={**small.tables, "warnings": table}
    )
    page = Page(render(changed, lang="en", medium="screen", words=words))
    assert [t for t, stack in page.texts if stack[-1][1].get("data-figure") == "w/z"] == ["0"]


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_a_contrast_of_at_least_4_5_in_both_themes() -> None:
    css = data_dir("templates") / "css"
    light = dict(re.findall(r"--(\w+): (#[0-9A-F]{6})", (css / "tokens.css").read_text(encoding="utf-8")))
    dark = dict(re.findall(r"--(\w+): (#[0-9A-F]{6})", (css / "screen.css").read_text(encoding="utf-8")))
    for theme in (light, dark):
        for name in ("ink", "quiet", "accent", "warning"):
            a, b = sorted((luminance(theme[name]), luminance(theme["ground"])), reverse=True)
            assert (a + 0.05) / (b + 0.05) >= 4.5, (name, theme[name])


def test_the_charts_colours_are_the_page_s_colours() -> None:
    from reporter import svg

    tokens = dict(
        re.findall(
            r"--(\w+): (#[0-9A-F]{6})", (data_dir("templates") / "css" / "tokens.css").read_text(encoding="utf-8")
        )
    )
    assert (tokens["ink"], tokens["quiet"], tokens["accent"], tokens["warning"]) == (
        svg.INK,
        svg.QUIET,
        svg.ACCENT,
        svg.WARNING,
    )
    assert (tokens["rule"], tokens["hairline"], tokens["ground"]) == (svg.RULE, svg.HAIRLINE, svg.GROUND)


def test_a_count_that_decides_the_form_of_a_sentence_takes_the_plural(small: Dossier, words: Words) -> None:
    from reporter.dossier import Sentence
    from reporter.render import View

    view = View(small, Translator("en"), words, "screen", 0)
    one = view.say_plain(Sentence(key="notice_failures", parameters={"failures": "1"}))
    two = view.say_plain(Sentence(key="notice_failures", parameters={"failures": "2"}))
    assert (one, two) == ("1 failure was recorded and is listed.", "2 failures were recorded and are listed.")


def test_figures_words_and_dates_in_sentences_are_printed_as_such(small: Dossier, words: Words) -> None:
    from reporter.dossier import Sentence
    from reporter.render import View

    view = View(small, Translator("en"), words, "screen", 0)
    said = view.say(Sentence(key="verdict_failed", parameters={"cause": "@out_of_memory", "phase": "@load"}))
    assert said == "failed: out of memory in loading"
    dated = view.say_plain(Sentence(key="subtitle_prices", parameters={"date": "~2026-12-14"}))
    assert dated == "Prices valid until 14\u00a0December\u00a02026."
    priced = view.say(Sentence(key="fixture.caption4", parameters={"paid": "#decision/net"}))
    assert '<span class="figure" data-figure="decision/net">1,092.00\u00a0EUR</span>' in priced
    assert FigureText(view.tr).in_sentence(small.figures["decision/net"]) == "1,092.00\u00a0EUR"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_from_a_file_with_its_styles_under_the_policy(
    small: Dossier, words: Words, tmp_path: Path, scheme: str
) -> None:
    import shutil

    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    write_html(small, tmp_path / "sub path" / "dossier.html", words=words)
    shot = tmp_path / "shot.png"
    options: list[Any] = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--screenshot={shot}",
        "--window-size=1280,900",
        f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
        (tmp_path / "sub path" / "dossier.html").as_uri(),
    ]
    subprocess.run(options, check=True, capture_output=True, timeout=90)
    with Image.open(shot) as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24) or []}
    ground, accent = (
        ((0x14, 0x17, 0x1A), (0x5C, 0xC4, 0xC0)) if scheme == "dark" else ((255, 255, 255), (0x0B, 0x6E, 0x6E))
    )
    assert {ground, accent} <= colours
