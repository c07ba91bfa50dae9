"""A real model whose batch really runs out of memory, in a worker with a limit on its address space."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.contract.records import Decision, Failure, PassBegin, Reading, Record
from collector.engines.base import EngineSetup
from collector.processes import ProcessWorkerFactory
from collector.run_options import RunOptions

MIB = 2**20
PADDING = "Read the bill and write nothing else. " * 3
ROOM_BYTES = 256 * MIB
"""Beyond what a batch of 2 takes; one activation of a batch of 16 takes twice as much."""

PEAK = """
    import sys, msgspec
    from collector.clock import SystemClock
    from collector.engines import engine_module
    from collector.engines.base import EngineSetup, Load, Prompt
    setup = msgspec.json.decode(sys.stdin.buffer.read(), type=EngineSetup)
    engine = engine_module("transformers").create(setup, SystemClock())
    engine.load()
    prompts = [Prompt(document_id=str(i), system="", user="x" * 150) for i in range(2)]
    answers = list(engine.answers(engine.encode(prompts), "measure", Load(batch=2)))
    assert {answer.request_outcome for answer in answers} == {"completed"}
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmPeak")))
"""


@pytest.fixture(scope="module")
def wide_model(tmp_path_factory: pytest.TempPathFactory, make_tokenizer: Callable[..., Any]) -> Path:
    """One layer whose inner activation takes 256 KiB per token: 40 MB per row of this test."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("wide")
    config = LlamaConfig(
        vocab_size=264, hidden_size=32, intermediate_size=65_536, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=512, bos_token_id=256, eos_token_id=257, pad_token_id=257,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def peak_address_space_bytes(setup: EngineSetup) -> int:
    """What a process of this engine maps at most when it answers a batch of 2."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PEAK)], input=msgspec.json.encode(setup), capture_output=True,
        check=True, timeout=300,
    )  # fmt: skip
    return int(done.stdout.split()[-1]) * 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the address-space limit is Linux's")
def test_a_batch_that_really_runs_out_of_memory_is_recorded_as_the_limit(
    make_trial: Callable[..., Any],
    make_setup: Callable[..., EngineSetup],
    records_of: Callable[[Path], list[Record]],
    wide_model: Path,
) -> None:
    def edit(text: str) -> str:
        text = text.replace('name = "scripted"\nscript = "script.json"', 'name = "transformers"\nthreads = 1')
        text = text.replace("Give date and amount: ", PADDING).replace("max_new_tokens = 16", "max_new_tokens = 4")
        return f"{text}\nbatches = [2, 16, 32]\n"

    trial = make_trial(documents=16, model=str(wide_model), edit=edit)
    peak = peak_address_space_bytes(make_setup(str(wide_model), threads=1, max_new_tokens=4))
    report = trial.run(
        RunOptions(device="cpu", only_series=["batch"]),
        factory=ProcessWorkerFactory(address_space_bytes=peak + ROOM_BYTES),
    )
    records = records_of(report.path)
    assert [(p.batch, report.endings[f"fp32~b{p.batch}/1/1"].outcome) for p in records if isinstance(p, PassBegin)] == [
        (2, "completed"), (16, "failed"),
    ]  # fmt: skip
    (failure,) = [record for record in records if isinstance(record, Failure)]
    assert (failure.failure_scope, failure.failure_cause, failure.phase) == ("pass", "out_of_memory", "warmup")
    peaks = [r for r in records if isinstance(r, Reading) and r.pass_id == failure.pass_id and r.statistic == "peak"]
    assert {"load", "warmup"} <= {reading.phase for reading in peaks}, "also of the phase that broke"
    told = [(r.decision, r.detail.get("from"), r.detail.get("to"), r.detail.get("batch"))
            for r in records if isinstance(r, Decision) and "variant" in r.detail]  # fmt: skip
    assert told == [("batch_reduced", "16", "2", None), ("skipped", None, None, "32")]
