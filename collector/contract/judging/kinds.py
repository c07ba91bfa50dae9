"""One table from a task's kind to what judges it: rules, a document and what came back in, one verdict out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..protocol import DocumentLine, FieldRule, RankingRule, TaskKind
from .answers import judge_answer
from .judge import SCORER_DIGEST, judge
from .ranking import judge_ranking
from .verdict import Given, Verdict

_VERSIONS: Mapping[TaskKind, str] = {
    "answers": "gpu-dossier judging of answers 1",
    "ranking": "gpu-dossier judging of rankings 1",
}
"""Raised with every change that can change a verdict of the kind; tests pin each version's verdicts."""

SCORER_DIGESTS: Mapping[TaskKind, str] = {
    "extraction": SCORER_DIGEST,
    **{kind: hashlib.sha256(version.encode()).hexdigest() for kind, version in _VERSIONS.items()},
}
"""Kind -> what names the judging code in its scores."""


class Rules(NamedTuple):
    """What a protocol judges by: the fields of an extraction, the measure of a ranking."""

    kind: TaskKind
    fields: list[FieldRule]
    ranking: RankingRule | None = None


def judge_document(rules: Rules, document: DocumentLine, given: Given) -> Verdict:
    """Return the verdict on what came back for one document.

    Never raises for anything a model can write; ValueError for a ranking without a rule, which `check` refuses.
    """
    return _JUDGES[rules.kind](rules, document, given)


def _extraction(rules: Rules, document: DocumentLine, given: Given) -> Verdict:
    return judge(
        fields=rules.fields, expected=document.expected, answer=given.answer, finish_reason=given.finish_reason,
        request_outcome=given.request_outcome,
    )  # fmt: skip


def _answer(rules: Rules, document: DocumentLine, given: Given) -> Verdict:
    return judge_answer(answers=document.answers, tolerance=document.tolerance, given=given)


def _ranking(rules: Rules, document: DocumentLine, given: Given) -> Verdict:
    if rules.ranking is None:
        raise ValueError("a ranking without [task.ranking] cannot be judged by its measure")
    return judge_ranking(
        rule=rules.ranking, candidates=document.candidates, relevance=document.relevance, given=given
    )  # fmt: skip


_JUDGES: Mapping[TaskKind, Callable[[Rules, DocumentLine, Given], Verdict]] = {
    "extraction": _extraction,
    "answers": _answer,
    "ranking": _ranking,
}
