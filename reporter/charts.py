"""The dossier's charts, from its tables: difference to the reference, memory peaks, times, package hours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .board import Board, Chart, finished, label_width, wrapped
from .dossier import Dossier, Figure, Row, number
from .drawing import LINE_HEIGHT, Bar, Mark, Note
from .figure_text import FigureText, Scale, scale_of
from .svg import ACCENT, INK, QUIET, RULE, WARNING
from .translate import N_, NO_BREAK

MOST_ROWS = 40
"""Rows drawn at most; the table beside the chart has them all."""
MOST_OFFERS = 8
"""Offers drawn at most: they fill a page; the table beneath has them all."""
ROOM_ABOVE = 18.0
"""Pixels of a row that has room for its value above the line; in closer rows the value stands behind the line."""
VALUE_SHARE = 0.08
"""Share of the axis that a value behind a line takes at most."""
SCOPES = ("process", "device", "reserved", "allocated", "host")
"""Widest view of one process first."""


class ChartMaker:
    """Draws the charts of one dossier in one language. A chart that has no evidence is None."""

    def __init__(
        self, dossier: Dossier, text: FigureText, *, with_narrow: bool = True, row_height: float = 26.0,
        most_compared: int = MOST_ROWS,
    ) -> None:  # fmt: skip
        self.dossier = dossier
        self.most_compared = most_compared
        self.with_narrow = with_narrow
        self.row_height = row_height
        self.text = text
        self.tr = text.tr

    def rows(self, table: str) -> list[Row]:
        found = self.dossier.tables.get(table)
        return list(found.rows) if found else []

    def figure(self, row: Row, key: str) -> Figure | None:
        return self.dossier.figures[row.cells[key]] if key in row.cells else None

    def both(self, draw: Callable[[bool], str]) -> dict[str, str]:
        return {"wide": draw(False), "narrow": draw(True) if self.with_narrow else ""}

    def _step(self, label: str) -> float:
        """Return the height of a row, with room for a label of several lines."""
        more = wrapped(label).count("\n")
        return max(self.row_height, 5.0 + LINE_HEIGHT * (1 + more)) if more else self.row_height

    def tell(self, message: str, **parameters: str) -> str:
        return self.tr.text(message) % parameters if parameters else self.tr.text(message)

    # -- difference to the reference ------------------------------------------------------------------------------

    def difference(self, title: str) -> Chart | None:
        """Each configuration's difference to the reference with its interval, the rule drawn and named."""
        rows = [r for r in self.rows("paired") if number(self.figure(r, "difference_points")) is not None]
        if len(rows) > self.most_compared:
            first = [r.key for r in self.rows("candidates")][: self.most_compared]
            rows = [r for r in rows if r.key in first] or rows[: self.most_compared]
        if not rows:
            return None
        failing = self._failing()
        rule = self._loss_rule()
        named = [
            (r.labels.get("label", r.key), f, failing.get(r.labels.get("label", r.key)))
            for r in rows
            if (f := self.figure(r, "difference_points")) is not None
        ]
        reasons = [wrapped(reason) for *_, reason in named if reason]
        room = max((len(line) for reason in reasons for line in reason.split("\n")), default=0) * 5.3
        domain = _padded([x for _, f, _ in named for x in _reach(f)] + [0.0] + ([rule[0]] if rule else []))
        behind = clear_of(rule[0] if rule else None, room=VALUE_SHARE * (domain[1] - domain[0]))

        def draw(is_narrow: bool) -> str:
            board = Board(
                self.tr,
                is_narrow=is_narrow,
                label_width=label_width([label for label, *_ in named]),
                right_room=0 if is_narrow or not room else room + 14,
            )
            board.line(0.0, "", is_dotted=False)
            if rule:
                board.line(rule[0], rule[1])
            rooms = [self._step(label) for label, *_ in named]
            y = 16.0 + (18 if is_narrow else (rooms[0] - self.row_height) / 2)
            for place, (label, figure, reason) in enumerate(named):
                if reason and is_narrow:
                    y += 13
                board.row_label(y - (13 if reason and is_narrow else 0), label)
                self._difference_row(board, y, figure, reason is not None, behind)
                if reason and is_narrow:
                    board.above(y, reason, colour=WARNING)
                elif reason:
                    text = wrapped(reason)
                    dy = -(text.count("\n") * LINE_HEIGHT) / 2
                    board.notes.append(Note(y, text, x=domain[1], dx=10, dy=dy, colour=WARNING))
                # a label of several lines is centred on its row: half of its room lies above
                y += 42 if is_narrow else (rooms[place] + rooms[min(place + 1, len(rooms) - 1)]) / 2
            board.height = y - (24 if is_narrow else 10)
            return board.svg(
                domain, self.tell(N_("accepted documents against the reference, percentage points")), is_signed=True
            )

        said = "; ".join(
            self._described(label, figure) + (f", {reason}" if reason else "") for label, figure, reason in named
        )
        return finished("difference", title, said + (f". {rule[1]}." if rule else "."), **self.both(draw))

    def _difference_row(
        self, board: Board, y: float, figure: Figure, is_failing: bool, behind: Callable[[float], float]
    ) -> None:
        value = number(figure) or 0.0
        colour = WARNING if is_failing else ACCENT
        if figure.interval:
            board.bars.append(Bar(y, figure.interval.low, figure.interval.high, colour, is_dashed=is_failing))
        board.marks.append(Mark(y, value, colour, "cross" if is_failing else "circle"))
        if self.row_height < ROOM_ABOVE and not board.is_narrow:
            end = figure.interval.high if figure.interval else value
            board.notes.append(Note(y, self.text.value(figure), x=behind(end), dx=6))
        else:
            board.notes.append(Note(y, self.text.value(figure), x=value, dx=3, dy=-9))

    def _failing(self) -> dict[str, str]:
        """Return the rule that each failing configuration fails; no words where all of them fail the drawn one."""
        failed = [r for r in self.rows("gates") if r.labels.get("result") == "fail"]
        lost = {r.labels.get("label", r.key) for r in failed if r.labels.get("rule", "").startswith("max_lost")}
        is_plain = lost >= {r.labels.get("label", r.key) for r in failed if r.labels.get("label") in self._compared()}
        reasons: dict[str, str] = {}
        for row in failed:
            reasons.setdefault(row.labels.get("label", row.key), "" if is_plain else self._failed_rule(row))
        return reasons

    def _compared(self) -> set[str]:
        return {r.labels.get("label", r.key) for r in self.rows("paired")}

    def _failed_rule(self, row: Row) -> str:
        counted, limit = self.figure(row, "counted"), self.figure(row, "limit")
        words = {k: self.text.value(f) if f else "–" for k, f in (("counted", counted), ("limit", limit))}
        if row.labels.get("rule", "").startswith("max_lost"):
            return self.tell(N_("%(counted)s lost, %(limit)s allowed"), **words)
        said = self.tell(N_("%(counted)s accepted, %(limit)s needed"), **words)
        subset = row.labels.get("subset")
        return f"{subset}: {said}" if subset else said

    def _loss_rule(self) -> tuple[float, str] | None:
        """Return where the rule on lost documents lies in points, and its name in whole documents."""
        for row in self.rows("gates"):
            limit, documents = self.figure(row, "limit"), self.figure(row, "document_count")
            if row.labels.get("rule", "").startswith("max_lost") and limit and documents:
                allowed, total = number(limit), number(documents)
                if allowed is not None and total:
                    name = self.tell(
                        N_("rule: lose at most %(limit)s of %(total)s"),
                        limit=self.text.value(limit),
                        total=self.text.value(documents),
                    )
                    return -100.0 * allowed / total, name
        return None

    def _described(self, label: str, figure: Figure, scale: Scale | None = None) -> str:
        value = self.text.value(figure, scale)
        if not figure.interval:
            return f"{label}: {value}"
        level = self.tr.number(figure.interval.level_percent)
        reach = self.text.interval(figure, scale)
        return self.tell(
            N_("%(label)s: %(value)s (%(level)s %% interval %(reach)s)"),
            label=label,
            value=value,
            level=level,
            reach=reach,
        )

    # -- memory ---------------------------------------------------------------------------------------------------

    def memory_scope(self) -> str | None:
        """Return the widest memory scope that was measured."""
        seen = {r.labels.get("scope") for r in self.rows("memory") if number(self.figure(r, "peak_bytes")) is not None}
        return next((scope for scope in SCOPES if scope in seen), None)

    def memory(self, title: str) -> Chart | None:
        """Peaks by phase for each configuration, in the widest scope measured; a gap where there was no reading."""
        scope = self.memory_scope()
        rows = [r for r in self.rows("memory") if r.labels.get("scope") == scope][:MOST_ROWS]
        if scope is None or not rows:
            return None
        figures = [f for r in rows if (f := self.figure(r, "peak_bytes")) is not None]
        scale = scale_of([f for f in figures if f.value is not None])
        phases = [self.text.word(r.labels.get("phase", "")) for r in rows]
        top = max(number(f) or 0.0 for f in figures) / scale.divisor

        def draw(is_narrow: bool) -> str:
            room = label_width(phases)
            board = Board(self.tr, is_narrow=is_narrow, label_width=room, right_room=44, is_stacked=False)
            y, last = 0.0, None
            for row, phase in zip(rows, phases, strict=True):
                if (name := self._memory_name(row)) != last:
                    y, last = board.heading(y, name, is_first=last is None), name
                board.row_label(y, phase, colour=QUIET)
                self._lollipop(
                    board, y, self.figure(row, "peak_bytes"), scale, is_main=row.labels.get("phase") == "measure"
                )
                y += 13
            board.height = y + 2
            unit = self.tr.text(scale.unit_word)
            return board.svg((0.0, top * 1.02), self.tell(N_("peak, %(unit)s"), unit=unit))

        said = "; ".join(
            f"{self._memory_name(r)}, {phase}: {self._with_unit(self.figure(r, 'peak_bytes'), scale)}"
            for r, phase in zip(rows, phases, strict=True)
        )
        return finished("memory", title, said + ".", **self.both(draw))

    def _memory_name(self, row: Row) -> str:
        """Return the configuration, and what its memory is where that is no need of the workload."""
        label, need = row.labels.get("label", ""), row.labels.get("need", "")
        return f"{label} · {self.text.word(need, prefix='need')}" if need else label

    def _lollipop(self, board: Board, y: float, figure: Figure | None, scale: Scale, *, is_main: bool) -> None:
        value = number(figure)
        if figure is None or value is None:
            reason = self.text.reason(figure) if figure else self.text.word("not_measured")
            board.notes.append(Note(y, f"– {reason}", x=0.0, colour=QUIET, dx=4))
            return
        x = value / scale.divisor
        board.bars.append(Bar(y, 0.0, x, ACCENT if is_main else RULE, 2.6))
        board.marks.append(Mark(y, x, ACCENT if is_main else QUIET))
        board.notes.append(Note(y, self.text.value(figure, scale), x=x, dx=8, colour=INK if is_main else QUIET))

    def _with_unit(self, figure: Figure | None, scale: Scale) -> str:
        if figure is None or figure.value is None:
            return self.text.reason(figure) if figure else self.text.word("not_measured")
        return f"{self.text.value(figure, scale)}{NO_BREAK}{self.text.unit(figure, scale)}"

    # -- times ----------------------------------------------------------------------------------------------------

    def times(self, metric: str, title: str) -> Chart | None:
        """Median and 90th percentile of one timing over all documents, each configuration with its n."""
        rows = [
            r
            for r in self.rows("latency")
            if r.labels.get("metric") == metric and r.labels.get("length_class", "all") == "all"
        ][:MOST_ROWS]
        figures = [f for r in rows for k in ("p50_s", "p90_s") if (f := self.figure(r, k)) and f.value is not None]
        if not figures:
            return None
        scale = scale_of(figures)
        unit = self.tr.text(scale.unit_word)
        top = max(number(f) or 0.0 for f in figures) / scale.divisor
        labels = [r.labels.get("label", r.key) for r in rows]

        def draw(is_narrow: bool) -> str:
            board = Board(self.tr, is_narrow=is_narrow, label_width=label_width(labels), right_room=125)
            y = 8.0 + (18 if is_narrow else 0)
            for row, label in zip(rows, labels, strict=True):
                board.row_label(y, label)
                self._spread(board, y, row, scale)
                y += 38 if is_narrow else self._step(label)
            board.height = y - (22 if is_narrow else 8)
            return board.svg(
                (0.0, top * 1.02), self.tell(N_("median (dot) and 90th percentile (stroke), %(unit)s"), unit=unit)
            )

        said = "; ".join(
            f"{label}: {self._spread_words(r, scale)} ({unit})" for r, label in zip(rows, labels, strict=True)
        )
        return finished(f"times-{metric.removesuffix('_s')}", title, said + ".", **self.both(draw))

    def _spread(self, board: Board, y: float, row: Row, scale: Scale) -> None:
        median, high = number(self.figure(row, "p50_s")), number(self.figure(row, "p90_s"))
        if median is None:
            board.notes.append(Note(y, f"– {self.text.word('not_measured')}", x=0.0, dx=4, colour=QUIET))
            return
        low = median / scale.divisor
        end = low if high is None else high / scale.divisor
        if high is not None:
            board.bars.append(Bar(y, low, end))
            board.marks.append(Mark(y, end, shape="stroke"))
        board.marks.append(Mark(y, low))
        board.notes.append(Note(y, self._spread_words(row, scale), x=end, dx=9))

    def _spread_words(self, row: Row, scale: Scale) -> str:
        median, high, count = (self.figure(row, k) for k in ("p50_s", "p90_s", "request_count"))
        words = self.text.value(median, scale) if median else self.text.word("not_measured")
        if high is not None and high.value is not None:
            words = self.tell(N_("%(low)s to %(high)s"), low=words, high=self.text.value(high, scale))
        return words + (
            f", n{NO_BREAK}={NO_BREAK}{self.text.value(count)}" if count and count.value is not None else ""
        )

    # -- packages -------------------------------------------------------------------------------------------------

    def packages(self, title: str) -> Chart | None:
        """Hours paid for each package: needed ones filled, idle ones hollow, the price beside them.

        Where all offers of all candidates would fill more than a page, each candidate's cheapest offer is drawn.
        """
        every = [r for r in self.rows("packages") if number(self.figure(r, "paid_hours"))]
        if not every:
            return None
        rows = self._packages_drawn(every)
        axis = self.tell(N_("hours paid: needed (thick) and idle (thin)"))
        if len(rows) < len([row for row in every if not row.labels.get("blocked")]):
            axis = self.tell(N_("cheapest offers; hours paid: needed (thick) and idle (thin)"))
        scale = Scale(N_("h"), 1.0, 0)
        top = max(number(self.figure(r, "paid_hours")) or 0.0 for r in rows)
        names = [self._package_name(r) for r in rows]

        def draw(is_narrow: bool) -> str:
            room = label_width(names)
            board = Board(self.tr, is_narrow=is_narrow, label_width=room, right_room=185, is_stacked=False)
            y, last = 0.0, None
            for row, name in zip(rows, names, strict=True):
                group = " · ".join(v for k in ("candidate", "offer") if (v := row.labels.get(k)))
                if group != last:
                    y, last = board.heading(y, group, is_first=last is None), group
                board.row_label(y, name, colour=QUIET)
                self._package_row(board, y, row, scale)
                y += 15
            board.height = y + 2
            return board.svg((0.0, top * 1.02), axis)

        said = "; ".join(
            f"{r.labels.get('candidate', '')}, {name}: {self._package_words(r, scale)}"
            for r, name in zip(rows, names, strict=True)
        )
        return finished("packages", title, said + ".", **self.both(draw))

    def _packages_drawn(self, rows: list[Row]) -> list[Row]:
        def price(row: Row) -> float:
            return number(self.figure(row, "compared_net") or self.figure(row, "price_net")) or 0.0

        def offer(row: Row) -> tuple[str, str]:
            return row.labels.get("candidate", ""), row.labels.get("offer", "")

        rows = [row for row in rows if not row.labels.get("blocked")] or rows
        if len({offer(row) for row in rows}) <= MOST_OFFERS:
            return rows
        cheapest: dict[str, Row] = {}
        for row in sorted(rows, key=price, reverse=True):
            cheapest[offer(row)[0]] = row
        kept = dict.fromkeys(offer(row) for row in rows if offer(row) == offer(cheapest[offer(row)[0]]))
        drawn = list(kept)[:MOST_OFFERS]
        return [row for row in rows if offer(row) in drawn]

    def _package_row(self, board: Board, y: float, row: Row, scale: Scale) -> None:
        needed, paid = number(self.figure(row, "needed_hours")), number(self.figure(row, "paid_hours")) or 0.0
        board.bars.append(Bar(y, 0.0, paid, QUIET, 1.2))
        if needed is not None:
            board.bars.append(Bar(y, 0.0, min(needed, paid), ACCENT, 5.0))
        board.marks.append(Mark(y, paid, QUIET, "stroke"))
        board.notes.append(Note(y, self._package_words(row, scale), x=paid, dx=9))

    def _package_name(self, row: Row) -> str:
        if row.labels.get("tariff") == "hour":
            return self.text.word("hour", prefix="tariff")
        count = self.figure(row, "package_count")
        words = {"count": self.text.value(count) if count else "–", "days": row.labels.get("days", "")}
        return self.tell(N_("%(count)s × %(days)s days"), **words)

    def _package_words(self, row: Row, scale: Scale) -> str:
        needed, paid, price = (self.figure(row, k) for k in ("needed_hours", "paid_hours", "price_net"))
        used, parts = self.figure(row, "used_percent"), []
        if needed and paid and needed.value is not None:
            hours = {"needed": self.text.value(needed, scale), "paid": self.text.value(paid, scale)}
            share = f"{NO_BREAK}({self.text.in_sentence(used)})" if used and used.value is not None else ""
            parts.append(self.tell(N_("%(needed)s of %(paid)s h"), **hours) + share)
        if price and price.value is not None:
            parts.append(self.text.in_sentence(price))
        return " · ".join(parts)


def _reach(figure: Figure) -> list[float]:
    ends = [figure.interval.low, figure.interval.high] if figure.interval else []
    value = number(figure)
    return ends + ([value] if value is not None else [])


def clear_of(rule: float | None, *, room: float) -> Callable[[float], float]:
    """Return where a value behind a line's end stands: behind the rule's line as well, where it would lie on it."""
    return lambda end: rule if rule is not None and end < rule < end + room else end


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or 1.0
    return low - room, high + room
