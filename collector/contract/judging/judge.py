"""Judge one extraction: is it there, is it whole, can it be read, are its required fields right?

What is told apart, in this order: failed and too long (the request never got an answer), empty (nothing, or blanks
only), truncated, unparseable, then right or wrong by content.

An answer that ran into its output limit is `truncated` where no complete object stands in it: the limit is the cause,
and outranks `unparseable`. Where a complete object does stand in it, the last complete one is judged, also where
another one was begun after it and cut off: small models go on after their answer, what follows withdraws nothing, and a
program that reads the last complete object sees the same.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence

from ..protocol import FieldRule
from ..records.requests import FinishReason, RequestOutcome, ScoreOutcome
from .normalise import compare
from .parse import parse_answer
from .verdict import Given, Verdict, unanswered, unread

SCORER_VERSION = "gpu-dossier judging 1"
"""Of extractions. Raised with every change that can change a verdict; a test pins this version's verdicts."""

SCORER_DIGEST = hashlib.sha256(SCORER_VERSION.encode()).hexdigest()
"""Names the judging code in each score: a digest of the version, so wheel, checkout and Python version agree."""


def judge(
    *,
    fields: Sequence[FieldRule],
    expected: Mapping[str, str | None],
    answer: str | None,
    finish_reason: FinishReason,
    request_outcome: RequestOutcome,
) -> Verdict:
    """Return the verdict on one answer. Never raises for anything a model can write."""
    if (outcome := unanswered(Given(answer, finish_reason, request_outcome))) is not None:
        return unread(outcome)
    parsed = parse_answer(answer or "")
    if parsed.object is not None:
        return _read(fields, expected, parsed.object, candidate_count=parsed.candidate_count)
    if finish_reason == "length":
        return unread("truncated", parsed.candidate_count)
    return unread("unparseable" if parsed.has_text else "empty", parsed.candidate_count)


def _read(
    fields: Sequence[FieldRule], expected: Mapping[str, str | None], found: dict[str, object], *, candidate_count: int
) -> Verdict:
    answered = {unicodedata.normalize("NFC", key): value for key, value in found.items()}
    right: list[str] = []
    wrong: list[str] = []
    is_accepted = is_well_formed = True
    normalisation_count = 0
    for rule in fields:
        name = unicodedata.normalize("NFC", rule.name)
        value, wanted = answered.get(name), expected.get(rule.name)
        is_right, needed_unicode = _field(rule, wanted, value)
        normalisation_count += needed_unicode
        (right if is_right else wrong).append(rule.name)
        if rule.is_required:
            is_accepted = is_accepted and is_right
            is_there = name in answered or wanted is None
            is_well_formed = is_well_formed and is_there and (value is None or isinstance(value, str))
    outcome: ScoreOutcome = "right" if is_accepted else "wrong"
    return Verdict(outcome, is_accepted, is_well_formed, right, wrong, candidate_count, normalisation_count)


def _field(rule: FieldRule, wanted: str | None, value: object) -> tuple[bool, bool]:
    """Return (is right, only Unicode normalisation made it so). Null, blank and absent are the same missing value."""
    is_missing = value is None or (isinstance(value, str) and not value.strip())
    if wanted is None or is_missing:
        return wanted is None and is_missing, False
    return compare(rule, expected=wanted, given=value) if isinstance(value, str) else (False, False)
