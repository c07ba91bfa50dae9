"""Rankings by embedding on a tiny random BERT: vectors against a plain computation, order, limits, batches, records."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from collector.clock import FakeClock, SystemClock
from collector.contract.errors import DossierError, MissingDependency
from collector.contract.protocol import EngineChoice, Generation, Limits, Model, VariantChoice
from collector.contract.records import Request
from collector.engines import _loading
from collector.engines._embedding import best_first, embedding_facts, pooling_deviation
from collector.engines.base import Answer, EncodedPrompt, EngineSetup, Load, Prompt
from collector.engines.transformers_engine import create, encoder, identity
from collector.events import Answered, Event, Finished, PassJob, Recorded
from collector.memory import meter_for
from collector.worker import JobRun

WORDS = ["red", "green", "blue", "small", "large", "house", "tree", "river", "road", "bird"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
POSITIONS = 32
DEVICES = [
    "cpu",
    pytest.param(
        "cuda:0",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")],
    ),
]
Maker = Callable[..., EngineSetup]


def write_tiny_bert(folder: Path) -> None:
    """A BERT of two layers, and a tokenizer whose file cuts at 4 tokens and pads to 16, as published ones do."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(3)
    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *WORDS])}
    backend = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=512, **names).save_pretrained(folder)
    backend.enable_truncation(4)
    backend.enable_padding(length=16)
    backend.save(str(folder / "tokenizer.json"))
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=POSITIONS, initializer_range=0.5, pad_token_id=0,
    )  # fmt: skip
    BertModel(config).eval().save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False})
    )


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert") / "tiny-bert"
    folder.mkdir()
    write_tiny_bert(folder)
    return folder


@pytest.fixture(scope="module")
def setup_of(bert: Path) -> Maker:
    def make(
        *,
        device: str = "cpu",
        dtype: Any = "float32",
        quantization: Any = "none",
        context_limit_tokens: int | None = None,
        request_s: float = 600.0,
        model: str | None = None,
    ) -> EngineSetup:
        return EngineSetup(
            base_dir=str(bert.parent), model=Model(id=model or f"./{bert.name}"),
            engine=EngineChoice(name="transformers", answers_by="embedding"),
            variant=VariantChoice(name="v", dtype=dtype, quantization=quantization),
            generation=Generation(max_new_tokens=1, context_limit_tokens=context_limit_tokens),
            limits=Limits(request_s=request_s), device=device, pass_label="v/1/1",
        )  # fmt: skip

    return make


def loaded(setup: EngineSetup, clock: Any = None) -> Any:
    engine = create(setup, clock or SystemClock())
    engine.load()
    return engine


def prompt(query: str, *candidates: str, document_id: str = "d") -> Prompt:
    return Prompt(
        document_id=document_id, system="", user=query,
        candidates={chr(65 + place): text for place, text in enumerate(candidates)},
    )  # fmt: skip


def many(count: int) -> list[Prompt]:
    """Queries of 1 to 5 words with 5 candidates of 1 to 8 words each."""
    found = []
    for number in range(count):
        texts = [
            " ".join(
                WORDS[(number * 3 + place * 7 + word * (place + 2)) % 10] for word in range(1 + (number + place) % 8)
            )
            for place in range(6)
        ]
        found.append(prompt(texts[0], *texts[1:], document_id=f"d{number}"))
    return found


def order_of(answer: Answer) -> list[str]:
    assert answer.text is not None
    found: list[str] = json.loads(answer.text)
    return found


def plain_cosines(engine: Any, encoded: EncodedPrompt) -> list[float]:
    """Text by text, without batch, padding or mask: the mean of the hidden states in double precision, then cosine."""
    parts, _ = engine._loaded()
    vectors, start = [], 0
    for count in encoded.part_token_counts:
        ids = torch.tensor([encoded.token_ids[start : start + count]], device=parts.device)
        with torch.inference_mode():
            hidden = parts.model(input_ids=ids).last_hidden_state[0].double().cpu()
        mean = [sum(float(row[place]) for row in hidden) / count for place in range(hidden.shape[1])]
        vectors.append(mean)
        start += count

    def cosine(one: list[float], other: list[float]) -> float:
        dot = math.fsum(a * b for a, b in zip(one, other, strict=True))
        return dot / math.sqrt(math.fsum(a * a for a in one) * math.fsum(b * b for b in other))

    return [cosine(vectors[0], each) for each in vectors[1:]]


