"""The dossier on paper: the same templates through WeasyPrint, locked to the package's files, then repaired tags."""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import mimetypes
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from collector.contract.errors import DossierError, MissingDependency
from collector.contract.resources import data_dir

from . import pdf_tags
from .dossier import Dossier
from .fonts import code_point, spelled_out, unprintable
from .grids import shortened
from .render import DENSITIES, Attached, Words, render
from .translate import N_, Translator
from .watermark import watermark

VARIANT = "pdf/a-3a"
BASE_URL = "https://dossier.invalid/"
"""Reserved, so nothing can answer there; only the fetcher below knows what lies under it."""
STYLES = ("tokens.css", "fonts-paper.css", "page.css", "paper.css")
UA1 = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    b' xmlns:pdfuaid="http://www.aiim.org/pdfua/ns/id/">'
    b'<rdf:Description rdf:about="" pdfuaid:part="1"/></rdf:RDF>'
)
PANGO = "apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"
MEDIA_TYPES = {".jsonl": "application/jsonl", ".json": "application/json", ".toml": "application/toml"}


class AttachedFile(NamedTuple):
    """A file to attach: its bytes, and what it is to the document (`Source` it was made from, or `Data` of it)."""

    name: str
    content: bytes
    relationship: str


def attached_files(paths: Sequence[Path], made: Mapping[str, bytes]) -> list[AttachedFile]:
    """Return the files to attach, by name; a made one is left out where a file of its name is given.

    Raises DossierError for a file that cannot be read, and for two files of one name.
    """
    files: dict[str, AttachedFile] = {}
    for path in paths:
        if path.name in files:
            raise DossierError(f"two attachments are named {path.name}", next_step="rename one of them")
        try:
            content = path.read_bytes()
        except OSError as fault:
            raise DossierError(
                f"{path} cannot be attached: {fault.strerror or fault}", next_step="give an existing file"
            ) from fault
        files[path.name] = AttachedFile(path.name, content, "Source")
    for name, content in made.items():
        if name not in files:
            files[name] = AttachedFile(name, content, "Data")
        else:
            files[name] = files[name]._replace(relationship="Data")
    return [files[name] for name in sorted(files)]


def pdf_bytes(dossier: Dossier, *, lang: str, files: Sequence[AttachedFile], words: Words | None = None) -> bytes:
    """Return the finished PDF."""
    weasyprint = _weasyprint()
    translator = Translator(lang)
    listed = [_listed(file, translator) for file in files]
    issued = dt.datetime.fromisoformat(dossier.issued[:10]).replace(tzinfo=dt.UTC)
    with _complaints() as complaints:
        density = _density(weasyprint, dossier, translator, words)
        html = render(dossier, lang=lang, medium="paper", words=words, attached=listed, density=density)
        missing = [code_point(c) for c in unprintable(html)]
        if missing:
            html = render(
                dossier, lang=lang, medium="paper", words=words, attached=listed, density=density, unprintable=missing
            )
        document = _laid_out(weasyprint, spelled_out(html), dossier, translator)
        document.metadata.xmp_metadata = [UA1]
        document.metadata.attachments = [_attachment(weasyprint, file, issued) for file in files]
        raw = _written(document)
    if complaints:
        raise DossierError(
            "the PDF could not be made whole: " + "; ".join(complaints),
            next_step="write the HTML instead and report this message",
        )
    return pdf_tags.repaired(raw)


def _written(document: Any) -> bytes:
    with warnings.catch_warnings():
        # WeasyPrint 70 leaves its colour profile to the garbage collector to close.
        warnings.simplefilter("ignore", ResourceWarning)
        result: bytes = document.write_pdf(pdf_variant=VARIANT)
    return result


def _density(weasyprint: Any, dossier: Dossier, translator: Translator, words: Words | None) -> int:
    """Return the roomiest setting in which the decision stays on one page; the closest one where none does."""
    for density in DENSITIES:
        html = render(dossier, lang=translator.lang, medium="paper", words=words, density=density, only_decision=True)
        if len(_laid_out(weasyprint, spelled_out(html), dossier, translator).pages) == 1:
            return density
    return DENSITIES[-1]


def _laid_out(weasyprint: Any, html: str, dossier: Dossier, translator: Translator) -> Any:
    from weasyprint.text.fonts import FontConfiguration

    templates = data_dir("templates")
    fetcher = _fetcher(weasyprint, templates, watermark(translator))
    fonts = FontConfiguration()
    texts = [(templates / "css" / name).read_text(encoding="utf-8") for name in STYLES]
    sheets = [
        weasyprint.CSS(string=text, base_url=BASE_URL, url_fetcher=fetcher, font_config=fonts)
        for text in [*texts, _running_texts(dossier, translator)]
    ]
    page = weasyprint.HTML(string=html, base_url=BASE_URL, url_fetcher=fetcher)
    return page.render(stylesheets=sheets, font_config=fonts, pdf_variant=VARIANT)


