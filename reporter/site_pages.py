"""The pages of a site that are no dossier: the index over campaigns, and what a folder's README says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .dossier import Dossier
from .markdown_blocks import blocks, title_of
from .render import View, environment, shipped_words
from .translate import Translator


class Entry(NamedTuple):
    """One campaign of the index: its dossier, or the problem that left it without one."""

    slug: str
    name: str
    dossier: Dossier | None
    file_count: int
    no_pdf: str | None
    """Why there is no PDF; null where there is one."""
    problem: str | None

    @property
    def newer_files(self) -> list[str]:
        """Run files of a newer format, which the dossier leaves out."""
        notices = self.dossier.notices if self.dossier else []
        return [notice.parameters["file"] for notice in notices if notice.key == "notice_newer_file"]


class Shown(NamedTuple):
    """An entry with what prints its sentences and figures."""

    entry: Entry
    dossier: Dossier
    view: View
    machines: list[str]


def index_page(entries: Sequence[Entry], *, about: Sequence[tuple[str, str]], lang: str, assets: str) -> str:
    """Return the index: readable campaigns, the newest first, then those that could not be read.

    about: file name and title of each page about a folder of campaigns.
    """
    translator, words = Translator(lang), shipped_words()
    shown = [
        Shown(entry, entry.dossier, view, view.values("candidates", "device"))
        for entry in entries
        if entry.dossier is not None
        for view in [View(entry.dossier, translator, words, "screen", density=0)]
    ]
    shown.sort(key=lambda item: item.entry.slug)
    shown.sort(key=lambda item: (item.dossier.issued, item.dossier.first_run_at or ""), reverse=True)
    unread = [entry for entry in entries if entry.problem is not None]
    template = environment(translator).get_template("site/index.html.j2")
    return template.render(
        shown=shown, unread=unread, about=about, lang=lang, assets=assets, tr=translator,
        has_example_prices=any(item.dossier.has_example_prices for item in shown),
    )  # fmt: skip


def about_page(markdown: str, *, lang: str, assets: str) -> tuple[str, str]:
    """Return the title and the page of a README."""
    translator = Translator(lang)
    title = title_of(markdown)
    template = environment(translator).get_template("site/about.html.j2")
    return title, template.render(title=title, blocks=blocks(markdown), lang=lang, assets=assets, tr=translator)
