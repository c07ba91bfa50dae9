"""GGUF files: their storage formats in words, and a dequantized copy that keeps every value."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.engines.gguf_files import BlockFormat, block_formats, stored_as, write_dequantized


def test_formats_count_tensors_and_stored_bytes(models_dir: Path) -> None:
    found = {each.name: each for each in block_formats(models_dir / "gguf" / "tiny.Q4_1.gguf")}
    matrices = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64
    assert found["Q4_1"] == BlockFormat("Q4_1", 7, matrices // 32 * 20, "blk.0.ffn_up.weight")
    assert found["Q8_0"] == BlockFormat("Q8_0", 1, 260 * 64 // 32 * 34, "token_embd.weight")
    assert (found["F32"].tensor_count, found["F32"].tensor_bytes) == (3, 3 * 64 * 4)


@pytest.mark.parametrize(
    ("main", "words"),
    [
        ("Q4_K", "stored as 4-bit Q4_K (2 tensors Q4_K, 1 tensor F32: n)"),
        ("IQ3_S", "stored as 3-bit IQ3_S (2 tensors IQ3_S, 1 tensor F32: n)"),
        ("BF16", "stored as BF16 (2 tensors BF16, 1 tensor F32: n)"),
    ],
)
def test_words_name_the_bits_of_the_main_format_and_every_other_format(main: str, words: str) -> None:
    assert stored_as([BlockFormat("F32", 1, 999, "n"), BlockFormat(main, 2, 10, "w")]) == words


def test_the_dequantized_folder_holds_exactly_the_values_of_the_file(models_dir: Path, tmp_path: Path) -> None:
    import gguf
    import numpy as np
    from safetensors.numpy import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = models_dir / "gguf" / "tiny.Q4_1.gguf"
    versions = write_dequantized(source, tmp_path / "out")
    assert {"torch", "transformers", "gguf"} <= set(versions)
    written = load_file(tmp_path / "out" / "model.safetensors")
    stored = {each.name: each for each in gguf.GGUFReader(source).tensors}
    for name, key in (
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight"),
        ("blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight"),
    ):
        expected = gguf.quants.dequantize(stored[name].data, stored[name].tensor_type)
        assert written[key].dtype == np.float32
        assert np.array_equal(written[key], expected.reshape(written[key].shape)), name
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "out").config.max_position_embeddings == 128
    assert AutoTokenizer.from_pretrained(tmp_path / "out").chat_template


def test_q4_1_values_do_not_fit_bfloat16(models_dir: Path, tmp_path: Path) -> None:
    """Why the copy is float32: rounding it to bfloat16 would already be another variant."""
    import torch
    from safetensors.torch import load_file

    write_dequantized(models_dir / "gguf" / "tiny.Q4_1.gguf", tmp_path / "out")
    weight = load_file(tmp_path / "out" / "model.safetensors")["model.layers.0.mlp.down_proj.weight"]
    assert not torch.equal(weight, weight.to(torch.bfloat16).float())


def test_a_file_that_is_no_gguf_is_refused_by_the_reader(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"not a gguf file at all, but long enough")
    with pytest.raises(ValueError, match="GGUF"):
        block_formats(tmp_path / "x.gguf")
