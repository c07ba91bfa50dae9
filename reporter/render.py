"""A dossier as one HTML text, for the screen or for paper: sentences, figures and tables through Jinja2 templates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from collector.contract.resources import data_dir

from . import sections
from .board import Chart
from .charts import ChartMaker
from .cost_charts import CostCharts
from .dossier import Dossier, Figure, Row, Sentence
from .engine_side_charts import EngineSideCharts
from .figure_text import FigureText
from .grids import Column, Grid, GridMaker, column, pivoted, shortened
from .load_charts import LoadCharts
from .series_charts import SeriesCharts
from .tornado import Tornado
from .translate import Translator

Medium = Literal["screen", "paper"]
MOST_ROWS: dict[Medium, int] = {"screen": 400, "paper": 60}
"""Rows of one table that are printed; the rest is in the attached data (a row costs about 10 ms of PDF layout)."""
MOST_CANDIDATES: dict[Medium, int] = {"screen": 24, "paper": 12}
"""Configurations on page one, the best first; a section holds every verdict where there are more."""
MOST_TRACED: dict[Medium, int] = {"screen": 400, "paper": 50}
"""Figures whose origin is printed: about two pages of paper."""
MOST_POINTS = (4, 4, 3, 2, 2, 2)
"""Points of each list on page one by density; all of them are in the section on limits."""
MOST_REASONS = (99, 99, 99, 99, 7, 5)
"""Reasons on page one by density, the weightiest first; all of them are in the section on limits."""
ROW_HEIGHTS = (26.0, 22.0, 20.0, 13.0, 12.0, 11.0)
"""Pixels of a row of the chart on page one, by density."""
DENSITIES = range(len(MOST_POINTS))
"""How closely page one is set: 0 with room, 5 closest. Paper takes the first that fits one page."""
LONG_WORD = 28
_PARAMETER = re.compile(r"\{(\w+)\}")


class Worded(Protocol):
    """A message of `wording.SENTENCES`: its English text, and its plural where the parameter `by` decides."""

    @property
    def message(self) -> str: ...
    @property
    def plural(self) -> str | None: ...
    @property
    def by(self) -> str | None: ...


class Attached(NamedTuple):
    """What the annex says of one attachment."""

    name: str
    size: str
    sha256: str
    media_type: str
    relationship: str
    href: str = ""
    """Where the file lies, relative to the page; empty where it is inside the document."""


class SiteLinks(NamedTuple):
    """What a page inside a site leads to: the index, and the same dossier as PDF where there is one."""

    home: str
    pdf: str | None


class PackageNote(NamedTuple):
    """What the packages of a candidate have in common: said once, for its first package where the amounts differ."""

    candidate: str
    offers: list[str]
    sentence: Sentence
    is_of_some: bool
    is_first_of_several: bool


class Words(NamedTuple):
    """The sentences and words that a dossier may cite."""

    sentences: Mapping[str, Worded]
    words: Mapping[str, Worded]


def shipped_words() -> Words:
    """Return the product's own sentences and words."""
    from . import wording

    return Words(wording.SENTENCES, wording.WORDS)


