"""So many requests at a time through the block pool: each answer that is complete lets the next request in.

A thread of its own submits and reads: what the worker does with an answer holds no place in the pool. Order of sending
is the order of the pass. Every request gets one answer: one that the manager leaves without a result fails with that
as its cause, or at its time limit; one that is told twice ends the pass.

Stamps: `intended` is when its place became free, `sent` when it was handed over, which comes before the answer that
made room is turned into text; tokens have the manager's stamps, taken when the host has read a step; `done` is after
the ids were turned into text. Queue, prefill and decode are by the manager: from being handed over to leaving its
queue, to its first token, and from there to its end.

Texts that end an answer are looked for after each token, here, for the manager knows ids alone; it may compute one or
two more tokens before it drops the request, which are neither kept nor stamped. A request at its time limit likewise.
"""

from __future__ import annotations

import queue
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from collector.clock import Clock
from collector.contract.records.requests import FinishReason

from ._answering import Answering
from ._continuous import BlockPool, Output
from ._decode import Decoded
from ._prompting import StopCheck
from .base import Answer, EncodedPrompt, Wire

_PATIENCE_S = 0.2
_PATIENCE_NS = round(_PATIENCE_S * 1e9)


class _Sent(NamedTuple):
    prompt: EncodedPrompt
    intended_ns: int
    sent_ns: int


class _End(NamedTuple):
    fault: BaseException | None


