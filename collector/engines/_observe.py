"""What is really loaded, read back from the model: dtypes, bytes, devices, attention; where it differs from asked."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter, defaultdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from collector.contract.records import TensorGroup, Variant
from collector.contract.records.base import ObservedAt
from collector.missing import explained
from collector.probes.weight_bytes import StoredTensor, WeightBytes, dtype_name

from ._artefact import Artefact, artefact_files, file_digests, local_folder, origin_words, user_cache_dir
from ._decode import ignored_generation_settings
from ._embedding import embedding_facts, pooling_deviation
from ._prompting import TemplateEncoder
from ._quantize import METHODS, require_in_force
from ._weights import (
    OFFLOADED,
    WeightState,
    linear_words,
    mapped_file_bytes,
    of_group,
    parameters,
    placement_words,
    places_beside,
    storage_words,
    weight_state,
)
from .base import EngineSetup


class Loaded(NamedTuple):
    """A loaded variant, as the engine holds it."""

    setup: EngineSetup
    artefact: Artefact
    model: Any
    encoder: TemplateEncoder
    device: str


def observe(
    loaded: Loaded, observed_at: ObservedAt, *, earlier: Variant | None = None
) -> tuple[Variant, list[TensorGroup]]:
    """Return the variant's descriptor and its tensor groups; variant_id and pass_id are left empty.

    Reads the artefact's files for their digests (once per file: cached by path, size and modification time). `earlier`
    is what an earlier look found: weights that are unpacked by the first request show as a difference.

    Raises NotAsRequested where the variant asks for a quantization that no weight is stored in.
    """
    setup, model = loaded.setup, loaded.model
    state = weight_state(model)
    weights, main = state.weights, state.main
    when = "after loading" if observed_at == "loaded" else "after the first requests"
    plain = "plain weights" if state.is_dense else state.method
    found = f"{plain} ({storage_words(parameters(weights))}, {weights.total_bytes} bytes) {when}{_why_unpacked(model)}"
    require_in_force(setup.variant.quantization, list(state.formats.values()), found, observed_at)
    folder = local_folder(loaded.artefact)
    digests = file_digests(artefact_files(folder, setup.model.gguf_file), user_cache_dir()) if folder else {}
    output = of_group(weights, "output_layer")
    observed = _observed(loaded, state)
    device_map = _device_map(loaded)
    elsewhere = places_beside(loaded.device, device_map, parameters(weights))
    variant = Variant(
        variant_id="", pass_id="",
        variant_name=setup.variant.name,
        observed_at=observed_at,
        model_id=setup.model.portable_id,
        model_revision=getattr(model.config, "_commit_hash", None) or setup.model.revision,
        requested=_requested(setup),
        observed=observed,
        origin=origin_words(setup, folder, is_dequantized=state.is_dense),
        quantization_method=state.method,
        quantization_bits=main.bits if main else None,
        quantization_group=main.group if main else None,
        excluded_modules=state.left_out,
        weight_storage=storage_words(parameters(weights)),
        compute_dtype=(main.compute_dtype if main else None) or observed["dtype"],
        attention=observed["attention"],
        cache_kind="none" if _is_embedding(loaded) else "dynamic",
        output_layer_format=_output_format(state, output),
        has_tied_embeddings=any(each.is_tied for each in output) if output else None,
        parameter_count=weights.parameter_count,
        weight_bytes=weights.total_bytes,
        claimed_weight_bytes=int(model.get_memory_footprint()),
        effective_bits=8 * weights.total_bytes / weights.parameter_count if weights.parameter_count else None,
        dtype_bytes=weights.dtype_bytes,
        device_map=device_map,
        has_offload=loaded.device != "cpu" and bool(OFFLOADED & set(elsewhere)),
        file_digests=digests,
        tokenizer_digest=loaded.encoder.tokenizer_digest(),
        template_digest=loaded.encoder.template_digest(),
        deviations=[*_deviations(loaded, observed, elsewhere), *_weight_deviations(setup, state, observed, earlier)],
    )  # fmt: skip
    names = ["quantization_bits", "quantization_group"]
    names += ["template_digest", "output_layer_format", "has_tied_embeddings"] if _is_embedding(loaded) else []
    never = dict.fromkeys(names, "not_applicable")
    return explained(variant, never), _tensor_groups(weights, observed_at)  # type: ignore[arg-type]


def _is_embedding(loaded: Loaded) -> bool:
    return loaded.setup.engine.answers_by == "embedding"


def _requested(setup: EngineSetup) -> dict[str, str]:
    asked = {
        "dtype": setup.variant.dtype,
        "attention": setup.variant.attention,
        "cache": setup.variant.cache if setup.engine.answers_by == "generation" else None,
        "quantization": setup.variant.quantization,
        "device": setup.device,
        "threads": setup.engine.threads,
        "gguf_file": setup.model.gguf_file,
    }
    return {name: str(value) for name, value in asked.items() if value is not None}


def _observed(loaded: Loaded, state: WeightState) -> dict[str, str]:
    import torch

    model = loaded.model
    facts = {
        "dtype": dtype_name(model.dtype),
        "attention": str(getattr(model.config, "_attn_implementation", "unknown")),
        "device": loaded.device,
        "threads": str(torch.get_num_threads()),
        "interop_threads": str(torch.get_num_interop_threads()),
        "model_class": type(model).__name__,
        "tokenizer_class": loaded.encoder.tokenizer_class(),
        "matmul_precision": torch.get_float32_matmul_precision(),
    }
    facts |= embedding_facts(loaded.artefact) if _is_embedding(loaded) else _generation_facts(model)
    if loaded.device.startswith("cuda"):
        facts["tf32"] = str(torch.backends.cuda.matmul.allow_tf32)
        facts["allocator"] = torch.cuda.get_allocator_backend()
    if len({each.device_id for each in state.weights.tensors}) > 1:
        facts["weight_placement"] = placement_words(state.weights.tensors)
    if mapped := mapped_file_bytes():
        facts["mapped_weight_file_bytes"] = str(mapped)
    asked = loaded.setup.variant.quantization
    method = METHODS.get(asked)
    if method is not None:
        facts |= {"linear_weights": linear_words(state), "linear_arithmetic": method.arithmetic}
        facts["quantization_config"] = _plain_config(model)
        facts["quantized"] = "in the file" if asked == "gguf" else "while loading, without calibration data"
    imported = [
        each for each in ("torch", "transformers", "accelerate", "safetensors", "tokenizers") if each in sys.modules
    ]
    for package in [*imported, *(method.packages if method else ())]:
        with contextlib.suppress(PackageNotFoundError):
            facts[f"version_{package}"] = version(package)
    return facts


def _generation_facts(model: Any) -> dict[str, str]:
    """Return what only a model that generates has: its cache's layers, end tokens and settings of its own."""
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config.get_text_config(decoder=True))
    layers = Counter(type(layer).__name__ for layer in cache.layers)
    facts = {
        "cache_layers": ", ".join(f"{count} {name}" for name, count in sorted(layers.items())) or "made on first use",
        "end_tokens": str(model.generation_config.eos_token_id),
    }
    if ignored := ignored_generation_settings(model.generation_config):
        facts["ignored_generation_settings"] = ", ".join(f"{name}={value}" for name, value in sorted(ignored.items()))
    return facts


