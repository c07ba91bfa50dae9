"""The charts' drawing board: rows at fixed heights, named lines, direct labels, one axis; Altair to SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

import altair
import vl_convert

from collector.contract.resources import data_dir

from .svg import ACCENT, INK, QUIET, RULE, WARNING, fit_for_page
from .translate import Translator

alt: Any = altair
"""Altair's generated signatures are too narrow for a checker: styles are passed as mappings here."""
T = TypeVar("T")
FONT = "Inter"
SMALL = 9.5
WRAP_AT = 30
WIDE, NARROW = 640, 340
LINE_HEIGHT = 12


class Chart(NamedTuple):
    """A drawn chart: wide (paper, desk) and narrow (telephone; empty on paper), and its numbers in words."""

    chart_id: str
    title: str
    description: str
    wide: str
    narrow: str


class Bar(NamedTuple):
    """A horizontal line from `low` to `high` in row `y`."""

    y: float
    low: float
    high: float
    colour: str = ACCENT
    width: float = 1.8
    is_dashed: bool = False


class Mark(NamedTuple):
    """A point; shape `circle`, `cross` or `stroke` (a tick)."""

    y: float
    x: float
    colour: str = ACCENT
    shape: str = "circle"


class Note(NamedTuple):
    """A text at a value of the axis (`x`) or, where `pixel` is given, at that distance from the left edge."""

    y: float
    text: str
    x: float | None = None
    pixel: float | None = None
    dx: float = 0.0
    dy: float = 0.0
    align: str = "left"
    colour: str = INK
    weight: int = 400


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
        self.height = 0.0

    def row_label(self, y: float, label: str, *, weight: int = 400, colour: str = INK) -> None:
        """Name a row: left of the plot, or above the row where the picture is narrow."""
        if self.is_stacked:
            text = textwrap.fill(label, 56, break_on_hyphens=False)
            self.notes.append(Note(y - 18, text, pixel=0, weight=weight, colour=colour))
            return
        text = wrapped(label)
        dy = -(text.count("\n") * LINE_HEIGHT) / 2
        self.notes.append(Note(y, text, pixel=-10, dy=dy, align="right", weight=weight, colour=colour))

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
        y = alt.Y("y:Q", scale=alt.Scale(domain=[0, self.height], range=[0, self.height]), axis=None)
        number = "format(datum.value, '+~')" if is_signed else "format(datum.value, ',~')"
        axis = alt.Axis(
            title=axis_title, labelExpr=f"datum.value == 0 ? '0' : {number}", tickCount=5 if self.is_narrow else 8
        )
        x = alt.X("x:Q", scale=alt.Scale(domain=list(domain), nice=False), axis=axis)
        chart = alt.layer(*self._layers(x, y, domain)).properties(width=self.width, height=self.height)
        spec = chart.configure(background="transparent", font=FONT, **_CONFIG).to_dict(validate=False)
        _register_fonts()
        symbols = self.tr.locale.number_symbols["latn"]
        numbers = {"decimal": symbols["decimal"], "thousands": symbols["group"], "grouping": [3], "currency": ["", ""]}
        result: str = vl_convert.vegalite_to_svg(spec, format_locale=numbers)
        return result

    def _layers(self, x: Any, y: Any, domain: tuple[float, float]) -> list[Any]:
        layers: list[Any] = []
        for position, name, is_dotted in self.lines:
            layers.append(self._vertical(position, x, y, is_dotted))
            part = (position - domain[0]) / ((domain[1] - domain[0]) or 1.0)
            align = "left" if part < 0.2 else "right" if part > 0.8 else "center"
            if name:
                layers.append(_texts([Note(0, name, x=position, dy=-7, align=align)], x, y))
        for style, bars in _alike(self.bars, lambda b: (b.colour, b.width, b.is_dashed)):
            colour, width, is_dashed = style
            data = alt.Data(values=[{"y": b.y, "x": b.low, "x2": b.high} for b in bars])
            dash = {"strokeDash": [3, 2.5]} if is_dashed else {}
            mark = alt.Chart(data).mark_rule(color=colour, strokeWidth=width, **dash)
            layers.append(mark.encode(x=x, x2="x2:Q", y=y))
        for (colour, shape), points in _alike(self.marks, lambda p: (p.colour, p.shape)):
            data = alt.Data(values=[{"y": p.y, "x": p.x} for p in points])
            layers.append(alt.Chart(data).mark_point(color=colour, **_SHAPES[shape]).encode(x=x, y=y))
        for _, notes in _alike(self.notes, lambda n: (n.pixel, n.dx, n.dy, n.align, n.colour, n.weight)):
            layers.append(_texts(notes, x, y))
        if not (self.bars or self.marks):
            layers.append(alt.Chart(alt.Data(values=[{"y": 0, "x": domain[0]}])).mark_point(opacity=0).encode(x=x, y=y))
        return layers

    def _vertical(self, position: float, x: Any, y: Any, is_dotted: bool) -> Any:
        data = alt.Data(values=[{"x": position, "y": 0, "y2": self.height}])
        dash = {"strokeDash": [1.5, 2]} if is_dotted else {}
        mark = alt.Chart(data).mark_rule(
            color=INK if is_dotted else RULE, strokeWidth=1.1 if is_dotted else 0.8, **dash
        )
        return mark.encode(x=x, y=y, y2="y2:Q")


