"""What a judgement says, and what every kind of task tells apart before it reads an answer."""

from __future__ import annotations

from typing import NamedTuple

from ..records.requests import FinishReason, RequestOutcome, ScoreOutcome


class Verdict(NamedTuple):
    """One judgement. `fields_right` and `fields_wrong` are both empty where there was no object to read fields from.

    is_accepted: of an extraction, every required field is right (mission E1; other fields are reported and decide
        nothing); of a question, the answer is a known one; of a ranking, its value reaches the protocol's threshold.
    is_well_formed: format apart from content. Of an extraction: an object was found, each required field is a key of it
        holding a string, a number or null (a field that the document does not have may be left out). Of a question: an
        answer could be told. Of a ranking: the order names only the document's candidates, each once.
    candidate_count: what could have been taken for the answer: JSON objects, marked answers, numbers, lines or orders,
        those in the reasoning included where they are marked as an answer is.
    normalisation_count: comparisons that were equal only after Unicode normalisation.
    graded_value: 0 to 1 where the kind is judged by degrees, else null.
    """

    score_outcome: ScoreOutcome
    is_accepted: bool
    is_well_formed: bool
    fields_right: list[str]
    fields_wrong: list[str]
    candidate_count: int
    normalisation_count: int
    graded_value: float | None = None


class Given(NamedTuple):
    """What came back for one document."""

    answer: str | None
    finish_reason: FinishReason
    request_outcome: RequestOutcome

    @property
    def is_cut(self) -> bool:
        """The answer ran into its output limit, so its end is missing."""
        return self.finish_reason == "length"


def unanswered(given: Given) -> ScoreOutcome | None:
    """Return the outcome of a request without anything to read: too_long, failed or empty; null where there is."""
    if given.request_outcome == "too_long":
        return "too_long"
    if given.request_outcome == "failed" or given.finish_reason in ("error", "timeout", "not_started"):
        return "failed"
    if given.answer is None or not given.answer.strip():
        return "empty"
    return None


def unread(outcome: ScoreOutcome, candidate_count: int = 0) -> Verdict:
    """Return the verdict on an answer in which nothing could be judged. By degrees it has no value: null, not zero."""
    return Verdict(outcome, False, False, [], [], candidate_count, 0)
