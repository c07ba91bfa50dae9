"""transformers' continuous batching in process: the library's own manager and pool of cache blocks, fixed beforehand.

The manager's thread computes; its results and stamps are read here. Prefix sharing is off (a repeated prompt would be
free), steps run one after the other (overlapped ones are stamped one step late) and without captured graphs, as in the
own loop. The attention is set to its paged form before the manager looks: else it changes to another one by itself.

Everything that touches the manager is in this module: its interface changes from release to release.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from collector.contract.errors import DeviceFault, DossierError
from collector.contract.protocol import ContinuousChoice
from collector.contract.records import Variant

from ._artefact import find_artefact
from ._hub import at_hand
from .base import EngineSetup

LOOP = "paged-1"
"""Engine flag: changes when the loop's tokens, stamps or order of sending would."""
STOP_S = 30.0
MIN_BLOCK_SIZE = 4
_KERNEL_BLOCK_SIZE = 256
"""Flash attention's kernel for single tokens reads blocks of a multiple of this; others go through the general one."""
_LAYERS_WITH_BLOCKS = frozenset({"full_attention", "sliding_attention"})
_NEEDED = ("add_request", "cancel_request", "get_result", "is_running", "start", "stop", "destroy")


class Output(NamedTuple):
    """What the manager says of one request: so far, or at its end. Stamps and times in ns of the worker's clock.

    stamps_ns has fewer entries than token_ids where the request was evicted and started again; the times by the
    engine are null then, for they would be of the second start.
    """

    number: int
    token_ids: list[int]
    stamps_ns: list[int]
    is_finished: bool
    error: str | None
    queue_ns: int | None
    prefill_ns: int | None
    decode_ns: int | None


def pool_flags(choice: ContinuousChoice) -> dict[str, str]:
    """Return what of the pool decides how requests are run: part of the engine's identity."""
    return {
        "continuous": LOOP,
        "block_size": str(choice.block_size),
        "num_blocks": str(choice.num_blocks),
        "max_batch_tokens": str(choice.max_batch_tokens),
    }


