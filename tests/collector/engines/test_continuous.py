"""Continuous batching in process: the own loop's answers, each once, in order, timed by the engine; small faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.clock import SystemClock
from collector.contract.errors import DossierError
from collector.contract.protocol import ContinuousChoice, Generation, Limits
from collector.contract.records import PassBegin, PassEnd, Record, Request, Variant
from collector.contract.steps import generating_over_time, read_steps, steps_path
from collector.engines import transformers_engine
from collector.engines._continuous import BlockPool, Output, blocks_needed
from collector.engines.base import Answer, EngineSetup, Load, Prompt
from collector.engines.transformers_engine import TransformersEngine
from collector.run_options import RunOptions
from collector.workers import InProcessWorkerFactory
from reporter.check import check

PROMPTS = [Prompt(document_id=f"d{i}", system="", user="abc " * (1 + 5 * i % 17)) for i in range(10)]
POOL = ContinuousChoice(block_size=16, num_blocks=64, max_batch_tokens=64)
Maker = Callable[..., TransformersEngine]


@pytest.fixture(scope="module")
def engines() -> Iterator[list[TransformersEngine]]:
    """Engines whose threads are ended with the module."""
    engines: list[TransformersEngine] = []
    yield engines
    for engine in engines:
        engine.close()


@pytest.fixture(scope="module")
def loaded(make_setup: Callable[..., EngineSetup], engines: list[TransformersEngine]) -> Maker:
    """Load an engine with a pool of its own."""

    def load(model: str = "llama", *, pool: ContinuousChoice = POOL, **changes: Any) -> TransformersEngine:
        setup = make_setup(model, max_new_tokens=changes.pop("max_new_tokens", 12))
        engine_choice = msgspec.structs.replace(setup.engine, continuous=pool)
        setup = msgspec.structs.replace(setup, engine=engine_choice, **changes)
        engine = transformers_engine.create(setup, SystemClock())
        assert isinstance(engine, TransformersEngine)
        engine.load()
        engines.append(engine)
        return engine

    return load


@pytest.fixture(scope="module")
def whole(loaded: Maker) -> TransformersEngine:
    """An engine that no test breaks."""
    return loaded()


def by_id(answers: Sequence[Answer]) -> dict[str, Answer]:
    assert len({one.prompt.document_id for one in answers}) == len(answers)
    return {one.prompt.document_id: one for one in answers}


def alone(engine: TransformersEngine, prompts: Sequence[Prompt] = PROMPTS) -> dict[str, Answer]:
    return by_id(list(engine.answers(engine.encode(prompts), "warmup")))


def together(engine: TransformersEngine, concurrency: int = 4, prompts: Sequence[Prompt] = PROMPTS) -> list[Answer]:
    return list(engine.answers(engine.encode(prompts), "measure", Load(concurrency=concurrency)))


def pool_of(engine: TransformersEngine) -> BlockPool:
    assert engine._pool is not None
    return engine._pool


def break_step(engine: TransformersEngine, fault: Exception, *, at: int) -> None:
    """Let the model raise in its `at`-th step from now, once."""
    steps = iter(range(1, at + 1))

    def hook(*_: Any) -> None:
        if next(steps, 0) == at:
            raise fault

    engine._loaded()[0].model.model.layers[0].register_forward_pre_hook(hook)


def slow_down(engine: TransformersEngine, step_s: float) -> None:
    """Let each step of the model wait."""
    engine._loaded()[0].model.model.layers[0].register_forward_pre_hook(lambda *_: time.sleep(step_s))


@pytest.mark.parametrize("model", ["llama", "gemma"])
def test_answers_are_those_of_the_own_loop_each_once_and_counted_from_ids(loaded: Maker, model: str) -> None:
    engine = loaded(model)
    own = alone(engine)
    for concurrency in (2, 4, 16):
        found = by_id(together(engine, concurrency))
        assert found.keys() == own.keys()
        for document_id, answer in found.items():
            expected = own[document_id]
            assert (answer.token_ids, answer.text) == (expected.token_ids, expected.text)
            assert answer.finish_reason == expected.finish_reason
            assert answer.output_tokens == len(answer.token_ids) == len(answer.step_stamps_ns)


def test_requests_are_sent_in_the_order_of_the_pass_and_never_more_than_asked_are_under_way(
    whole: TransformersEngine,
) -> None:
    answers = together(whole, 3)
    sent = {one.prompt.document_id: one.sent_ns or 0 for one in answers}
    assert sorted(sent, key=lambda name: sent[name]) == [prompt.document_id for prompt in PROMPTS]
    for one in answers:
        under_way = [each for each in answers if (each.sent_ns or 0) <= (one.sent_ns or 0) < (each.last_token_ns or 0)]
        assert 1 <= len(under_way) <= 3


def test_times_by_the_engine_lie_within_the_requests_own(whole: TransformersEngine) -> None:
    """Queue and prefill end at the first token, decode at the end; the handing over and the reading come on top."""
    for answer in together(whole, 2):
        wire = answer.wire
        assert wire is not None
        assert None not in (wire.engine_queue_ns, wire.engine_prefill_ns, wire.engine_decode_ns)
        to_first = (wire.engine_queue_ns or 0) + (wire.engine_prefill_ns or 0)
        assert answer.sent_ns is not None
        assert answer.first_token_ns is not None
        assert answer.last_token_ns is not None
        assert answer.done_ns is not None
        assert 0 < to_first <= answer.first_token_ns - answer.sent_ns + 1000
        assert (wire.engine_decode_ns or 0) >= answer.last_token_ns - answer.first_token_ns - 1000
        assert answer.intended_ns <= answer.sent_ns < answer.first_token_ns <= answer.last_token_ns <= answer.done_ns
        assert (wire.prompt_tokens, wire.prompt_evidence) == (len(answer.prompt.token_ids), "token_ids")


def test_a_waiting_request_has_its_wait_in_the_engines_queue(whole: TransformersEngine) -> None:
    """64 tokens a step hold the longest prompts only one after the other: some wait for a step or more."""
    waits = [one.wire.engine_queue_ns or 0 for one in together(whole, 10) if one.wire]
    assert max(waits) > 2 * min(waits)


def test_an_answer_ends_after_a_stop_text_as_in_the_own_loop(loaded: Maker) -> None:
    some = PROMPTS[:6]
    full = alone(loaded(max_new_tokens=24), some)
    longest = max(full.values(), key=lambda one: len(one.text or "")).text or ""
    stop = longest[len(longest) // 2 :][:2]
    engine = loaded(generation=Generation(max_new_tokens=24, stop_after=["never in it", stop]))
    own, found = alone(engine, some), by_id(together(engine, 3, some))
    assert any(one.finish_reason == "stop_text" for one in found.values())
    for document_id, answer in found.items():
        expected = own[document_id]
        assert (answer.token_ids, answer.finish_reason) == (expected.token_ids, expected.finish_reason)
        assert answer.output_tokens == len(answer.step_stamps_ns)
    again = by_id(
        together(engine, 3, some)
    )  # what the pool still had to say of dropped requests disturbs no later call
    assert {name: one.token_ids for name, one in again.items()} == {name: one.token_ids for name, one in own.items()}


def test_a_request_at_its_time_limit_keeps_its_tokens_and_fails_alone(loaded: Maker) -> None:
    """Each step takes 20 ms: 80 tokens are far behind the limit, whatever else the machine does."""
    engine = loaded(max_new_tokens=80, limits=Limits(request_s=0.05))
    own = alone(loaded(max_new_tokens=80), PROMPTS[:6])
    slow_down(engine, 0.02)
    answers = by_id(together(engine, 4, PROMPTS[:6]))
    assert len(answers) == 6
    for one in answers.values():
        assert (one.request_outcome, one.failure_cause) == ("failed", "timeout")
        assert one.token_ids == own[one.prompt.document_id].token_ids[: len(one.token_ids)]
        assert one.output_tokens == len(one.token_ids) < 80


def test_a_fault_fails_the_requests_under_way_and_the_others_are_answered(loaded: Maker) -> None:
    engine = loaded()
    own = alone(engine)
    break_step(engine, ValueError("a bad step"), at=5)
    answers = by_id(together(engine, 3))
    assert answers.keys() == own.keys()
    failed = [one for one in answers.values() if one.request_outcome == "failed"]
    assert 1 <= len(failed) <= 3
    for one in failed:
        assert (one.failure_cause, one.exception_class, one.failure_message) == (
            "engine_error", "ValueError", "a bad step",
        )  # fmt: skip
        assert one.sent_ns is not None
    for name, one in answers.items():
        assert one in failed or one.token_ids == own[name].token_ids


def test_memory_that_is_gone_ends_the_pass(loaded: Maker) -> None:
    engine = loaded()
    break_step(engine, RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"), at=3)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        together(engine, 3)


def test_a_pool_whose_thread_ends_by_itself_loses_no_request(loaded: Maker) -> None:
    engine = loaded()
    answers = engine.answers(engine.encode(PROMPTS), "measure", Load(concurrency=3))
    first = next(answers)
    pool_of(engine)._manager.stop(block=False, hard_stop=True)
    rest = list(answers)
    assert len(by_id([first, *rest])) == len(PROMPTS)
    assert {one.failure_cause for one in rest if one.request_outcome == "failed"} <= {"engine_error"}
    assert [one for one in rest if one.request_outcome == "completed"]


def test_an_answer_that_is_told_twice_ends_the_pass(loaded: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    real, held = BlockPool.next_output, list[Output]()

    def twice(pool: BlockPool, timeout_s: float) -> Output | None:
        if held:
            return held.pop()
        output = real(pool, timeout_s)
        if output is not None and output.is_finished:
            held.append(output)
        return output

    monkeypatch.setattr(BlockPool, "next_output", twice)
    with pytest.raises(RuntimeError, match="after its end"):
        together(loaded(), 2)


def test_a_request_that_the_pool_forgets_is_ended_at_its_limit(loaded: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    real = BlockPool.next_output

    def forgets_the_first(pool: BlockPool, timeout_s: float) -> Output | None:
        output = real(pool, timeout_s)
        return None if output is not None and output.number == 0 else output

    monkeypatch.setattr(BlockPool, "next_output", forgets_the_first)
    answers = by_id(together(loaded(limits=Limits(request_s=1.0)), 4))
    assert len(answers) == len(PROMPTS)
    assert {name for name, one in answers.items() if one.failure_cause == "timeout"} == {PROMPTS[0].document_id}


def test_evicted_requests_are_answered_alike_told_and_have_no_first_stamp(loaded: Maker) -> None:
    """Ten requests of up to 90 tokens in 12 blocks of 16: some are put back and computed again."""
    engine = loaded(pool=ContinuousChoice(block_size=16, num_blocks=12, max_batch_tokens=64), max_new_tokens=30)
    own = alone(engine)
    with pytest.warns(RuntimeWarning, match="were evicted from the pool"):
        answers = by_id(together(engine, 10))
    evicted = [one for one in answers.values() if one.first_token_ns is None]
    assert evicted
    for one in answers.values():
        assert one.token_ids == own[one.prompt.document_id].token_ids
        assert one.request_outcome == "completed"
    for one in evicted:
        assert len(one.step_stamps_ns) < len(one.token_ids)
        assert one.wire is not None
        assert one.wire.engine_queue_ns is None


def test_a_prompt_that_does_not_fit_is_refused_and_a_pool_too_small_for_one_is_named(
    loaded: Maker, whole: TransformersEngine
) -> None:
    long = Prompt(document_id="long", system="", user="x" * 250)
    answers = by_id(together(whole, 2, [PROMPTS[0], long]))
    assert answers["long"].request_outcome == "too_long"
    assert answers[PROMPTS[0].document_id].request_outcome == "completed"
    small = loaded(pool=ContinuousChoice(block_size=16, num_blocks=4, max_batch_tokens=64))
    with pytest.raises(DossierError, match=r"raise num_blocks under \[engine.continuous\] to"):
        together(small, 2)


def test_a_request_holds_no_more_blocks_than_are_counted_for_it(loaded: Maker, whole: TransformersEngine) -> None:
    """A pool of exactly as many blocks as one request needs answers it."""
    prompt = PROMPTS[6]
    tokens = len(whole.encode([prompt])[0].token_ids) + 12
    pool = ContinuousChoice(block_size=4, num_blocks=blocks_needed(tokens, 4), max_batch_tokens=16)
    engine = loaded(pool=pool)
    assert together(engine, 2, [prompt])[0].token_ids == alone(whole, [prompt])[prompt.document_id].token_ids


def test_without_a_pool_several_at_a_time_are_refused(make_setup: Callable[..., EngineSetup]) -> None:
    engine = transformers_engine.create(make_setup("llama"), SystemClock())
    engine.load()
    with pytest.raises(DossierError, match=r"add \[engine.continuous\]"):
        list(engine.answers(engine.encode(PROMPTS), "measure", Load(concurrency=2)))


def test_the_paged_attention_is_read_back_while_it_runs_and_the_thread_ends_with_close(loaded: Maker) -> None:
    engine = loaded()
    before = threading.active_count()
    assert engine.observe("loaded")[0].deviations == []
    together(engine, 2)
    variant, _ = engine.observe("after_warmup")
    assert variant.attention == "paged|sdpa"
    assert "attention: requested sdpa, found paged|sdpa" in variant.deviations
    assert "cache: requested dynamic, found 64 blocks of 16 tokens, at most 64 in a step" in variant.deviations
    assert threading.active_count() == before + 1
    engine.close()
    assert threading.active_count() == before
    assert engine.observe("after_warmup")[0].attention == "sdpa"


def test_the_pool_is_part_of_the_engines_identity_only_where_there_is_one(
    make_setup: Callable[..., EngineSetup],
) -> None:
    setup = make_setup("llama")
    plain = transformers_engine.identity(setup)
    pooled = msgspec.structs.replace(setup, engine=msgspec.structs.replace(setup.engine, continuous=POOL))
    flags = transformers_engine.identity(pooled).engine_flags
    assert flags.items() - plain.engine_flags.items() == {
        ("continuous", "paged-1"), ("block_size", "16"), ("num_blocks", "64"), ("max_batch_tokens", "64"),
    }  # fmt: skip
    assert not {"continuous", "block_size"} & plain.engine_flags.keys()


def test_a_run_with_several_at_a_time_checks_clean_and_answers_as_one_at_a_time(
    make_trial: Callable[..., Any], fixed_meter: Any, fixed_machine: Any,
    records_of: Callable[[Path], list[Record]], models_dir: Path,
) -> None:  # fmt: skip
    def edit(text: str) -> str:
        engine = 'name = "transformers"\nhas_step_capture = true\n\n[engine.continuous]\nblock_size = 16\n'
        engine += "num_blocks = 128\nmax_batch_tokens = 128"
        text = text.replace('name = "scripted"\nscript = "script.json"', engine)
        text = text.replace('[[variant]]\nname = "bf16"\ndtype = "bfloat16"\n', "")
        return f"{text}\nconcurrencies = [3]\nreference_runs = 1\nreload_check = false\n"

    trial = make_trial(documents=6, model=str(models_dir / "llama"), edit=edit)
    clock = SystemClock()
    factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
    report = trial.run(RunOptions(device="cpu"), clock=clock, factory=factory, machine=fixed_machine)
    assert {ending.outcome for ending in report.endings.values()} == {"completed"}
    checked = check([report.path])
    assert (checked.findings, checked.flags) == ([], [])
    records = records_of(report.path)
    answers: dict[int, dict[str, tuple[str | None, int | None]]] = {}
    for begin in (r for r in records if isinstance(r, PassBegin) and r.variant_name == "fp32" and r.repetition == 1):
        own = [r for r in records if isinstance(r, Request) and (r.pass_id, r.phase) == (begin.pass_id, "measure")]
        answers[begin.concurrency] = {r.document_id: (r.answer_hmac, r.output_tokens) for r in own}
        (end,) = [r for r in records if isinstance(r, PassEnd) and r.pass_id == begin.pass_id]
        late = [
            r
            for r in records
            if isinstance(r, Variant) and (r.pass_id, r.observed_at) == (begin.pass_id, "after_warmup")
        ]
        if begin.concurrency == 1:
            assert (begin.factor, late[0].attention, end.live_row_histogram.keys()) == ("none", "sdpa", {"1"})
            continue
        assert (begin.series, begin.factor, late[0].attention) == ("concurrency", "several", "paged|sdpa")
        assert (end.live_row_steps, end.missing["live_row_steps"]) == (None, "not_applicable")
        assert all(r.engine_queue_ns is not None and r.local_prompt_tokens is None for r in own)
        lines = [line for line in read_steps(steps_path(report.path)) if line.pass_id == begin.pass_id]
        generating = generating_over_time(line for line in lines if line.phase == "measure")
        assert 1 < max(count for _, count in generating) <= begin.concurrency
    assert answers[1] == answers[3]
