"""Bills for a reference in process and for a server: the protocol, a server that reads them right, the records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from command_line import done, run
from scripted_bills import CAMPAIGN, protocol
from stub_server import Reply, Seen, chat, stream, usage
from tiny_tokenizer import write_tokenizer_folder

from collector import cli as collector_cli
from collector.clock import SystemClock
from collector.contract import chain
from collector.memory import host_meter
from collector.workers import InProcessWorkerFactory

_SERVED = """
[[server]]
name = "stub"
kind = "{kind}"
model = "stub"
{place}

[[variant]]
name = "served"
server = "stub"
dtype = "bfloat16"

[plan]
reload_check = false
{plan}
"""


def collector_in_process(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return the collector's command, its workers in this process: what one is by itself has its own tests."""

    def factory() -> InProcessWorkerFactory:
        return InProcessWorkerFactory(clock=SystemClock(), meter=host_meter)

    monkeypatch.setattr("collector.processes.ProcessWorkerFactory", factory)
    return lambda *arguments: run(collector_cli.main, *arguments)


def write_weights(folder: Path) -> None:
    """Make the tokenizer's folder a whole model: a Llama of one layer that says nothing of use."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=264, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=2048, bos_token_id=256, eos_token_id=257, pad_token_id=257,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


def write_trial(
    folder: Path, place: str, plan: str = "", *, documents: int = 6, is_scripted: bool = True, kind: str = "vllm",
    reference: str | None = None, of_test: int = 0, expected: dict[str, str] | None = None,
) -> Path:  # fmt: skip
    """Bills whose reference is scripted, or answered by a model; the second variant is answered by a server."""
    write_tokenizer_folder(folder / "model")
    lines = [
        {"id": f"d{i:02d}", "role": "validation" if i < documents else "test", "text": f"Bill {i} of the day",
         "expected": expected or {"date": f"2026-03-{i + 1:02d}", "amount": f"{i + 10}.50"}}
        for i in range(documents + of_test)
    ]  # fmt: skip
    lines.append(
        {"id": "dev", "role": "development", "text": "Bill 17 of the day", "expected": {"date": None, "amount": None}}
    )
    (folder / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "script.json").write_text(json.dumps({"script_format": 1, "answers_from": "documents.jsonl"}))
    text = protocol(max_lost_points="5").replace('"scripted-model"', '"./model"')
    text = text.replace('[[variant]]\nname = "bf16"\ndtype = "bfloat16"\n', "")
    if reference is not None:
        text = text.replace('name = "fp32"', f'name = "fp32"\nserver = "{reference}"')
    if not is_scripted:
        write_weights(folder / "model")
        text = text.replace('name = "scripted"\nscript = "script.json"', 'name = "transformers"\nthreads = 1')
    path = folder / "protocol.toml"
    path.write_text(text.replace("[plan]\n", _SERVED.lstrip().format(place=place, plan=plan, kind=kind)))
    (folder / "campaign.toml").write_text(CAMPAIGN)
    done(collector_cli.main, "check", path)
    done(collector_cli.main, "freeze", path)
    return path


def reading(tokenizer: Any) -> Callable[[Seen], Reply]:
    """A server that reads each bill right, counts what it is sent, and writes one token to a chunk."""

    def reply(seen: Seen) -> Reply:
        messages = seen.json["messages"]
        number = int(re.findall(r"Bill (\d+)", messages[-1]["content"])[0])
        answer = f'{{"date": "2026-03-{number + 1:02d}", "amount": "{number + 10}.50"}}'
        prompt = len(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))
        return stream(chat(answer[:9], answer[9:], counts=usage(prompt, 9, cached=0)), first_ms=4, gap_ms=1)

    return reply


def records(folder: Path, kind: str) -> list[Any]:
    paths = [path for path in sorted((folder / "runs").glob("*.jsonl")) if path.suffixes == [".jsonl"]]
    return [
        line.record for path in paths for line in chain.scan(path)
        if line.record is not None and line.record.__struct_config__.tag == kind
    ]  # fmt: skip
