"""From prompts to answers with a loaded model: one at a time, or neighbours in length together as one batch.

Stamps of a batch: `intended` is when the engine turned to it, the batch before being complete and handed over; `sent`
is when the padded rows went to the device, equal for all of them; first and last token are a row's own. Answers are
handed out when the whole batch is complete, for that is when a caller of static batches has them: `done` of each row
is after that, and after its own ids were turned into text, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from collector.clock import Clock
from collector.contract.records.base import FailureCause, Phase
from collector.worker_faults import cause_of

from ._batching import PadToken, batches_by_length
from ._context import refused
from ._decode import Decoded, GreedyDecoder
from ._prompting import TemplateEncoder, up_to_stop
from .base import Answer, EncodedPrompt, EngineSetup


class Answering:
    """What a loaded engine answers with."""

    def __init__(
        self, setup: EngineSetup, encoder: TemplateEncoder, decoder: GreedyDecoder, clock: Clock, *, phase: Phase
    ) -> None:
        self._setup = setup
        self._encoder = encoder
        self._decoder = decoder
        self._clock = clock
        self._phase: Phase = phase
        self._limit_ns = round(setup.limits.request_s * 1e9)

    def one_by_one(self, prompts: Sequence[EncodedPrompt]) -> Iterator[Answer]:
        """Yield one answer per prompt, each sent when the one before is complete.

        Memory and device faults are raised: they end the pass. Any other fault fails its request only.
        """
        for prompt in prompts:
            yield self._alone(prompt)

    def in_batches(self, prompts: Sequence[EncodedPrompt], size: int, pad: PadToken) -> Iterator[Answer]:
        """Yield the answers batch by batch, in the order of the rows.

        Prompts that do not fit the context join no batch and are answered first. Memory and device faults are raised;
        any other fault fails every row of its batch with the same cause.
        """
        fitting: list[EncodedPrompt] = []
        for prompt in prompts:
            too_long = self.refused(prompt)
            if too_long is not None:
                yield too_long
            else:
                fitting.append(prompt)
        for number, rows in enumerate(batches_by_length(fitting, size)):
            yield from self._together(rows, number, pad)

    def _alone(self, prompt: EncodedPrompt) -> Answer:
        too_long = self.refused(prompt)
        if too_long is not None:
            return too_long
        intended_ns = self._clock.monotonic_ns()
        try:
            decoded = self._decoder.decode(
                prompt.token_ids, max_new_tokens=self._setup.generation.max_new_tokens, limit_ns=self._limit_ns
            )
        except Exception as fault:
            return self.failed(prompt, intended_ns, fault, row=0, number=0, padding=None)
        return self.answered(prompt, intended_ns, decoded, row=0, number=0, padding=None)

    def _together(self, rows: Sequence[EncodedPrompt], number: int, pad: PadToken) -> Iterator[Answer]:
        intended_ns = self._clock.monotonic_ns()
        longest = max(len(prompt.token_ids) for prompt in rows)
        padding = [longest - len(prompt.token_ids) for prompt in rows]
        try:
            decoded = self._decoder.decode_batch(
                [prompt.token_ids for prompt in rows], pad_id=pad.token_id,
                max_new_tokens=self._setup.generation.max_new_tokens, limit_ns=self._limit_ns,
            )  # fmt: skip
        except Exception as fault:
            failed = [
                self.failed(prompt, intended_ns, fault, row=row, number=number, padding=padding[row])
                for row, prompt in enumerate(rows)
            ]
        else:
            failed = []
        if failed:
            yield from failed
            return
        lengths = [len(each.token_ids) for each in decoded] if self._setup.engine.has_step_capture else []
        live = [sum(length > step for length in lengths) for step in range(max(lengths, default=0))]
        for row, (prompt, each) in enumerate(zip(rows, decoded, strict=True)):
            yield self.answered(prompt, intended_ns, each, row=row, number=number, padding=padding[row], live=live)

    def refused(self, prompt: EncodedPrompt) -> Answer | None:
        """Return the answer of a prompt that does not fit the context, null for one that does."""
        generation = self._setup.generation
        limit = generation.context_limit(self._encoder.context_limit_tokens())
        return refused(prompt, generation, limit, intended_ns=self._clock.monotonic_ns())

    def failed(
        self, prompt: EncodedPrompt, intended_ns: int, fault: Exception, *, row: int, number: int, padding: int | None
    ) -> Answer:
        """Return the failed request. Raises the fault again where it ends the pass."""
        cause = cause_of(fault, self._phase)
        if ends_the_pass(fault, cause):
            raise fault
        return Answer(
            prompt=prompt, batch_row=row, batch_number=number, padding_tokens=padding, intended_ns=intended_ns,
            sent_ns=intended_ns, done_ns=self._clock.monotonic_ns(), token_count_source="token_ids",
            finish_reason="error", request_outcome="failed", failure_cause=cause, failure_message=str(fault),
            exception_class=type(fault).__name__,
        )  # fmt: skip

    def answered(
        self, prompt: EncodedPrompt, intended_ns: int, decoded: Decoded, *, row: int, number: int,
        padding: int | None, live: Sequence[int] = (),
    ) -> Answer:  # fmt: skip
        """Return the request with what was generated; without its first stamp where not every token has one."""
        stamps_ns = decoded.stamps_ns
        has_first = len(stamps_ns) == len(decoded.token_ids) > 0
        text = self._encoder.text(decoded.token_ids)
        if decoded.finish_reason == "stop_text":
            text = up_to_stop(text, self._setup.generation.stop_after)
        is_late = decoded.finish_reason == "timeout"
        return Answer(
            prompt=prompt, batch_row=row, batch_number=number, padding_tokens=padding, intended_ns=intended_ns,
            sent_ns=decoded.sent_ns, first_token_ns=stamps_ns[0] if has_first else None,
            last_token_ns=stamps_ns[-1] if stamps_ns else None,
            done_ns=self._clock.monotonic_ns(), output_tokens=len(decoded.token_ids), token_count_source="token_ids",
            finish_reason=decoded.finish_reason, request_outcome="failed" if is_late else "completed",
            failure_cause="timeout" if is_late else None,
            failure_message=f"no complete answer within {self._setup.limits.request_s} s" if is_late else None,
            gaps_ns=[later - earlier for earlier, later in pairwise(stamps_ns)], text=text,
            step_stamps_ns=stamps_ns, step_live_rows=list(live[: len(stamps_ns)]),
            token_ids=decoded.token_ids,
        )  # fmt: skip


def ends_the_pass(fault: Exception, cause: FailureCause) -> bool:
    """True for a fault after which further requests would only fail too: memory is gone or the device is lost."""
    names = {kind.__name__ for kind in type(fault).__mro__}
    return cause == "out_of_memory" or "AcceleratorError" in names or "CUDA error" in str(fault)
