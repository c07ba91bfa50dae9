"""Greedy decoding, one request at a time, with a host stamp per token.

The loop gives the tokens of `model.generate(do_sample=False)`. It exists because generate's own hooks do not stamp the
moment at which a token is known on the host: a logits processor runs before sampling and, on a GPU, when the forward
is only queued. Here the stamp is taken after the token id has been read, which is also what decides whether to stop, so
no synchronisation is added that a streaming client would not cause.

Measured window: from just before the prompt's ids go to the device to the last token's id on the host. Rendering and
tokenizing happen before it, turning ids into text after it.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from collector.clock import Clock
from collector.contract.errors import DeviceFault
from collector.contract.records.requests import FinishReason


class Decoded(NamedTuple):
    """One generated sequence; `stamps_ns[i]` is when `token_ids[i]` was known on the host."""

    token_ids: list[int]
    stamps_ns: list[int]
    sent_ns: int
    finish_reason: FinishReason


class GreedyDecoder:
    """The loop, bound to one loaded model and its device."""

    def __init__(self, model: Any, *, device: str, clock: Clock) -> None:
        self._model = model
        self._device = device
        self._clock = clock
        self._stop_ids = stop_ids(model.generation_config.eos_token_id)
        self._keep = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
        self._require_a_dynamic_cache()

    def decode(self, prompt_ids: Sequence[int], *, max_new_tokens: int, limit_ns: int) -> Decoded:
        """Return at most `max_new_tokens` tokens; an end token, where one comes, is the last and is counted.

        limit_ns: time from sending; the token that arrives after it is kept and ends the request as `timeout`.
        """
        import torch
        from transformers import DynamicCache

        model, clock, stop, keep = self._model, self._clock, self._stop_ids, self._keep
        token_ids: list[int] = []
        stamps_ns: list[int] = []
        # Without the configuration the cache would keep the whole history of sliding-window layers.
        cache = DynamicCache(config=model.config.get_text_config(decoder=True))
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
                if len(token_ids) >= max_new_tokens:
                    return Decoded(token_ids, stamps_ns, sent_ns, "length")
                if len(token_ids) == 1:
                    decoding.enter_context(self._tuned_for_decode())
                step = token

    def _tuned_for_decode(self) -> contextlib.AbstractContextManager[Any]:
        """generate switches the experts' kernel after the prefill; without it a mixture of experts runs another one."""
        tuned = getattr(self._model, "_optimize_model_for_decode", None)
        return tuned() if tuned is not None else contextlib.nullcontext()

    def _require_a_dynamic_cache(self) -> None:
        name = type(self._model).__name__
        supports = getattr(self._model, "_supports_default_dynamic_cache", None)
        takes = "past_key_values" in inspect.signature(self._model.forward).parameters
        if not takes or (supports is not None and not supports()):
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
