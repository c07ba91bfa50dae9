"""Records about a request and what was judged of its answer."""

from __future__ import annotations

from typing import Literal

from .base import Count, FailureCause, Hmac, Label, Nanoseconds, OffsetNs, Phase, Record, Sha256, ShortId

RequestOutcome = Literal["completed", "too_long", "failed"]
FinishReason = Literal["end_token", "length", "stop_text", "embedded", "error", "timeout", "not_started"]
"""embedded: the answer is an order of candidates by their vectors; no token was generated."""
TokenCountSource = Literal["engine", "usage", "continuous_usage", "token_ids", "retokenized", "scripted"]
ScoreOutcome = Literal["right", "wrong", "unparseable", "truncated", "too_long", "empty", "failed"]

GAP_BUCKET_BOUNDS_NS: tuple[int, ...] = tuple(round(10_000 * 10 ** (i / 10)) for i in range(71))
"""Upper bounds of the gap buckets: 10 us to 100 s, ten per decade; one more bucket holds the longer ones."""


class Request(Record, frozen=True, kw_only=True, tag="request"):
    """One try of one document. Key: run_id, pass_id, document_id, turn, try_index, phase.

    Stamps are nanoseconds since the pass began by the clock of the process that sends the request; a stamp that did
    not happen is null. `intended_ns` is when the plan wanted it sent, which is what open-loop latency counts from.
    """

    pass_id: ShortId
    phase: Phase
    """`warmup` requests are kept and never counted."""
    document_id: Label
    turn: Count = 0
    try_index: Count = 0
    is_final: bool
    batch_row: Count = 0
    """Row within its batch; 0 where requests run one at a time."""
    batch_number: Count = 0
    """Which batch of its phase, counted from 0 in the order of sending; 0 where requests run one at a time."""
    padding_tokens: Count | None = None
    """Tokens added so that the rows of a batch have one length; none of them is in prompt_tokens."""
    intended_ns: OffsetNs
    sent_ns: OffsetNs | None = None
    first_chunk_ns: OffsetNs | None = None
    first_token_ns: OffsetNs | None = None
    last_token_ns: OffsetNs | None = None
    done_ns: OffsetNs | None = None
    prompt_tokens: Count | None = None
    """Tokens really transmitted, template and history included; of a ranking by embedding those of all its texts."""
    output_tokens: Count | None = None
    """Generated tokens, the end token included where one was generated."""
    reasoning_tokens: Count | None = None
    cached_tokens: Count | None = None
    token_count_source: TokenCountSource
    finish_reason: FinishReason
    request_outcome: RequestOutcome
    failure_cause: FailureCause | None = None
    gap_counts: list[Count] = []
    """Gaps between consecutive tokens, counted in the buckets of GAP_BUCKET_BOUNDS_NS; empty below two tokens."""
    gap_max_ns: Nanoseconds | None = None
    prompt_hmac: Hmac | None = None
    """HMAC of the rendered prompt, template included."""
    prompt_token_hmac: Hmac | None = None
    """HMAC of the prompt's token ids as comma-separated decimals: equal across engines that send the same tokens."""
    start_token_count: Count | None = None
    """Start tokens at the head of the prompt."""
    answer_hmac: Hmac | None = None


class Score(Record, frozen=True, kw_only=True, tag="score"):
    """One judgement of one request."""

    pass_id: ShortId
    document_id: Label
    turn: Count = 0
    try_index: Count = 0
    rule_digest: Sha256
    """Digest of the fields and rules judged by."""
    scorer_digest: Sha256
    """Digest of the judging code's version or of a user's scorer."""
    score_outcome: ScoreOutcome
    is_accepted: bool
    is_well_formed: bool
    """Format apart from content. extraction: one JSON object with the required fields was found; answers: an answer
    could be told; ranking: the order names candidates only, each once; a user's scorer: what it says is readable."""
    fields_right: list[str]
    fields_wrong: list[str]
    candidate_count: Count = 0
    """JSON objects, marked answers, numbers, lines or orders that could have been the answer; the last was judged."""
    normalisation_count: Count = 0
    """Comparisons that were equal only after Unicode normalisation."""
    graded_value: float | None = None
    """A judgement by degrees, 0 to 1: nDCG@k, reciprocal rank, recall@k, a user scorer's value; null for yes or no."""
