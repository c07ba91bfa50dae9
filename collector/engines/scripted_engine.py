"""The scripted engine: obeys a list of times and events, so that order, failures and reports can be tested for real.

Nothing is simulated around it: it loads, waits, answers and dies inside a worker like any other engine. Times are kept
by the worker's clock: the first token comes `first_token_ms` after sending, each further one `gap_ms` after the last.
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
from itertools import pairwise
from json import dumps
from pathlib import Path

from msgspec import UNSET

from collector.clock import Clock
from collector.contract.digests import file_sha256
from collector.contract.errors import Finding, Refused
from collector.contract.records import TensorGroup, Variant
from collector.contract.records.base import ObservedAt, Phase
from collector.contract.records.requests import FinishReason
from collector.missing import explained

from ._script import (
    AnswerScript,
    EventScript,
    ExpectedValues,
    GroupScript,
    PassScript,
    Script,
    VariantScript,
    read_script,
)
from .base import Answer, EncodedPrompt, EngineIdentity, EngineSetup, Prompt

_MILLISECOND_NS = 1_000_000
_FOREVER_NS = 10 * 365 * 86_400 * 10**9
_CHUNK_BYTES = 16 * 2**20
DEFAULT_FIRST_TOKEN_MS = 0.0
DEFAULT_GAP_MS = 0.0


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
    return EngineIdentity(engine_name="scripted", engine_version="1", engine_flags={"script_sha256": file_sha256(path)})


def create(setup: EngineSetup, clock: Clock) -> ScriptedEngine:
    """Return the engine with its script read. Raises Refused for a broken script."""
    script, expected = read_script(script_path(setup))
    return ScriptedEngine(setup, script, expected, clock)


def encoder(setup: EngineSetup) -> ScriptedEncoder:
    """Return what counts whitespace tokens."""
    script, _ = read_script(script_path(setup))
    return ScriptedEncoder(script.context_limit_tokens)


class ScriptedEncoder:
    """One token per word; the id of a word is its CRC-32."""

    def __init__(self, context_limit_tokens: int | None) -> None:
        self._context_limit_tokens = context_limit_tokens

    def encode(self, prompts: Sequence[Prompt]) -> list[EncodedPrompt]:
        return [self._encoded(prompt) for prompt in prompts]

    def context_limit_tokens(self) -> int | None:
        return self._context_limit_tokens

    @staticmethod
    def _encoded(prompt: Prompt) -> EncodedPrompt:
        rendered = f"{prompt.system}\n\n{prompt.user}" if prompt.system else prompt.user
        token_ids = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in rendered.split()]
        return EncodedPrompt(
            document_id=prompt.document_id, rendered=rendered, token_ids=token_ids, start_token_count=0
        )


class ScriptedEngine:
    """Plays the part of the script that matches the pass's label."""

    def __init__(self, setup: EngineSetup, script: Script, expected: ExpectedValues, clock: Clock) -> None:
        self._setup = setup
        self._script = script
        self._part: PassScript = script.for_pass(setup.pass_label)
        self._expected = expected
        self._clock = clock
        self._encoder = ScriptedEncoder(script.context_limit_tokens)

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
            cache_kind=facts.cache_kind or asked.cache,
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

    def answers(self, prompts: Sequence[EncodedPrompt], phase: Phase) -> Iterator[Answer]:
        self._happen(phase, None)
        for prompt in prompts:
            self._happen(phase, prompt.document_id)
            yield self._answer(prompt)

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

    def _answer(self, prompt: EncodedPrompt) -> Answer:
        told = self._script.answer(self._part, prompt.document_id)
        limits = [
            limit for limit in (self._script.context_limit_tokens, self._setup.generation.context_limit_tokens) if limit
        ]
        max_new = self._setup.generation.max_new_tokens
        now = self._clock.monotonic_ns()
        if limits and len(prompt.token_ids) + max_new > min(limits):
            return Answer(
                prompt=prompt, intended_ns=now, token_count_source="scripted", finish_reason="not_started",
                request_outcome="too_long", failure_cause="too_long",
                failure_message=f"{len(prompt.token_ids)} + {max_new} tokens exceed the context of {min(limits)}",
            )  # fmt: skip
        if told.failure_cause is not UNSET and told.failure_cause is not None:
            return Answer(
                prompt=prompt, intended_ns=now, sent_ns=now, done_ns=now, token_count_source="scripted",
                finish_reason="error", request_outcome="failed", failure_cause=told.failure_cause,
                failure_message="scripted" if told.failure_message is UNSET else told.failure_message,
                exception_class="ScriptedFailure",
            )  # fmt: skip
        return self._generated(prompt, told, now)

    def _generated(self, prompt: EncodedPrompt, told: AnswerScript, sent_ns: int) -> Answer:
        text = self._text(told, prompt.document_id)
        words = (text or "").split()
        wanted = len(words) if told.output_tokens is UNSET else told.output_tokens
        max_new = self._setup.generation.max_new_tokens
        finish_reason: FinishReason = "end_token" if told.finish_reason is UNSET else told.finish_reason
        if wanted > max_new:
            wanted, finish_reason, text = max_new, "length", " ".join(words[:max_new])
        first_ns = round((DEFAULT_FIRST_TOKEN_MS if told.first_token_ms is UNSET else told.first_token_ms) * 1e6)
        gap_ns = round((DEFAULT_GAP_MS if told.gap_ms is UNSET else told.gap_ms) * 1e6)
        stamps: list[int] = []
        give_up_ns = sent_ns + round(self._setup.limits.request_s * 1e9)
        for index in range(wanted):
            due_ns = sent_ns + first_ns + index * gap_ns
            self._clock.sleep_until_ns(min(due_ns, give_up_ns))
            if due_ns > give_up_ns:
                return Answer(
                    prompt=prompt, intended_ns=sent_ns, sent_ns=sent_ns, done_ns=self._clock.monotonic_ns(),
                    first_token_ns=stamps[0] if stamps else None, last_token_ns=stamps[-1] if stamps else None,
                    output_tokens=len(stamps), token_count_source="scripted", finish_reason="timeout",
                    request_outcome="failed", failure_cause="timeout", gaps_ns=_gaps(stamps),
                    failure_message=f"no answer within {self._setup.limits.request_s} s",
                )  # fmt: skip
            stamps.append(self._clock.monotonic_ns())
        return Answer(
            prompt=prompt, intended_ns=sent_ns, sent_ns=sent_ns, done_ns=self._clock.monotonic_ns(),
            first_token_ns=stamps[0] if stamps else None, last_token_ns=stamps[-1] if stamps else None,
            output_tokens=wanted, token_count_source="scripted", finish_reason=finish_reason,
            request_outcome="completed", gaps_ns=_gaps(stamps), text=text,
        )  # fmt: skip

    def _text(self, told: AnswerScript, document_id: str) -> str | None:
        if told.text is not UNSET:
            return told.text
        values: dict[str, str | None] = dict(self._expected.fields.get(document_id, {}))
        if told.replace is not UNSET:
            values |= told.replace
        for name in [] if told.drop is UNSET else told.drop:
            values.pop(name, None)
        return dumps(values, ensure_ascii=False)


def _gaps(stamps: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(stamps)]


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
