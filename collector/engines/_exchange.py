"""From one exchange to an answer: the client's stamps, the server's counts, how it ended and why it failed.

Stamps are receipts, taken by the load generator before anything was read. First token: the first generated content of
any channel. First answer: the first content beside thinking, where there is thinking. Last token: the last event with
content. Done: the end of the stream, after counts and end marker. Gaps lie between events with content, never before
the first; they are gaps between tokens only where the server's counts say one token for each event.

A body that came as a whole, because the server does not stream, is an answer without any of these times but done: when
its first token existed, nobody saw.

Stop texts: the protocol keeps the text that ended an answer in it; most servers cut it off. `STOP_FIELDS` asks each
kind to keep or at least to name it. A text that is named and missing is put back; one that is there ended the answer if
the last event brought it. A server of another kind that cuts it off and does not name it cannot be told from one whose
answer ended by itself: the answer stays as it came, and `has_unknown_stops` says so beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from collector.client.messages import Exchange, Limits
from collector.contract.protocol import ServerKind
from collector.contract.records.requests import FinishReason, PromptEvidence, RequestOutcome, TokenCountSource
from collector.engine_timings import engine_timings

from ._exchange_faults import Fault, fault_of, finish_of
from ._prompting import up_to_stop
from ._received import Received, received
from .base import Answer, EncodedPrompt, Wire

STOP_FIELDS: Mapping[ServerKind, Mapping[str, bool]] = {
    "vllm": {"include_stop_str_in_output": True},  # and names it as stop_reason
    "sglang": {"no_stop_trim": True},  # and names it as matched_stop
    "llamacpp": {"verbose": True},  # cuts it off; verbose adds `stopping_word` to the last event
    "tgi": {},  # keeps it
    "transformers": {},  # keeps it
}
"""What a request with stop texts asks for besides, by the server's kind; any other kind is not known to tell."""


def has_unknown_stops(kind: ServerKind, stop_texts: Sequence[str]) -> bool:
    """True where answers may lack the stop text that ended them, and nothing in the stream would say so."""
    return bool(stop_texts) and kind not in STOP_FIELDS


class ReadingRules(NamedTuple):
    """How the answers of one server are read.

    kind: by which the server's own times are read. count_tokens: the local tokenizer's count of a text, for a server
    that tells none.
    """

    reasoning_fields: Sequence[str]
    limits: Limits
    kind: ServerKind = "other"
    stop_texts: Sequence[str] = ()
    count_tokens: Callable[[str], int] | None = None


class SentPrompt(NamedTuple):
    """What is known of a prompt beside its local ids.

    evidence: null where only the server's count of prompt tokens can tell. nonce_tokens: sent beside the prompt's own
    ids. server_ids: what the model sees, where that is not the document's own ids: what the server's tokenizer made of
    them, or the ids with the nonce in front.
    """

    evidence: PromptEvidence | None = None
    nonce_tokens: int | None = None
    server_ids: list[int] | None = None


_LOCAL = SentPrompt()


def answer_of(exchange: Exchange, prompt: EncodedPrompt, rules: ReadingRules, sent: SentPrompt = _LOCAL) -> Answer:
    """Return the answer of one exchange, complete, empty or failed; what had arrived is kept in each case."""
    found = received(exchange, rules.reasoning_fields)
    fault = fault_of(exchange, found, rules.limits)
    text, finish = found.answer + found.tool_text, finish_of(found) if fault is None else fault.finish_reason
    if fault is None:
        text, finish = _stopped(found, text, finish, rules.stop_texts)
    tokens, source = _output_tokens(found, text, rules.count_tokens)
    stamps = found.content_ns
    return Answer(
        prompt=prompt, intended_ns=exchange.intended_ns, sent_ns=exchange.sent_ns,
        first_token_ns=stamps[0] if stamps else None, last_token_ns=stamps[-1] if stamps else None,
        done_ns=exchange.done_ns, output_tokens=tokens, token_count_source=source, finish_reason=finish,
        request_outcome=_outcome(found, fault, finish),
        failure_cause=fault.cause if fault else None, failure_message=fault.message if fault else None,
        exception_class=_class_of(exchange.fault) if fault else None,
        gaps_ns=[later - earlier for earlier, later in pairwise(stamps)],
        gap_unit="token" if found.has_token_chunks else "chunk", is_final=exchange.is_final,
        wire=_wire(exchange, found, prompt, rules, sent), text=text if text or fault is None else None,
    )  # fmt: skip


