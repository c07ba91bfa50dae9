"""Greedy decoding, one request at a time or in batches, with a host stamp per token.

The loop gives the tokens of `model.generate(do_sample=False)`. It exists because generate's own hooks do not stamp the
moment at which a token is known on the host: a logits processor runs before sampling and, on a GPU, when the forward
is only queued. Here the stamp is taken after the token id has been read, which is also what decides whether to stop, so
no synchronisation is added that a streaming client would not cause.

Measured window: from just before the prompt's ids go to the device to the last token's id on the host. Rendering and
tokenizing happen before it, turning ids into text after it.

A batch starts together and is read once per step: the token of each row then has the stamp of that step. A row that
has ended stays in the batch until the last one has; what it goes on to generate is neither kept nor stamped, and its
cost is part of the others' steps. Building the padded rows happens before the window, as tokenizing does.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from collector.clock import Clock
from collector.contract.errors import DeviceFault
from collector.contract.records.requests import FinishReason

from ._batching import pad_left
from ._prompting import StopCheck, never


class Decoded(NamedTuple):
    """One generated sequence; `stamps_ns[i]` is when `token_ids[i]` was known on the host."""

    token_ids: list[int]
    stamps_ns: list[int]
    sent_ns: int
    finish_reason: FinishReason


class _Row:
    """One row of a batch: alive until it has a reason to end."""

    def __init__(self, stop_ids: frozenset[int], has_stopped: StopCheck, max_new_tokens: int) -> None:
        self._stop_ids = stop_ids
        self._has_stopped = has_stopped
        self._max_new_tokens = max_new_tokens
        self.token_ids: list[int] = []
        self.stamps_ns: list[int] = []
        self.finish_reason: FinishReason | None = None

    def take(self, token_id: int, now_ns: int, *, is_late: bool) -> None:
        """Keep the token of a step, unless the row has ended before."""
        if self.finish_reason is not None:
            return
        self.token_ids.append(token_id)
        self.stamps_ns.append(now_ns)
        if is_late:
            self.finish_reason = "timeout"
        elif token_id in self._stop_ids:
            self.finish_reason = "end_token"
        elif self._has_stopped(self.token_ids):
            self.finish_reason = "stop_text"
        elif len(self.token_ids) >= self._max_new_tokens:
            self.finish_reason = "length"


class GreedyDecoder:
    """The loop, bound to one loaded model and its device."""

    def __init__(self, model: Any, *, device: str, clock: Clock, has_stopped: StopCheck = never) -> None:
        """`has_stopped` tells of the ids so far whether the answer ends here; asked after the last one's stamp."""
        self._model = model
        self.has_stopped = has_stopped
        self._device = device
        self._clock = clock
        self._stop_ids = stop_ids(model.generation_config.eos_token_id)
        self.end_ids = sorted(self._stop_ids)
        self._takes = inspect.signature(model.forward).parameters
        self._keep = {"logits_to_keep": 1} if "logits_to_keep" in self._takes else {}
        self._require_a_dynamic_cache()

    def decode(self, prompt_ids: Sequence[int], *, max_new_tokens: int, limit_ns: int) -> Decoded:
        """Return at most `max_new_tokens` tokens; an end token, where one comes, is the last and is counted.

        limit_ns: time from sending; the token that arrives after it is kept and ends the request as `timeout`.
        """
        import torch

        model, clock, stop, keep = self._model, self._clock, self._stop_ids, self._keep
        token_ids: list[int] = []
        stamps_ns: list[int] = []
        cache = self._new_cache()
        prompt = torch.tensor([list(prompt_ids)], dtype=torch.long)
        with torch.inference_mode(), contextlib.ExitStack() as decoding:
            sent_ns = clock.monotonic_ns()
            step = prompt.to(self._device)
            while True:
                logits = model(input_ids=step, past_key_values=cache, use_cache=True, **keep).logits
                # generate compares in float32 too: in bfloat16 two logits may be equal that are not.
                token = logits[:, -1].float().argmax(dim=-1, keepdim=True)
                token_id = int(token.item())
                now_ns = clock.monotonic_ns()
                token_ids.append(token_id)
                stamps_ns.append(now_ns)
                if now_ns - sent_ns >= limit_ns:
                    return Decoded(token_ids, stamps_ns, sent_ns, "timeout")
                if token_id in stop:
                    return Decoded(token_ids, stamps_ns, sent_ns, "end_token")
                if self.has_stopped(token_ids):
                    return Decoded(token_ids, stamps_ns, sent_ns, "stop_text")
                if len(token_ids) >= max_new_tokens:
                    return Decoded(token_ids, stamps_ns, sent_ns, "length")
                if len(token_ids) == 1:
                    decoding.enter_context(self._tuned_for_decode())
                step = token

    def decode_batch(
        self, prompts: Sequence[Sequence[int]], *, pad_id: int, max_new_tokens: int, limit_ns: int
    ) -> list[Decoded]:
        """Return one sequence per prompt, as `decode` would; the rows run together and share the time of sending.

        limit_ns: time from sending; rows still generating when it is over keep their tokens and end as `timeout`.
        """
        import torch

        model, clock, takes = self._model, self._clock, "position_ids" in self._takes
        padded = pad_left(prompts, pad_id)
        rows = [_Row(self._stop_ids, self.has_stopped, max_new_tokens) for _ in prompts]
        seen = len(padded.mask[0])
        mask = torch.nn.functional.pad(torch.tensor(padded.mask, dtype=torch.long), (0, max_new_tokens), value=1)
        step, positions = (torch.tensor(part, dtype=torch.long) for part in (padded.token_ids, padded.positions))
        cache = self._new_cache()
        with torch.inference_mode(), contextlib.ExitStack() as decoding:
            sent_ns = clock.monotonic_ns()
            step, mask, positions = (part.to(self._device) for part in (step, mask, positions))
            while True:
                placed = {"position_ids": positions} if takes else {}
                logits = model(
                    input_ids=step, attention_mask=mask[:, :seen], past_key_values=cache, use_cache=True,
                    **placed, **self._keep,
                ).logits  # fmt: skip
                step = logits[:, -1].float().argmax(dim=-1, keepdim=True)
                token_ids = step.flatten().tolist()
                now_ns = clock.monotonic_ns()
                for row, token_id in zip(rows, token_ids, strict=True):
                    row.take(token_id, now_ns, is_late=now_ns - sent_ns >= limit_ns)
                finished = [row.finish_reason for row in rows if row.finish_reason is not None]
                if len(finished) == len(rows):
                    return [
                        Decoded(row.token_ids, row.stamps_ns, sent_ns, reason)
                        for row, reason in zip(rows, finished, strict=True)
                    ]
                if seen == len(padded.mask[0]):
                    decoding.enter_context(self._tuned_for_decode())
                seen += 1
                positions = positions[:, -1:] + 1

    def _new_cache(self) -> Any:
        from transformers import DynamicCache

        # Without the configuration the cache would keep the whole history of sliding-window layers.
        return DynamicCache(config=self._model.config.get_text_config(decoder=True))

    def _tuned_for_decode(self) -> contextlib.AbstractContextManager[Any]:
        """generate switches the experts' kernel after the prefill; without it a mixture of experts runs another one."""
        tuned = getattr(self._model, "_optimize_model_for_decode", None)
        return tuned() if tuned is not None else contextlib.nullcontext()

    def _require_a_dynamic_cache(self) -> None:
        name = type(self._model).__name__
        supports = getattr(self._model, "_supports_default_dynamic_cache", None)
        if "past_key_values" not in self._takes or (supports is not None and not supports()):
            raise DeviceFault(
                f"{name} keeps a state of its own kind instead of a key-value cache, which this engine cannot drive",
                next_step="measure this model through a server that supports it",
            )


def stop_ids(eos: int | Sequence[int] | None) -> frozenset[int]:
    """Return every token id that ends an answer."""
    if eos is None:
        return frozenset()
    return frozenset({eos} if isinstance(eos, int) else eos)


def ignored_generation_settings(generation_config: Any) -> dict[str, str]:
    """Return what the model's generation_config would do to greedy decoding in `generate` and is not done here.

    The protocol asks for plain greedy decoding; a model that ships, say, a repetition penalty then answers
    differently from `generate`, and the variant's record says so.
    """
    neutral: dict[str, Any] = {
        "repetition_penalty": 1.0, "encoder_repetition_penalty": 1.0, "no_repeat_ngram_size": 0,
        "encoder_no_repeat_ngram_size": 0, "min_length": 0, "min_new_tokens": 0, "num_beams": 1, "guidance_scale": 1.0,
    }  # fmt: skip
    found = {}
    for name in (
        *neutral, "bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "forced_bos_token_id",
        "forced_eos_token_id", "sequence_bias", "exponential_decay_length_penalty",
    ):  # fmt: skip
        value = getattr(generation_config, name, None)
        if value is not None and value != neutral.get(name):
            found[name] = str(value)
    return found
