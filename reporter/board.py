"""The charts' board: rows at fixed heights, labels beside or above them, named lines; two widths of one chart."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from .drawing import LINE_HEIGHT, Bar, Drawing, Mark, Note, drawn
from .svg import INK, fit_for_page
from .translate import Translator

WRAP_AT = 30
WIDE, NARROW = 640, 340
ABOVE = 7.5
"""Pixels that a line of text needs above and below its middle."""


class Chart(NamedTuple):
    """A drawn chart: wide (paper, desk) and narrow (telephone; empty on paper), and its numbers in words."""

    chart_id: str
    title: str
    description: str
    wide: str
    narrow: str


class Board:
    """Collects what one chart shows at one width; `svg` draws it. Positions are rows in pixels and axis values.

    label_width: pixels left of the plot for row labels; where narrow and stacked, labels stand above their rows.
    right_room: pixels right of the plot for the longest text that starts at the axis' end.
    """

    def __init__(
        self,
        translator: Translator,
        *,
        is_narrow: bool,
        label_width: float,
        right_room: float = 0,
        is_stacked: bool = True,
    ) -> None:
        self.tr = translator
        self.is_narrow = is_narrow
        self.is_stacked = is_narrow and is_stacked
        self.label_width = 0.0 if self.is_stacked else label_width
        self.width = (NARROW if is_narrow else WIDE) - self.label_width - right_room
        self.bars: list[Bar] = []
        self.marks: list[Mark] = []
        self.notes: list[Note] = []
        self.lines: list[tuple[float, str, bool]] = []
        self.gaps: list[tuple[float, float]] = []
        self.height = 0.0

    def row_label(self, y: float, label: str, *, weight: int = 400, colour: str = INK) -> None:
        """Name a row: left of the plot, or above the row where the picture is narrow."""
        if self.is_stacked:
            self.above(y, label, weight=weight, colour=colour)
            return
        text = wrapped(label)
        dy = -(text.count("\n") * LINE_HEIGHT) / 2
        self.notes.append(Note(y, text, pixel=-10, dy=dy, align="right", weight=weight, colour=colour))

    def above(self, y: float, text: str, *, weight: int = 400, colour: str = INK) -> None:
        """Write a text above a row, from the left edge; the vertical lines leave room for it."""
        text = textwrap.fill(text, 56, break_on_hyphens=False)
        self.notes.append(Note(y - 18, text, pixel=0, weight=weight, colour=colour))
        self.gaps.append((y - 18 - ABOVE, y - 18 + LINE_HEIGHT * text.count("\n") + ABOVE))

    def heading(self, y: float, name: str, *, is_first: bool) -> float:
        """Name a group of rows above it, from the left edge; return where its first row lies."""
        y += 8 if is_first else 17
        text = textwrap.fill(name, 56 if self.is_narrow else 100, break_on_hyphens=False)
        self.notes.append(Note(y, text, pixel=-self.label_width, weight=500))
        return y + 15 + LINE_HEIGHT * text.count("\n")

    def line(self, x: float, name: str, *, is_dotted: bool = True) -> None:
        """Draw a named vertical line at an axis value."""
        self.lines.append((x, name, is_dotted))

    def svg(self, domain: tuple[float, float], axis_title: str, *, is_signed: bool = False) -> str:
        """Return the raw SVG; the axis shows `domain` and says what it measures, with the unit."""
        symbols = self.tr.locale.number_symbols["latn"]
        return drawn(
            Drawing(
                width=self.width,
                height=self.height,
                domain=domain,
                axis_title=axis_title,
                is_signed=is_signed,
                tick_count=5 if self.is_narrow else 8,
                decimal_sign=symbols["decimal"],
                group_sign=symbols["group"],
                bars=tuple(self.bars),
                marks=tuple(self.marks),
                notes=tuple(self.notes),
                lines=tuple(self.lines),
                gaps=tuple(self.gaps),
            )
        )


def wrapped(label: str) -> str:
    """Return the label in lines of at most 30 characters; a longer word is broken, nothing is cut off."""
    return textwrap.fill(label, WRAP_AT, break_on_hyphens=False) or label


def label_width(labels: list[str]) -> float:
    """Return the room in pixels that wrapped labels need at the charts' type size, on the generous side."""
    longest = max((len(part) for label in labels for part in wrapped(label).split("\n")), default=0)
    return 18 + 5.6 * longest


def finished(chart_id: str, title: str, description: str, *, wide: str, narrow: str) -> Chart:
    """Return both pictures fit for a page. On paper the caption says the title, so the numbers are the alternative."""
    alternative = title if narrow else description

    def fit(svg: str, width: str) -> str:
        return svg and fit_for_page(
            svg,
            chart_id=f"{chart_id}-{width}",
            title=alternative,
            description=description,
            css_class=f"chart chart-{width}",
        )

    return Chart(chart_id, title, description, fit(wide, "wide"), fit(narrow, "narrow"))
