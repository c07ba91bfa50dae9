"""`reporter site`: one folder of pages over several campaigns; links resolve, texts stay out, nothing else is lost."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import msgspec
import pytest
from click.testing import CliRunner

from collector.contract.errors import DossierError, MissingDependency
from reporter import cli, site
from reporter.dossier import Confirmation, Sentence
from reporter.markdown_blocks import blocks, title_of
from reporter.site import campaign_folders, slugs, write_site
from reporter.site_pages import Entry, index_page
from reporter.translate import PSEUDO_LANGUAGE
from reporter.wording import sentence

Kit = Any
SALT_HEX = bytes(range(32)).hex()
CANDIDATES = [("CPU fp32", "fp32", "dear"), ("CPU bf16", "bf16", "cheap")]


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(cli.main, ["site", *(str(argument) for argument in arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def no_pango(*_: object, **__: object) -> None:
    raise MissingDependency("Pango is missing", next_step="apt-get install libpango-1.0-0")


def no_pdf(_: object, out: Path, **__: object) -> None:
    out.write_bytes(b"%PDF-1.7 in place of a slow one")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the campaigns and their site are kept once made; every test gets a copy of its own."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def samples(made: Path, tmp_path: Path, campaign_records: Kit, campaign_text: Any) -> Path:
    """Two campaigns with texts, documents and a salt beside them, and a README."""
    if (made / "samples").exists():
        shutil.copytree(made / "samples", tmp_path / "samples")
        return tmp_path / "samples"
    for name, variant, offer in CANDIDATES:
        campaign_text.candidate(name, variant, offer)
    text = campaign_text.offer("dear", {3: "300.00"}).offer("cheap", {3: "100.00"}).write().read_text(encoding="utf-8")
    (tmp_path / "campaign.toml").unlink()
    folder = tmp_path / "samples"
    for name, start in (("First trial", "2026-01-02T09:00:00"), ("second", "2026-01-03T09:00:00")):
        campaign_records(folder / name / "runs", start=start, has_texts=True)
        (folder / name / "campaign.toml").write_text(text.replace("SD-2026-001", f"SD-{name[0]}"), encoding="utf-8")
        (folder / name / "documents.jsonl").write_text('{"text": "a secret document"}\n', encoding="utf-8")
        (folder / name / "protocol.salt").write_text(SALT_HEX, encoding="utf-8")
    (folder / "README.md").write_text("# What these show\n\nTwo *made-up* runs in `runs/`.\n", encoding="utf-8")
    shutil.copytree(folder, made / "samples")
    return folder


@pytest.fixture
def public(made: Path, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site of the two campaigns; the PDF is made for real in test_the_real_pdf_of_each_campaign_is_published."""
    monkeypatch.setattr(site, "write_pdf", no_pdf)
    if (made / "public").exists():
        shutil.copytree(made / "public", tmp_path / "public")
        return tmp_path / "public"
    result = run(samples, "-o", tmp_path / "public")
    assert (result.exit_code, result.stdout.strip()) == (0, str(tmp_path / "public" / "index.html")), result.output
    shutil.copytree(tmp_path / "public", made / "public")
    return tmp_path / "public"


