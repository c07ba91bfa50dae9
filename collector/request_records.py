"""An engine's answer as records: the request with its texts, and the failure of a request."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from collector.contract.digests import text_hmac
from collector.contract.records import GAP_BUCKET_BOUNDS_NS, AnyRecord, Failure, Request, Scrape
from collector.contract.records.base import MissingReason, Phase
from collector.contract.records.requests import RequestOutcome
from collector.contract.steps import Steps, encode_steps, microseconds, steps_digest
from collector.engines.base import Answer, EncodedPrompt, Wire
from collector.events import Event, PassJob, Recorded, Text
from collector.missing import explained
from collector.worker_notes import storable


def gap_counts(gaps_ns: Sequence[int]) -> list[int]:
    """Return how many gaps fall into each bucket of GAP_BUCKET_BOUNDS_NS, the last for longer ones; empty for none."""
    if not gaps_ns:
        return []
    counts = [0] * (len(GAP_BUCKET_BOUNDS_NS) + 1)
    for gap_ns in gaps_ns:
        counts[bisect.bisect_left(GAP_BUCKET_BOUNDS_NS, gap_ns)] += 1
    return counts


class MadeRequest(NamedTuple):
    """A request's record, the texts that it cites, and its line of the steps file; null where nothing is captured."""

    record: Request
    texts: list[Text]
    steps: str | None


class RequestRecords:
    """Makes the records of one pass; stamps count from `origin_ns` of the worker's clock."""

    def __init__(self, job: PassJob, *, origin_ns: int) -> None:
        self._job = job
        self._salt = bytes.fromhex(job.salt_hex)
        self._origin_ns = origin_ns
        engine = job.setup.engine
        self._is_served = engine.server is not None
        self._has_capture = engine.server.has_chunk_capture if engine.server else engine.has_step_capture

    def request(self, answer: Answer, phase: Phase, *, try_index: int, batch_number: int) -> MadeRequest:
        """Return the request's record, and what it cites."""
        prompt, wire = answer.prompt, answer.wire or Wire()
        seen = wire.prompt_token_ids if wire.prompt_token_ids is not None else prompt.token_ids
        tokens = ",".join(map(str, seen))
        texts = [
            self._text("prompt", storable(prompt.rendered), prompt.document_id),
        ]
        # Where the server's tokens are others and nobody knows which, nothing stands for them.
        is_known = wire.prompt_evidence != "differs" or wire.prompt_token_ids is not None
        token_ids = self._text("token_ids", tokens, prompt.document_id)
        texts += [token_ids] if is_known else []
        answer_hmac = None
        if answer.text is not None:
            texts.append(self._text("answer", storable(answer.text), prompt.document_id))
            answer_hmac = texts[-1].hmac
        if wire.reasoning_text:
            texts.append(self._text("reasoning", storable(wire.reasoning_text), prompt.document_id))
        steps = self._steps(answer, phase, try_index)
        record = Request(
            pass_id=self._job.pass_id, phase=phase, document_id=prompt.document_id, try_index=try_index,
            is_final=answer.is_final, batch_row=answer.batch_row, batch_number=batch_number,
            padding_tokens=answer.padding_tokens,
            intended_ns=max(0, answer.intended_ns - self._origin_ns),
            sent_ns=self._offset(answer.sent_ns), connection_wait_ns=wire.connection_wait_ns,
            headers_ns=self._offset(wire.headers_ns), first_chunk_ns=self._offset(wire.first_chunk_ns),
            first_token_ns=self._offset(answer.first_token_ns), first_answer_ns=self._offset(wire.first_answer_ns),
            last_token_ns=self._offset(answer.last_token_ns), done_ns=self._offset(answer.done_ns),
            chunk_count=wire.chunk_count,
            prompt_tokens=len(prompt.token_ids) if answer.wire is None else wire.prompt_tokens,
            local_prompt_tokens=self._sent_tokens(prompt, wire), nonce_tokens=wire.nonce_tokens,
            output_tokens=answer.output_tokens, reasoning_tokens=wire.reasoning_tokens,
            cached_tokens=wire.cached_tokens,
            token_count_source=answer.token_count_source, finish_reason=answer.finish_reason,
            request_outcome=answer.request_outcome, failure_cause=answer.failure_cause,
            http_status=wire.http_status, engine_queue_ns=wire.engine_queue_ns,
            engine_prefill_ns=wire.engine_prefill_ns, engine_decode_ns=wire.engine_decode_ns, gap_unit=answer.gap_unit,
            gap_counts=gap_counts(answer.gaps_ns), gap_max_ns=max(answer.gaps_ns, default=None),
            steps_sha256=None if steps is None else steps_digest(steps),
            prompt_hmac=texts[0].hmac, prompt_token_hmac=token_ids.hmac if is_known else None,
            prompt_evidence="token_ids" if answer.wire is None else wire.prompt_evidence,
            start_token_count=prompt.start_token_count,
            answer_hmac=answer_hmac,
        )  # fmt: skip
        reasons = _reasons(answer, is_served=self._is_served, has_capture=self._has_capture)
        return MadeRequest(explained(record, reasons), texts, steps)

    def _steps(self, answer: Answer, phase: Phase, try_index: int) -> str | None:
        """Return the line of the steps file, where capture is on and anything came."""
        wire = answer.wire or Wire()
        stamps_ns = wire.chunk_stamps_ns or answer.step_stamps_ns
        if not self._has_capture or not stamps_ns:
            return None
        first_us, deltas_us = microseconds(stamps_ns, origin_ns=self._origin_ns)
        return encode_steps(
            Steps(
                pass_id=self._job.pass_id, phase=phase, document_id=answer.prompt.document_id, try_index=try_index,
                unit=answer.gap_unit, first_us=first_us, deltas_us=deltas_us, tokens=wire.chunk_tokens,
                live_rows=answer.step_live_rows,
            )
        )  # fmt: skip

    def of_engine(self, record: AnyRecord) -> AnyRecord:
        """Return an engine's own record as one of this pass; a scrape's offset arrives as a stamp of the clock."""
        if isinstance(record, Scrape):
            return msgspec.structs.replace(
                record, pass_id=self._job.pass_id, offset_ns=max(0, record.offset_ns - self._origin_ns)
            )
        return msgspec.structs.replace(record, pass_id=self._job.pass_id)

    def failure(self, answer: Answer, phase: Phase) -> Iterator[Event]:
        """Yield the failure of a request that did not complete."""
        if answer.request_outcome == "completed" or answer.failure_cause is None:
            return
        texts = [self._text("message", storable(answer.failure_message))] if answer.failure_message else []
        record = Failure(
            failure_scope="request", failure_cause=answer.failure_cause, pass_id=self._job.pass_id,
            variant_id=self._job.variant_id, document_id=answer.prompt.document_id, phase=phase,
            exception_class=answer.exception_class, message_hmac=texts[0].hmac if texts else None,
        )  # fmt: skip
        yield Recorded(record=record, texts=texts)

    def _text(self, text_kind: str, text: str, document_id: str | None = None) -> Text:
        return Text(hmac=text_hmac(self._salt, text), text_kind=text_kind, text=text, document_id=document_id)

    def _sent_tokens(self, prompt: EncodedPrompt, wire: Wire) -> int | None:
        return len(prompt.token_ids) + (wire.nonce_tokens or 0) if self._is_served else None

    def _offset(self, stamp_ns: int | None) -> int | None:
        return None if stamp_ns is None else max(0, stamp_ns - self._origin_ns)


