"""Who qualifies, who wins and who does not, on whole campaigns of records: rules first, then whole packages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.contract.protocol import Gates, SubsetGate
from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Row, Sentence

Kit = Any
Say = Callable[[Dossier, Sentence], str]
Decide = Any
RULES = Gates(max_lost_points="1", subsets=[SubsetGate(subset="critical", min_accepted_percent="90")])
GPU = "Example GPU 24 GB"


def wrong(critical: int, others: int) -> dict[int, str]:
    """Outcomes of 200 documents, the first 20 of them critical."""
    return dict.fromkeys([*range(critical), *range(20, 20 + others)], "wrong")


def e2_records(kit: Kit, runs: Path) -> Path:
    """Mission E2: reference 190 and 19/20, A 188 and 18/20, B 184 and 16/20 of 200 documents, 20 critical."""
    variants = [
        kit.variant(name="reference", outcomes=wrong(1, 9)),
        kit.variant(name="A", dtype="bfloat16", outcomes=wrong(2, 10)),
        kit.variant(name="B", dtype="float16", outcomes=wrong(4, 12)),
    ]
    kit(runs, documents=200, critical=20, variants=variants, gates=RULES, reference_runs=1)
    return runs


def candidates(dossier: Dossier) -> dict[str, Row]:
    return {row.labels["label"]: row for row in dossier.tables["candidates"].rows}


def statuses(dossier: Dossier) -> dict[str, str]:
    return {label: row.labels["status"] for label, row in candidates(dossier).items()}


def verdicts(dossier: Dossier, said: Say) -> dict[str, str]:
    return {label: said(dossier, row.sentences[0]) for label, row in candidates(dossier).items()}


def value(dossier: Dossier, row: Row, column: str) -> Any:
    return dossier.figures[row.cells[column]].value


def test_mission_e2_a_passes_b_fails_and_no_winner_is_declared(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    dossier = build_dossier([e2_records(campaign_records, tmp_path / "runs")], None)
    assert verdicts(dossier, said) == {
        "A · 1": "meets the rules", "reference · 1": "reference", "B · 1": "rejected: 6 lost, 2 allowed",
    }  # fmt: skip
    gates = {(r.labels["label"], r.labels["subset"]): r for r in dossier.tables["gates"].rows}
    counted = {
        key: (value(dossier, row, "counted"), value(dossier, row, "limit"), row.labels["result"])
        for key, row in gates.items()
    }
    assert counted["A · 1", ""] == (2, 2, "pass")
    assert counted["A · 1", "critical"] == (18, 18, "pass")
    assert counted["B · 1", ""] == (6, 2, "fail")
    assert counted["B · 1", "critical"] == (16, 18, "fail")
    assert not dossier.decision.has_winner
    assert said(dossier, dossier.decision.recommendation) == (
        "No winner is declared: 2 of 3 configurations meet the rules, and neither prices nor an objective were given."
    )


def test_mission_e2_would_fail_in_floating_point() -> None:
    assert 0.95 - 0.94 > 0.01
    assert (190 - 188) * 100 <= 1 * 200


def test_mission_e2_with_an_objective_but_no_price_has_no_winner_either(
    decide: Decide, campaign_text: Any, said: Say
) -> None:
    for name in ("reference", "A", "B"):
        campaign_text.candidate(name, name)
    dossier = decide("e2", campaign_text.write(documents=200), write=e2_records)
    assert not dossier.decision.has_winner
    assert statuses(dossier) == {"A": "not_priced", "reference": "reference", "B": "rejected"}
    assert verdicts(dossier, said)["A"] == "meets the rules, no price given"
    assert "no winner" in said(dossier, dossier.decision.recommendation).lower()
    assert [said(dossier, s) for s in dossier.decision.would_change][:2] == [
        "A price valid on 31 January 2026 for reference.", "A price valid on 31 January 2026 for A.",
    ]  # fmt: skip


def two_machines(kit: Kit, runs: Path, **gpu: Any) -> Path:
    """The reference and bf16 on a processor (22.9 and 14.1 s), bf16 on a GPU five times as fast, 4-bit losing much."""
    kit(runs)
    fast = {"first_token_ns": 14_000_000, "token_gap_ns": 3_000_000}
    variants = [
        kit.fp32,
        kit.variant(name="bf16", dtype="bfloat16", outcomes=kit.bf16.outcomes, peak_bytes=6 * 2**30, **fast),
        kit.variant(name="nf4", outcomes=dict.fromkeys(range(8, 16), "wrong"), peak_bytes=4 * 2**30, **fast),
        kit.variant(name="int8", failure="out_of_memory"),
    ]
    device = kit.device(name=GPU, kind="cuda", host="b", memory_bytes=24 * 2**30, **gpu)
    kit(runs, variants=variants, device=device, reference_runs=1, start="2026-01-03T09:00:00")
    return runs


def priced(campaign_text: Any) -> Any:
    """A processor at 100.00 and a GPU at 540.00 for three days; 150,000 documents need about 30, 20 and 5 hours."""
    return (
        campaign_text.candidate("CPU fp32", "fp32", "cpu")
        .candidate("CPU bf16", "bf16", "cpu")
        .candidate("GPU bf16", "bf16", "gpu", device=GPU)
        .candidate("GPU nf4", "nf4", "gpu", device=GPU)
        .candidate("GPU int8", "int8", "gpu", device=GPU)
        .candidate("GPU fp8", "fp8", "gpu", device=GPU)
        .offer("cpu", {3: "100.00"})
        .offer("gpu", {3: "540.00", 7: "1092.00"}, device=GPU, more='device_memory_gib = "24"\n')
    )


def test_the_cheapest_is_recommended_with_its_price_and_every_other_has_its_reason(
    decide: Decide, campaign_text: Any, said: Say
) -> None:
    path = priced(campaign_text).write(corpora=1000, documents=240, top='deadline_h = "40"')
    dossier = decide("two machines", path, write=two_machines)
    assert said(dossier, dossier.decision.recommendation) == (
        "Rent Example CPU 2 cores from Example Cloud for 1 package of 3 days and run CPU bf16: 100.00 EUR net, "
        "119.00 EUR with tax."
    )
    found = verdicts(dossier, said)
    assert re.fullmatch(r"reference; misses the deadline of 40\.0 h by 10\.\d h", found.pop("CPU fp32"))
    assert found.pop(f"{GPU} · fp32 · 1") == "meets the rules, no price given"
    assert found == {
        "CPU bf16": "recommended",
        "GPU bf16": "meets the rules, 440.00 EUR more",
        "GPU nf4": "rejected: 5 lost, 1 allowed",
        "GPU int8": "failed: out of memory in loading",
        "GPU fp8": "not measured",
    }
    assert list(statuses(dossier).values()) == [
        "recommended", "feasible", "reference", "not_priced", "rejected", "failed", "not_measured",
    ]  # fmt: skip
    best = candidates(dossier)["CPU bf16"]
    assert (best.labels["package_days"], value(dossier, best, "package_count")) == ("3", 1)
    assert dossier.decision.prices_valid_until == "2026-02-14"


def test_what_would_change_the_answer_is_computed_from_its_figures(
    decide: Decide, campaign_text: Any, said: Say
) -> None:
    path = priced(campaign_text).write(corpora=1000, documents=240, top='deadline_h = "40"')
    dossier = decide("two machines", path, write=two_machines)
    said_all = [said(dossier, sentence) for sentence in dossier.decision.would_change]
    assert said_all[0] == "A package of 3 days for GPU bf16 under 100.00 EUR net (now 540.00 EUR)."
    most = dossier.figures["what_if/bf16~example-cpu-2-cores~b1~c1/most_documents"].value
    assert said_all[1] == f"More than {most:,} documents: CPU bf16 then needs another package."
    assert said_all[2] == "1 more document lost would reject CPU bf16."
    assert said_all[3] == "A rule that allows 5 of 24 documents lost would admit GPU nf4."
    assert re.fullmatch(r"A deadline of 50\.\d h or more would let CPU fp32 finish in time\.", said_all[4])


@pytest.mark.parametrize(("more", "packages"), [(0, 1), (1, 2)])
def test_the_stated_volume_is_the_last_that_the_package_holds(
    decide: Decide, campaign_text: Any, more: int, packages: int
) -> None:
    text = campaign_text.candidate("bf16", "bf16", "cpu").offer("cpu", {3: "100.00"})
    first = decide("plain", text.write())
    most = first.figures["what_if/bf16~example-cpu-2-cores~b1~c1/most_documents"].value
    again = decide("plain", text.write(documents=int(str(most)) + more))
    assert value(again, candidates(again)["bf16"], "package_count") == packages


def test_the_stated_price_is_where_the_runner_up_begins_to_win(
    tmp_path: Path, decide: Decide, campaign_text: Any
) -> None:
    winners = []
    for price in ("50.01", "50.00", "49.99"):
        text = type(campaign_text)(tmp_path / f"{price}.toml")
        text.candidate("fp32", "fp32", "a").candidate("bf16", "bf16", "b")
        path = text.offer("a", {30: "100.00"}).offer("b", {3: price}).write(documents=640_000)
        dossier = decide("plain", path)
        row = candidates(dossier)["bf16"]
        assert value(dossier, row, "package_count") == 2
        winners.append([label for label, status in statuses(dossier).items() if status == "recommended"])
    assert winners == [["fp32"], [], ["bf16"]]


def test_equal_prices_are_equivalent_and_nobody_is_crowned(decide: Decide, campaign_text: Any, said: Say) -> None:
    text = campaign_text.candidate("fp32", "fp32", "cpu").candidate("bf16", "bf16", "cpu")
    dossier = decide("plain", text.offer("cpu", {3: "100.00"}).write())
    assert not dossier.decision.has_winner
    assert set(statuses(dossier).values()) == {"equivalent"}
    assert "equivalent in the package price" in said(dossier, dossier.decision.recommendation)
    assert "100.00 EUR net" in said(dossier, dossier.decision.recommendation)


@pytest.mark.parametrize(("tie", "status"), [("4.9", "feasible"), ("5", "equivalent")])
def test_the_tie_width_is_a_percentage_of_the_best_inclusive(
    decide: Decide, campaign_text: Any, tie: str, status: str
) -> None:
    text = campaign_text.candidate("fp32", "fp32", "a").candidate("bf16", "bf16", "b")
    path = text.offer("a", {3: "105.00"}).offer("b", {3: "100.00"}).write(tie=tie)
    dossier = decide("plain", path)
    assert dossier.decision.has_winner == (status == "feasible")
    fp32 = statuses(dossier)["fp32"]
    assert fp32 == ("equivalent" if status == "equivalent" else "reference")


def test_an_expired_quote_cannot_win_and_says_so(decide: Decide, campaign_text: Any, said: Say) -> None:
    text = campaign_text.candidate("fp32", "fp32", "dear").candidate("bf16", "bf16", "old")
    text.offer("dear", {3: "900.00"}).offer("old", {3: "1.00"}, valid_until="2026-01-30")
    dossier = decide("plain", text.write())
    assert statuses(dossier) == {"fp32": "recommended", "bf16": "not_priced"}
    assert verdicts(dossier, said)["bf16"] == "meets the rules, no quote valid on 31 January 2026"
    assert [row.labels["is_valid"] for row in dossier.tables["packages"].rows] == ["yes", "no"]
    notices = [said(dossier, notice) for notice in dossier.notices]
    assert "The quote old holds from 5 January 2026 to 30 January 2026 and cannot win on 31 January 2026." in notices


def test_an_offer_for_another_machine_is_left_out_with_the_reason(
    decide: Decide, campaign_text: Any, said: Say
) -> None:
    text = campaign_text.candidate("bf16", "bf16", "gpu", "four").offer("gpu", {3: "1.00"}, device=GPU)
    dossier = decide("plain", text.offer("four", {3: "2.00"}, more='mig_profile = "1g.12gb"\n').write())
    assert statuses(dossier)["bf16"] == "not_priced"
    assert verdicts(dossier, said)["bf16"] == "meets the rules, no offer is for the measured machine"
    notices = [said(dossier, notice) for notice in dossier.notices]
    assert f"Offer gpu is for {GPU}, not for Example CPU 2 cores; it is left out for bf16." in notices
    assert "Offer four has MIG profile 1g.12gb, measured was none; it is left out for bf16." in notices
    assert all("price_net" not in row.cells for row in dossier.tables["packages"].rows)


def test_g06_a_candidate_without_an_offer_is_never_free_of_charge(
    decide: Decide, campaign_text: Any, said: Say
) -> None:
    text = campaign_text.candidate("fp32", "fp32", "cpu").candidate("bf16", "bf16").offer("cpu", {3: "900.00"})
    dossier = decide("plain", text.write())
    assert statuses(dossier) == {"fp32": "recommended", "bf16": "not_priced"}
    assert "package_price" not in candidates(dossier)["bf16"].cells
    assert "bf16 names no offer; its price is unknown." in [said(dossier, notice) for notice in dossier.notices]


def test_a_deadline_that_nobody_meets_ends_without_a_winner(decide: Decide, campaign_text: Any, said: Say) -> None:
    text = campaign_text.candidate("bf16", "bf16", "cpu").offer("cpu", {3: "100.00"})
    dossier = decide("plain", text.write(documents=100_000, top='deadline_h = "1"'))
    assert not dossier.decision.has_winner
    assert "does not finish within the deadline" in said(dossier, dossier.decision.recommendation)
    assert dossier.decision.would_change[0].key == "change_deadline"


def test_a_protocol_that_nothing_meets_ends_in_a_dossier_that_says_what_would_change_it(
    tmp_path: Path, campaign_records: Kit, campaign_text: Any, said: Say
) -> None:
    gates = Gates(min_accepted_percent="95", subsets=[SubsetGate(subset="critical", min_accepted_percent="100")])
    runs = campaign_records(tmp_path / "runs", gates=gates).runs
    text = campaign_text.candidate("fp32", "fp32", "cpu").candidate("bf16", "bf16", "cpu")
    dossier = build_dossier([runs], text.offer("cpu", {3: "100.00"}).write())
    assert not dossier.decision.has_winner
    assert said(dossier, dossier.decision.recommendation) == (
        "None is recommended: of 2 measured configurations, none meets every rule."
    )
    assert [said(dossier, sentence) for sentence in dossier.decision.would_change] == [
        "2 more accepted documents, 1 of them in critical, and fp32 meets every rule.",
        "3 more accepted documents, 1 of them in critical, and bf16 meets every rule.",
    ]
    assert verdicts(dossier, said) == {
        "fp32": "reference; fails its own rules: 21 accepted, 23 needed",
        "bf16": "rejected: 20 accepted, 23 needed",
    }
    cost = next(f for name, f in dossier.figures.items() if name.endswith("/cost_per_corpus"))
    assert (cost.value, cost.missing_reason) == (None, "not_defined")
    package = dossier.tables["packages"].rows[0]
    assert (
        said(dossier, package.sentences[0])
        == "not defined: 100.00 EUR paid, 0 corpora accepted, since a rule is not met"
    )


def test_a_document_that_did_not_come_back_makes_the_corpus_incomplete(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    kit = campaign_records
    variants = [kit.fp32, kit.variant(name="bf16", missing=frozenset({20}))]
    dossier = build_dossier([kit(tmp_path / "runs", variants=variants).runs], None)
    assert verdicts(dossier, said)["bf16 · 1"] == "rejected: 23 of 24 documents returned"


def test_without_a_completed_reference_nothing_is_judged_by_its_loss(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    kit = campaign_records
    variants = [kit.variant(name="fp32", failure="load_failure"), kit.bf16]
    dossier = build_dossier([kit(tmp_path / "runs", variants=variants).runs], None)
    assert verdicts(dossier, said) == {
        "bf16 · 1": "not judged: the reference was not completed",
        "fp32 · 1": "failed: load failure in loading",
    }
    assert dossier.decision.recommendation.key == "recommend_none_reference"


def test_a_campaign_in_which_everything_failed_is_still_a_dossier(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    kit = campaign_records
    variants = [kit.variant(name=name, failure="out_of_memory") for name in ("fp32", "bf16")]
    dossier = build_dossier([kit(tmp_path / "runs", variants=variants).runs], None)
    assert dossier.decision.recommendation.key == "recommend_none_measured"
    assert [said(dossier, sentence) for sentence in dossier.decision.would_change] == [
        "A run of fp32 · 1 that ends: it failed (out of memory).",
        "A run of bf16 · 1 that ends: it failed (out of memory).",
    ]


@pytest.mark.parametrize(
    ("prefer", "behind"),
    [("most_headroom", "less headroom"), ("fastest_corpus", "slower"), ("most_corpora", "corpora fewer")],
)
def test_other_objectives_rank_by_their_own_quantity(
    decide: Decide, campaign_text: Any, said: Say, prefer: str, behind: str
) -> None:
    dossier = decide(
        "two machines", priced(campaign_text).write(corpora=1000, documents=240, prefer=prefer), write=two_machines
    )
    assert [label for label, status in statuses(dossier).items() if status == "recommended"] == ["GPU bf16"]
    assert behind in verdicts(dossier, said)["CPU bf16"]


def test_a_rule_by_interval_leaves_few_documents_undecided_and_says_how_many_more(
    tmp_path: Path, campaign_records: Kit, campaign_text: Any, said: Say
) -> None:
    runs = campaign_records(tmp_path / "runs", gates=Gates(max_lost_points="5", decide_by="interval")).runs
    text = campaign_text.candidate("bf16", "bf16", "cpu").candidate("fp32", "fp32").offer("cpu", {3: "100.00"})
    dossier = build_dossier([runs], text.write())
    assert statuses(dossier) == {"fp32": "reference", "bf16": "undecided"}
    assert verdicts(dossier, said)["bf16"] == (
        "undecided: 1 lost of 24, 1 allowed; about 369 more documents would decide"
    )
    gate = next(row for row in dossier.tables["gates"].rows if row.labels["label"] == "bf16")
    assert gate.labels["result"] == "undecided"
    assert not dossier.decision.has_winner


@pytest.mark.parametrize(
    ("rules", "verdict", "change"),
    [
        (
            Gates(min_accepted_percent="80", decide_by="interval"),
            "undecided: 20 of 24 accepted, 20 needed; about 1,061 more documents would decide",
            "About 1,061 more documents could decide whether bf16 has enough accepted, if the share stays so.",
        ),
        (
            Gates(subsets=[SubsetGate(subset="critical", min_accepted_percent="60")], decide_by="interval"),
            "undecided: critical 5 of 6 accepted, 4 needed; about 24 more there would decide",
            "About 24 more documents in critical could decide whether bf16 has enough accepted there, if the share "
            "stays so.",
        ),
    ],
)
def test_an_undecided_share_says_how_many_more_documents_of_its_own_would_decide(
    tmp_path: Path, campaign_records: Kit, campaign_text: Any, said: Say, rules: Gates, verdict: str, change: str
) -> None:
    runs = campaign_records(tmp_path / "runs", gates=rules).runs
    text = campaign_text.candidate("bf16", "bf16", "cpu").offer("cpu", {3: "100.00"})
    dossier = build_dossier([runs], text.write())
    assert verdicts(dossier, said)["bf16"] == verdict
    assert change in [said(dossier, one) for one in dossier.decision.would_change]


def test_a_rule_by_interval_is_met_where_the_interval_lies_above_the_margin(
    tmp_path: Path, campaign_records: Kit, campaign_text: Any, said: Say
) -> None:
    kit = campaign_records
    wanted = Gates(max_lost_points="5", decide_by="interval")
    variants = [kit.variant(name="fp32", outcomes={3: "wrong"}), kit.variant(name="bf16", outcomes={3: "wrong"})]
    worse = kit.variant(name="worse", outcomes=dict.fromkeys(range(40), "wrong"))
    runs = kit(tmp_path / "runs", documents=120, variants=[*variants, worse], gates=wanted).runs
    text = campaign_text.candidate("bf16", "bf16", "cpu").candidate("worse", "worse", "cpu")
    dossier = build_dossier([runs], text.offer("cpu", {3: "100.00"}).write(documents=120))
    found = statuses(dossier)
    assert (found["bf16"], found["worse"]) == ("recommended", "rejected")
    assert verdicts(dossier, said)["worse"] == "rejected: 39 lost, 6 allowed"


def test_a_gate_that_the_other_pass_of_the_reference_would_flip_is_not_stable(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    kit = campaign_records
    fp32 = kit.variant(name="fp32", outcomes={3: "wrong"}, changed_in_repeat=frozenset({3}))
    dossier = build_dossier(
        [kit(tmp_path / "runs", variants=[fp32, kit.bf16], gates=Gates(max_lost_points="13")).runs], None
    )
    assert verdicts(dossier, said)["bf16 · 1"] == "meets the rules"
    assert [said(dossier, n) for n in dossier.notices if n.key == "notice_not_stable"] == [
        "Not stable: bf16 · 1 passes or fails the rule on documents lost depending on the repetition."
    ]