class Links(HTMLParser):
    """Collects links, ids, figures with their printed text, and the elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.figures: list[tuple[str, str]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._figure: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {key: value or "" for key, value in attrs}
        self.elements.append((tag, named))
        self.links += [named[key] for key in ("href", "src") if key in named]
        self.ids |= {named["id"]} if "id" in named else set()
        self._figure = named.get("data-figure")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._figure is not None:
            self.figures.append((self._figure, data))
            self._figure = None


def page(path: Path) -> Links:
    return Links(path.read_text(encoding="utf-8"))


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_e16_every_link_of_every_page_leads_to_a_file_and_to_an_id_of_the_site(public: Path) -> None:
    pages = sorted(public.rglob("*.html"))
    assert [path.relative_to(public).as_posix() for path in pages] == [
        "about-samples.html", "first-trial/index.html", "index.html", "second/index.html",
    ]  # fmt: skip
    reached = set()
    read = {path: page(path) for path in pages}
    for path in pages:
        for link in read[path].links:
            assert "://" not in link, (path, link)
            assert not link.startswith("/"), (path, link)
            place, anchor = urldefrag(link)
            target = (path.parent / unquote(place)).resolve() if place else path
            assert target.is_relative_to(public), (path, link)
            assert target.is_file(), (path, link)
            assert not anchor or anchor in read[target].ids, (path, link)
            reached.add(target)
    for sheet in public.glob("assets/*.css"):
        for url in re.findall(r'url\("?([^")]+)', sheet.read_text(encoding="utf-8")):
            assert (sheet.parent / url).is_file() or url == "watermark.svg", url
    data = set(public.glob("*/data/*")) | set(public.glob("*/dossier.pdf"))
    assert len(data) == 10
    assert data <= reached


def test_styles_and_fonts_are_there_once_and_each_dossier_leads_back_to_the_index(public: Path) -> None:
    assert [path.parent.relative_to(public).as_posix() for path in public.rglob("*.woff2")] == ["assets/fonts"] * 5
    for name in ("first-trial", "second"):
        links = page(public / name / "index.html").links
        assert {"../index.html", "dossier.pdf", "../assets/screen.css"} <= set(links)
    assert not [link for link in page(public / "index.html").links if link.startswith("..")]


def test_the_figures_of_the_index_are_those_of_each_dossier_json(public: Path) -> None:
    index = page(public / "index.html")
    shown = dict(index.figures)
    known: dict[str, Any] = {}
    for name in ("first-trial", "second"):
        known |= json.loads((public / name / "data" / "dossier.json").read_bytes())["figures"]
    assert set(shown) <= set(known)
    assert set(index.figures) == set(shown.items()), "one figure is printed in two ways"
    prices = [figure for figure in shown if figure.endswith("/price_net")]
    accepted = [figure for figure in shown if figure.endswith("/accepted_documents")]
    assert [shown[figure].replace("\u00a0", " ") for figure in prices] == ["100.00 EUR"]
    assert {int(shown[figure]) for figure in accepted} == {known[figure]["value"] for figure in accepted} == {20, 21}


def test_the_index_names_question_date_machine_configurations_and_verdict_of_each_campaign(public: Path) -> None:
    index = page(public / "index.html")
    for text in (
        "Which machine should read our invoices?", "Rent Example CPU 2 cores from Example Cloud", "Example CPU 2 cores",
        "CPU bf16", "CPU fp32", "recommended", "What these show", "SD-F", "SD-s",
    ):  # fmt: skip
        assert text in index.text, text
    assert "2\u00a0January\u00a02026" in index.text
    assert index.text.index("SD-s") < index.text.index("SD-F"), "the newest stands first"


def test_the_index_says_what_the_test_documents_did_to_a_recommendation(decide: Any, campaign_text: Any) -> None:
    text = campaign_text.candidate("CPU bf16", "bf16", "cheap").offer("cheap", {3: "100.00"})
    dossier = decide("plain", text.write())

    def shown(status: Any, verdict: Sentence | None) -> str:
        found = msgspec.structs.replace(
            dossier, confirmation=Confirmation(status=status, verdict=verdict, look_count=1)
        )  # fmt: skip
        entry = Entry("a", "a", found, 4, None, None)
        return " ".join(Links(index_page([entry], about=[], lang="en", assets="assets")).text.split())

    refuted = shown("not_confirmed", sentence("not_confirmed_failed_unknown", label="CPU bf16"))
    assert "Recommended by validation, not confirmed" in refuted
    assert refuted.index("NOT CONFIRMED.") < refuted.index("Rent Example CPU")
    open_yet = shown("not_finished", sentence("not_finished"))
    assert "Recommendation Rent Example CPU" in open_yet
    assert "Not confirmed yet: the run on the test documents is not finished." in open_yet
    assert "onfirmed" not in shown("no_test_documents", None)


def test_the_index_leaves_no_english_in_another_language(decide: Any, campaign_text: Any) -> None:
    text = campaign_text.candidate("CPU bf16", "bf16", "cheap").offer("cheap", {3: "100.00"}, basis="example")
    entries = [
        Entry("a", "a", decide("plain", text.write()), 4, None, None), Entry("b", "b", None, 0, None, "a problem"),
    ]  # fmt: skip
    about = [("about.html", "")]

    def english(lang: str) -> set[str]:
        html = index_page(entries, about=about, lang=lang, assets="assets")
        html = re.sub(r'<(bdi|p)[^>]* translate="no">.*?</\1>', "", html, flags=re.DOTALL)
        shown = Links(re.sub(r'<span class="figure".*?</span>', "", html)).text
        return set(re.findall(r"(?<![\w.])[A-Za-z]{3,}(?!\w)", shown))

    assert {"Recommendation", "Configurations", "campaign"} <= english("en"), "the finder sees English"
    assert english(PSEUDO_LANGUAGE) <= {"January", "February"}, "dates of the pseudo-language are English"


def test_pages_have_one_main_landmark_one_title_ordered_headings_captions_and_no_script(public: Path) -> None:
    for path in public.rglob("*.html"):
        elements = page(path).elements
        tags = [tag for tag, _ in elements]
        levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
        assert (tags.count("main"), levels.count(1), levels[0]) == (1, 1, 1), path
        assert all(after - before <= 1 for before, after in pairwise(levels)), path
        assert not {"script", "style", "iframe"} & set(tags), path
        assert not [named for _, named in elements if "style" in named or any(key.startswith("on") for key in named)]
        (policy,) = [named["content"] for _, named in elements if named.get("http-equiv") == "Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
    index = page(public / "index.html")
    assert sum(tag == "caption" for tag, _ in index.elements) == 2
    assert all(named.get("scope") for tag, named in index.elements if tag == "th")
    assert all(named.get("aria-label") for tag, named in index.elements if tag == "nav")


def test_e13_the_same_input_gives_the_same_bytes_and_the_old_site_is_replaced_whole(
    public: Path, samples: Path, tmp_path: Path
) -> None:
    before = files(public)
    assert run(samples, "-o", public).exit_code == 0
    assert files(public) == before
    shutil.rmtree(samples / "second")
    (public / ".DS_Store").write_bytes(b"what a desktop leaves behind")
    assert run(samples, "-o", public).exit_code == 0
    assert not (public / "second").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["public", "samples"]


def test_site_json_holds_the_digest_of_every_other_file(public: Path) -> None:
    mark = json.loads((public / "site.json").read_bytes())
    found = {name: hashlib.sha256(content).hexdigest() for name, content in files(public).items()}
    del found["site.json"]
    assert mark["files"] == found
    assert [entry["slug"] for entry in mark["campaigns"]] == ["first-trial", "second"]


def test_no_text_document_or_salt_reaches_the_site_unless_texts_are_asked_for(
    public: Path, samples: Path, tmp_path: Path
) -> None:
    texts = [json.loads(line) for path in samples.rglob("*.texts.jsonl") for line in path.read_bytes().splitlines()]
    secrets = {entry["text"] for entry in texts if "text" in entry} | {SALT_HEX, "a secret document"}
    assert len(secrets) > 40
    content = b"\n".join(files(public).values())
    assert not [secret for secret in secrets if secret.encode() in content]
    assert run(samples, "-o", tmp_path / "open", "--attach", "texts").exit_code == 0
    opened = files(tmp_path / "open")
    assert len([name for name in opened if name.endswith(".texts.jsonl")]) == 2
    assert not [name for name in opened if name.endswith(("protocol.salt", "documents.jsonl"))]
    assert not [name for name, held in opened.items() if SALT_HEX.encode() in held and "texts" not in name]


def test_e23_a_campaign_that_cannot_be_read_is_listed_with_its_fault_and_the_others_are_built(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "write_pdf", no_pdf)
    broken = samples / "second" / "campaign.toml"
    broken.write_text(broken.read_text(encoding="utf-8").replace('"300.00"', '"<b>300"'), encoding="utf-8")
    (samples / "third" / "runs").mkdir(parents=True)
    result = run(samples, "-o", tmp_path / "public")
    assert result.exit_code == 1
    assert "second/campaign.toml:" in result.stderr
    index = page(tmp_path / "public" / "index.html")
    assert "second/campaign.toml:" in index.text
    assert "<b>300" in index.text
    assert "third" in index.text
    assert str(tmp_path) not in (tmp_path / "public" / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "public" / "first-trial" / "dossier.pdf").is_file()
    assert not (tmp_path / "public" / "second").exists()


def test_without_pango_the_site_is_written_and_says_that_there_is_no_pdf(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "write_pdf", no_pango)
    result = run(samples / "second", "-o", tmp_path / "public")
    assert result.exit_code == 0
    assert "no PDF: Pango is missing" in result.stderr
    assert "no PDF was made" in page(tmp_path / "public" / "index.html").text
    assert not list((tmp_path / "public").rglob("*.pdf"))


def test_a_folder_that_is_no_site_of_ours_is_refused_and_left_as_it_was(samples: Path, public: Path) -> None:
    for made in ("notes", "public"):
        (samples.parent / made).mkdir(exist_ok=True)
        (samples.parent / made / "mine.txt").write_text("mine", encoding="utf-8")
        before = files(samples.parent / made)
        result = run(samples, "-o", samples.parent / made)
        assert result.exit_code == 2
        assert ("mine.txt" in result.stderr) == (made == "public")
        assert files(samples.parent / made) == before
    assert run(samples, "-o", samples / "README.md").exit_code == 2
    assert run(samples, "-o", samples).exit_code == 2


def test_a_site_that_breaks_off_leaves_the_old_one_and_nothing_half_written(
    public: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(public)

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(site, "index_page", full)
    with pytest.raises(DossierError, match="No space left on device"):
        write_site([samples], public)
    assert files(public) == before
    assert sorted(path.name for path in public.parent.iterdir()) == ["public", "samples"]


def test_a_fault_between_the_two_renames_brings_the_old_site_back(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "index.html").write_text("old", encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        site._swap(tmp_path / "never made", tmp_path / "public", tmp_path / "old")
    assert (tmp_path / "public" / "index.html").read_text(encoding="utf-8") == "old"
    assert not (tmp_path / "old").exists()


def test_a_sample_without_a_campaign_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, said in (("empty", "holds no campaign"), ("nowhere", "does not exist")):
        with pytest.raises(DossierError, match=said):
            campaign_folders([tmp_path / name])


def test_names_of_campaigns_become_distinct_names_in_an_address() -> None:
    assert slugs(["Hóa đơn 2026", "hoa-on 2026", "發票", "assets", "發票"]) == [
        "hoa-on-2026", "hoa-on-2026-2", "campaign", "assets-2", "campaign-2",
    ]  # fmt: skip


def test_a_readme_becomes_blocks_and_nothing_in_it_becomes_markup() -> None:
    found = blocks(
        "# Title\n\nOne <b>paragraph</b>\nover `two` lines.\n\n- item\n  goes on\n- [far](https://example.org/) and\n"
        "  [near](near.html)\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n```sh\nmake demo\n```\n"
    )
    assert [block.kind for block in found] == ["heading", "paragraph", "list", "table", "code"]
    assert title_of("text\n\n## Second\n") == "Second"
    assert [span.kind for span in found[1].lines[0]] == ["text", "code", "text"]
    assert found[1].lines[0][0].text == "One <b>paragraph</b> over "
    assert [[span.href for span in line] for line in found[2].lines] == [[""], ["https://example.org/", "", ""]]
    assert [len(row) for row in found[3].rows] == [2, 2]
    assert found[4].lines[0][0].text == "make demo"


@pytest.mark.slow
def test_the_real_pdf_of_each_campaign_is_published_with_its_records(samples: Path, tmp_path: Path) -> None:
    import pikepdf

    assert run(samples / "second", "-o", tmp_path / "public").exit_code == 0
    with pikepdf.open(tmp_path / "public" / "second" / "dossier.pdf") as pdf:
        assert sorted(pdf.attachments) == sorted(path.name for path in (tmp_path / "public").glob("second/data/*"))


FRAME = """<!DOCTYPE html><title>waiting</title>
<iframe src="/x/y/{name}" style="border:0;width:{width}px;height:900px"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.onload = () => {{
  const page = frame.contentDocument.documentElement;
  document.title = page.scrollWidth + " of " + frame.contentWindow.innerWidth;
}};
</script>"""


@pytest.fixture
def served(public: Path) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """The site under /x/y/ of a server on loopback: its address and what was asked of it with the answer's code."""
    asked: list[tuple[str, int]] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            rest = urldefrag(unquote(path))[0].removeprefix("/x/y/")
            return str(public / rest) if path.startswith("/x/y/") else str(public / "outside" / "of" / "it")

        def do_GET(self) -> None:
            if not self.path.startswith("/frame/"):
                return super().do_GET()
            _, _, width, name = self.path.split("/", 3)
            content = FRAME.format(width=width, name=name).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return None

        def send_response(self, code: int, message: str | None = None) -> None:
            asked.append((self.path, code))
            super().send_response(code, message)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/x/y/", asked
    server.shutdown()
    thread.join()
    server.server_close()


