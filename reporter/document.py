"""The dossier as files: a page with its folder of styles and fonts, or a PDF with the records attached."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from collector.contract.errors import DossierError
from collector.contract.resources import data_dir

from . import paper
from .dossier import Dossier, dossier_json
from .render import Words, render
from .translate import Translator
from .watermark import watermark
from .writing import unwritable, write_whole

STYLES = ("tokens.css", "fonts-screen.css", "page.css", "screen.css")
DOSSIER_JSON = "dossier.json"


def write_html(dossier: Dossier, out: Path, *, lang: str = "en", words: Words | None = None) -> None:
    """Write the page and, beside it, `<stem>_files/` with its style sheets, fonts and dossier.json.

    All links are relative, no request leaves the folder, and no script or inline style is used.

    Raises DossierError where the place cannot be written; then nothing half-written is left.
    """
    assets = out.parent / f"{out.stem}_files"
    html = render(dossier, lang=lang, medium="screen", words=words, assets=assets.name)
    had_assets = assets.exists()
    try:
        _write_assets(dossier, assets, lang)
        write_whole(out, html.encode())
    except (OSError, DossierError) as fault:
        if not had_assets:
            shutil.rmtree(assets, ignore_errors=True)
        if isinstance(fault, OSError):
            raise unwritable(out, fault) from fault
        raise


def _write_assets(dossier: Dossier, assets: Path, lang: str) -> None:
    write_styles(assets)
    (assets / DOSSIER_JSON).write_bytes(dossier_json(dossier))
    if dossier.has_example_prices:
        (assets / "watermark.svg").write_text(watermark(Translator(lang)), encoding="utf-8")


def write_styles(assets: Path, *, extra: Sequence[str] = ()) -> None:
    """Write the style sheets of a page, and its fonts with their licence."""
    source = data_dir("templates")
    (assets / "fonts").mkdir(parents=True, exist_ok=True)
    for name in (*STYLES, *extra):
        shutil.copyfile(source / "css" / name, assets / name)
    for font in sorted((source / "fonts").glob("*.woff2")):
        shutil.copyfile(font, assets / "fonts" / font.name)
    shutil.copyfile(source / "fonts" / "Inter-OFL.txt", assets / "fonts" / "Inter-OFL.txt")


def write_pdf(
    dossier: Dossier,
    out: Path,
    *,
    lang: str = "en",
    attachments: Sequence[Path] = (),
    words: Words | None = None,
) -> None:
    """Write the PDF: A4, PDF/A-3a and PDF/UA-1 identified, dossier.json and the given files attached.

    Same dossier and same files give the same bytes; no clock is read.

    Raises MissingDependency without WeasyPrint or Pango, and DossierError where a character or picture could not be
    printed or the place cannot be written; then nothing half-written is left.
    """
    files = paper.attached_files(attachments, {DOSSIER_JSON: dossier_json(dossier)})
    pdf = paper.pdf_bytes(dossier, lang=lang, files=files, words=words)
    write_whole(out, pdf)