def _why_unpacked(model: Any) -> str:
    """Return why a GGUF file's blocks were unpacked, as far as the loader knows; empty for anything else."""
    loader = getattr(model, "hf_quantizer", None)
    if type(loader).__name__ != "GgufHfQuantizer":
        return ""
    if not getattr(loader, "supported", True):
        return f": transformers {version('transformers')} cannot keep this architecture's blocks"
    return "" if getattr(loader, "kernel", None) else ": no kernel for these blocks on this device"


def _plain_config(model: Any) -> str:
    """Return the quantization configuration that the library says it used, every default included."""
    config: Any = getattr(model.config, "quantization_config", None)
    plain = config.to_dict() if hasattr(config, "to_dict") else config
    return json.dumps(plain, sort_keys=True, default=str)


def _output_format(state: WeightState, output: list[StoredTensor]) -> str | None:
    """Return the output layer's own format: its method where it has one, else its storage dtype."""
    own = state.formats.get(state.output_layer or "")
    return own.method if own is not None else storage_words(output)


def _weight_deviations(
    setup: EngineSetup, state: WeightState, observed: dict[str, str], earlier: Variant | None
) -> list[str]:
    asked = setup.variant.quantization
    method = METHODS.get(asked)
    found = []
    if state.method != asked:
        found.append(f"quantization: requested {asked}, found {state.method}")
    if state.main is not None and state.main.compute_dtype not in (None, setup.variant.dtype):
        found.append(f"compute: requested {setup.variant.dtype}, found {state.main.compute_dtype} in linear layers")
    if method is not None and method.input_dtype not in (None, observed["dtype"]):
        found.append(f"compute: the linear layers cast their {observed['dtype']} inputs to {method.input_dtype}")
    left = [name for name in state.left_out if name != state.output_layer]
    if left:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        found.append(f"quantization: {len(left)} modules beside the output layer are not quantized: {shown}")
    if earlier is not None and earlier.weight_bytes != state.weights.total_bytes:
        found.append(
            f"weights: {earlier.weight_bytes} bytes after loading, {state.weights.total_bytes} after the first requests"
        )
    return found


