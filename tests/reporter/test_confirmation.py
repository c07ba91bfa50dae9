"""The test stage beside validation: it confirms or refutes the choice, is counted, and never changes it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from collector.contract.errors import DossierError
from collector.contract.protocol import Gates, SubsetGate
from reporter.assemble import build_dossier
from reporter.attachments import attachments
from reporter.check import check
from reporter.choose import choose, choosing_files
from reporter.dossier import Dossier, Sentence

Kit = Any
Say = Callable[[Dossier, Sentence], str]
FP32, BF16 = "fp32~example-cpu-2-cores~b1~c1", "bf16~example-cpu-2-cores~b1~c1"
SIZES = {"documents": 24, "test_documents": 30}


def validation(kit: Kit, runs: Path, **more: Any) -> Any:
    return kit(runs, **(SIZES | more))


def look(
    kit: Kit, runs: Path, number: int = 1, *, day: int | None = None, only: tuple[str, ...] = ("bf16",), **more: Any
) -> Any:
    """A run on the test documents; by default the look after which `bf16` is confirmed."""
    detail = {"configuration_key": BF16} | more.pop("detail", {})
    settings = {
        "stage": "test", "reference_runs": 1, "only": only, "start": f"2026-01-{day or 4 + number:02d}T09:00:00",
        "decisions": kit.confirmed(number, **detail),
    }  # fmt: skip
    return kit(runs, **(SIZES | settings | more))


@pytest.fixture
def cheap(campaign_text: Any) -> Path:
    """A campaign in which bf16 is the cheapest that passes."""
    campaign_text.candidate("CPU fp32", "fp32", "dear").candidate("CPU bf16", "bf16", "cheap")
    path: Path = campaign_text.offer("dear", {3: "300.00"}).offer("cheap", {3: "100.00"}).write()
    return path


def verdict(dossier: Dossier, said: Say) -> tuple[str, str]:
    found = dossier.confirmation
    assert found is not None
    return found.status, said(dossier, found.verdict) if found.verdict is not None else ""


def test_a_choice_that_passes_on_test_documents_is_confirmed_with_both_figures(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say
) -> None:
    validation(campaign_records, tmp_path / "runs")
    look(campaign_records, tmp_path / "runs")
    dossier = build_dossier([tmp_path / "runs"], cheap)
    assert verdict(dossier, said) == (
        "confirmed",
        "Confirmed on 30 test documents that had no part in the choice: 26 accepted, 1 lost against the reference, "
        "1 allowed; every rule met.",
    )
    row = next(row for row in dossier.tables["confirmation"].rows if row.key == BF16)
    values = {name: dossier.figures[cell].value for name, cell in row.cells.items()}
    assert (values["validation_accepted_documents"], values["validation_document_count"]) == (20, 24)
    assert (values["accepted_documents"], values["document_count"]) == (26, 30)
    assert values["peak_bytes"] == values["validation_peak_bytes"] == 900_000_000
    changed = {row.labels["document_id"]: row.labels for row in dossier.tables["test_changed_documents"].rows}
    assert {name: labels["direction"] for name, labels in changed.items()} == {
        "test-010": "lost", "test-012": "gained", "test-015": "lost",
    }  # fmt: skip
    assert (changed["test-010"]["newly_wrong"], changed["test-010"]["newly_right"]) == ("category", "")
    assert (changed["test-012"]["newly_wrong"], changed["test-012"]["newly_right"]) == ("", "amount, category, date")
    of_test = [figure for name, figure in dossier.figures.items() if name.startswith("test_")]
    assert len(of_test) > 100
    assert all("test documents" in (figure.formula or "") for figure in of_test)
    notices = [said(dossier, notice) for notice in dossier.notices]
    assert "The test documents were looked at once, on 5 January 2026." in notices
    assert "limit_stage_test" not in [limit.key for limit in dossier.decision.does_not_show]
    assert "untested_test_set" not in [sentence.key for sentence in dossier.not_tested]


def test_a_choice_that_fails_on_test_documents_is_refuted_and_still_the_choice_of_validation(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say
) -> None:
    kit = campaign_records
    validation(kit, tmp_path / "runs")
    before = build_dossier([tmp_path / "runs"], cheap)
    bad = kit.variant(name="bf16", dtype="bfloat16", outcomes=dict.fromkeys((3, 7, 9, 14, 20), "wrong"))
    look(kit, tmp_path / "runs", variants=[kit.fp32, bad])
    dossier = build_dossier([tmp_path / "runs"], cheap)
    status, text = verdict(dossier, said)
    assert status == "not_confirmed"
    assert text == (
        "NOT CONFIRMED. On the 30 test documents, which had no part in the choice, CPU bf16 lost 2 against the "
        "reference, 1 allowed. Do not rent on this recommendation alone."
    )
    assert dossier.decision.recommendation == before.decision.recommendation
    first = dossier.tables["candidates"].rows[0]
    assert (first.labels["status"], said(dossier, first.sentences[0])) == (
        "recommended", "recommended by validation, not confirmed on test",
    )  # fmt: skip
    change = "New test documents in a new protocol, and a choice that they confirm."
    assert said(dossier, dossier.decision.would_change[0]) == change
    reasons = [said(dossier, reason) for reason in dossier.decision.reasons]
    assert any(reason.startswith("On validation it met every rule: 20 of 24") for reason in reasons)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"outcomes": dict.fromkeys(range(3), "wrong")},
            "NOT CONFIRMED. Of the 6 test documents in critical, which had no part in the choice, CPU bf16 had 3 "
            "accepted, 4 needed. Do not rent on this recommendation alone.",
        ),
        (
            {"missing": frozenset({29}), "outcomes": {}},
            "NOT CONFIRMED. CPU bf16 returned 29 of the 30 test documents. Do not rent on this recommendation alone.",
        ),
        (
            {"failure": "out_of_memory"},
            "NOT CONFIRMED. On the test documents CPU bf16 failed: out of memory in loading. Do not rent on this "
            "recommendation alone.",
        ),
    ],
)
def test_each_way_to_fail_names_its_rule_or_cause(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say, change: dict[str, Any], text: str
) -> None:
    kit = campaign_records
    gates = Gates(max_lost_points="50", subsets=[SubsetGate(subset="critical", min_accepted_percent="60")])
    validation(kit, tmp_path / "runs", gates=gates)
    other = kit.variant(name="bf16", dtype="bfloat16", **change)
    look(kit, tmp_path / "runs", variants=[kit.fp32, other], gates=gates)
    dossier = build_dossier([tmp_path / "runs"], cheap)
    assert verdict(dossier, said) == ("not_confirmed", text)


def test_after_a_second_look_the_test_documents_confirm_nothing_any_more(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say
) -> None:
    validation(campaign_records, tmp_path / "runs")
    for number in (1, 2):
        look(campaign_records, tmp_path / "runs", number)
    dossier = build_dossier([tmp_path / "runs"], cheap)
    assert dossier.confirmation is not None
    assert dossier.confirmation.look_count == len(dossier.tables["looks"].rows) == 2
    assert verdict(dossier, said) == (
        "looked_at_again",
        "Not an independent confirmation: the test documents were looked at 2 times, and are validation documents "
        "since the second look. CPU bf16 meets every rule on them too: 26 of 30 accepted.",
    )
    limits = [said(dossier, limit) for limit in dossier.decision.does_not_show]
    assert "How the choice does on unseen documents: the test documents were looked at 2 times." in limits


def test_a_look_whose_run_is_not_given_is_counted_all_the_same(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say
) -> None:
    validation(campaign_records, tmp_path / "runs")
    look(campaign_records, tmp_path / "runs", 3)
    dossier = build_dossier([tmp_path / "runs"], cheap)
    assert dossier.confirmation is not None
    assert (dossier.confirmation.look_count, dossier.confirmation.status) == (3, "looked_at_again")
    assert "A run records look number 3 at the test documents, but the runs given here are 1: others are missing." in [
        said(dossier, notice) for notice in dossier.notices
    ]


def test_another_configuration_than_the_recommended_one_confirms_nothing(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say
) -> None:
    validation(campaign_records, tmp_path / "runs")
    look(campaign_records, tmp_path / "runs", only=(), detail={"configuration_key": FP32})
    dossier = build_dossier([tmp_path / "runs"], cheap)
    expected = "Not confirmed: CPU fp32 was put to the test documents, not CPU bf16."
    assert verdict(dossier, said) == ("other_choice", expected)


def test_another_environment_on_test_renames_nothing_of_validation_and_confirms_nothing(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say
) -> None:
    kit = campaign_records
    validation(kit, tmp_path / "runs")
    before = build_dossier([tmp_path / "runs"], cheap)
    look(kit, tmp_path / "runs", device=kit.device(host="b"))
    dossier = build_dossier([tmp_path / "runs"], cheap)
    status, text = verdict(dossier, said)
    assert (status, "another environment" in text) == ("other_choice", True)
    assert dossier.tables["quality"] == before.tables["quality"]
    assert [row.key for row in dossier.tables["candidates"].rows] == [
        row.key for row in before.tables["candidates"].rows
    ]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (30, ("not_looked_at", "Not confirmed yet: the 30 test documents kept back for it have not been looked at.")),
        (0, ("no_test_documents", "Not confirmed: the protocol keeps back no test documents for it.")),
    ],
)
def test_without_a_look_page_one_says_that_nothing_is_confirmed(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say, sizes: int, expected: tuple[str, str]
) -> None:
    validation(campaign_records, tmp_path / "runs", test_documents=sizes)
    dossier = build_dossier([tmp_path / "runs"], cheap)
    assert verdict(dossier, said) == expected


def test_without_a_recommendation_nothing_is_confirmed(tmp_path: Path, campaign_records: Kit, said: Say) -> None:
    validation(campaign_records, tmp_path / "runs")
    look(campaign_records, tmp_path / "runs")
    dossier = build_dossier([tmp_path / "runs"], None)
    status, text = verdict(dossier, said)
    assert (status, text) == (
        "nothing_recommended",
        "Nothing is recommended, so the test documents confirm nothing; of bf16 · 1 they show 26 of 30 accepted.",
    )


def test_a_look_that_is_not_finished_confirms_nothing_yet(
    tmp_path: Path, campaign_records: Kit, cheap: Path, said: Say
) -> None:
    validation(campaign_records, tmp_path / "runs")
    look(campaign_records, tmp_path / "runs", only=(), is_sealed=False)
    dossier = build_dossier([tmp_path / "runs"], cheap)
    expected = "Not confirmed yet: the run on the test documents is not finished."
    assert verdict(dossier, said) == ("not_finished", expected)


def test_test_runs_change_no_figure_of_validation_and_no_byte_of_the_choice(
    tmp_path: Path, campaign_records: Kit, cheap: Path
) -> None:
    kit = campaign_records
    validation(kit, tmp_path / "runs")
    alone = build_dossier([tmp_path / "runs"], cheap)
    written = choose(build_dossier(choosing_files([tmp_path / "runs"]), cheap))
    bad = kit.variant(name="bf16", dtype="bfloat16", outcomes=dict.fromkeys(range(20), "wrong"))
    look(kit, tmp_path / "runs", variants=[kit.fp32, bad])
    both = build_dossier([tmp_path / "runs"], cheap)
    tables = ("quality", "paired", "noise", "durations", "memory", "workload", "gates", "calendar", "packages")
    for name in tables:
        assert both.tables[name] == alone.tables[name], name
        for row in alone.tables[name].rows:
            assert [both.figures[i] for i in row.cells.values()] == [alone.figures[i] for i in row.cells.values()]
    assert choose(build_dossier(choosing_files([tmp_path / "runs"]), cheap)) == written


def test_no_choice_is_made_from_test_runs_alone(tmp_path: Path, campaign_records: Kit) -> None:
    look(campaign_records, tmp_path / "runs")
    with pytest.raises(DossierError, match="cannot make it"):
        choosing_files([tmp_path / "runs"])
    dossier = build_dossier([tmp_path / "runs"], None)
    assert (dossier.confirmation, dossier.stages) == (None, ["test"])
    assert [row.labels["look"] for row in dossier.tables["looks"].rows] == ["1"]


def test_a_choice_made_from_other_records_or_given_as_another_file_is_noticed(
    tmp_path: Path, campaign_records: Kit, cheap: Path
) -> None:
    validation(campaign_records, tmp_path / "runs")
    choice = tmp_path / "choice.json"
    choice.write_bytes(choose(build_dossier(choosing_files([tmp_path / "runs"]), cheap)))
    records = json.loads(choice.read_bytes())["records_digest"]
    look(campaign_records, tmp_path / "runs", detail={"records_digest": records})
    told = {notice.key for notice in build_dossier([tmp_path / "runs"], cheap).notices}
    assert not told & {"notice_choice_records", "notice_choice_file", "notice_validation_after_look"}
    validation(campaign_records, tmp_path / "runs", start="2026-01-09T09:00:00", seed=2)
    told = {notice.key for notice in build_dossier([tmp_path / "runs"], cheap, choice=choice).notices}
    assert told >= {"notice_choice_records", "notice_choice_file", "notice_validation_after_look"}
    attached = attachments([tmp_path / "runs"], cheap, tmp_path, choice=choice)
    assert attached[-2:] == [cheap, choice]
    with pytest.raises(DossierError, match="leave the option out"):
        build_dossier([tmp_path / "runs"], cheap, choice=tmp_path / "absent.json")


def test_a_test_run_without_its_decisions_is_a_finding_and_a_repeated_look_is_a_note(
    tmp_path: Path, campaign_records: Kit, cheap: Path
) -> None:
    runs = tmp_path / "runs"
    validation(campaign_records, runs)
    look(campaign_records, runs, 1)
    assert (check([runs]).findings, check([runs]).flags) == ([], [])
    look(campaign_records, runs, 1, day=6)
    report = check([runs])
    assert report.findings == []
    assert "look-repeated" in [flag.rule for flag in report.flags]
    bare = look(campaign_records, runs, day=7, decisions=())
    report = check([runs])
    assert [(found.rule, found.file, found.line) for found in report.findings] == [("look-unrecorded", bare.path, 1)]
    told = {notice.key for notice in build_dossier([runs], cheap).notices}
    assert {"notice_look_repeated", "notice_look_unrecorded"} <= told


class Plain:
    """The test stage's last complete pass of each variant, from the JSON lines alone."""

    def __init__(self, runs: Path) -> None:
        lines = [json.loads(line) for path in sorted(runs.glob("*.jsonl")) for line in path.read_text().splitlines()]
        self.of = {kind: [line for line in lines if line["kind"] == kind] for kind in {line["kind"] for line in lines}}
        self.documents = {d["document_id"]: d for d in self.of["document"] if d["role"] == "test"}
        ended = {e["pass_id"]: e for e in self.of["pass_end"] if e["pass_outcome"] == "completed"}
        passes = [p for p in self.of["pass_begin"] if p["stage"] == "test" and p["pass_id"] in ended]
        self.passes = {p["variant_name"]: p for p in sorted(passes, key=lambda p: p["attempt"])}
        self.measure_ns = {name: ended[p["pass_id"]]["phase_ns"]["measure"] for name, p in self.passes.items()}
        self.gates = json.loads(self.of["header"][0]["protocol_json"])["trial"]["gates"]

    def accepted(self, name: str, subset: str | None = None) -> set[str]:
        scores = [s for s in self.of["score"] if s["pass_id"] == self.passes[name]["pass_id"] and s["is_accepted"]]
        return {
            s["document_id"] for s in scores if subset is None or subset in self.documents[s["document_id"]]["subsets"]
        }


