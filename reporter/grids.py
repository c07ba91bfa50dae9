"""Tables of the dossier laid out for a page: heads with unit, n and basis; rows of cells; notes. No arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .dossier import Figure, Row
from .figure_text import FigureText, Scale, scale_of
from .translate import N_

NAMED_BY_HEADING = ("count", "documents", "records", "packages", "requests", "passes", "corpora")
"""Units whose word would repeat the column's heading."""
SHORT_UNITS = ("nanoseconds", "seconds", "hours", "percent")
NOWHERE = Scale("", 1, 0)


@dataclass(frozen=True)
class Column:
    """What a template asks for: a label or a figure of each row, under a heading already translated.

    kind: `auto` (a figure where any row has a cell of that name, else a label), `label` (data, printed as it is),
    `word` (a vocabulary word), `figure`, `moment` (a UTC stamp), `date`, `digest` (shortened), `said` (the row's
    sentences).
    prefix: vocabulary of a word that has another meaning elsewhere, e.g. `result` for `result:pass`.
    scale_with: columns of one such name share unit and precision, so that they can be compared.
    of: name of the figure that holds the whole (`189` under the head `of 200`, or `189 of 200` where rows differ).
    is_median: the head says `median of n`, also where rows have different n.
    """

    key: str
    heading: str
    kind: str = "auto"
    of: str | None = None
    with_interval: bool = False
    is_optional: bool = False
    is_wide: bool = False
    is_median: bool = False
    prefix: str = ""
    scale_with: str = ""


@dataclass(frozen=True)
class Head:
    """The head of one printed column; role `value`, or `interval` or `basis` beside the value's own column."""

    column: Column
    heading: str
    of: str = ""
    unit: str = ""
    n: str = ""
    basis: str = ""
    role: str = "value"
    scale: Scale = NOWHERE
    is_unit_beside: bool = False
    """A short unit stands behind the heading (`corpus, h`); on a line of its own it would be lost."""

    @property
    def is_number(self) -> bool:
        return self.column.kind == "figure"


@dataclass(frozen=True)
class Cell:
    """One printed cell."""

    head: Head
    text: str
    figure: Figure | None = None
    whole: Figure | None = None
    whole_text: str = ""
    is_missing: bool = False
    is_data: bool = False


@dataclass(frozen=True)
class GridRow:
    """One printed row; `group` is set on the first row of a group."""

    row: Row
    cells: list[Cell]
    group: str | None = None


@dataclass(frozen=True)
class Grid:
    """A table ready to print. `hidden_count` rows are not shown; `missing` says why cells are empty."""

    heads: list[Head]
    rows: list[GridRow]
    shown_count: int
    total_count: int
    missing: list[str] = field(default_factory=list)
    level_percent: str = ""

    @property
    def is_grouped(self) -> bool:
        return any(row.group is not None for row in self.rows)

    @property
    def is_cut(self) -> bool:
        return self.shown_count < self.total_count


