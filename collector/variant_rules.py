"""What can be known to fail about a variant before it is loaded: quantization, its packages, the files it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from collector.contract.errors import Finding, MissingDependency
from collector.contract.protocol import Protocol
from collector.engines import engine_module
from collector.engines.base import EngineSetup
from collector.protocol_file import LoadedProtocol


def quantization_findings(path: Path, protocol: Protocol, line_of: Callable[[str], int | None]) -> Iterator[Finding]:
    """Yield what contradicts the model's files or the dtype, whatever machine this runs on."""

    def say(place: str, rule: str, message: str, next_step: str) -> Finding:
        return Finding(path, line_of(place) or 1, rule, message, next_step)

    if protocol.engine.name != "transformers":
        return
    gguf_file = protocol.model.gguf_file
    for index, variant in enumerate(protocol.variants):
        if variant.server is not None:  # what its server makes of the weights is between it and its start command
            continue
        place = f"variant[{index}].quantization"
        if variant.quantization == "gguf" and gguf_file is None:
            message = f"variant {variant.name!r} keeps GGUF blocks, and the model names no GGUF file"
            yield say(place, "quantization", message, "add gguf_file under [model], or name another quantization")
        if variant.quantization not in ("none", "gguf") and gguf_file is not None:
            message = (
                f"variant {variant.name!r} asks for {variant.quantization} of a model that is read from a GGUF file"
            )
            next_step = (
                'write quantization = "none" or "gguf"; or convert the file to a folder first and name that folder'
            )
            yield say(place, "quantization", message, next_step)
        if variant.attention == "flash_attention_2" and variant.dtype == "float32":
            message = f"variant {variant.name!r} computes in float32, which flash_attention_2 has no kernel for"
            next_step = 'write dtype = "bfloat16" or "float16", or attention = "sdpa"'
            yield say(f"variant[{index}].attention", "attention", message, next_step)


def package_findings(loaded: LoadedProtocol) -> list[Finding]:
    """Return one finding per quantized variant whose packages are not installed here, with the install command.

    A server's packages are in an environment of its own, which is not looked into.
    """
    protocol = loaded.protocol
    if protocol.engine.name == "openai":
        return []
    module = engine_module(protocol.engine.name)
    findings = []
    for index, variant in enumerate(protocol.variants):
        if variant.quantization == "none" or variant.server is not None:
            continue
        setup = EngineSetup(
            base_dir=str(loaded.path.parent), model=protocol.model, engine=protocol.engine, variant=variant,
            generation=protocol.generation, limits=protocol.limits, device="cpu", pass_label="check/0/0",
        )  # fmt: skip
        try:
            module.identity(setup)
        except MissingDependency as fault:
            line = loaded.line_of(f"variant[{index}].quantization")
            message = f"variant {variant.name!r}: {fault.message}"
            findings.append(Finding(loaded.path, line, "missing-package", message, fault.next_step))
    return findings
