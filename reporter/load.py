"""Opens run files: checked once, then typed views in a locked in-memory DuckDB, one per record kind.

The views are generated from the Structs and not kept as .sql files: the contract is the one home of a kind's fields, so
a field added there is in the view without a second edit. What is computed from them is in `reporter/sql/`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import duckdb

from collector.contract import chain, columns
from collector.contract.errors import Finding
from collector.contract.records import KINDS

from . import rejudged
from .cache import Cache, Entry, default_cache_dir
from .record_files import record_files

MAX_THREADS = 8
SEQ_BITS = 40
"""Bits of a `source` that hold its seq; those above hold the run's number."""
SMALL_COUNT = 200_000
"""Up to so many records are read into memory once and queried by one thread: planning over Parquet and handing work to
threads would take longer than the work. More of them stay in their Parquet files, and memory stays flat."""

NATURAL_KEYS: dict[str, tuple[str, ...]] = {
    "header": (),
    "document": ("document_id",),
    "pass_begin": ("pass_id",),
    "pass_end": ("pass_id",),
    "reading": ("pass_id", "phase", "device_id", "memory_scope", "statistic"),
    "request": (
        "pass_id", "phase", "document_id", "turn", "try_index", "case when phase <> 'measure' then seq end",
    ),
    "score": ("pass_id", "document_id", "turn", "try_index", "rule_digest", "scorer_digest"),
    "variant": ("pass_id", "observed_at"),
}  # fmt: skip
"""What names a record within its run; a kind not listed is named by its seq alone. Warm-up requests may repeat."""


_SOURCE = f"(run_number << {SEQ_BITS}) + least(seq, {(1 << SEQ_BITS) - 1})"
"""An integer sorts, compares and gathers several times faster than a pair. A seq beyond these bits is a forged one."""


class SetAside(NamedTuple):
    """A line that no figure uses, or a file where `line` is null."""

    file: Path
    line: int | None
    rule: str
    message: str


class Store:
    """Run files opened for reading; a context manager. `con` is locked: no file, no setting, no extension.

    files: one report per distinct file, by name. set_aside: lines and whole files that no figure uses. copies: files
    with the bytes of another. duplicate_counts: kind -> records ignored because an earlier one has their natural key.
    judged_again: runs whose judgements come from a newer file. unused: files of judgements that no figure uses.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        *,
        files: list[chain.FileReport],
        set_aside: list[SetAside],
        copies: list[tuple[Path, Path]],
        duplicate_counts: dict[str, int],
        judged_again: list[rejudged.Rejudged],
        unused: list[rejudged.Unused],
    ) -> None:
        self.con = con
        self.files = files
        self.set_aside = set_aside
        self.copies = copies
        self.duplicate_counts = duplicate_counts
        self.judged_again = judged_again
        self.unused = unused

    @property
    def runs(self) -> list[chain.FileReport]:
        """The files that are runs, without those of judgements made again; each with its present protocol's header."""
        return rejudged.runs(self.files, self.judged_again)

    @property
    def newer_files(self) -> list[Path]:
        """Files of a newer major, set aside whole: figures without them are figures of a part."""
        return [report.path for report in self.files if report.is_newer_format]

    @property
    def changed_files(self) -> list[Path]:
        """Files whose chain, seal or lines break the contract. A newer file is not one: it cannot be judged here."""
        return [report.path for report in self.files if report.errors and not report.is_newer_format]

    @property
    def open_files(self) -> list[Path]:
        """Readable files without a valid seal: their tail is unprotected."""
        return [report.path for report in self.files if not report.is_sealed and not report.is_newer_format]

    @property
    def duplicate_count(self) -> int:
        return sum(self.duplicate_counts.values())

    def close(self) -> None:
        self.con.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_records(paths: Sequence[Path], *, cache_dir: Path | None = None, write_to: Path | None = None) -> Store:
    """Check the run files of the paths and open them as views `stg_<kind>`, in memory and read-only.

    Each view has the kind's fields plus run_id, seq, written_at, missing and `source`, which names the record: its
    run's number in `run_numbers` and its seq, as one integer. The same bytes under two names are read once.

    write_to: the one folder that the connection may write into; nowhere without it.

    Raises DossierError where a path does not exist, holds no run file or cannot be read.
    """
    entries: dict[str, Entry] = {}
    copies: list[tuple[Path, Path]] = []
    with Cache(cache_dir or default_cache_dir()) as cache:
        for path in record_files(paths):
            entry = cache.entry(path)
            first = entries.setdefault(entry.report.sha256, entry)
            if first is not entry:
                copies.append((path, first.report.path))
    reports = [entry.report for entry in entries.values()]
    parquets = sorted({entry.parquet for entry in entries.values() if entry.parquet})
    is_small = sum(report.record_count for report in reports) <= SMALL_COUNT
    con = _connect(cache.folder, parquets, is_small=is_small, write_to=write_to)
    judged_again, unused = rejudged.pairs(reports)
    rejudged.create_tables(con, judged_again, unused)
    duplicates = _create_views(con, entries.values(), is_small=is_small)
    _create_files(con, reports)
    return Store(
        con, files=reports, set_aside=_set_aside(reports), copies=copies, duplicate_counts=duplicates,
        judged_again=judged_again, unused=unused,
    )  # fmt: skip


def two_contents(store: Store) -> list[Finding]:
    """Return each sound sealed file whose run has other records in an earlier one: nothing tells which is the run."""
    findings, first = [], dict[str, chain.FileReport]()
    for report in store.files:
        if report.is_sealed and not report.errors and report.run_id is not None:
            known = first.setdefault(report.run_id, report)
            if known.head_digest != report.head_digest:
                message = f"run {report.run_id} has other records here than in {known.path}, and both files are sealed"
                step = "keep the file whose head digest was noted when the run ended"
                findings.append(Finding(report.path, report.line_count, "two-contents", message, step))
    return findings


