"""From one SQL file to one table: runs it, and makes a figure of each cell that the file's head declares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import duckdb

from . import latency_statistics, paired_statistics, statistics
from .dossier import Figure, Interval, Row, Table, Value
from .graded_statistics import mean_of_values
from .load import SEQ_BITS
from .sql_files import FigureColumn, SqlFile, query_digest

MAX_SOURCES = 20
"""Source records that a figure lists; all of them are counted."""

_SEQ_MASK = (1 << SEQ_BITS) - 1


def figure_id(table: str, row_key: str, column: str) -> str:
    """Return the id of a cell's figure."""
    return f"{table}/{row_key}/{column}"


def finite(name: str, value: Value) -> Value:
    """Return the value. Raises ValueError for NaN and infinity, which no JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}: a figure is finite or null with a reason")
    return value


class _Evidence(NamedTuple):
    """The records behind one row: all of its figures share them."""

    record_count: int
    file_digests: list[str]
    sources: list[str]


class TableMaker:
    """Makes tables from a database whose marts are there; adds each figure to `figures`."""

    def __init__(self, con: duckdb.DuckDBPyConnection, figures: dict[str, Figure]) -> None:
        self._con = con
        self._figures = figures
        self._digests = file_digests(con)
        self._configurations = _configuration_labels(con)
        self._runs = dict(con.execute("select run_number, run_id from run_numbers").fetchall())

    def table(self, file: SqlFile) -> Table:
        """Run one file and return its table, its rows in the file's order.

        Raises ValueError where two rows have one key: ids of figures would be ambiguous.
        """
        step = file.only_with
        if step is not None and self._con.execute(f"select 1 from {step} limit 1").fetchone() is None:
            return Table(name=file.name, grain=file.grain, rows=[])
        cursor = self._con.execute(f"""
            with found as materialized (
                select *, row_number() over () as place from (
                {file.text}
                )
            ),
            cited as (
                select
                    place,
                    count(*) as source_count,
                    min(source, {MAX_SOURCES}) as first_sources,
                    list(distinct source >> {SEQ_BITS}) as source_runs
                from (select distinct place, unnest(sources) as source from found)
                group by place
            )
            select
                found.* exclude (sources, place), coalesce(source_count, 0) as source_count, first_sources, source_runs
            from found
            left join cited using (place)
            order by place""")
        columns = [description[0] for description in cursor.description or []]
        rows: dict[str, Row] = {}
        for values in cursor.fetchall():
            row = self._row(file, dict(zip(columns, values, strict=True)))
            if row.key in rows:
                raise ValueError(f"{file.name}.sql: two rows have the key {row.key}")
            rows[row.key] = row
        return Table(name=file.name, grain=file.grain, rows=list(rows.values()))

    def _row(self, file: SqlFile, found: Mapping[str, Any]) -> Row:
        key = str(found["row_key"])
        cells = {}
        evidence = self._evidence(found)
        for column in file.figures:
            figure = self._figure(file.name, key, column, found, evidence)
            self._figures[figure.figure_id] = figure
            cells[column.name] = figure.figure_id
        own = {name: "" if found[name] is None else str(found[name]) for name in file.labels}
        configuration = self._configurations.get(own.get("configuration_key", ""), {})
        return Row(key=key, labels=configuration | own, cells=cells)

    def _evidence(self, row: Mapping[str, Any]) -> _Evidence:
        runs = [self._runs[number] for number in row["source_runs"] or []]
        digests = {digest for run in runs for digest in self._digests.get(run, [])}
        sources = [f"{self._runs[source >> SEQ_BITS]}:{source & _SEQ_MASK}" for source in row["first_sources"] or []]
        return _Evidence(row["source_count"], sorted(digests), sources)

    def _figure(
        self, table: str, key: str, column: FigureColumn, row: Mapping[str, Any], evidence: _Evidence
    ) -> Figure:  # fmt: skip
        name = figure_id(table, key, column.name)
        value: Value = finite(name, row[column.name])
        reason = row.get(f"{column.name}_missing") or (row.get("missing") or {}).get(column.name) or "not_measured"
        return Figure(
            figure_id=name,
            value=value,
            unit=column.unit,
            basis=column.basis,
            is_derived=column.is_derived,
            formula=column.formula,
            n=row[column.n] if column.n else None,
            interval=_interval(column, row) if value is not None else None,
            missing_reason=reason if value is None else None,
            query_digest=query_digest(table),
            record_count=evidence.record_count,
            file_digests=evidence.file_digests,
            sources=evidence.sources,
        )


def _interval(column: FigureColumn, row: Mapping[str, Any]) -> Interval | None:
    """Return the interval that the column declares, or null where the sample allows none."""
    if column.interval is None:
        return None
    method, arguments = column.interval
    given = [row[name] for name in arguments]
    bounds: statistics.Bounds | None = None
    scale = 1.0
    match method:
        case "wilson":
            bounds, scale = statistics.wilson(row[column.name], *given), float(given[0])
        case "wilson_percent":
            bounds, scale, method = statistics.wilson(*given), 100.0, "wilson"
        case "tango":
            bounds, scale = statistics.tango(*given), 100.0
        case "tango_clustered":
            pairs, sums = paired_statistics.Pairs(*given[:4]), paired_statistics.ClusterSums(*given[4:])
            bounds, scale = paired_statistics.tango_clustered(pairs, sums), 100.0
        case "mean_of_values":
            bounds = mean_of_values(*given)
        case "t_of_means":
            bounds = latency_statistics.mean_interval(*given)
        case "welch_of_logs":
            bounds = latency_statistics.ratio_interval(*given)
        case "order_statistics":
            bounds = statistics.Bounds(*given) if None not in given else None
        case _:
            raise ValueError(f"{column.name}: no interval is called {method}")
    if bounds is None:
        return None
    return Interval(
        low=bounds.low * scale, high=bounds.high * scale, level_percent=statistics.LEVEL_PERCENT, method=method
    )


def file_digests(con: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Return run_id -> head digest of its file where sealed, else the digest of its bytes."""
    digests: dict[str, list[str]] = {}
    for run_id, digest in con.execute(
        "select run_id, coalesce(head_digest, sha256) as digest from run_files where run_id is not null order by all"
    ).fetchall():
        digests.setdefault(run_id, []).append(digest)
    return digests


def _configuration_labels(con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    rows = con.execute(
        "select configuration_key, variant, device, purpose, case when has_several_engines then engine end, "
        "case when rate_per_s is not null then 'open' end from configurations"
    ).fetchall()
    labels = ("variant", "device", "purpose", "engine", "loop")
    return {
        key: {name: value for name, value in zip(labels, values, strict=True) if value is not None}
        for key, *values in rows
    }
