"""Records, the dossier's tables and the campaign's charges as files that other tools read: CSV, Parquet, FOCUS."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import duckdb

from collector.contract.errors import DossierError
from collector.contract.records import KINDS

from .charge_tables import GRAINS
from .query import opened
from .sql_files import TABLES
from .writing import unwritable

ExportFormat = Literal["csv", "parquet", "focus"]
FOCUS_TABLES = ("origin_charges", "allocated_charges")
UTC = "%Y-%m-%dT%H:%M:%SZ"
"""How FOCUS writes an instant; every timestamp of the tables is in UTC."""
_UNREADABLE = ("source", "sources")
"""Columns that name records by an integer that means something inside one session only."""


def export(
    runs: Sequence[Path],
    campaign: Path | None,
    out: Path,
    *,
    to: ExportFormat,
    cache_dir: Path | None = None,
) -> list[Path]:
    """Write one file per table into the folder, each whole or not at all, and return their paths.

    csv, parquet: the records by kind, the dossier's tables, and the charges where there are any. focus: the charges as
    paid and as allocated, under the names of FOCUS. Numbers have points and dates are ISO in any locale.

    Raises DossierError where the folder cannot be written, and for focus where the campaign has no charge.
    """
    if to == "focus" and campaign is None:
        step = "add --campaign campaign.toml, with [[rental]] and [[charge]] tables"
        raise DossierError("charges are in the campaign file, and none is named", next_step=step)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise unwritable(out, fault) from None
    with opened(runs, campaign, cache_dir=cache_dir, write_to=out) as store:
        tables = list(_tables(store.con, to))
        if to == "focus" and not tables:
            step = "add [[charge]] tables to it: one per invoice line, as it was paid"
            raise DossierError(f"{campaign} has no charge", next_step=step)
        return [_write(store.con, table, out, "csv" if to == "focus" else to) for table in tables]


def _tables(con: duckdb.DuckDBPyConnection, to: ExportFormat) -> Iterator[str]:
    """Yield what has rows; the charges of every convention only beside the records."""
    names = FOCUS_TABLES if to == "focus" else (*GRAINS, *TABLES, *(f"stg_{kind}" for kind in KINDS))
    for name in names:
        if con.execute(f"select 1 from {name} limit 1").fetchone() is not None:
            yield name


def _write(con: duckdb.DuckDBPyConnection, table: str, out: Path, to: str) -> Path:
    target = out.resolve() / f"{table.replace('stg_', 'records-')}.{to}"
    part = target.with_name(target.name + ".part")
    columns = [name for name, *_ in con.execute(f"describe {table}").fetchall() if name not in _UNREADABLE]
    listed = ", ".join(f'"{name}"' for name in columns)
    order = " order by run_id, seq" if table.startswith("stg_") else ""
    form = (
        f"(format csv, header true, timestampformat '{UTC}')" if to == "csv" else "(format parquet, compression zstd)"
    )
    quoted = str(part).replace("'", "''")
    try:
        con.execute(f"copy (select {listed} from {table}{order}) to '{quoted}' {form}")
        part.replace(target)
    except (duckdb.Error, OSError) as fault:
        with contextlib.suppress(OSError):
            part.unlink()
        error = fault if isinstance(fault, OSError) else OSError(str(fault).splitlines()[0])
        raise unwritable(target, error) from None
    return out / target.name
