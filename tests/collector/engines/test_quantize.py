"""Quantized weights: what is really stored after loading, its bytes, and a load that is refused where it is absent."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from collector.clock import SystemClock
from collector.contract.digests import short_id
from collector.contract.errors import MissingDependency
from collector.contract.protocol import Model, VariantChoice, as_json
from collector.contract.records import Variant
from collector.engines import _quantize
from collector.engines._quantize import METHODS, load_options, require_packages
from collector.engines._weights import OFFLOADED, mapped_file_bytes, placement_words, places_beside, weight_state
from collector.engines.base import EngineSetup, Prompt
from collector.engines.faults import NotAsRequested
from collector.engines.transformers_engine import TransformersEngine, create, identity
from collector.plan import variant_id
from collector.probes.weight_bytes import StoredTensor, weigh
from collector.probes.weight_formats import module_format
from collector.worker_faults import cause_of

Maker = Callable[..., EngineSetup]

HIDDEN, INNER, VOCABULARY, LAYERS = 64, 128, 264, 4
SHAPES = [(HIDDEN, HIDDEN), (HIDDEN // 2, HIDDEN), (HIDDEN // 2, HIDDEN), (HIDDEN, HIDDEN)]
SHAPES += [(INNER, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)]
LINEAR = LAYERS * sum(rows * columns for rows, columns in SHAPES)
ROWS = LAYERS * sum(rows for rows, _ in SHAPES)
LINEAR_LAYERS = LAYERS * len(SHAPES)
PLAIN = 2 * VOCABULARY * HIDDEN + (2 * LAYERS + 1) * HIDDEN
"""Embedding, output layer and norms: what no method touches."""
METHODS_HERE = ["torchao_int8", "bnb_int8", "bnb_nf4", "quanto_int8"]

pytestmark = [
    # Said by libraries about their own innards while they are imported or used.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torchao.*"),
]


def loaded(setup: EngineSetup) -> TransformersEngine:
    engine = create(setup, SystemClock())
    engine.load()
    return engine


def answered(engine: TransformersEngine) -> str:
    (answer,) = engine.answers(engine.encode([Prompt(document_id="d", system="", user="hello")]), "warmup")
    assert answer.request_outcome == "completed", answer.failure_message
    return answer.text or ""


def rotary_bytes(engine: TransformersEngine) -> int:
    return sum(each.stored_bytes for each in weigh(engine._loaded()[0].model).tensors if each.module_group == "other")


def bytes_by_hand(method: str) -> int:
    """The linear layers' bytes from their shapes alone, without looking at the model."""
    if method == "bnb_nf4":  # two weights a byte, one float32 per 64 weights, a table of 16 float32 per layer
        return LINEAR // 2 + 4 * LINEAR // 64 + LINEAR_LAYERS * 16 * 4
    scales = 4 * ROWS
    extra = {"torchao_int8": ROWS, "quanto_int8": LINEAR_LAYERS * 2 * 4}  # zero points; two scalars per layer
    return LINEAR + scales + extra.get(method, 0)


@pytest.mark.parametrize("method", METHODS_HERE)
def test_recorded_bytes_equal_what_the_shapes_give(make_setup: Maker, method: str) -> None:
    engine = loaded(make_setup("llama-wide", quantization=method))
    variant, groups = engine.observe("loaded")
    assert variant.weight_bytes == bytes_by_hand(method) + 4 * PLAIN + rotary_bytes(engine)
    assert variant.weight_bytes == sum(each.tensor_bytes for each in groups if not each.is_tied)
    assert variant.parameter_count == LINEAR + PLAIN, "packed weights count what they stand for"
    assert variant.effective_bits == 8 * variant.weight_bytes / variant.parameter_count
    assert variant.claimed_weight_bytes != variant.weight_bytes, "no library's own figure is right"


