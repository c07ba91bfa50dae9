"""Prompts that do not fit are answered here, by one rule for every engine that has a tokenizer: nothing is sent.

A server may cut such a prompt, or take it and answer nobody any more, instead of refusing it.
"""

from __future__ import annotations

from collections.abc import Mapping

from collector.contract.protocol import Generation
from collector.contract.records.requests import TokenCountSource

from .base import Answer, EncodedPrompt, Wire


def claimed_context_tokens(claims: Mapping[str, str]) -> int | None:
    """Return the context of one request that a server claims, null where it claims none.

    Where the context is divided among slots, the kind's claim is that of one slot.
    """
    told = claims.get("context_tokens", "")
    return int(told) if told.isdecimal() and int(told) > 0 else None


def refused(
    prompt: EncodedPrompt, generation: Generation, limit: int | None, *, intended_ns: int, tokens: int | None = None,
    source: TokenCountSource = "token_ids", wire: Wire | None = None,
) -> Answer | None:  # fmt: skip
    """Return the answer of a prompt that does not fit with its output, null for one that does.

    limit: of the context that holds, null where none is known. tokens: of the prompt as it would be sent, where that
    is more than its own ids.
    """
    sent = len(prompt.token_ids) if tokens is None else tokens
    if limit is None or sent + generation.max_new_tokens <= limit:
        return None
    return Answer(
        prompt=prompt, intended_ns=intended_ns, token_count_source=source, finish_reason="not_started",
        request_outcome="too_long", failure_cause="too_long", wire=wire,
        failure_message=f"{sent} prompt tokens + {generation.max_new_tokens} output tokens exceed the context of "
        f"{limit} tokens",
    )  # fmt: skip
