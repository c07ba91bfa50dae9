"""What an engine is: loads one variant, says what it loaded, answers prompts one after the other or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from collector.clock import Clock
from collector.contract.protocol import EngineChoice, Generation, Limits, Model, VariantChoice
from collector.contract.records import AnyRecord, TensorGroup, Variant
from collector.contract.records.base import FailureCause, ObservedAt, Phase
from collector.contract.records.passes import LoopKind, PaddingSide, PadTokenSource
from collector.contract.records.requests import FinishReason, GapUnit, PromptEvidence, RequestOutcome, TokenCountSource

RELOAD = "~reload"
"""After the label of a pass: the check that loads its artefact again."""


class EngineSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine needs to load one variant; plain values, so that it travels to the worker."""

    base_dir: str
    """Folder of the protocol: relative model paths and scripts start here."""
    model: Model
    engine: EngineChoice
    variant: VariantChoice
    generation: Generation
    limits: Limits
    device: str
    """The one in use, never `auto`: `cpu`, `cuda:0` ..."""
    pass_label: str
    """`<variant>[~b<batch>|~c<concurrency>|~r<rate>]/<repetition>/<attempt>`: what the scripted engine's script
    addresses; a reload check adds RELOAD."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are put to the engine: in batches, so many at a time, or at a rate. One of the three grows.

    batch: rows of a static batch. concurrency: requests submitted at a time in a closed loop; in an open loop the most
    that may be under way. rate_per_s: arrivals per second, null in a closed loop.
    """

    batch: int = 1
    concurrency: int = 1
    rate_per_s: float | None = None
    arrivals: LoopKind = "closed"
    seed: int = 0


ONE_AT_A_TIME = Load()


class ExampleTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example: what a user would have sent, and the answer."""

    user: str
    answer: str


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to send: the rendered task prompt of one document, after the turns of the worked examples."""

    document_id: str
    system: str
    user: str
    examples: list[ExampleTurn] = []
    candidates: dict[str, str] = {}
    """Of a ranking: id -> text, for an engine that embeds them; one that generates has them in `user` already."""


class EncodedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as it is really sent: rendered through the chat template once, and its token ids.

    part_token_counts: where several texts are embedded, each by itself, the tokens of each: the query first, then the
    candidates of `candidate_ids`; `token_ids` holds them one after the other.
    """

    document_id: str
    rendered: str
    token_ids: list[int]
    start_token_count: int
    part_token_counts: list[int] = []
    candidate_ids: list[str] = []


class TextLength(NamedTuple):
    """A text that the model sees at once, in words, and its tokens."""

    name: str
    tokens: int


def longest_text(prompt: EncodedPrompt) -> TextLength:
    """Return the longest text that the model sees at once: the prompt, or one of a ranking that is embedded."""
    if not prompt.part_token_counts:
        return TextLength("the prompt", len(prompt.token_ids))
    names = ["the query", *(f"candidate {name!r}" for name in prompt.candidate_ids)]
    lengths = (TextLength(name, count) for name, count in zip(names, prompt.part_token_counts, strict=True))
    return max(lengths, key=lambda each: each.tokens)


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """What a request engine adds to an answer. Stamps as in Answer; durations of the engine by the engine's clock.

    prompt_tokens: the server's count, null where it told none. chunk_stamps_ns and chunk_tokens: one per event with
    content, kept only for the steps file; tokens are empty where the server does not count per chunk.
    """

    connection_wait_ns: int | None = None
    headers_ns: int | None = None
    first_chunk_ns: int | None = None
    first_answer_ns: int | None = None
    chunk_count: int | None = None
    http_status: int | None = None
    prompt_tokens: int | None = None
    nonce_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    engine_queue_ns: int | None = None
    engine_prefill_ns: int | None = None
    engine_decode_ns: int | None = None
    prompt_evidence: PromptEvidence = "rendered"
    prompt_token_ids: list[int] | None = None
    """What the server's own tokenizer made of the prompt, where that differs from the ids of `prompt`."""
    reasoning_text: str | None = None
    chunk_stamps_ns: list[int] = []
    chunk_tokens: list[int] = []


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answered (or failed) request. Stamps are absolute nanoseconds of the worker's monotonic clock.

    `gaps_ns` are the gaps between consecutive token stamps; the worker buckets them. `batch_number` counts the batches
    of one call of `answers`. `token_ids` is what was generated, for comparing answers (of a ranking by embedding the
    places of the candidates, best first); it is not recorded.
    """

    prompt: EncodedPrompt
    batch_row: int = 0
    batch_number: int = 0
    padding_tokens: int | None = None
    intended_ns: int
    sent_ns: int | None = None
    first_token_ns: int | None = None
    last_token_ns: int | None = None
    done_ns: int | None = None
    output_tokens: int | None = None
    token_count_source: TokenCountSource
    finish_reason: FinishReason
    request_outcome: RequestOutcome
    failure_cause: FailureCause | None = None
    failure_message: str | None = None
    exception_class: str | None = None
    gaps_ns: list[int] = []
    gap_unit: GapUnit = "token"
    step_stamps_ns: list[int] = []
    """When each token was known, of an engine in process; kept only for the steps file."""
    step_live_rows: list[int] = []
    """Requests that generated in each of these steps, where the engine knows; empty for one at a time."""
    is_final: bool = True
    """False for a try that another one follows; its document comes again."""
    wire: Wire | None = None
    """Of a request engine alone."""
    text: str | None = None
    token_ids: list[int] = []


class Padding(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine makes the rows of a batch equally long."""

    side: PaddingSide
    source: PadTokenSource


