"""What a protocol may not say when its engine ranks by embedding: nothing is generated, so nothing may ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from collector.contract.errors import Finding
from collector.contract.protocol import Protocol

RULE = "answers-by"


class _Fault(NamedTuple):
    place: str
    message: str
    next_step: str


def embedding_findings(path: Path, protocol: Protocol, line_of: Callable[[str], int | None]) -> Iterator[Finding]:
    """Yield what contradicts `engine.answers_by = "embedding"`; nothing for a protocol that generates."""
    if protocol.engine.answers_by != "embedding":
        return
    for fault in (*_task(protocol), *_model(protocol)):
        yield Finding(path, line_of(fault.place) or 1, RULE, fault.message, fault.next_step)


def _task(protocol: Protocol) -> Iterator[_Fault]:
    task, generation = protocol.task, protocol.generation
    if task.kind != "ranking":
        message = f"the engine answers by embedding, which ranks candidates, and the task is of kind {task.kind}"
        yield _Fault("engine.answers_by", message, 'write answers_by = "generation", or kind = "ranking" under [task]')
    if task.system:
        message = "`task.system` is not empty, and an embedding has no system text: it would be left out"
        yield _Fault("task.system", message, "remove it; what belongs before each query goes into [task] prompt")
    if task.examples:
        message = f"{len(task.examples)} worked example(s), and an embedding takes none: they would be left out"
        yield _Fault("task.example[0]", message, "remove them")
    if generation.max_new_tokens != 1:
        message = f"`generation.max_new_tokens` is {generation.max_new_tokens}, and an embedding generates no token"
        yield _Fault("generation.max_new_tokens", message, "write max_new_tokens = 1: the form asks for a number")
    if generation.stop_after:
        message = "`generation.stop_after` names texts, and an embedding generates none"
        yield _Fault("generation.stop_after", message, "remove it")


def _model(protocol: Protocol) -> Iterator[_Fault]:
    if protocol.model.gguf_file is not None:
        message = "the engine answers by embedding, and the model is a GGUF file, which is read for generation alone"
        yield _Fault("model.gguf_file", message, "name a folder with safetensors files as the model")
    for index, variant in enumerate(protocol.variants):
        if variant.cache != "dynamic":
            message = f"variant {variant.name!r} asks for a {variant.cache} cache, and an embedding keeps none"
            yield _Fault(f"variant[{index}].cache", message, "leave cache out")
