"""Batches of the transformers engine: tokens as alone, who shares a batch, stamps, limits, failures, the self-check."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import groupby, pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from collector.batch_check import SpoiledAnswers, compared, require_answers
from collector.clock import FakeClock, SystemClock
from collector.contract.errors import DossierError
from collector.decode_steps import DecodeSteps, row_steps
from collector.engines import _decode
from collector.engines._batching import Padded, batches_by_length, pad_left, pad_token
from collector.engines.base import Answer, EncodedPrompt, EngineSetup, Load, Padding
from collector.engines.transformers_engine import TransformersEngine, create

Maker = Callable[..., EngineSetup]
DEVICES = [
    "cpu",
    pytest.param(
        "cuda:0",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")],
    ),
]


def loaded(setup: EngineSetup, clock: Any = None) -> TransformersEngine:
    engine = create(setup, clock or SystemClock())
    engine.load()
    return engine


def prompt_of(length: int, name: str) -> EncodedPrompt:
    draw = random.Random(f"{length}/{name}")
    ids = [256, *(draw.randrange(256) for _ in range(length - 1))]
    return EncodedPrompt(document_id=name, rendered="", token_ids=ids, start_token_count=1)


def prompts_of(*lengths: int) -> list[EncodedPrompt]:
    return [prompt_of(length, f"d{index}") for index, length in enumerate(lengths)]


def by_document(answers: Any) -> dict[str, Answer]:
    return {answer.prompt.document_id: answer for answer in answers}


MIXED = (40, 7, 90, 23, 61, 12, 33, 75, 18, 52, 28)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("model", "attention"), [("llama", "sdpa"), ("llama", "eager"), ("gemma", "sdpa")])
def test_c03_padded_rows_answer_as_alone_and_as_generate_does(
    make_setup: Maker, model: str, attention: str, device: str
) -> None:
    """Absolute and sliding-window attention, eleven lengths, batches of 4: every token is the same."""
    engine = loaded(make_setup(model, attention=attention, device=device))
    prompts = prompts_of(*MIXED)
    alone = by_document(engine.answers(prompts, "measure"))
    together = by_document(engine.answers(prompts, "measure", Load(batch=4)))
    assert {name: a.token_ids for name, a in together.items()} == {name: a.token_ids for name, a in alone.items()}
    assert max(answer.padding_tokens or 0 for answer in together.values()) > 0
    parts, _ = engine._loaded()
    padded = pad_left([prompt.token_ids for prompt in prompts], 257)
    ids, mask = torch.tensor(padded.token_ids), torch.tensor(padded.mask)
    whole = parts.model.generate(
        ids.to(device), attention_mask=mask.to(device), do_sample=False, max_new_tokens=12, pad_token_id=257
    )
    for row, prompt in zip(whole[:, ids.shape[1] :].tolist(), prompts, strict=True):
        own = together[prompt.document_id].token_ids
        assert row[: len(own)] == own


def test_rows_that_ended_wait_and_are_neither_counted_nor_stamped(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama", max_new_tokens=12))
    prompts = prompts_of(20, 24, 30, 40)
    free = by_document(engine.answers(prompts, "measure"))
    parts, decoder = engine._loaded()
    stop = free["d1"].token_ids[3]
    parts.model.generation_config.eos_token_id = [stop]
    engine._parts = (parts, type(decoder)(parts.model, device="cpu", clock=SystemClock()))
    alone = by_document(engine.answers(prompts, "measure"))
    together = by_document(engine.answers(prompts, "measure", Load(batch=4)))
    lengths = {name: answer.output_tokens for name, answer in together.items()}
    assert lengths == {name: answer.output_tokens for name, answer in alone.items()}
    assert len(set(lengths.values())) > 1, "the rows end in different steps"
    ended = min(together.values(), key=lambda answer: answer.output_tokens or 0)
    assert (ended.finish_reason, ended.token_ids[-1]) == ("end_token", stop)
    longest = max(together.values(), key=lambda answer: answer.output_tokens or 0)
    assert (ended.last_token_ns or 0) < (longest.last_token_ns or 0) <= (ended.done_ns or 0)
    assert len(ended.gaps_ns) == len(ended.token_ids) - 1


def test_rows_share_sending_and_first_step_and_a_batch_starts_when_the_one_before_is_complete(
    make_setup: Maker,
) -> None:
    engine = loaded(make_setup("llama"))
    answers = list(engine.answers(prompts_of(*MIXED), "measure", Load(batch=4)))
    assert sorted(answer.prompt.document_id for answer in answers) == sorted(f"d{i}" for i in range(len(MIXED)))
    earlier_ns = 0
    for number, rows in groupby(answers, key=lambda answer: answer.batch_number):
        batch = list(rows)
        assert [answer.batch_row for answer in batch] == list(range(len(batch)))
        assert len({(a.intended_ns, a.sent_ns, a.first_token_ns) for a in batch}) == 1
        assert batch[0].intended_ns >= earlier_ns, number
        stamps = [batch[0].intended_ns, batch[0].sent_ns, batch[0].first_token_ns]
        assert stamps == sorted(stamp for stamp in stamps if stamp is not None)
        dones = [answer.done_ns or 0 for answer in batch]
        assert dones == sorted(dones)
        assert dones[0] >= max(answer.last_token_ns or 0 for answer in batch)
        assert min(a.padding_tokens for a in batch if a.padding_tokens is not None) == 0
        earlier_ns = dones[-1]
    assert len({answer.batch_number for answer in answers}) == 3


@given(st.lists(st.integers(1, 60), max_size=40), st.integers(2, 9))
def test_neighbours_in_length_share_a_batch_and_the_longest_fill_theirs(lengths: list[int], size: int) -> None:
    prompts = prompts_of(*lengths)
    batches = batches_by_length(prompts, size)
    assert sorted(p.document_id for batch in batches for p in batch) == sorted(p.document_id for p in prompts)
    assert all(len(batch) == size for batch in batches) or sum(len(batch) < size for batch in batches) == 1
    ranges = sorted((len(batch[0].token_ids), len(batch[-1].token_ids), len(batch)) for batch in batches)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(ranges))
    if len(prompts) >= size:
        assert any(len(b) == size and max(map(len, (p.token_ids for p in b))) == max(lengths) for b in batches)
    firsts = [min(int(p.document_id[1:]) for p in batch) for batch in batches]
    assert firsts == sorted(firsts), "batches run in the order of the pass, not the shortest first"


def test_padding_stands_on_the_left_takes_no_position_and_is_masked() -> None:
    padded = pad_left([[5, 6, 7], [8]], 0)
    assert padded == Padded(
        token_ids=[[5, 6, 7], [0, 0, 8]], mask=[[1, 1, 1], [0, 0, 1]], positions=[[0, 1, 2], [0, 0, 0]]
    )


class Tokens:
    """The special tokens of a tokenizer."""

    def __init__(self, pad: int | None, unk: int | None, eos: int | None) -> None:
        self.pad_token_id, self.unk_token_id, self.eos_token_id = pad, unk, eos


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        (Tokens(1, 2, 3), (1, "tokenizer")),
        (Tokens(0, 2, 3), (0, "tokenizer")),
        (Tokens(None, 2, 3), (2, "unknown_token")),
        (Tokens(None, 0, 3), (0, "unknown_token")),
        (Tokens(None, None, 3), (3, "end_token")),
        (Tokens(None, None, None), (9, "end_token")),
    ],
)
def test_c03_the_pad_token_is_the_tokenizers_own_else_unknown_else_end(tokens: Tokens, found: tuple[int, str]) -> None:
    assert pad_token(tokens, [9, 11], model="m") == found


def test_c03_a_model_without_any_usable_pad_token_is_refused_by_name() -> None:
    with pytest.raises(DossierError, match="tiny has no pad, unknown or end token") as caught:
        pad_token(Tokens(None, None, None), [], model="tiny")
    assert "batches" in caught.value.next_step


def test_c17_prompts_that_do_not_fit_join_no_batch(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama-short", max_new_tokens=10))
    answers = list(engine.answers(prompts_of(20, 60, 30, 200, 54), "measure", Load(batch=4)))
    refused = [answer for answer in answers if answer.request_outcome == "too_long"]
    assert [answer.prompt.document_id for answer in refused] == ["d1", "d3"]
    assert {(a.sent_ns, a.output_tokens, a.padding_tokens, a.finish_reason) for a in refused} == {
        (None, None, None, "not_started")
    }
    assert [a.batch_row for a in answers if a.request_outcome == "completed"] == [0, 1, 2]


def test_a_fault_fails_every_row_of_its_batch_and_the_next_batch_is_answered(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama"))
    bad = EncodedPrompt(document_id="bad", rendered="", token_ids=[256, 9999], start_token_count=1)
    answers = by_document(engine.answers([bad, *prompts_of(3, 30, 31)], "measure", Load(batch=2)))
    assert {name: a.request_outcome for name, a in answers.items()} == {
        "bad": "failed", "d0": "failed", "d1": "completed", "d2": "completed",
    }  # fmt: skip
    assert (answers["d0"].failure_cause, answers["d0"].exception_class) == ("engine_error", "IndexError")
    assert (answers["d0"].batch_number, answers["bad"].batch_number) == (0, 0)


@pytest.mark.parametrize(
    "fault",
    [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("DefaultCPUAllocator: can't allocate memory")],
)
def test_memory_that_runs_out_in_a_batch_ends_the_pass(make_setup: Maker, fault: Exception) -> None:
    engine = loaded(make_setup("llama"))

    def refuse(*_: Any, **__: Any) -> Any:
        raise fault

    engine._loaded()[0].model.register_forward_pre_hook(refuse)
    with pytest.raises(type(fault)):
        list(engine.answers(prompts_of(5, 6), "measure", Load(batch=2)))


class TickingClock(FakeClock):
    """One second passes whenever someone looks."""

    def monotonic_ns(self) -> int:
        self.advance_ns(10**9)
        return super().monotonic_ns()


def test_a_batch_over_its_time_limit_ends_the_rows_that_still_generate(make_setup: Maker) -> None:
    setup = make_setup("llama", request_s=4.0)
    engine = loaded(setup, TickingClock())
    prompts = prompts_of(20, 24)
    free = by_document(loaded(make_setup("llama")).answers(prompts, "measure"))
    parts, decoder = engine._loaded()
    stop = free["d0"].token_ids[1]
    assert stop not in free["d1"].token_ids[:4]
    parts.model.generation_config.eos_token_id = [stop]
    engine._parts = (parts, type(decoder)(parts.model, device="cpu", clock=TickingClock()))
    answers = by_document(engine.answers(prompts, "measure", Load(batch=2)))
    assert (answers["d0"].request_outcome, answers["d0"].output_tokens) == ("completed", 2)
    late = answers["d1"]
    assert (late.request_outcome, late.finish_reason, late.failure_cause) == ("failed", "timeout", "timeout")
    assert late.token_ids == free["d1"].token_ids[:4]


def test_live_rows_are_counted_per_step_and_sum_to_the_output_tokens(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama"))
    parts, decoder = engine._loaded()
    prompts = prompts_of(*MIXED)
    free = by_document(engine.answers(prompts, "measure"))
    parts.model.generation_config.eos_token_id = [free["d1"].token_ids[3], free["d4"].token_ids[5]]
    engine._parts = (parts, type(decoder)(parts.model, device="cpu", clock=SystemClock()))
    forwards: list[int] = []
    parts.model.register_forward_pre_hook(lambda *_: forwards.append(1))
    steps = DecodeSteps(batch=4)
    answers = list(engine.answers(prompts, "measure", Load(batch=4)))
    for answer in answers:
        steps.take(answer)
    live_rows = steps.live_rows()
    assert row_steps(live_rows) == sum(answer.output_tokens or 0 for answer in answers)
    assert sum(live_rows.values()) == len(forwards), "as many steps as the model was really asked for"
    assert set(live_rows) <= {"1", "2", "3", "4"}


# the self-check


def checked(engine: TransformersEngine, prompts: list[EncodedPrompt]) -> Any:
    alone = by_document(engine.answers(prompts, "warmup"))
    together = by_document(engine.answers(prompts, "warmup", Load(batch=len(prompts))))
    return compared(alone, together, padding=engine.padding(), batch=len(prompts))


def test_c03_the_self_check_passes_with_left_padding_though_pad_and_end_token_are_one(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama"))
    assert engine._loaded()[0].encoder.tokenizer.pad_token_id == 257, "pad is the end token"
    engine._loaded()[0].encoder.tokenizer.padding_side = "right"  # a tokenizer's default cannot change it
    check = checked(engine, prompts_of(*MIXED[:8]))
    assert (check.differing_document_ids, check.emptied_document_ids) == ([], [])
    assert (check.padding_side, check.pad_token_source, check.batch) == ("left", "tokenizer", 8)
    require_answers(check)


def pad_right_unmasked(rows: Any, pad_id: int) -> Padded:
    length = max(len(row) for row in rows)
    return Padded(
        token_ids=[list(row) + [pad_id] * (length - len(row)) for row in rows],
        mask=[[1] * length for _ in rows],
        positions=[list(range(length)) for _ in rows],
    )


def test_c03_with_right_padding_and_no_mask_the_self_check_stops(
    make_setup: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = loaded(make_setup("llama"))
    monkeypatch.setattr(_decode, "pad_left", pad_right_unmasked)
    check = checked(engine, prompts_of(*MIXED[:8]))
    assert len(check.differing_document_ids) == 7, "all but the longest, which is not padded"
    assert len(check.first_difference_tokens) == 7
    with pytest.raises(SpoiledAnswers, match=r"[5-7] of 8 documents are answered otherwise from the first token on"):
        require_answers(check)


def answer(name: str, text: str, *ids: int, outcome: Any = "completed") -> Answer:
    prompt = EncodedPrompt(document_id=name, rendered="", token_ids=[1], start_token_count=0)
    return Answer(
        prompt=prompt, intended_ns=0, token_count_source="token_ids", finish_reason="end_token",
        request_outcome=outcome, text=text, token_ids=list(ids),
    )  # fmt: skip


def test_c03_answers_that_begin_otherwise_stop_the_pass_where_they_are_more_than_half() -> None:
    alone = {name: answer(name, "text", 5, 6, 7) for name in "abcd"}
    half = {**alone, **{name: answer(name, "other", 9) for name in "ab"}}
    require_answers(compared(alone, half, padding=Padding(side="left", source="tokenizer"), batch=4))
    late = {name: answer(name, "late", 5, 6, 8) for name in "abcd"}
    require_answers(compared(alone, late, padding=Padding(side="left", source="tokenizer"), batch=4))
    most = {**half, "c": answer("c", "other", 9)}
    with pytest.raises(SpoiledAnswers, match="3 of 4 documents are answered otherwise"):
        require_answers(compared(alone, most, padding=Padding(side="left", source="tokenizer"), batch=4))


def test_c03_one_answer_that_became_empty_is_reported_and_two_stop_the_pass() -> None:
    alone = {name: answer(name, "text", 5, 6, 7) for name in "abcd"} | {"e": answer("e", "", outcome="failed")}
    one = {**alone, "a": answer("a", " ", 5, 9)}
    left = Padding(side="left", source="end_token")
    check = compared(alone, one, padding=left, batch=4)
    assert check.checked_document_ids == ["a", "b", "c", "d"]
    assert (check.differing_document_ids, check.first_difference_tokens) == (["a"], [1])
    assert check.emptied_document_ids == ["a"]
    require_answers(check)
    two = {**one, "c": answer("c", "", outcome="failed")}
    with pytest.raises(SpoiledAnswers, match="2 of 4 documents have an answer alone and none in a batch of 4: a, c"):
        require_answers(compared(alone, two, padding=left, batch=4))
