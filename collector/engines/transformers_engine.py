"""The in-process engine: any Hugging Face id, local folder or GGUF file, one request at a time or in static batches.

It has two tasks: answering by generation, and ranking candidates by embedding (`_embedding_engine`). CUDA and processor
run the same code; only the device differs. HF_HUB_OFFLINE is respected by the library itself. torch and transformers
are imported when something is loaded, never before.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence

from collector.clock import Clock
from collector.contract.errors import DossierError
from collector.contract.records import AnyRecord, TensorGroup, Variant
from collector.contract.records.base import ObservedAt, Phase

from ._answering import Answering
from ._artefact import Artefact, find_artefact
from ._batching import BATCHING, PadToken, pad_token
from ._closed_loop import ClosedLoop
from ._continuous import BlockPool, pool_flags, with_pool
from ._decode import GreedyDecoder
from ._embedding import EMBEDDING, TextsEncoder
from ._embedding_engine import EmbeddingEngine
from ._hub import at_hand
from ._loading import NEEDED, load_model, require_engine_packages, tokenizer_of
from ._observe import Loaded, observe
from ._prompting import TemplateEncoder
from ._quantize import identity_flags
from .base import ONE_AT_A_TIME, Answer, EncodedPrompt, Engine, EngineIdentity, EngineSetup, Load, Padding, Prompt

_DECODE_LOOP = "greedy-1"
"""Changes when the loop's tokens or stamps would."""


def identity(setup: EngineSetup) -> EngineIdentity:
    """Return transformers' version and what else decides how requests are run, from package metadata alone.

    dtype, attention and cache are the variant's, not the engine's: two variants share one engine.

    Raises MissingDependency.
    """
    require_engine_packages(setup)
    flags = {name: importlib.metadata.version(name) for name in NEEDED if name != "transformers"}
    # One engine for every batch size, so that a series of batches differs in its batch alone.
    flags |= {"batching": BATCHING, "device": setup.device}
    flags |= {"embedding": EMBEDDING} if setup.engine.answers_by == "embedding" else {"decode_loop": _DECODE_LOOP}
    if setup.engine.threads is not None:
        flags["threads"] = str(setup.engine.threads)
    if setup.model.gguf_file is not None:
        flags["gguf"] = importlib.metadata.version("gguf")
    if setup.engine.continuous is not None:
        flags |= pool_flags(setup.engine.continuous)
    flags |= identity_flags(setup.variant.quantization)
    version = importlib.metadata.version("transformers")
    return EngineIdentity(engine_name="transformers", engine_version=version, engine_flags=flags)


def create(setup: EngineSetup, clock: Clock) -> Engine:
    """Return the engine, nothing loaded. Raises MissingDependency, and DossierError for a model that is not there."""
    require_engine_packages(setup)
    if setup.variant.cache != "dynamic":
        raise DossierError(
            f"variant {setup.variant.name}: the transformers engine has no {setup.variant.cache} cache yet",
            next_step='write cache = "dynamic", or leave it out',
        )
    if setup.engine.answers_by == "embedding":
        return EmbeddingEngine(setup, at_hand(find_artefact(setup)), clock)
    return TransformersEngine(setup, at_hand(find_artefact(setup)), clock)


def encoder(setup: EngineSetup) -> TemplateEncoder:
    """Return tokenizer, chat template and context limit; reads no weights.

    Raises MissingDependency, and DossierError when the model or its tokenizer cannot be read.
    """
    require_engine_packages(setup)
    artefact = at_hand(find_artefact(setup))
    kind = TextsEncoder if setup.engine.answers_by == "embedding" else TemplateEncoder
    try:
        return kind(*tokenizer_of(artefact))
    except (OSError, ValueError) as fault:
        raise DossierError(
            f"the tokenizer of {setup.model.id} cannot be read: {fault}",
            next_step="check [model] id and revision; with HF_HUB_OFFLINE=1 the model must already be in the cache; "
            "--no-tokens leaves the prompts' tokens uncounted",
        ) from fault


