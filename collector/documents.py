"""The documents: JSON-lines, a CSV file or a folder of texts with its sheet; and the prompt made of one document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from collector.contract.errors import Finding, Refused
from collector.contract.protocol import DocumentLine, Task
from collector.contract.shape import shape_problems
from collector.contract.toml_lines import encoding_fault
from collector.csv_table import BYTE_ORDER_MARK, Table
from collector.documents_table import TableDocuments, read_sheet, table_documents
from collector.engines.base import ExampleTurn, Prompt

PLACEHOLDER = "{document}"
CANDIDATES_PLACEHOLDER = "{candidates}"
SHEET = "documents.csv"
TEXT_SUFFIXES = (".txt", ".md")
_OTHER_TABLES = (".tsv", ".xlsx", ".xls", ".ods", ".numbers")


class NumberedDocument(NamedTuple):
    """A document and the line it stands on, or on which its record begins, counted from 1."""

    line: int
    document: DocumentLine


class DocumentsFile(NamedTuple):
    """What a documents file holds: the lines that are documents, and a finding for each that is not.

    `path` is the file with the lines: of a folder, its sheet. `is_sheet`: a CSV file, which is read together with the
    task, so that its findings already say what is not labelled.
    """

    path: Path
    entries: list[NumberedDocument]
    findings: list[Finding]
    is_sheet: bool = False


def render_prompt(task: Task, document: DocumentLine) -> Prompt:
    """Return the task's prompt with the document in place of `{document}`; nothing else in it is interpreted.

    Of a ranking, `{candidates}` becomes one line per candidate, `id: text`, in the documents file's order. Worked
    examples are put through the same prompt.
    """
    return Prompt(
        document_id=document.id,
        system=task.system,
        user=_filled(task, document.text, document.candidates),
        examples=[
            ExampleTurn(user=_filled(task, example.document, example.candidates), answer=example.answer)
            for example in task.examples
        ],
        candidates=document.candidates if task.kind == "ranking" else {},
    )


def _filled(task: Task, text: str, candidates: Mapping[str, str]) -> str:
    values = {PLACEHOLDER: text}
    if task.kind == "ranking":
        values[CANDIDATES_PLACEHOLDER] = "\n".join(f"{name}: {text}" for name, text in candidates.items())
    # One pass over the prompt's own text: a placeholder that stands in a document stays as it is.
    parts = re.split(f"({'|'.join(re.escape(each) for each in values)})", task.prompt)
    return "".join(values.get(part, part) for part in parts)


def read_documents(path: Path, task: Task | None = None) -> DocumentsFile:
    """Return every document of a JSON-lines file, a CSV file or a folder, and a finding for each that is none.

    A folder holds .txt and .md files and their sheet, documents.csv in it or <folder>.csv beside it. A text file that
    the sheet does not name is a finding, there and in each folder beside a sheet of which it names other files: a
    deleted row must not drop a document in silence. `task` says what a sheet must label. Blank lines are passed over.

    Raises Refused only where nothing can be opened.
    """
    if path.is_dir():
        return _read_sheet(sheet_of(path), task, folder=path)
    if path.suffix.lower() == ".csv":
        return _read_sheet(path, task)
    if path.suffix.lower() in _OTHER_TABLES:
        step = "save it as CSV in UTF-8 and name that file under [workload]; or write JSON-lines"
        raise Refused([Finding(path, None, "unreadable", f"a {path.suffix} file cannot be read", step)])
    return _read_lines(path, _bytes(path))


def sheet_of(folder: Path) -> Path:
    """Return the labelling sheet of a folder of texts. Raises Refused where there is none, or more than one."""
    beside = folder.with_name(f"{folder.name}.csv")
    sheets = [path for path in (folder / SHEET, beside) if path.is_file()]
    if len(sheets) == 1:
        return sheets[0]
    if sheets:
        message = f"the folder has two sheets, {sheets[0]} and {sheets[1]}"
        raise Refused([Finding(folder, None, "sheet", message, "keep one of them")])
    message = f"the folder has no labelling sheet: neither {SHEET} in it nor {beside.name} beside it"
    step = f"`collector init DIR --from {folder}` writes one"
    raise Refused([Finding(folder, None, "sheet", message, step)])


def text_files(folder: Path) -> list[Path]:
    """Return the .txt and .md files of a folder and of the folders in it, hidden ones left out, sorted by path."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in TEXT_SUFFIXES and path.is_file())
    return sorted(
        (path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)),
        key=lambda path: path.relative_to(folder).as_posix(),
    )


