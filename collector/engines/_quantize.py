"""The table of quantization methods: what each needs, how the library is asked for it, and that it is really there.

Weights are quantized while loading, from the model's own files: nothing is calibrated. The variant's dtype stays what
is computed in. The versions of the packages and the recipe are flags of the engine's identity, for this variant alone:
with another version it is another configuration, and a variant that uses no method does not change with them.
"""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from collector.contract.errors import MissingDependency
from collector.contract.protocol import Quantization
from collector.contract.records.base import FailureCause, ObservedAt
from collector.probes.weight_formats import WeightFormat

from .base import EngineSetup
from .faults import NotAsRequested

INSTALL = "pip install 'gpu-dossier[quantized]'"


class Method(NamedTuple):
    """One quantization method. `build` takes torch's compute dtype and returns transformers' configuration."""

    build: Callable[[Any], Any]
    packages: tuple[str, ...]
    """Distributions that must be installed, as package indexes name them."""
    recipe: str
    """What is asked for, in the library's words; changes when `build` would make other weights."""
    arithmetic: str
    """What a linear layer computes, in words."""
    input_dtype: str | None = None
    """The dtype that a linear layer casts its inputs to, whatever the variant's dtype is."""
    absent: FailureCause = "load_failure"
    """What it means when the weights are found plain."""
    advice: str = "name another quantization, or none; the versions that are known to work are in the README"


def _torchao_int8(dtype: Any) -> Any:
    from torchao.quantization import Int8WeightOnlyConfig
    from transformers import TorchAoConfig

    return TorchAoConfig(Int8WeightOnlyConfig())


def _bnb_int8(dtype: Any) -> Any:
    import transformers

    untyped: Any = transformers
    return untyped.BitsAndBytesConfig(load_in_8bit=True)


def _bnb_nf4(dtype: Any) -> Any:
    import transformers

    untyped: Any = transformers
    return untyped.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype)


def _quanto_int8(dtype: Any) -> Any:
    from transformers import QuantoConfig

    return QuantoConfig(weights="int8")


def _gguf(dtype: Any) -> Any:
    from transformers import GgufConfig

    return GgufConfig(dequantize=False)


_WEIGHT_ONLY = "weights are unpacked to the compute dtype"
METHODS: dict[Quantization, Method] = {
    "torchao_int8": Method(_torchao_int8, ("torchao",), "Int8WeightOnlyConfig(), a scale per row", _WEIGHT_ONLY),
    "bnb_int8": Method(
        _bnb_int8, ("bitsandbytes",), "load_in_8bit, llm_int8_threshold 6.0, a scale per row",
        "inputs are cast to float16 and quantized to 8 bits per row; input columns over 6.0 stay float16",
        input_dtype="float16",
    ),
    "bnb_nf4": Method(
        _bnb_nf4, ("bitsandbytes",), "load_in_4bit nf4, no double quantization, groups of 64", _WEIGHT_ONLY
    ),
    "quanto_int8": Method(
        _quanto_int8, ("optimum-quanto",), "QuantoConfig(weights=int8), a scale per row", _WEIGHT_ONLY
    ),
    "gguf": Method(
        _gguf, ("gguf",), "GgufConfig(dequantize=False), blocks as in the file", _WEIGHT_ONLY,
        absent="missing_operator",
        advice="blocks stay packed only on a card, for architectures that transformers keeps packed, with the package "
        'kernels and its kernel from the Hub; quantization = "none" measures the same file unpacked',
    ),
}  # fmt: skip


def missing_packages(quantization: Quantization) -> list[str]:
    """Return the packages of a method that are not installed. Imports none of them."""
    method = METHODS.get(quantization)
    return [name for name in method.packages if _version(name) is None] if method is not None else []


def require_packages(quantization: Quantization) -> None:
    """Raise MissingDependency with the install command where a method's package is not installed."""
    if missing := missing_packages(quantization):
        raise MissingDependency(f"quantization {quantization} needs {', '.join(missing)}", next_step=INSTALL)


def identity_flags(quantization: Quantization) -> dict[str, str]:
    """Return what of a method decides the result: the versions of its packages and the recipe; empty for none."""
    method = METHODS.get(quantization)
    if method is None:
        return {}
    flags = {name: _version(name) or "absent" for name in method.packages}
    if quantization == "gguf":
        flags["kernels"] = _version("kernels") or "absent"
    return flags | {"quantization_recipe": method.recipe}


def load_options(setup: EngineSetup, dtype: Any) -> dict[str, Any]:
    """Return the keyword arguments that ask `from_pretrained` for the variant's method."""
    method = METHODS.get(setup.variant.quantization)
    if method is not None:
        _once_each("bitsandbytes.autograd._functions")
        return {"quantization_config": method.build(dtype)}
    if setup.model.gguf_file is not None:
        from transformers import GgufConfig

        # Asked for by name: left open, a machine with a kernel would keep the blocks, another one would not.
        return {"quantization_config": GgufConfig(dequantize=True)}
    return {}


def require_in_force(
    quantization: Quantization, formats: Sequence[WeightFormat], found: str, observed_at: ObservedAt
) -> None:
    """Raise NotAsRequested where a method was asked for and no weight is stored that way.

    found: what the weights are instead, since when, and why as far as that is known, in words.
    """
    method = METHODS.get(quantization)
    if method is None or any(each.method == quantization for each in formats):
        return
    raise NotAsRequested(
        f"quantization: requested {quantization}, found {found}",
        next_step=method.advice,
        cause=method.absent if observed_at == "loaded" else "load_failure",
    )


class _Once(logging.Filter):
    """Lets each message through once: bitsandbytes warns in every layer of every token, inside the measured time."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if message in self._seen:
            return False
        self._seen.add(message)
        return True


def _once_each(logger_name: str) -> None:
    logger = logging.getLogger(logger_name)
    if not any(isinstance(each, _Once) for each in logger.filters):
        logger.addFilter(_Once())


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
