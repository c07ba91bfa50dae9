"""Every number that records give: the SQL files run in order, each cell a figure that names its sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import msgspec

from collector.contract.errors import Finding, Refused
from collector.contract.protocol import Lock
from collector.contract.records import Header
from collector.contract.records.base import Stage

from . import statistics
from .dossier import BASES, Basis, Figure, Interval, Row, Table, Unit, Value
from .load import Store
from .sql_files import MARTS, TABLES, FigureColumn, SqlFile, query_digest, sql_file

MAX_SOURCES = 20
PERCENTILES = (50, 90, 95)


class Evidence(NamedTuple):
    """What the records say, as figures and tables.

    lock: of the earliest run. stage: the one that is judged. headers: of all run files, by time. reference_key: the
    reference's configuration key, null where no pass of it was completed.
    """

    figures: dict[str, Figure]
    tables: dict[str, Table]
    lock: Lock
    stage: Stage
    headers: tuple[Header, ...]
    reference_key: str | None

    def row(self, table: str, row_key: str) -> Row | None:
        """Return one row of a table, or null where there is none."""
        return next((row for row in self.tables[table].rows if row.key == row_key), None)

    def figure(self, table: str, row_key: str, column: str) -> Figure | None:
        """Return the figure of one cell, or null where the row or the cell does not exist."""
        return self.figures.get(figure_id(table, row_key, column))

    def value(self, table: str, row_key: str, column: str) -> Value:
        """Return the raw value of one cell; null where it, or the row, does not exist."""
        figure = self.figure(table, row_key, column)
        return figure.value if figure else None


def figure_id(table: str, row_key: str, column: str) -> str:
    """Return the id of a cell's figure."""
    return f"{table}/{row_key}/{column}"


def build(store: Store) -> Evidence:
    """Compute every figure and table that records give.

    Raises Refused where the files hold no run, or runs of more than one protocol: those are never pooled.
    """
    headers = _headers(store)
    _one_protocol(store, headers)
    con = store.con
    con.execute("create or replace macro all_sources(s) as flatten(list(s))")
    for name in MARTS:
        con.execute(f"create or replace table {name} as {sql_file(name).text}")
    _quantile_ranks(con)
    digests = _file_digests(con)
    configurations = _configuration_labels(con)
    figures: dict[str, Figure] = {}
    tables: dict[str, Table] = {}
    for name in TABLES:
        tables[name] = _table(con, sql_file(name), digests, configurations, figures)
    reference = con.execute("select any_value(configuration_key) from reference_documents").fetchone()
    stage = con.execute("select stage from judged_stage").fetchone()
    return Evidence(
        figures=figures,
        tables=tables,
        lock=_lock(store, headers[0]),
        stage=stage[0] if stage else headers[0].stage,
        headers=headers,
        reference_key=reference[0] if reference else None,
    )


def derive(
    inputs: Sequence[Figure],
    value: Value,
    unit: Unit,
    formula: str,
    figure_id: str,
    *,
    currency: str | None = None,
    missing_reason: str | None = None,
) -> Figure:
    """Return a figure computed from others: its basis is the weakest of theirs (mission A3), its files all of theirs.

    `record_count` is exact where every input lists all of its records, otherwise the sum over the inputs.

    Raises ValueError without inputs, for a value that is not finite and for a null without a reason.
    """
    if not inputs:
        raise ValueError(f"{figure_id}: a derived figure has inputs")
    if value is None and missing_reason is None:
        raise ValueError(f"{figure_id}: a null needs a reason")
    sources = list(dict.fromkeys(source for figure in inputs for source in figure.sources))
    is_listed = all(figure.record_count == len(figure.sources) for figure in inputs)
    return Figure(
        figure_id=figure_id,
        value=_finite(figure_id, value),
        unit=unit,
        basis=weakest([figure.basis for figure in inputs]),
        is_derived=True,
        formula=formula,
        currency=currency,
        missing_reason=missing_reason if value is None else None,
        record_count=len(sources) if is_listed else sum(figure.record_count for figure in inputs),
        file_digests=sorted({digest for figure in inputs for digest in figure.file_digests}),
        sources=sources[:MAX_SOURCES],
    )


def weakest(bases: Sequence[Basis]) -> Basis:
    """Return the weakest basis: measured, quoted, assumed, claimed, example, from the strongest on."""
    return max(bases, key=BASES.index)


def _headers(store: Store) -> tuple[Header, ...]:
    """Return one header per run, by time."""
    headers = {report.header.run_id: report.header for report in store.files if report.header is not None}
    if not headers:
        files = store.files
        raise Refused(
            [Finding(files[0].path, 1, "no-run", "no file holds a readable run",
                     "run `reporter check` on the files, or name others")]
        )  # fmt: skip
    return tuple(sorted(headers.values(), key=lambda header: (header.wall_at, header.run_id)))