class GridMaker:
    """Lays out rows for one language; at most `most_rows` rows of a table are printed."""

    def __init__(self, figures: dict[str, Figure], text: FigureText, most_rows: int) -> None:
        self.figures = figures
        self.text = text
        self.most_rows = most_rows

    def figure(self, row: Row, key: str | None) -> Figure | None:
        return self.figures[row.cells[key]] if key is not None and key in row.cells else None

    def grid(
        self, rows: Sequence[Row], columns: Sequence[Column], group: str | None = None, most: int | None = None
    ) -> Grid:
        """Return the table; columns marked optional are left out where no row has a value.

        most: rows that are printed at most, where that is fewer than elsewhere.
        """
        shown = list(rows[: min(self.most_rows, most or self.most_rows)])
        known = [self._known(c, rows) for c in columns]
        kept = [c for c in known if not c.is_optional or any(self._has(row, c) for row in rows)]
        heads = [head for column in kept for head in self._heads(column, shown, self._scale(column, kept, shown))]
        printed: list[GridRow] = []
        last: str | None = None
        for row in shown:
            name = row.labels.get(group, "") if group else None
            printed.append(GridRow(row, [self._cell(row, h) for h in heads], name if name != last else None))
            last = name
        return Grid(heads, printed, len(shown), len(rows), self._missing(shown, kept), self._level(shown, kept))

    def _known(self, column: Column, rows: Sequence[Row]) -> Column:
        if column.kind != "auto":
            return column
        return replace(column, kind="figure" if any(column.key in row.cells for row in rows) else "label")

    def _has(self, row: Row, column: Column) -> bool:
        if column.kind == "figure":
            figure = self.figure(row, column.key)
            return figure is not None and figure.value is not None
        return bool(row.sentences if column.kind == "said" else row.labels.get(column.key))

    def _column_figures(self, rows: Sequence[Row], key: str | None) -> list[Figure]:
        found = (self.figure(row, key) for row in rows)
        return [f for f in found if f is not None and f.value is not None]

    def _scale(self, column: Column, columns: Sequence[Column], rows: Sequence[Row]) -> Scale:
        alike = [c for c in columns if c is column or (column.scale_with and c.scale_with == column.scale_with)]
        figures = [f for c in alike if c.kind == "figure" for f in self._column_figures(rows, c.key)]
        return scale_of(figures) if figures else NOWHERE

    def _heads(self, column: Column, rows: Sequence[Row], scale: Scale) -> list[Head]:
        if column.kind != "figure":
            return [Head(column, column.heading)]
        figures = self._column_figures(rows, column.key)
        first = figures[0] if figures else None
        whole = self._uniform_whole(column, rows)
        head = Head(
            column,
            column.heading,
            of=self.text.value(whole) if whole else "",
            unit=self.text.unit(first, scale) if first and not column.of and self._one_unit(figures) else "",
            n="" if column.of else self._counted(figures, may_differ=column.is_median),
            basis=self._uniform_basis(figures),
            scale=scale,
            is_unit_beside=first is not None and first.unit in SHORT_UNITS,
        )
        heads = [head]
        if column.with_interval and any(f.interval for f in figures):
            heads.append(Head(column, column.heading, role="interval", scale=scale))
        if figures and not head.basis:
            heads.append(Head(column, column.heading, role="basis"))
        return heads

    def _counted(self, figures: Sequence[Figure], *, may_differ: bool) -> str:
        """Return the n that all figures share; `1 to 2` where they may differ."""
        counted = sorted({f.n for f in figures if f.n is not None})
        if not counted or any(f.n is None for f in figures) or (len(counted) > 1 and not may_differ):
            return ""
        if len(counted) == 1:
            return self.text.tr.number(counted[0])
        ends = {"low": self.text.tr.number(counted[0]), "high": self.text.tr.number(counted[-1])}
        return self.text.tr.text(N_("%(low)s to %(high)s")) % ends

    def _one_unit(self, figures: Sequence[Figure]) -> bool:
        return len({(f.unit, f.currency) for f in figures}) == 1 and figures[0].unit not in NAMED_BY_HEADING

    def _uniform_whole(self, column: Column, rows: Sequence[Row]) -> Figure | None:
        wholes = self._column_figures(rows, column.of)
        return wholes[0] if wholes and len({w.value for w in wholes}) == 1 else None

    def _uniform_basis(self, figures: Sequence[Figure]) -> str:
        bases = {self.text.weakest_basis(f) for f in figures}
        return bases.pop() if len(bases) == 1 else ""

    def _cell(self, row: Row, head: Head) -> Cell:
        column = head.column
        if column.kind != "figure":
            return Cell(head, self._label(row, column), is_data=self._is_data(row, column))
        figure = self.figure(row, column.key)
        if head.role == "interval":
            return Cell(head, self.text.interval(figure, head.scale) if figure else "", figure)
        if head.role == "basis":
            return Cell(head, self.text.weakest_basis(figure) if figure and figure.value is not None else "", figure)
        if figure is None or figure.value is None:
            return Cell(head, self.text.reason(figure) if figure else "", figure, is_missing=True)
        scale = head.scale if head.unit or column.of else None
        if scale is None and figure.unit in NAMED_BY_HEADING:
            scale = head.scale
        whole = self.figure(row, column.of) if column.of and not head.of else None
        text = self.text.value(figure, scale)
        if figure.unit in ("minor_units", "amount") and not head.unit:
            text = self.text.in_sentence(figure)
        return Cell(
            head,
            text,
            figure,
            whole,
            self.text.value(whole) if whole else "",
        )

    def _is_data(self, row: Row, column: Column) -> bool:
        if column.kind == "word":
            return not self.text.is_word(row.labels.get(column.key, ""), prefix=column.prefix)
        return column.kind in ("label", "digest")

    def _label(self, row: Row, column: Column) -> str:
        value = row.labels.get(column.key, "")
        if column.kind == "word":
            return self.text.word(value, prefix=column.prefix)
        if column.kind == "moment":
            return self.text.tr.moment(value) if value else ""
        if column.kind == "date":
            return self.text.tr.date(value) if value else ""
        return shortened(value) if column.kind == "digest" else value

    def _missing(self, rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
        reasons: list[str] = []
        for row in rows:
            for column in columns:
                figure = self.figure(row, column.key) if column.kind == "figure" else None
                if figure is not None and figure.value is None:
                    reasons.append(self.text.reason(figure))
        return list(dict.fromkeys(reasons))

    def _level(self, rows: Sequence[Row], columns: Sequence[Column]) -> str:
        keys = [c.key for c in columns if c.with_interval]
        levels = {f.interval.level_percent for k in keys for f in self._column_figures(rows, k) if f.interval}
        return self.text.tr.number(max(levels), 0) if levels else ""


def shortened(digest: str) -> str:
    """Return the first and last four characters of a digest; a short text stays whole."""
    return f"{digest[:4]}…{digest[-4:]}" if len(digest) > 16 and " " not in digest else digest


def column(key: str, heading: str, **more: Any) -> Column:
    """Return a column, for templates."""
    return Column(key, heading, **more)


def pivoted(rows: Sequence[Row], *, across: str, cells: Sequence[str], by: Sequence[str]) -> list[Row]:
    """Return one row per distinct `by` labels; its cells are named `<cell>:<value of the label across>`."""
    merged: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = tuple(row.labels.get(label, "") for label in by)
        old = merged.get(key, Row(key="~".join(key), labels=dict(zip(by, key, strict=True))))
        found = {f"{c}:{row.labels.get(across, '')}": row.cells[c] for c in cells if c in row.cells}
        merged[key] = Row(key=old.key, labels=old.labels, cells={**old.cells, **found})
    return list(merged.values())
