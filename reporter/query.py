"""One question in SQL over the records and, with a campaign, over its charges: read-only, nothing else is reachable."""

from __future__ import annotations

import csv
import datetime as dt
import difflib
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec

from collector.contract.campaign_file import read_campaign
from collector.contract.errors import DossierError
from collector.contract.records import KINDS

from . import figures
from .allocation_usage import accounts
from .assemble import case_of
from .charge_tables import GRAINS, create_charge_tables
from .load import Store, open_records
from .sql_files import MARTS, TABLES, sql_file

LIST_STEP = "`reporter query RUNS --tables` lists the tables; `describe TABLE` as the question lists its columns"
_GUESSES = ("Candidate bindings:", "Did you mean")


class Answer(NamedTuple):
    """The columns and rows of an answer."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


@contextmanager
def opened(
    runs: Sequence[Path], campaign_path: Path | None, *, cache_dir: Path | None = None, write_to: Path | None = None
) -> Iterator[Store]:
    """Open the records with every step and table of the dossier as a view, and the campaign's charges as tables.

    Raises Refused for a campaign file that cannot be used and for runs of several protocols.
    """
    campaign = read_campaign(campaign_path).campaign if campaign_path is not None else None
    with open_records(runs, cache_dir=cache_dir, write_to=write_to) as store:
        evidence = figures.build(store)
        for name in TABLES:
            store.con.execute(f"create or replace view {name} as {sql_file(name).text}")
        case = case_of(store, evidence, campaign) if campaign is not None and campaign.charges else None
        found = accounts(store.con, case.selection.standings, campaign) if case and campaign else None
        create_charge_tables(store.con, found)
        yield store


def query(runs: Sequence[Path], campaign: Path | None, sql: str, *, cache_dir: Path | None = None) -> Answer:
    """Return the answer to one SELECT. Raises DossierError for anything else, and where DuckDB cannot answer."""
    _one_select(sql)
    with opened(runs, campaign, cache_dir=cache_dir) as store:
        try:
            cursor = store.con.execute(sql)
            return Answer([column[0] for column in cursor.description or []], cursor.fetchall())
        except duckdb.Error as error:
            raise _unanswered(store, sql, error) from None


def _unanswered(store: Store, sql: str, error: duckdb.Error) -> DossierError:
    """Return what DuckDB says, with the columns of the tables asked or, for an unknown table, the nearest names."""
    message = str(error).split("\n\n")[0]
    # its candidates are the names closest in spelling, and leave out the column that was meant
    message = "\n".join(line for line in message.splitlines() if not line.startswith(_GUESSES))
    names = [row[0] for row in table_list().rows]
    if missing := re.search(r"Table with name (\S+) does not exist", message):
        near = difflib.get_close_matches(missing[1].lower(), names, n=3)
        return DossierError(message, next_step=(f"did you mean {' or '.join(near)}? " if near else "") + LIST_STEP)
    words = set(re.findall(r"\w+", sql.lower()))
    asked = [name for name in names if name in words] if isinstance(error, duckdb.BinderException) else []
    columns = [f"{name} has: {', '.join(_columns(store, name))}" for name in asked]
    return DossierError(message, next_step="; ".join(columns) or LIST_STEP)


def _columns(store: Store, table: str) -> list[str]:
    return [row[0] for row in store.con.execute(f"describe {table}").fetchall()]


def _one_select(sql: str) -> None:
    try:
        kinds = [statement.type.name for statement in duckdb.extract_statements(sql)]
    except duckdb.Error as error:
        raise DossierError(f"not SQL: {str(error).splitlines()[0]}", next_step=LIST_STEP) from None
    if kinds != ["SELECT"]:
        found = ", ".join(kinds) or "nothing"
        step = 'give one SELECT, e.g. "select * from origin_charges"'
        raise DossierError(f"only one SELECT is answered, not {found}", next_step=step)


def table_list() -> Answer:
    """Return what can be asked: charges first, then the dossier's tables, its steps, and the records by kind."""
    rows = [(name, "charges", grain) for name, grain in GRAINS.items()]
    rows += [(name, "dossier", sql_file(name).grain) for name in TABLES]
    rows += [(name, "step", sql_file(name).grain) for name in MARTS]
    rows += [(f"stg_{kind}", "records", f"one row per record of kind {kind}") for kind in KINDS]
    return Answer(["table", "of", "grain"], list(rows))


def as_csv(answer: Answer) -> str:
    """Return the answer as CSV: decimal points, ISO dates, nulls empty, in any locale."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([[_plain(value) for value in row] for row in answer.rows])
    return out.getvalue()


def as_json(answer: Answer) -> bytes:
    """Return the answer as one JSON list of objects; exact decimals are strings."""
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    return msgspec.json.encode(rows, enc_hook=str)


def as_lines(answer: Answer) -> Iterator[str]:
    """Yield the answer as an aligned table: numbers to the right, nulls as `-`."""
    cells = [[_plain(value) if value is not None else "-" for value in row] for row in answer.rows]
    widths = [
        max([len(name), *(len(row[place]) for row in cells)]) for place, name in enumerate(answer.columns)
    ]  # fmt: skip
    is_number = [
        any(row[place] is not None for row in answer.rows)
        and all(isinstance(row[place], int | float | Decimal | None) for row in answer.rows)
        for place in range(len(answer.columns))
    ]
    for line in [answer.columns, ["-" * width for width in widths], *cells]:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_number, strict=True)
        ]
        yield "  ".join(padded).rstrip()


def _plain(value: object) -> str:
    """Return a value as text that no locale changes."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dt.datetime():
            return value.isoformat(sep=" ")
        case list() | dict() | tuple():
            return msgspec.json.encode(value, enc_hook=str).decode()
        case _:
            return str(value)