@pytest.mark.parametrize("device", DEVICES)
def test_cosines_and_orders_are_those_of_a_plain_computation(setup_of: Maker, device: str) -> None:
    engine = loaded(setup_of(device=device))
    encoded = engine.encode(many(20))
    _, embedder = engine._loaded()
    orders = {answer.prompt.document_id: order_of(answer) for answer in engine.answers(encoded, "measure")}
    for each in encoded:
        plain = plain_cosines(engine, each)
        (found,) = embedder.cosines([each]).cosines
        assert found == pytest.approx(plain, abs=2e-6)
        places = sorted(range(len(plain)), key=lambda place: -plain[place])
        assert orders[each.document_id] == [each.candidate_ids[place] for place in places]
    assert len({tuple(order) for order in orders.values()}) > 10, "the orders differ, so equality says much"


@pytest.mark.parametrize("batch", [2, 3, 8])
def test_documents_ranked_together_have_the_order_they_have_alone(setup_of: Maker, batch: int) -> None:
    engine = loaded(setup_of())
    encoded = engine.encode(many(10))
    alone = {each.prompt.document_id: order_of(each) for each in engine.answers(encoded, "measure")}
    together = list(engine.answers(encoded, "measure", Load(batch=batch)))
    assert {each.prompt.document_id: order_of(each) for each in together} == alone
    sizes = [sum(each.batch_number == number for each in together) for number in {a.batch_number for a in together}]
    assert max(sizes) == batch
    assert sum(sizes) == 10
    for number in {each.batch_number for each in together}:
        rows = [each for each in together if each.batch_number == number]
        assert len({each.sent_ns for each in rows}) == 1
        longest = max(max(each.prompt.part_token_counts) for each in rows)
        for each in rows:
            counts = each.prompt.part_token_counts
            assert each.padding_tokens == longest * len(counts) - sum(counts)


def test_the_same_texts_give_the_same_answers_in_a_second_engine(setup_of: Maker) -> None:
    first, second = (loaded(setup_of()) for _ in range(2))
    answers = [[order_of(each) for each in e.answers(e.encode(many(12)), "measure")] for e in (first, second)]
    assert answers[0] == answers[1]


def test_candidates_with_the_same_words_keep_their_order_also_where_rounding_differs(setup_of: Maker) -> None:
    engine = loaded(setup_of())
    (encoded,) = engine.encode([prompt("red house", "blue river", "green tree", "blue river", "green tree")])
    (answer,) = engine.answers([encoded], "measure")
    order = order_of(answer)
    assert order.index("A") + 1 == order.index("C")
    assert order.index("B") + 1 == order.index("D")
    # a later row of the same text may be a last bit better: the first one's value counts for both
    assert best_first(encoded, [0.5, 0.25, math.nextafter(0.5, 1), 0.25]) == [0, 2, 1, 3]
    assert best_first(encoded, [0.1, 0.1, 0.1, 0.1]) == [0, 1, 2, 3]


def test_nothing_is_cut_or_padded_though_the_tokenizers_file_asks_for_it(setup_of: Maker) -> None:
    engine = loaded(setup_of())
    (encoded,) = engine.encode([prompt("red " * 9, "blue", "green tree " * 10)])
    assert encoded.part_token_counts == [11, 3, 22]
    assert encoded.token_ids[:2] == [2, 5]
    assert encoded.start_token_count == 1
    assert len(encoded.token_ids) == 36
    assert json.loads(encoded.rendered)["candidates"]["A"] == "blue"


