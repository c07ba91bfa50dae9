"""Records about a request and what was judged of its answer."""

from __future__ import annotations

from typing import Literal

from .base import Count, FailureCause, Hmac, Label, Nanoseconds, OffsetNs, Phase, Record, Sha256, ShortId

RequestOutcome = Literal["completed", "too_long", "empty", "failed"]
"""empty: the server ended its answer well and had generated nothing: no time of a token exists."""
FinishReason = Literal["end_token", "length", "stop_text", "embedded", "error", "timeout", "not_started"]
"""embedded: the answer is an order of candidates by their vectors; no token was generated."""
TokenCountSource = Literal["engine", "usage", "continuous_usage", "token_ids", "retokenized", "scripted", "none"]
"""retokenized: the client's own estimate from the text, never pooled with the others; none: nobody counted."""
GapUnit = Literal["token", "chunk"]
PromptEvidence = Literal["token_ids", "server_tokenizer", "count", "rendered", "differs"]
"""How it is known which tokens the model saw. token_ids: these were sent or run; server_tokenizer: the server turned
the same request into the same ids; count: its number of prompt tokens agrees; rendered: nothing confirms what was
rendered here; differs: the server's tokens are others."""
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
    connection_wait_ns: Nanoseconds | None = None
    """Of a request engine: from being due to having a connection; before `sent_ns`, 0 where one was open."""
    headers_ns: OffsetNs | None = None
    first_chunk_ns: OffsetNs | None = None
    """First event of the stream, whatever it carries."""
    first_token_ns: OffsetNs | None = None
    """First generated content of any channel: answer, thinking or tool call."""
    first_answer_ns: OffsetNs | None = None
    """First content of the answer, where the stream has a channel for thinking as well."""
    last_token_ns: OffsetNs | None = None
    done_ns: OffsetNs | None = None
    chunk_count: Count | None = None
    """Events with generated content; a chunk is not a token."""
    prompt_tokens: Count | None = None
    """Tokens really transmitted, template and history included; of a ranking by embedding those of all its texts."""
    local_prompt_tokens: Count | None = None
    """The collector's own count of the prompt that it sent, beside a server's `prompt_tokens`."""
    nonce_tokens: Count | None = None
    """Tokens in front of the prompt that make it unlike any before; they are among prompt_tokens."""
    output_tokens: Count | None = None
    """Generated tokens, the end token included where one was generated."""
    reasoning_tokens: Count | None = None
    cached_tokens: Count | None = None
    token_count_source: TokenCountSource
    finish_reason: FinishReason
    request_outcome: RequestOutcome
    failure_cause: FailureCause | None = None
    http_status: Count | None = None
    engine_queue_ns: Nanoseconds | None = None
    """This and the next two: the engine's own clock, by its own boundaries, as its kind defines them; nothing may be
    subtracted from the client's stamps."""
    engine_prefill_ns: Nanoseconds | None = None
    engine_decode_ns: Nanoseconds | None = None
    gap_unit: GapUnit = "token"
    gap_counts: list[Count] = []
    """Gaps between consecutive tokens (or chunks, by `gap_unit`), counted in the buckets of GAP_BUCKET_BOUNDS_NS; empty
    below two."""
    gap_max_ns: Nanoseconds | None = None
    steps_sha256: Sha256 | None = None
    """Digest of this request's line in the steps file; null where chunks were not captured."""
    prompt_hmac: Hmac | None = None
    """HMAC of the rendered prompt, template included."""
    prompt_token_hmac: Hmac | None = None
    """HMAC of the prompt's token ids as comma-separated decimals: equal across engines that send the same tokens."""
    prompt_evidence: PromptEvidence = "token_ids"
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
