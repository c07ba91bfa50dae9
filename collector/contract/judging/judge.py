"""Judge one answer: is it there, is it whole, can it be read, are its required fields right?

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
from typing import NamedTuple

from ..protocol import FieldRule
from ..records.requests import FinishReason, RequestOutcome, ScoreOutcome
from .normalise import compare
from .parse import parse_answer

SCORER_VERSION = "gpu-dossier judging 1"
"""Raised with every change that can change a verdict; a test pins this version's verdicts."""

SCORER_DIGEST = hashlib.sha256(SCORER_VERSION.encode()).hexdigest()
"""Names the judging code in each score: a digest of the version, so wheel, checkout and Python version agree."""


class Verdict(NamedTuple):
    """One judgement. `fields_right` and `fields_wrong` are both empty where there was no object to read fields from.

    is_accepted: every required field is right (mission E1); other fields are reported and decide nothing.
    is_well_formed: format apart from content: an object was found, each required field is a key of it holding a string,
        a number or null (a field that the document does not have may be left out).
    candidate_count: JSON objects found in the answer, those in its reasoning included.
    normalisation_count: field comparisons that were equal only after Unicode normalisation.
    """

    score_outcome: ScoreOutcome
    is_accepted: bool
    is_well_formed: bool
    fields_right: list[str]
    fields_wrong: list[str]
    candidate_count: int
    normalisation_count: int


def judge(
    *,
    fields: Sequence[FieldRule],
    expected: Mapping[str, str | None],
    answer: str | None,
    finish_reason: FinishReason,
    request_outcome: RequestOutcome,
) -> Verdict:
    """Return the verdict on one answer. Never raises for anything a model can write."""
    if request_outcome == "too_long":
        return _unread("too_long")
    if request_outcome == "failed" or finish_reason in ("error", "timeout", "not_started"):
        return _unread("failed")
    if answer is None or not answer.strip():
        return _unread("empty")
    parsed = parse_answer(answer)
    if parsed.object is not None:
        return _read(fields, expected, parsed.object, candidate_count=parsed.candidate_count)
    if finish_reason == "length":
        return _unread("truncated", parsed.candidate_count)
    return _unread("unparseable" if parsed.has_text else "empty", parsed.candidate_count)


def _unread(outcome: ScoreOutcome, candidate_count: int = 0) -> Verdict:
    return Verdict(outcome, False, False, [], [], candidate_count, 0)


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
