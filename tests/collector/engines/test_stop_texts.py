"""An answer ends after the first stop text, alone and in a batch, and keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from collector.clock import SystemClock
from collector.engines import transformers_engine
from collector.engines._prompting import TemplateEncoder
from collector.engines.base import Answer, EngineSetup, Load, Prompt

PROMPTS = [Prompt(document_id=f"d{i}", system="", user="abc " * i) for i in (1, 3, 7, 9)]


def answers(setup: EngineSetup, batch: int = 1) -> dict[str, Answer]:
    engine = transformers_engine.create(setup, SystemClock())
    engine.load()
    return {one.prompt.document_id: one for one in engine.answers(engine.encode(PROMPTS), "measure", Load(batch=batch))}


@pytest.mark.parametrize("batch", [1, 4])
def test_an_answer_ends_with_the_first_stop_text_whatever_its_last_token_brought(
    make_setup: Callable[..., EngineSetup], batch: int
) -> None:
    setup = make_setup("llama", max_new_tokens=24)
    whole = answers(setup)
    # Two characters from the middle of the longest answer: they may lie across tokens.
    longest = max(whole.values(), key=lambda one: len(one.text or "")).text or ""
    stop = longest[len(longest) // 2 :][:2]
    generation = msgspec.structs.replace(setup.generation, stop_after=["never in it", stop])
    cut = answers(msgspec.structs.replace(setup, generation=generation), batch)
    for document_id, full in whole.items():
        text, shorter = full.text or "", cut[document_id]
        if stop in text:
            assert shorter.finish_reason == "stop_text"
            assert text.startswith(shorter.text or "")
            assert shorter.text == text[: text.index(stop) + len(stop)]
            assert (shorter.output_tokens or 0) <= (full.output_tokens or 0)
        else:
            assert (shorter.text, shorter.finish_reason) == (text, full.finish_reason)
    assert any(one.finish_reason == "stop_text" for one in cut.values())


class _Bytes:
    """A tokenizer with a token per byte."""

    chat_template = None

    def decode(self, token_ids: list[int], skip_special_tokens: bool) -> str:
        return bytes(token_ids).decode(errors="replace")


def test_a_stop_text_of_several_bytes_a_character_is_seen_when_its_last_byte_is_there() -> None:
    tokenizer: Any = _Bytes()
    has_stopped = TemplateEncoder(tokenizer, None).stop_check(["»."])
    ids = list("«ja».".encode())
    assert [has_stopped(ids[: end + 1]) for end in range(len(ids))] == [False] * (len(ids) - 1) + [True]


def test_without_stop_texts_nothing_is_decoded() -> None:
    class Fails(_Bytes):
        def decode(self, token_ids: list[int], skip_special_tokens: bool) -> str:
            raise AssertionError("decoded")

    tokenizer: Any = Fails()
    assert not TemplateEncoder(tokenizer, None).stop_check([])([1, 2, 3])
