"""Read a CSV file: its encoding, its delimiter by the header alone, and its records with the line each begins on."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from collector.contract.errors import Finding
from collector.contract.toml_lines import encoding_fault

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CONVERT = "save it as UTF-8 (in a spreadsheet: CSV UTF-8), or: iconv -f {} -t UTF-8 {} > converted{}"
_LONGEST_CELL = 2**31 - 1
_CELL_LIMIT = threading.Lock()


class Record(NamedTuple):
    """One record of a CSV file and the line on which it begins, counted from 1."""

    line: int
    cells: list[str]


class Table(NamedTuple):
    """A CSV file as it stands: header, delimiter, the records that are not blank, and what kept it from being read."""

    path: Path
    delimiter: str
    header: list[str]
    header_line: int
    records: list[Record]
    findings: list[Finding]


def decoded(path: Path, raw: bytes) -> str | Finding:
    """Return a text or CSV file's content: UTF-8, a byte-order mark left out, line ends as `\\n`; or what is wrong."""
    fault = encoding_fault(raw.removeprefix(BYTE_ORDER_MARK))
    if fault is None and b"\0" not in raw[:4096]:
        return raw.removeprefix(BYTE_ORDER_MARK).decode().replace("\r\n", "\n")
    if raw.startswith((b"%PDF", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        message, step = "this is a PDF, office or archive file, not text", "export it as plain text in UTF-8"
        return Finding(path, None, "encoding", message, step)
    if fault is None or "UTF-16" in fault.message:
        return Finding(path, 1, "encoding", "the file is UTF-16, not UTF-8", _hint("UTF-16", path))
    return Finding(path, fault.line, "encoding", fault.message, _hint("CP1252", path))


def _hint(encoding: str, path: Path) -> str:
    return _CONVERT.format(encoding, path.name, path.suffix)


def read_table(path: Path, raw: bytes, is_known: Callable[[str], bool]) -> Table:
    """Return the records of a CSV file.

    `is_known` says which names of columns to expect: the delimiter, comma or semicolon, is the one under which more of
    the header's names are known; the records have no say.

    A fault of quoting ends the reading, since nothing after it can be trusted: it names the line on which the record
    with the fault began.
    """
    text = decoded(path, raw)
    if isinstance(text, Finding):
        return Table(path, ",", [], 1, [], [text])
    delimiter = _delimiter(text, is_known)
    records: list[Record] = []
    findings: list[Finding] = []
    with _CELL_LIMIT:  # the module's limit is global: 131,072 characters, and a document may be longer
        before = csv.field_size_limit(_LONGEST_CELL)
        try:
            for record in _records(text, delimiter):
                if isinstance(record, _Broken):
                    findings.append(_quoting_finding(path, record))
                elif any(cell.strip() for cell in record.cells):
                    records.append(record)
        finally:
            csv.field_size_limit(before)
    if not records:
        step = "write the columns' names into the first line: id,role,text,..."
        return Table(path, delimiter, [], 1, [], findings or [Finding(path, 1, "not-csv", "the file is empty", step)])
    header, *others = records
    return Table(path, delimiter, [name.strip() for name in header.cells], header.line, others, findings)


class _Broken(NamedTuple):
    line: int
    began: int
    message: str


def _records(text: str, delimiter: str) -> Iterator[Record | _Broken]:
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, strict=True)
    began = 1
    try:
        for cells in reader:
            yield Record(began, cells)
            began = reader.line_num + 1
    except csv.Error as error:
        yield _Broken(max(began, reader.line_num), began, str(error))


def _quoting_finding(path: Path, broken: _Broken) -> Finding:
    if broken.message == "unexpected end of data":
        message = f"a quote is opened in the record that begins on line {broken.began} and never closed"
        return Finding(path, broken.began, "not-csv", message, 'close it; a quote inside a cell is written twice: ""')
    where = "" if broken.line == broken.began else f" (the record begins on line {broken.began})"
    message = f"the quoting is broken{where}: {broken.message}"
    return Finding(path, broken.line, "not-csv", message, 'put quotes around the whole cell, and write " inside as ""')


def _delimiter(text: str, is_known: Callable[[str], bool]) -> str:
    def known_names(delimiter: str) -> int:
        header = next(_records(text, delimiter), None)
        cells = header.cells if isinstance(header, Record) else []
        return sum(is_known(name.strip()) for name in cells)

    return max(",;", key=known_names)
