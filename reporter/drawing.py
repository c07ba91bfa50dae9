"""Altair and the converter: what a chart shows becomes an SVG with text as text, in the shipped font."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

import altair
import vl_convert

from collector.contract.resources import data_dir

from .svg import ACCENT, HAIRLINE, INK, QUIET, RULE

alt: Any = altair
"""Altair's generated signatures are too narrow for a checker: styles are passed as mappings here."""
T = TypeVar("T")
FONT = "Inter"
SMALL = 9.5
LINE_HEIGHT = 12


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


class Drawing(NamedTuple):
    """All that one picture shows. Rows are pixels from the top; `domain` are the ends of the one axis."""

    width: float
    height: float
    domain: tuple[float, float]
    axis_title: str
    is_signed: bool
    tick_count: int
    decimal_sign: str
    group_sign: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    notes: tuple[Note, ...]
    lines: tuple[tuple[float, str, bool], ...]
    """Vertical lines: axis value, name, dotted or not."""
    gaps: tuple[tuple[float, float], ...] = ()
    """Where vertical lines make room for text: pixels from the top, from and to."""


@lru_cache(maxsize=64)
def drawn(drawing: Drawing) -> str:
    """Return the raw SVG. The same drawing is asked for several times while page one is fitted to its page."""
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, drawing.height], range=[0, drawing.height]), axis=None)
    number = "format(datum.value, '+~')" if drawing.is_signed else "format(datum.value, ',~')"
    labels = f"datum.value == 0 ? '0' : {number}"
    axis = alt.Axis(title=drawing.axis_title, labelExpr=labels, tickCount=drawing.tick_count)
    x = alt.X("x:Q", scale=alt.Scale(domain=list(drawing.domain), nice=False), axis=axis)
    chart = alt.layer(*_layers(drawing, x, y)).properties(width=drawing.width, height=drawing.height)
    return as_svg(chart, decimal_sign=drawing.decimal_sign, group_sign=drawing.group_sign)


def as_svg(chart: Any, *, decimal_sign: str, group_sign: str) -> str:
    """Return the raw SVG of an Altair chart in the dossier's type, with the language's numbers on its axes."""
    spec = chart.configure(background="transparent", font=FONT, **_CONFIG).to_dict(validate=False)
    _register_fonts()
    numbers = {"decimal": decimal_sign, "thousands": group_sign, "grouping": [3], "currency": ["", ""]}
    result: str = vl_convert.vegalite_to_svg(spec, format_locale=numbers)
    return result


def _layers(drawing: Drawing, x: Any, y: Any) -> list[Any]:
    layers: list[Any] = []
    for position, name, is_dotted in drawing.lines:
        layers.append(_vertical(drawing, position, x, y, is_dotted))
        part = (position - drawing.domain[0]) / ((drawing.domain[1] - drawing.domain[0]) or 1.0)
        align = "left" if part < 0.2 else "right" if part > 0.8 else "center"
        if name:
            layers.append(_texts([Note(0, name, x=position, dy=-7, align=align)], x, y))
    for style, bars in _alike(drawing.bars, lambda b: (b.colour, b.width, b.is_dashed)):
        colour, width, is_dashed = style
        data = alt.Data(values=[{"y": b.y, "x": b.low, "x2": b.high} for b in bars])
        dash = {"strokeDash": [3, 2.5]} if is_dashed else {}
        mark = alt.Chart(data).mark_rule(color=colour, strokeWidth=width, **dash)
        layers.append(mark.encode(x=x, x2="x2:Q", y=y))
    for (colour, shape), points in _alike(drawing.marks, lambda p: (p.colour, p.shape)):
        data = alt.Data(values=[{"y": p.y, "x": p.x} for p in points])
        layers.append(alt.Chart(data).mark_point(color=colour, **_SHAPES[shape]).encode(x=x, y=y))
    for _, notes in _alike(drawing.notes, lambda n: (n.pixel, n.dx, n.dy, n.align, n.colour, n.weight)):
        layers.append(_texts(notes, x, y))
    if not (drawing.bars or drawing.marks):
        layers.append(
            alt.Chart(alt.Data(values=[{"y": 0, "x": drawing.domain[0]}])).mark_point(opacity=0).encode(x=x, y=y)
        )
    return layers


def _vertical(drawing: Drawing, position: float, x: Any, y: Any, is_dotted: bool) -> Any:
    data = alt.Data(values=[{"x": position, "y": start, "y2": end} for start, end in _pieces(drawing)])
    dash = {"strokeDash": [1.5, 2]} if is_dotted else {}
    mark = alt.Chart(data).mark_rule(color=INK if is_dotted else RULE, strokeWidth=1.1 if is_dotted else 0.8, **dash)
    return mark.encode(x=x, y=y, y2="y2:Q")


def _pieces(drawing: Drawing) -> list[tuple[float, float]]:
    """Return what is left of a vertical line between the gaps."""
    pieces, start = [], 0.0
    for top, bottom in sorted(drawing.gaps):
        if top > start:
            pieces.append((start, top))
        start = max(start, bottom)
    return [*pieces, (start, drawing.height)]


_CONFIG: dict[str, Any] = {
    "view": {"stroke": None},
    "axisX": {
        "grid": False, "domainColor": RULE, "tickColor": RULE, "tickSize": 4, "labelFontSize": SMALL,
        "labelColor": QUIET, "labelPadding": 3, "labelFlush": False, "titleFontSize": SMALL,
        "titleFontWeight": "normal", "titleColor": QUIET, "titleAnchor": "end", "titlePadding": 5,
    },
    "axisY": {
        "grid": True, "gridColor": HAIRLINE, "domain": False, "ticks": False, "labelFontSize": SMALL,
        "labelColor": QUIET, "labelPadding": 4, "titleFontSize": SMALL, "titleFontWeight": "normal",
        "titleColor": QUIET, "titlePadding": 5,
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


@cache
def _register_fonts() -> None:
    """Text is measured with the shipped font, so that no label is cut on a machine without it."""
    vl_convert.register_font_directory(str(data_dir("templates") / "fonts"))
