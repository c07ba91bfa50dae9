"""What documents may not do: share an identifier or a text, cross roles, or expect what no answer could be."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from collector.contract.errors import Finding
from collector.contract.judging import compare, fold_label, normalise
from collector.contract.protocol import DocumentLine, FieldRule, Task
from collector.contract.records import MAX_LINE_BYTES
from collector.contract.shape import nearest, shown
from collector.documents import NumberedDocument
from collector.field_places import place_of
from collector.kind_rules import kind_findings

Entries = Sequence[NumberedDocument]
_ORDER_BYTES = MAX_LINE_BYTES - 50_000
"""Leaves room for everything else that a `pass_begin` holds."""


def document_findings(path: Path, entries: Entries, task: Task | None, *, is_sheet: bool = False) -> list[Finding]:
    """Return every finding about the documents; those about what is expected only where the task is known.

    `is_sheet`: say columns and cells.
    """
    fields = task.fields if task is not None and task.kind == "extraction" else None
    findings = [
        *_repeated_ids(path, entries),
        *_repeated_texts(path, entries, fields),
        *_too_long_an_order(path, entries),
    ]
    findings += _measured_examples(path, entries, task)
    for entry in entries:
        if not entry.document.text.strip():
            findings.append(
                Finding(path, entry.line, "empty-text", f"document {entry.document.id!r} holds blanks only",
                        "write the document's text, or remove the line")
            )  # fmt: skip
        if task is not None:
            findings += kind_findings(path, entry, task.kind, has_scorer=task.scorer is not None)
        if fields is not None:
            findings += _expected_findings(path, entry, fields, is_sheet=is_sheet)
    return findings


def content_key(text: str) -> str:
    """Return what two texts share that are the same document: NFC, blanks collapsed."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _repeated_ids(path: Path, entries: Entries) -> Iterable[Finding]:
    first: dict[str, NumberedDocument] = {}
    for entry in entries:
        document = entry.document
        earlier = first.setdefault(document.id, entry)
        if earlier is entry:
            continue
        message = f"document id {document.id!r} stands already on line {earlier.line}"
        yield Finding(path, entry.line, "duplicate-id", message, "give each document its own id")
        if earlier.document.role != document.role:
            yield _overlap(path, entry, earlier, f"document id {document.id!r}")


def _repeated_texts(path: Path, entries: Entries, fields: Sequence[FieldRule] | None) -> Iterable[Finding]:
    first: dict[str, NumberedDocument] = {}
    for entry in entries:
        document = entry.document
        key = content_key(document.text)
        earlier = first.setdefault(key, entry)
        if earlier is entry or not key:
            continue
        other = earlier.document
        if other.id != document.id:
            message = f"documents {other.id!r} (line {earlier.line}) and {document.id!r} have the same text"
            yield Finding(path, entry.line, "same-text", message, "keep one of them")
            if other.role != document.role:
                yield _overlap(path, entry, earlier, f"the text of document {document.id!r}")
        if _conflict(other, document, fields):
            before, now = shown(_wanted(other)), shown(_wanted(document))
            message = f"the same text expects {before} on line {earlier.line} and {now} here"
            yield Finding(path, entry.line, "conflicting-expected", message, "decide which is right, keep that one")


def _too_long_an_order(path: Path, entries: Entries) -> Iterable[Finding]:
    """A pass names all documents of its role in one record, and a record has its limit."""
    order_bytes: Counter[str] = Counter()
    for entry in entries:
        order_bytes[entry.document.role] += len(msgspec.json.encode(entry.document.id)) + 1
    for role, size in order_bytes.items():
        if size > _ORDER_BYTES:
            message = f"the ids of the {role} documents take {size:,} bytes; a pass can name {_ORDER_BYTES:,}"
            yield Finding(path, None, "too-many-documents", message, "use shorter ids, or several protocols")


