"""GGUF files: which block formats their tensors are stored in, and a dequantized copy as a plain model folder."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from collector.contract.errors import MissingDependency

_NEEDED = ("gguf", "torch", "transformers", "accelerate", "safetensors")


class BlockFormat(NamedTuple):
    """One storage format in a GGUF file."""

    name: str
    """As GGUF names it: Q4_1, Q8_0, F32 ..."""
    tensor_count: int
    tensor_bytes: int
    """Stored bytes, scales included."""
    example: str
    """Name of the largest tensor in this format."""


def block_formats(path: Path) -> list[BlockFormat]:
    """Return the storage formats of a GGUF file, the one with the most bytes first.

    Raises MissingDependency without the package gguf, ValueError when the file is no GGUF.
    """
    try:
        from gguf import GGUFReader
    except ImportError as fault:
        raise MissingDependency(
            "reading a GGUF file needs the package gguf", next_step="pip install 'gpu-dossier[collector]'"
        ) from fault
    sizes: dict[str, list[tuple[int, str]]] = {}
    for tensor in GGUFReader(path).tensors:
        sizes.setdefault(tensor.tensor_type.name, []).append((int(tensor.n_bytes), str(tensor.name)))
    formats = [
        BlockFormat(name, len(tensors), sum(size for size, _ in tensors), max(tensors)[1])
        for name, tensors in sizes.items()
    ]
    return sorted(formats, key=lambda each: (-each.tensor_bytes, each.name))


def stored_as(formats: list[BlockFormat]) -> str:
    """Return the storage in words: the bits of the format that most tensors have, then every format.

    `stored as 4-bit Q4_1 (210 tensors Q4_1, 61 tensors F32, 1 tensor Q8_0: token_embd.weight)`
    """
    main = max(formats, key=lambda each: (each.tensor_count, each.tensor_bytes))
    parts = []
    for each in sorted(formats, key=lambda one: -one.tensor_count):
        words = f"{each.tensor_count} tensor{'s' if each.tensor_count != 1 else ''} {each.name}"
        parts.append(words if each.tensor_count != 1 else f"{words}: {each.example}")
    digits = "".join(c for c in main.name.split("_")[0] if c.isdigit())
    bits = f"{digits}-bit " if main.name[0] in "QI" and digits else ""
    return f"stored as {bits}{main.name} ({', '.join(parts)})"


def write_dequantized(gguf: Path, out: Path) -> dict[str, str]:
    """Write the file's model, tokenizer and chat template into `out` as float32; return the versions that did it.

    float32 because the reference must be the artefact's own values: a Q4_1 block is scale x integer + minimum in
    half precision, which has more significant bits than bfloat16 keeps.

    Raises MissingDependency when a package is absent.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    except ImportError as fault:
        raise MissingDependency(
            f"converting a GGUF file needs {', '.join(_NEEDED)}: {fault}",
            next_step="pip install 'gpu-dossier[collector]'",
        ) from fault
    folder, name = str(gguf.parent), gguf.name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    # Asked for by name: without it a machine that has a GGUF kernel keeps the blocks, and such a model is not saved.
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    # transformers 5.17 leaves the GGUF mark on a dequantized model and then refuses to save it.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return {package: version(package) for package in _NEEDED}
