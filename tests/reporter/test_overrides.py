"""What a person decides is printed with name, day and reason; the rules' own answer stays beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.contract.errors import Refused
from reporter.assemble import build_dossier
from reporter.choose import choose
from reporter.dossier import Dossier, Sentence
from reporter.render import render

Kit = Any
Text = Any
Say = Callable[[Dossier, Sentence], str]
OVERRIDE = """\
[override]
candidate = "{candidate}"
by = "J. Buyer"
on = 2026-01-30
because = "the card is in stock"
"""


@pytest.fixture
def runs(tmp_path: Path, campaign_records: Kit) -> Path:
    """fp32 and bf16 meet the rules, int4 loses too much."""
    kit = campaign_records
    lossy = kit.variant(name="int4", outcomes=dict.fromkeys(range(8), "wrong"))
    folder: Path = kit(tmp_path / "runs", variants=[kit.fp32, kit.bf16, lossy]).runs
    return folder


@pytest.fixture
def overridden(campaign_text: Text) -> Callable[[str], Path]:
    """A campaign in which bf16 is cheapest, with an override that chooses another."""

    def write(candidate: str) -> Path:
        text = campaign_text.candidate("A", "fp32", "dear").candidate("B", "bf16", "cheap")
        text.candidate("C", "int4", "cheap").candidate("D", "int2", "cheap")
        text.offer("dear", {3: "300.00"}).offer("cheap", {3: "100.00"}).calendar = OVERRIDE.format(candidate=candidate)
        path: Path = text.write()
        return path

    return write


def record(dossier: Dossier, said: Say) -> list[str]:
    return [said(dossier, one) for one in dossier.decision.override]


def test_the_record_names_who_when_why_the_price_and_what_the_rules_recommend(
    runs: Path, overridden: Callable[[str], Path], said: Say
) -> None:
    dossier = build_dossier([runs], overridden("A"))
    assert record(dossier, said) == [
        "J. Buyer chose A on 30 January 2026: the card is in stock.",
        "Example CPU 2 cores from Example Cloud for 1 package of 3 days: 300.00 EUR net, 357.00 EUR with tax.",
        "The price holds until 14 February 2026.",
        "The rules recommend B instead.",
    ]
    assert "run B: 100.00 EUR net" in said(dossier, dossier.decision.recommendation)
    statuses = {row.labels["label"]: row.labels for row in dossier.tables["candidates"].rows}
    assert (statuses["B"]["status"], statuses["A"].get("is_chosen")) == ("recommended", "yes")
    page = render(dossier, lang="en", medium="paper")
    assert "Decision of a person" in page
    assert "the card is in stock" in page


def test_a_choice_against_the_rules_is_printed_as_one(runs: Path, overridden: Callable[[str], Path], said: Say) -> None:
    dossier = build_dossier([runs], overridden("C"))
    assert "C does not meet the rules that were fixed in advance: 5 lost, 1 allowed." in record(dossier, said)
    row = next(row for row in dossier.tables["candidates"].rows if row.labels["label"] == "C")
    assert said(dossier, row.sentences[0]) == "chosen by J. Buyer although it does not meet the rules"


@pytest.mark.parametrize(("candidate", "why"), [("E", "no candidate of this file"), ("D", "was not measured")])
def test_a_choice_of_nothing_that_was_measured_is_refused_with_its_line(
    runs: Path, overridden: Callable[[str], Path], candidate: str, why: str
) -> None:
    path = overridden(candidate)
    with pytest.raises(Refused) as refused:
        build_dossier([runs], path)
    finding = refused.value.findings[0]
    assert why in finding.message
    assert finding.line is not None
    assert path.read_text().splitlines()[finding.line - 1] == f'candidate = "{candidate}"'


def test_the_choice_file_holds_what_the_person_chose_and_what_the_rules_said(
    runs: Path, overridden: Callable[[str], Path]
) -> None:
    choice = json.loads(choose(build_dossier([runs], overridden("A"))))
    assert (choice["chosen"]["label"], choice["chosen"]["variant"]) == ("A", "fp32")
    assert choice["override"] == {
        "by": "J. Buyer", "on": "2026-01-30", "because": "the card is in stock", "instead_of": "B",
    }  # fmt: skip
    assert "B" in [other["label"] for other in choice["others"]]


def test_what_the_person_chose_is_what_the_test_documents_confirm(
    tmp_path: Path, campaign_records: Kit, campaign_text: Text, said: Say
) -> None:
    kit = campaign_records
    kit(tmp_path / "runs", test_documents=12)
    kit(
        tmp_path / "runs", test_documents=12, stage="test", reference_runs=1, start="2026-01-05T09:00:00",
        decisions=kit.confirmed(configuration_key="bf16~example-cpu-2-cores~b1~c1"),
    )  # fmt: skip
    text = campaign_text.candidate("A", "fp32", "cheap").candidate("B", "bf16", "dear")
    text.offer("dear", {3: "300.00"}).offer("cheap", {3: "100.00"}).calendar = OVERRIDE.format(candidate="B")
    dossier = build_dossier([tmp_path / "runs"], text.write())
    assert dossier.confirmation is not None
    assert dossier.confirmation.status == "confirmed"
    row = next(row for row in dossier.tables["confirmation"].rows if row.labels["is_recommended"] == "yes")
    assert row.labels["label"] == "B"
