"""The real demo model: continuous batching gives the own loop's tokens on documents of the starter."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import collector
from collector.clock import SystemClock
from collector.contract.protocol import ContinuousChoice, Model
from collector.documents import read_documents, render_prompt
from collector.engines.base import Load
from collector.engines.transformers_engine import create
from collector.protocol_check import load_protocol
from collector.starter.demo_model import cached_folder

pytestmark = pytest.mark.slow
STARTER = Path(collector.__file__).parent / "starter"
CACHE = Path(os.environ.get("GPU_DOSSIER_CACHE", STARTER.parent.parent / ".cache"))


def test_8_documents_of_the_starter_are_answered_token_by_token_as_one_at_a_time(
    make_setup: Callable[..., Any],
) -> None:
    """Whole answers in float32, four at a time, with the starter's stop text."""
    folder = cached_folder(CACHE)
    if folder is None:
        pytest.skip(f"no demo model in {CACHE}; make it: python -m collector.starter.demo_model --cache {CACHE}")
    protocol = load_protocol(STARTER / "protocol.toml").protocol
    setup = make_setup(threads=1)
    pool = ContinuousChoice(block_size=32, num_blocks=200, max_batch_tokens=512)
    setup = msgspec.structs.replace(
        setup, model=Model(id=str(folder.resolve())), generation=protocol.generation,
        engine=msgspec.structs.replace(setup.engine, continuous=pool),
    )  # fmt: skip
    engine = create(setup, SystemClock())
    engine.load()
    documents = [entry.document for entry in read_documents(STARTER / "documents.jsonl").entries]
    mixed = [document for document in documents if document.length_class != "long"][::7][:8]
    prompts = engine.encode([render_prompt(protocol.task, document) for document in mixed])
    alone = {one.prompt.document_id: one for one in engine.answers(prompts, "warmup")}
    assert {one.finish_reason for one in alone.values()} <= {"stop_text", "length", "end_token"}
    found = list(engine.answers(prompts, "measure", Load(concurrency=4)))
    assert len(found) == 8
    for one in found:
        own = alone[one.prompt.document_id]
        assert (one.token_ids, one.finish_reason) == (own.token_ids, own.finish_reason)
    engine.close()
