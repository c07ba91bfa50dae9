"""The transformers engine on tiny models: tokens as generate gives them, stamps, limits, failures."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from collector.clock import FakeClock, SystemClock
from collector.contract.errors import DeviceFault, DossierError, MissingDependency
from collector.engines import engine_module
from collector.engines.base import Answer, EncodedPrompt, EngineSetup, Prompt
from collector.engines.transformers_engine import TransformersEngine, create, encoder, identity

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


def encoded(token_ids: list[int], document_id: str = "d") -> EncodedPrompt:
    return EncodedPrompt(document_id=document_id, rendered="", token_ids=token_ids, start_token_count=1)


def prompts_of_varied_length(count: int, longest: int) -> list[EncodedPrompt]:
    """Random bytes after a start token: 1 to `longest` tokens."""
    draw = random.Random(3)
    lengths = [1 + round(index * (longest - 2) / (count - 1)) for index in range(count)]
    return [
        encoded([256, *(draw.randrange(256) for _ in range(length))], f"d{index}")
        for index, length in enumerate(lengths)
    ]


def generated(engine: TransformersEngine, prompt: EncodedPrompt, max_new_tokens: int) -> list[int]:
    """The same prompt through the library's own loop."""
    parts, _ = engine._loaded()
    ids = torch.tensor([prompt.token_ids], device=parts.device)
    whole = parts.model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=max_new_tokens
    )
    return [int(each) for each in whole[0, ids.shape[1] :]]


def own_tokens(engine: TransformersEngine, prompt: EncodedPrompt, max_new_tokens: int) -> list[int]:
    _, decoder = engine._loaded()
    return decoder.decode(prompt.token_ids, max_new_tokens=max_new_tokens, limit_ns=10**12).token_ids


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", ["llama", "gemma"])
def test_tokens_equal_generate_on_44_prompts_of_varied_length(make_setup: Maker, model: str, device: str) -> None:
    engine = loaded(make_setup(model, device=device))
    prompts = prompts_of_varied_length(44, 120)
    ours = [own_tokens(engine, prompt, 12) for prompt in prompts]
    assert ours == [generated(engine, prompt, 12) for prompt in prompts]
    assert len({tuple(tokens) for tokens in ours}) > 30, "the prompts are answered differently, so equality says much"


@pytest.mark.parametrize("device", DEVICES)
def test_tokens_equal_generate_in_bfloat16_and_with_eager_attention(make_setup: Maker, device: str) -> None:
    engine = loaded(make_setup("llama", dtype="bfloat16", attention="eager", device=device))
    prompts = prompts_of_varied_length(10, 90)
    assert [own_tokens(engine, p, 10) for p in prompts] == [generated(engine, p, 10) for p in prompts]


