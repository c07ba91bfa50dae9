"""How a run's answers are judged: by the rules of the kind at once, or by the user's scorer when a pass is over."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import NamedTuple

from collector.contract.errors import DossierError
from collector.contract.judging import SCORER_DIGESTS, Given, Rules, Verdict, judge_document
from collector.contract.protocol import DocumentLine, Lock, rule_digest
from collector.contract.records import Request, Score
from collector.freeze import FrozenProtocol
from collector.missing import explained
from collector.scorers import UserScorer


class Judging(NamedTuple):
    """What answers are judged by. documents: id -> what is expected of it."""

    rules: Rules
    documents: Mapping[str, DocumentLine]
    rule_digest: str
    scorer_digest: str
    scorer: UserScorer | None = None
    """Judges a whole pass once it is over; null where the kind's own rules judge each answer as it comes."""


def judging_of(frozen: FrozenProtocol) -> Judging:
    """Return what a frozen protocol judges by; whether its scorer may be called is `require_allowed`'s business."""
    trial = frozen.lock.trial
    return Judging(
        rules=Rules(trial.task_kind, trial.fields, trial.ranking),
        documents={document.id: document for document in frozen.documents},
        rule_digest=rule_digest(trial),
        scorer_digest=scorer_digest_of(frozen.lock),
        scorer=_user_scorer(frozen),
    )


def _user_scorer(frozen: FrozenProtocol) -> UserScorer | None:
    scorer, locked = frozen.protocol.task.scorer, frozen.lock.trial.scorer
    if scorer is None or locked is None:
        return None
    return UserScorer(scorer, files_sha256=locked.files_sha256, base_dir=frozen.base_dir.resolve())


def require_allowed(frozen: FrozenProtocol, *, allow_commands: bool) -> None:
    """Raise DossierError where the protocol names code to run that was not allowed on the command line.

    A Python entry point is code like any command: whoever runs a protocol from elsewhere shall have read it.
    """
    scorer = frozen.protocol.task.scorer
    if scorer is None or allow_commands:
        return
    what = f"the function {scorer.entry_point}" if scorer.entry_point else f"the command {shlex.join(scorer.command)}"
    raise DossierError(
        f"answers are judged by {what} of the protocol's folder ({', '.join(scorer.files)}), which runs only where it "
        "is allowed; nothing was run",
        next_step="read these files, then give --allow-commands",
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
