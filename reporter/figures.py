"""Every number that records give: the SQL files run in order, each cell a figure that names its sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import msgspec

from collector.contract.errors import Finding, Refused
from collector.contract.protocol import Lock
from collector.contract.records import Header
from collector.contract.records.base import Stage

from . import statistics
from .dossier import BASES, Basis, Figure, Row, Table, Unit, Value
from .engine_side import create_metric_names
from .load import Store, two_contents
from .rejudged import RULES as REJUDGED
from .sql_files import MARTS, TABLES, TEST_MARTS, TEST_PREFIX, TEST_STAGE, TEST_TABLES, check_file, sql_file
from .tables import MAX_SOURCES, TableMaker, figure_id, finite

PERCENTILES = (50, 90, 95, 99)


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


def build(store: Store) -> Evidence:
    """Compute every figure and table that records give.

    Raises Refused where the files hold no run, one run with two contents, runs of more than one protocol, or passes of
    one model that were sent different prompts: those are never pooled.
    """
    headers = _headers(store)
    _one_protocol(store, headers)
    _same_prompts(store)
    if conflicts := two_contents(store):
        raise Refused(conflicts)
    con = store.con
    con.execute("create or replace macro all_sources(s) as flatten(list(s))")
    create_metric_names(con)
    for name in MARTS:
        con.execute(f"create or replace table {name} as {sql_file(name).text}")
    _quantile_ranks(con)
    figures: dict[str, Figure] = {}
    maker = TableMaker(con, figures)
    tables = {name: maker.table(sql_file(name)) for name in TABLES}
    reference = con.execute("select any_value(configuration_key) from reference_documents").fetchone()
    stage = con.execute("select stage from judged_stage").fetchone()
    if stage is not None and stage[0] != "test" and any(header.stage == "test" for header in headers):
        tables |= _test_tables(con, maker)
    return Evidence(
        figures=figures,
        tables=tables,
        lock=_lock(store, headers[0]),
        stage=stage[0] if stage else headers[0].stage,
        headers=headers,
        reference_key=reference[0] if reference else None,
    )


def _test_tables(con: duckdb.DuckDBPyConnection, maker: TableMaker) -> dict[str, Table]:
    """Return the tables of the test stage; keys and labels of configurations stay those of the judged stage.

    A schema of its own shadows the steps that depend on the stage, so that the same SQL computes both.
    """
    con.execute("create schema if not exists test_stage")
    con.execute("use test_stage")
    try:
        con.execute(f"create or replace table judged_stage as {TEST_STAGE}")
        for name in TEST_MARTS:
            con.execute(f"create or replace table {name} as {sql_file(name).text}")
        return {name: maker.table(sql_file(name)) for name in (TEST_PREFIX + table for table in TEST_TABLES)}
    finally:
        con.execute("use main")


def derive(
    inputs: Sequence[Figure],
    value: Value,
    unit: Unit,
    formula: str,
    figure_id: str,
    *,
    currency: str | None = None,
    missing_reason: str | None = None,
    n: int | None = None,
) -> Figure:
    """Return a figure computed from others: its basis is the weakest of theirs (mission A3), its files all of theirs.

    n: how many measurements it condenses, where that is stated.

    `record_count` is exact where every input lists all of its records, otherwise the sum over the inputs.

    Raises ValueError without inputs, for a value that is not finite and for a null without a reason.
    """
    if not inputs:
        raise ValueError(f"{figure_id}: a derived figure has inputs")
    if value is None and missing_reason is None:
        raise ValueError(f"{figure_id}: a null needs a reason")
    is_listed = all(figure.record_count == len(figure.sources) for figure in inputs)
    sources = _sources(inputs, fewest=None if is_listed else MAX_SOURCES)
    digests = {id(figure.file_digests): figure.file_digests for figure in inputs}
    return Figure(
        figure_id=figure_id,
        value=finite(figure_id, value),
        unit=unit,
        basis=weakest([figure.basis for figure in inputs]),
        is_derived=True,
        bases=entered(inputs),
        formula=formula,
        n=n,
        currency=currency,
        missing_reason=missing_reason if value is None else None,
        record_count=len(sources) if is_listed else sum(figure.record_count for figure in inputs),
        file_digests=sorted(set().union(*digests.values())),
        sources=sources[:MAX_SOURCES],
    )


def _sources(inputs: Sequence[Figure], *, fewest: int | None) -> list[str]:
    """Return the records that the inputs list, each once: all of them, or the first until `fewest` are reached.

    Figures of one row share their list, and a sum over hundreds of figures would read each of them again.
    """
    found: dict[str, None] = {}
    for listed in {id(figure.sources): figure.sources for figure in inputs}.values():
        found.update(dict.fromkeys(listed))
        if fewest is not None and len(found) >= fewest:
            break
    return list(found)


def entered(inputs: Sequence[Figure]) -> list[Basis]:
    """Return every basis that entered the figures, the weakest first; empty where all have the same one."""
    found = {basis for figure in inputs for basis in (figure.bases or [figure.basis])}
    return sorted(found, key=BASES.index, reverse=True) if len(found) > 1 else []


def weakest(bases: Sequence[Basis]) -> Basis:
    """Return the weakest basis: measured, quoted, assumed, claimed, example, from the strongest on."""
    return max(bases, key=BASES.index)


def _headers(store: Store) -> tuple[Header, ...]:
    """Return one header per run, by time."""
    headers = {report.header.run_id: report.header for report in store.runs if report.header is not None}
    if not headers:
        if newer := store.newer_files:
            message, step = "no file but those of a newer format, set aside whole", "upgrade gpu-dossier to read them"
            raise Refused([Finding(newer[0], 1, "newer-format", message, step)])
        if store.unused:
            raise Refused(
                [Finding(one.report.path, 1, one.rule, one.message, REJUDGED[one.rule]) for one in store.unused]
            )
        step = "run `reporter check` on the files, or name others"
        raise Refused([Finding(store.files[0].path, 1, "no-run", "no file holds a readable run", step)])
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
        for report in store.runs
        if report.header is not None and report.header.protocol_id != wanted
    ]  # fmt: skip
    if findings:
        raise Refused(findings)


def _same_prompts(store: Store) -> None:
    """Refuse to compare answers to different prompts, before any of them is: one template more has halved a score."""
    is_differing = store.con.execute("""
        select 1 from stg_request inner join (select distinct run_id, pass_id, model_id from stg_variant)
            using (run_id, pass_id)
        where phase = 'measure' and turn = 0 and prompt_hmac is not null
        group by model_id, document_id having min(prompt_hmac) <> max(prompt_hmac) limit 1""").fetchone()
    if is_differing is None:
        return
    rule = check_file("different-prompt")
    first: dict[str, tuple[int, int]] = {}
    for run_id, seq, _ in store.con.execute(rule.text).fetchall():
        place, count = first.get(run_id, (seq + 1, 0))
        first[run_id] = (place, count + 1)
    findings = [
        Finding(
            report.path, first[report.run_id][0], rule.rule,
            f"different prompt: {first[report.run_id][1]} request(s) were sent another prompt than an earlier pass "
            "sent for the same document, so no score of them is compared",
            rule.next_step,
        )
        for report in store.runs
        if report.run_id in first
    ]  # fmt: skip
    if findings:
        raise Refused(findings)


def _quantile_ranks(con: duckdb.DuckDBPyConnection) -> None:
    """Create the table that percentiles take their ranks from: one row per sample size that occurs."""
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
        union
        select distinct count(value_ns) as n
        from load_samples
        group by pass_key, metric, measured_window
        having count(value_ns) > 0
        order by n""").fetchall()
    for (n,) in sizes:
        row: list[int | None] = [n]
        for percent in PERCENTILES:
            low, high = statistics.quantile_interval_ranks(n, percent)
            both = (low, high) if low is not None and high is not None else (None, None)
            row += [statistics.quantile_rank(n, percent), *both]
        con.execute(f"insert into quantile_ranks values ({', '.join('?' * len(row))})", row)