def test_any_of_several_end_tokens_ends_the_answer_as_in_generate(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama"))
    parts, decoder = engine._loaded()
    prompt = prompts_of_varied_length(5, 60)[3]
    free = own_tokens(engine, prompt, 12)
    parts.model.generation_config.eos_token_id = [1, free[5]]
    engine._parts = (parts, type(decoder)(parts.model, device="cpu", clock=SystemClock()))
    answer = next(engine.answers([prompt], "measure"))
    assert own_tokens(engine, prompt, 12) == free[: free.index(free[5]) + 1] == generated(engine, prompt, 12)
    assert (answer.finish_reason, answer.request_outcome) == ("end_token", "completed")
    assert answer.output_tokens == free.index(free[5]) + 1, "the end token counts as generated"


def test_the_output_limit_ends_an_answer_as_length(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama", max_new_tokens=5))
    answer = next(engine.answers([encoded([256, 3, 4])], "measure"))
    assert (answer.finish_reason, answer.output_tokens) == ("length", 5)


@pytest.mark.parametrize("device", DEVICES)
def test_stamps_are_ordered_and_gaps_add_up_to_first_and_last_token(make_setup: Maker, device: str) -> None:
    engine = loaded(make_setup("llama", device=device))
    answers = list(engine.answers(prompts_of_varied_length(6, 80), "measure"))
    earlier_ns = 0
    for answer in answers:
        stamps = [answer.intended_ns, answer.sent_ns, answer.first_token_ns, answer.last_token_ns, answer.done_ns]
        known = [stamp for stamp in stamps if stamp is not None]
        assert len(known) == 5
        assert known == sorted(known)
        assert known[0] >= earlier_ns, "one request at a time"
        assert len(answer.gaps_ns) == (answer.output_tokens or 0) - 1
        assert sum(answer.gaps_ns) == known[3] - known[2]
        assert answer.token_count_source == "token_ids"
        earlier_ns = known[4]


class TickingClock(FakeClock):
    """One second passes whenever someone looks."""

    def monotonic_ns(self) -> int:
        self.advance_ns(10**9)
        return super().monotonic_ns()


def test_a_request_over_its_time_limit_is_a_failure_that_keeps_its_partial_text(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama", request_s=4.0), TickingClock())
    timed_out = next(engine.answers([encoded([256, *b"hello"])], "measure"))
    assert (timed_out.finish_reason, timed_out.request_outcome) == ("timeout", "failed")
    assert (timed_out.failure_cause, timed_out.output_tokens) == ("timeout", 4)
    assert timed_out.text
    assert "4.0 s" in (timed_out.failure_message or "")
    whole = next(loaded(make_setup("llama")).answers([encoded([256, *b"hello"])], "measure"))
    assert (whole.text or "").startswith(timed_out.text[:1])


@pytest.mark.parametrize(
    ("model", "protocol_limit", "context"), [("llama-short", None, 64), ("llama", 50, 50), ("llama-short", 200, 64)]
)
def test_c17_a_prompt_that_does_not_fit_is_too_long_and_never_cut(
    make_setup: Maker, model: str, protocol_limit: int | None, context: int
) -> None:
    engine = loaded(make_setup(model, max_new_tokens=10, context_limit_tokens=protocol_limit))
    fits, one_over, far_over = (encoded([256] + [65] * (length - 1)) for length in (context - 10, context - 9, 240))
    answers = list(engine.answers([fits, one_over, far_over], "measure"))
    assert [answer.request_outcome for answer in answers] == ["completed", "too_long", "too_long"]
    refused: Answer = answers[1]
    assert (refused.finish_reason, refused.failure_cause) == ("not_started", "too_long")
    assert (refused.sent_ns, refused.first_token_ns, refused.output_tokens, refused.text) == (None, None, None, None)
    assert f"{context - 9} prompt tokens + 10" in (refused.failure_message or "")
    assert len(answers[0].prompt.token_ids) == context - 10, "what was sent is the whole prompt"


def test_a_fault_of_one_request_fails_that_request_and_the_next_is_answered(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama"))
    broken, fine = engine.answers([encoded([256, 9999], "bad"), encoded([256, 5], "good")], "measure")
    assert (broken.request_outcome, broken.failure_cause, broken.finish_reason) == ("failed", "engine_error", "error")
    assert (broken.exception_class, broken.text) == ("IndexError", None)
    assert (fine.prompt.document_id, fine.request_outcome) == ("good", "completed")


@pytest.mark.parametrize(
    "fault",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
    ],
    ids=["cuda", "python", "processor", "device-lost"],
)
def test_faults_of_memory_and_device_end_the_pass(make_setup: Maker, fault: Exception) -> None:
    engine = loaded(make_setup("llama"))

    def refuse(*_: Any, **__: Any) -> Any:
        raise fault

    engine._loaded()[0].model.register_forward_pre_hook(refuse)
    with pytest.raises(type(fault)):
        list(engine.answers([encoded([256, 5])], "measure"))


def test_a_missing_operator_is_named_as_the_cause(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama"))

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("Could not run 'aten::x' with arguments from the 'CPU' backend")

    engine._loaded()[0].model.register_forward_pre_hook(refuse)
    (answer,) = engine.answers([encoded([256, 5])], "measure")
    assert answer.failure_cause == "missing_operator"


def test_thread_choice_reaches_torch(make_setup: Maker) -> None:
    before = torch.get_num_threads()
    try:
        loaded(make_setup("llama", threads=1))
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_a_device_that_is_not_there_is_refused_by_name(make_setup: Maker) -> None:
    with pytest.raises(DeviceFault, match=r"cuda:99 is not there: torch .* sees \d+ CUDA device"):
        loaded(make_setup("llama", device="cuda:99"))
    with pytest.raises(DeviceFault, match="gpu is no device"):
        loaded(make_setup("llama", device="gpu"))


def test_a_cache_this_engine_does_not_have_is_refused_before_loading(make_setup: Maker) -> None:
    with pytest.raises(DossierError, match="no static cache yet"):
        create(make_setup("llama", cache="static"), SystemClock())


def test_a_model_folder_that_is_not_there_is_refused_with_the_place(make_setup: Maker, models_dir: Path) -> None:
    with pytest.raises(DossierError, match=re.escape(f"{models_dir}/nowhere/to/be does not exist")):
        create(make_setup("nowhere/to/be"), SystemClock())
    with pytest.raises(DossierError, match=r"has no file absent\.gguf"):
        create(make_setup("gguf", gguf_file="absent.gguf"), SystemClock())
    elsewhere = next((models_dir / "gguf").glob("*.gguf"))
    with pytest.raises(DossierError, match="a file name in that folder"):
        create(make_setup("llama", gguf_file=str(elsewhere)), SystemClock())


def test_an_absent_package_is_named_with_the_install_command(
    make_setup: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "accelerate" else find(name))
    with pytest.raises(MissingDependency, match="needs accelerate") as caught:
        create(make_setup("llama"), SystemClock())
    assert caught.value.next_step == "pip install 'gpu-dossier[collector]'"


def test_identity_is_known_without_importing_torch_and_is_equal_for_two_variants(make_setup: Maker) -> None:
    fp32, bf16 = (identity(make_setup("llama", dtype=dtype, threads=2)) for dtype in ("float32", "bfloat16"))
    assert fp32 == bf16
    assert fp32.engine_flags["threads"] == "2"
    assert fp32.engine_flags["torch"]
    script = """
        import sys
        import msgspec
        from collector.engines import engine_module
        from collector.engines.base import EngineSetup
        setup = msgspec.json.decode(sys.stdin.buffer.read(), type=EngineSetup)
        print(engine_module("transformers").identity(setup).engine_name, "torch" in sys.modules)
    """
    import msgspec

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        input=msgspec.json.encode(make_setup("llama")), capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.decode().split() == ["transformers", "False"]


def test_the_encoder_alone_counts_the_tokens_that_the_engine_sends(make_setup: Maker) -> None:
    setup = make_setup("llama-short")
    alone = encoder(setup)
    prompt = Prompt(document_id="d", system="be brief", user="Rechnung über 5 €")
    assert alone.encode([prompt]) == loaded(setup).encode([prompt])
    assert alone.context_limit_tokens() == 64


def test_the_table_of_engines_leads_here() -> None:
    module = engine_module("transformers")
    assert (module.identity, module.create, module.encoder) == (identity, create, encoder)