def test_c17_a_text_beyond_the_models_positions_makes_its_request_too_long_and_no_other(setup_of: Maker) -> None:
    engine = loaded(setup_of())
    fits, beyond = "red " * (POSITIONS - 2), "red " * (POSITIONS - 1)
    asked = [prompt("red", fits, document_id="fits"), prompt("red", "blue", beyond, document_id="beyond")]
    for batch in (1, 2):
        answers = {
            each.prompt.document_id: each for each in engine.answers(engine.encode(asked), "measure", Load(batch=batch))
        }
        assert answers["fits"].request_outcome == "completed"
        refused = answers["beyond"]
        assert (refused.request_outcome, refused.failure_cause, refused.text) == ("too_long", "too_long", None)
        assert refused.failure_message == (
            "candidate 'B' has 33 tokens, which exceed the 32 that the model embeds at once"
        )
    limited = loaded(setup_of(context_limit_tokens=3))
    (answer,) = limited.answers(limited.encode([prompt("red green", "blue")]), "measure")
    assert answer.failure_message == "the query has 4 tokens, which exceed the 3 that the model embeds at once"


def test_the_encoder_alone_counts_as_the_engine_does(setup_of: Maker) -> None:
    alone = encoder(setup_of())
    assert alone.context_limit_tokens() == POSITIONS
    assert alone.encode(many(3)) == loaded(setup_of()).encode(many(3))


def test_an_embedding_has_stamps_of_sending_and_being_done_and_no_token_of_its_own(setup_of: Maker) -> None:
    engine = loaded(setup_of())
    for answer in engine.answers(engine.encode(many(3)), "measure"):
        assert answer.sent_ns is not None
        assert answer.done_ns is not None
        assert answer.intended_ns <= answer.sent_ns < answer.done_ns
        assert (answer.first_token_ns, answer.last_token_ns, answer.output_tokens) == (None, None, None)
        assert answer.gaps_ns == []
        assert answer.finish_reason == "embedded"


def test_a_forward_pass_beyond_the_requests_limit_is_a_timeout(setup_of: Maker) -> None:
    class Slow(FakeClock):
        """Each look at the clock finds a second gone."""

        def monotonic_ns(self) -> int:
            self.sleep_until_ns(super().monotonic_ns() + 1_000_000_000)
            return super().monotonic_ns()

    engine = loaded(setup_of(request_s=0.5), Slow())
    (answer,) = engine.answers(engine.encode(many(1)), "measure")
    assert (answer.request_outcome, answer.failure_cause, answer.finish_reason) == ("failed", "timeout", "timeout")
    assert answer.text is None


def test_a_fault_fails_the_documents_of_its_batch_and_memory_ends_the_pass(
    setup_of: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = loaded(setup_of())
    encoded = engine.encode(many(2))
    faults: Iterator[Exception] = iter([ValueError("odd"), torch.OutOfMemoryError("gone")])

    def breaks(prompts: Any) -> Any:
        raise next(faults)

    monkeypatch.setattr(engine._loaded()[1], "cosines", breaks)
    failed = list(engine.answers(encoded, "measure", Load(batch=2)))
    assert [(each.request_outcome, each.failure_message, each.batch_row) for each in failed] == [
        ("failed", "odd", 0), ("failed", "odd", 1),
    ]  # fmt: skip
    with pytest.raises(torch.OutOfMemoryError):
        list(engine.answers(encoded, "measure"))


def test_the_variant_says_how_vectors_come_about_and_that_no_cache_is_kept(setup_of: Maker) -> None:
    engine = loaded(setup_of(dtype="bfloat16"))
    variant, groups = engine.observe("loaded")
    assert variant.observed["pooling"] == "mean over the attention mask, length 1, float32"
    assert variant.observed["declared_pooling"] == "mean_tokens"
    assert variant.observed["model_class"] == "BertModel"
    assert (variant.cache_kind, variant.compute_dtype, variant.weight_storage) == ("none", "bfloat16", "bfloat16")
    assert variant.deviations == []
    assert variant.missing["template_digest"] == "not_applicable"
    assert {group.module_group for group in groups} == {"embedding", "attention", "mlp", "norm", "other"}
    list(engine.answers(engine.encode(many(2)), "warmup"))
    again, _ = engine.observe("after_warmup")
    assert (again.tokenizer_digest, again.weight_bytes) == (variant.tokenizer_digest, variant.weight_bytes)


def test_a_folder_that_asks_for_another_pooling_is_a_deviation(tmp_path: Path) -> None:
    from collector.engines._artefact import Artefact

    (tmp_path / "1_Pooling").mkdir()
    config = tmp_path / "1_Pooling" / "config.json"
    config.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false, "include_prompt": true}')
    artefact = Artefact(str(tmp_path), tmp_path, None, None)
    assert pooling_deviation(artefact) == ["pooling: the model's own configuration asks for cls_token"]
    config.unlink()
    assert pooling_deviation(artefact) == []
    assert "declared_pooling" not in embedding_facts(artefact)
    config.write_text("[]")
    with pytest.raises(DossierError, match="does not say how vectors are pooled"):
        pooling_deviation(artefact)


