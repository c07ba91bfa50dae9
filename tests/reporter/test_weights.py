"""Weights as the tensors say: beside what a library claims, what the bits promise, and what never loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Row, Sentence
from reporter.render import render

Kit = Any
Say = Callable[[Dossier, Sentence], str]
WHOLE, PACKED = 540_000_000, 174_000_000
PARTS = {"embedding": (113_000_000, "float32"), "attention": (15_000_000, "uint8"), "mlp": (45_000_000, "uint8")}


def as_nf4(line: dict[str, Any]) -> dict[str, Any]:
    """Make the loads of nf4 what a 4-bit load is: packed linear layers, the embedding left alone, a false claim."""
    if line["kind"] == "variant":
        return line | {
            "quantization_method": "bnb_nf4", "quantization_bits": 4, "quantization_group": 64,
            "excluded_modules": ["lm_head"], "weight_storage": "float32, uint8", "output_layer_format": "float32",
            "weight_bytes": PACKED, "claimed_weight_bytes": WHOLE, "parameter_count": WHOLE // 4,
            "effective_bits": 8 * PACKED / (WHOLE // 4), "dtype_bytes": {"float32": 114_000_000, "uint8": 60_000_000},
        }  # fmt: skip
    size, dtype = PARTS.get(line["module_group"], (1_000_000, "float32"))
    return line | {"tensor_bytes": size, "storage_dtype": dtype, "element_count": size}


@pytest.fixture(scope="module")
def dossier(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Dossier:
    """fp32, nf4 at a third of its bytes, int8 as large as it claims, and a method that does not load."""
    kit = campaign_records
    nf4 = kit.variant(name="nf4", weight_bytes=PACKED)
    written = kit(
        tmp_path_factory.mktemp("weights") / "runs",
        variants=(kit.fp32, nf4, kit.bf16, kit.variant(name="gguf", failure="missing_operator")),
    )
    ids: set[str] = set()

    def edit(_: int, line: dict[str, Any]) -> dict[str, Any]:
        if line["kind"] == "pass_begin" and line["variant_name"] == "nf4":
            ids.add(line["variant_id"])
        is_load = line["kind"] in ("variant", "tensor_group")
        return as_nf4(line) if is_load and line["variant_id"] in ids else line

    lines = kit.rechain(written.path.read_bytes().splitlines(), edit)
    written.path.write_bytes(b"".join(line + b"\n" for line in lines))
    return build_dossier([written.runs], None, cache_dir=tmp_path_factory.mktemp("cache"))


def row_of(dossier: Dossier, variant: str, table: str = "variants") -> Row:
    return next(row for row in dossier.tables[table].rows if row.labels.get("variant", row.labels["label"]) == variant)


def value(dossier: Dossier, row: Row, column: str) -> Any:
    return dossier.figures[row.cells[column]].value


def test_a_variant_is_described_beyond_its_bits(dossier: Dossier) -> None:
    row = row_of(dossier, "nf4")
    named = ("quantization", "bits", "group_size", "excluded", "output_layer", "weight_storage", "tied", "offload")
    assert [row.labels[name] for name in named] == [
        "bnb_nf4", "4", "64", "lm_head", "float32", "float32, uint8", "yes", "no",
    ]  # fmt: skip
    assert value(dossier, row, "loaded_weight_bytes") == value(dossier, row, "weight_bytes") == PACKED
    assert value(dossier, row, "effective_bits") == pytest.approx(8 * PACKED / (WHOLE // 4))


def test_a_claim_that_is_wrong_is_marked_with_its_factor_and_a_true_one_is_not(dossier: Dossier, said: Say) -> None:
    row = row_of(dossier, "nf4")
    factor = dossier.figures[row.cells["claimed_factor"]]
    assert factor.value == WHOLE / PACKED
    assert (factor.basis, factor.is_derived) == ("claimed", True)
    assert [said(dossier, sentence) for sentence in row.sentences] == [
        "nf4: the library's own footprint method says 515 MiB; the tensors, found one by one, take 166 MiB: wrong by "
        "factor 3.10."
    ]
    assert row_of(dossier, "fp32").sentences == row_of(dossier, "bf16").sentences == []


def test_what_bits_promise_is_put_beside_what_the_weights_take_and_why(dossier: Dossier, said: Say) -> None:
    told = [said(dossier, sentence) for sentence in row_of(dossier, "nf4", "bits").sentences]
    assert told == [
        "nf4, 4 bits by name, takes 166 MiB for its weights: 32.2 % of fp32, where the bits alone would "
        "promise 12.5 %.",
        "Its largest part, the embedding, is stored as float32 and takes 108 MiB.",
    ]
    assert [row.labels["label"] for row in dossier.tables["bits"].rows] == ["nf4"]
    page = render(dossier, lang="en", medium="screen")
    question = page.index("Do four bits take a quarter")
    assert "32.2" in page[question : question + 3000]


def test_the_bar_of_weights_names_every_part_with_its_type_and_size(dossier: Dossier) -> None:
    page = render(dossier, lang="en", medium="paper")
    described = page[page.index('id="weights-wide-desc"') :][:900].replace("\u00a0", " ")
    assert "nf4: embedding float32 107.8 MiB, attention uint8 14.3 MiB, feed-forward uint8 42.9 MiB" in described
    assert "coloured: uint8" in page


def test_a_variant_that_does_not_load_is_compatibility_information_and_a_limit(dossier: Dossier, said: Say) -> None:
    row = row_of(dossier, "gguf", "compatibility")
    named = ("label", "method", "cause", "phase", "exception_class", "device")
    assert [row.labels[name] for name in named] == [
        "gguf · 1", "float32", "missing_operator", "load", "MemoryError", "Example CPU 2 cores",
    ]  # fmt: skip
    limits = [said(dossier, sentence) for sentence in dossier.decision.does_not_show]
    assert "gguf · 1 on this machine: it did not load (missing operator)." in limits


def test_each_device_that_holds_weights_has_its_share(dossier: Dossier) -> None:
    rows = dossier.tables["weight_places"].rows
    assert {(row.labels["device_id"], value(dossier, row, "share_percent")) for row in rows} == {("cpu", 100.0)}


def test_b16_a_smaller_slower_variant_shows_memory_time_and_quality_in_one_row_and_does_not_win_by_size(
    tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit, campaign_text: Any
) -> None:
    kit = campaign_records
    int8 = kit.variant(
        name="int8", weight_bytes=140_000_000, peak_bytes=700_000_000, token_gap_ns=5 * kit.fp32.token_gap_ns,
        first_token_ns=5 * kit.fp32.first_token_ns, outcomes=kit.fp32.outcomes,
    )  # fmt: skip
    written = kit(tmp_path_factory.mktemp("slow") / "runs", variants=(kit.fp32, int8))
    campaign_text.candidate("whole", "fp32", "o").candidate("small", "int8", "o").offer("o", {3: "300.00"})
    dossier = build_dossier([written.runs], campaign_text.write(prefer="fastest_corpus"))
    rows = {row.labels["label"]: row for row in dossier.tables["candidates"].rows}
    small, whole = rows["small"], rows["whole"]
    assert value(dossier, small, "peak_bytes") < value(dossier, whole, "peak_bytes")
    assert value(dossier, small, "corpus_hours") > value(dossier, whole, "corpus_hours")
    assert value(dossier, small, "accepted_documents") == value(dossier, whole, "accepted_documents")
    assert small.labels["status"] != "recommended"