_CONFIG: dict[str, Any] = {
    "view": {"stroke": None},
    "axisX": {
        "grid": False, "domainColor": RULE, "tickColor": RULE, "tickSize": 4, "labelFontSize": SMALL,
        "labelColor": QUIET, "labelPadding": 3, "labelFlush": False, "titleFontSize": SMALL,
        "titleFontWeight": "normal", "titleColor": QUIET, "titleAnchor": "end", "titlePadding": 5,
    },
}  # fmt: skip


_SHAPES: dict[str, dict[str, Any]] = {
    "circle": {"shape": "circle", "size": 46, "filled": True, "opacity": 1},
    "cross": {"shape": "cross", "size": 60, "filled": True, "opacity": 1},
    "stroke": {"shape": "M0,-1L0,1", "size": 16, "filled": False, "strokeWidth": 1.8, "opacity": 1},
}


def _alike(items: Sequence[T], style: Callable[[T], Any]) -> list[tuple[Any, list[T]]]:
    """Return the items in groups of one style, first seen first: one layer each, since layers cost time."""
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(style(item), []).append(item)
    return list(groups.items())


def _texts(notes: Sequence[Note], x: Any, y: Any) -> Any:
    first = notes[0]
    values = [{"y": n.y, "t": n.text} | ({"x": n.x} if n.pixel is None else {}) for n in notes]
    place = alt.value(first.pixel) if first.pixel is not None else x
    mark = alt.Chart(alt.Data(values=values)).mark_text(
        align=first.align, baseline="middle", dx=first.dx, dy=first.dy, fontSize=SMALL, fontWeight=first.weight,
        color=first.colour, lineBreak="\n", lineHeight=LINE_HEIGHT,
    )  # fmt: skip
    return mark.encode(x=place, y=y, text="t:N")


def wrapped(label: str) -> str:
    """Return the label in lines of at most 30 characters; a longer word is broken, nothing is cut off."""
    return textwrap.fill(label, WRAP_AT, break_on_hyphens=False) or label


def label_width(labels: list[str]) -> float:
    """Return the room in pixels that wrapped labels need at the charts' type size, on the generous side."""
    longest = max((len(part) for label in labels for part in wrapped(label).split("\n")), default=0)
    return 18 + 5.6 * longest


def finished(chart_id: str, title: str, description: str, *, wide: str, narrow: str) -> Chart:
    """Return both pictures fit for a page."""

    def fit(svg: str, width: str) -> str:
        return svg and fit_for_page(
            svg,
            chart_id=f"{chart_id}-{width}",
            title=title,
            description=description,
            css_class=f"chart chart-{width}",
        )

    return Chart(chart_id, title, description, fit(wide, "wide"), fit(narrow, "narrow"))


@cache
def _register_fonts() -> None:
    """Text is measured with the shipped font, so that no label is cut on a machine without it."""
    vl_convert.register_font_directory(str(data_dir("templates") / "fonts"))


__all__ = ["WARNING", "Bar", "Board", "Chart", "Mark", "Note", "finished", "label_width", "wrapped"]
