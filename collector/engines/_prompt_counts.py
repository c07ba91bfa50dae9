"""Compares a server's counts of prompt tokens with the local tokenizer's, and says what differs too much."""

from __future__ import annotations

import logging
from importlib.metadata import version

from ._prompting import TemplateEncoder
from ._session import Session
from .base import Answer

COUNT_SHARE, COUNT_TOKENS = 0.02, 8
"""A count further away than this from the local one is worth a warning; either is enough."""
_log = logging.getLogger("prompt_count")


class PromptCounts:
    """The counts of one round of requests."""

    def __init__(self) -> None:
        self._asked = 0
        self._apart: list[tuple[int, str, int, int]] = []

    def take(self, answer: Answer) -> None:
        """Take the count of an answer, where the server told one."""
        told = answer.wire.prompt_tokens if answer.wire is not None else None
        if told is None or answer.wire is None:
            return
        self._asked += 1
        local = len(answer.prompt.token_ids) + (answer.wire.nonce_tokens or 0)
        apart = abs(told - local)
        if apart > COUNT_TOKENS or apart > COUNT_SHARE * local:
            self._apart.append((apart, answer.prompt.document_id, told, local))

    def warn(self, session: Session, encoder: TemplateEncoder) -> None:
        """Log one warning that names both tokenizers and the counts furthest apart; nothing where all are near."""
        if not self._apart:
            return
        _, document_id, told, local = max(self._apart)
        claimed = session.claim.claims.get("version")
        theirs = f"{session.choice.kind}{f' {claimed}' if claimed else ''}"
        _log.warning(
            "the server %r (%s) counts other prompt tokens than the local tokenizer (%s of transformers %s) in %d of "
            "%d requests; furthest apart %s: %d there, %d here", session.choice.name, theirs,
            encoder.tokenizer_class(), version("transformers"), len(self._apart), self._asked, document_id, told, local,
        )  # fmt: skip