def _unlisted(table: Table, folder: Path | None) -> list[Finding]:
    """`folder`: the one that was asked for, which is looked through whatever the sheet names of it."""
    if "file" not in table.header:
        return []
    column = table.header.index("file")
    names = [Path(record.cells[column].strip()) for record in table.records if len(record.cells) > column]
    named = {(table.path.parent / name).resolve() for name in names}
    # Only folders beside the sheet: what lies at its side may be a README, or the texts of another sheet.
    inside = {name.parts[0] for name in names if len(name.parts) > 1 and name.parts[0] not in ("..", name.anchor)}
    folders = [folder] if folder is not None else [table.path.parent / name for name in sorted(inside)]
    step = "add a row for it again, or move the file away where it shall not be measured"
    return [
        Finding(table.path, None, "unlisted-file", f"no row of the sheet names the text file {path}", step)
        for each in folders
        for path in text_files(each)
        if path.resolve() not in named
    ]


def _read_sheet(path: Path, task: Task | None, *, folder: Path | None = None) -> DocumentsFile:
    table = read_sheet(path, _bytes(path))
    found = table_documents(table, task)
    entries = [NumberedDocument(row.line, row.document) for row in found.rows]
    findings = [*found.findings, *_unlabelled(path, found)]
    if not table.findings:  # of a table that could not be read to its end, nobody knows what it names
        findings += _unlisted(table, folder)
    return DocumentsFile(path, entries, findings, is_sheet=True)


def _unlabelled(path: Path, found: TableDocuments) -> list[Finding]:
    """Say once how much is still to be labelled, rather than cell by cell."""
    cells = [(row, column) for row in found.rows for column in row.unlabelled]
    if not cells:
        return []
    row, column = cells[0]
    count = f"{len(cells)} cells are" if len(cells) > 1 else "1 cell is"
    rows = len({row.line for row, _ in cells})
    message = (
        f"{count} not labelled yet, in {rows} of {len(found.rows)} documents; "
        f"first: document {row.document.id!r}, column `{column}`"
    )
    step = "fill in the cell" + (
        "" if column == "answers" else "; write null where the document does not have the value"
    )
    return [Finding(path, row.line, "unlabelled", message, step)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        fault = "no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
        next_step = "check `documents` under [workload]: the path starts at the protocol's folder"
        raise Refused([Finding(path, None, "unreadable", fault, next_step)]) from None


def _read_lines(path: Path, raw: bytes) -> DocumentsFile:
    entries: list[NumberedDocument] = []
    findings: list[Finding] = []
    for number, line in enumerate(raw.removeprefix(BYTE_ORDER_MARK).split(b"\n"), start=1):
        if not line.strip():
            continue
        document, problems = _read_line(path, number, line)
        findings += problems
        if document is not None:
            entries.append(NumberedDocument(number, document))
        if number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff")):
            break  # UTF-16: every further line would say the same
    return DocumentsFile(path, entries, findings)


class _DuplicateKey(ValueError):
    pass


class _NotFinite(ValueError):
    pass


def _read_line(path: Path, number: int, line: bytes) -> tuple[DocumentLine | None, list[Finding]]:
    def finding(rule: str, message: str, next_step: str) -> Finding:
        return Finding(path, number, rule, message, next_step)

    if fault := encoding_fault(line):
        return None, [finding("encoding", fault.message, fault.next_step)]
    try:
        value = json.loads(line, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except _DuplicateKey as error:
        return None, [finding("duplicate-key", f"the key {error} stands twice in one object", "keep one of the two")]
    except _NotFinite as error:
        return None, [finding("not-json", f"{error} is no JSON value", "write null or a number in quotes")]
    except json.JSONDecodeError as error:
        message = f"not one JSON object per line: {error.msg} at column {error.colno}"
        return None, [finding("not-json", message, "write each document as one JSON object on one line")]
    except RecursionError:
        return None, [finding("not-json", "nested too deeply", "write each document as one flat JSON object")]
    if problems := shape_problems(DocumentLine, value, whole="this line"):
        return None, [finding(problem.rule, problem.message, problem.next_step) for problem in problems]
    if "\\u" in line.decode() and not _is_encodable(value):
        message = "an escape \\ud800 to \\udfff without its other half stands for no character"
        return None, [finding("encoding", message, "write the character itself, or both halves of the escape")]
    return msgspec.convert(value, DocumentLine), []


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise _DuplicateKey(json.dumps(key, ensure_ascii=False))
        members[key] = value
    return members


def _refuse_constant(name: str) -> None:
    raise _NotFinite(name)


def _is_encodable(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
