"""Continuous batching in process against static batches and one request at a time, interleaved in one run.

    python tests/benchmarks/continuous.py --cache .cache [--documents 16] [--at-a-time 4] [--rounds 1] [--threads 1]

The starter's documents with the starter's own prompt, limit and stop text, by the demo model. Each round asks all
three, then all three in the reverse order. Time is from the first request sent to the last answer done; the pool's
start is in none. Printed: ratios of whole-run tokens per second (never a speed, which is the machine's), answers that
differ from those of one at a time, accepted documents of each, and the share of requests' time that is by the engine
queue, prefill and decode.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

import collector
from collector.clock import SystemClock
from collector.contract.judging import Given, Rules, judge_document
from collector.contract.protocol import ContinuousChoice, DocumentLine, EngineChoice, Model, Protocol, VariantChoice
from collector.documents import read_documents, render_prompt
from collector.engines.base import Answer, EncodedPrompt, Engine, EngineSetup, Load
from collector.engines.transformers_engine import create
from collector.protocol_check import load_protocol
from collector.starter.demo_model import ensure

STARTER = Path(collector.__file__).parent / "starter"


def setup_of(folder: Path, protocol: Protocol, at_a_time: int, threads: int) -> EngineSetup:
    pool = ContinuousChoice(block_size=32, num_blocks=24 * at_a_time, max_batch_tokens=512)
    return EngineSetup(
        base_dir=tempfile.mkdtemp(), model=Model(id=str(folder)),
        engine=EngineChoice(name="transformers", continuous=pool, threads=threads), variant=VariantChoice(name="fp32"),
        generation=protocol.generation, limits=protocol.limits, device="cpu", pass_label="fp32/1/1",
    )  # fmt: skip


def asked(engine: Engine, prompts: Sequence[EncodedPrompt], load: Load) -> list[Answer]:
    list(engine.answers(prompts[: max(load.batch, load.concurrency)], "warmup", load))
    return list(engine.answers(prompts, "measure", load))


def tokens_per_s(answers: Sequence[Answer]) -> float:
    began = min(one.sent_ns for one in answers if one.sent_ns is not None)
    ended = max(one.done_ns for one in answers if one.done_ns is not None)
    return sum(one.output_tokens or 0 for one in answers) * 1e9 / (ended - began)


def accepted(protocol: Protocol, documents: Sequence[DocumentLine], answers: Sequence[Answer]) -> set[str]:
    rules, by_id = Rules(protocol.task.kind, protocol.task.fields), {document.id: document for document in documents}
    return {
        one.prompt.document_id
        for one in answers
        if judge_document(
            rules, by_id[one.prompt.document_id], Given(one.text, one.finish_reason, one.request_outcome)
        ).is_accepted
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--at-a-time", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    protocol = load_protocol(STARTER / "protocol.toml").protocol
    lines = [entry.document for entry in read_documents(STARTER / "documents.jsonl").entries]
    usual = [document for document in lines if document.length_class != "long"]
    documents = usual[:: max(1, len(usual) // options.documents)][: options.documents]
    engine = create(
        setup_of(ensure(options.cache.resolve()), protocol, options.at_a_time, options.threads), SystemClock()
    )
    engine.load()
    prompts = engine.encode([render_prompt(protocol.task, document) for document in documents])
    loads = {
        "alone": Load(),
        f"static batch {options.at_a_time}": Load(batch=options.at_a_time),
        f"continuous {options.at_a_time}": Load(concurrency=options.at_a_time),
    }
    speeds: dict[str, list[float]] = {name: [] for name in loads}
    found: dict[str, list[Answer]] = {}
    for turn in range(2 * options.rounds):
        for name in loads if turn % 2 == 0 else reversed(loads):
            found[name] = asked(engine, prompts, loads[name])
            speeds[name].append(tokens_per_s(found[name]))
    engine.close()
    report(protocol, documents, speeds, found)
    return 0


def report(
    protocol: Protocol,
    documents: Sequence[DocumentLine],
    speeds: dict[str, list[float]],
    found: dict[str, list[Answer]],
) -> None:
    alone, static, continuous = speeds
    own = {one.prompt.document_id: one for one in found[alone]}
    median = {name: statistics.median(each) for name, each in speeds.items()}
    say = sys.stdout.write
    for name, of in ((static, alone), (continuous, alone), (continuous, static)):
        ratios = [one / other for one, other in zip(speeds[name], speeds[of], strict=True)]
        say(f"{name} / {of}: {median[name] / median[of]:.2f} ({min(ratios):.2f} to {max(ratios):.2f})\n")
    for name, answers in found.items():
        ids = {one.prompt.document_id: one.token_ids for one in answers}
        differing = ", ".join(name for name, held in ids.items() if held != own[name].token_ids) or "none"
        right = accepted(protocol, documents, answers)
        say(f"{name}: {len(right)} of {len(answers)} accepted; other tokens than alone: {differing}\n")
        changed = right ^ accepted(protocol, documents, found[alone])
        if changed:
            say(f"  accepted otherwise than alone: {', '.join(sorted(changed))}\n")
    wires = [one.wire for one in found[continuous] if one.wire is not None and one.wire.engine_decode_ns is not None]
    sums = [sum(getattr(wire, f"engine_{part}_ns") for wire in wires) for part in ("queue", "prefill", "decode")]
    whole = sum((one.done_ns or 0) - (one.sent_ns or 0) for one in found[continuous])
    shares = [100 * each / whole for each in sums]
    say(f"{continuous}, time of requests by the engine: {shares[0]:.1f} % queue, {shares[1]:.1f} % prefill, ")
    say(f"{shares[2]:.1f} % decode, {100 - sum(shares):.1f} % not told\n")


if __name__ == "__main__":
    sys.exit(main())
