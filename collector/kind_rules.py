"""What a document must have for its task's kind, and may not have: answers, candidates, grades."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path

from collector.contract.errors import Finding
from collector.contract.judging import Given
from collector.contract.judging.answers import judge_answer
from collector.contract.protocol import TaskKind
from collector.contract.shape import nearest, shown
from collector.documents import NumberedDocument

_OWN: dict[TaskKind, tuple[str, ...]] = {
    "extraction": ("expected",),
    "answers": ("answers", "tolerance"),
    "ranking": ("candidates", "relevance"),
}
MIN_CANDIDATES = 2
_MAX_EXPONENT = 60
_FOR_BUILT_IN = ("no-relevant-candidate",)
_VERBATIM = Given(None, "end_token", "completed")


def kind_findings(
    path: Path, entry: NumberedDocument, kind: TaskKind, *, has_scorer: bool = False
) -> list[Finding]:  # fmt: skip
    """Return every finding about what a document of this kind has, lacks or should not have.

    What an extraction expects of its fields is not looked at here. has_scorer: the user's own code judges, and may know
    what is right without the documents file: what only the built-in rules need is not asked for.
    """
    findings = [*_foreign(path, entry, kind)]
    if has_scorer and kind == "answers":
        return findings
    if kind == "answers":
        findings += _answers(path, entry)
    elif kind == "ranking":
        findings += _ranking(path, entry)
    return [finding for finding in findings if not has_scorer or finding.rule not in _FOR_BUILT_IN]


def number_of(text: str) -> Decimal | None:
    """Return the number that an answer is, null for any other text. Decimal point; no separators of thousands."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= _MAX_EXPONENT else None


def _foreign(path: Path, entry: NumberedDocument, kind: TaskKind) -> Iterable[Finding]:
    document = entry.document
    for owner, names in _OWN.items():
        if owner == kind:
            continue
        for name in names:
            if getattr(document, name):
                message = f"document {document.id!r} has `{name}`, which is for tasks of kind {owner}, not {kind}"
                next_step = f'remove it, or write kind = "{owner}" under [task]'
                yield Finding(path, entry.line, "wrong-kind", message, next_step)


def _answers(path: Path, entry: NumberedDocument) -> Iterable[Finding]:
    document = entry.document
    if not document.answers:
        message = f"question {document.id!r} has no known answer"
        yield Finding(path, entry.line, "expected-missing", message, 'add "answers": ["..."], any of which is right')
    for answer in document.answers:
        if not answer.strip():
            message = f"question {document.id!r}: a known answer is empty"
            yield Finding(path, entry.line, "expected-empty", message, "write the answer, or remove it")
        elif document.tolerance is not None and number_of(answer) is None:
            message = f"question {document.id!r} has the tolerance {document.tolerance} and the answer {shown(answer)}"
            next_step = "write the answer as a number like 1234.5, or remove the tolerance"
            yield Finding(path, entry.line, "tolerance", f"{message}, which is no number", next_step)
        elif not _is_right_itself(answer, document.tolerance):
            message = f"question {document.id!r}: the known answer {shown(answer)} itself would not be accepted"
            next_step = "write it as one line, as a model would answer; judge with [task.scorer] what cannot be"
            yield Finding(path, entry.line, "expected-value", message, next_step)


def _is_right_itself(answer: str, tolerance: str | None) -> bool:
    return judge_answer(answers=[answer], tolerance=tolerance, given=_VERBATIM._replace(answer=answer)).is_accepted


def _ranking(path: Path, entry: NumberedDocument) -> Iterable[Finding]:
    document = entry.document
    if (count := len(document.candidates)) < MIN_CANDIDATES:
        message = f"query {document.id!r} has {count} candidate(s), so there is nothing to rank"
        yield Finding(path, entry.line, "candidates", message, 'add "candidates": {"a": "...", "b": "..."}')
    for name, text in document.candidates.items():
        if not text.strip() or not name.strip():
            message = f"query {document.id!r}: candidate {name!r} has no text or no id"
            yield Finding(path, entry.line, "candidates", message, "write it, or remove the candidate")
    for name in document.relevance:
        if name not in document.candidates:
            meant = nearest(name, list(document.candidates))
            next_step = f"did you mean {meant!r}?" if meant else f"candidates: {', '.join(document.candidates)}"
            message = f"query {document.id!r} grades {name!r}, which is none of its candidates"
            yield Finding(path, entry.line, "unknown-candidate", message, next_step)
    if not any(grade for name, grade in document.relevance.items() if name in document.candidates):
        message = f"query {document.id!r} has no relevant candidate, so every order would be as good"
        next_step = 'grade one above 0: "relevance": {"a": 2}'
        yield Finding(path, entry.line, "no-relevant-candidate", message, next_step)