class View:
    """What templates see of a dossier: lookups and print, no computing."""

    def __init__(self, dossier: Dossier, translator: Translator, words: Words, medium: Medium, density: int) -> None:
        self.dossier = dossier
        self.tr = translator
        self.text = FigureText(translator)
        self.words = words
        self.medium = medium
        self.grids = GridMaker(dossier.figures, self.text, MOST_ROWS[medium])
        self.sections = sections.present(dossier)
        self.density = density
        self.most_traced = MOST_TRACED[medium]
        self.most_points = MOST_POINTS[density]
        self.most_reasons = MOST_REASONS[density]
        self.most_candidates = MOST_CANDIDATES[medium]
        self.charts = ChartMaker(
            dossier, self.text, with_narrow=medium == "screen", row_height=ROW_HEIGHTS[density],
            most_compared=self.most_candidates,
        )  # fmt: skip
        self.series_charts = SeriesCharts(self.charts)
        self.load_charts = LoadCharts(self.charts)
        self.engine_side_charts = EngineSideCharts(self.charts)
        self.cost_charts = CostCharts(self.charts)
        self.tornado = Tornado(self.charts)
        self.absent_titles = [translator.text(title) for title in sections.absent(dossier)]

    # -- tables ---------------------------------------------------------------------------------------------------

    def rows(self, table: str, **labels: str) -> list[Row]:
        """Return the rows of a table whose labels equal the given ones; none where the table is absent."""
        found = self.dossier.tables.get(table)
        rows = found.rows if found else []
        return [r for r in rows if all(r.labels.get(k) == v for k, v in labels.items())]

    def rows_of(self, *tables: str) -> list[Row]:
        """Return the rows of several tables, one after the other."""
        return [row for table in tables for row in self.rows(table)]

    def served(self, table: str, *, is_served: bool = True) -> list[Row]:
        """Return the rows of what ran behind a server, or of what did not, by the label that names the server."""
        return [r for r in self.rows(table) if bool(r.labels.get("server")) == is_served]

    def values(self, table: str, label: str) -> list[str]:
        """Return the distinct values of a label, in the order of the rows."""
        return self.distinct(self.rows(table), label)

    def distinct(self, rows: Sequence[Row], label: str) -> list[str]:
        return list(dict.fromkeys(v for r in rows if (v := r.labels.get(label, ""))))

    def valueless(self, rows: Sequence[Row], label: str, cell: str) -> list[str]:
        """Return the values of a label for which no row has a value in that cell."""
        held = {r.labels.get(label) for r in rows if (f := self.figure(r, cell)) is not None and f.value is not None}
        return [v for v in self.distinct(rows, label) if v not in held]

    def pivot(self, rows: Sequence[Row], across: str, cells: Sequence[str], by: Sequence[str]) -> list[Row]:
        return pivoted(rows, across=across, cells=cells, by=by)

    def grid(
        self, rows: Sequence[Row], columns: Sequence[Column], group: str | None = None, most: int | None = None
    ) -> Grid:
        return self.grids.grid(rows, columns, group, most)

    def figure(self, row: Row, key: str) -> Figure | None:
        return self.grids.figure(row, key)

    def subsets(self) -> list[str]:
        """Return the names of the subsets that candidates were judged on."""
        keys = (key for row in self.rows("candidates") for key in row.cells if key.startswith("subset_accepted:"))
        return list(dict.fromkeys(key.partition(":")[2] for key in keys))

    def number_of(self, anchor: str) -> int | None:
        """Return a section's number, or None where it is not printed."""
        anchors = [s.anchor for s in self.sections]
        return anchors.index(anchor) + 1 if anchor in anchors else None

    def threads(self, environment: Row) -> list[Figure]:
        """Return the threads used in an environment: as detected, else the distinct ones its variants observed."""
        detected = self.figure(environment, "thread_count")
        if detected is not None and detected.value is not None:
            return [detected]
        name = environment.labels.get("environment_id", environment.key)
        observed = (self.figure(row, "thread_count") for row in self.rows("variants", environment_id=name))
        found = {f.value: f for f in observed if f is not None and f.value is not None}
        return list(found.values()) or ([detected] if detected is not None else [])

    def package_notes(self) -> list[PackageNote]:
        """Return what rows of packages say, once per candidate.

        The divisor of a defined cost stands in the column's head, and an offer's validity beside the offer.
        """
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows("packages"):
            for sentence in row.sentences:
                if sentence.key not in ("cost_per_corpus", "package_expired", "package_no_price"):
                    groups.setdefault((row.labels.get("candidate", ""), sentence.key), []).append(row)
        notes = []
        for (candidate, key), rows in groups.items():
            said = [s for row in rows for s in row.sentences if s.key == key]
            offers, every = self.distinct(rows, "offer"), self.rows("packages", candidate=candidate)
            is_of_some = offers != self.distinct(every, "offer")
            notes.append(PackageNote(candidate, offers, said[0], is_of_some, any(s != said[0] for s in said)))
        return notes

    def traced(self) -> list[Figure]:
        """Return all figures, those of page one first."""
        decision = self.dossier.decision
        said = [decision.recommendation, *decision.reasons, *decision.headline_captions, decision.chart_finding]
        said += [*decision.would_change, *decision.does_not_show]
        first = [*decision.headline]
        first += [f for row in self.rows("candidates") for f in row.cells.values()]
        first += [p[1:] for sentence in said for p in sentence.parameters.values() if p[1:] in self.dossier.figures]
        rest = sorted(set(self.dossier.figures) - set(first))
        return [self.dossier.figures[f] for f in dict.fromkeys([*first, *rest])]

    def name(self, label: str) -> str:
        """Return a label as a heading: a vocabulary word translated, anything else marked as data."""
        return self.text.word(label) if self.text.is_word(label) else self.data(label)

    # -- text -----------------------------------------------------------------------------------------------------

    def say(self, sentence: Sentence) -> Markup:
        """Return a sentence as markup: figures with their ids, data isolated."""
        return Markup("").join(self._pieces(sentence, self._marked))

    def caption(self, sentence: Sentence) -> tuple[Markup, Markup]:
        """Return what stands beside a large number (a caption's first line, where it has two) and what stands below."""
        first, newline, rest = self.say(sentence).partition("\n")
        return (first, rest) if newline else (Markup(""), first)

    def say_plain(self, sentence: Sentence) -> str:
        """Return a sentence as plain text, for titles of charts and documents."""
        return "".join(str(p) for p in self._pieces(sentence, self._plain))

    def _pieces(self, sentence: Sentence, printed: Any) -> list[Any]:
        worded = self.words.sentences[sentence.key]
        message = self.tr.text(worded.message)
        if worded.plural is not None and worded.by is not None:
            count = self._count(sentence.parameters[worded.by])
            message = self.tr.plural(worded.message, worded.plural, count)
        parts = _PARAMETER.split(message)
        return [
            printed(sentence.parameters[part]) if index % 2 else self._literal(part, printed)
            for index, part in enumerate(parts)
        ]

    def _literal(self, text: str, printed: Any) -> Any:
        return escape(text) if printed == self._marked else text

    def _count(self, parameter: str) -> int:
        value: Any = self.dossier.figures[parameter[1:]].value if parameter.startswith("#") else parameter
        return int(value) if isinstance(value, int | float) or str(value).lstrip("-").isdigit() else 2

    def _plain(self, parameter: str) -> str:
        if parameter.startswith("#") and parameter[1:] in self.dossier.figures:
            return self.text.in_sentence(self.dossier.figures[parameter[1:]])
        if parameter.startswith("@") and parameter[1:] in self.words.words:
            return self.tr.text(self.words.words[parameter[1:]].message)
        return self.tr.date(parameter[1:]) if re.fullmatch(r"~\d{4}-\d\d-\d\d.*", parameter) else parameter

    def _marked(self, parameter: str) -> Markup:
        text = self._plain(parameter)
        if parameter.startswith("#") and parameter[1:] in self.dossier.figures:
            return Markup('<span class="figure" data-figure="{}">{}</span>').format(parameter[1:], text)
        return escape(text) if text != parameter else self.data(parameter)

    def lines(self, text: str) -> Markup:
        """Return `name=value; name=value` as data, one pair per line."""
        return Markup("<br>").join(self.data(part.replace("=", " ", 1)) for part in text.split("; "))

    def data(self, text: str) -> Markup:
        """Return a text that is data: never translated, its direction isolated, broken anywhere if it must be."""
        longest = max(map(len, str(text).split()), default=0)
        if longest > LONG_WORD:
            return Markup('<bdi class="data long" translate="no">{}</bdi>').format(text)
        if len(str(text)) <= LONG_WORD:
            return Markup('<bdi class="data short" translate="no">{}</bdi>').format(text)
        head, dot, tail = str(text).partition(" · ")
        kept = (
            Markup('<span class="tail">{}</span>').format(dot[1:] + tail)
            if dot and len(tail) < LONG_WORD
            else dot[1:] + tail
        )
        return Markup('<bdi class="data" translate="no">{}{}{}</bdi>').format(head, dot[:1], kept)

    # -- charts ---------------------------------------------------------------------------------------------------

    def picture(self, chart: Chart | None) -> Markup:
        """Return a chart's inline pictures: one for paper, two for screens of both widths."""
        if chart is None:
            return Markup("")
        return Markup(chart.wide + chart.narrow)


