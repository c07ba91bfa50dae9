"""What the objective asks beside quality, at its exact limits; and offers that cannot win, each with its sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.contract.protocol import Gates
from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Row, Sentence

Kit = Any
Text = Any
Decide = Any
Say = Callable[[Dossier, Sentence], str]
GPU = "Example GPU 80 GB"
GIB = 2**30


def rows(dossier: Dossier) -> dict[str, Row]:
    return {row.labels["label"]: row for row in dossier.tables["candidates"].rows}


def verdict(dossier: Dossier, said: Say, label: str) -> str:
    return said(dossier, rows(dossier)[label].sentences[0])


def card(kit: Kit, runs: Path) -> None:
    """The device peak of both variants is exactly 60 GiB of 80 GiB."""
    peak_bytes = 60 * GIB - 900 * 2**20
    variants = [kit.variant(name=name, peak_bytes=peak_bytes) for name in ("fp32", "bf16")]
    kit(runs, variants=variants, device=kit.device(name=GPU, kind="cuda", memory_bytes=80 * GIB))


@pytest.mark.parametrize(
    ("percent", "memory", "status"),
    [
        ("25", None, "recommended"),
        ("25.0001", None, "excluded"),
        ("20", "75", "recommended"),
        ("20.0001", "75", "excluded"),
        ("24", "75", "excluded"),
    ],
)
def test_headroom_is_a_share_of_the_offered_card_where_it_is_named_to_the_byte(
    decide: Decide, campaign_text: Text, percent: str, memory: str | None, status: str
) -> None:
    text = campaign_text.candidate("A", "bf16", "o", device=GPU)
    text.offer("o", {3: "100.00"}, device=GPU, more=f'device_memory_gib = "{memory}"\n' if memory else "")
    path = text.write()
    path.write_text(
        path.read_text().replace('tie_percent = "0"', f'tie_percent = "0"\nmin_headroom_percent = "{percent}"')
    )
    dossier = decide("card", path, write=card)
    assert rows(dossier)["A"].labels["status"] == status
    requirement = dossier.tables["requirements"].rows[0]
    assert requirement.labels["offer"] == ("o" if memory else "")


def test_a_dearer_offer_with_a_larger_card_wins_where_the_cheaper_card_leaves_too_little_free(
    decide: Decide, campaign_text: Text, said: Say
) -> None:
    text = campaign_text.candidate("A", "bf16", "small", "large", device=GPU)
    text.offer("small", {3: "100.00"}, device=GPU, more='device_memory_gib = "75"\n')
    text.offer("large", {3: "200.00"}, device=GPU, more='device_memory_gib = "80"\n')
    path = text.write()
    path.write_text(path.read_text().replace('tie_percent = "0"', 'tie_percent = "0"\nmin_headroom_percent = "22"'))
    dossier = decide("card", path, write=card)
    assert "run A: 200.00 EUR net" in said(dossier, dossier.decision.recommendation)


def test_free_memory_is_ranked_on_the_cards_offered_and_the_recommended_offer_has_the_one_that_is_told(
    decide: Decide, campaign_text: Text, said: Say
) -> None:
    """Both were measured with 20 of 80 GiB free; A is offered a card of 75 and one of 84 GiB, B one of 80 GiB."""
    text = campaign_text.candidate("A", "bf16", "small", "large", device=GPU).candidate("B", "fp32", "same", device=GPU)
    text.offer("small", {3: "100.00"}, device=GPU, more='device_memory_gib = "75"\n')
    text.offer("large", {3: "200.00"}, device=GPU, more='device_memory_gib = "84"\n')
    text.offer("same", {3: "100.00"}, device=GPU)
    dossier = decide("card", text.write(prefer="most_headroom"), write=card)
    assert {label: row.labels["status"] for label, row in rows(dossier).items()} == {
        "A": "recommended",
        "B": "reference",
    }
    assert "run A: 200.00 EUR net" in said(dossier, dossier.decision.recommendation)
    reasons = [said(dossier, reason) for reason in dossier.decision.reasons]
    assert "It leaves 24.0 GiB of 84.0 GiB free at its peak." in reasons
    behind = dossier.figures[f"candidates/{rows(dossier)['B'].key}/behind_best"]
    assert (behind.value, behind.unit) == (4 * GIB, "bytes")
    assert behind.bases == ["quoted", "measured"]


def test_the_memory_required_is_told_of_the_card_that_is_recommended(
    decide: Decide, campaign_text: Text, said: Say
) -> None:
    text = campaign_text.candidate("A", "bf16", "small", "large", device=GPU)
    text.offer("small", {3: "100.00"}, device=GPU, more='device_memory_gib = "75"\n')
    text.offer("large", {3: "200.00"}, device=GPU, more='device_memory_gib = "84"\n')
    path = text.write()
    path.write_text(path.read_text().replace('tie_percent = "0"', 'tie_percent = "0"\nmin_headroom_percent = "10"'))
    dossier = decide("card", path, write=card)
    assert "run A: 100.00 EUR net" in said(dossier, dossier.decision.recommendation)
    assert [row.labels["offer"] for row in dossier.tables["requirements"].rows if row.labels["label"] == "A"] == [
        "small"
    ]


@pytest.mark.parametrize(
    ("more", "said_of_it"),
    [
        ('excludes = ["storage", "set-up"]\n', "meets the rules; no offer is complete: o (storage, set-up)"),
        (
            '[[offer.line]]\ntext = "3 days"\ndays = 3\nquantity = "3"\nunit_price = "30.00"\namount = "100.00"\n',
            "meets the rules; no quote adds up: o",
        ),
    ],
)
def test_an_offer_that_leaves_something_out_or_does_not_add_up_cannot_win_and_says_so(
    decide: Decide, campaign_text: Text, said: Say, more: str, said_of_it: str
) -> None:
    text = campaign_text.candidate("A", "bf16", "o").candidate("R", "fp32", "dear")
    dossier = decide("plain", text.offer("dear", {3: "900.00"}).offer("o", {3: "100.00"}, more=more).write())
    assert {label: row.labels["status"] for label, row in rows(dossier).items()} == {
        "R": "recommended", "A": "not_priced",
    }  # fmt: skip
    assert verdict(dossier, said, "A") == said_of_it
    assert "An offer for A that leaves nothing out, adds up and has an exchange rate." in [
        said(dossier, one) for one in dossier.decision.would_change
    ]


def test_where_the_interval_leaves_everything_open_page_one_says_what_would_decide(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    gates = Gates(max_lost_points="5", min_accepted_percent="80", decide_by="interval")
    worse = kit.variant(name="worse", outcomes=dict.fromkeys(range(20), "wrong"))
    runs = kit(tmp_path / "runs", variants=[kit.fp32, kit.bf16, worse], gates=gates).runs
    text = campaign_text.candidate("A", "bf16", "o").candidate("W", "worse", "o").offer("o", {3: "100.00"})
    dossier = build_dossier([runs], text.write())
    assert rows(dossier)["A"].labels["status"] == "undecided"
    assert rows(dossier)["W"].labels["status"] == "rejected"
    assert said(dossier, dossier.decision.recommendation) == (
        "None is recommended: of 3 measured configurations, none meets every rule beyond doubt; undecided: 2."
    )
    told = [said(dossier, one) for one in dossier.decision.would_change]
    assert "About 369 more documents could decide the loss of A, if it is as good as the reference." in told
    assert "Another variant in place of W: its whole interval lies beyond the limit of documents lost." in told
    assert any(
        rule.startswith("The protocol decides by interval") for rule in (said(dossier, g) for g in dossier.gates)
    )
