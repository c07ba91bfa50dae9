"""The scripted engine: obeys a list of times and events, so that order, failures and reports can be tested for real.

Nothing is simulated around it: it loads, waits, answers and dies inside a worker like any other engine. Times are kept
by the worker's clock: the first token comes `first_token_ms` after sending, each further one `gap_ms` after the last.

In a batch, neighbours in prompt length run together as in the transformers engine, and one step serves all rows: the
first comes after the longest `first_token_ms` of its rows, each further one after the longest `gap_ms` of the rows that
still generate. A row that its script fails generates nothing and holds up no other. Nothing is really padded: the
padding is counted, and its token is called the tokenizer's own.

Where it answers by embedding, one step after `first_token_ms` gives the whole answer: no token, no first one, no gap.
"""

from __future__ import annotations

import builtins
import ctypes
import os
import signal
import sys
import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from collector.clock import Clock
from collector.contract.digests import file_sha256
from collector.contract.errors import Finding, Refused
from collector.contract.records import AnyRecord, TensorGroup, Variant
from collector.contract.records.base import ObservedAt, Phase
from collector.missing import explained

from ._batching import batches_by_length
from ._prompting import plain_text
from ._script import EventScript, ExpectedValues, GroupScript, PassScript, Script, VariantScript, read_script
from ._scripted_rows import ScriptedRows
from .base import (
    ONE_AT_A_TIME,
    Answer,
    EncodedPrompt,
    EngineIdentity,
    EngineSetup,
    Load,
    Padding,
    Prompt,
)

_MILLISECOND_NS = 1_000_000
_FOREVER_NS = 10 * 365 * 86_400 * 10**9
_CHUNK_BYTES = 16 * 2**20


def script_path(setup: EngineSetup) -> Path:
    """Return where the script lies. Raises Refused when the protocol names none."""
    if setup.engine.script is None:
        raise Refused(
            [Finding(Path(setup.base_dir) / "protocol.toml", None, "script", "the scripted engine has no script",
                     'add script = "script.json" under [engine]')]
        )  # fmt: skip
    return Path(setup.base_dir) / setup.engine.script


def identity(setup: EngineSetup) -> EngineIdentity:
    """Return the engine's name and the digest of its script: another script is another engine."""
    path = script_path(setup)
    read_script(path)
    flags = {"script_sha256": file_sha256(path)}
    if setup.engine.answers_by == "embedding":
        flags["embedding"] = "scripted"
    return EngineIdentity(engine_name="scripted", engine_version="1", engine_flags=flags)


def create(setup: EngineSetup, clock: Clock) -> ScriptedEngine:
    """Return the engine with its script read. Raises Refused for a broken script."""
    script, expected = read_script(script_path(setup))
    return ScriptedEngine(setup, script, expected, clock)


def encoder(setup: EngineSetup) -> ScriptedEncoder:
    """Return what counts whitespace tokens."""
    script, _ = read_script(script_path(setup))
    return ScriptedEncoder(script.context_limit_tokens, is_embedding=setup.engine.answers_by == "embedding")


class ScriptedEncoder:
    """One token per word; the id of a word is its CRC-32."""

    def __init__(self, context_limit_tokens: int | None, *, is_embedding: bool = False) -> None:
        self._context_limit_tokens = context_limit_tokens
        self._is_embedding = is_embedding

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        return [self._encoded(prompt) for prompt in prompts]

    def context_limit_tokens(self) -> int | None:
        return self._context_limit_tokens

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def _encoded(self, prompt: Prompt) -> EncodedPrompt:
        texts = [prompt.user, *prompt.candidates.values()] if self._is_embedding else [plain_text(prompt)]
        parts = [[zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in text.split()] for text in texts]
        return EncodedPrompt(
            document_id=prompt.document_id, rendered="\n".join(texts), start_token_count=0,
            token_ids=[token_id for part in parts for token_id in part],
            part_token_counts=[len(part) for part in parts] if self._is_embedding else [],
            candidate_ids=list(prompt.candidates) if self._is_embedding else [],
        )  # fmt: skip


