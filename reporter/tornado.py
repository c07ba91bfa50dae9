"""The tornado: how far the price of what is recommended moves when one input is wrong by its declared range."""

from __future__ import annotations

from collector.contract.money import minor_digits

from .board import Board, Chart, finished, label_width
from .charts import ChartMaker
from .dossier import Figure, Row, number
from .drawing import Bar, Mark, Note
from .figure_text import Scale, scale_of
from .svg import ACCENT, QUIET, WARNING
from .translate import N_

ROW = 30.0
END_ROOM = 118.0
"""Pixels right of the plot for the number at a bar's end."""


class Tornado:
    """Draws the table `sensitivity`, the widest swing first; None where nothing was varied."""

    def __init__(self, maker: ChartMaker) -> None:
        self.maker = maker
        self.text = maker.text

    def chart(self, title: str) -> Chart | None:
        """Return the chart of the net price where there is one, else of the hours needed."""
        rows = [r for r in self.maker.rows("sensitivity") if r.labels.get("is_declared") == "yes"]
        if not rows:
            return None
        column = "price" if any(self.maker.figure(r, "price") for r in rows) else "hours"
        base = next((f for r in rows if (f := self.maker.figure(r, column)) is not None), None)
        if base is None or base.value is None:
            return None
        rows.sort(key=lambda r: (-self._width(r, column), r.key))
        figures = [base, *(f for r in rows for side in ("low", "high") if (f := self._end(r, side, column)))]
        scale = scale_of([f for f in figures if f.value is not None])
        values = [self._value(f, scale) for f in figures if f.value is not None]
        names = [self._name(r) for r in rows]
        low, high = min(values), max(values)
        room = (high - low) * 0.08 or abs(high) * 0.1 or 1.0

        def draw(is_narrow: bool) -> str:
            board = Board(self.maker.tr, is_narrow=is_narrow, label_width=label_width(names) + 64, right_room=END_ROOM)
            y = 14.0 + (18 if is_narrow else 0)
            centre = self._value(base, scale)
            board.line(centre, self.text.in_sentence(base))
            for row, name in zip(rows, names, strict=True):
                board.row_label(y, name)
                self._row(board, y, row, column, scale, centre)
                y += ROW + (18 if is_narrow else 0)
            board.height = y - 12
            return board.svg((low - room * 4, high + room), self._axis(base, scale, column))

        said = "; ".join(f"{name}: {self._told(r, column)}" for r, name in zip(rows, names, strict=True))
        return finished("tornado", title, said + ".", **self.maker.both(draw))

    def _axis(self, base: Figure, scale: Scale, column: str) -> str:
        unit = self.text.unit(base, scale)
        if column == "price":
            return self.maker.tell(N_("net price of what is recommended, %(unit)s"), unit=unit)
        return self.maker.tell(N_("hours needed by what is recommended, %(unit)s"), unit=unit)

    def _row(self, board: Board, y: float, row: Row, column: str, scale: Scale, centre: float) -> None:
        ends = {side: self._end(row, side, column) for side in ("low", "high")}
        values = [self._value(f, scale) for f in ends.values() if f is not None and f.value is not None]
        reach = [*values, centre]
        board.bars.append(Bar(y, min(reach), max(reach), ACCENT, 9.0))
        is_other = any(row.labels.get(f"{side}_outcome") != "same" for side in ends)
        refused = [side for side, f in ends.items() if f is None or f.value is None]
        if refused:
            board.marks.append(Mark(y, centre, WARNING, "cross"))
        words = self._told(row, column)
        board.notes.append(Note(y, words, x=max(reach), dx=10, colour=WARNING if is_other else QUIET))

    def _told(self, row: Row, column: str) -> str:
        """Return both ends in words: one value where they are equal, what else is recommended where it changes."""
        parts = []
        for side in ("low", "high"):
            figure = self._end(row, side, column)
            if figure is None or figure.value is None:
                parts.append(self.text.word(row.labels.get(f"{side}_outcome", "not_accepted"), prefix="outcome"))
            else:
                parts.append(self.text.value(figure))
        if parts[0] == parts[1]:
            return parts[0]
        return self.maker.tell(N_("%(low)s to %(high)s"), low=parts[0], high=parts[1])

    def _name(self, row: Row) -> str:
        width = self.maker.figure(row, "range")
        name = self.text.word(row.labels["factor"], prefix="factor")
        return f"{name} ± {self.text.in_sentence(width)}" if width is not None else name

    def _end(self, row: Row, side: str, column: str) -> Figure | None:
        return self.maker.figure(row, f"{side}_{column}")

    def _width(self, row: Row, column: str) -> float:
        ends = [number(self._end(row, side, column)) for side in ("low", "high")]
        if None in ends:
            return float("inf")
        low, high = ends
        return abs((high or 0.0) - (low or 0.0))

    def _value(self, figure: Figure, scale: Scale) -> float:
        if figure.unit == "minor_units" and figure.currency:
            return (number(figure) or 0.0) / float(10 ** minor_digits(figure.currency))
        return (number(figure) or 0.0) / scale.divisor
