"""The real demo model: same tokens as generate on the starter's documents, and an origin that says 4-bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import collector
from collector.batch_check import SpoiledAnswers, compared, require_answers
from collector.clock import SystemClock
from collector.contract.protocol import Generation, Model
from collector.contract.records import BatchCheck
from collector.documents import read_documents, render_prompt
from collector.engines import _decode
from collector.engines._batching import Padded
from collector.engines.base import Load
from collector.engines.transformers_engine import create
from collector.protocol_check import load_protocol
from collector.starter.demo_model import cached_folder

pytestmark = pytest.mark.slow
STARTER = Path(collector.__file__).parent / "starter"
CACHE = Path(os.environ.get("GPU_DOSSIER_CACHE", STARTER.parent.parent / ".cache"))
LIMIT = 12


@pytest.fixture(scope="module")
def demo_folder() -> Path:
    folder = cached_folder(CACHE)
    if folder is None:
        pytest.skip(f"no demo model in {CACHE}; make it: python -m collector.starter.demo_model --cache {CACHE}")
    return folder


def test_token_ids_equal_generate_on_every_20th_document_of_the_starter(
    demo_folder: Path, make_setup: Callable[..., Any]
) -> None:
    import msgspec

    setup = msgspec.structs.replace(
        make_setup(), model=Model(id=str(demo_folder)), generation=Generation(max_new_tokens=LIMIT)
    )
    engine = create(setup, SystemClock())
    engine.load()
    protocol = load_protocol(STARTER / "protocol.toml").protocol
    documents = [entry.document for entry in read_documents(STARTER / "documents.jsonl").entries]
    some = documents[::20]
    assert {document.length_class for document in some} == {"short", "usual", "long"}
    assert len(some) >= 16
    prompts = engine.encode([render_prompt(protocol.task, document) for document in some])
    loaded, decoder = engine._loaded()
    differing = []
    for prompt in prompts:
        ours = decoder.decode(prompt.token_ids, max_new_tokens=LIMIT, limit_ns=10**12).token_ids
        ids = torch.tensor([prompt.token_ids])
        whole = loaded.model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=LIMIT)
        if ours != whole[0, ids.shape[1] :].tolist():
            differing.append(prompt.document_id)
    assert differing == []


def test_c03_batches_of_2_4_and_8_answer_8_documents_of_the_starter_as_alone(
    demo_folder: Path, make_setup: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Token by token; with right padding and no mask the self-check stops."""
    import msgspec

    setup = msgspec.structs.replace(
        make_setup(), model=Model(id=str(demo_folder)), generation=Generation(max_new_tokens=LIMIT)
    )
    engine = create(setup, SystemClock())
    engine.load()
    protocol = load_protocol(STARTER / "protocol.toml").protocol
    documents = [entry.document for entry in read_documents(STARTER / "documents.jsonl").entries]
    mixed = [document for document in documents if document.length_class != "long"][::7][:8]
    prompts = engine.encode([render_prompt(protocol.task, document) for document in mixed])
    alone = {answer.prompt.document_id: answer for answer in engine.answers(prompts, "warmup")}

    def check(batch: int) -> BatchCheck:
        together = {
            answer.prompt.document_id: answer for answer in engine.answers(prompts, "warmup", Load(batch=batch))
        }
        return compared(alone, together, padding=engine.padding(), batch=batch)

    assert {batch: check(batch).differing_document_ids for batch in (2, 4, 8)} == {2: [], 4: [], 8: []}

    def pad_right_unmasked(rows: Sequence[Sequence[int]], pad_id: int) -> Padded:
        length = max(len(row) for row in rows)
        return Padded(
            token_ids=[[*row, *[pad_id] * (length - len(row))] for row in rows], mask=[[1] * length for _ in rows],
            positions=[list(range(length)) for _ in rows],
        )  # fmt: skip

    monkeypatch.setattr(_decode, "pad_left", pad_right_unmasked)
    with pytest.raises(SpoiledAnswers, match="of 8 documents are answered otherwise from the first token on"):
        require_answers(check(8))


def test_the_descriptor_says_4_bit_dequantized_and_weighs_float32(
    demo_folder: Path, make_setup: Callable[..., Any]
) -> None:
    import msgspec

    engine = create(msgspec.structs.replace(make_setup(), model=Model(id=str(demo_folder))), SystemClock())
    engine.load()
    variant, _ = engine.observe("loaded")
    assert (variant.origin or "").startswith("stored as 4-bit Q4_1 (210 tensors Q4_1, ")
    assert (variant.origin or "").endswith("dequantized to float32")
    assert variant.parameter_count == 134_515_008
    assert variant.weight_bytes == variant.claimed_weight_bytes == 538_060_288
    assert "origin.json" in variant.file_digests