def test_a_second_computation_in_plain_python_finds_the_same_figures_of_the_test_stage(
    tmp_path: Path, campaign_records: Kit, cheap: Path
) -> None:
    kit = campaign_records
    hard = kit.variant(
        name="bf16", dtype="bfloat16", outcomes={0: "wrong", 8: "empty", 13: "unparseable"}, killed_attempts=1,
        missing=frozenset({22}),
    )  # fmt: skip
    validation(kit, tmp_path / "runs")
    look(kit, tmp_path / "runs", variants=[kit.fp32, hard])
    plain, dossier = Plain(tmp_path / "runs"), build_dossier([tmp_path / "runs"], cheap)
    before, now, count = plain.accepted("fp32"), plain.accepted("bf16"), len(plain.documents)
    critical = sum("critical" in document["subsets"] for document in plain.documents.values())
    lost = f"test_gates/{BF16}~max_lost_points"
    subset = f"test_gates/{BF16}~subset_min_accepted_percent~critical"
    expected = {
        f"test_quality/{FP32}/accepted_documents": len(before), f"test_quality/{BF16}/accepted_documents": len(now),
        f"test_quality/{BF16}/document_count": count, f"test_quality/{BF16}/returned_documents": count - 1,
        f"test_paired/{BF16}/lost_documents": len(before - now),
        f"test_paired/{BF16}/gained_documents": len(now - before),
        f"test_paired/{BF16}/difference_points": 100 * (len(now) - len(before)) / count,
        f"{lost}/counted": len(before) - len(now),
        f"{lost}/limit": math.floor(Fraction(plain.gates["max_lost_points"]) * count / 100),
        f"{subset}/counted": len(plain.accepted("bf16", "critical")), f"{subset}/document_count": critical,
        f"{subset}/limit": math.ceil(Fraction(plain.gates["subset"][0]["min_accepted_percent"]) * critical / 100),
        f"test_quality_by_group/{BF16}~subset~critical/accepted_documents": len(plain.accepted("bf16", "critical")),
        f"test_durations/{BF16}~r1/measure_ns": plain.measure_ns["bf16"],
        f"confirmation/{BF16}/test_document_s": plain.measure_ns["bf16"] / count / 1e9,
        "roles/test/document_count": count, "confirmation/all/looks": 1,
    }  # fmt: skip
    assert {name: dossier.figures[name].value for name in expected} == pytest.approx(expected)
