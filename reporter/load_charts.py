"""Charts of loads: time by concurrency or by arrivals, and output rate by time, with what was lost at the points."""

from __future__ import annotations

from collections.abc import Iterable

from .board import NARROW, WIDE, Chart, finished
from .charts import ChartMaker
from .dossier import Figure, Row, number
from .figure_text import Scale, scale_of
from .load_lines import CHARACTER, LoadDrawing, LoadLine, LoadPoint, load_lines
from .load_series import by_variant
from .svg import ACCENT, INK, QUIET
from .translate import N_

HEIGHT = 210.0
LEFT_ROOM = 46.0
COLOURS = (ACCENT, INK, QUIET)
"""Of the lines in turn; their names stand at their ends in the same colour."""
MOST_FAILED_PERCENT = 1.0


class LoadCharts:
    """Draws with the figures, the language and the widths of a ChartMaker. A chart without evidence is None."""

    def __init__(self, maker: ChartMaker) -> None:
        self.maker = maker
        self.text = maker.text
        self.tr = maker.tr

    def waiting(self, metric: str, title: str, *, is_open: bool = False) -> Chart | None:
        """Median with its interval, and the 95th percentile, of one time by the requests submitted at a time.

        is_open: of the open loops instead, by the arrivals that were asked for.
        """
        load = "rate_per_s" if is_open else "concurrency"
        lines = self._by_load(self._times(metric, is_open=is_open), load)
        ticks = tuple(sorted({self._value(r, load) for rows in lines.values() for r in rows}))
        figures = self._figures((r for rows in lines.values() for r in rows), ("p50_s", "p95_s"))
        if len(ticks) < 2 or not figures:
            return None
        scale = scale_of(figures)
        drawn: list[LoadLine] = []
        for (name, rows), colour in zip(lines.items(), _colours(lines), strict=True):
            if len(rows) == 1:  # what was measured at one load alone is a point with its name beside it
                drawn.append(LoadLine("", self._points(rows, load, "p50_s", scale, name=name), colour))
                continue
            others = [r for found in lines.values() if found is not rows for r in found]
            below = {r.key for r in rows if self._has_more_room_below(r, others, load)}
            drawn.append(LoadLine(name, self._points(rows, load, "p50_s", scale, lost=below), colour))
            above = {r.key for r in rows} - below
            drawn.append(LoadLine("", self._points(rows, load, "p95_s", scale, lost=above), colour, is_dashed=True))
        kept = tuple(line for line in drawn if line.points)
        asked = N_("arrivals per second, as asked for") if is_open else N_("requests submitted at a time")
        x_title = self.maker.tell(asked)
        chart_id = f"{'arrivals' if is_open else 'load'}-{metric.removesuffix('_s')}"
        return self._finished(
            chart_id, title, kept, ticks, x_title, self._unit(scale),
            [self._told_times(r, scale) for rows in lines.values() for r in rows],
        )  # fmt: skip

    def trade(self, title: str) -> Chart | None:
        """Output rate of the whole run by the median time of a complete answer, each point named by its concurrency."""
        rows = [r for r in self._closed() if self._has(r, "e2e_p50_s") and self._has(r, "output_tokens_per_s")]
        lines = self._by_load(rows)
        if not any(len(found) > 1 for found in lines.values()):
            return None
        times, rates = (scale_of(self._figures(rows, (c,))) for c in ("e2e_p50_s", "output_tokens_per_s"))
        drawn = tuple(
            LoadLine(name, tuple(self._trade(r, times, rates) for r in found), colour)
            for (name, found), colour in zip(lines.items(), _colours(lines), strict=True)
        )
        x_title = self.maker.tell(N_("complete answer, median, %(unit)s"), unit=self._unit(times))
        return self._finished(
            "load-trade", title, drawn, (), x_title, self._unit(rates), [self._told_trade(r) for r in rows]
        )

    def _finished(
        self, chart_id: str, title: str, lines: tuple[LoadLine, ...], ticks: tuple[float, ...], x_title: str,
        y_title: str, told: list[str],
    ) -> Chart:  # fmt: skip
        symbols = self.tr.locale.number_symbols["latn"]

        def draw(is_narrow: bool) -> str:
            right = 14 + CHARACTER * max(len(line.name) for line in lines)
            return load_lines(
                LoadDrawing(
                    width=(NARROW if is_narrow else WIDE) - LEFT_ROOM - right, height=HEIGHT, right_room=right,
                    lines=lines, x_ticks=ticks, x_title=x_title, y_title=y_title, decimal_sign=symbols["decimal"],
                    group_sign=symbols["group"],
                )
            )  # fmt: skip

        return finished(chart_id, title, "; ".join(told) + ".", **self.maker.both(draw))

    # -- rows -----------------------------------------------------------------------------------------------------

    def _closed(self) -> list[Row]:
        return self.maker.rows("load_closed")

    def _times(self, metric: str, *, is_open: bool) -> list[Row]:
        rows = [r for r in self.maker.rows("load_latency") if r.labels["metric"] == metric]
        shown = [r for r in rows if (r.labels["loop"] != "closed") == is_open and r.labels["is_headline"] == "yes"]
        return [r for r in shown if self._has(r, "p50_s")]

    def _by_load(self, rows: Iterable[Row], load: str = "concurrency") -> dict[str, list[Row]]:
        """Return name of a line -> its rows by that load; the reference in process is one point of its own."""
        return by_variant(rows, lambda r: self._value(r, load))

    # -- points ---------------------------------------------------------------------------------------------------

    def _points(
        self, rows: list[Row], load: str, column: str, scale: Scale, *, name: str = "", lost: Iterable[str] = ()
    ) -> tuple[LoadPoint, ...]:
        """Return the points of one column; those of the rows in `lost` say what was lost, where anything was."""
        points = []
        for r in rows:
            figure = self.maker.figure(r, column)
            if figure is None or figure.value is None:
                continue
            held = figure.interval
            low, high = (held.low / scale.divisor, held.high / scale.divisor) if held else (None, None)
            points.append(
                LoadPoint(
                    self._value(r, load), self._value(r, column) / scale.divisor, low, high,
                    name=self._lost(r) if r.key in lost and self._value(r, "failed_percent") else name,
                    is_name_below=column == "p50_s" and r.key in lost,
                    is_hollow=r.labels["measured_window"] != "steady",
                    is_warned=self._value(r, "failed_percent") > MOST_FAILED_PERCENT,
                )
            )  # fmt: skip
        return tuple(points)

    def _has_more_room_below(self, r: Row, others: list[Row], load: str) -> bool:
        """Whether the next point of another line at the same load is further below the median than above the dashed."""
        beside = [x for x in others if self._value(x, load) == self._value(r, load)]
        values = [self._value(x, column) for x in beside for column in ("p50_s", "p95_s")]
        low, high = self._value(r, "p50_s"), self._value(r, "p95_s")
        above = min((v - high for v in values if v > high), default=high)
        below = min((low - v for v in values if v < low), default=low)
        return below > above

    def _trade(self, r: Row, times: Scale, rates: Scale) -> LoadPoint:
        name = self.tr.number(self._value(r, "concurrency"))
        if self._value(r, "failed_percent"):
            name += f", {self._lost(r)}"
        return LoadPoint(
            self._value(r, "e2e_p50_s") / times.divisor, self._value(r, "output_tokens_per_s") / rates.divisor,
            name=name, is_hollow=r.labels.get("measured_window") != "steady",
            is_warned=self._value(r, "failed_percent") > MOST_FAILED_PERCENT,
        )  # fmt: skip

    # -- words ----------------------------------------------------------------------------------------------------

    def _lost(self, r: Row) -> str:
        figure = self.maker.figure(r, "failed_percent")
        return self.maker.tell(N_("%(share)s lost"), share=self.text.in_sentence(figure) if figure else "–")

    def _told_times(self, r: Row, scale: Scale) -> str:
        words = {
            "label": r.labels["label"], "median": self._print(r, "p50_s", scale),
            "high": self._print(r, "p95_s", scale), "unit": self._unit(scale), "lost": self._lost(r),
            "window": self.text.word(r.labels["measured_window"], prefix="window"),
        }  # fmt: skip
        return self.maker.tell(
            N_("%(label)s: median %(median)s, 95th percentile %(high)s %(unit)s (%(window)s), %(lost)s"), **words
        )

    def _told_trade(self, r: Row) -> str:
        rate, time = (self.maker.figure(r, column) for column in ("output_tokens_per_s", "e2e_p50_s"))
        words = {
            "label": r.labels["label"], "rate": self.text.in_sentence(rate) if rate else "–",
            "time": self.text.in_sentence(time) if time else "–", "lost": self._lost(r),
        }  # fmt: skip
        return self.maker.tell(N_("%(label)s: %(rate)s at %(time)s, %(lost)s"), **words)

    def _print(self, r: Row, column: str, scale: Scale) -> str:
        figure = self.maker.figure(r, column)
        return self.text.value(figure, scale) if figure else "–"

    def _unit(self, scale: Scale) -> str:
        return self.tr.text(scale.unit_word) if scale.unit_word else ""

    def _figures(self, rows: Iterable[Row], columns: tuple[str, ...]) -> list[Figure]:
        found = [self.maker.figure(r, column) for r in rows for column in columns]
        return [f for f in found if f is not None and f.value is not None]

    def _has(self, r: Row, column: str) -> bool:
        figure = self.maker.figure(r, column)
        return figure is not None and figure.value is not None

    def _value(self, r: Row, column: str) -> float:
        return number(self.maker.figure(r, column)) or 0.0


def _colours(lines: dict[str, list[Row]]) -> list[str]:
    """Return a colour per line: what was measured at one load alone is quiet, the others take theirs in turn."""
    found, place = [], 0
    for rows in lines.values():
        found.append(QUIET if len(rows) == 1 else COLOURS[place % len(COLOURS)])
        place += len(rows) > 1
    return found
