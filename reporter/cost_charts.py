"""The chart of break-even: total price over needed hours for each tariff, the cheapest one strong, the need marked."""

from __future__ import annotations

from .board import NARROW, WIDE, Chart, finished
from .charts import ChartMaker
from .dossier import Row, number
from .step_lines import StepDrawing, StepLine, step_lines
from .translate import N_, NO_BREAK

HEIGHT = 210.0
LEFT_ROOM = 44.0
CHARACTER = 5.3
"""Pixels that one character of a name takes, on the generous side."""
MOST_LINES = 5
"""Lines drawn, unless more tariffs are the cheapest somewhere; the table of packages has all of them."""
MOST_PLACES = 6
"""Needs that are marked; the table beneath names all of them."""


class CostCharts:
    """Draws with the figures, the language and the widths of a ChartMaker. A chart without evidence is None."""

    def __init__(self, maker: ChartMaker) -> None:
        self.maker = maker
        self.text = maker.text
        self.tr = maker.tr

    def break_even(self, group: str) -> Chart | None:
        """One group's tariffs; its title is what the chart shows."""
        rows = [r for r in self.maker.rows("break_even") if r.labels["group"] == group]
        steps = [r for r in self.maker.rows("break_even_steps") if r.labels["group"] == group]
        if not rows or not steps:
            return None
        steps = self._drawn(rows, steps)
        has_several = len({r.labels["offer"] for r in steps}) > 1
        lines = self._lines(steps, has_several=has_several)
        strong = tuple(self._strong(r, steps) for r in rows)
        until = self._value(rows[-1], "to_hours")
        places = self._places(group, until)

        def draw(is_narrow: bool) -> str:
            right = 14 + CHARACTER * max(len(line.name) for line in lines)
            return step_lines(
                StepDrawing(
                    width=(NARROW if is_narrow else WIDE) - LEFT_ROOM - right, height=HEIGHT, right_room=right,
                    lines=lines, strong=strong, places=places, until=until,
                    x_title=self.maker.tell(N_("hours needed")), y_title=self._price_title(rows[0]),
                    decimal_sign=self.tr.locale.number_symbols["latn"]["decimal"],
                    group_sign=self.tr.locale.number_symbols["latn"]["group"],
                )
            )  # fmt: skip

        said = "; ".join(self._told(r, has_several=has_several) for r in rows)
        return finished(f"break-even-{group}", self._finding(rows), said + ".", **self.maker.both(draw))

    def _drawn(self, rows: list[Row], steps: list[Row]) -> list[Row]:
        """Return the steps of the tariffs that are the cheapest somewhere, and of those that end lowest beside them."""
        ends = {(s.labels["offer"], s.labels["tariff"]): self._major(s, "total") for s in steps}
        kept = dict.fromkeys((r.labels["offer"], r.labels["tariff"]) for r in rows)
        others = sorted((key for key in ends if key not in kept), key=lambda key: ends[key])
        kept |= dict.fromkeys(others[: max(0, MOST_LINES - len(kept))])
        return [s for s in steps if (s.labels["offer"], s.labels["tariff"]) in kept]

    def _lines(self, steps: list[Row], *, has_several: bool) -> tuple[StepLine, ...]:
        points: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for step in steps:
            key = (step.labels["offer"], step.labels["tariff"])
            points.setdefault(key, []).append((self._value(step, "at_hours"), self._major(step, "total")))
        return tuple(
            StepLine(self._name(offer, term, has_several=has_several), ((0.0, found[0][1]), *found), term != "hour")
            for (offer, term), found in points.items()
        )

    def _strong(self, row: Row, steps: list[Row]) -> StepLine:
        """Return the part of the cheapest tariff's line that lies in its interval."""
        start, end = self._value(row, "over_hours"), self._value(row, "to_hours")
        key = (row.labels["offer"], row.labels["tariff"])
        inside = [
            (at, self._major(step, "total"))
            for step in steps
            if (step.labels["offer"], step.labels["tariff"]) == key
            and start < (at := self._value(step, "at_hours")) < end
        ]
        points = ((start, self._major(row, "lowest")), *inside, (end, self._major(row, "highest")))
        return StepLine("", points, row.labels["tariff"] != "hour")

    def _places(self, group: str, until: float) -> tuple[tuple[float, str], ...]:
        needs = [r for r in self.maker.rows("break_even_needs") if r.labels["group"] == group][:MOST_PLACES]
        found = [(self._value(r, "needed_hours"), r) for r in needs]
        return tuple((at, self._place(r)) for at, r in sorted(found, key=lambda entry: entry[0]) if at <= until)

    def _place(self, row: Row) -> str:
        words = {"candidate": row.labels["candidate"], "hours": self._words(row)}
        return self.maker.tell(N_("%(candidate)s needs %(hours)s"), **words)

    def _words(self, row: Row) -> str:
        figure = self.maker.figure(row, "needed_hours")
        return self.text.in_sentence(figure) if figure is not None else "–"

    def _name(self, offer: str, term: str, *, has_several: bool) -> str:
        word = self.text.word(term, prefix="tariff")
        return f"{word}, {offer}" if has_several else word

    def _told(self, row: Row, *, has_several: bool) -> str:
        lowest, highest = self.maker.figure(row, "lowest"), self.maker.figure(row, "highest")
        assert lowest is not None
        assert highest is not None
        over, end = (self.tr.number(self._value(row, column), 2) for column in ("over_hours", "to_hours"))
        ends = {
            "tariff": self._name(row.labels["offer"], row.labels["tariff"], has_several=has_several),
            "over": over, "to": end, "low": self.text.value(lowest), "high": self.text.in_sentence(highest),
        }  # fmt: skip
        return self.maker.tell(N_("over %(over)s to %(to)s h: %(tariff)s, %(low)s to %(high)s"), **ends)

    def _finding(self, rows: list[Row]) -> str:
        """Return what the chart shows: where the campaign's own need lies."""
        needed = [r for r in rows if r.labels["needed_by"]]
        if not needed:
            return self.maker.tell(N_("Which tariff is cheapest, by the hours that are needed"))
        has_several = len({r.labels["offer"] for r in rows}) > 1
        row = needed[0]
        words = {
            "candidate": row.labels["needed_by"],
            "to": self.tr.number(self._value(row, "to_hours"), 1) + NO_BREAK + "h",
            "tariff": self._name(row.labels["offer"], row.labels["tariff"], has_several=has_several),
        }
        return self.maker.tell(N_("%(candidate)s: cheapest is %(tariff)s, up to %(to)s"), **words)

    def _price_title(self, row: Row) -> str:
        figure = self.maker.figure(row, "lowest")
        currency = figure.currency if figure is not None and figure.currency else ""
        return self.maker.tell(N_("net price with fees, %(currency)s"), currency=currency)

    def _value(self, row: Row, column: str) -> float:
        return number(self.maker.figure(row, column)) or 0.0

    def _major(self, row: Row, column: str) -> float:
        """Return an amount in its major unit, for the axis."""
        figure = self.maker.figure(row, column)
        if figure is None or figure.currency is None:
            return 0.0
        return self.tr.major(int(number(figure) or 0), figure.currency)