def _measured_examples(path: Path, entries: Entries, task: Task | None) -> Iterable[Finding]:
    """A worked example gives its answer away: what is measured cannot be one."""
    examples = {content_key(example.document): number for number, example in enumerate(task.examples if task else ())}
    for entry in entries:
        number = examples.get(content_key(entry.document.text))
        if number is not None and entry.document.role != "development":
            message = (
                f"{entry.document.role} document {entry.document.id!r} is the prompt's worked example {number + 1}"
            )
            next_step = "take an example from the development documents, or write one"
            yield Finding(path, entry.line, "role-overlap", message, next_step)


def _overlap(path: Path, entry: NumberedDocument, earlier: NumberedDocument, what: str) -> Finding:
    message = f"{what} has the role {entry.document.role} here and {earlier.document.role} on line {earlier.line}"
    next_step = "give it one role: what tuned or chose a configuration cannot confirm it"
    return Finding(path, entry.line, "role-overlap", message, next_step)


def _wanted(document: DocumentLine) -> object:
    """Return what is expected of a document, whatever its kind."""
    return document.expected or document.relevance or sorted(document.answers)


def _conflict(before: DocumentLine, now: DocumentLine, fields: Sequence[FieldRule] | None) -> bool:
    left, right = before.expected, now.expected
    if fields is None:
        return _wanted(before) != _wanted(now)
    for rule in fields:
        one, other = left.get(rule.name), right.get(rule.name)
        if (one is None) != (other is None):
            return True
        if one is not None and other is not None and not compare(rule, expected=one, given=other).is_equal:
            return True
    return False


def _expected_findings(
    path: Path, entry: NumberedDocument, fields: Sequence[FieldRule], *, is_sheet: bool
) -> Iterable[Finding]:
    document = entry.document
    names = [rule.name for rule in fields]
    for name in document.expected:
        if name not in names:
            meant = nearest(name, names)
            next_step = f"did you mean {meant!r}?" if meant else f"the task's fields are {', '.join(names)}"
            message = f"document {document.id!r} expects a value for {name!r}, which is no field of the task"
            yield Finding(path, entry.line, "expected-unknown-field", message, next_step)
    for rule in fields:
        if rule.name not in document.expected:
            message = f"document {document.id!r} has no expected value for {rule.name!r}"
            yield Finding(path, entry.line, "expected-missing", message, "add it; null where the document has none")
            continue
        value = document.expected[rule.name]
        if value is None:
            continue
        place = place_of(document, rule.name, is_sheet=is_sheet)
        if not value.strip():
            message = f"{place} is empty"
            yield Finding(path, entry.line, "expected-empty", message, "write null where the document has none")
        elif normalise(rule, value) is None:
            message, next_step = _not_normalisable(rule, value)
            kind = "expected-label" if rule.type == "label" else "expected-value"
            yield Finding(path, entry.line, kind, f"{place} is {shown(value)}, which is {message}", next_step)
        elif rule.type == "date" and _reads_both_ways(rule, value):
            message = f"{place} is {shown(value)}, day or month first?"
            yield Finding(path, entry.line, "expected-ambiguous", message, "write it like '2026-04-03'")


def _reads_both_ways(rule: FieldRule, value: str) -> bool:
    """A spreadsheet may have written it the other way round: what is expected must not depend on a guess.

    With dots the day stands first everywhere.
    """
    if "." in value:
        return False
    first, second = (normalise(msgspec.structs.replace(rule, day_first=order), value) for order in (True, False))
    return first != second


def _not_normalisable(rule: FieldRule, value: str) -> tuple[str, str]:
    """Return what the value is not, and the next step."""
    if rule.type == "label":
        folded = {fold_label(label): label for label in rule.labels}
        meant = nearest(fold_label(value), list(folded))
        known = f"the labels are {', '.join(rule.labels)}"
        return "not among the labels", f"did you mean {folded[meant]!r}? {known}" if meant else known
    example = {"date": "2026-04-03", "money": "1234.56 EUR", "text": "a text"}[rule.type]
    return f"no value of type {rule.type}", f"write it like {example!r}"
