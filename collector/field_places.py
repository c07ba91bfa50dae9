"""Say where an expected value stands: in a field of a line, or in the cell of a sheet's column."""

from __future__ import annotations

from collector.contract.protocol import DocumentLine
from collector.documents_table import EXPECTED


def place_of(document: DocumentLine, field: str, *, is_sheet: bool) -> str:
    """Return the beginning of a sentence about one expected value."""
    if is_sheet:
        return f"document {document.id!r}, column `{EXPECTED}{field}`: the cell"
    return f"document {document.id!r}: the expected {field!r}"