_OF_A_SERVER = (
    "connection_wait_ns", "headers_ns", "first_chunk_ns", "first_answer_ns", "chunk_count", "local_prompt_tokens",
    "nonce_tokens", "http_status", "engine_queue_ns", "engine_prefill_ns", "engine_decode_ns",
)  # fmt: skip


def _reasons(answer: Answer, *, is_served: bool, has_capture: bool) -> dict[str, MissingReason]:
    """Why a request's empty fields are empty."""
    outcomes: dict[RequestOutcome, MissingReason] = {
        "completed": "not_applicable", "too_long": "not_applicable", "empty": "not_applicable", "failed": "failed",
    }  # fmt: skip
    never = outcomes[answer.request_outcome]
    stamps = ("sent_ns", "first_token_ns", "last_token_ns", "done_ns", "output_tokens", "gap_max_ns", "answer_hmac")
    reasons: dict[str, MissingReason] = {
        **dict.fromkeys(stamps, never),
        "first_chunk_ns": "not_applicable",
        "padding_tokens": "not_applicable",
        "reasoning_tokens": "not_exposed_by_engine",
        "cached_tokens": "not_exposed_by_engine",
    }
    if has_capture:
        reasons["steps_sha256"] = never
    engine_times: dict[str, MissingReason] = dict.fromkeys(
        ("engine_queue_ns", "engine_prefill_ns", "engine_decode_ns"), "not_exposed_by_engine"
    )
    if not is_served:  # what a client at a server measures is of no engine in process: `prompt_evidence` tells
        return reasons if answer.wire is None else reasons | engine_times
    did_not_happen: MissingReason = "failed" if answer.request_outcome == "failed" else "not_exposed_by_engine"
    reasons |= dict.fromkeys(_OF_A_SERVER, did_not_happen)
    reasons |= dict.fromkeys(("first_answer_ns", "nonce_tokens"), "not_applicable")
    reasons["prompt_token_hmac"] = "not_exposed_by_engine"
    reasons.setdefault("steps_sha256", "not_applicable")
    return reasons | engine_times | {"prompt_tokens": did_not_happen, "output_tokens": did_not_happen}