@pytest.mark.parametrize("method", METHODS_HERE)
def test_the_descriptor_names_method_bits_group_and_what_was_left_out(make_setup: Maker, method: str) -> None:
    variant, _ = loaded(make_setup("llama-wide", quantization=method)).observe("loaded")
    is_nf4 = method == "bnb_nf4"
    assert (variant.quantization_method, variant.quantization_bits) == (method, 4 if is_nf4 else 8)
    assert (variant.quantization_group, variant.missing) == (
        (64, {}) if is_nf4 else (None, {"quantization_group": "not_applicable"})
    )
    assert variant.excluded_modules == ["lm_head"]
    assert (variant.output_layer_format, variant.compute_dtype) == ("float32", "float32")
    assert variant.observed["linear_weights"] == f"{LINEAR_LAYERS} of {LINEAR_LAYERS} {method}"
    assert json.loads(variant.observed["quantization_config"])
    assert variant.requested["quantization"] == method
    assert variant.observed["quantized"] == "while loading, without calibration data"
    casts = ["compute: the linear layers cast their float32 inputs to float16"]
    assert variant.deviations == (casts if method == "bnb_int8" else [])


@pytest.mark.parametrize("method", METHODS_HERE)
def test_bytes_after_the_first_request_are_those_after_loading(make_setup: Maker, method: str) -> None:
    """bitsandbytes moves the scales of 8-bit weights from the weight to the module when it first computes.

    On processors with AVX512-BF16 it then halves its 4-bit scales, one of 4 bytes per 64 weights: a deviation.
    """
    from bitsandbytes.functional import has_avx512bf16

    engine = loaded(make_setup("llama-wide", quantization=method))
    first, _ = engine.observe("loaded")
    assert answered(engine)
    second, _ = engine.observe("after_warmup")
    if method == "bnb_nf4" and has_avx512bf16():
        assert first.weight_bytes is not None
        halved = first.weight_bytes - LINEAR // 64 * 2
        changed = [f"weights: {first.weight_bytes} bytes after loading, {halved} after the first requests"]
        assert (second.weight_bytes, second.deviations) == (halved, first.deviations + changed)
        return
    assert second.weight_bytes == first.weight_bytes
    assert second.deviations == first.deviations


def test_bfloat16_is_computed_in_where_the_variant_says_so(make_setup: Maker) -> None:
    for method in METHODS_HERE:
        engine = loaded(make_setup("llama-wide", quantization=method, dtype="bfloat16"))
        variant, _ = engine.observe("loaded")
        assert (variant.compute_dtype, variant.output_layer_format) == ("bfloat16", "bfloat16")
        assert answered(engine)


def test_a_plain_variant_has_no_method_bits_or_exclusions(make_setup: Maker) -> None:
    variant, _ = loaded(make_setup("llama-wide")).observe("loaded")
    assert (variant.quantization_method, variant.excluded_modules) == ("none", [])
    assert (variant.quantization_bits, variant.missing["quantization_bits"]) == (None, "not_applicable")
    assert "linear_weights" not in variant.observed


def test_gguf_blocks_that_the_library_unpacks_are_a_missing_operator_not_a_measurement(make_setup: Maker) -> None:
    engine = loaded(make_setup("gguf", gguf_file="tiny.Q4_1.gguf", quantization="gguf"))
    with pytest.raises(NotAsRequested, match=r"requested gguf, found plain weights \(float32, \d+ bytes\)") as caught:
        engine.observe("loaded")
    assert "cannot keep this architecture's blocks" in str(caught.value)
    assert cause_of(caught.value, "load") == "missing_operator"


