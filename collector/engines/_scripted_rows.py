"""The rows that the scripted engine generates: what each is told to answer, and when its tokens come."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from json import dumps

import msgspec
from msgspec import UNSET

from collector.clock import Clock
from collector.contract.records.requests import FinishReason

from ._script import AnswerScript, ExpectedValues, PassScript, Script
from .base import Answer, EncodedPrompt, EngineSetup, longest_text

DEFAULT_FIRST_TOKEN_MS = 0.0
DEFAULT_GAP_MS = 0.0


@dataclass
class Row:
    """What one row generates, and when its tokens came."""

    text: str | None
    wanted: int
    finish_reason: FinishReason
    first_ns: int
    gap_ns: int
    stamps_ns: list[int] = field(default_factory=list)
    live_rows: list[int] = field(default_factory=list)
    is_late: bool = False


class ScriptedRows:
    """Answers rows as the script says, by the worker's clock."""

    def __init__(
        self, setup: EngineSetup, script: Script, part: PassScript, expected: ExpectedValues, clock: Clock
    ) -> None:
        self._setup = setup
        self._script = script
        self._part = part
        self._expected = expected
        self._clock = clock
        self._is_embedding = setup.engine.answers_by == "embedding"

    def fits(self, prompt: EncodedPrompt) -> bool:
        """Return whether prompt and output limit fit the context."""
        limit = self._context_tokens()
        output = 0 if self._is_embedding else self._setup.generation.max_new_tokens
        return limit is None or longest_text(prompt).tokens + output <= limit

    def _context_tokens(self) -> int | None:
        return self._setup.generation.context_limit(self._script.context_limit_tokens)

    def too_long(self, prompt: EncodedPrompt) -> Answer:
        """Return the answer of a prompt that does not fit."""
        return Answer(
            prompt=prompt, intended_ns=self._clock.monotonic_ns(), token_count_source="scripted",
            finish_reason="not_started", request_outcome="too_long", failure_cause="too_long",
            failure_message=f"{self._wanted_tokens(prompt)} tokens exceed the context of {self._context_tokens()}",
        )  # fmt: skip

    def _wanted_tokens(self, prompt: EncodedPrompt) -> str:
        name, tokens = longest_text(prompt)
        return f"{name}: {tokens}" if self._is_embedding else f"{tokens} + {self._setup.generation.max_new_tokens}"

    def together(self, prompts: Sequence[EncodedPrompt], *, is_batch: bool) -> list[Answer]:
        """Return the answers of one batch, or of one request, in the order of the rows."""
        told_rows = [self._told(prompt, is_batch=is_batch) for prompt in prompts]
        sent_ns = self._clock.monotonic_ns()
        rows = [self._row(told, prompt) for prompt, told in zip(prompts, told_rows, strict=True)]
        self._generate([row for row in rows if row is not None], sent_ns)
        return [
            self._failed(prompt, told, sent_ns) if row is None and self.fits(prompt)
            else self.too_long(prompt) if row is None
            else self._answered(prompt, row, sent_ns)
            for prompt, told, row in zip(prompts, told_rows, rows, strict=True)
        ]  # fmt: skip

    def _told(self, prompt: EncodedPrompt, *, is_batch: bool) -> AnswerScript:
        told = self._script.answer(self._part, prompt.document_id)
        if not is_batch or told.text_in_batch is UNSET:
            return told
        return msgspec.structs.replace(told, text=told.text_in_batch)

    def _row(self, told: AnswerScript, prompt: EncodedPrompt) -> Row | None:
        """Return what a row will generate, or null for one that does not start."""
        if not self.fits(prompt) or (told.failure_cause is not UNSET and told.failure_cause is not None):
            return None
        text = self._text(told, prompt.document_id)
        if self._is_embedding:  # one step gives the order of all candidates
            first_ms = DEFAULT_FIRST_TOKEN_MS if told.first_token_ms is UNSET else told.first_token_ms
            return Row(text=text, wanted=1, finish_reason="embedded", first_ns=round(first_ms * 1e6), gap_ns=0)
        words = (text or "").split()
        wanted = len(words) if told.output_tokens is UNSET else told.output_tokens
        max_new = self._setup.generation.max_new_tokens
        finish_reason: FinishReason = "end_token" if told.finish_reason is UNSET else told.finish_reason
        if wanted > max_new:
            wanted, finish_reason, text = max_new, "length", " ".join(words[:max_new])
        return Row(
            text=text, wanted=wanted, finish_reason=finish_reason,
            first_ns=round((DEFAULT_FIRST_TOKEN_MS if told.first_token_ms is UNSET else told.first_token_ms) * 1e6),
            gap_ns=round((DEFAULT_GAP_MS if told.gap_ms is UNSET else told.gap_ms) * 1e6),
        )  # fmt: skip

    def _generate(self, rows: Sequence[Row], sent_ns: int) -> None:
        """Let time pass step by step; each row still generating gets the stamp of the step."""
        give_up_ns = sent_ns + round(self._setup.limits.request_s * 1e9)
        due_ns = sent_ns
        for step in range(max((row.wanted for row in rows), default=0)):
            live = [row for row in rows if row.wanted > step]
            due_ns += max(row.gap_ns if step else row.first_ns for row in live)
            self._clock.sleep_until_ns(min(due_ns, give_up_ns))
            if due_ns > give_up_ns:
                for row in live:
                    row.is_late = True
                return
            now_ns = self._clock.monotonic_ns()
            for row in live:
                row.stamps_ns.append(now_ns)
                if len(rows) > 1:
                    row.live_rows.append(len(live))

    def _failed(self, prompt: EncodedPrompt, told: AnswerScript, sent_ns: int) -> Answer:
        return Answer(
            prompt=prompt, intended_ns=sent_ns, sent_ns=sent_ns, done_ns=self._clock.monotonic_ns(),
            token_count_source="scripted", finish_reason="error", request_outcome="failed",
            failure_cause=None if told.failure_cause is UNSET else told.failure_cause,
            failure_message="scripted" if told.failure_message is UNSET else told.failure_message,
            exception_class="ScriptedFailure",
        )  # fmt: skip

    def _answered(self, prompt: EncodedPrompt, row: Row, sent_ns: int) -> Answer:
        stamps = [] if self._is_embedding else row.stamps_ns
        return Answer(
            prompt=prompt, intended_ns=sent_ns, sent_ns=sent_ns, done_ns=self._clock.monotonic_ns(),
            first_token_ns=stamps[0] if stamps else None, last_token_ns=stamps[-1] if stamps else None,
            output_tokens=None if self._is_embedding else len(stamps), token_count_source="scripted",
            finish_reason="timeout" if row.is_late else row.finish_reason,
            request_outcome="failed" if row.is_late else "completed", failure_cause="timeout" if row.is_late else None,
            failure_message=f"no answer within {self._setup.limits.request_s} s" if row.is_late else None,
            gaps_ns=_gaps(stamps), step_stamps_ns=stamps, step_live_rows=row.live_rows if stamps else [],
            text=None if row.is_late else row.text,
            token_ids=[zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in (row.text or "").split()],
        )  # fmt: skip

    def _text(self, told: AnswerScript, document_id: str) -> str | None:
        if told.text is not UNSET:
            return told.text
        if document_id in self._expected.texts:
            return self._expected.texts[document_id]
        values: dict[str, str | None] = dict(self._expected.fields.get(document_id, {}))
        if told.replace is not UNSET:
            values |= told.replace
        for name in [] if told.drop is UNSET else told.drop:
            values.pop(name, None)
        return dumps(values, ensure_ascii=False)


def _gaps(stamps: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(stamps)]
