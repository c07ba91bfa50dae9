"""`check` looks into the model's configuration: layers without blocks, and prompts that the pool cannot hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.contract.errors import Finding
from collector.protocol_check import examine


@pytest.fixture
def check_of(make_trial: Callable[..., Any]) -> Callable[..., list[Finding]]:
    """The findings about the pool of a trial with a real model folder."""

    def check(model: Path, *, blocks: int = 64) -> list[Finding]:
        engine = f'name = "transformers"\n\n[engine.continuous]\nblock_size = 16\nnum_blocks = {blocks}\n'
        engine += "max_batch_tokens = 64"

        def edit(text: str) -> str:
            text = text.replace('name = "scripted"\nscript = "script.json"', engine)
            return f"{text}\nconcurrencies = [2]\n"

        protocol = make_trial(documents=3, model=str(model)).protocol
        protocol.write_text(edit(protocol.read_text()))
        found = examine(protocol, with_lock=False).findings
        assert {each.rule for each in found} <= {"continuous"}
        return found

    return check


def test_a_model_whose_layers_all_have_blocks_is_refused_nothing(
    check_of: Callable[..., list[Finding]], models_dir: Path
) -> None:
    assert check_of(models_dir / "llama") == []


def test_sliding_windows_have_blocks(check_of: Callable[..., list[Finding]], models_dir: Path) -> None:
    assert check_of(models_dir / "gemma") == []


def test_a_pool_that_cannot_hold_the_longest_prompt_is_refused_with_the_number_it_needs(
    check_of: Callable[..., list[Finding]], models_dir: Path
) -> None:
    (found,) = check_of(models_dir / "llama", blocks=4)
    assert "`engine.continuous.num_blocks` is 4" in found.message
    assert "raise it to " in found.next_step
    assert found.line is not None
    assert found.file.read_text().splitlines()[found.line - 1] == "num_blocks = 4"


def test_layers_that_keep_a_state_instead_of_blocks_are_refused_by_name(
    check_of: Callable[..., list[Finding]], models_dir: Path, tmp_path: Path
) -> None:
    from transformers import Lfm2Config

    untyped: Any = Lfm2Config
    model = tmp_path / "hybrid"
    shutil.copytree(models_dir / "llama", model)
    untyped(
        vocab_size=264, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, full_attn_idxs=[1, 3],
    ).save_pretrained(model)  # fmt: skip
    (found,) = check_of(model)
    assert "layers of kind conv" in found.message
