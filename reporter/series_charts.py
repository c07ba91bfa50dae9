"""Charts of one growing factor and of what weights are made of, drawn with the tools of `charts`."""

from __future__ import annotations

from .board import Board, Chart, finished, label_width
from .charts import ChartMaker
from .dossier import Figure, Row
from .drawing import Bar, Mark, Note
from .figure_text import Scale, scale_of
from .svg import ACCENT, QUIET, RULE, WARNING
from .translate import N_, NO_BREAK

ROW = 17.0
ROOM = 130.0
"""Pixels right of a batch's bar for its number and the documents accepted."""
PARTS = ("embedding", "output_layer", "attention", "mlp", "norm", "other")
"""Module groups in the order in which a token passes them, the two that are often left unquantized first."""


class SeriesCharts:
    """Draws with the figures, the language and the widths of a ChartMaker. A chart without evidence is None."""

    def __init__(self, maker: ChartMaker) -> None:
        self.maker = maker
        self.text = maker.text
        self.tr = maker.tr

    def batch_speed(self, title: str, environment_id: str) -> Chart | None:
        """Documents per hour of each batch, with the accepted documents beside them."""
        return self._batches("batch-speed", title, environment_id, "documents_per_h", with_accepted=True)

    def batch_memory(self, title: str, environment_id: str) -> Chart | None:
        """The memory peak of each batch."""
        return self._batches("batch-memory", title, environment_id, "peak_bytes", with_accepted=False)

    def _batches(
        self, chart_id: str, title: str, environment_id: str, column: str, *, with_accepted: bool
    ) -> Chart | None:
        every = [r for r in self.maker.rows("batches") if r.labels.get("environment_id") == environment_id]
        rows = [r for r in every if r.labels.get("purpose") not in ("reference_repeat", "repetition")]
        figures = [f for r in rows if (f := self.maker.figure(r, column)) is not None and f.value is not None]
        if not figures:
            return None
        scale = scale_of(figures)
        names = [self._batch_name(r) for r in rows]
        top = max(_number(f) for f in figures) / scale.divisor
        told = [self._told(r, column, scale, with_accepted=with_accepted) for r in rows]

        def draw(is_narrow: bool) -> str:
            board = Board(
                self.tr, is_narrow=is_narrow, label_width=label_width(names), right_room=ROOM, is_stacked=False
            )
            y = 8.0
            for row, name, words in zip(rows, names, told, strict=True):
                figure = self.maker.figure(row, column)
                board.row_label(y, name)
                if figure is None or figure.value is None:
                    board.notes.append(Note(y, f"– {words}", x=0.0, dx=4, colour=WARNING))
                else:
                    x = _number(figure) / scale.divisor
                    board.bars.append(Bar(y, 0.0, x, ACCENT, 2.6))
                    board.marks.append(Mark(y, x))
                    board.notes.append(Note(y, words, x=x, dx=8))
                y += ROW
            board.height = y - 6
            # keeps panels of one series at one width, so that their type has one size
            board.notes.append(Note(0.0, NO_BREAK, pixel=board.width + ROOM))
            unit = self.tr.text(scale.unit_word) if scale.unit_word else ""
            return board.svg((0.0, top * 1.02), unit)

        said = "; ".join(f"{name}: {words}" for name, words in zip(names, told, strict=True))
        number = self._place(environment_id)
        return finished(f"{chart_id}{number}", title, said + ".", **self.maker.both(draw))

    def weights(self, title: str) -> Chart | None:
        """Bytes of each variant's weights by module group and storage type, side by side in one bar."""
        groups: dict[str, list[Row]] = {}
        for row in self.maker.rows("tensor_groups"):
            if (figure := self.maker.figure(row, "tensor_bytes")) is not None and figure.value:
                groups.setdefault(row.labels["label"], []).append(row)
        if not groups:
            return None
        for rows in groups.values():
            rows.sort(key=lambda r: (*_place(r.labels["module_group"]), r.labels["storage_dtype"]))
        figures = [f for rows in groups.values() for r in rows if (f := self.maker.figure(r, "tensor_bytes"))]
        scale = scale_of(figures)
        totals = {label: sum(map(self._bytes, rows)) for label, rows in groups.items()}
        top = max(totals.values()) / scale.divisor
        plain = {r.labels["storage_dtype"] for r in next(iter(groups.values()))}

        def draw(is_narrow: bool) -> str:
            board = Board(self.tr, is_narrow=is_narrow, label_width=label_width(list(groups)), right_room=90)
            y = 22.0 + (18 if is_narrow else 0)
            for label, rows in groups.items():
                board.row_label(y - (13 if is_narrow else 0), label)
                self._segments(board, y, rows, scale, top=top * 1.02, plain=plain)
                y += 58 if is_narrow else 36
            board.height = y - 22
            unit = self.tr.text(scale.unit_word)
            return board.svg((0.0, top * 1.02), self.maker.tell(N_("weights, %(unit)s"), unit=unit))

        said = "; ".join(f"{label}: " + ", ".join(self._part(r, scale) for r in rows) for label, rows in groups.items())
        return finished("weights", title, said + ".", **self.maker.both(draw))

    def _segments(self, board: Board, y: float, rows: list[Row], scale: Scale, *, top: float, plain: set[str]) -> None:
        """Draw one bar of parts; a part is named above where its name has room."""
        at, gap = 0.0, top / board.width
        for index, row in enumerate(rows):
            size = self._bytes(row) / scale.divisor
            is_plain = row.labels["storage_dtype"] in plain
            colour = (QUIET, RULE)[index % 2] if is_plain else ACCENT
            if size > 2 * gap:
                board.bars.append(Bar(y, at, at + size - gap, colour, 11.0))
            pixels = size / gap
            words = next((w for w in self._names(row, scale) if len(w) * 5.2 <= pixels), "")
            if words:
                board.notes.append(Note(y, words, x=at, dx=1, dy=-13))
            at += size
        coloured = sorted({r.labels["storage_dtype"] for r in rows} - plain)
        if coloured:
            words = self.maker.tell(N_("coloured: %(types)s"), types=", ".join(coloured))
            board.notes.append(Note(y, words, x=at, dx=6, colour=QUIET))

    def _names(self, row: Row, scale: Scale) -> list[str]:
        """Return what a part may be called, the longest first."""
        group, dtype = self.text.word(row.labels["module_group"]), row.labels["storage_dtype"]
        figure = self.maker.figure(row, "tensor_bytes")
        size = self.text.value(figure, scale) if figure else ""
        return [f"{group} {dtype} {size}", f"{group} {dtype}", f"{group} {size}", group]

    def _part(self, row: Row, scale: Scale) -> str:
        figure = self.maker.figure(row, "tensor_bytes")
        size = f"{self.text.value(figure, scale)}{NO_BREAK}{self.text.unit(figure, scale)}" if figure else "–"
        return f"{self.text.word(row.labels['module_group'])} {row.labels['storage_dtype']} {size}"

    def _bytes(self, row: Row) -> float:
        figure = self.maker.figure(row, "tensor_bytes")
        return _number(figure) if figure else 0.0

    def _place(self, environment_id: str) -> str:
        """Return what tells the charts of several machines apart; nothing for the first."""
        seen = list(dict.fromkeys(r.labels.get("environment_id") for r in self.maker.rows("batches")))
        index = seen.index(environment_id)
        return f"-{index + 1}" if index else ""

    def _batch_name(self, row: Row) -> str:
        figure = self.maker.figure(row, "batch")
        return self.maker.tell(N_("batch of %(count)s"), count=self.text.value(figure) if figure else "–")

    def _told(self, row: Row, column: str, scale: Scale, *, with_accepted: bool) -> str:
        figure = self.maker.figure(row, column)
        if figure is None or figure.value is None:
            return self._why(row)
        words = self.text.value(figure, scale)
        accepted, judged = self.maker.figure(row, "accepted_documents"), self.maker.figure(row, "judged_documents")
        if with_accepted and accepted is not None and judged is not None:
            numbers = {"accepted": self.text.value(accepted), "total": self.text.value(judged)}
            words += "," + NO_BREAK + self.maker.tell(N_("%(accepted)s of %(total)s accepted"), **numbers)
        return words

    def _why(self, row: Row) -> str:
        reason = "not_tried" if row.labels.get("outcome") == "skipped" else row.labels.get("cause") or "not_measured"
        return self.text.word(reason)


def _place(group: str) -> tuple[int, str]:
    """Return where a module group stands; one of a later contract stands last, by name."""
    return (PARTS.index(group), "") if group in PARTS else (len(PARTS), group)


def _number(figure: Figure) -> float:
    return float(figure.value) if isinstance(figure.value, int | float) else 0.0
