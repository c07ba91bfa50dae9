"""What is refused about quantization before anything is loaded: with line, value and next step."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.protocol_check import check_protocol

TRANSFORMERS = '[model]\nid = "{model}"\n{more}[engine]\nname = "transformers"\n[[variant]]\nname = "fp32"\n{variant}\n'


@pytest.fixture
def write(make_trial: Callable[..., Any], tmp_path: Path) -> Callable[..., Path]:
    """Write the scripted trial as one of the transformers engine: `write('quantization = "gguf"')`."""

    def written(variant: str, more: str = "") -> Path:
        trial = make_trial({})
        text: str = trial.protocol.read_text()
        head, tail = text.split("[model]")[0], text[text.index("[plan]") :]
        (trial.folder / "weights").mkdir(exist_ok=True)
        block = TRANSFORMERS.format(model="weights", variant=variant, more=more)
        trial.protocol.write_text(head + block + tail)
        for lock in ("protocol.lock.json", "protocol.salt"):
            (trial.folder / lock).unlink()
        path: Path = trial.protocol
        return path

    return written


def line_with(path: Path, words: str) -> int:
    return 1 + next(index for index, line in enumerate(path.read_text().splitlines()) if words in line)


@pytest.mark.parametrize(
    ("variant", "more", "words", "step"),
    [
        ('quantization = "gguf"', "", "the model names no GGUF file", "add gguf_file under [model]"),
        (
            'quantization = "torchao_int8"', 'gguf_file = "m.gguf"\n',
            "asks for torchao_int8 of a model that is read from a GGUF file", 'write quantization = "none" or "gguf"',
        ),
        ('attention = "flash_attention_2"', "", "computes in float32", 'write dtype = "bfloat16"'),
    ],
)  # fmt: skip
def test_what_no_machine_can_load_is_refused_at_its_line(
    write: Callable[..., Path], variant: str, more: str, words: str, step: str
) -> None:
    path = write(variant, more)
    found = [each for each in check_protocol(path, with_tokenizer=False) if each.rule in ("quantization", "attention")]
    assert [(each.file, each.line) for each in found] == [(path, line_with(path, variant))]
    assert words in found[0].message
    assert found[0].next_step.startswith(step)


@pytest.mark.parametrize(
    ("wrong", "allowed"),
    [
        ('quantization = "int8"', '"none", "torchao_int8", "bnb_int8", "bnb_nf4", "quanto_int8", "gguf"'),
        ('dtype = "fp32"', '"float32", "bfloat16", "float16"'),
        ('attention = "flash"', '"sdpa", "eager", "flash_attention_2"'),
    ],
)
def test_an_unknown_word_is_answered_with_all_the_known_ones(
    write: Callable[..., Path], wrong: str, allowed: str
) -> None:
    (finding,) = check_protocol(write(wrong), with_tokenizer=False)
    assert finding.next_step == f"write one of {allowed}"


def test_a_missing_package_is_a_finding_of_its_variant_with_the_install_command(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == "bitsandbytes":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    path = write('quantization = "bnb_nf4"')
    found = [each for each in check_protocol(path) if each.rule == "missing-package"]
    assert [(each.line, each.next_step) for each in found] == [
        (line_with(path, "bnb_nf4"), "pip install 'gpu-dossier[quantized]'")
    ]
    assert "bnb_nf4 needs bitsandbytes" in found[0].message
    assert [each.rule for each in check_protocol(path, with_tokenizer=False)] == [], "another machine may have it"