def _fetcher(weasyprint: Any, templates: Path, watermark_svg: str) -> Any:
    """Return a fetcher that knows the shipped fonts and the watermark, and refuses everything else."""
    from weasyprint.urls import URLFetcher, URLFetcherResponse

    fonts = {f"{BASE_URL}fonts/{p.name}": p for p in (templates / "fonts").glob("*.ttf")}

    class PackageFilesOnly(URLFetcher):  # type: ignore[misc]
        def fetch(self, url: str, headers: Any = None) -> Any:
            if url in fonts:
                return URLFetcherResponse(url, fonts[url].read_bytes(), {"Content-Type": "font/ttf"})
            if url == f"{BASE_URL}watermark.svg":
                return URLFetcherResponse(url, watermark_svg.encode(), {"Content-Type": "image/svg+xml"})
            raise ValueError(f"refused: {url} is no file of this package")

    return PackageFilesOnly()


def _running_texts(dossier: Dossier, translator: Translator) -> str:
    """Return the @page rules that carry the header's and footer's texts."""

    def text(message: str, **parameters: str) -> str:
        return translator.text(message) % parameters if parameters else translator.text(message)

    revision = text(N_("revision %(n)s"), n=str(dossier.revision))
    header = [dossier.dossier_id, revision, text(N_("issued %(day)s"), day=translator.date(dossier.issued))]
    if dossier.supersedes:
        header.append(text(N_("supersedes %(old)s"), old=dossier.supersedes))
    footer = [dossier.dossier_id, revision, text(N_("records %(digest)s"), digest=shortened(dossier.records_digest))]
    page, _, pages = text(N_("page %(page)s of %(pages)s"), page="\x00", pages="\x01").partition("\x00")
    between, _, after = pages.partition("\x01")
    rules = [
        f"@top-left {{ content: {css_string(text(N_('GPU selection dossier')))} }}",
        f"@top-right {{ content: {css_string(' · '.join(header))} }}",
        f"@bottom-left {{ content: {css_string(' · '.join(footer))} }}",
        f"@bottom-right {{ content: {css_string(page)} counter(page) {css_string(between)} counter(pages)"
        f" {css_string(after)} }}",
    ]
    background = ""
    if dossier.has_example_prices:
        rules.append(f"@bottom-center {{ content: {css_string(text(N_('EXAMPLE PRICES')))} }}")
        background = 'background: url("watermark.svg") center / 190mm no-repeat;'
    return f"@page {{ {background} {' '.join(rules)} }}"


def css_string(text: str) -> str:
    """Return a text as a CSS string in which nothing can end the string or the rule."""
    printed = spelled_out(text)
    return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\{ord(c):06x}" for c in printed) + '"'


def _listed(file: AttachedFile, translator: Translator) -> Attached:
    digest = hashlib.sha256(file.content).hexdigest()
    relationship = translator.text(N_("source") if file.relationship == "Source" else N_("data"))
    size = translator.number(len(file.content)) + " " + translator.text(N_("bytes"))
    return Attached(file.name, size, digest, media_type(file.name), relationship)


def media_type(name: str) -> str:
    """Return the media type by a file's name; the three of our own come first."""
    return MEDIA_TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"


def _attachment(weasyprint: Any, file: AttachedFile, issued: dt.datetime) -> Any:
    for suffix, kind in MEDIA_TYPES.items():
        mimetypes.add_type(kind, suffix)
    return weasyprint.Attachment(
        string=file.content,
        name=file.name,
        description=file.name,
        created=issued,
        modified=issued,
        relationship=file.relationship,
    )


def _weasyprint() -> Any:
    try:
        import weasyprint
    except ImportError as missing:
        raise MissingDependency(
            "the PDF needs the package weasyprint", next_step="pip install 'gpu-dossier[reporter]'"
        ) from missing
    except OSError as missing:
        raise MissingDependency(
            f"the PDF needs the Pango libraries of the system, which were not found ({missing})", next_step=PANGO
        ) from missing
    return weasyprint


HARMLESS = ()
"""Beginnings of WeasyPrint's warnings that are no defect of the page, each with its reason beside it."""


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not message.startswith(HARMLESS):
            self.messages.append(message)


@contextmanager
def _complaints() -> Any:
    """Collect every warning of the layout engine: a missing glyph or picture is silent otherwise."""
    logger = logging.getLogger("weasyprint")
    collector = _Collector()
    logger.addHandler(collector)
    try:
        yield collector.messages
    finally:
        logger.removeHandler(collector)
