"""A Hugging Face id, offline: found in the Hub's cache, with its commit as the revision and its files' digests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import msgspec

from collector.contract.digests import file_sha256
from collector.engines.base import EngineSetup

COMMIT = "c0ffee" + "0" * 34
SCRIPT = """
    import sys
    import msgspec
    from collector.clock import SystemClock
    from collector.engines.base import EngineSetup, Prompt
    from collector.engines.transformers_engine import create
    engine = create(msgspec.json.decode(sys.stdin.buffer.read(), type=EngineSetup), SystemClock())
    engine.load()
    variant, _ = engine.observe("loaded")
    (answer,) = engine.answers(engine.encode([Prompt(document_id="d", system="", user="hi")]), "measure")
    sys.stdout.buffer.write(msgspec.json.encode([variant.model_id, variant.model_revision, variant.file_digests,
                                                 answer.output_tokens]))
"""


def test_a_hub_id_loads_from_the_cache_without_network_and_names_its_commit(
    make_setup: Callable[..., EngineSetup], models_dir: Path, tmp_path: Path
) -> None:
    repository = tmp_path / "hub" / "models--tiny--llama"
    shutil.copytree(models_dir / "llama", repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        input=msgspec.json.encode(make_setup("tiny/llama", threads=1, max_new_tokens=5)),
        env=os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub")},
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    model_id, revision, digests, output_tokens = msgspec.json.decode(done.stdout)
    assert (model_id, revision, output_tokens) == ("tiny/llama", COMMIT, 5)
    assert digests["model.safetensors"] == file_sha256(models_dir / "llama" / "model.safetensors")
