"""The variant's descriptor: what is really loaded, and where it differs from what was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch

from collector.clock import SystemClock
from collector.contract.digests import file_sha256
from collector.contract.errors import DossierError
from collector.contract.records import TensorGroup, Variant, decode_record, encode_record
from collector.engines.base import EngineSetup, Prompt
from collector.engines.transformers_engine import TransformersEngine, create

Maker = Callable[..., EngineSetup]
ENVELOPE = {"run_id": "0" * 32, "prev": "0" * 64, "written_at": "2026-01-01T00:00:00.000000Z"}
IDS = {"variant_id": "1" * 16, "pass_id": "2" * 16}


def observed(setup: EngineSetup) -> tuple[Variant, list[TensorGroup]]:
    engine = create(setup, SystemClock())
    engine.load()
    return engine.observe("loaded")


def weight_bytes_of(groups: list[TensorGroup], *names: str) -> int:
    return sum(each.tensor_bytes for each in groups if not each.is_tied and (not names or each.module_group in names))


def test_bytes_parameters_and_groups_of_a_known_model_are_exact(make_setup: Maker) -> None:
    variant, groups = observed(make_setup("llama"))
    hidden, inner, vocabulary, layers = 64, 96, 264, 4
    attention = layers * (hidden * hidden * 2 + hidden * hidden // 2 * 2)
    mlp = layers * 3 * hidden * inner
    norm = (2 * layers + 1) * hidden
    parameters = 2 * vocabulary * hidden + attention + mlp + norm
    assert variant.parameter_count == parameters
    assert weight_bytes_of(groups, "attention") == 4 * attention
    assert weight_bytes_of(groups, "mlp") == 4 * mlp
    assert weight_bytes_of(groups, "norm") == 4 * norm
    assert weight_bytes_of(groups, "embedding") == weight_bytes_of(groups, "output_layer") == 4 * vocabulary * hidden
    assert variant.weight_bytes == weight_bytes_of(groups) == 4 * parameters + weight_bytes_of(groups, "other")
    assert variant.claimed_weight_bytes == variant.weight_bytes
    assert variant.effective_bits == 8 * variant.weight_bytes / parameters
    assert variant.has_tied_embeddings is False


def test_a_tied_output_layer_is_flagged_and_its_bytes_count_once(make_setup: Maker) -> None:
    variant, groups = observed(make_setup("gemma"))
    (output,) = [each for each in groups if each.module_group == "output_layer"]
    (embedding,) = [each for each in groups if each.module_group == "embedding" and each.tensor_class == "Parameter"]
    assert variant.has_tied_embeddings
    assert output.is_tied
    assert output.tensor_bytes == embedding.tensor_bytes
    assert weight_bytes_of(groups) == variant.weight_bytes


def test_half_the_bytes_in_bfloat16_are_found_not_computed(make_setup: Maker) -> None:
    variant, _ = observed(make_setup("llama", dtype="bfloat16"))
    assert (variant.weight_storage, variant.compute_dtype, variant.output_layer_format) == ("bfloat16",) * 3
    assert variant.dtype_bytes["bfloat16"] == 2 * (variant.parameter_count or 0)
    assert variant.deviations == []


def test_what_was_asked_and_what_was_found_stand_side_by_side(make_setup: Maker) -> None:
    variant, _ = observed(make_setup("gemma", attention="eager", threads=1))
    assert variant.requested["attention"] == variant.observed["attention"] == variant.attention == "eager"
    assert variant.requested["threads"] == variant.observed["threads"] == "1"
    assert int(variant.observed["interop_threads"]) >= 1
    assert variant.observed["cache_layers"] == "1 DynamicLayer, 5 DynamicSlidingWindowLayer"
    assert variant.observed["version_transformers"]
    assert (variant.device_map, variant.has_offload, variant.deviations) == ({"": "cpu"}, False, [])


def test_a_model_found_in_another_dtype_or_attention_is_a_deviation(make_setup: Maker) -> None:
    engine = create(make_setup("llama", dtype="bfloat16"), SystemClock())
    engine.load()
    model = engine._loaded()[0].model
    model.to(torch.float32)
    model.set_attn_implementation("eager")
    variant, _ = engine.observe("after_warmup")
    assert variant.deviations == [
        "dtype: requested bfloat16, found float32", "attention: requested sdpa, found eager",
    ]  # fmt: skip
    assert variant.observed_at == "after_warmup"


def test_generation_settings_that_greedy_decoding_leaves_out_are_a_deviation(make_setup: Maker) -> None:
    engine = create(make_setup("llama"), SystemClock())
    engine.load()
    engine._loaded()[0].model.generation_config.repetition_penalty = 1.05
    variant, _ = engine.observe("loaded")
    assert variant.deviations == ["greedy decoding without the model's own repetition_penalty=1.05"]


def test_a_base_model_without_template_is_a_deviation(make_setup: Maker) -> None:
    variant, _ = observed(make_setup("base"))
    assert variant.deviations == ["no chat template: prompts are sent as plain text"]
    assert variant.template_digest is None


def test_every_file_of_the_artefact_has_its_digest(make_setup: Maker, models_dir: Path) -> None:
    variant, _ = observed(make_setup("llama"))
    folder = models_dir / "llama"
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} <= set(variant.file_digests)
    assert variant.file_digests == {name: file_sha256(folder / name) for name in variant.file_digests}


def test_the_revision_of_a_folder_is_what_the_protocol_says(make_setup: Maker) -> None:
    assert observed(make_setup("llama"))[0].model_revision is None
    assert observed(make_setup("llama", revision="v2"))[0].model_revision == "v2"


def test_origin_json_and_the_protocols_words_are_both_kept(make_setup: Maker, models_dir: Path) -> None:
    path = models_dir / "llama" / "origin.json"
    try:
        path.write_text(json.dumps({"origin": "stored as 4-bit Q4_1, dequantized"}), encoding="utf-8")
        assert observed(make_setup("llama"))[0].origin == "stored as 4-bit Q4_1, dequantized"
        assert observed(make_setup("llama", origin="merged by us"))[0].origin == (
            "stored as 4-bit Q4_1, dequantized; the protocol says: merged by us"
        )
        path.write_text("{}", encoding="utf-8")
        with pytest.raises(DossierError, match=r"origin\.json does not say"):
            observed(make_setup("llama"))
    finally:
        path.unlink()
    assert observed(make_setup("llama", origin="merged by us"))[0].origin == "merged by us"
    assert observed(make_setup("llama"))[0].origin is None


def test_a_gguf_load_says_how_it_was_stored_and_that_it_is_dequantized(make_setup: Maker) -> None:
    setup = make_setup("gguf", gguf_file="tiny.Q4_1.gguf", max_new_tokens=4)
    engine = create(setup, SystemClock())
    engine.load()
    variant, _ = engine.observe("loaded")
    assert variant.origin == (
        "stored as 4-bit Q4_1 (7 tensors Q4_1, 3 tensors F32, 1 tensor Q8_0: token_embd.weight) in tiny.Q4_1.gguf, "
        "dequantized"
    )
    assert (variant.weight_storage, variant.quantization_method) == ("float32", "none")
    assert list(variant.file_digests) == ["tiny.Q4_1.gguf"]
    (answer,) = engine.answers(engine.encode([Prompt(document_id="d", system="", user="than")]), "measure")
    assert (answer.request_outcome, answer.output_tokens) == ("completed", 4)


def test_variant_and_groups_are_valid_records_once_the_worker_has_filled_the_ids(make_setup: Maker) -> None:
    variant, groups = observed(make_setup("gemma"))
    for record in (variant, *groups):
        whole = msgspec.structs.replace(record, **IDS, **ENVELOPE)
        assert decode_record(encode_record(whole)) == whole


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_model_on_a_card_is_seen_on_that_card(make_setup: Maker) -> None:
    variant, groups = observed(make_setup("llama", device="cuda:0"))
    assert variant.device_map == {"": "cuda:0"}
    assert {each.device_id for each in groups} == {"cuda:0"}
    assert (variant.has_offload, variant.deviations) == (False, [])


def test_nothing_can_be_observed_before_loading(make_setup: Maker) -> None:
    engine: TransformersEngine = create(make_setup("llama"), SystemClock())
    with pytest.raises(DossierError, match="nothing is loaded yet"):
        engine.observe("loaded")