def _connect(
    folder: Path, parquets: list[Path], *, is_small: bool, write_to: Path | None = None
) -> duckdb.DuckDBPyConnection:
    """Open DuckDB with nothing but these files, and lock that in; records of small files are read at once."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoload_known_extensions": "false", "autoinstall_known_extensions": "false",
        "threads": "1" if is_small else str(min(_usable_cpus(), MAX_THREADS)),
    }  # fmt: skip
    con = duckdb.connect(":memory:", config=config)
    names = [str(path) for path in parquets]
    con.execute("set timezone = 'UTC'")
    con.execute("set temp_directory = ?", [str(folder / f"spill-{secrets.token_hex(8)}")])
    con.execute("set allowed_paths = ?", [names])
    if write_to is not None:
        con.execute("set allowed_directories = ?", [[str(write_to.resolve())]])
    con.execute("set enable_external_access = false")
    con.execute("set lock_configuration = true")
    if names:
        listed = ", ".join("'" + name.replace("'", "''") + "'" for name in names)
        scan = f"select *, file_row_number as file_row, filename as file from read_parquet([{listed}])"
        if is_small:
            con.execute(f"create table read_records as {scan}")
            scan = "select * from read_records"
        con.execute(f"create view records as {scan}")
    else:
        typed = ", ".join(
            f'cast(null as {kind}) as "{name}"' for name, kind in columns.duckdb_columns().items() if name != "prev"
        )
        con.execute(f"create view records as select {typed}, 0 as file_row, '' as file where false")
    return con


def _usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _create_views(con: duckdb.DuckDBPyConnection, entries: Iterable[Entry], *, is_small: bool) -> dict[str, int]:
    """Create a view per kind (a table where that costs less); returns how many records of each kind are duplicates."""
    key = "\n".join(
        f"when '{kind}' then [{', '.join(f'cast({part} as varchar)' for part in parts) or repr('')}]"
        for kind, parts in NATURAL_KEYS.items()
    )
    keyed = f"""
        select file, file_row, kind, run_id, seq,
            case kind {key} else [cast(seq as varchar)] end as natural_key
        from records"""
    count = con.execute(f"select count(*) - count(distinct hash(run_id, kind, natural_key)) from ({keyed})").fetchone()
    has_duplicates = bool(count and count[0])
    con.execute(
        "create table ignored_duplicates (file varchar, file_row bigint, run_id varchar, seq bigint, kind varchar)"
    )
    if has_duplicates:
        _ignore_duplicates(con, entries, keyed)
    con.execute("""
        create table run_numbers as
        select run_id, row_number() over (order by run_id) - 1 as run_number
        from (select distinct run_id from records)""")
    kept = " and (file, file_row) not in (select file, file_row from ignored_duplicates)" if has_duplicates else ""
    form = "table" if is_small else "view"
    has_rejudging = con.execute("select count(*) from rejudging").fetchall() != [(0,)]
    for kind in KINDS:
        fields = dict.fromkeys(["run_id", "seq", "written_at", *columns.kind_columns(kind), "missing"])
        listed = ", ".join(f'"{name}"' for name in fields if name not in ("kind", "prev"))
        plain = (
            f"select {listed}, {_SOURCE} as source "
            f"from records inner join run_numbers using (run_id) where kind = '{kind}'{kept}"
        )
        con.execute(f"create {form} stg_{kind} as {rejudged.view(kind, plain) if has_rejudging else plain}")
    counted = con.execute("select kind, count(*) from ignored_duplicates group by kind order by kind").fetchall()
    return {str(kind): int(number) for kind, number in counted}


def _ignore_duplicates(con: duckdb.DuckDBPyConnection, entries: Iterable[Entry], keyed: str) -> None:
    """Of two files of one run the sound one is kept, then the sealed one, whatever their names."""
    con.execute("create temp table trust (file varchar, doubt integer)")
    for entry in entries:
        doubt = 2 * bool(entry.report.errors) + (not entry.report.is_sealed)
        con.execute("insert into trust values (?, ?)", [str(entry.parquet), doubt])
    con.execute(f"""
        insert into ignored_duplicates
        select file, file_row, run_id, seq, kind
        from (
            select *, row_number() over (
                partition by run_id, kind, natural_key order by doubt, seq, file, file_row
            ) as place
            from ({keyed})
            left join trust using (file)
        )
        where place > 1""")


def _create_files(con: duckdb.DuckDBPyConnection, reports: Sequence[chain.FileReport]) -> None:
    con.execute("""
        create table run_files (
            file_name varchar, run_id varchar, sha256 varchar, head_digest varchar, is_sealed boolean,
            is_newer_format boolean, record_count bigint
        )""")
    for r in reports:
        con.execute(
            "insert into run_files values (?, ?, ?, ?, ?, ?, ?)",
            [r.path.name, r.run_id, r.sha256, r.head_digest, r.is_sealed, r.is_newer_format, r.record_count],
        )


def _set_aside(reports: Sequence[chain.FileReport]) -> list[SetAside]:
    """Return what no figure uses, each line once. A broken chain alone is told, it sets nothing aside."""
    found: list[SetAside] = []
    for report in reports:
        told: set[int] = set()
        for line, problem in report.problems:
            is_lost = problem.rule in ("torn-tail", "unknown-kind") or not problem.is_notice
            if is_lost and problem.rule != "chain" and line not in told:
                told.add(line)
                is_whole = problem.rule == "newer-format"
                found.append(SetAside(report.path, None if is_whole else line, problem.rule, problem.message))
    return found
