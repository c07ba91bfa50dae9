"""A drawing of measured points joined in the order of their load: points with intervals, names at the lines' ends."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from .drawing import SMALL, alt, as_svg
from .step_lines import spread
from .svg import GROUND, INK, WARNING

CHARACTER = 5.6
"""Pixels that one character of a name takes, on the generous side."""
_NUMBER = "datum.value == 0 ? '0' : format(datum.value, ',~')"


class LoadPoint(NamedTuple):
    """One measured point; `low` and `high` bound its y. Hollow: not of the steady time; warned: too many were lost."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    name: str = ""
    is_hollow: bool = False
    is_warned: bool = False
    is_name_below: bool = False


class LoadLine(NamedTuple):
    """One line: its points in the order of the load."""

    name: str
    points: tuple[LoadPoint, ...]
    colour: str
    is_dashed: bool = False


class LoadDrawing(NamedTuple):
    """All that one picture shows. x_ticks: the values on a doubling axis; none for an even axis from zero."""

    width: float
    height: float
    right_room: float
    lines: tuple[LoadLine, ...]
    x_ticks: tuple[float, ...]
    x_title: str
    y_title: str
    decimal_sign: str
    group_sign: str

    @property
    def top(self) -> float:
        """The largest value drawn, with a little room above."""
        return 1.08 * max((p.high or p.y for line in self.lines for p in line.points), default=1.0) or 1.0

    @property
    def right(self) -> float:
        """The largest x of an even axis, with a little room."""
        return 1.08 * max((p.x for line in self.lines for p in line.points), default=1.0) or 1.0


@lru_cache(maxsize=32)
def load_lines(drawing: LoadDrawing) -> str:
    """Return the raw SVG."""
    x, y = _x(drawing), _y(drawing)
    layers = [layer for line in drawing.lines for layer in _line(line, x, y)]
    layers += [*_names(drawing, x, y), _edge(drawing)]
    chart = alt.layer(*layers).properties(width=drawing.width, height=drawing.height)
    return as_svg(chart, decimal_sign=drawing.decimal_sign, group_sign=drawing.group_sign)


def _x(drawing: LoadDrawing) -> Any:
    if not drawing.x_ticks:
        axis = alt.Axis(title=drawing.x_title, labelExpr=_NUMBER, tickCount=5)
        return alt.X("x:Q", scale=alt.Scale(domain=[0, drawing.right], nice=False), axis=axis)
    ends = [drawing.x_ticks[0] / max(1.15, _room_before(drawing)), drawing.x_ticks[-1] * 1.15]
    axis = alt.Axis(title=drawing.x_title, labelExpr=_NUMBER, values=list(drawing.x_ticks))
    return alt.X("x:Q", scale=alt.Scale(type="log", base=2, domain=ends, nice=False), axis=axis)


def _room_before(drawing: LoadDrawing) -> float:
    """Return the factor by which the axis begins before its first value, so that a lone point's name fits there."""
    first, last = drawing.x_ticks[0], drawing.x_ticks[-1] * 1.15
    lone = [line.points[0] for line in drawing.lines if len(line.points) == 1 and not line.is_dashed]
    pixels = min(max((14 + CHARACTER * len(p.name) for p in lone if p.x == first), default=0.0), drawing.width / 2)
    return float((last / first) ** (pixels / (drawing.width - pixels)))


def _y(drawing: LoadDrawing) -> Any:
    axis = alt.Axis(title=drawing.y_title, labelExpr=_NUMBER, tickCount=5)
    return alt.Y("y:Q", scale=alt.Scale(domain=[0, drawing.top], nice=False), axis=axis)


def _line(line: LoadLine, x: Any, y: Any) -> list[Any]:
    rows = [{"x": p.x, "y": p.y, "o": place} for place, p in enumerate(line.points)]
    dash = {"strokeDash": [4, 3]} if line.is_dashed else {}
    mark = alt.Chart(alt.Data(values=rows)).mark_line(
        color=line.colour, strokeWidth=1.0 if line.is_dashed else 1.8, strokeCap="butt", **dash
    )
    layers = [mark.encode(x=x, y=y, order="o:Q")]
    held = [{"x": p.x, "y": p.low, "y2": p.high} for p in line.points if p.low is not None and p.high is not None]
    if held:
        bars = alt.Chart(alt.Data(values=held)).mark_rule(color=line.colour, strokeWidth=1.0)
        layers.append(bars.encode(x=x, y=y, y2="y2:Q"))
    for is_hollow in (False, True):
        for is_warned in (False, True):
            found = [p for p in line.points if (p.is_hollow, p.is_warned) == (is_hollow, is_warned)]
            colour = WARNING if is_warned else line.colour
            if found:
                data = alt.Data(values=[{"x": p.x, "y": p.y} for p in found])
                fill = GROUND if is_hollow else colour
                point = alt.Chart(data).mark_point(
                    shape="circle", size=22 if line.is_dashed else 34, filled=True, fill=fill, stroke=colour,
                    strokeWidth=1.4, opacity=1,
                )  # fmt: skip
                layers.append(point.encode(x=x, y=y))
    return layers


def _names(drawing: LoadDrawing, x: Any, y: Any) -> list[Any]:
    """Name points beside them, and each line at the right edge; names that would lie on one another are moved apart."""
    layers = []
    named = [p for line in drawing.lines for p in line.points if p.name and len(line.points) > 1]
    for is_warned, is_below in sorted({(p.is_warned, p.is_name_below) for p in named}):
        found = [p for p in named if (p.is_warned, p.is_name_below) == (is_warned, is_below)]
        data = alt.Data(values=[{"x": p.x, "y": p.y, "t": p.name} for p in found])
        baseline, dy = ("top", 7) if is_below else ("bottom", -6)
        mark = alt.Chart(data).mark_text(
            align="center", baseline=baseline, dy=dy, fontSize=SMALL, color=WARNING if is_warned else INK
        )
        layers.append(mark.encode(x=x, y=y, text="t:N"))
    lone = [(line.points[0], line.colour) for line in drawing.lines if len(line.points) == 1 and line.points[0].name]
    at = [drawing.height * (1 - p.y / drawing.top) for p, _ in lone]
    for (p, colour), pixel in zip(lone, spread(at, drawing.height), strict=True):
        data = alt.Data(values=[{"x": p.x, "t": p.name}])
        for ink in ({"stroke": GROUND, "strokeWidth": 4}, {"color": WARNING if p.is_warned else colour}):
            mark = alt.Chart(data).mark_text(align="right", baseline="middle", dx=-8, fontSize=SMALL, **ink)
            layers.append(mark.encode(x=x, y=alt.value(pixel), text="t:N"))
    ends = [(line.points[-1].y, line.name, line.colour) for line in drawing.lines if line.name]
    at = [drawing.height * (1 - value / drawing.top) for value, *_ in ends]
    for (_, name, colour), pixel in zip(ends, spread(at, drawing.height), strict=True):
        data = alt.Data(values=[{"t": name}])
        mark = alt.Chart(data).mark_text(align="left", baseline="middle", dx=6, fontSize=SMALL, color=colour)
        layers.append(mark.encode(x=alt.value(drawing.width), y=alt.value(pixel), text="t:N"))
    return layers


def _edge(drawing: LoadDrawing) -> Any:
    """Keep the picture as wide where the names are short."""
    mark = alt.Chart(alt.Data(values=[{"t": "\u00a0"}])).mark_text(dx=drawing.right_room, fontSize=SMALL)
    return mark.encode(x=alt.value(drawing.width), y=alt.value(0), text="t:N")