def test_engines_that_embed_and_that_generate_are_two(setup_of: Maker, make_setup: Maker) -> None:
    assert identity(setup_of()).engine_flags["embedding"] == "mean-cosine-1"
    assert "decode_loop" not in identity(setup_of()).engine_flags
    assert "embedding" not in identity(make_setup("llama")).engine_flags


def test_a_model_that_generates_can_be_embedded_with_too(setup_of: Maker, models_dir: Path) -> None:
    engine = loaded(setup_of(model=str(models_dir / "llama")))
    encoded = engine.encode(many(4))
    for batch in (1, 4):
        for answer in engine.answers(encoded, "measure", Load(batch=batch)):
            plain = plain_cosines(engine, answer.prompt)
            places = sorted(range(len(plain)), key=lambda place: -plain[place])
            assert order_of(answer) == [answer.prompt.candidate_ids[place] for place in places]


@pytest.mark.parametrize(("method", "package"), [("torchao_int8", "torchao"), ("quanto_int8", "optimum-quanto")])
def test_linear_layers_of_an_encoder_can_be_quantized(setup_of: Maker, method: str, package: str) -> None:
    try:
        engine = loaded(setup_of(quantization=method))
    except MissingDependency:
        pytest.skip(f"{package} is not installed")
    variant, _ = engine.observe("loaded")
    assert variant.quantization_method == method
    assert len(list(engine.answers(engine.encode(many(2)), "measure"))) == 2


def worked(setup: EngineSetup, batch: int) -> list[Event]:
    prompts = many(6)
    job = PassJob(
        pass_id="0" * 16, variant_id="1" * 16, setup=setup, salt_hex="00" * 32, load=Load(batch=batch),
        warmup=prompts[:2],
        check=prompts[:4] if batch > 1 else [], measure=prompts,
    )  # fmt: skip
    clock = SystemClock()
    return list(JobRun(job, clock=clock, meter=meter_for("cpu"), create=lambda: create(setup, clock)).events())


@pytest.mark.parametrize("batch", [1, 3])
def test_a_whole_pass_records_tokens_embedded_and_why_the_rest_is_null(setup_of: Maker, batch: int) -> None:
    events = worked(setup_of(), batch)
    requests = [event.record for event in events if isinstance(event, Answered)]
    assert len(requests) == 6
    for request in requests:
        assert isinstance(request, Request)
        assert request.prompt_tokens is not None
        assert request.prompt_tokens > 6 * 3 - 1
        for name in ("first_token_ns", "last_token_ns", "output_tokens", "gap_max_ns"):
            assert getattr(request, name) is None
            assert request.missing[name] == "not_applicable"
        assert request.gap_counts == []
        assert request.prompt_token_hmac is not None
        assert request.answer_hmac is not None
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert (finished.live_row_steps, finished.is_steady, finished.live_row_histogram) == (None, None, {})
    checks = [
        event.record for event in events if isinstance(event, Recorded) and "Check" in type(event.record).__name__
    ]
    assert len(checks) == (batch > 1)
    for check in checks:
        assert check.padding_side == "right"  # type: ignore[union-attr]
        assert check.differing_document_ids == []  # type: ignore[union-attr]


def test_loading_names_what_is_not_installed(setup_of: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_loading.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match="needs torch, transformers"):
        create(setup_of(), SystemClock())
