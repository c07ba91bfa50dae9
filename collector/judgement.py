"""How a run's answers are judged: by the rules of the kind at once, or by the user's scorer when a pass is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from collector.contract.judging import SCORER_DIGESTS, Given, Rules, Verdict, judge_document
from collector.contract.protocol import DocumentLine, Lock, rule_digest
from collector.contract.records import Request, Score
from collector.freeze import FrozenProtocol
from collector.missing import explained


class Judging(NamedTuple):
    """What answers are judged by. documents: id -> what is expected of it."""

    rules: Rules
    documents: Mapping[str, DocumentLine]
    rule_digest: str
    scorer_digest: str


def judging_of(frozen: FrozenProtocol) -> Judging:
    """Return what a frozen protocol judges by."""
    trial = frozen.lock.trial
    return Judging(
        rules=Rules(trial.task_kind, trial.fields, trial.ranking),
        documents={document.id: document for document in frozen.documents},
        rule_digest=rule_digest(trial),
        scorer_digest=scorer_digest_of(frozen.lock),
    )


def scorer_digest_of(lock: Lock) -> str:
    """Return what names the judging code of a lock's scores: the user's files, else this version's own for the kind."""
    trial = lock.trial
    return trial.scorer.files_sha256 if trial.scorer is not None else SCORER_DIGESTS[trial.task_kind]


def built_in_verdict(judging: Judging, request: Request, answer: str | None) -> Verdict:
    """Return the verdict of the kind's own rules on one request."""
    given = Given(answer, request.finish_reason, request.request_outcome)
    return judge_document(judging.rules, judging.documents[request.document_id], given)


def score_record(judging: Judging, request: Request, verdict: Verdict) -> Score:
    """Return the record of a verdict. A kind judged by yes and no has no value by degrees."""
    score = Score(
        pass_id=request.pass_id, document_id=request.document_id, turn=request.turn, try_index=request.try_index,
        rule_digest=judging.rule_digest, scorer_digest=judging.scorer_digest, **verdict._asdict(),
    )  # fmt: skip
    return explained(score, {"graded_value": "failed" if judging.rules.kind == "ranking" else "not_applicable"})
