"""What is really loaded, read back from the model: dtypes, bytes, devices, attention; where it differs from asked."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from collector.contract.records import TensorGroup, Variant
from collector.contract.records.base import ObservedAt
from collector.probes.weight_bytes import StoredTensor, WeightBytes, dtype_name, weigh

from ._artefact import Artefact, artefact_files, file_digests, local_folder, origin_words, user_cache_dir
from ._decode import ignored_generation_settings
from ._prompting import TemplateEncoder
from .base import EngineSetup


class Loaded(NamedTuple):
    """A loaded variant, as the engine holds it."""

    setup: EngineSetup
    artefact: Artefact
    model: Any
    encoder: TemplateEncoder
    device: str


def observe(loaded: Loaded, observed_at: ObservedAt) -> tuple[Variant, list[TensorGroup]]:
    """Return the variant's descriptor and its tensor groups; variant_id and pass_id are left empty.

    Reads the artefact's files for their digests (once per file: cached by path, size and modification time).
    """
    weights = weigh(loaded.model)
    setup, model = loaded.setup, loaded.model
    folder = local_folder(loaded.artefact)
    digests = file_digests(artefact_files(folder, setup.model.gguf_file), user_cache_dir()) if folder else {}
    output = _of_group(weights, "output_layer")
    observed = _observed(loaded)
    device_map = _device_map(loaded)
    variant = Variant(
        variant_id="", pass_id="",
        variant_name=setup.variant.name,
        observed_at=observed_at,
        model_id=setup.model.portable_id,
        model_revision=getattr(model.config, "_commit_hash", None) or setup.model.revision,
        requested=_requested(setup),
        observed=observed,
        origin=origin_words(setup, folder, is_dequantized=_is_dense(weights)),
        quantization_method=_quantization_method(loaded, weights),
        weight_storage=_storage(_parameters(weights)),
        compute_dtype=observed["dtype"],
        attention=observed["attention"],
        cache_kind="dynamic",
        output_layer_format=_storage(output),
        has_tied_embeddings=any(each.is_tied for each in output) if output else None,
        parameter_count=weights.parameter_count,
        weight_bytes=weights.total_bytes,
        claimed_weight_bytes=int(model.get_memory_footprint()),
        effective_bits=8 * weights.total_bytes / weights.parameter_count if weights.parameter_count else None,
        dtype_bytes=weights.dtype_bytes,
        device_map=device_map,
        has_offload=_has_offload(device_map, loaded.device),
        file_digests=digests,
        tokenizer_digest=loaded.encoder.tokenizer_digest(),
        template_digest=loaded.encoder.template_digest(),
        deviations=_deviations(loaded, observed, device_map),
    )  # fmt: skip
    return variant, _tensor_groups(weights, observed_at)


def _requested(setup: EngineSetup) -> dict[str, str]:
    asked = {
        "dtype": setup.variant.dtype,
        "attention": setup.variant.attention,
        "cache": setup.variant.cache,
        "quantization": setup.variant.quantization,
        "device": setup.device,
        "threads": setup.engine.threads,
        "gguf_file": setup.model.gguf_file,
    }
    return {name: str(value) for name, value in asked.items() if value is not None}


def _observed(loaded: Loaded) -> dict[str, str]:
    import torch
    from transformers import DynamicCache

    model = loaded.model
    cache = DynamicCache(config=model.config.get_text_config(decoder=True))
    layers = Counter(type(layer).__name__ for layer in cache.layers)
    facts = {
        "dtype": dtype_name(model.dtype),
        "attention": str(getattr(model.config, "_attn_implementation", "unknown")),
        "device": loaded.device,
        "threads": str(torch.get_num_threads()),
        "interop_threads": str(torch.get_num_interop_threads()),
        "model_class": type(model).__name__,
        "tokenizer_class": loaded.encoder.tokenizer_class(),
        "cache_layers": ", ".join(f"{count} {name}" for name, count in sorted(layers.items())) or "made on first use",
        "end_tokens": str(model.generation_config.eos_token_id),
        "matmul_precision": torch.get_float32_matmul_precision(),
    }
    if loaded.device.startswith("cuda"):
        facts["tf32"] = str(torch.backends.cuda.matmul.allow_tf32)
        facts["allocator"] = torch.cuda.get_allocator_backend()
    if ignored := ignored_generation_settings(model.generation_config):
        facts["ignored_generation_settings"] = ", ".join(f"{name}={value}" for name, value in sorted(ignored.items()))
    for package in ("torch", "transformers", "accelerate", "safetensors", "tokenizers"):
        if package in sys.modules:
            try:
                facts[f"version_{package}"] = version(package)
            except PackageNotFoundError:
                continue
    return facts


def _deviations(loaded: Loaded, observed: dict[str, str], device_map: dict[str, str]) -> list[str]:
    setup = loaded.setup
    asked = {"dtype": setup.variant.dtype, "attention": setup.variant.attention, "threads": setup.engine.threads}
    found = [
        f"{name}: requested {value}, found {observed[name]}"
        for name, value in asked.items()
        if value is not None and str(value) != observed[name]
    ]
    here = {loaded.device, f"{loaded.device}:0"}
    if elsewhere := sorted(set(device_map.values()) - here):
        found.append(f"device: part of the model is on {', '.join(elsewhere)}")
    if "ignored_generation_settings" in observed:
        found.append(f"greedy decoding without the model's own {observed['ignored_generation_settings']}")
    if not loaded.encoder.has_template:
        found.append("no chat template: prompts are sent as plain text")
    return found


def _device_map(loaded: Loaded) -> dict[str, str]:
    """Return module -> device; one entry for the whole model where it lies on one device."""
    split = getattr(loaded.model, "hf_device_map", None) or {}
    named = {str(module): f"cuda:{place}" if isinstance(place, int) else str(place) for module, place in split.items()}
    return named if len(set(named.values())) > 1 else {"": str(loaded.model.device)}


def _has_offload(device_map: dict[str, str], device: str) -> bool:
    return device != "cpu" and any(place in ("cpu", "disk", "meta") for place in device_map.values())


def _is_dense(weights: WeightBytes) -> bool:
    return not any("int" in each.storage_dtype for each in _parameters(weights))


def _quantization_method(loaded: Loaded, weights: WeightBytes) -> str:
    """Return the method in force, `none` where the weights are dense, whatever the file was."""
    method = getattr(getattr(loaded.model.config, "quantization_config", None), "quant_method", None)
    return "none" if method is None or _is_dense(weights) else str(getattr(method, "value", method))


def _parameters(weights: WeightBytes) -> list[StoredTensor]:
    return [each for each in weights.tensors if each.is_parameter]


def _of_group(weights: WeightBytes, group: str) -> list[StoredTensor]:
    return [each for each in weights.tensors if each.module_group == group]


def _storage(tensors: list[StoredTensor]) -> str | None:
    """Return the storage dtypes, the one with the most bytes first."""
    sizes: Counter[str] = Counter()
    for each in tensors:
        sizes[each.storage_dtype] += each.stored_bytes
    return ", ".join(name for name, _ in sizes.most_common()) or None


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
