"""Tiny models with random weights, written once as local folders: no download, and every code path is the real one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_tokenizer import BOS, EOS, TEMPLATE, tiny_tokenizer

from collector.contract.protocol import EngineChoice, Generation, Limits, Model, VariantChoice
from collector.engines.base import EngineSetup

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def tiny_llama(**changes: Any) -> Any:
    """A Llama of 4 layers whose output layer is not tied; weights wide enough that its answers vary."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    sizes: dict[str, Any] = {
        "vocab_size": 264, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "initializer_range": 0.3,
        "tie_word_embeddings": False, "bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": EOS,
    }  # fmt: skip
    return LlamaForCausalLM(LlamaConfig(**(sizes | changes))).eval()


def tiny_gemma() -> Any:
    """A Gemma 3 text model of 6 layers, all but the last with a sliding window of 8; tied output layer."""
    import torch
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    torch.manual_seed(11)
    return Gemma3ForCausalLM(
        Gemma3TextConfig(
            vocab_size=264, hidden_size=64, intermediate_size=96, num_hidden_layers=6, num_attention_heads=4,
            num_key_value_heads=2, head_dim=16, sliding_window=8, max_position_embeddings=256, initializer_range=0.3,
            bos_token_id=BOS, eos_token_id=EOS, pad_token_id=EOS,
        )
    ).eval()  # fmt: skip


def write_tiny_gguf(path: Path) -> None:
    """Write a Llama of one layer as GGUF: matrices in Q4_1, the embedding in Q8_0, norms in F32."""
    import gguf
    import numpy as np
    from gguf import GGMLQuantizationType as Type

    draw = np.random.default_rng(5)
    writer = gguf.GGUFWriter(path, "llama")
    for add, value in (
        (writer.add_context_length, 128), (writer.add_embedding_length, 64), (writer.add_block_count, 1),
        (writer.add_feed_forward_length, 96), (writer.add_head_count, 2), (writer.add_head_count_kv, 1),
        (writer.add_layer_norm_rms_eps, 1e-5), (writer.add_rope_freq_base, 10_000.0), (writer.add_vocab_size, 260),
        (writer.add_bos_token_id, BOS), (writer.add_eos_token_id, EOS),
    ):  # fmt: skip
        add(value)  # type: ignore[operator]
    from tokenizers import pre_tokenizers

    symbols = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "<s>", "</s>", "th", "an"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(symbols)
    writer.add_token_types([3 if symbol in ("<s>", "</s>") else 1 for symbol in symbols])
    writer.add_token_merges(["t h", "a n"])
    writer.add_chat_template(TEMPLATE)
    shapes = {
        "token_embd.weight": ((260, 64), Type.Q8_0), "output_norm.weight": ((64,), Type.F32),
        "blk.0.attn_norm.weight": ((64,), Type.F32), "blk.0.ffn_norm.weight": ((64,), Type.F32),
        "blk.0.attn_q.weight": ((64, 64), Type.Q4_1), "blk.0.attn_k.weight": ((32, 64), Type.Q4_1),
        "blk.0.attn_v.weight": ((32, 64), Type.Q4_1), "blk.0.attn_output.weight": ((64, 64), Type.Q4_1),
        "blk.0.ffn_gate.weight": ((96, 64), Type.Q4_1), "blk.0.ffn_up.weight": ((96, 64), Type.Q4_1),
        "blk.0.ffn_down.weight": ((64, 96), Type.Q4_1),
    }  # fmt: skip
    for name, (shape, kind) in shapes.items():
        values = draw.normal(0, 0.3, shape).astype(np.float32)
        if kind == Type.F32:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models `llama`, `gemma`, `llama-short` (context 64), `base` (no template) and `gguf`.

    `llama-wide`: its layers take a multiple of 64 values, without which bitsandbytes fails in 4 bits on processors with
    AVX512-BF16.
    """
    root = tmp_path_factory.mktemp("models")
    for name, model, template in (
        ("llama", tiny_llama(), TEMPLATE),
        ("gemma", tiny_gemma(), TEMPLATE),
        ("llama-short", tiny_llama(max_position_embeddings=64), TEMPLATE),
        ("llama-wide", tiny_llama(intermediate_size=128), TEMPLATE),
        ("base", tiny_llama(), None),
    ):
        model.save_pretrained(root / name)
        tiny_tokenizer(template).save_pretrained(root / name)
    (root / "gguf").mkdir()
    write_tiny_gguf(root / "gguf" / "tiny.Q4_1.gguf")
    return root


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Two threads that wait for each other on a busy machine are many times slower than one."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _own_cache(cache_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes into the user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_home))


SetupMaker = Callable[..., EngineSetup]


@pytest.fixture(scope="session")
def make_setup(models_dir: Path) -> SetupMaker:
    """Make a setup: `make_setup("llama", dtype="bfloat16", device="cuda:0", max_new_tokens=8, request_s=3.0)`."""

    def make(
        model: str = "llama",
        *,
        dtype: Any = "float32",
        attention: Any = "sdpa",
        cache: Any = "dynamic",
        quantization: Any = "none",
        device: str = "cpu",
        threads: int | None = None,
        max_new_tokens: int = 12,
        context_limit_tokens: int | None = None,
        request_s: float = 600.0,
        gguf_file: str | None = None,
        origin: str | None = None,
        revision: str | None = None,
    ) -> EngineSetup:
        return EngineSetup(
            base_dir=str(models_dir),
            model=Model(id=model, gguf_file=gguf_file, origin=origin, revision=revision),
            engine=EngineChoice(name="transformers", threads=threads),
            variant=VariantChoice(name="v", dtype=dtype, attention=attention, cache=cache, quantization=quantization),
            generation=Generation(max_new_tokens=max_new_tokens, context_limit_tokens=context_limit_tokens),
            limits=Limits(request_s=request_s),
            device=device,
            pass_label="v/1/1",
        )

    return make


@pytest.fixture(scope="session")
def make_tokenizer() -> Callable[..., Any]:
    return tiny_tokenizer
