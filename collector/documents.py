"""The documents: JSON-lines in strict UTF-8, each problem with its line; and the prompt made of one document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from collector.contract.errors import Finding, Refused
from collector.contract.protocol import DocumentLine, Task
from collector.contract.shape import shape_problems
from collector.contract.toml_lines import encoding_fault
from collector.engines.base import Prompt

PLACEHOLDER = "{document}"


class NumberedDocument(NamedTuple):
    """A document and the line it stands on, counted from 1."""

    line: int
    document: DocumentLine


class DocumentsFile(NamedTuple):
    """What a documents file holds: the lines that are documents, and a finding for each that is not."""

    path: Path
    entries: list[NumberedDocument]
    findings: list[Finding]


def render_prompt(task: Task, document: DocumentLine) -> Prompt:
    """Return the task's prompt with the document in place of `{document}`; nothing else in it is interpreted."""
    before, _, after = task.prompt.partition(PLACEHOLDER)
    return Prompt(document_id=document.id, system=task.system, user=f"{before}{document.text}{after}")


def read_documents(path: Path) -> DocumentsFile:
    """Return every line of a documents file, the good ones as documents and the others as findings.

    Blank lines are passed over. Raises Refused only where the file cannot be opened.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        fault = "no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
        next_step = "check `documents` under [workload]: the path starts at the protocol's folder"
        raise Refused([Finding(path, None, "unreadable", fault, next_step)]) from None
    entries: list[NumberedDocument] = []
    findings: list[Finding] = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
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
