"""Why an exchange is no complete answer: the cause, and the words that tell one such end from another.

An answer is complete where the server said so, by a reason to finish or by the end marker; either is enough, for some
servers omit one of them. Everything else failed: an error inside a stream of status 200, a stream that ends without
saying why, a lost connection, an event that cannot be read. What had arrived stays with it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from collector.client.chunks import ServerError
from collector.client.messages import Exchange, Limits
from collector.contract.records.base import FailureCause
from collector.contract.records.requests import FinishReason

from ._received import RAW_BYTES, Received

_TOO_LONG_KINDS = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TOO_LONG = re.compile(
    r"context (length|size|window)|(model|sequence|context) length|max_model_len|maximum number of tokens"
    r"|exceeds? the (model's )?maximum|longer than the (model|maximum)|must have less than \d+ tokens"
    r"|`inputs` tokens \+ `max_new_tokens` must be",
    re.IGNORECASE,
)
BUSY = frozenset({408, 425, 429})
"""Refused for now, not for what was sent: the server's state, as 503 is."""
_ENDED: dict[str, FinishReason] = {
    "stop": "end_token", "eos_token": "end_token", "eos": "end_token", "end_turn": "end_token",
    "tool_calls": "end_token", "function_call": "end_token", "stop_sequence": "stop_text", "length": "length",
    "max_tokens": "length",
}  # fmt: skip
"""The reasons by which a model's answer is complete. A call of a tool is a turn that the model ended itself."""


class Fault(NamedTuple):
    """Why an exchange is no complete answer."""

    cause: FailureCause
    message: str
    finish_reason: FinishReason = "error"


def finish_of(found: Received) -> FinishReason:
    """Return why a complete answer ended; one that only has the end marker is taken to have ended by itself."""
    return _ENDED.get(found.finish_reason or "stop", "error")


def fault_of(exchange: Exchange, found: Received, limits: Limits) -> Fault | None:
    """Return why an exchange is no complete answer, or null for one that is."""
    status = exchange.http_status
    if exchange.ending in _UNREACHED:
        return _unreached(exchange, limits)
    if found.error is not None or (status is not None and status >= 300):
        return _refused(status, found, exchange)
    if exchange.ending in ("first_token_timeout", "total_timeout") and not found.has_end_marker:
        return _late(exchange, limits)
    if found.unreadable is not None:
        what = "an event of the stream" if found.is_stream else "the body, no event stream,"
        why = f" ({exchange.fault})" if exchange.fault else ""
        return Fault("format", f"{what} cannot be read{why}; its first bytes: {_shown(found.unreadable)}")
    if found.finish_reason is not None and found.finish_reason not in _ENDED:
        return Fault("engine_error", f"the server ended the answer for a reason of its own: {found.finish_reason!r}")
    return None if found.is_well_ended else _cut(exchange, found)


_UNREACHED = frozenset({"connect_failed", "connect_timeout", "not_http"})


def _unreached(exchange: Exchange, limits: Limits) -> Fault:
    words = f": {exchange.fault}" if exchange.fault else ""
    if exchange.ending == "connect_timeout":
        return Fault("timeout", f"connecting: no connection within {limits.connect_s:g} s{words}", "timeout")
    if exchange.ending == "not_http":
        return Fault("protocol", f"what answers does not speak HTTP{words}")
    return Fault("connection", f"no connection to the server{words}")


def _late(exchange: Exchange, limits: Limits) -> Fault:
    if exchange.ending == "first_token_timeout":
        message = f"first token: no generated content within {limits.first_token_s:g} s of sending"
    else:
        message = f"whole answer: not complete within {limits.request_s:g} s of sending"
    return Fault("timeout", message, "timeout")


def _refused(status: int | None, found: Received, exchange: Exchange) -> Fault:
    """An error in the server's words, or a status that says no in none."""
    is_refusal = status is not None and status >= 300
    error = found.error or ServerError(_shown(found.unreadable or b"") if found.unreadable else "without words")
    kind = f" ({error.kind})" if error.kind else ""
    where = f"HTTP {status}" if is_refusal else "error inside the stream" if found.is_stream else "error in the body"
    message = f"{where}: {error.message[:2000]}{kind}"
    if error.kind in _TOO_LONG_KINDS or _TOO_LONG.search(error.message):
        return Fault("too_long", message, "not_started")
    if is_refusal and status is not None and status < 500 and status not in BUSY:
        return Fault("protocol", message)
    return Fault("engine_error", message)


def _cut(exchange: Exchange, found: Received) -> Fault:
    inside = f"; it ends inside an event: {_shown(found.cut_event)}" if found.cut_event else ""
    if exchange.ending == "closed":
        words = f" ({exchange.fault})" if exchange.fault else ""
        return Fault("connection", f"the connection ended before the answer was complete{words}{inside}")
    if not found.is_stream:
        return Fault("truncation", "the server answered with an empty body")
    return Fault("truncation", f"the stream ended with neither a reason to finish nor the end marker{inside}")


def _shown(raw: bytes) -> str:
    return raw[:RAW_BYTES].decode("utf-8", "backslashreplace")
