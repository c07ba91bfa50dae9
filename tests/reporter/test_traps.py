"""Campaigns with a trap each: the right verdict and the right sentence, from record files to the dossier."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.contract.errors import Refused
from collector.contract.protocol import Gates, SubsetGate
from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Row, Sentence

Kit = Any
Text = Any
Say = Callable[[Dossier, Sentence], str]
CPU = "Example CPU 2 cores"
GPU = "Example GPU 80 GB"
GIB = 2**30


def rows(dossier: Dossier) -> dict[str, Row]:
    return {row.labels["label"]: row for row in dossier.tables["candidates"].rows}


def statuses(dossier: Dossier) -> dict[str, str]:
    return {label: row.labels["status"] for label, row in rows(dossier).items()}


def verdicts(dossier: Dossier, said: Say) -> dict[str, str]:
    return {label: said(dossier, row.sentences[0]) for label, row in rows(dossier).items()}


def answer(dossier: Dossier, said: Say) -> str:
    return said(dossier, dossier.decision.recommendation)


def reasons(dossier: Dossier, said: Say) -> list[str]:
    return [said(dossier, reason) for reason in dossier.decision.reasons]


def two(kit: Kit, runs: Path, **bf16: Any) -> Path:
    """The reference and one more variant on a processor."""
    other = kit.variant(**{"name": "bf16", "dtype": "bfloat16", "outcomes": kit.bf16.outcomes} | bf16)
    runs_folder: Path = kit(runs, variants=[kit.fp32, other]).runs
    return runs_folder


def on_card(kit: Kit, runs: Path, **device: Any) -> Path:
    machine = kit.device(**{"name": GPU, "kind": "cuda", "memory_bytes": 80 * GIB} | device)
    runs_folder: Path = kit(runs, variants=[kit.fp32, kit.bf16], device=machine).runs
    return runs_folder


def test_an_expired_quote_cannot_win_although_it_is_the_cheapest(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    runs = two(campaign_records, tmp_path / "runs")
    text = campaign_text.candidate("A", "fp32", "dear").candidate("B", "bf16", "old").offer("dear", {3: "900.00"})
    dossier = build_dossier([runs], text.offer("old", {3: "1.00"}, valid_until="2026-01-30").write())
    assert statuses(dossier) == {"A": "recommended", "B": "not_priced"}
    assert verdicts(dossier, said)["B"] == "meets the rules, no quote valid on 31 January 2026"
    assert "The price holds until 14 February 2026." in reasons(dossier, said)


def test_a_gross_price_is_compared_net_with_a_net_one(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    runs = two(campaign_records, tmp_path / "runs")
    text = campaign_text.candidate("A", "fp32", "net").candidate("B", "bf16", "gross").offer("net", {3: "110.00"})
    dossier = build_dossier([runs], text.offer("gross", {3: "119.00"}, more='prices_are = "gross"\n').write())
    assert statuses(dossier) == {"B": "recommended", "A": "reference"}
    assert answer(dossier, said).endswith("run B: 100.00 EUR net, 119.00 EUR with tax.")
    assert verdicts(dossier, said)["A"] == "reference; 10.00 EUR more"


def test_g01_a_node_is_paid_whole_and_never_compared_by_its_share_of_one_card(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    runs = on_card(campaign_records, tmp_path / "runs")
    text = campaign_text.candidate("A", "bf16", "node", "card", device=GPU)
    text.offer("node", {3: "400.00"}, device=GPU, more="device_count = 4\n")
    text.offer("card", {3: "150.00"}, device=GPU, more='device_count = 4\nprices_per = "card"\n')
    dossier = build_dossier([runs], text.write())
    assert statuses(dossier)["A"] == "recommended"
    assert answer(dossier, said).endswith("run A: 150.00 EUR net, 178.50 EUR with tax.")
    other = next(reason for reason in reasons(dossier, said) if "next best offer" in reason)
    assert other.endswith("costs 400.00 EUR net for 1 package of 3 days.")


def test_nothing_accepted_costs_what_was_paid_and_no_corpus_has_a_price(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    runs = two(campaign_records, tmp_path / "runs", outcomes=dict.fromkeys(range(24), "wrong"))
    text = campaign_text.candidate("A", "fp32", "o").candidate("B", "bf16", "o").offer("o", {3: "100.00"})
    dossier = build_dossier([runs], text.write())
    assert statuses(dossier) == {"A": "recommended", "B": "rejected"}
    assert verdicts(dossier, said)["B"] == "rejected: 21 lost, 1 allowed"
    package = next(row for row in dossier.tables["packages"].rows if row.labels["candidate"] == "B")
    assert said(dossier, package.sentences[0]).startswith("not defined: 100.00 EUR paid, 0 corpora accepted")
    cost = dossier.figures[package.cells["cost_per_corpus"]]
    assert (cost.value, cost.missing_reason) == (None, "not_defined")


def test_where_everything_fails_nobody_is_recommended_and_every_failure_is_named(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    variants = [kit.variant(name="fp32", failure="out_of_memory"), kit.variant(name="bf16", failure="load_failure")]
    runs = kit(tmp_path / "runs", variants=variants).runs
    text = campaign_text.candidate("A", "fp32", "o").candidate("B", "bf16", "o").offer("o", {3: "100.00"})
    dossier = build_dossier([runs], text.write())
    assert statuses(dossier) == {"A": "failed", "B": "failed"}
    assert verdicts(dossier, said) == {
        "A": "failed: out of memory in loading", "B": "failed: load failure in loading",
    }  # fmt: skip
    assert answer(dossier, said) == "None is recommended: no configuration was measured to the end."
    assert [said(dossier, one) for one in dossier.decision.would_change] == [
        "A run of A that ends: it failed (out of memory).", "A run of B that ends: it failed (load failure).",
    ]  # fmt: skip
    assert {row.labels["state"] for row in dossier.tables["missing_passes"].rows} == {"failed"}


def test_an_interrupted_pass_is_no_failed_one_and_the_way_on_is_said(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    runs = kit(tmp_path / "runs", variants=[kit.fp32, kit.variant(name="bf16", failure="interrupted")]).runs
    text = campaign_text.candidate("A", "fp32", "o").candidate("B", "bf16", "o").offer("o", {3: "100.00"})
    dossier = build_dossier([runs], text.write())
    assert verdicts(dossier, said)["B"] == "no result: no pass came to its end"
    [missing] = dossier.tables["missing_passes"].rows
    assert (missing.labels["variant"], missing.labels["state"]) == ("bf16", "interrupted")
    expected = "interrupted before its end; `collector run` with --resume measures it again"
    assert said(dossier, missing.sentences[0]) == expected


def tie(text: Text) -> Path:
    """Two offers, 105.00 and 100.00: equivalent within 5 percent."""
    text.candidate("A", "fp32", "a").candidate("B", "bf16", "b").offer("a", {3: "105.00"}).offer("b", {3: "100.00"})
    path: Path = text.write(tie="5")
    return path


def test_two_within_the_tie_are_equivalent_and_the_difference_crowns_nobody(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    dossier = build_dossier([two(campaign_records, tmp_path / "runs")], tie(campaign_text))
    assert statuses(dossier) == {"B": "equivalent", "A": "equivalent"}
    assert not dossier.decision.has_winner
    assert not dossier.decision.has_preferred
    assert "B, A are equivalent in the package price, within 5.0 %" in answer(dossier, said)
    assert (
        "None of them was both reloaded with equal answers and read back as asked for, so none is preferred. The "
        "difference in the package price does not decide." in reasons(dossier, said)
    )
    assert "A check after a reload that only one of B, A passes." in [
        said(dossier, one) for one in dossier.decision.would_change
    ]


def test_of_two_equivalents_the_dearer_one_is_preferred_where_it_alone_was_reloaded(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    reference = kit.variant(name="fp32", outcomes=kit.fp32.outcomes, reload=(8, 8))
    other = kit.variant(name="bf16", dtype="bfloat16", outcomes=kit.bf16.outcomes, reload=(8, 7))
    runs = kit(tmp_path / "runs", variants=[reference, other]).runs
    dossier = build_dossier([runs], tie(campaign_text))
    assert statuses(dossier) == {"B": "equivalent", "A": "equivalent"}
    assert (dossier.decision.has_winner, dossier.decision.has_preferred) == (False, True)
    assert "Of these, A is preferred: it was reloaded and can be explained." in answer(dossier, said)
    assert "105.00 EUR net" in answer(dossier, said)
    assert (
        "After a reload in a fresh process 8 of 8 answers of A were equal, the artefact is the same by digest, and "
        "what was loaded is what was asked for. The difference in the package price does not decide."
        in reasons(dossier, said)
    )
    assert verdicts(dossier, said)["A"].endswith("preferred: reloaded and explained")


def exactly(kit: Kit, runs: Path, *, more_ns: int) -> Path:
    """Loading 3 s, warm-up 1 s and measuring 59 s; `more_ns` on top of the measuring."""
    written = kit(runs, reference_runs=1)

    def timed(_: int, line: dict[str, Any]) -> dict[str, Any]:
        if line["kind"] == "pass_end":
            line["phase_ns"] = {"load": 3 * 10**9, "warmup": 10**9, "measure": 59 * 10**9 + more_ns}
        return line

    lines = kit.rechain(written.path.read_bytes().splitlines(), timed)
    written.path.write_bytes(b"".join(line + b"\n" for line in lines))
    runs_folder: Path = written.runs
    return runs_folder


@pytest.mark.parametrize(("more_ns", "packages", "price"), [(0, "1 package", "540.00"), (1, "2 packages", "1,080.00")])
def test_exactly_72_hours_are_one_package_of_3_days_and_a_nanosecond_more_is_two(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say, more_ns: int, packages: str, price: str
) -> None:
    runs = exactly(campaign_records, tmp_path / "runs", more_ns=more_ns)
    text = campaign_text.candidate("A", "bf16", "o").offer("o", {3: "540.00"})
    # 63 seconds are 0.0175 hours
    text.calendar = '[calendar]\npreparation = { hours = "71.9825", basis = "assumed", by = "the buyer" }\n'
    dossier = build_dossier([runs], text.write(documents=24))
    assert statuses(dossier)["A"] == "recommended"
    assert f"for {packages} of 3 days and run A: {price} EUR net" in answer(dossier, said)


def test_a_pair_that_differs_in_more_than_one_factor_is_compared_whole_and_its_difference_is_nobodys(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    runs = two(campaign_records, tmp_path / "runs", factor="several")
    text = campaign_text.candidate("A", "fp32", "a").candidate("B", "bf16", "b")
    dossier = build_dossier([runs], text.offer("a", {3: "200.00"}).offer("b", {3: "100.00"}).write())
    assert statuses(dossier) == {"B": "recommended", "A": "reference"}
    whole = "B and A differ in more than one factor: they are compared as complete configurations, and their difference"
    assert f"{whole} is attributed to none." in reasons(dossier, said)
    assert "Which factor makes the difference between B and A: they differ in more than one." in [
        said(dossier, one) for one in dossier.decision.does_not_show
    ]


def test_one_factor_apart_is_no_complete_configuration(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    runs = two(campaign_records, tmp_path / "runs")
    text = campaign_text.candidate("A", "fp32", "a").candidate("B", "bf16", "b")
    dossier = build_dossier([runs], text.offer("a", {3: "200.00"}).offer("b", {3: "100.00"}).write())
    assert not [reason for reason in reasons(dossier, said) if "more than one factor" in reason]


CHARGE = """\
[[charge]]
id = "{name}"
invoice = "2026-17"
issuer = "Example Cloud"
line = "1"
on = 2026-01-10
amount = "540.00"
currency = "EUR"
description = "3 days"
"""


def test_an_invoice_line_given_twice_is_refused_with_both_lines(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text
) -> None:
    runs = two(campaign_records, tmp_path / "runs")
    text = campaign_text.candidate("A", "bf16", "o").offer("o", {3: "540.00"})
    text.calendar = CHARGE.format(name="c1") + CHARGE.format(name="c2")
    path = text.write()
    with pytest.raises(Refused) as refused:
        build_dossier([runs], path)
    assert [finding.rule for finding in refused.value.findings] == ["duplicate-invoice-line"]
    lines = path.read_text().splitlines()
    first, second = [number for number, line in enumerate(lines, start=1) if line == "[[charge]]"]
    finding = refused.value.findings[0]
    assert finding.line is not None
    assert finding.line >= second
    assert any(str(number) in finding.message for number in range(first, second))


def wrong(critical: int, others: int) -> dict[int, str]:
    """Outcomes of 200 documents, the first 20 of them critical."""
    return dict.fromkeys([*range(critical), *range(20, 20 + others)], "wrong")


def test_mission_e2_through_the_whole_path_a_passes_and_is_not_thereby_the_winner(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    rules = Gates(max_lost_points="1", subsets=[SubsetGate(subset="critical", min_accepted_percent="90")])
    variants = [
        kit.variant(name="reference", outcomes=wrong(1, 9)),
        kit.variant(name="A", dtype="bfloat16", outcomes=wrong(2, 10)),
        kit.variant(name="B", dtype="float16", outcomes=wrong(4, 12)),
    ]
    runs = kit(tmp_path / "runs", documents=200, critical=20, variants=variants, gates=rules, reference_runs=1).runs
    for name in ("reference", "A", "B"):
        campaign_text.candidate(name, name)
    dossier = build_dossier([runs], campaign_text.write(documents=200))
    assert statuses(dossier) == {"A": "not_priced", "reference": "reference", "B": "rejected"}
    assert verdicts(dossier, said)["B"] == "rejected: 6 lost, 2 allowed"
    assert verdicts(dossier, said)["A"] == "meets the rules, no price given"
    assert answer(dossier, said) == (
        "No winner is declared: 2 configurations meet the rules, none of them has a usable price."
    )


def test_g12_a_peak_of_83e9_bytes_is_77_3_of_79_6_gib_whatever_it_is_compared_with(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    peak_bytes = 83 * 10**9 - 900 * 2**20
    variants = [kit.fp32, kit.variant(name="bf16", outcomes=kit.bf16.outcomes, peak_bytes=peak_bytes)]
    machine = kit.device(name=GPU, kind="cuda", memory_bytes=85_520_809_984)
    runs = kit(tmp_path / "runs", variants=variants, device=machine).runs
    text = campaign_text.candidate("A", "bf16", "o", device=GPU).candidate("R", "fp32", "o", device=GPU)
    path = text.offer("o", {3: "100.00"}, device=GPU).write()
    path.write_text(path.read_text().replace('tie_percent = "0"', 'tie_percent = "0"\nmin_headroom_percent = "5"'))
    dossier = build_dossier([runs], path)
    assert statuses(dossier) == {"R": "recommended", "A": "excluded"}
    assert verdicts(dossier, said)["A"] == (
        "out: meets the rules, but its peak takes 77.3 GiB of 79.6 GiB (97 %), "
        "3.98 GiB must stay free and 2.35 GiB does"
    )
    row = rows(dossier)["A"]
    assert dossier.figures[row.cells["peak_bytes"]].value == 83 * 10**9
    assert [said(dossier, one) for one in dossier.decision.would_change if one.key == "change_headroom"] == [
        "A on a card with at least 81.4 GiB, its peak being 77.3 GiB."
    ]


def test_g12_a_peak_above_the_card_is_an_error_and_cannot_win(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    variants = [kit.fp32, kit.variant(name="bf16", outcomes=kit.bf16.outcomes, peak_bytes=83 * 10**9)]
    runs = kit(tmp_path / "runs", variants=variants, device=kit.device(name=GPU, kind="cuda", memory_bytes=80 * 10**9))
    text = campaign_text.candidate("A", "bf16", "o", device=GPU)
    dossier = build_dossier([runs.runs], text.offer("o", {3: "100.00"}, device=GPU).write())
    assert statuses(dossier)["A"] == "excluded"
    assert verdicts(dossier, said)["A"] == (
        "out: meets the rules, but its peak of 78.2 GiB exceeds the card's 74.5 GiB (105 %): one of the two is wrong"
    )
    assert "notice_peak_over_memory" in [notice.key for notice in dossier.notices]


def test_g18_a_limit_of_half_a_second_is_missed_by_two_seconds_and_few_requests_show_no_percentile(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    runs = two(campaign_records, tmp_path / "runs", first_token_ns=2_100_000_000)
    text = campaign_text.candidate("A", "bf16", "o").candidate("R", "fp32", "o").offer("o", {3: "100.00"})
    asked = 'tie_percent = "0"\nmax_first_token_s = "0.5"\ntime_percentile = 50'
    path = text.write()
    path.write_text(path.read_text().replace('tie_percent = "0"', asked))
    dossier = build_dossier([runs], path)
    assert statuses(dossier) == {"R": "recommended", "A": "excluded"}
    assert verdicts(dossier, said)["A"] == (
        "out: meets the rules, but first token after 2.11 s for 50 percent of the requests, 500 ms allowed"
    )
    path.write_text(path.read_text().replace("time_percentile = 50", "time_percentile = 95"))
    dossier = build_dossier([runs], path)
    assert set(statuses(dossier).values()) == {"excluded"}
    assert verdicts(dossier, said)["A"] == (
        "out: meets the rules, but time to the first token not shown for 95 percent: 24 requests, 72 needed"
    )
    assert "none of them what the objective requires of memory and time" in answer(dossier, said)