def render(
    dossier: Dossier,
    *,
    lang: str,
    medium: Medium,
    words: Words | None = None,
    assets: str = "",
    attached: Sequence[Attached] = (),
    unprintable: Sequence[str] = (),
    density: int = 0,
    only_decision: bool = False,
    site: SiteLinks | None = None,
) -> str:
    """Return the whole page.

    assets: folder of style sheets, fonts and data, relative to the page. unprintable: characters that no shipped font
    holds, named in a notice. only_decision: page one alone, to see whether it fits. site: links of a page in a site.
    """
    view = View(dossier, Translator(lang), words or shipped_words(), medium, density)
    template = _environment(view).get_template("dossier.html.j2")
    return template.render(
        view=view,
        dossier=dossier,
        medium=medium,
        assets=assets,
        attached=attached,
        unprintable=unprintable,
        lang=lang,
        only_decision=only_decision,
        site=site,
    )


def short_source(source: str) -> str:
    """Return `run_id:seq` with the first eight characters of the run's id."""
    run_id, _, seq = source.partition(":")
    return f"{run_id[:8]}:{seq}"


def environment(translator: Translator) -> Environment:
    """Return what renders the templates in one language: escaping is on, an unknown name is an error."""
    made = Environment(
        loader=FileSystemLoader(data_dir("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.install_gettext_translations(translator.catalog, newstyle=True)  # type: ignore[attr-defined]
    return made


def _environment(view: View) -> Environment:
    made = environment(view.tr)
    made.globals.update(col=column)
    made.filters.update(
        word=view.text.word,
        date=view.tr.date,
        moment=view.tr.moment,
        data=view.data,
        lines=view.lines,
        short=shortened,
        say=view.say,
        trace=short_source,
    )
    return made
