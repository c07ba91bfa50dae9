"""The assembled dossier is data: complete, repeatable, each number traceable, each limit read off the records."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.contract.campaign import Objective, objective_digest
from collector.contract.errors import DossierError, Refused
from reporter.assemble import build_dossier
from reporter.choose import choose
from reporter.dossier import BASES, Dossier, Sentence, dossier_json

Kit = Any
Say = Callable[[Dossier, Sentence], str]


def keys(sentences: list[Sentence]) -> list[str]:
    return [sentence.key for sentence in sentences]


def rewritten(kit: Kit, path: Path, edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    lines = kit.rechain(path.read_bytes().splitlines(), lambda _, line: edit(line))
    path.write_bytes(b"".join(line + b"\n" for line in lines))


@pytest.fixture
def priced(campaign_text: Any) -> Any:
    """Both variants of the plain campaign on one machine, the reference under an example price."""
    campaign_text.candidate("CPU fp32", "fp32", "dear").candidate("CPU bf16", "bf16", "cheap")
    campaign_text.offer("dear", {3: "300.00"}, basis="example").offer("cheap", {3: "100.00", 7: "150.00"})
    campaign_text.calendar = '[calendar]\npreparation = { hours = "2.5", basis = "assumed", by = "A. N." }\n'
    return campaign_text


def test_without_a_campaign_the_dossier_says_so_and_its_required_texts_have_defaults(decide: Any, said: Say) -> None:
    dossier = decide("plain", None)
    assert (dossier.question, dossier.issued, dossier.as_of) == ("Invoices", "2026-01-02", "2026-01-02")
    assert dossier.dossier_id == f"records-{dossier.records_digest[:12]}"
    assert "packages" not in dossier.tables
    assert "limit_no_prices" in keys(dossier.decision.does_not_show)
    assert "subtitle_no_prices" in keys(dossier.subtitle)
    assert said(dossier, dossier.decision.would_change[0]).startswith("A campaign file with an objective")
    assert (dossier.objective_declared_before, dossier.has_example_prices) == (None, False)


def test_order_of_files_and_arguments_changes_no_byte(tmp_path: Path, campaign_records: Kit, priced: Any) -> None:
    kit = campaign_records
    first, second = tmp_path / "z", tmp_path / "a"
    kit(first)
    device = kit.device(name="Example GPU", kind="cuda", host="b")
    kit(second, device=device, variants=[kit.fp32, kit.bf16], start="2026-01-03T09:00:00")
    campaign = priced.write()
    made = {dossier_json(build_dossier(paths, campaign)) for paths in ([first, second], [second, first, second])}
    assert len(made) == 1


def test_every_id_in_tables_and_sentences_is_a_figure_and_every_null_has_a_reason(decide: Any, priced: Any) -> None:
    dossier = decide("plain", priced.write(corpora=100))
    rows = [row for table in dossier.tables.values() for row in table.rows]
    decision = dossier.decision
    sentences = [
        *dossier.subtitle, *dossier.notices, *dossier.gates, *dossier.not_tested, decision.recommendation,
        *decision.reasons, *decision.would_change, *decision.does_not_show, *decision.headline_captions,
        decision.chart_finding, *(sentence for row in rows for sentence in row.sentences),
    ]  # fmt: skip
    cited = [parameter[1:] for s in sentences for parameter in s.parameters.values() if parameter.startswith("#")]
    cited += [name for row in rows for name in row.cells.values()]
    cited += decision.headline
    assert set(cited) <= set(dossier.figures)
    assert len(decision.headline) == len(decision.headline_captions) == 4
    for name, figure in dossier.figures.items():
        assert figure.figure_id == name
        assert (figure.value is None) == (figure.missing_reason is not None), name
        assert (figure.currency is not None) == (figure.unit in ("minor_units", "amount")), name
        assert not figure.is_derived or figure.formula, name


def test_a_derived_price_has_the_weakest_basis_of_offer_time_and_calendar(decide: Any, priced: Any) -> None:
    dossier = decide("plain", priced.write())
    basis = {name: figure.basis for name, figure in dossier.figures.items()}
    fp32, bf16 = "fp32~example-cpu-2-cores~b1~c1", "bf16~example-cpu-2-cores~b1~c1"
    assert basis["offers/cheap/price_3_days"] == "quoted"
    assert basis[f"calendar/{bf16}~processing/hours"] == "measured"
    assert basis[f"packages/{bf16}~cheap~3d/price_net"] == "assumed"
    assert basis[f"packages/{fp32}~dear~3d/price_net"] == "example"
    assert basis[f"packages/{bf16}~cheap~3d/unit_net"] == "quoted"
    assert dossier.has_example_prices
    priced.calendar = ""
    measured = decide("plain", priced.write())
    assert measured.figures[f"packages/{bf16}~cheap~3d/price_net"].basis == "quoted"
    assert all(BASES.index(figure.basis) >= 0 for figure in measured.figures.values())


def test_a_price_names_the_records_that_its_hours_were_measured_in(
    tmp_path: Path, campaign_records: Kit, priced: Any
) -> None:
    written = campaign_records(tmp_path / "runs")
    dossier = build_dossier([written.runs], priced.write())
    figure = dossier.figures["packages/bf16~example-cpu-2-cores~b1~c1~cheap~3d/price_net"]
    assert figure.file_digests == [written.head_digest]
    assert figure.sources
    assert all(source.startswith(written.run_id + ":") for source in figure.sources)


def test_the_calendar_keeps_what_is_not_foreseen_apart_from_zero(decide: Any, priced: Any, said: Say) -> None:
    dossier = decide("plain", priced.write())
    rows = {
        row.labels["phase"]: row for row in dossier.tables["calendar"].rows if row.labels["candidate"] == "CPU bf16"
    }
    assert dossier.figures[rows["preparation"].cells["hours"]].value == 2.5
    assert rows["preparation"].labels["by"] == "A. N."
    assert dossier.figures[rows["export"].cells["hours"]].value is None
    assert said(dossier, rows["export"].sentences[0]) == "not foreseen"


@pytest.mark.parametrize("has_declared", [True, False])
def test_whether_the_objective_was_declared_before_the_first_run_is_printed(
    tmp_path: Path, campaign_records: Kit, priced: Any, has_declared: bool
) -> None:
    written = campaign_records(tmp_path / "runs")
    digest = objective_digest(Objective(prefer="cheapest", tie_percent="0" if has_declared else "3"))

    def declare(line: dict[str, Any]) -> dict[str, Any]:
        return line | {"objective_digest": digest} if line["kind"] == "header" else line

    rewritten(campaign_records, written.path, declare)
    dossier = build_dossier([written.runs], priced.write())
    assert dossier.objective_declared_before is has_declared
    expected = "notice_objective_before" if has_declared else "notice_objective_after"
    assert expected in keys(dossier.notices)


def test_open_torn_changed_and_unreadable_records_are_named(tmp_path: Path, campaign_records: Kit, said: Say) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)
    lines = written.path.read_bytes().splitlines(keepends=True)
    lines[40] = b'{"kind":"warning"}\n'
    written.path.write_bytes(b"".join(lines) + b'{"kind":"sc')
    dossier = build_dossier([written.runs], None)
    notices = [said(dossier, notice) for notice in dossier.notices]
    name = written.path.name
    assert f"{name} is open: its run was not finished, and its tail is unprotected." in notices
    assert f"The last line of {name} is torn; it was left out." in notices
    assert any(text.startswith(f"1 line of {name} was set aside, first line 41:") for text in notices)
    assert any(text.startswith(f"The hash chain of {name} is broken at line") for text in notices)


def test_changed_records_recommend_nothing_and_choose_nothing(
    tmp_path: Path, campaign_records: Kit, priced: Any, said: Say
) -> None:
    written = campaign_records(tmp_path / "runs")
    campaign = priced.write()
    assert build_dossier([written.runs], campaign).decision.has_winner
    changed = written.path.read_bytes().replace(b'"score_outcome":"wrong"', b'"score_outcome":"right"', 1)
    assert changed != written.path.read_bytes()
    written.path.write_bytes(changed)
    dossier = build_dossier([written.runs], campaign)
    assert not dossier.decision.has_winner
    assert said(dossier, dossier.decision.recommendation) == (
        "None is recommended: 1 record file was changed or damaged after it was written."
    )
    statuses = {row.labels["status"] for row in dossier.tables["candidates"].rows}
    assert not statuses & {"recommended", "equivalent"}
    assert keys(dossier.decision.would_change) == ["change_records"]
    choice = json.loads(choose(dossier))
    assert (choice["chosen"], choice["reason"]["key"]) == (None, "recommend_none_records_changed")


def test_page_one_begins_with_an_open_run_and_a_busy_machine(
    tmp_path: Path, campaign_records: Kit, priced: Any, said: Say
) -> None:
    written = campaign_records(tmp_path / "runs", is_sealed=False)

    def busy(line: dict[str, Any]) -> dict[str, Any]:
        return line | {"warning_class": "machine_busy"} if line["kind"] == "warning" else line

    rewritten(campaign_records, written.path, busy)
    dossier = build_dossier([written.runs], priced.write())
    assert dossier.decision.has_winner
    slow = "The machine was busy while measuring: times and calendar may be too long."
    assert [said(dossier, reason) for reason in dossier.decision.reasons[:2]] == [
        "The run is not finished: its records are open and can still change.", slow,
    ]  # fmt: skip
    assert slow in [said(dossier, notice) for notice in dossier.notices]
    assert "notice_open_file" in keys(dossier.notices)


def test_origin_noise_and_unreadable_answers_are_noticed(tmp_path: Path, campaign_records: Kit, said: Say) -> None:
    kit = campaign_records
    variants = [kit.fp32, kit.variant(name="bf16", outcomes={1: "unparseable", 2: "unparseable"})]
    dossier = build_dossier([kit(tmp_path / "runs", variants=variants).runs], None)
    notices = [said(dossier, notice) for notice in dossier.notices]
    assert "Origin of fp32, bf16: stored as 4-bit Q4_1 and dequantized." in notices
    assert "bf16 · 1: 2 of 24 answers could not be read as the format asked." in notices
    assert (
        "The reference, run twice on 24 documents, changed its verdict on 1 of them: differences of that size show "
        "nothing."
    ) in notices


def test_a_notice_calls_a_configuration_by_its_candidates_name(
    tmp_path: Path, campaign_records: Kit, priced: Any, said: Say
) -> None:
    written = campaign_records(tmp_path / "runs")

    def unsteady(line: dict[str, Any]) -> dict[str, Any]:
        return line | {"is_steady": False} if line["kind"] == "pass_end" else line

    rewritten(campaign_records, written.path, unsteady)
    dossier = build_dossier([written.runs], priced.write())
    told = [said(dossier, notice) for notice in dossier.notices if notice.key == "notice_unsteady"]
    assert told == [f"{name}: speed had not settled while measuring." for name in ("CPU bf16", "CPU fp32")]


def test_others_on_the_machine_while_a_configuration_was_measured_are_told_with_its_name(
    tmp_path: Path, campaign_records: Kit, priced: Any, said: Say
) -> None:
    """A tenth of the processors is told, less is not; what is recommended then carries it on page one."""
    written = campaign_records(tmp_path / "runs")
    names: dict[str, str] = {}

    def disturbed(line: dict[str, Any]) -> dict[str, Any]:
        if line["kind"] == "pass_begin":
            names[line["pass_id"]] = line["variant_name"]
        if (line["kind"], line.get("phase"), line.get("statistic")) != ("reading", "measure", "start"):
            return line
        share = 0.3 if names[line["pass_id"]] == "bf16" else 0.02
        kept = {key: line[key] for key in ("run_id", "seq", "prev", "written_at", "pass_id", "phase", "device_id")}
        return {"kind": "telemetry", **kept, "missing": {}, "window_ns": 10**9, "host_cpu_share": share}

    rewritten(campaign_records, written.path, disturbed)
    dossier = build_dossier([written.runs], priced.write())
    told = [said(dossier, notice) for notice in dossier.notices if notice.key == "notice_disturbed"]
    assert told == ["CPU bf16: others used the machine while it was measured; its times may be too long."]


def test_each_machine_has_its_own_notice_of_noise(tmp_path: Path, campaign_records: Kit, said: Say) -> None:
    for name, start in (("GPU A", "2026-01-02T09:00:00"), ("GPU B", "2026-01-03T09:00:00")):
        device = campaign_records.device(name=name, kind="cuda", host=name[-1])
        campaign_records(tmp_path / "runs", device=device, start=start)
    dossier = build_dossier([tmp_path / "runs"], None)
    told = [said(dossier, notice) for notice in dossier.notices if notice.key.startswith("notice_noise")]
    assert [line.partition(", run twice")[0] for line in told] == ["GPU A · fp32 · 1", "GPU B · fp32 · 1"]


def test_failures_and_broken_attempts_stay_in_the_dossier(tmp_path: Path, campaign_records: Kit, said: Say) -> None:
    kit = campaign_records
    variants = [kit.fp32, kit.variant(name="bf16", killed_attempts=1), kit.variant(name="int8", failure="timeout")]
    dossier = build_dossier([kit(tmp_path / "runs", variants=variants).runs], None)
    notices = [said(dossier, notice) for notice in dossier.notices]
    assert "2 failures were recorded and are listed." in notices
    assert "2 pass attempts did not end and do not count." in notices
    assert [row.labels["status"] for row in dossier.tables["candidates"].rows] == ["feasible", "reference", "failed"]


def test_limits_are_read_off_the_records(tmp_path: Path, campaign_records: Kit, said: Say) -> None:
    kit = campaign_records
    runs = kit(tmp_path / "runs", reference_runs=1, variants=[kit.fp32, kit.variant(name="bf16", batch=8)]).runs
    dossier = build_dossier([runs], None)
    limits = [said(dossier, sentence) for sentence in dossier.decision.does_not_show]
    assert "Prompts longer than 265 tokens, the longest tested." in limits
    assert "Other languages than en, vi." in limits
    assert "Batches above 8 and concurrency above 1." in limits
    assert "Other devices than Example CPU 2 cores, other hosts, other drivers." in limits
    assert "How stable the reference is: it was not run twice." in limits
    assert "How much a repetition varies: variants were measured 1 time." in limits
    assert "limit_stage_test" in keys(dossier.decision.does_not_show)
    assert {"untested_gpu", "untested_reload", "untested_probes", "untested_test_set"} <= set(keys(dossier.not_tested))


def test_the_repeat_of_the_reference_does_not_count_as_a_repetition_of_a_variant(decide: Any, said: Say) -> None:
    dossier = decide("plain", None)
    limits = [said(dossier, sentence) for sentence in dossier.decision.does_not_show]
    assert "limit_no_repeat" not in keys(dossier.decision.does_not_show)
    assert "How much a repetition varies: variants were measured 1 time." in limits


@pytest.mark.parametrize(
    ("prices_are", "formulas"),
    [
        (
            "net",
            {
                "price_net": "1 x price of one package",
                "tax": "price_net x 19 / 100, rounded once, half away from zero",
                "price_gross": "price_net + tax",
                "unit_net": "price of one package",
            },
        ),
        (
            "gross",
            {
                "price_net": "price_gross - tax",
                "tax": "price_gross x 19 / (100 + 19), rounded once, half away from zero",
                "price_gross": "1 x price of one package",
                "unit_net": "price of one package - its tax (price x 19 / (100 + 19), rounded half away from zero)",
            },
        ),
    ],
)
def test_formulas_of_a_package_are_the_steps_that_were_computed(
    decide: Any, campaign_text: Any, prices_are: str, formulas: dict[str, str]
) -> None:
    campaign_text.candidate("a", "bf16", "o").offer("o", {3: "100.00"}, more=f'prices_are = "{prices_are}"\n')
    dossier = decide("plain", campaign_text.write())
    row = next(row for row in dossier.tables["packages"].rows)
    stem = row.cells["price_net"].removesuffix("price_net")
    assert {column: dossier.figures[stem + column].formula for column in formulas} == formulas


def test_rules_are_said_in_words_and_in_whole_documents(decide: Any, said: Say) -> None:
    dossier = decide("plain", None)
    assert [said(dossier, sentence) for sentence in dossier.gates] == [
        "A document is accepted only when all required fields are right: date, amount, category.",
        "At most 5 percentage points lost against the reference fp32: 1 of 24 documents.",
        "At least 60 percent accepted in critical: 4 of 6.",
        "The rules are judged in whole documents, on the first repetition. Intervals stand beside them as a caveat and "
        "do not decide.",
    ]


def test_the_campaigns_names_for_configurations_are_used_in_every_table(decide: Any, priced: Any) -> None:
    dossier = decide("plain", priced.write())
    for name in ("quality", "paired", "gates", "candidates", "memory", "durations"):
        labels = {row.labels["label"] for row in dossier.tables[name].rows}
        assert labels <= {"CPU fp32", "CPU bf16"}, name


def test_another_day_of_judgement_changes_validity_and_nothing_measured(decide: Any, priced: Any) -> None:
    today, later = (decide("plain", priced.write(), as_of=day) for day in (None, dt.date(2026, 3, 1)))
    assert (today.decision.has_winner, later.decision.has_winner) == (True, False)
    assert later.as_of == "2026-03-01"
    assert "subtitle_prices_expired" in keys(later.subtitle)
    assert today.tables["quality"] == later.tables["quality"]


def test_runs_of_two_protocols_are_refused(tmp_path: Path, campaign_records: Kit) -> None:
    campaign_records(tmp_path / "runs")
    campaign_records(tmp_path / "runs", protocol_name="Letters", start="2026-01-03T09:00:00")
    with pytest.raises(Refused, match="never pooled"):
        build_dossier([tmp_path / "runs"], None)


def test_no_run_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DossierError, match="no run file"):
        build_dossier([tmp_path], None)


def test_the_json_of_a_dossier_reads_back_as_the_dossier(decide: Any, priced: Any) -> None:
    dossier = decide("plain", priced.write())
    assert msgspec.json.decode(dossier_json(dossier), type=Dossier) == dossier