def _wire(
    exchange: Exchange, found: Received, prompt: EncodedPrompt, rules: ReadingRules, sent: SentPrompt
) -> Wire:  # fmt: skip
    usage, times = found.usage, engine_timings(rules.kind, found.timings)
    evidence = sent.evidence or _evidence_by_count(usage.prompt_tokens, prompt, sent)
    is_guess = evidence == "differs" and sent.evidence is None  # by the count alone nobody knows what the model saw
    ids = None if is_guess else sent.server_ids
    cached = usage.cached_tokens if usage.cached_tokens is not None else _whole(found.timings.get("cache_n"))
    return Wire(
        connection_wait_ns=exchange.connection_wait_ns, headers_ns=exchange.headers_ns,
        first_chunk_ns=found.first_event_ns, first_answer_ns=found.first_answer_ns if found.thinking else None,
        chunk_count=len(found.content_ns) if found.is_stream and exchange.pieces else None,
        http_status=exchange.http_status, prompt_tokens=usage.prompt_tokens, nonce_tokens=sent.nonce_tokens,
        reasoning_tokens=usage.reasoning_tokens, cached_tokens=cached,
        engine_queue_ns=times.queue_ns, engine_prefill_ns=times.prefill_ns, engine_decode_ns=times.decode_ns,
        prompt_evidence=evidence,
        prompt_token_ids=ids, reasoning_text=found.thinking or None, chunk_stamps_ns=found.content_ns,
        chunk_tokens=found.content_tokens,
    )  # fmt: skip


def _outcome(found: Received, fault: Fault | None, finish: FinishReason) -> RequestOutcome:
    """Return the outcome; an answer of nothing but a stop text that was cut off is complete, though nobody saw it."""
    if fault is not None:
        return "too_long" if fault.cause == "too_long" else "failed"
    return "completed" if found.has_content or finish == "stop_text" else "empty"


def _stopped(found: Received, text: str, finish: FinishReason, stop_texts: Sequence[str]) -> tuple[str, FinishReason]:
    """Return text and finish reason, told apart by the stop texts; a text that is named and missing is put back.

    Nothing follows the stop text, as in process.
    """
    if finish not in ("end_token", "stop_text"):
        return text, finish
    named = found.stop_text
    if named is not None and named in stop_texts:
        return up_to_stop(text if named in text else text + named, stop_texts), "stop_text"
    before = found.answer_before_last_part
    is_by_text = any(each in found.answer and each not in before for each in stop_texts)
    return (up_to_stop(text, stop_texts), "stop_text") if is_by_text else (text, finish)


def _output_tokens(
    found: Received, text: str, count_tokens: Callable[[str], int] | None
) -> tuple[int | None, TokenCountSource]:  # fmt: skip
    """Return the generated tokens and who counted them, the best source first; a number of chunks is none."""
    if found.server_tokens is not None:
        return found.server_tokens, "usage" if found.has_final_count else "continuous_usage"
    if found.content_tokens:
        return sum(found.content_tokens), "token_ids"
    if count_tokens is not None and found.has_content:
        return sum(map(count_tokens, filter(None, (found.thinking, text)))), "retokenized"
    return None, "none"


def _evidence_by_count(told: int | None, prompt: EncodedPrompt, sent: SentPrompt) -> PromptEvidence:
    local = len(prompt.token_ids) + (sent.nonce_tokens or 0)
    return "rendered" if told is None else "count" if told == local else "differs"


def _whole(value: float | None) -> int | None:
    return None if value is None or value < 0 else int(value)


def _class_of(fault: str | None) -> str | None:
    name = (fault or "").partition(":")[0]
    return name if name.isidentifier() else None
