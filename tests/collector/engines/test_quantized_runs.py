"""Quantized variants through real workers: what the records of a whole run hold, and a method that cannot load here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import collector
from collector.contract.records import Failure, PassBegin, PassEnd, Reading, Record, TensorGroup, Variant
from collector.starter.demo_model import cached_folder

pytestmark = pytest.mark.slow
CACHE = Path(os.environ.get("GPU_DOSSIER_CACHE", Path(collector.__file__).parent.parent / ".cache"))
METHODS = ("torchao_int8", "bnb_int8", "bnb_nf4", "quanto_int8")

LAYERS, HIDDEN, INNER, KEYS, VOCABULARY = 30, 576, 1536, 192, 49152
"""SmolLM2-135M: from its model card, not from the loaded model."""
ROWS = LAYERS * (2 * HIDDEN + 2 * KEYS + 2 * INNER + HIDDEN)
LINEAR = LAYERS * (2 * HIDDEN * HIDDEN + 2 * KEYS * HIDDEN + 3 * INNER * HIDDEN)
LINEAR_LAYERS = 7 * LAYERS
PLAIN = VOCABULARY * HIDDEN + (2 * LAYERS + 1) * HIDDEN
FREQUENCIES = 2 * 32
EXPECTED_BYTES = {
    "none": 4 * (LINEAR + PLAIN + FREQUENCIES),
    "torchao_int8": LINEAR + 4 * ROWS + ROWS + 4 * (PLAIN + FREQUENCIES),
    "bnb_int8": LINEAR + 4 * ROWS + 4 * (PLAIN + FREQUENCIES),
    "bnb_nf4": LINEAR // 2 + LINEAR // 16 + 64 * LINEAR_LAYERS + 4 * (PLAIN + FREQUENCIES),
    "quanto_int8": LINEAR + 4 * ROWS + 8 * LINEAR_LAYERS + 4 * (PLAIN + FREQUENCIES),
}


def variants(*lines: str) -> Callable[[str], str]:
    """Edit the scripted trial into one of the transformers engine with these variants."""

    def edit(text: str) -> str:
        head, _ = text.split("[[variant]]", 1)
        head = head.replace('name = "scripted"\nscript = "script.json"', 'name = "transformers"\nthreads = 1')
        head = head.replace("max_new_tokens = 16", "max_new_tokens = 4")
        blocks = "".join(f"[[variant]]\n{line}\n" for line in lines)
        return f'{head}{blocks}\n[plan]\nreference = "fp32"\nreference_runs = 1\nwarmup_requests = 1\n'

    return edit


def run_records(trial: Any, records_of: Callable[[Path], list[Record]]) -> tuple[list[Record], Any]:
    report = trial.run()
    return records_of(report.path), report


def test_recorded_bytes_equal_the_walk_and_not_the_librarys_own_footprint(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]]
) -> None:
    from bitsandbytes.functional import has_avx512bf16

    folder = cached_folder(CACHE)
    if folder is None:
        pytest.skip(f"no demo model in {CACHE}; make it: python -m collector.starter.demo_model --cache {CACHE}")
    lines = ['name = "fp32"', *(f'name = "{each}"\nquantization = "{each}"' for each in METHODS)]
    trial = make_trial({}, documents=1, model=str(folder), edit=variants(*lines), limits="request_s = 300.0")
    records, report = run_records(trial, records_of)
    assert {ending.outcome for ending in report.endings.values()} == {"completed"}
    found = {(each.requested["quantization"], each.observed_at): each for each in records if isinstance(each, Variant)}
    assert len(found) == 2 * (1 + len(METHODS))
    for (method, observed_at), variant in found.items():
        groups = [
            each.tensor_bytes
            for each in records
            if isinstance(each, TensorGroup) and not each.is_tied
            and (each.pass_id, each.observed_at) == (variant.pass_id, observed_at)
        ]  # fmt: skip
        expected = EXPECTED_BYTES[method]
        if method == "bnb_nf4" and observed_at == "after_warmup" and has_avx512bf16():
            expected -= LINEAR // 64 * 2  # on such processors the first request halves the scales
        assert variant.weight_bytes == sum(groups) == expected, (method, observed_at)
        assert variant.parameter_count == LINEAR + PLAIN
        assert (variant.output_layer_format, variant.has_tied_embeddings) == ("float32", True)
        is_right = variant.claimed_weight_bytes == variant.weight_bytes
        assert is_right == (method == "none"), f"{method}: get_memory_footprint says {variant.claimed_weight_bytes}"
    assert found["torchao_int8", "loaded"].claimed_weight_bytes == EXPECTED_BYTES["none"], "the unquantized size"


def test_a_method_that_cannot_load_here_is_a_recorded_failure_and_the_run_goes_on(
    make_trial: Callable[..., Any], records_of: Callable[[Path], list[Record]], texts_of: Any, models_dir: Path
) -> None:
    lines = ['name = "fp32"', 'name = "blocks"\nquantization = "gguf"', 'name = "bf16"\ndtype = "bfloat16"']

    def edit(text: str) -> str:
        text = text.replace("[engine]", 'gguf_file = "tiny.Q4_1.gguf"\n[engine]')
        return variants(*lines)(text).replace("Give date and amount: {document}", "{document}")

    trial = make_trial({}, documents=1, model=str(models_dir / "gguf"), edit=edit)
    records, report = run_records(trial, records_of)
    assert [(ending.outcome, ending.cause) for ending in report.endings.values()] == [
        ("completed", None), ("failed", "missing_operator"), ("completed", None),
    ]  # fmt: skip
    (failure,) = [each for each in records if isinstance(each, Failure)]
    begins = {each.pass_id: each for each in records if isinstance(each, PassBegin)}
    assert begins[failure.pass_id or ""].variant_name == "blocks"
    assert (failure.variant_id, failure.phase) == (begins[failure.pass_id or ""].variant_id, "load")
    assert failure.exception_class == "NotAsRequested"
    message = texts_of(report.path)[failure.message_hmac or ""]
    assert "requested gguf, found plain weights (float32, " in message
    ends = {begins[each.pass_id].variant_name: each.pass_outcome for each in records if isinstance(each, PassEnd)}
    assert ends == {"fp32": "completed", "blocks": "failed", "bf16": "completed"}
    assert any(isinstance(each, Reading) and each.pass_id == failure.pass_id for each in records), (
        "its load was weighed"
    )
