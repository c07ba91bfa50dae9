"""Several models and cards in one campaign: apart by name, against the right reference, counted by card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.contract.errors import Refused
from collector.contract.protocol import Gates
from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Row, Sentence

Kit = Any
Text = Any
Say = Callable[[Dossier, Sentence], str]
GIB = 2**30


def rows(dossier: Dossier, table: str) -> dict[str, Row]:
    return {row.labels["label"]: row for row in dossier.tables[table].rows}


def test_two_models_of_one_protocol_stay_apart_and_lose_against_one_reference(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    kit = campaign_records
    worse = kit.variant(name="fp32", outcomes=dict.fromkeys(range(9), "wrong"))
    kit(tmp_path / "runs", gates=Gates(max_lost_points="5"))
    kit(
        tmp_path / "runs", gates=Gates(max_lost_points="5"), variants=[worse, kit.bf16], model="example/other",
        start="2026-01-03T09:00:00",
    )  # fmt: skip
    dossier = build_dossier([tmp_path / "runs"], None)
    assert len(dossier.plan_ids) == 2
    found = rows(dossier, "candidates")
    assert set(found) == {"tiny · fp32 · 1", "tiny · bf16 · 1", "other · fp32 · 1", "other · bf16 · 1"}
    assert len({row.labels["configuration_key"] for row in found.values()}) == 4
    # the other model's own reference is no bar of its own: it lost nine less the three that the first one lost
    assert said(dossier, found["other · fp32 · 1"].sentences[0]) == "rejected: 6 lost, 1 allowed"
    assert found["other · bf16 · 1"].labels["status"] == "feasible"
    assert {row.labels["factor"] for label, row in found.items() if label.startswith("other")} == {"several"}
    assert {row.labels["label"] for row in dossier.tables["variants"].rows} == {
        "tiny · fp32", "tiny · bf16", "other · fp32", "other · bf16",
    }  # fmt: skip


def two_cards(kit: Kit, runs: Path, second: dict[int, str]) -> Path:
    """One card answers as usual; the second answers the documents `second` otherwise with the reference itself."""
    gates = Gates(max_lost_points="5")
    kit(runs, gates=gates, device=kit.device(name="Card A", kind="cuda", host="a", memory_bytes=24 * GIB))
    variants = [kit.variant(name="fp32", outcomes=second), kit.variant(name="bf16", outcomes=second)]
    kit(
        runs, gates=gates, variants=variants, start="2026-01-03T09:00:00",
        device=kit.device(name="Card B", kind="cuda", host="b", memory_bytes=48 * GIB),
    )  # fmt: skip
    return runs


def test_a_variant_is_compared_with_the_reference_of_its_own_card(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    one_more = {3: "wrong", 7: "wrong", 11: "wrong", 12: "wrong"}
    dossier = build_dossier([two_cards(campaign_records, tmp_path / "runs", one_more)], None)
    paired = rows(dossier, "paired")
    value = dossier.figures[paired["Card B · bf16 · 1"].cells["lost_documents"]].value
    assert value == 0
    assert dossier.figures[paired["Card B · fp32 · 1"].cells["lost_documents"]].value == 1
    rules = [said(dossier, rule) for rule in dossier.gates if rule.key == "gate_reference"]
    assert any(rule.startswith("Counted against Card B · fp32 · 1: Card B · bf16 · 1.") for rule in rules)
    assert rows(dossier, "candidates")["Card B · bf16 · 1"].labels["factor"] == "weights"
    assert rows(dossier, "candidates")["Card B · fp32 · 1"].labels["factor"] == "several"


def test_a_card_whose_own_reference_fails_is_no_bar_for_its_variants(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    many = dict.fromkeys(range(12), "wrong")
    dossier = build_dossier([two_cards(campaign_records, tmp_path / "runs", many)], None)
    found = rows(dossier, "candidates")
    assert said(dossier, found["Card B · fp32 · 1"].sentences[0]) == "rejected: 9 lost, 1 allowed"
    assert said(dossier, found["Card B · bf16 · 1"].sentences[0]) == (
        "not judged: Card B · fp32 · 1, the reference on its card, lost 9 against the first, 1 allowed"
    )


def test_two_cards_of_one_configuration_are_paid_twice_and_the_fuller_one_counts(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    device = kit.device(name="Card A", kind="cuda", memory_bytes=24 * GIB, card_count=2)
    runs = kit(tmp_path / "runs", device=device).runs
    text = campaign_text.candidate("A", "bf16", "card", device="Card A x 2")
    text.offer("card", {3: "100.00"}, device="Card A", more='device_count = 8\nprices_per = "card"\n')
    dossier = build_dossier([runs], text.write())
    assert "run A: 200.00 EUR net" in said(dossier, dossier.decision.recommendation)
    row = rows(dossier, "candidates")["A"]
    assert dossier.figures[row.cells["peak_bytes"]].figure_id.split("~")[-3] == "cuda:1"
    comparison = dossier.tables["comparisons"].rows[1]
    assert dossier.figures[comparison.cells["card_count"]].value == 2


def test_planned_passes_that_are_not_there_are_named_and_block_nothing_silently(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    third = kit.variant(name="int8", outcomes={})
    runs = kit(tmp_path / "runs", variants=[kit.fp32, kit.bf16, third], only=["bf16"], repetitions=2).runs
    text = campaign_text.candidate("A", "bf16", "o").candidate("B", "int8", "o").offer("o", {3: "100.00"})
    dossier = build_dossier([runs], text.write())
    missing = dossier.tables["missing_passes"].rows
    assert [(row.labels["variant"], row.labels["repetition"]) for row in missing] == [("int8", "1"), ("int8", "2")]
    assert {said(dossier, row.sentences[0]) for row in missing} == {"not begun"}
    notices = [said(dossier, notice) for notice in dossier.notices]
    assert any("int8, batch 1, repetition 2 (Example CPU 2 cores)" in notice for notice in notices)
    assert "Candidates that were never measured: B." in notices
    assert "2 planned passes have no finished run; they are named with the failures." in [
        said(dossier, reason) for reason in dossier.decision.reasons
    ]


def test_one_with_fewer_documents_judged_is_not_ranked_with_those_judged_whole(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    written = kit(tmp_path / "runs")
    lines = written.path.read_bytes().splitlines()
    begun = [msgspec.json.decode(line) for line in lines]
    of_bf16 = next(line["pass_id"] for line in begun if line["kind"] == "pass_begin" and line["variant_name"] == "bf16")

    def without_one(_: int, line: dict[str, Any]) -> dict[str, Any] | None:
        is_left_out = line["kind"] == "score" and line["document_id"] == "doc-004" and line["pass_id"] == of_bf16
        return None if is_left_out else line

    written.path.write_bytes(b"".join(line + b"\n" for line in kit.rechain(lines, without_one)))
    text = campaign_text.candidate("A", "fp32", "a").candidate("B", "bf16", "b")
    dossier = build_dossier([written.runs], text.offer("a", {3: "300.00"}).offer("b", {3: "100.00"}).write())
    found = rows(dossier, "candidates")
    assert {label: row.labels["status"] for label, row in found.items()} == {"A": "recommended", "B": "excluded"}
    assert said(dossier, found["B"].sentences[0]) == (
        "out: meets the rules, but 23 of 24 documents judged, others 24: not ranked"
    )


def test_a_candidate_that_two_models_fit_must_say_which_one(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text
) -> None:
    kit = campaign_records
    kit(tmp_path / "runs")
    kit(tmp_path / "runs", model="example/other", start="2026-01-03T09:00:00")
    path = campaign_text.candidate("A", "bf16").write()
    with pytest.raises(Refused) as refused:
        build_dossier([tmp_path / "runs"], path)
    finding = refused.value.findings[0]
    assert finding.rule == "ambiguous-candidate"
    key = "other~bf16~example-cpu-2-cores~b1~c1"
    assert key in finding.message
    path.write_text(path.read_text().replace("offers = []", f'configuration = "{key}"'))
    row = rows(build_dossier([tmp_path / "runs"], path), "candidates")["A"]
    assert (row.labels["model"], row.labels["configuration_key"]) == ("other", key)
