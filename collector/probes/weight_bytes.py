"""True bytes of a loaded model: parameters and buffers of every module, each storage once.

A library's own footprint multiplies element counts by the dtype that a tensor claims. Quantized tensors claim the dtype
they compute in, so that figure can be the unquantized size. Here the storages behind the tensors are measured: the
inner tensors of a subclass, the scales and codebooks kept beside a weight, and a storage shared by two modules once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from collector.contract.records.setups import ModuleGroup
from collector.probes.weight_formats import logical_elements

if TYPE_CHECKING:
    import torch

_BESIDE = ("CB", "SCB")
_STATE = ("absmax", "code", "offset")
_ATTENTION = ("attn", "attention")
_MLP = ("mlp", "feed_forward", "ffn", "experts", "moe", "intermediate", "output.dense")
"""The last two are an encoder's (BERT and its kin), whose attention has an `output.dense` of its own."""


class StoredTensor(NamedTuple):
    """One tensor as stored, where the model holds it."""

    module_name: str
    module_class: str
    tensor_name: str
    tensor_class: str
    storage_dtype: str
    device_id: str
    element_count: int
    """Elements of the stored tensor; a packed weight has fewer than it stands for."""
    stored_bytes: int
    """Bytes of the whole storage behind it."""
    is_parameter: bool
    is_tied: bool
    """True where an earlier module already holds this storage; its bytes count there."""
    module_group: ModuleGroup


class WeightBytes(NamedTuple):
    """What the walk found."""

    tensors: list[StoredTensor]
    total_bytes: int
    """Each storage once."""
    parameter_count: int
    """Logical parameters, tied ones once."""
    dtype_bytes: dict[str, int]
    """Storage dtype -> bytes, each storage once."""


def weigh(model: torch.nn.Module) -> WeightBytes:
    """Walk a loaded model. Tensors on the meta device have no bytes and are left out."""
    seen: set[tuple[str, int]] = set()
    tensors: list[StoredTensor] = []
    groups = _Groups(model)
    for module_name, module in model.named_modules():
        for tensor_name, tensor, is_parameter in _own_tensors(module):
            for inner_name, inner in _stored(tensor_name, tensor):
                storage = inner.untyped_storage()
                if inner.device.type == "meta" or storage.nbytes() == 0:
                    continue
                key = (str(inner.device), storage.data_ptr())
                tensors.append(
                    StoredTensor(
                        module_name=module_name,
                        module_class=type(module).__name__,
                        tensor_name=inner_name,
                        tensor_class=type(tensor).__name__,
                        storage_dtype=dtype_name(inner.dtype),
                        device_id=device_name(inner.device),
                        element_count=inner.numel(),
                        stored_bytes=storage.nbytes(),
                        is_parameter=is_parameter,
                        is_tied=key in seen,
                        module_group=groups.of(module_name, module),
                    )
                )
                seen.add(key)
    dtype_bytes: Counter[str] = Counter()
    for each in tensors:
        if not each.is_tied:
            dtype_bytes[each.storage_dtype] += each.stored_bytes
    return WeightBytes(tensors, sum(dtype_bytes.values()), _parameter_count(model), dict(dtype_bytes))


def dtype_name(dtype: Any) -> str:
    """Return `float32` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def device_name(device: Any) -> str:
    """Return `cpu`, `cuda:0` ...: as the records address a device."""
    return str(device.type) if device.index is None else f"{device.type}:{device.index}"


class _Groups:
    """Which part of a language model a module belongs to."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._embedding = _ask(model, "get_input_embeddings")
        self._output = _ask(model, "get_output_embeddings")

    def of(self, name: str, module: torch.nn.Module) -> ModuleGroup:
        """Return the group by identity for both ends of the model, by class and path for what lies between.

        A norm inside an attention block is a norm: norms stay unquantized where attention does not.
        """
        path = name.lower()
        if module is self._embedding:
            return "embedding"
        if module is self._output:
            return "output_layer"
        if "norm" in type(module).__name__.lower():
            return "norm"
        if any(word in path for word in _ATTENTION):
            return "attention"
        if any(word in path for word in _MLP):
            return "mlp"
        return "embedding" if type(module).__name__ == "Embedding" else "other"


def _ask(model: torch.nn.Module, method: str) -> object:
    """Return what a transformers model answers, or None for a plain module or a model without that part."""
    try:
        return getattr(model, method)()
    except (AttributeError, NotImplementedError):
        return None


def _own_tensors(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Yield the module's own parameters and buffers, and the tensors that quantizers hang beside them."""
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield name, parameter, True
    for name, buffer in module._buffers.items():
        if buffer is not None:
            yield name, buffer, False
    # Neither list knows a tensor that hangs on the module as a plain attribute.
    for name, value in vars(module).items():
        if hasattr(value, "untyped_storage"):
            yield name, value, False
    # bitsandbytes moves an 8-bit weight's scales from the weight to this state when it computes for the first time.
    state = getattr(module, "state", None)
    for extra in _BESIDE:
        found: Any = getattr(state, extra, None)
        if hasattr(found, "untyped_storage"):
            yield f"state.{extra}", found, False


def _stored(name: str, tensor: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors really stored for one tensor: itself or its inner ones, then scales and codebooks."""
    if hasattr(tensor, "__tensor_flatten__"):
        for inner in tensor.__tensor_flatten__()[0]:
            yield from _stored(f"{name}.{inner}", getattr(tensor, inner))
    else:
        yield name, tensor
    for extra in _BESIDE:
        if (found := getattr(tensor, extra, None)) is not None:
            yield f"{name}.{extra}", found
    state = getattr(tensor, "quant_state", None)
    for prefix, holder in ((f"{name}.quant_state", state), (f"{name}.state2", getattr(state, "state2", None))):
        for extra in _STATE:
            if (found := getattr(holder, extra, None)) is not None and hasattr(found, "untyped_storage"):
                yield f"{prefix}.{extra}", found


def _parameter_count(model: torch.nn.Module) -> int:
    """Return the logical parameters: a packed weight counts what it stands for, a tied one counts once."""
    seen: set[int] = set()
    count = 0
    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                count += logical_elements(module, parameter)
    return count