def browse(tmp_path: Path, *options: str) -> str:
    """Run headless Chromium once and return what it printed; skips where there is none."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    usual = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]  # fmt: skip
    done = subprocess.run([browser, *usual, *options], check=True, capture_output=True, text=True, timeout=90)
    return done.stdout


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index.html", "second/index.html"])
def test_e16_a_browser_opens_the_site_under_a_sub_path_and_asks_for_nothing_else(
    served: tuple[str, list[tuple[str, int]]], tmp_path: Path, name: str
) -> None:
    address, asked = served
    browse(tmp_path, f"--screenshot={tmp_path / 'shot.png'}", "--window-size=1280,900", address + name)
    wanted = [(path, code) for path, code in asked if path != "/favicon.ico"]
    assert {code for _, code in wanted} <= {200, 304}, wanted
    assert all(path.startswith("/x/y/") for path, _ in wanted)
    assert {"/x/y/assets/page.css", "/x/y/assets/fonts/Inter-Regular.woff2"} <= {path for path, _ in wanted}


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["index.html", "about-samples.html", "second/index.html"])
def test_no_page_is_wider_than_a_telephone_or_a_desk(
    served: tuple[str, list[tuple[str, int]]], tmp_path: Path, name: str, width: int
) -> None:
    address, _ = served
    frame = address.replace("/x/y/", f"/frame/{width}/") + name
    shown = browse(tmp_path, "--virtual-time-budget=8000", "--window-size=1400,900", "--dump-dom", frame)
    found = re.search(r"<title>(\d+) of (\d+)</title>", shown)
    assert found is not None, shown
    assert found[2] == str(width)
    assert int(found[1]) <= width
