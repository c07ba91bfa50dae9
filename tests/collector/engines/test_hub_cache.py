"""A Hugging Face id, offline: found in the Hub's cache, with its commit as the revision and its files' digests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.clock import SystemClock
from collector.contract.digests import file_sha256
from collector.engines.base import EngineSetup, Prompt

COMMIT = "c0ffee" + "0" * 34


def test_a_hub_id_loads_from_the_cache_without_network_and_names_its_commit(
    make_setup: Callable[..., EngineSetup], models_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    from collector.engines.transformers_engine import create

    repository = tmp_path / "hub" / "models--tiny--llama"
    shutil.copytree(models_dir / "llama", repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    assert constants.is_offline_mode()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    engine = create(make_setup("tiny/llama", threads=1, max_new_tokens=5), SystemClock())
    engine.load()
    variant, _ = engine.observe("loaded")
    (answer,) = engine.answers(engine.encode([Prompt(document_id="d", system="", user="hi")]), "measure")
    assert (variant.model_id, variant.model_revision, answer.output_tokens) == ("tiny/llama", COMMIT, 5)
    assert variant.file_digests["model.safetensors"] == file_sha256(models_dir / "llama" / "model.safetensors")
