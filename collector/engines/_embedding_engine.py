"""The transformers engine's second task: candidates ranked by embedding, one document at a time or several together.

A document's texts (query and candidates) always share one forward pass; a batch of n puts the texts of n documents into
one, neighbours in tokens together. `intended` is when the engine turned to the batch, `sent` is equal for its
documents, and `done` of each is after its own order was written down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collector.clock import Clock
from collector.contract.errors import DossierError
from collector.contract.records import AnyRecord, TensorGroup, Variant
from collector.contract.records.base import ObservedAt, Phase
from collector.worker_faults import cause_of

from ._answering import ends_the_pass
from ._artefact import Artefact
from ._batching import PadToken, batches_by_length, pad_token
from ._embedding import Embedded, Embedder, TextsEncoder, best_first, order_text
from ._loading import load_model, tokenizer_of
from ._observe import Loaded, observe
from .base import (
    ONE_AT_A_TIME,
    Answer,
    EncodedPrompt,
    EngineSetup,
    Load,
    Padding,
    Prompt,
    longest_text,
)


class EmbeddingEngine:
    """One variant in one process. `load` first; then `observe`, `encode` and `answers`."""

    def __init__(self, setup: EngineSetup, artefact: Artefact, clock: Clock) -> None:
        self._setup = setup
        self._artefact = artefact
        self._clock = clock
        self._limit_ns = round(setup.limits.request_s * 1e9)
        self._parts: tuple[Loaded, Embedder] | None = None
        self._observed: Variant | None = None

    def load(self) -> None:
        """Load tokenizer and weights, without the layer that generates.

        Raises DeviceFault for a device that torch does not see, DossierError for a model without a token to pad with,
        and whatever the library raises.
        """
        model = load_model(self._setup, self._artefact, "AutoModel")
        encoder = TextsEncoder(*tokenizer_of(self._artefact))
        loaded = Loaded(self._setup, self._artefact, model, encoder, self._setup.device)
        pad = self._pad_of(loaded)
        self._parts = loaded, Embedder(model, pad, device=self._setup.device, clock=self._clock)

    def observe(self, observed_at: ObservedAt) -> tuple[Variant, list[TensorGroup]]:
        """Return what is really loaded. Raises NotAsRequested where no weight is stored as the variant asks."""
        variant, groups = observe(self._loaded()[0], observed_at, earlier=self._observed)
        self._observed = variant
        return variant, groups

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """Return query and candidates as token ids, each text by itself. Tokenizing is in no request's time."""
        return self._loaded()[0].encoder.encode(prompts)

    def answers(
        self, prompts: Sequence[EncodedPrompt], phase: Phase, load: Load = ONE_AT_A_TIME
    ) -> Iterator[Answer]:  # fmt: skip
        """Yield one order of candidates per document, a batch at a time.

        Documents with a text that does not fit join no batch. Memory and device faults are raised: they end the pass;
        any other fault fails every document of its batch.
        """
        fitting: list[EncodedPrompt] = []
        for prompt in prompts:
            refused = self._too_long(prompt)
            if refused is None and load.batch == 1:
                yield from self._together([prompt], 0, phase)
            elif refused is None:
                fitting.append(prompt)
            else:
                yield refused
        for number, rows in enumerate(batches_by_length(fitting, load.batch)):
            yield from self._together(rows, number, phase)

    def records(self) -> list[AnyRecord]:
        return []

    def close(self) -> None:
        """Nothing to give back: the process ends."""

    def padding(self) -> Padding:
        """Return that texts are padded on the right, and with which token."""
        return Padding(side="right", source=self._pad_of(self._loaded()[0]).source)

    def _together(self, prompts: Sequence[EncodedPrompt], number: int, phase: Phase) -> Iterator[Answer]:
        intended_ns = self._clock.monotonic_ns()
        try:
            embedded = self._loaded()[1].cosines(prompts)
        except Exception as fault:
            cause = cause_of(fault, phase)
            if ends_the_pass(fault, cause):
                raise
            failed = [
                Answer(
                    prompt=prompt, batch_row=row, batch_number=number, intended_ns=intended_ns, sent_ns=intended_ns,
                    done_ns=self._clock.monotonic_ns(), token_count_source="token_ids", finish_reason="error",
                    request_outcome="failed", failure_cause=cause, failure_message=str(fault),
                    exception_class=type(fault).__name__,
                )
                for row, prompt in enumerate(prompts)
            ]  # fmt: skip
        else:
            failed = []
        if failed:
            yield from failed
            return
        for row in range(len(prompts)):
            yield self._answered(prompts[row], embedded, intended_ns, row=row, number=number)

    def _answered(
        self, prompt: EncodedPrompt, embedded: Embedded, intended_ns: int, *, row: int, number: int
    ) -> Answer:
        """Return the order of one document. Padding is counted alone too: its texts are rows of one forward pass."""
        places = best_first(prompt, embedded.cosines[row])
        is_late = embedded.scored_ns - embedded.sent_ns > self._limit_ns
        text = order_text(prompt, places)
        return Answer(
            prompt=prompt, batch_row=row, batch_number=number, padding_tokens=embedded.padding_tokens[row],
            intended_ns=intended_ns, sent_ns=embedded.sent_ns, done_ns=self._clock.monotonic_ns(),
            token_count_source="token_ids", finish_reason="timeout" if is_late else "embedded",
            request_outcome="failed" if is_late else "completed", failure_cause="timeout" if is_late else None,
            failure_message=f"no complete answer within {self._setup.limits.request_s} s" if is_late else None,
            text=None if is_late else text, token_ids=[] if is_late else places,
        )  # fmt: skip

    def _too_long(self, prompt: EncodedPrompt) -> Answer | None:
        limit = self._setup.generation.context_limit(self._loaded()[0].encoder.context_limit_tokens())
        name, tokens = longest_text(prompt)
        if limit is None or tokens <= limit:
            return None
        return Answer(
            prompt=prompt, intended_ns=self._clock.monotonic_ns(), token_count_source="token_ids",
            finish_reason="not_started", request_outcome="too_long", failure_cause="too_long",
            failure_message=f"{name} has {tokens} tokens, which exceed the {limit} that the model embeds at once",
        )  # fmt: skip

    def _pad_of(self, loaded: Loaded) -> PadToken:
        eos = getattr(loaded.model.config, "eos_token_id", None)
        end_ids = [] if eos is None else [eos] if isinstance(eos, int) else list(eos)
        return pad_token(loaded.encoder.tokenizer, end_ids, model=self._setup.model.portable_id)

    def _loaded(self) -> tuple[Loaded, Embedder]:
        if self._parts is None:
            raise DossierError("nothing is loaded yet", next_step="call load() before anything else")
        return self._parts