class ClosedLoop:
    """One call of `answers`: its prompts, through a pool that runs already."""

    def __init__(
        self, pool: BlockPool, answering: Answering, clock: Clock, *, end_ids: Sequence[int], has_stopped: StopCheck,
        limit_ns: int, concurrency: int,
    ) -> None:  # fmt: skip
        self._pool = pool
        self._answering = answering
        self._clock = clock
        self._end_ids = frozenset(end_ids)
        self._has_stopped = has_stopped
        self._limit_ns = limit_ns
        self._concurrency = concurrency
        self._first_number: int | None = None
        self._live: dict[int, _Sent] = {}
        self._cut: set[int] = set()
        """Requests that were ended here; the manager may still have something to say of them."""
        self._free_since_ns: deque[int] = deque()
        self._over: list[tuple[_Sent, Output, FinishReason]] = []
        self._evicted = 0
        self._is_stopping = False
        self._answers: queue.SimpleQueue[Answer | _End] = queue.SimpleQueue()

    def answers(self, prompts: Sequence[EncodedPrompt]) -> Iterator[Answer]:
        """Yield one answer per prompt in the order of completion.

        Memory and device faults are raised; any other fault fails all requests under way.
        """
        thread = threading.Thread(target=self._serve_all, args=(prompts,), daemon=True)
        thread.start()
        try:
            while True:
                match self._answers.get():
                    case _End(fault=None):
                        break
                    case _End(fault=BaseException() as fault):
                        raise fault
                    case Answer() as answer:
                        yield answer
        finally:
            self._is_stopping = True
            thread.join()
        if self._evicted:
            warnings.warn(
                f"{self._evicted} of {len(prompts)} requests were evicted from the pool and started again: their "
                "first tokens have no stamp; num_blocks is small for this concurrency",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip

    def _serve_all(self, prompts: Sequence[EncodedPrompt]) -> None:
        try:
            self._serve(deque(prompts))
        except BaseException as fault:
            self._answers.put(_End(fault))
        else:
            self._answers.put(_End(None))

    def _serve(self, waiting: deque[EncodedPrompt]) -> None:
        self._free_since_ns.extend([self._clock.monotonic_ns()] * self._concurrency)
        while waiting or self._live:
            if self._is_stopping:
                for number in self._live:
                    self._stop(number)
                return
            while waiting and len(self._live) < self._concurrency and self._submit(waiting[0]):
                waiting.popleft()
            self._hand_out()
            has_ended = self._pool.has_ended()  # before looking: what it said last is read first
            output = self._pool.next_output(_PATIENCE_S)
            if output is not None:
                self._take(output)
            elif has_ended:
                self._fail_all(self._pool.ended_by() or RuntimeError(f"it left {len(self._live)} without a result"))
            self._end_late_ones()
        self._hand_out()

    def _submit(self, prompt: EncodedPrompt) -> bool:
        """Return whether the request was taken; one that is not stays first in the line."""
        sent_ns = self._clock.monotonic_ns()
        number = self._pool.submit(prompt.token_ids)
        if number is None:
            return False
        self._live[number] = _Sent(prompt, self._free_since_ns.popleft(), sent_ns)
        if self._first_number is None:
            self._first_number = number
        return True

    def _take(self, output: Output) -> None:
        if output.number in self._cut or output.number < (self._first_number or 0):
            return  # ended here, in this call or in one before
        if output.number not in self._live:
            raise RuntimeError(f"continuous batching told of request {output.number} after its end, or never sent")
        if output.error is not None:
            fault = self._pool.ended_by()
            if fault is not None or self._pool.has_ended():
                self._fail_all(fault or RuntimeError(output.error))
            else:
                self._fail(output.number, RuntimeError(output.error))
            return
        reason = self._reason(output)
        if reason is None:
            return
        if not output.is_finished:
            self._stop(output.number)
        self._over.append((self._left(output.number), output, reason))

    def _reason(self, output: Output) -> FinishReason | None:
        """Return why a request is over, by the own loop's rules and in their order; null where it goes on."""
        sent = self._live[output.number]
        if output.stamps_ns and output.stamps_ns[-1] - sent.sent_ns >= self._limit_ns:
            return "timeout"
        if output.token_ids and output.token_ids[-1] in self._end_ids:
            return "end_token"
        if self._has_stopped(output.token_ids):
            return "stop_text"
        return "length" if output.is_finished else None

    def _left(self, number: int) -> _Sent:
        self._free_since_ns.append(self._clock.monotonic_ns())
        return self._live.pop(number)

    def _stop(self, number: int) -> None:
        self._cut.add(number)
        self._pool.cancel(number)

    def _end_late_ones(self) -> None:
        now_ns = self._clock.monotonic_ns()
        for number in [each for each, sent in self._live.items() if now_ns - sent.sent_ns >= self._limit_ns]:
            output = self._pool.so_far(number)
            if output is None:
                if now_ns - self._live[number].sent_ns < self._limit_ns + _PATIENCE_NS:
                    continue  # it may have ended in time: its result is looked for once more
                output = Output(number, [], [], False, None, None, None, None)
            self._stop(number)
            self._over.append((self._left(number), output, "timeout"))

    def _hand_out(self) -> None:
        over, self._over = self._over, []
        for sent, output, reason in over:
            self._answer(sent, output, reason)

    def _answer(self, sent: _Sent, output: Output, reason: FinishReason) -> None:
        decoded = Decoded(output.token_ids, output.stamps_ns, sent.sent_ns, reason)
        self._evicted += len(output.stamps_ns) < len(output.token_ids)
        answer = self._answering.answered(sent.prompt, sent.intended_ns, decoded, row=0, number=0, padding=None)
        wire = Wire(
            prompt_tokens=len(sent.prompt.token_ids), prompt_evidence="token_ids", engine_queue_ns=output.queue_ns,
            engine_prefill_ns=output.prefill_ns, engine_decode_ns=output.decode_ns,
        )  # fmt: skip
        self._answers.put(msgspec.structs.replace(answer, wire=wire))

    def _fail(self, number: int, fault: Exception) -> None:
        sent = self._left(number)
        answer = self._answering.failed(sent.prompt, sent.intended_ns, fault, row=0, number=0, padding=None)
        self._answers.put(msgspec.structs.replace(answer, sent_ns=sent.sent_ns))

    def _fail_all(self, fault: Exception) -> None:
        """Fail what is under way with what ended the manager, and start another one for what still waits."""
        if not self._live:  # it ends with nothing to do: the next one would as well
            raise fault
        for number in list(self._live):
            self._cut.add(number)
            self._fail(number, fault)
        self._pool.close()
        self._pool.start()