class Engine(Protocol):
    """One engine in one worker process; one variant per process."""

    def load(self) -> None:
        """Load the variant. Raises the library's own error; the worker classifies it."""
        ...

    def observe(self, observed_at: ObservedAt) -> tuple[Variant, list[TensorGroup]]:
        """Return what is really loaded; variant_id and pass_id are left empty and filled by the worker."""
        ...

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """Return the prompts as they will be sent: template applied once, start token once."""
        ...

    def answers(
        self, prompts: Sequence[EncodedPrompt], phase: Phase, load: Load = ONE_AT_A_TIME
    ) -> Iterator[Answer]:  # fmt: skip
        """Yield one final answer per prompt, in order of completion, and any try before it.

        A failed request is an Answer, not an exception. Which prompts of a batch go together is the engine's to say in
        its flags.
        """
        ...

    def records(self) -> list[AnyRecord]:
        """Return what the engine itself has to record since the last call; pass_id is filled by the worker."""
        ...

    def close(self) -> None:
        """Give back what was started; called once, also after a failure. An engine in process has nothing to do."""
        ...

    def padding(self) -> Padding:
        """Return how batches are padded. Raises DossierError where the model has no token to pad with."""
        ...


class EngineIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Requested and stable facts of an engine, known before a worker starts: what engine_id is a digest of."""

    engine_name: str
    engine_version: str | None
    """Null for a server: it says its own when it is asked."""
    engine_flags: dict[str, str]


class EngineModule(Protocol):
    """What an engine's module offers to the table in `engines/__init__.py`."""

    def identity(self, setup: EngineSetup) -> EngineIdentity:
        """Return name, version and flags without loading anything."""
        ...

    def create(self, setup: EngineSetup, clock: Clock) -> Engine:
        """Return the engine, nothing loaded yet. Raises MissingDependency with the exact install command."""
        ...

    def encoder(self, setup: EngineSetup) -> PromptEncoder:
        """Return tokenizer and context limit alone, for `check`: no weights are read."""
        ...


class PromptEncoder(Protocol):
    """Counts the tokens of prompts before anything is measured."""

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]: ...

    def context_limit_tokens(self) -> int | None:
        """Return the model's context, or null where it is not known."""
        ...

    def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has when the model writes it: no special ones, no template."""
        ...