def blocks_needed(tokens: int, block_size: int) -> int:
    """Return the blocks of the pool that a request of so many tokens may hold, per kind of attention layer.

    The manager takes one more than the tokens fill.
    """
    return -(-(tokens + 1) // block_size) + 1


def layers_without_blocks(setup: EngineSetup) -> list[str]:
    """Return the kinds of layers that keep no keys and values in blocks, by the model's configuration alone.

    Raises DossierError, OSError or ValueError where it cannot be read.
    """
    from transformers import AutoConfig

    artefact = at_hand(find_artefact(setup))
    config = AutoConfig.from_pretrained(artefact.source, trust_remote_code=False, **artefact.arguments())
    text = config.get_text_config(decoder=True)
    kinds = set(getattr(text, "layer_types", None) or ()) - _LAYERS_WITH_BLOCKS
    if not kinds and getattr(text, "num_attention_heads", None) is None:
        return [str(text.model_type)]
    return sorted(map(str, kinds))


class BlockPool:
    """The manager of one loaded model: started by the first request that needs it, stopped by `close`."""

    def __init__(
        self, model: Any, choice: ContinuousChoice, *, end_ids: Sequence[int], max_new_tokens: int, is_streaming: bool
    ) -> None:
        """is_streaming: every token is told when it is known, not only the finished answer."""
        self._model = model
        self._choice = choice
        self._end_ids = list(end_ids)
        self._max_new_tokens = max_new_tokens
        self._is_streaming = is_streaming
        self._attention = str(model.config._attn_implementation).removeprefix("paged|")
        self._manager: Any = None
        self._sent = 0

    @property
    def is_running(self) -> bool:
        return self._manager is not None

    def start(self) -> None:
        """Switch to paged attention, reserve the pool and start the manager's thread; nothing where it runs.

        Raises DeviceFault for a model that cannot, and whatever the library raises.
        """
        if self._manager is not None:
            return
        from transformers import ContinuousBatchingConfig, GenerationConfig

        if not hasattr(self._model, "init_continuous_batching"):
            raise _cannot(self._model, "the library has no continuous batching for it")
        self._model.set_attn_implementation(f"paged|{self._attention}")
        untyped: Any = GenerationConfig
        generation = untyped(do_sample=False, max_new_tokens=self._max_new_tokens, eos_token_id=self._end_ids or -1)
        config = ContinuousBatchingConfig(
            block_size=self._choice.block_size, num_blocks=self._choice.num_blocks,
            max_batch_tokens=self._choice.max_batch_tokens, allow_block_sharing=False, use_async_batching=False,
            use_cuda_graph=False, scheduler_type="fifo", seed=0,
            max_blocks_per_request=None if self._choice.block_size % _KERNEL_BLOCK_SIZE == 0 else 0,
        )  # fmt: skip
        manager = self._model.init_continuous_batching(generation_config=generation, continuous_batching_config=config)
        if missing := [name for name in _NEEDED if not hasattr(manager, name)]:
            raise _cannot(self._model, f"this release's manager has no {', '.join(missing)}")
        try:
            manager.warmup()
        except (ValueError, AttributeError, KeyError) as fault:  # a cache or layer that cannot be put into blocks
            self._model.set_attn_implementation(self._attention)
            raise _cannot(self._model, f"{type(fault).__name__}: {fault}") from fault
        logging.getLogger("ContinuousBatchingLogger").addFilter(_is_news)
        manager.start()
        self._manager = manager

    def require_room(self, prompt_tokens: int) -> None:
        """Raise DossierError where the longest request cannot be held by the pool even alone."""
        size, blocks = self._choice.block_size, self._choice.num_blocks
        needed = blocks_needed(prompt_tokens + self._max_new_tokens, size)
        if needed > blocks:
            raise DossierError(
                f"a prompt of {prompt_tokens} tokens and {self._max_new_tokens} output tokens take {needed} blocks "
                f"of {size}; the pool has {blocks}",
                next_step=f"raise num_blocks under [engine.continuous] to {needed} at least, and freeze again",
            )

    def submit(self, token_ids: Sequence[int]) -> int | None:
        """Hand over one request and return its number, of no other one in the pool's life; taken in this order.

        Null where the manager is ending and takes none any more.
        """
        if self._manager.background_thread_status.can_accept_new_requests() is not None:
            return None
        number, self._sent = self._sent, self._sent + 1
        named = self._manager.add_request(
            list(token_ids), request_id=str(number), max_new_tokens=self._max_new_tokens, record_timestamps=True,
            streaming=self._is_streaming, eos_token_id=self._end_ids or -1,
        )  # fmt: skip
        return None if named is None else number

    def cancel(self, number: int) -> None:
        """Let the manager drop a request before its next step; it says nothing more of it."""
        self._manager.cancel_request(str(number))

    def next_output(self, timeout_s: float) -> Output | None:
        """Return the next result, or null after the timeout or when the manager has ended and said all."""
        found = self._manager.get_result(timeout=max(timeout_s, 0.001))
        return None if found is None else _output(found)

    def so_far(self, number: int) -> Output | None:
        """Return what a request has generated, null where it waits or is over."""
        processor = getattr(self._manager, "batch_processor", None)
        state = processor.scheduler.active_requests.get(str(number)) if processor is not None else None
        return None if state is None else _output(state.to_generation_output())

    def ended_by(self) -> Exception | None:
        """Return what ended the manager's thread, null where it runs or was not ended by a fault.

        A fault is told to every request before it is kept: where the thread is about to end, its end is awaited.
        """
        status = self._manager.background_thread_status
        if status.can_accept_new_requests() is None:
            return None
        give_up = time.monotonic() + STOP_S
        while self._manager.is_running() and time.monotonic() < give_up:
            time.sleep(0.002)
        fault: Exception | None = status.fatal_error
        return fault

    def has_ended(self) -> bool:
        """Return whether the manager's thread is gone."""
        return not self._manager.is_running()

    def close(self) -> None:
        """End the manager's thread, give the pool back and restore the attention; nothing where it does not run."""
        manager, self._manager = self._manager, None
        if manager is None:
            return
        manager.stop(block=True, timeout=STOP_S, hard_stop=True)
        manager.destroy()
        self._model.set_attn_implementation(self._attention)


def _is_news(record: logging.LogRecord) -> bool:
    """False for what follows from `cancel`: a request that ended in that very step is looked for once more."""
    return "attempted to free blocks for non-existent request" not in record.getMessage()


def with_pool(variant: Variant, choice: ContinuousChoice | None) -> Variant:
    """Return what was read back of a variant that runs in a pool, the pool among its deviations: it was not asked
    for by the variant, whose attention it changes."""
    if choice is None:
        return variant
    words = f"{choice.num_blocks} blocks of {choice.block_size} tokens, at most {choice.max_batch_tokens} in a step"
    return msgspec.structs.replace(
        variant, observed=variant.observed | {"block_pool": words},
        deviations=[*variant.deviations, f"cache: requested {variant.requested.get('cache')}, found {words}"],
    )  # fmt: skip


def _cannot(model: Any, why: str) -> DeviceFault:
    return DeviceFault(
        f"{type(model).__name__} cannot run with continuous batching: {why}",
        next_step="remove [engine.continuous] and write batches = [...] for static batches, or use a server",
    )


def _output(found: Any) -> Output:
    token_ids = list(found.generated_tokens)
    stamps = list(found.timestamps or ())[: len(token_ids)]  # read while its thread writes: the stamp comes first
    left_queue, ended = found.lifespan
    is_whole = len(stamps) == len(token_ids) > 0
    return Output(
        number=int(found.request_id), token_ids=token_ids, stamps_ns=[_ns(each) for each in stamps],
        is_finished=found.is_finished(), error=found.error,
        queue_ns=_ns(left_queue - found.created_time) if is_whole else None,
        prefill_ns=_ns(stamps[0] - left_queue) if is_whole else None,
        decode_ns=_ns((ended if ended > 0 else stamps[-1]) - stamps[0]) if is_whole else None,
    )  # fmt: skip


def _ns(seconds: float) -> int:
    """The manager reads `perf_counter`, whose nanoseconds are the worker's clock."""
    return max(0, round(seconds * 1e9))
