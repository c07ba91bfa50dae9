"""Documents from a CSV file, the labelling sheet: one record a document, its text in a cell or in a file of its own.

A cell of `expected.<field>` is empty while nobody has labelled it, and holds the word null where the document does not
have the field. A value that really reads null is written with quotes around it: "null".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from collector.contract.errors import Finding
from collector.contract.protocol import DocumentLine, Task
from collector.contract.shape import nearest, shape_problems, shown
from collector.csv_table import Record, Table, decoded, read_table

EXPECTED = "expected."
NULL = "null"
COLUMNS = (
    "id", "role", "text", "file", "length_class", "is_hard", "subsets", "cluster", "language", "answers", "tolerance",
)  # fmt: skip
_YES_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class TableRow(NamedTuple):
    """A document of the table and the line of its record. `unlabelled` are the columns that nobody has filled in."""

    line: int
    document: DocumentLine
    unlabelled: list[str]


class TableDocuments(NamedTuple):
    """What a table holds: rows that are documents, and a finding for everything that is not."""

    rows: list[TableRow]
    findings: list[Finding]


def read_sheet(path: Path, raw: bytes) -> Table:
    """Return a labelling sheet as it stands."""
    return read_table(path, raw, lambda name: name in COLUMNS or name.startswith(EXPECTED))


def table_documents(table: Table, task: Task | None) -> TableDocuments:
    """Return the documents of a table; what must be labelled is known only where the task is."""
    columns = _wanted_labels(task)
    findings = [*table.findings, *_header_findings(table, columns)]
    rows: list[TableRow] = []
    if any(finding.rule in ("encoding", "missing-column", "duplicate-column") for finding in findings):
        needed = {"id", "role"} - set(table.header)
        if needed or not {"text", "file"} & set(table.header):
            return TableDocuments([], findings)
    for record in table.records:
        row, problems = _row(table, record, columns)
        findings += problems
        if row is not None:
            rows.append(row)
    return TableDocuments(rows, findings)


def _wanted_labels(task: Task | None) -> list[str] | None:
    if task is None:
        return None
    if task.kind == "answers":
        return ["answers"]
    return [EXPECTED + rule.name for rule in task.fields]


def _header_findings(table: Table, labels: Sequence[str] | None) -> Iterator[Finding]:
    if not table.header:
        return
    line = table.header_line

    def finding(rule: str, message: str, next_step: str) -> Finding:
        return Finding(table.path, line, rule, message, next_step)

    if len(table.header) == 1 and "\t" in table.header[0]:
        yield finding("not-csv", "the columns are separated by tabs", "separate them with commas or semicolons")
        return
    known = [*COLUMNS, *(labels or [])]
    for index, name in enumerate(table.header):
        if name in table.header[:index] and name:
            yield finding("duplicate-column", f"the column `{name}` stands twice", "keep one of the two")
        elif name in ("candidates", "relevance"):
            message = f"the column `{name}` belongs to rankings, which cannot be written in a CSV file"
            yield finding("unknown-column", message, "write a ranking's documents as JSON-lines: documents.jsonl")
        elif name.startswith(EXPECTED) and (labels is None or name in labels):
            continue
        elif name not in known and (name or any(len(one.cells) > index and one.cells[index] for one in table.records)):
            meant = nearest(name, known)
            advice = f"did you mean `{meant}`?" if meant else f"known here: {', '.join(known)}"
            yield finding("unknown-column", f"unknown column `{name}`", f"remove it, or rename it: {advice}")
    missing = [name for name in ("id", "role", *(labels or [])) if name not in table.header]
    for name in missing:
        yield finding("missing-column", f"the column `{name}` is missing", f"add a column `{name}`{_filled_with(name)}")
    if not {"text", "file"} & set(table.header):
        step = "add `text` (the document itself) or `file` (the path of a text file, from the CSV file's folder)"
        yield finding("missing-column", "neither a column `text` nor a column `file` is there", step)


def _filled_with(name: str) -> str:
    if name.startswith(EXPECTED):
        return " and fill it in; `null` where a document does not have the value"
    return {"id": " of names that differ", "role": ": development, validation or test"}.get(name, "")


def _row(table: Table, record: Record, labels: Sequence[str] | None) -> tuple[TableRow | None, list[Finding]]:
    def finding(rule: str, message: str, next_step: str) -> Finding:
        return Finding(table.path, record.line, rule, message, next_step)

    if len(record.cells) != len(table.header) and any(record.cells[len(table.header) :]):
        message = f"the record has {len(record.cells)} cells, the header {len(table.header)}"
        step = f"put quotes around cells that contain `{table.delimiter}`, quotes or line breaks"
        return None, [finding("not-csv", message, step)]
    if len(record.cells) < len(table.header):
        message = f"the record has {len(record.cells)} cells, the header {len(table.header)}"
        return None, [finding("not-csv", message, "fill in the missing cells; an empty one still needs its delimiter")]
    cells = dict(zip(table.header, record.cells, strict=False))
    value, unlabelled, problems = _value(cells, labels, finding)
    text = _text(table, record, cells, finding)
    if isinstance(text, Finding):
        problems.append(text)
    else:
        value["text"] = text
        for problem in shape_problems(DocumentLine, value, whole="this record"):
            problems.append(finding(problem.rule, f"column {problem.message}", problem.next_step))
    if problems:
        return None, problems
    return TableRow(record.line, msgspec.convert(value, DocumentLine), unlabelled), []


def _value(
    cells: dict[str, str], labels: Sequence[str] | None, finding: Any
) -> tuple[dict[str, Any], list[str], list[Finding]]:
    """Return the record as plain data without its text, the columns still to be labelled, and what cannot be read."""
    value: dict[str, Any] = {"expected": {}}
    unlabelled: list[str] = []
    problems: list[Finding] = []
    for column, cell in cells.items():
        stripped = cell.strip()
        if column in ("id", "role") or (column in ("length_class", "cluster", "language", "tolerance") and stripped):
            value[column] = stripped
        elif column in ("subsets", "answers"):
            value[column] = [part.strip() for part in cell.split(";|"[column == "answers"]) if part.strip()]
        elif column == "is_hard" and stripped:
            value[column] = _YES_NO.get(stripped.lower(), stripped)
        elif column.startswith(EXPECTED) and stripped:
            if stripped != NULL and stripped.lower() == NULL:
                message = f"column `{column}`: {shown(stripped)} can be read in two ways"
                step = (
                    f'write null in small letters where the document has no value; "{stripped}" in quotes for the word'
                )
                problems.append(finding("ambiguous-null", message, step))
            value["expected"][column.removeprefix(EXPECTED)] = _expected(cell)
        if column in (labels or ()) and not stripped:
            unlabelled.append(column)
    return value, unlabelled, problems


def _expected(cell: str) -> str | None:
    stripped = cell.strip()
    if stripped == NULL:
        return None
    if stripped.startswith('"') and stripped.endswith('"') and stripped[1:-1].lower() == NULL:
        return stripped[1:-1]
    return cell


def cell_of(expected: str | None) -> str:
    """Return how an expected value is written into a cell, so that it is read back as it was."""
    if expected is None:
        return NULL
    return f'"{expected}"' if expected.strip().lower() == NULL else expected


def _text(table: Table, record: Record, cells: dict[str, str], finding: Any) -> str | Finding:
    """Return a record's text, from its cell or its file. Of a file, the last line's end is no part of the text."""
    text, name = cells.get("text", ""), cells.get("file", "").strip()
    own = f"document {shown(cells.get('id', '').strip())}"
    if bool(text.strip()) == bool(name):
        what = "both a text and a file" if name else "neither a text nor a file"
        fault: Finding = finding("text-or-file", f"{own} has {what}", "fill in one of the columns `text` and `file`")
        return fault
    return text if text.strip() else file_text(table.path, record.line, own, name)


def file_text(sheet: Path, line: int, own: str, name: str) -> str | Finding:
    """Return the text of a file that a sheet names, or what is wrong with it."""

    def fault(message: str, next_step: str, rule: str = "text-file") -> Finding:
        return Finding(sheet, line, rule, f"{own}: column `file`: {shown(name)} {message}", next_step)

    if Path(name).is_absolute():
        return fault(
            "is an absolute path", f"copy it beside {sheet.name}, so that the folder can travel; name it from there"
        )
    path = sheet.parent / name
    try:
        raw = path.read_bytes()
    except OSError as error:
        is_windows_path = "\\" in name and (sheet.parent / name.replace("\\", "/")).is_file()
        step = (
            "write / between folders"
            if is_windows_path
            else f"put the file back, correct the path (it starts at the folder of {sheet.name}), or remove the row"
        )
        return fault("does not exist" if isinstance(error, FileNotFoundError) else f"{error.strerror}", step)
    text = decoded(path, raw)
    if isinstance(text, Finding):
        return text._replace(message=f"{text.message} ({own}, {sheet.name} line {line})")
    if not text.strip():
        return fault("holds blanks only", "write the document's text, or remove the record", "empty-text")
    return text.removesuffix("\n")
