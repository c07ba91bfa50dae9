"""The figures and tables of a dossier while it is being made: evidence first, derived figures added, none replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec

from collector.contract.tariffs import NS_PER_HOUR

from .dossier import Basis, Figure, Row, Sentence, Table, Unit, Value
from .figures import derive


class _Index(NamedTuple):
    """A table's rows by key, and by the configuration that each is of."""

    rows: Sequence[Row]
    by_key: dict[str, Row]
    by_configuration: dict[str, list[Row]]


class Book:
    """Figures by id and tables by name. A figure id means one figure for good."""

    def __init__(self, figures: Mapping[str, Figure], tables: Mapping[str, Table]) -> None:
        self.figures = dict(figures)
        self.tables = dict(tables)
        self._indexes: dict[str, _Index] = {}

    def add(self, figure: Figure) -> str:
        """Add a figure and return its id. Raises ValueError where another figure has that id."""
        known = self.figures.setdefault(figure.figure_id, figure)
        if known != figure:
            raise ValueError(f"two figures are named {figure.figure_id}")
        return figure.figure_id

    def given(
        self,
        figure_id: str,
        value: Value,
        unit: Unit,
        basis: Basis,
        *,
        currency: str | None = None,
        missing_reason: str | None = None,
    ) -> str:
        """Add a figure that stands in the campaign or the protocol, with that basis; return its id."""
        return self.add(
            Figure(
                figure_id=figure_id, value=value, unit=unit, basis=basis, currency=currency,
                missing_reason=missing_reason,
            )
        )  # fmt: skip

    def derived(
        self,
        inputs: Iterable[str],
        *,
        figure_id: str,
        value: Value,
        unit: Unit,
        formula: str,
        currency: str | None = None,
        missing_reason: str | None = None,
        n: int | None = None,
    ) -> str:
        """Add a figure computed from others and return its id; its basis is the weakest of theirs (mission A3)."""
        return self.add(
            derive(
                [self.figures[name] for name in inputs], value, unit, formula, figure_id, currency=currency,
                missing_reason=missing_reason, n=n,
            )
        )  # fmt: skip

    def rows(self, table: str) -> Sequence[Row]:
        """Return a table's rows; none where the table is absent."""
        return self.tables[table].rows if table in self.tables else ()

    def row(self, table: str, key: str) -> Row | None:
        """Return the row of that key."""
        return self._index(table).by_key.get(key)

    def rows_of(self, table: str, key: str) -> list[Row]:
        """Return the rows of that configuration."""
        return list(self._index(table).by_configuration.get(key, ()))

    def _index(self, table: str) -> _Index:
        """Return the table's index, made again where its rows are others than before."""
        rows = self.rows(table)
        known = self._indexes.get(table)
        if known is None or known.rows is not rows:
            known = self._indexes[table] = _Index(rows, {}, {})
            for row in rows:
                known.by_key.setdefault(row.key, row)
                known.by_configuration.setdefault(row.labels.get("configuration_key", row.key), []).append(row)
        return known

    def figure(self, row: Row | None, column: str) -> Figure | None:
        """Return the figure of a cell; null where the row has no such cell."""
        return self.figures[row.cells[column]] if row is not None and column in row.cells else None

    def whole(self, row: Row | None, column: str) -> int | None:
        """Return a cell's whole number; null where it has none."""
        figure = self.figure(row, column)
        return figure.value if figure is not None and type(figure.value) is int else None

    def relabel(self, names: Mapping[str, str]) -> None:
        """Print configurations under other names in every table."""
        for table in self.tables.values():
            rows = [
                msgspec.structs.replace(row, labels=row.labels | {"label": names[row.labels["label"]]})
                if row.labels.get("label") in names
                else row
                for row in table.rows
            ]
            self.tables[table.name] = msgspec.structs.replace(table, rows=rows)

    def put(self, name: str, grain: str, rows: list[Row]) -> None:
        """Add a table. Raises ValueError where one of that name is there."""
        if name in self.tables:
            raise ValueError(f"the table {name} is there already")
        self.tables[name] = Table(name=name, grain=grain, rows=rows)


def ref(figure_id: str) -> str:
    """Return the parameter that prints a figure inside a sentence."""
    return "#" + figure_id


def hours(duration_ns: Fraction | int) -> float:
    """Return exact nanoseconds as the nearest float of hours, for printing only."""
    return float(Fraction(duration_ns) / NS_PER_HOUR)


def row(key: str, labels: Mapping[str, str], cells: Mapping[str, str | None], *sentences: Sentence) -> Row:
    """Return a row without the cells that have no figure."""
    kept = {column: name for column, name in cells.items() if name is not None}
    return Row(key=key, labels=dict(labels), cells=kept, sentences=list(sentences))