def _lock(store: Store, header: Header) -> Lock:
    try:
        return msgspec.json.decode(header.protocol_json, type=Lock)
    except msgspec.MsgspecError as error:
        path = next(report.path for report in store.files if report.run_id == header.run_id)
        step = "restore the file from a copy, or keep it out of the campaign"
        raise Refused(
            [Finding(path, 1, "protocol-json", f"the header holds no readable lock: {error}", step)]
        ) from None


def _one_protocol(store: Store, headers: Sequence[Header]) -> None:
    """Refuse to pool runs of different protocols; every file that differs from the earliest run is named."""
    wanted = headers[0].protocol_id
    findings = [
        Finding(
            report.path, 1, "mixed-protocols",
            f"protocol {report.header.protocol_id[:12]}…, while the earliest run has {wanted[:12]}…; "
            "runs of different protocols are never pooled",
            "make one dossier per protocol: name only the files of one",
        )
        for report in store.files
        if report.header is not None and report.header.protocol_id != wanted
    ]  # fmt: skip
    if findings:
        raise Refused(findings)


def _quantile_ranks(con: duckdb.DuckDBPyConnection) -> None:
    """Create the table that latency.sql takes its ranks from: one row per sample size that occurs."""
    con.execute(
        "create or replace table quantile_ranks (n bigint, "
        + ", ".join(f"p{p} bigint, p{p}_low bigint, p{p}_high bigint" for p in PERCENTILES)
        + ")"
    )
    sizes = con.execute("""
        select distinct count(value_ns) as n
        from latency_samples
        group by configuration_key, metric, length_class
        having count(value_ns) > 0
        order by n""").fetchall()
    for (n,) in sizes:
        row: list[int | None] = [n]
        for percent in PERCENTILES:
            low, high = statistics.quantile_interval_ranks(n, percent)
            both = (low, high) if low is not None and high is not None else (None, None)
            row += [statistics.quantile_rank(n, percent), *both]
        con.execute(f"insert into quantile_ranks values ({', '.join('?' * len(row))})", row)


def _file_digests(con: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Return run_id -> head digest of its file where sealed, else the digest of its bytes."""
    digests: dict[str, list[str]] = {}
    for run_id, digest in con.execute(
        "select run_id, coalesce(head_digest, sha256) as digest from run_files where run_id is not null order by all"
    ).fetchall():
        digests.setdefault(run_id, []).append(digest)
    return digests


def _configuration_labels(con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    rows = con.execute("select configuration_key, variant, device, purpose from configurations").fetchall()
    return {key: {"variant": variant, "device": device, "purpose": purpose} for key, variant, device, purpose in rows}


def _table(
    con: duckdb.DuckDBPyConnection,
    file: SqlFile,
    digests: Mapping[str, list[str]],
    configurations: Mapping[str, dict[str, str]],
    figures: dict[str, Figure],
) -> Table:
    """Run one file, add its figures, and return its table."""
    con.execute(f"create or replace table {file.name} as {file.text}")
    cursor = con.execute(f"""
        with listed as (
            select * replace (list_sort(list_distinct(sources)) as sources), rowid from {file.name}
        )
        select
            * exclude (sources, rowid),
            coalesce(len(sources), 0) as source_count,
            list_transform(sources[:{MAX_SOURCES}], lambda s: s.run_id || ':' || s.seq) as first_sources,
            list_sort(list_distinct(list_transform(sources, lambda s: s.run_id))) as source_runs
        from listed
        order by listed.rowid""")
    columns = [description[0] for description in cursor.description or []]
    rows: dict[str, Row] = {}
    for values in cursor.fetchall():
        found = dict(zip(columns, values, strict=True))
        key = str(found["row_key"])
        if key in rows:
            raise ValueError(f"{file.name}.sql: two rows have the key {key}")
        cells = {}
        for column in file.figures:
            figure = _figure(file.name, key, column, found, digests)
            figures[figure.figure_id] = figure
            cells[column.name] = figure.figure_id
        own = {name: _label(found[name]) for name in file.labels}
        rows[key] = Row(key=key, labels=configurations.get(own.get("configuration_key", ""), {}) | own, cells=cells)
    return Table(name=file.name, grain=file.grain, rows=list(rows.values()))


def _figure(
    table: str, key: str, column: FigureColumn, row: Mapping[str, Any], digests: Mapping[str, list[str]]
) -> Figure:
    name = figure_id(table, key, column.name)
    value: Value = _finite(name, row[column.name])
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
        record_count=row["source_count"],
        file_digests=sorted({digest for run in row["source_runs"] or [] for digest in digests.get(run, [])}),
        sources=row["first_sources"] or [],
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
        case "order_statistics":
            bounds = statistics.Bounds(*given) if None not in given else None
        case _:
            raise ValueError(f"{column.name}: no interval is called {method}")
    if bounds is None:
        return None
    return Interval(
        low=bounds.low * scale, high=bounds.high * scale, level_percent=statistics.LEVEL_PERCENT, method=method
    )


def _finite(name: str, value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}: a figure is finite or null with a reason")
    return value


def _label(value: object) -> str:
    return "" if value is None else str(value)
