"""True weight bytes: hand-built modules whose bytes are known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from collector.probes.weight_bytes import weigh


class Small(torch.nn.Module):
    """Embedding 10 x 4, attention 4 x 4, mlp 4 x 8, norm 4, output layer of 10 x 4, one buffer of 3."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(10, 4)
        self.self_attn = torch.nn.ModuleDict({"q_proj": torch.nn.Linear(4, 4, bias=False)})
        self.mlp = torch.nn.ModuleDict({"up": torch.nn.Linear(4, 8, bias=True)})
        self.norm = torch.nn.LayerNorm(4)
        self.lm_head = torch.nn.Linear(4, 10, bias=False)
        self.register_buffer("frequencies", torch.ones(3))
        if tied:
            self.lm_head.weight = self.embed.weight

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.embed

    def get_output_embeddings(self) -> torch.nn.Module:
        return self.lm_head


def bytes_by_group(model: torch.nn.Module) -> dict[str, int]:
    totals: dict[str, int] = {}
    for each in weigh(model).tensors:
        if not each.is_tied:
            totals[each.module_group] = totals.get(each.module_group, 0) + each.stored_bytes
    return totals


def test_bytes_and_parameters_of_a_hand_built_model_are_exact() -> None:
    found = weigh(Small(tied=False))
    assert found.parameter_count == 40 + 16 + 40 + 8 + 40
    assert found.total_bytes == 4 * (found.parameter_count + 3)
    assert found.dtype_bytes == {"float32": found.total_bytes}
    assert bytes_by_group(Small(tied=False)) == {
        "embedding": 160, "attention": 64, "mlp": 160, "norm": 32, "output_layer": 160, "other": 12,
    }  # fmt: skip


def test_a_tied_output_layer_counts_once_and_is_marked() -> None:
    found = weigh(Small(tied=True))
    assert found.parameter_count == 40 + 16 + 40 + 8
    assert found.total_bytes == 4 * (found.parameter_count + 3)
    (tied,) = [each for each in found.tensors if each.is_tied]
    assert (tied.module_group, tied.module_name, tied.stored_bytes) == ("output_layer", "lm_head", 160)


def test_mixed_dtypes_are_told_apart() -> None:
    model = Small(tied=False)
    model.mlp.to(torch.bfloat16)
    assert weigh(model).dtype_bytes == {"float32": 4 * (104 + 3), "bfloat16": 2 * 40}


def test_a_view_of_a_larger_storage_counts_the_storage_it_keeps_alive() -> None:
    model = torch.nn.Linear(4, 4, bias=False)
    model.weight = torch.nn.Parameter(torch.ones(100, 4)[:4])
    (tensor,) = weigh(model).tensors
    assert (tensor.element_count, tensor.stored_bytes) == (16, 1600)


def test_inner_tensors_of_a_subclass_are_counted_not_the_dtype_it_claims() -> None:
    class Packed(torch.Tensor):
        """Claims float32 4 x 8, stores int8 and one scale per row."""

        _data: torch.Tensor
        _scale: torch.Tensor

        @staticmethod
        def __new__(cls, data: torch.Tensor, scale: torch.Tensor) -> Any:
            made = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32)
            made._data, made._scale = data, scale
            return made

        def __tensor_flatten__(self) -> tuple[list[str], None]:
            return ["_data", "_scale"], None

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
                return args[0]
            raise NotImplementedError(str(func))

    model = torch.nn.Linear(8, 4, bias=False)
    packed = Packed(torch.ones(4, 8, dtype=torch.int8), torch.ones(4, dtype=torch.float16))
    model._parameters["weight"] = packed
    found = weigh(model)
    assert found.dtype_bytes == {"int8": 32, "float16": 8}
    assert found.total_bytes == 40
    assert {each.tensor_class for each in found.tensors} == {"Packed"}


def test_scales_and_codebooks_beside_a_packed_weight_are_counted_and_parameters_stay_logical() -> None:
    model = torch.nn.Linear(8, 4, bias=False)
    weight = torch.nn.Parameter(torch.zeros(16, 1, dtype=torch.uint8), requires_grad=False)
    weight.quant_state = SimpleNamespace(
        shape=torch.Size([4, 8]),
        absmax=torch.ones(2, dtype=torch.uint8),
        code=torch.ones(16),
        offset=torch.tensor(1.0),
        state2=SimpleNamespace(absmax=torch.ones(1), code=torch.ones(256)),
    )
    model.weight = weight
    found = weigh(model)
    assert found.total_bytes == 16 + 2 + 64 + 4 + 4 + 1024
    assert found.parameter_count == 32
