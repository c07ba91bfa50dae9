"""The chart of the engine's side: one bar per configuration, its parts in the order in which a request passes them."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from .board import Board, Chart, finished, label_width
from .charts import MOST_ROWS, ChartMaker
from .dossier import Figure, Row, number
from .drawing import LINE_HEIGHT, Bar, Note
from .figure_text import Scale, scale_of
from .svg import ACCENT, INK, QUIET, RULE
from .translate import N_, NO_BREAK

PARTS = (
    ("queue_s", "queue", INK), ("prefill_s", "prefill", QUIET), ("decode_s", "decode", ACCENT),
    ("inference_s", "inference", ACCENT), ("remainder_s", "remainder", RULE),
)  # fmt: skip
"""Neighbours differ in lightness as well as in colour: the parts stay apart on a grey printer."""
WORDS_AT = (92, 54)
"""Characters of a line of numbers, wide and narrow."""


class _Part(NamedTuple):
    figure: Figure
    name: str
    colour: str
    value: float


class EngineSideCharts:
    """Draws with the figures, the language and the widths of a ChartMaker. A chart without evidence is None."""

    def __init__(self, maker: ChartMaker) -> None:
        self.maker = maker
        self.text = maker.text
        self.tr = maker.tr

    def phases(self, title: str) -> Chart | None:
        """Queue, prefill, decode and remainder of each configuration: the server's counters, else its responses."""
        rows = [(r.labels["label"], parts) for r in self._rows() if (parts := self._parts(r))][:MOST_ROWS]
        if not rows:
            return None
        scale = scale_of([part.figure for _, parts in rows for part in parts])
        top = max(sum(max(part.value, 0.0) for part in parts) for _, parts in rows) / scale.divisor
        names = [label for label, _ in rows]
        told = [self._told(parts, scale) for _, parts in rows]

        def draw(is_narrow: bool) -> str:
            board = Board(self.tr, is_narrow=is_narrow, label_width=label_width(names), right_room=8)
            domain = (0.0, (top or 1.0) * 1.02)
            y = 24.0 + (16 if is_narrow else 0)
            for (label, parts), words in zip(rows, told, strict=True):
                lines = textwrap.fill(words, WORDS_AT[is_narrow], break_on_hyphens=False)
                more = LINE_HEIGHT * lines.count("\n")
                board.row_label(y - (13 if is_narrow else 0), label)
                y += more
                board.notes.append(Note(y - more, lines, x=0.0, dx=1, dy=-13))
                self._bar(board, y, parts, scale, gap=domain[1] / board.width)
                y += 52 if is_narrow else 36
            board.height = y - 22
            unit = self.tr.text(scale.unit_word)
            return board.svg(domain, self.maker.tell(N_("mean per request, %(unit)s"), unit=unit))

        said = "; ".join(f"{name}: {words}" for name, words in zip(names, told, strict=True))
        return finished("engine-side", title, said + ".", **self.maker.both(draw))

    def _rows(self) -> list[Row]:
        """Return one row per configuration that has a whole path: counters first, else the responses' own timings."""
        chosen: dict[str, Row] = {}
        for row in self.maker.rows("engine_side"):
            if number(self.maker.figure(row, "remainder_s")) is not None:
                chosen.setdefault(row.labels["configuration_key"], row)
        return list(chosen.values())

    def _parts(self, row: Row) -> list[_Part]:
        found = []
        for column, name, colour in PARTS:
            figure = self.maker.figure(row, column)
            value = number(figure)
            if figure is not None and value is not None:
                found.append(_Part(figure, name, colour, value))
        return found

    def _told(self, parts: list[_Part], scale: Scale) -> str:
        """Return the parts in words, so that no colour is needed to read them."""
        unit = self.tr.text(scale.unit_word)
        words = [f"{self._name(part)}{NO_BREAK}{self.text.value(part.figure, scale)}{NO_BREAK}{unit}" for part in parts]
        return " · ".join(words)

    def _name(self, part: _Part) -> str:
        return self.text.word(part.name, prefix="duration")

    def _bar(self, board: Board, y: float, parts: list[_Part], scale: Scale, *, gap: float) -> None:
        """Draw the parts end to end with a pixel between; one below zero has no length, its number stands above."""
        at = 0.0
        for part in parts:
            size = max(part.value, 0.0) / scale.divisor
            if size > 2 * gap:
                board.bars.append(Bar(y, at, at + size - gap, part.colour, 11.0))
            at += size
