"""Keeps a server from finding a prompt in its cache: the kind's own request field, or an unlike line in front of it.

A nonce changes the prompt, so that its tokens are counted and said; a request field leaves the prompt as it is.
"""

from __future__ import annotations

import secrets
from typing import Literal, NamedTuple

import msgspec

from collector.contract.protocol import ServerChoice
from collector.contract.server_kinds import KINDS

from .base import Prompt

ColdMethod = Literal["warm", "request", "nonce", "nothing_to_reuse"]
"""warm: what is found in the cache is part of the trial; nothing_to_reuse: the kind keeps no prompts."""


class Cold(NamedTuple):
    """What one request carries so that it is cold. nonce: a line to put in front of its first message."""

    fields: dict[str, str | bool]
    nonce: str | None


def cold_method(server: ServerChoice) -> ColdMethod:
    """Return how requests to a server are kept cold."""
    if server.cache_state == "warm":
        return "warm"
    facts = KINDS[server.kind]
    if server.cold_by == "nonce":
        return "nonce"
    if facts.cold_field is not None:
        return "request"
    return "nonce" if facts.has_prompt_cache else "nothing_to_reuse"


class ColdRequests:
    """Draws what makes each request of one pass unlike any before it, in this pass and in every other."""

    def __init__(self, server: ServerChoice) -> None:
        self._kind = server.kind
        self.method = cold_method(server)
        self._pass_part = secrets.token_hex(8)
        self._count = 0

    def next(self) -> Cold:
        """Return what the next request carries."""
        self._count += 1
        drawn = f"{self._pass_part}{self._count:06d}"
        field = KINDS[self._kind].cold_field
        if self.method == "request" and field is not None:
            return Cold({field.name: drawn if field.value is None else field.value}, None)
        return Cold({}, f"[{drawn}]\n" if self.method == "nonce" else None)


def with_nonce(prompt: Prompt, nonce: str) -> Prompt:
    """Return the prompt with a line in front of its first message, whichever that is."""
    if prompt.system:
        return msgspec.structs.replace(prompt, system=nonce + prompt.system)
    if prompt.examples:
        first = msgspec.structs.replace(prompt.examples[0], user=nonce + prompt.examples[0].user)
        return msgspec.structs.replace(prompt, examples=[first, *prompt.examples[1:]])
    return msgspec.structs.replace(prompt, user=nonce + prompt.user)
