"""A drawing of step functions: what something costs by how much of it is needed, the lowest one strong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .drawing import SMALL, alt, as_svg
from .svg import ACCENT, INK, QUIET

LABEL_HEIGHT = 12.0
"""Pixels that one line of text needs."""
Point = tuple[float, float]
_NUMBER = "datum.value == 0 ? '0' : format(datum.value, ',~')"


class StepLine(NamedTuple):
    """One line; a step holds from the point before up to its own point, a plain line joins its points."""

    name: str
    points: tuple[Point, ...]
    is_step: bool


class StepDrawing(NamedTuple):
    """All that one picture shows: thin named lines, strong pieces of them, and marked places on the axis."""

    width: float
    height: float
    right_room: float
    lines: tuple[StepLine, ...]
    strong: tuple[StepLine, ...]
    places: tuple[tuple[float, str], ...]
    until: float
    x_title: str
    y_title: str
    decimal_sign: str
    group_sign: str

    @property
    def top(self) -> float:
        """The largest value drawn, with a little room above."""
        return 1.04 * max((y for line in self.lines for _, y in line.points), default=1.0) or 1.0


@lru_cache(maxsize=32)
def step_lines(drawing: StepDrawing) -> str:
    """Return the raw SVG."""
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, drawing.until], nice=False), axis=_axis(drawing.x_title, drawing))
    y_axis = alt.Axis(title=drawing.y_title, labelExpr=_NUMBER, tickCount=5)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, drawing.top], nice=False), axis=y_axis)
    layers = [_line(line, x, y, QUIET, 1.0) for line in drawing.lines]
    layers += [_line(line, x, y, ACCENT, 3.0) for line in drawing.strong]
    layers += _places(drawing, x, y)
    layers += _names(drawing, x, y)
    chart = alt.layer(*layers).properties(width=drawing.width, height=drawing.height)
    return as_svg(chart, decimal_sign=drawing.decimal_sign, group_sign=drawing.group_sign)


def _axis(title: str, drawing: StepDrawing) -> Any:
    return alt.Axis(title=title, labelExpr=_NUMBER, values=_ticks(drawing.until, drawing.width))


def _ticks(until: float, width: float) -> list[float]:
    """Return whole days in hours, as many as have room."""
    for days in (1, 2, 3, 5, 7, 10, 15, 30, 60, 90, 180):
        count = until / (24 * days)
        if count * 34 <= width:
            return [24.0 * days * place for place in range(int(count) + 1)]
    return [0.0, until]


def _line(line: StepLine, x: Any, y: Any, colour: str, width: float) -> Any:
    data = alt.Data(values=[{"x": at, "y": value} for at, value in line.points])
    shape = {"interpolate": "step-before"} if line.is_step else {}
    mark = alt.Chart(data).mark_line(color=colour, strokeWidth=width, strokeCap="butt", clip=False, **shape)
    return mark.encode(x=x, y=y, order="x:Q")


def _places(drawing: StepDrawing, x: Any, y: Any) -> list[Any]:
    """Draw each marked place with its name above the plot, one line of text for each."""
    layers = []
    for row, (at, name) in enumerate(drawing.places):
        rise = LABEL_HEIGHT * (len(drawing.places) - row)
        data = alt.Data(values=[{"x": at, "y": 0.0, "y2": drawing.top, "t": name}])
        rule = alt.Chart(data).mark_rule(color=INK, strokeWidth=1.1, strokeDash=[1.5, 2]).encode(x=x, y=y, y2="y2:Q")
        part = at / drawing.until
        align = "left" if part < 0.35 else "right" if part > 0.65 else "center"
        text = alt.Chart(data).mark_text(align=align, baseline="middle", dy=-rise + 4, fontSize=SMALL, color=INK)
        layers += [rule, text.encode(x=x, y="y2:Q", text="t:N")]
    return layers


def _names(drawing: StepDrawing, x: Any, y: Any) -> list[Any]:
    """Name each line at its right end; names that would lie on one another are moved apart."""
    ends = [(line.points[-1][1], line.name) for line in drawing.lines]
    at = [drawing.height * (1 - value / drawing.top) for value, _ in ends]
    layers = []
    for (_, name), pixel in zip(ends, spread(at, drawing.height), strict=True):
        data = alt.Data(values=[{"t": name}])
        mark = alt.Chart(data).mark_text(align="left", baseline="middle", dx=6, fontSize=SMALL, color=INK)
        layers.append(mark.encode(x=alt.value(drawing.width), y=alt.value(pixel), text="t:N"))
    # keeps the picture as wide where the names are short
    edge = alt.Chart(alt.Data(values=[{"t": "\u00a0"}])).mark_text(dx=drawing.right_room, fontSize=SMALL)
    return [*layers, edge.encode(x=alt.value(drawing.width), y=alt.value(0), text="t:N")]


def spread(pixels: Sequence[float], height: float) -> list[float]:
    """Return the places of texts moved apart to one line's height, in their order, within the picture where it fits."""
    order = sorted(range(len(pixels)), key=lambda index: (pixels[index], index))
    placed, last = list(pixels), -LABEL_HEIGHT
    for index in order:
        last = placed[index] = max(placed[index], last + LABEL_HEIGHT)
    last = height + LABEL_HEIGHT
    for index in reversed(order):
        last = placed[index] = min(placed[index], last - LABEL_HEIGHT)
    return placed