class ScriptedEngine:
    """Plays the part of the script that matches the pass's label."""

    def __init__(self, setup: EngineSetup, script: Script, expected: ExpectedValues, clock: Clock) -> None:
        self._setup = setup
        self._script = script
        self._part: PassScript = script.for_pass(setup.pass_label)
        self._rows = ScriptedRows(setup, script, self._part, expected, clock)
        self._phase: Phase | None = None
        self._clock = clock
        self._is_embedding = setup.engine.answers_by == "embedding"
        self._encoder = ScriptedEncoder(script.context_limit_tokens, is_embedding=self._is_embedding)

    def load(self) -> None:
        self._happen("load", None)
        load_ms = self._script.load_ms if self._part.load_ms is None else self._part.load_ms
        self._clock.sleep_until_ns(self._clock.monotonic_ns() + round(load_ms * _MILLISECOND_NS))

    def observe(self, observed_at: ObservedAt) -> tuple[Variant, list[TensorGroup]]:
        asked = self._setup.variant
        facts = self._script.variants.get(asked.name, VariantScript())
        bits = (
            8 * facts.weight_bytes / facts.parameter_count
            if facts.weight_bytes is not None and facts.parameter_count is not None
            else None
        )
        groups = [self._group(group, observed_at) for group in facts.tensor_groups]
        dtype_bytes: dict[str, int] = {}
        for group in groups:
            dtype_bytes[group.storage_dtype] = dtype_bytes.get(group.storage_dtype, 0) + group.tensor_bytes
        variant = Variant(
            variant_id="", pass_id="", variant_name=asked.name, observed_at=observed_at,
            model_id=self._setup.model.portable_id, model_revision=self._setup.model.revision,
            requested={"dtype": asked.dtype, "attention": asked.attention, "quantization": asked.quantization},
            observed={"engine": "scripted"},
            origin=facts.origin or self._setup.model.origin,
            quantization_method=facts.quantization_method,
            weight_storage=facts.weight_storage or asked.dtype,
            compute_dtype=facts.compute_dtype or asked.dtype,
            attention=facts.attention or asked.attention,
            cache_kind=facts.cache_kind or ("none" if self._is_embedding else asked.cache),
            output_layer_format=facts.output_layer_format,
            parameter_count=facts.parameter_count, weight_bytes=facts.weight_bytes,
            claimed_weight_bytes=facts.claimed_weight_bytes, effective_bits=bits, dtype_bytes=dtype_bytes,
            device_map={"": "cpu"}, has_offload=False, deviations=facts.deviations,
        )  # fmt: skip
        unknown = (
            "origin", "quantization_method", "output_layer_format", "has_tied_embeddings", "parameter_count",
            "weight_bytes", "claimed_weight_bytes", "effective_bits", "tokenizer_digest", "template_digest",
            "model_revision",
        )  # fmt: skip
        return explained(variant, dict.fromkeys(unknown, "not_exposed_by_engine")), groups

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        return self._encoder.encode(prompts)

    def answers(
        self, prompts: Sequence[EncodedPrompt], phase: Phase, load: Load = ONE_AT_A_TIME
    ) -> Iterator[Answer]:  # fmt: skip
        if phase != self._phase:
            self._phase = phase
            self._happen(phase, None)
        if load.batch == 1:
            for prompt in prompts:
                self._happen(phase, prompt.document_id)
                yield from self._rows.together([prompt], is_batch=False)
            return
        fitting: list[EncodedPrompt] = []
        for prompt in prompts:
            if self._rows.fits(prompt):
                fitting.append(prompt)
            else:
                yield self._rows.too_long(prompt)
        for number, rows in enumerate(batches_by_length(fitting, load.batch)):
            for prompt in rows:
                self._happen(phase, prompt.document_id)
            longest = max(len(prompt.token_ids) for prompt in rows)
            for row, answer in enumerate(self._rows.together(rows, is_batch=True)):
                padding = longest - len(rows[row].token_ids)
                yield msgspec.structs.replace(answer, batch_row=row, batch_number=number, padding_tokens=padding)

    def records(self) -> list[AnyRecord]:
        return []

    def close(self) -> None:
        """Nothing to give back: the process ends."""

    def padding(self) -> Padding:
        return Padding(side="left", source="tokenizer")

    def _group(self, group: GroupScript, observed_at: ObservedAt) -> TensorGroup:
        return TensorGroup(
            variant_id="", pass_id="", observed_at=observed_at, module_group=group.module_group,
            module_class=group.module_class, tensor_class=group.tensor_class,
            storage_dtype=group.storage_dtype or self._setup.variant.dtype, device_id="cpu",
            tensor_count=group.tensor_count, element_count=group.element_count, tensor_bytes=group.tensor_bytes,
        )  # fmt: skip

    def _happen(self, phase: Phase, document_id: str | None) -> None:
        for event in self._part.events:
            if event.at == phase and event.document == document_id:
                for _ in range(event.times):
                    perform(event, self._clock)


def perform(event: EventScript, clock: Clock) -> None:
    """Do what the event says, to this very process."""
    if event.do == "raise":
        raise _exception(event)
    if event.do == "out_of_memory":
        _exhaust_memory()
    elif event.do == "hang":
        clock.sleep_until_ns(clock.monotonic_ns() + _FOREVER_NS)
    elif event.do == "exit":
        os._exit(event.exit_code)
    elif event.do == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)  # the signal is on its way
    elif event.do == "segfault":
        ctypes.string_at(0)
    elif event.do == "print":
        os.write(1, (event.message + "\n").encode())
        sys.stderr.flush()
    else:
        warnings.warn(event.message, UserWarning, stacklevel=2)


def _exception(event: EventScript) -> Exception:
    """A builtin exception by its name; another name makes a RuntimeError's class of that name, as libraries have."""
    known = getattr(builtins, event.exception, None)
    if isinstance(known, type) and issubclass(known, Exception):
        return known(event.message)
    named: type[Exception] = type(event.exception, (RuntimeError,), {})
    return named(event.message)


def _exhaust_memory() -> None:
    """Allocate until the address-space limit says no. Refuses without a limit: the machine belongs to others too."""
    import resource  # absent on Windows, where nothing else here needs it

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        raise RuntimeError("the script wants to exhaust memory, and this process has no address-space limit")
    held: list[bytearray] = []
    while True:
        held.append(bytearray(_CHUNK_BYTES))
