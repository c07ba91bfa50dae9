"""The weights of a loaded model: which method is really in force, which modules it left out, where they lie."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import psutil

from collector.probes.weight_bytes import StoredTensor, WeightBytes, weigh
from collector.probes.weight_formats import WeightFormat, logical_elements, module_format

OFFLOADED = frozenset({"cpu", "disk", "meta"})
"""Places of weights that a card fetches for each use."""
_WEIGHT_FILES = (".safetensors", ".bin", ".gguf")


class WeightState(NamedTuple):
    """What a walk over the modules found."""

    weights: WeightBytes
    formats: dict[str, WeightFormat]
    """Module name -> how its weight is stored, for modules whose weight is not a plain tensor."""
    main: WeightFormat | None
    """The format that most weights are in."""
    plain: list[str]
    """Modules that hold plain matrices: linear layers and experts, embeddings left out."""
    output_layer: str | None
    library_method: str | None
    """What transformers' configuration says, in its words."""

    @property
    def is_dense(self) -> bool:
        return not self.formats and not any("int" in each.storage_dtype for each in parameters(self.weights))

    @property
    def method(self) -> str:
        """The method in force, `none` where the weights are dense, whatever the file or the configuration says."""
        if self.formats:
            return ", ".join(name for name, _ in Counter(each.method for each in self.formats.values()).most_common())
        return "none" if self.is_dense or self.library_method is None else self.library_method

    @property
    def left_out(self) -> list[str]:
        """Modules that hold plain matrices although a method is in force."""
        return self.plain if self.formats else []


def weight_state(model: Any) -> WeightState:
    """Walk a loaded transformers model."""
    formats: dict[str, WeightFormat] = {}
    plain: list[str] = []
    sizes: Counter[WeightFormat] = Counter()
    output = model.get_output_embeddings()
    output_name = None
    for name, module in model.named_modules():
        if module is output:
            output_name = name
        found = module_format(module)
        if found is not None:
            formats[name] = found
            sizes[found] += logical_elements(module, module._parameters["weight"])
        elif _holds_matrices(module):
            plain.append(name)
    main = sizes.most_common(1)[0][0] if sizes else None
    claimed = getattr(getattr(model.config, "quantization_config", None), "quant_method", None)
    method = None if claimed is None else str(getattr(claimed, "value", claimed))
    return WeightState(weigh(model), formats, main, plain, output_name, method)


def _holds_matrices(module: Any) -> bool:
    """True for linear layers and for experts, which hold theirs in one tensor; an embedding is only looked up."""
    if "Embedding" in type(module).__name__:
        return False
    return any(each is not None and each.ndim >= 2 for each in module._parameters.values())


def parameters(weights: WeightBytes) -> list[StoredTensor]:
    return [each for each in weights.tensors if each.is_parameter]


def of_group(weights: WeightBytes, group: str) -> list[StoredTensor]:
    return [each for each in weights.tensors if each.module_group == group]


def storage_words(tensors: Sequence[StoredTensor]) -> str | None:
    """Return the storage dtypes, the one with the most bytes first."""
    sizes: Counter[str] = Counter()
    for each in tensors:
        sizes[each.storage_dtype] += each.stored_bytes
    return ", ".join(name for name, _ in sizes.most_common()) or None


def linear_words(state: WeightState) -> str:
    """Return what the linear layers hold, the output layer left out: `210 of 210 torchao_int8`."""
    quantized = [each for name, each in state.formats.items() if name != state.output_layer]
    others = [name for name in state.plain if name != state.output_layer]
    counts = Counter(each.method for each in quantized)
    total = len(quantized) + len(others)
    words = [f"{count} of {total} {method}" for method, count in counts.most_common()]
    return ", ".join([*words, *([f"{len(others)} of {total} plain"] if others else [])]) or "none"


def places_beside(device: str, device_map: dict[str, str], tensors: Sequence[StoredTensor]) -> list[str]:
    """Return where parts of the model are that are not on the device asked for, by its map and by its own tensors."""
    found = {*device_map.values(), *(each.device_id for each in tensors)}
    return sorted(found - {device, f"{device}:0"})


def placement_words(tensors: Sequence[StoredTensor]) -> str:
    """Return the share of the weight bytes on each device, the largest first: `cuda:0 93.8 %, cpu 6.2 %`."""
    sizes: Counter[str] = Counter()
    for each in tensors:
        if not each.is_tied:
            sizes[each.device_id] += each.stored_bytes
    total = sum(sizes.values())
    return ", ".join(f"{device} {100 * size / total:.1f} %" for device, size in sizes.most_common() if total)


def mapped_file_bytes() -> int | None:
    """Return how many bytes of weight files this process holds resident as mapped pages; null where it cannot be read.

    On a processor transformers maps safetensors files, and the mapping stays while one tensor still points into it: a
    model quantized while loading keeps the unquantized file in its resident size. The system can take such pages back.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        maps = psutil.Process().memory_maps(grouped=True)
    except (psutil.Error, OSError):
        return None
    return sum(int(each.rss) for each in maps if each.path.endswith(_WEIGHT_FILES))
