"""Decode speed of the engine's loop against `model.generate`, interleaved in one run: prints the ratio of medians.

    python tests/benchmarks/decode_loop.py --cache .cache [--threads 1] [--rounds 6] [--tokens 48] [--batch 4]

Decode: tokens after the first, by the stamp of each token; generate's stamps come from a streamer, called once per
token. Undisturbed: the fastest tenth of those steps, which stays comparable on a busy machine. Total: whole calls.
Each round asks both, in the order ABBA, for the same prompt and as many tokens: the end token is switched off for
both. A ratio above 1 means that the engine's loop is faster. The batch is the same comparison with rows of several
lengths, which `generate` gets padded on the left as the loop pads them; the tokens of every row must be equal, and the
speeds are steps per second of the whole batch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from collector.clock import SystemClock
from collector.engines._batching import pad_left
from collector.engines._decode import GreedyDecoder
from collector.starter.demo_model import ensure

WANTED = 0.98
PROMPT = "Receipt 17, Taxi Nord, 5 March 2026, total 42.10 EUR. Give date, amount and category as one JSON object. "


class Speed(NamedTuple):
    """Decode steps per second of one call: tokens, where there is one row."""

    decode: float
    undisturbed: float
    total: float


class Stamps:
    """A streamer that keeps the time of each token; the first put is the prompt."""

    def __init__(self) -> None:
        self.ns: list[int] = []

    def put(self, _: Any) -> None:
        self.ns.append(time.perf_counter_ns())

    def end(self) -> None: ...


def by_loop(decoder: GreedyDecoder, ids: list[int], tokens: int) -> Speed:
    began = time.perf_counter_ns()
    decoded = decoder.decode(ids, max_new_tokens=tokens, limit_ns=10**15)
    return speed(decoded.stamps_ns, began, tokens)


def by_generate(model: Any, ids: list[int], tokens: int) -> Speed:
    prompt = torch.tensor([ids], device=model.device)
    stamps = Stamps()
    began = time.perf_counter_ns()
    model.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=tokens, streamer=stamps
    )
    return speed(stamps.ns[1:], began, tokens)


def batch_by_loop(decoder: GreedyDecoder, rows: list[list[int]], tokens: int) -> tuple[Speed, list[list[int]]]:
    began = time.perf_counter_ns()
    decoded = decoder.decode_batch(rows, pad_id=0, max_new_tokens=tokens, limit_ns=10**15)
    return speed(decoded[0].stamps_ns, began, tokens), [row.token_ids for row in decoded]


def batch_by_generate(model: Any, rows: list[list[int]], tokens: int) -> tuple[Speed, list[list[int]]]:
    padded = pad_left(rows, 0)
    ids, mask = (torch.tensor(part, device=model.device) for part in (padded.token_ids, padded.mask))
    stamps = Stamps()
    began = time.perf_counter_ns()
    whole = model.generate(
        ids, attention_mask=mask, do_sample=False, max_new_tokens=tokens, streamer=stamps, pad_token_id=0
    )
    return speed(stamps.ns[1:], began, tokens), whole[:, ids.shape[1] :].tolist()


def speed(stamps_ns: list[int], began_ns: int, tokens: int) -> Speed:
    assert len(stamps_ns) == tokens
    ended_ns = time.perf_counter_ns()
    gaps_ns = [later - earlier for earlier, later in pairwise(stamps_ns)]
    return Speed(
        decode=len(gaps_ns) * 1e9 / sum(gaps_ns),
        undisturbed=1e9 / statistics.quantiles(gaps_ns, n=10)[0],
        total=tokens * 1e9 / (ended_ns - began_ns),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    folder = ensure(options.cache)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    decoder = GreedyDecoder(model, device="cpu", clock=SystemClock())
    ids = AutoTokenizer.from_pretrained(folder)(PROMPT * 4).input_ids
    rows = [ids[: len(ids) - len(ids) * row // (2 * options.batch)] for row in range(options.batch)]
    expected = batch_by_generate(model, rows, options.tokens)[1]
    if batch_by_loop(decoder, rows, options.tokens)[1] != expected:
        sys.stdout.write(f"batch {options.batch}: tokens DIFFER from generate\n")
        return 1
    compare(
        "", options.rounds,
        lambda: by_loop(decoder, ids, options.tokens), lambda: by_generate(model, ids, options.tokens),
    )  # fmt: skip
    compare(
        f"batch {options.batch}, ", options.rounds,
        lambda: batch_by_loop(decoder, rows, options.tokens)[0],
        lambda: batch_by_generate(model, rows, options.tokens)[0],
    )  # fmt: skip
    lengths = ", ".join(str(len(row)) for row in rows)
    sys.stdout.write(
        f"{2 * options.rounds} calls each, {len(ids)} prompt tokens, rows {lengths}; {options.threads} thread(s)\n"
    )
    return 0


def compare(label: str, rounds: int, loop: Callable[[], Speed], generate: Callable[[], Speed]) -> None:
    """Ask both `rounds` times in the order ABBA, after one call each that is not counted, and print the ratios."""
    loop()
    generate()
    ours: list[Speed] = []
    library: list[Speed] = []
    for _ in range(rounds):
        ours.append(loop())
        library += [generate(), generate()]
        ours.append(loop())
    for name in Speed._fields:
        mine = [getattr(each, name) for each in ours]
        theirs = [getattr(each, name) for each in library]
        ratio = statistics.median(mine) / statistics.median(theirs)
        sys.stdout.write(
            f"{label}{name}: loop {statistics.median(mine):.2f} steps/s ({min(mine):.2f} to {max(mine):.2f}), generate "
            f"{statistics.median(theirs):.2f} ({min(theirs):.2f} to {max(theirs):.2f}), ratio {ratio:.3f}, "
            f"wanted at least {WANTED}: {'met' if ratio >= WANTED else 'NOT met'}\n"
        )


if __name__ == "__main__":
    sys.exit(main())