class TransformersEngine:
    """One variant in one process. `load` first; then `observe`, `encode` and `answers`."""

    def __init__(self, setup: EngineSetup, artefact: Artefact, clock: Clock) -> None:
        self._setup = setup
        self._artefact = artefact
        self._clock = clock
        self._parts: tuple[Loaded, GreedyDecoder] | None = None
        self._observed: Variant | None = None
        self._pool: BlockPool | None = None

    def load(self) -> None:
        """Load tokenizer and weights onto the device in the variant's dtype.

        Raises DeviceFault for a device that torch does not see, and whatever the library raises.
        """
        device = self._setup.device
        model = load_model(self._setup, self._artefact, "AutoModelForCausalLM")
        encoder = TemplateEncoder(*tokenizer_of(self._artefact))
        loaded = Loaded(self._setup, self._artefact, model, encoder, device)
        has_stopped = encoder.stop_check(self._setup.generation.stop_after)
        decoder = GreedyDecoder(model, device=device, clock=self._clock, has_stopped=has_stopped)
        self._parts = loaded, decoder
        if (choice := self._setup.engine.continuous) is not None:
            self._pool = BlockPool(
                model, choice, end_ids=decoder.end_ids, max_new_tokens=self._setup.generation.max_new_tokens,
                is_streaming=bool(self._setup.generation.stop_after),
            )  # fmt: skip

    def observe(self, observed_at: ObservedAt) -> tuple[Variant, list[TensorGroup]]:
        """Return what is really loaded. Not part of any timed phase's work: it reads files for their digests.

        Raises NotAsRequested where the variant's quantization is not what any weight is stored in.
        """
        variant, groups = observe(self._loaded()[0], observed_at, earlier=self._observed)
        self._observed = variant
        if self._pool is not None and self._pool.is_running:
            variant = with_pool(variant, self._setup.engine.continuous)
        return variant, groups

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        """Return the prompts as sent. Done before sending, so tokenizing is in no request's time."""
        return self._loaded()[0].encoder.encode(prompts)

    def answers(
        self, prompts: Sequence[EncodedPrompt], phase: Phase, load: Load = ONE_AT_A_TIME
    ) -> Iterator[Answer]:  # fmt: skip
        """Yield one answer per prompt; with a batch above 1 neighbours in prompt length run together.

        With a concurrency above 1 they go through the block pool, which the first such call starts.
        Memory and device faults are raised: they end the pass. Any other fault fails its request, or its batch, only.
        """
        loaded, decoder = self._loaded()
        answering = Answering(self._setup, loaded.encoder, decoder, self._clock, phase=phase)
        if load.concurrency > 1:
            return self._through_pool(answering, decoder, prompts, load.concurrency)
        if self._pool is not None:
            self._pool.close()  # the own loops need the attention as it was loaded
        if load.batch == 1:
            return answering.one_by_one(prompts)
        return answering.in_batches(prompts, load.batch, self._pad())

    def records(self) -> list[AnyRecord]:
        return []

    def close(self) -> None:
        """End the block pool's thread, where one was started; the process ends with the rest."""
        if self._pool is not None:
            self._pool.close()

    def padding(self) -> Padding:
        """Return that rows are padded on the left, and with which token. Raises DossierError where there is none."""
        return Padding(side="left", source=self._pad().source)

    def _through_pool(
        self, answering: Answering, decoder: GreedyDecoder, prompts: Sequence[EncodedPrompt], concurrency: int
    ) -> Iterator[Answer]:
        if self._pool is None:
            raise DossierError(
                f"{concurrency} requests at a time, and the engine has no block pool to run them in",
                next_step="add [engine.continuous] with num_blocks and max_batch_tokens, or write batches in [plan]",
            )
        refused = [(prompt, answering.refused(prompt)) for prompt in prompts]
        yield from (answer for _, answer in refused if answer is not None)
        fitting = [prompt for prompt, answer in refused if answer is None]
        self._pool.require_room(max((len(prompt.token_ids) for prompt in fitting), default=0))
        self._pool.start()
        loop = ClosedLoop(
            self._pool, answering, self._clock, end_ids=decoder.end_ids, has_stopped=decoder.has_stopped,
            limit_ns=round(self._setup.limits.request_s * 1e9), concurrency=concurrency,
        )  # fmt: skip
        yield from loop.answers(fitting)

    def _pad(self) -> PadToken:
        loaded, decoder = self._loaded()
        return pad_token(loaded.encoder.tokenizer, decoder.end_ids, model=self._setup.model.portable_id)

    def _loaded(self) -> tuple[Loaded, GreedyDecoder]:
        if self._parts is None:
            raise DossierError("nothing is loaded yet", next_step="call load() before anything else")
        return self._parts
