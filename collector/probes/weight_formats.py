"""How the weights of one module are really stored: read from the tensors that are there, never from a configuration.

A configuration says what was asked for. A library that cannot do it here may leave the plain weights in place, and its
configuration still names the method. Classes are known by name, so no quantization package is imported to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch


class WeightFormat(NamedTuple):
    """One module's weights as stored."""

    method: str
    """In the protocol's words where it has some: torchao_int8, bnb_nf4 ..."""
    bits: int
    group: int | None
    """Weights that share one scale; null for a scale per row."""
    compute_dtype: str | None = None
    """Where the module itself says what it unpacks to."""


def module_format(module: torch.nn.Module) -> WeightFormat | None:
    """Return the format of a module's `weight`, or None where it is a plain tensor or absent."""
    weight: Any = module._parameters.get("weight")
    if weight is None:
        return None
    for look in (_gguf, _bitsandbytes, _torchao, _quanto):
        if (found := look(module, weight)) is not None:
            return found
    return None


def logical_elements(module: torch.nn.Module, parameter: Any) -> int:
    """Return how many weights a parameter of this module stands for; a packed one holds fewer elements than that."""
    if parameter is module._parameters.get("weight") and hasattr(module, "ggml_type"):
        sides: Any = (
            (module.out_features, module.in_features)
            if hasattr(module, "in_features")
            else (module.num_embeddings, module.embedding_dim)
        )
    else:
        sides = getattr(getattr(parameter, "quant_state", None), "shape", None) or parameter.shape
    count = 1
    for side in sides:
        count *= int(side)
    return count


def _gguf(module: torch.nn.Module, weight: Any) -> WeightFormat | None:
    kind = getattr(module, "ggml_type", None)
    if kind is None or "int" not in str(weight.dtype):
        return None
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    ggml = GGMLQuantizationType(int(kind))
    block_elements, block_bytes = GGML_QUANT_SIZES[ggml]
    digits = "".join(each for each in ggml.name.split("_")[0] if each.isdigit())
    return WeightFormat("gguf", int(digits) if digits else 8 * block_bytes // block_elements, int(block_elements))


def _bitsandbytes(module: torch.nn.Module, weight: Any) -> WeightFormat | None:
    if not type(weight).__module__.startswith("bitsandbytes"):
        return None
    state = getattr(weight, "quant_state", None)
    if state is not None:
        compute = getattr(module, "compute_dtype", None)
        name = None if compute is None else str(compute).removeprefix("torch.")
        return WeightFormat(f"bnb_{state.quant_type}", 4, int(state.blocksize), name)
    # The class alone proves nothing: Int8Params holds plain weights until they are quantized.
    return WeightFormat("bnb_int8", 8, None) if str(weight.dtype) == "torch.int8" else None


def _torchao(module: torch.nn.Module, weight: Any) -> WeightFormat | None:
    if not type(weight).__module__.startswith("torchao"):
        return None
    packed = getattr(weight, "qdata", None)
    if packed is None:
        return WeightFormat(f"torchao_{type(weight).__name__}", 8 * weight.element_size(), None)
    name = str(packed.dtype).removeprefix("torch.")
    block = list(getattr(weight, "block_size", None) or [])
    group = int(block[-1]) if block and block[-1] != weight.shape[-1] else None
    return WeightFormat(f"torchao_{name}", 8 * packed.element_size(), group)


def _quanto(module: torch.nn.Module, weight: Any) -> WeightFormat | None:
    if not type(weight).__module__.startswith("optimum.quanto"):
        return None
    kind = weight._qtype
    group = getattr(weight, "_group_size", None)
    return WeightFormat(
        f"quanto_{str(kind.name).removeprefix('q')}", int(kind.bits), None if group is None else int(group)
    )