def _deviations(loaded: Loaded, observed: dict[str, str], elsewhere: list[str]) -> list[str]:
    setup = loaded.setup
    asked = {"dtype": setup.variant.dtype, "attention": setup.variant.attention, "threads": setup.engine.threads}
    found = [
        f"{name}: requested {value}, found {observed[name]}"
        for name, value in asked.items()
        if value is not None and str(value) != observed[name]
    ]
    if elsewhere:
        share = f": {observed['weight_placement']}" if "weight_placement" in observed else ""
        found.append(f"device: part of the model is on {', '.join(elsewhere)}{share}")
    if "ignored_generation_settings" in observed:
        found.append(f"greedy decoding without the model's own {observed['ignored_generation_settings']}")
    if _is_embedding(loaded):
        found += pooling_deviation(loaded.artefact)
    elif not loaded.encoder.has_template:
        found.append("no chat template: prompts are sent as plain text")
    return found


def _device_map(loaded: Loaded) -> dict[str, str]:
    """Return module -> device; one entry for the whole model where it lies on one device."""
    split = getattr(loaded.model, "hf_device_map", None) or {}
    named = {str(module): f"cuda:{place}" if isinstance(place, int) else str(place) for module, place in split.items()}
    return named if len(set(named.values())) > 1 else {"": str(loaded.model.device)}


def _tensor_groups(weights: WeightBytes, observed_at: ObservedAt) -> list[TensorGroup]:
    """Return one row per group, class, dtype and device. Bytes of a tied row are the shared storage's, held elsewhere.

    The rows that are not tied add up to the variant's weight_bytes.
    """
    rows: dict[tuple[Any, ...], list[StoredTensor]] = defaultdict(list)
    for each in weights.tensors:
        key = (
            each.module_group,
            each.module_class,
            each.tensor_class,
            each.storage_dtype,
            each.device_id,
            each.is_tied,
        )
        rows[key].append(each)
    return [
        TensorGroup(
            variant_id="", pass_id="",
            observed_at=observed_at,
            module_group=group,
            module_class=module_class,
            tensor_class=tensor_class,
            storage_dtype=storage_dtype,
            device_id=device_id,
            tensor_count=len(members),
            element_count=sum(each.element_count for each in members),
            tensor_bytes=sum(each.stored_bytes for each in members),
            is_tied=is_tied,
        )
        for (group, module_class, tensor_class, storage_dtype, device_id, is_tied), members in sorted(rows.items())
    ]  # fmt: skip
