"""What a block pool for continuous batching cannot run, told before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from collector.contract.errors import Finding
from collector.contract.protocol import Protocol
from collector.engines._continuous import MIN_BLOCK_SIZE, blocks_needed, layers_without_blocks
from collector.prompt_fit import check_setup
from collector.protocol_file import LoadedProtocol

RULE = "continuous"
_PLACE = "engine.continuous"


def continuous_findings(path: Path, protocol: Protocol, line_of: Callable[[str], int | None]) -> Iterator[Finding]:
    """Yield what contradicts the pool, whatever the model is; nothing for a protocol without one."""
    pool, plan = protocol.engine.continuous, protocol.plan
    if pool is None or protocol.engine.name != "transformers":  # of another engine the rules of servers tell
        return

    def say(place: str, message: str, next_step: str) -> Finding:
        return Finding(path, line_of(place) or line_of("engine") or 1, RULE, message, next_step)

    if protocol.engine.answers_by == "embedding":
        message = "[engine.continuous] runs requests that generate, and the engine answers by embedding"
        yield say(_PLACE, message, "remove it")
    reference = next((each for each in protocol.variants if each.name == plan.reference), None)
    if not plan.concurrencies or (reference is not None and reference.server is not None):
        message = (
            "[engine.continuous] is for the reference with several requests at a time, and the plan has no such pass"
        )
        step = "write concurrencies = [2, 4] under [plan], with a reference that this engine answers for; or remove it"
        yield say(_PLACE, message, step)
    if pool.block_size < MIN_BLOCK_SIZE:
        message = f"`{_PLACE}.block_size` is {pool.block_size}, and the library takes {MIN_BLOCK_SIZE} or more"
        yield say(f"{_PLACE}.block_size", message, "write 32, or leave it out")
    most, what = min((pool.num_blocks, "num_blocks"), (pool.max_batch_tokens, "max_batch_tokens"))
    if plan.concurrencies and max(plan.concurrencies) > most:
        message = (
            f"`plan.concurrencies` goes up to {max(plan.concurrencies)}, and with {what} = {most} no more than {most} "
            "requests can run at a time"
        )
        yield say("plan.concurrencies", message, f"raise {what} under [engine.continuous], or lower concurrencies")


def model_findings(loaded: LoadedProtocol, longest_prompt_tokens: int | None) -> list[Finding]:
    """Return what of the model does not fit the pool: kinds of layers without blocks, and the longest prompt.

    Reads the model's configuration and no weights.
    """
    protocol = loaded.protocol
    pool = protocol.engine.continuous
    if pool is None or protocol.engine.name != "transformers":
        return []
    findings = []
    try:
        kinds = layers_without_blocks(check_setup(loaded))
    except Exception:  # a configuration that the library cannot read has been told with the tokenizer beside it
        kinds = []
    if kinds:
        message = (
            f"the model has layers of kind {', '.join(kinds)}, whose state continuous batching cannot keep in blocks"
        )
        step = "remove [engine.continuous] and write batches = [...] for static batches, or use a server"
        findings.append(Finding(loaded.path, loaded.line_of(_PLACE), RULE, message, step))
    if longest_prompt_tokens is not None:
        tokens = longest_prompt_tokens + protocol.generation.max_new_tokens
        needed = blocks_needed(tokens, pool.block_size)
        if needed > pool.num_blocks:
            message = (
                f"the longest prompt and its answer take {tokens} tokens, which is {needed} blocks of "
                f"{pool.block_size}; `{_PLACE}.num_blocks` is {pool.num_blocks}"
            )
            step = f"raise it to {needed} at least; for each request at a time as many, or requests are evicted"
            findings.append(Finding(loaded.path, loaded.line_of(f"{_PLACE}.num_blocks"), RULE, message, step))
    return findings