def test_weights_left_plain_are_a_load_failure(make_setup: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method whose library quietly does nothing: here its configuration is not passed on."""
    monkeypatch.setitem(METHODS, "quanto_int8", METHODS["quanto_int8"]._replace(build=lambda dtype: None))
    engine = loaded(make_setup("llama-wide", quantization="quanto_int8"))
    with pytest.raises(NotAsRequested, match=r"requested quanto_int8, found plain weights .* after loading") as caught:
        engine.observe("loaded")
    assert cause_of(caught.value, "load") == "load_failure"


def test_weights_that_the_first_request_unpacks_end_the_pass(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama-wide", quantization="quanto_int8"))
    before, _ = engine.observe("loaded")
    unpack(engine._loaded()[0].model)
    with pytest.raises(NotAsRequested, match=r"found plain weights .* after the first requests"):
        engine.observe("after_warmup")
    assert before.quantization_method == "quanto_int8"


def unpack(model: Any, only: str = "") -> None:
    """Replace each quantized weight, as a library does that decompresses at the first forward."""
    for name, module in model.named_modules():
        if module_format(module) is not None and only in name:
            plain = torch.nn.Linear(module.in_features, module.out_features, bias=False)
            plain.weight = torch.nn.Parameter(module.weight.dequantize(), requires_grad=False)
            model.set_submodule(name, plain)


def test_a_part_that_is_left_plain_is_a_deviation_in_words_and_by_name(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama-wide", quantization="quanto_int8"))
    before, _ = engine.observe("loaded")
    unpack(engine._loaded()[0].model, only="layers.0.mlp")
    after, _ = engine.observe("after_warmup")
    names = [f"model.layers.0.mlp.{each}_proj" for each in ("gate", "up", "down")]
    assert after.excluded_modules == [*names, "lm_head"]
    assert after.observed["linear_weights"] == f"25 of {LINEAR_LAYERS} quanto_int8, 3 of {LINEAR_LAYERS} plain"
    assert after.deviations == [
        f"quantization: 3 modules beside the output layer are not quantized: {', '.join(names)}",
        f"weights: {before.weight_bytes} bytes after loading, {after.weight_bytes} after the first requests",
    ]


def test_experts_in_one_tensor_count_as_left_out(make_setup: Maker) -> None:
    model = loaded(make_setup("llama-wide", quantization="quanto_int8"))._loaded()[0].model
    model.model.layers[1].mlp.register_parameter("experts", torch.nn.Parameter(torch.ones(2, 4, 4)))
    assert weight_state(model).left_out == ["model.layers.1.mlp", "lm_head"]


def test_a_model_that_comes_quantized_is_named_where_nothing_was_asked(make_setup: Maker) -> None:
    engine = loaded(make_setup("llama-wide", quantization="torchao_int8"))
    parts, decoder = engine._loaded()
    setup = make_setup("llama-wide")
    engine._parts = parts._replace(setup=setup), decoder
    variant, _ = engine.observe("loaded")
    assert variant.deviations == ["quantization: requested none, found torchao_int8"]


def test_b16_library_and_version_of_a_method_are_in_the_identity_of_its_variants_alone(
    make_setup: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, packed = make_setup("llama-wide"), make_setup("llama-wide", quantization="torchao_int8")
    before = {each.variant.quantization: short_id(as_json(identity(each))) for each in (plain, packed)}
    assert identity(packed).engine_flags["torchao"] == importlib.metadata.version("torchao")
    assert "torchao" not in identity(plain).engine_flags
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9.9" if name == "torchao" else real(name))
    after = {each.variant.quantization: short_id(as_json(identity(each))) for each in (plain, packed)}
    assert after["none"] == before["none"]
    assert after["torchao_int8"] != before["torchao_int8"]


@pytest.mark.parametrize("method", list(METHODS))
def test_a_missing_package_is_named_with_its_install_command_before_anything_is_loaded(
    make_setup: Maker, monkeypatch: pytest.MonkeyPatch, method: Any
) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(_quantize.importlib.metadata, "version", absent)
    with pytest.raises(MissingDependency, match=r"pip install 'gpu-dossier\[quantized\]'") as caught:
        require_packages(method)
    assert METHODS[method].packages[0] in caught.value.message


def test_every_method_of_the_protocol_is_in_the_table_and_builds() -> None:
    from typing import get_args

    from collector.contract.protocol import Quantization

    assert set(METHODS) == set(get_args(Quantization)) - {"none"}
    for method in METHODS.values():
        assert method.build(torch.float32).quant_method


def test_a_plain_folder_is_loaded_without_any_option(make_setup: Maker) -> None:
    assert load_options(make_setup("llama-wide"), torch.float32) == {}


def test_a_message_of_every_layer_and_token_passes_once(make_setup: Maker, caplog: pytest.LogCaptureFixture) -> None:
    engine = loaded(make_setup("llama-wide", quantization="bnb_int8"))
    with caplog.at_level(logging.WARNING, "bitsandbytes"):
        logging.getLogger("bitsandbytes.autograd._functions").warning("said %s", "often")
        logging.getLogger("bitsandbytes.autograd._functions").warning("said %s", "often")
        answered(engine)
    messages = [each.getMessage() for each in caplog.records if each.name.startswith("bitsandbytes")]
    assert messages.count("said often") == 1
    assert len(messages) == len(set(messages))


def test_blocks_kept_packed_are_weighed_as_stored_and_counted_as_what_they_stand_for() -> None:
    """With transformers' own packed modules; only the card's kernel is not here."""
    import gguf
    import numpy as np
    from gguf import GGMLQuantizationType as Type
    from transformers.integrations.gguf.utils import GgufEmbedding, GgufLinear

    values = np.random.default_rng(1).normal(size=(260, 64)).astype(np.float32)
    rows = torch.tensor(gguf.quants.quantize(values, Type.Q8_0))
    model = torch.nn.Module()
    model.mlp = GgufLinear(512, 96, int(Type.Q4_K))
    model.embed = GgufEmbedding(260, 64, int(Type.Q8_0))
    model.embed.weight = torch.nn.Parameter(rows, requires_grad=False)
    found = weigh(model)
    assert found.total_bytes == 96 * 512 // 256 * 144 + 260 * 64 // 32 * 34
    assert found.parameter_count == 96 * 512 + 260 * 64
    assert module_format(model.mlp) == ("gguf", 4, 256, None)
    assert module_format(model.embed) == ("gguf", 8, 32, None)


def test_b13_the_dtype_of_loaded_weights_is_read_back_and_another_one_is_another_variant(
    make_setup: Maker, models_dir: Any
) -> None:
    """A bfloat16 checkpoint, no dtype in the protocol: float32 is asked for by name and found, byte by byte."""
    from transformers import AutoModelForCausalLM

    folder = models_dir / "llama-bf16"
    AutoModelForCausalLM.from_pretrained(models_dir / "llama-wide", dtype=torch.bfloat16).save_pretrained(folder)
    loaded_plain = loaded(make_setup("llama-wide"))._loaded()[0]
    loaded_plain.encoder.tokenizer.save_pretrained(folder)
    variant, _ = loaded(make_setup("llama-bf16")).observe("loaded")
    assert (variant.requested["dtype"], variant.observed["dtype"]) == ("float32", "float32")
    assert set(variant.dtype_bytes) == {"float32"}
    half: Variant = loaded(make_setup("llama-bf16", dtype="bfloat16")).observe("loaded")[0]
    assert set(half.dtype_bytes) == {"bfloat16", "float32"}, "the positions' frequencies stay float32"
    assert half.dtype_bytes["bfloat16"] == 2 * (variant.parameter_count or 0)
    model = Model(id="llama-bf16")
    assert variant_id(model, VariantChoice(name="v")) != variant_id(model, VariantChoice(name="v", dtype="bfloat16"))


def stored_on(device: str, size: int) -> StoredTensor:
    return StoredTensor("m", "Linear", "weight", "Parameter", "float32", device, size // 4, size, True, False, "mlp")


def test_b14_part_of_the_weights_on_the_processor_is_flagged_with_its_share(make_setup: Maker) -> None:
    layers = [stored_on("cpu" if index < 2 else "cuda:0", 1000) for index in range(32)]
    assert placement_words(layers) == "cuda:0 93.8 %, cpu 6.2 %"
    model = loaded(make_setup("llama-wide"))._loaded()[0].model
    mapped = {"model.embed_tokens": "cuda:0", "model.layers.0": "disk", "lm_head": "cuda:0"}
    assert places_beside("cuda:0", mapped, []) == ["disk"], "by the library's own map"
    assert places_beside("cuda:0", {"": "cuda:0"}, weigh(model).tensors) == ["cpu"], "by the tensors, whatever it says"
    assert places_beside("cuda:0", {"": "cuda:0"}, layers[2:]) == places_beside("cpu", {"": "cpu"}, layers[:2]) == []
    assert {"cpu", "disk"} <= OFFLOADED


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mapped pages are read from Linux's process files")
def test_pages_of_the_weight_file_that_stay_mapped_are_told_apart_from_the_weights(make_setup: Maker) -> None:
    """Resident size does not shrink with quantized weights while the unquantized file stays mapped beside them."""
    engine = loaded(make_setup("llama-wide", quantization="torchao_int8"))
    variant, _ = engine.observe("loaded")
    mapped = int(variant.observed["mapped_weight_file_bytes"])
    assert mapped > (variant.weight_bytes or 0), "the whole file, embedding and unquantized linear layers"
    assert mapped_file_bytes()
