"""The step from a campaign's charges to every table about what was paid; without a charge nothing is added."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from collector.contract.campaign import Campaign

from .allocation_tables import put_charges
from .allocation_usage import accounts
from .book import Book
from .selection import Standing
from .tables import file_digests
from .utilisation_tables import put_usage, put_utilisation


def put_paid(
    book: Book, con: duckdb.DuckDBPyConnection, standings: Sequence[Standing], campaign: Campaign | None
) -> None:
    """Add the tables of charges, usage, shares, reconciliation and analysis where the campaign has charges."""
    found = accounts(con, standings, campaign) if campaign is not None else None
    if found is None:
        return
    put_usage(book, found, file_digests(con))
    put_charges(book, found)
    put_utilisation(book, found)
