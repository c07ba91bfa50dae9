"""The labelling sheet of a folder of texts: one row a file, filled in as far as can be known without reading it.

Roles come from a digest of the file's name, so that a file added later changes no other one's role.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from collector.contract.errors import Finding, Refused
from collector.contract.protocol import Task
from collector.contract.records.base import LengthClass, Role
from collector.csv_table import BYTE_ORDER_MARK, Table, decoded
from collector.documents import text_files
from collector.documents_table import EXPECTED

DEVELOPMENT_SHARE = 0.10
VALIDATION_SHARE = 0.30
COLUMNS = ("id", "role", "file", "length_class", "is_hard", "subsets", "cluster", "language")


class TextFile(NamedTuple):
    """A text file of a folder: its path, its name from the folder, and the length of its text in characters."""

    path: Path
    name: str
    characters: int


def read_texts(folder: Path) -> list[TextFile]:
    """Return the .txt and .md files of a folder and the folders in it.

    Raises Refused where there is none, and with one finding for each that is no UTF-8 text or blank.
    """
    texts: list[TextFile] = []
    findings: list[Finding] = []
    for path in text_files(folder):
        text = decoded(path, path.read_bytes())
        if isinstance(text, Finding):
            findings.append(text)
        elif not text.strip():
            findings.append(Finding(path, None, "empty-text", "the file holds blanks only", "remove it"))
        else:
            texts.append(TextFile(path, path.relative_to(folder).as_posix(), len(text)))
    if findings:
        raise Refused(findings)
    if not texts:
        message = "the folder has no .txt or .md file"
        raise Refused([Finding(folder, None, "no-texts", message, "write each document into a text file of its own")])
    return texts


def proposed_roles(names: Sequence[str]) -> dict[str, Role]:
    """Return a role for each name: about 10 percent development, 30 percent validation, the others test.

    Where chance gives nobody to validation, the name that came nearest to it is given.
    """
    places = {name: int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64 for name in names}
    roles: dict[str, Role] = {name: _role(place) for name, place in places.items()}
    if roles and "validation" not in roles.values():
        nearest = min(places, key=lambda name: abs(places[name] - DEVELOPMENT_SHARE - VALIDATION_SHARE / 2))
        roles[nearest] = "validation"
    return roles


def _role(place: float) -> Role:
    if place < DEVELOPMENT_SHARE:
        return "development"
    return "validation" if place < DEVELOPMENT_SHARE + VALIDATION_SHARE else "test"


def length_classes(texts: Sequence[TextFile]) -> dict[str, LengthClass]:
    """Return short, usual or long for each text, by thirds of length; equal lengths are of one class."""
    lengths = sorted(text.characters for text in texts)
    first, second = lengths[len(lengths) // 3], lengths[2 * len(lengths) // 3]

    def of(characters: int) -> LengthClass:
        if characters < first:
            return "short"
        return "long" if characters >= second > first else "usual"

    return {text.name: of(text.characters) for text in texts}


def label_columns(task: Task) -> list[str]:
    """Return the columns that a person fills in."""
    if task.kind == "answers":
        return ["answers", "tolerance"]
    return [EXPECTED + rule.name for rule in task.fields]


def sheet_bytes(texts: Sequence[TextFile], task: Task, *, folder: str) -> bytes:
    """Return the sheet, labels empty, file names starting at `folder`; with a mark, so that spreadsheets see UTF-8."""
    labels = label_columns(task)
    roles, lengths = proposed_roles([text.name for text in texts]), length_classes(texts)
    rows = [
        [
            text.name,
            roles[text.name],
            f"{folder}/{text.name}",
            lengths[text.name],
            "false",
            "",
            "",
            "",
            *("" for _ in labels),
        ]
        for text in texts
    ]
    return table_bytes([[*COLUMNS, *labels], *rows])


def table_bytes(rows: Sequence[Sequence[str]]) -> bytes:
    """Return rows as CSV with commas, in UTF-8 with a byte-order mark."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return BYTE_ORDER_MARK + stream.getvalue().encode()


def with_files_in(table: Table, folder: str) -> tuple[bytes, dict[str, Path]]:
    """Return the table with its text files in `folder`, and which file each new name stands for.

    Raises Refused for a record whose file is absent, or two files that would be given one name.
    """
    column = table.header.index("file")
    files: dict[str, Path] = {}
    findings: list[Finding] = []
    rows = [table.header]
    for record in table.records:
        cells = list(record.cells)
        name = cells[column].strip() if len(cells) > column else ""
        if name:
            source = table.path.parent / name
            inside = ".." not in Path(name).parts and not Path(name).is_absolute()
            target = f"{folder}/{Path(name).as_posix().removeprefix(f'{folder}/') if inside else Path(name).name}"
            if not source.is_file():
                message = f"column `file`: {name!r} does not exist"
                step = f"the path starts at the folder of {table.path.name}"
                findings.append(Finding(table.path, record.line, "text-file", message, step))
            elif files.setdefault(target, source).resolve() != source.resolve():
                message = f"column `file`: {name!r} and {str(files[target])!r} would both become {target!r}"
                findings.append(Finding(table.path, record.line, "text-file", message, "rename one of them"))
            cells[column] = target
        rows.append(cells)
    if findings:
        raise Refused(findings)
    return table_bytes(rows), files
