"""A pilot of development documents says what the plan will take, before money is spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from campaign_files import HEAD, TEST_CPU, offer
from click.testing import CliRunner

from collector.cli import main
from collector.clock import FakeClock
from collector.contract.campaign_file import read_campaign
from collector.contract.errors import DossierError
from collector.contract.records import Device, Header, PassBegin, PassEnd, Record, Request
from collector.estimate import Cost, Measured, Span, _cost, measured_in
from collector.machine import ThisMachine
from collector.pilot import PlanReport, pilot_options, plan_report, planned
from collector.plan import Chosen
from collector.plan_text import plan_lines, plan_values
from collector.workers import InProcessWorkerFactory

MS = 1_000_000
SLOW = {"first_token_ms": 24}
SCRIPT = {
    "load_ms": 20, "defaults": {"first_token_ms": 4, "gap_ms": 1, "output_tokens": 4}, "documents": {"dev1": SLOW},
}  # fmt: skip
BROKEN = {"match": "bf16/*", "events": [{"at": "load", "do": "raise"}]}
HERE = [Device(environment_id="e" * 16, device_id="cpu", device_kind="cpu", device_name=TEST_CPU)]
CALENDAR = '[calendar]\npreparation = { hours = "4", basis = "assumed", by = "me" }\n'
THREE = 'price_3_days = "72.00"\n'


@pytest.fixture
def pilot(fixed_meter: Any, fixed_machine: Any) -> Callable[..., Measured]:
    """Run a pilot by a fake clock and return what it measured."""

    def run(trial: Any, documents: int = 5) -> Measured:
        clock = FakeClock()
        factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
        options = pilot_options(trial.frozen.lock, documents, "cpu", None)
        report = trial.run(options, clock=clock, factory=factory, machine=fixed_machine)
        assert report.head_digest is not None, "a pilot is a whole run, and sealed"
        return measured_in([report.path], trial.frozen.lock.plan_id)

    return run


def report_of(trial: Any, measured: Measured, campaign: Path | None = None, wanted: int = 5) -> PlanReport:
    known = read_campaign(campaign).campaign if campaign else None
    return plan_report(
        trial.frozen.lock, measured, wanted=wanted, campaign=known, devices=HERE, folder=trial.folder
    )  # fmt: skip


def test_a_pilot_measures_the_first_development_documents_with_each_variant_the_reference_first(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured], records_of: Callable[[Path], list[Record]]
) -> None:
    """Whatever the plan repeats, each variant runs once, in one order, and nothing is loaded again."""
    trial = make_trial(SCRIPT, development=7, edit=lambda text: text + "repetitions = 3\nbatches = [2]\n")
    pilot(trial, 5)
    (path,) = [path for path in trial.out.glob("*.jsonl") if ".texts" not in path.name]
    records = records_of(path)
    assert isinstance(records[0], Header)
    assert records[0].stage == "pilot"
    begun = [record for record in records if isinstance(record, PassBegin)]
    assert [(one.variant_name, one.repetition, one.batch, len(one.document_order)) for one in begun] == [
        ("fp32", 1, 1, 5), ("bf16", 1, 1, 5),
    ]  # fmt: skip
    assert begun[0].document_order == begun[1].document_order
    assert all(name.startswith("dev") for name in begun[0].document_order)
    phases = {record.phase for record in records if isinstance(record, Request)}
    assert phases == {"warmup", "measure"}


def test_hours_are_start_and_load_once_and_the_documents_in_proportion(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured]
) -> None:
    """Load 20 ms, a warm-up request 7 ms; of the four measured documents three take 7 ms and one takes 27 ms."""
    trial = make_trial(SCRIPT, documents=100, development=4)
    measured = pilot(trial, 4)
    assert measured.costs[Chosen("fp32")].once_ns == 27 * MS
    assert measured.costs[Chosen("fp32")].per_document == Span(Fraction(7 * MS), Fraction(12 * MS), Fraction(27 * MS))
    report = report_of(trial, measured, wanted=4)
    one_pass = Span(*(Fraction(27 * MS + 100 * ms * MS) for ms in (7, 12, 27)))
    assert [(one.span, one.basis, one.requests) for one in report.passes] == [(one_pass, "measured", 101)] * 3
    reload = Span(*(Fraction(20 * MS + 8 * ms * MS) for ms in (7, 12, 27)))
    assert report.reloads == {"fp32": reload, "bf16": reload}
    assert report.whole == one_pass.times(3).plus(reload.times(2))
    assert (report.documents, report.failed) == (4, [])


def test_tries_made_again_are_no_further_documents() -> None:
    end = PassEnd(
        pass_id="p", pass_outcome="completed", distinct_document_count=4, try_count=12, completed_request_count=4,
        failed_request_count=0, output_token_count=4, phase_ns={"load": 5 * MS, "measure": 40 * MS}, pass_ns=60 * MS,
        warmup_request_count=0,
    )  # fmt: skip
    request = Request(
        pass_id="p", phase="measure", document_id="d", try_index=2, is_final=True, intended_ns=0,
        sent_ns=0, done_ns=10 * MS, token_count_source="none", finish_reason="length", request_outcome="completed",
    )  # fmt: skip
    cost = _cost(end, [request], None, together=1)
    assert cost.documents == 4
    assert cost.per_document == Span(*[Fraction(10 * MS)] * 3)


def test_what_the_pilot_expects_is_what_a_run_then_takes(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured], fixed_meter: Any, fixed_machine: Any
) -> None:
    """Where all documents take as long as the pilot's, the estimate is exact, batches aside."""
    trial = make_trial({**SCRIPT, "documents": {}}, documents=30, development=3)
    whole = report_of(trial, pilot(trial, 3)).whole
    clock = FakeClock()
    factory = InProcessWorkerFactory(clock=clock, meter=fixed_meter)
    trial.run(clock=clock, factory=factory, machine=fixed_machine, out=trial.folder / "real")
    assert whole is not None
    assert whole.low_ns == whole.expected_ns == whole.high_ns == clock.monotonic_ns()


def test_batches_are_counted_as_one_request_at_a_time_and_that_is_said(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured]
) -> None:
    trial = make_trial(SCRIPT, documents=10, development=4, edit=lambda text: text + "batches = [4]\n")
    report = report_of(trial, pilot(trial, 4))
    batch = report.passes[-1]
    more = 3 + 2 * 8  # a whole batch warms up, and eight documents are checked alone and together
    assert batch.span == Span(*(Fraction(27 * MS + (10 + more) * ms * MS) for ms in (7, 12, 27)))
    assert (batch.basis, batch.requests) == ("one_at_a_time", 10 + 4 + 2 * 8)
    lines = list(plan_lines(report))
    assert any("a batch takes as long per document as one request at a time: assumed" in line for line in lines)
    assert any("grows in proportion to the number of documents: assumed" in line for line in lines)


def test_fewer_development_documents_than_wanted_are_said_and_none_at_all_is_refused(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured]
) -> None:
    few = make_trial(SCRIPT, development=2)
    report = report_of(few, pilot(few, 5))
    assert report.documents == 2
    assert "measured: 2 documents per variant, of 5 wanted: there are no more" in list(plan_lines(report))
    none = make_trial(SCRIPT, development=0, name="none")
    with pytest.raises(DossierError, match="no documents with role development") as refused:
        pilot_options(none.frozen.lock, 5, "cpu", None)
    assert "freeze again" in refused.value.next_step


def test_a_variant_that_cannot_be_loaded_is_told_with_its_cause_and_costs_the_time_until_it_fails(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured]
) -> None:
    trial = make_trial({**SCRIPT, "passes": [BROKEN]}, development=4)
    report = report_of(trial, pilot(trial, 4))
    assert [(f.variant, f.cause, f.phase) for f in report.failed] == [("bf16", "load_failure", "load")]
    assert (report.passes[-1].basis, report.passes[-1].requests) == ("failed", 0)
    assert report.passes[-1].span == Span(*[Fraction(0)] * 3)
    assert list(report.reloads) == ["fp32"]
    assert report.whole is not None
    assert any(line.startswith("bf16: failed (load_failure in load)") for line in plan_lines(report))


def test_of_a_variant_that_answered_nothing_no_time_is_known(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured]
) -> None:
    """Refusals are quick, and say nothing about how long an answer takes."""
    refusing = {"match": "bf16/*", "defaults": {"failure_cause": "protocol", "failure_message": "HTTP 404: gone"}}
    trial = make_trial({**SCRIPT, "passes": [refusing]}, development=4)
    report = report_of(trial, pilot(trial, 4))
    assert (report.passes[-1].span, report.passes[-1].basis, report.whole) == (None, "unknown", None)
    assert "hours: not known, nothing was measured of bf16" in list(plan_lines(report))


def test_nothing_measured_is_no_hour_and_no_price(make_trial: Callable[..., Any], tmp_path: Path) -> None:
    trial = make_trial(SCRIPT, documents=3)
    source = tmp_path / "campaign.toml"
    source.write_text(HEAD.format(deadline=100) + CALENDAR + offer("o1"))
    report = report_of(trial, Measured({}, 0, 0, 0), source, wanted=0)
    assert (report.whole, report.disk, report.deadline) == (None, None, None)
    assert [one.basis for one in report.passes] == ["unknown"] * 3
    lines = list(plan_lines(report))
    assert lines[1] == "  1  fp32, reference: 3 documents"
    assert lines[-1] == "hours: not measured; `--pilot 5` measures five development documents per variant"
    assert plan_values(report)["hours"] is None


def test_whole_packages_of_each_fitting_offer_are_priced_for_the_expected_time_and_for_the_slow_end(
    make_trial: Callable[..., Any], tmp_path: Path
) -> None:
    """72 hours are exactly one package; the slow end of 73 hours needs two. By the hour it is what it takes."""
    trial = make_trial(SCRIPT, documents=1, edit=lambda text: text + "reload_check = false\n")
    hour = 3_600_000_000_000
    cost = measured_cost(per_document=Span(*(Fraction(h * hour, 3) for h in (71, 72, 73))))
    source = tmp_path / "campaign.toml"
    offers = [
        offer("whole", prices=THREE + 'price_hour = "2.00"\n'), offer("other", device="Another CPU"),
        offer("over", until="2026-02-28", basis="example"),
    ]  # fmt: skip
    source.write_text(HEAD.format(deadline=77) + CALENDAR + "".join(offers))
    report = report_of(trial, Measured({Chosen("fp32"): cost, Chosen("bf16"): cost}, 9, 900, 1800), source)
    assert report.whole == Span(*(Fraction(h * hour) for h in (71, 72, 73)))
    whole, other, over = report.offers
    package = next(one for one in whole.priced if one.tariff.days == 3)
    assert (package.expected.bought, package.expected.price.gross.decimal()) == (1, "86.40")
    assert (package.high.bought, package.high.price.net.decimal()) == (2, "144.00")
    by_hour = next(one for one in whole.priced if one.tariff.days is None)
    assert by_hour.expected.price.net.decimal() == "144.00"
    assert other.priced == []
    lines = list(plan_lines(report))
    assert (
        "offer whole: 1 x 3 days, 72.00 EUR net, 86.40 with tax (slow end: 2 x 3 days, 144.00 EUR net, 172.80 with tax)"
    ) in lines
    assert "offer other: not for this machine: its device is Another CPU, here is Test CPU (1 core)" in lines
    assert not over.is_valid
    assert any("does not hold on the campaign's date; an example price" in line for line in lines)
    assert report.deadline is not None
    assert (report.deadline.calendar_h, report.deadline.verdict) == (4, "fits"), "73 h and 4 h are 77 h"


def measured_cost(*, per_document: Span) -> Cost:
    return Cost(0, 0, 5, per_document)


@pytest.mark.parametrize(("deadline", "verdict"), [("77", "fits"), ("76.9", "uncertain"), ("74.9", "too long")])
def test_the_deadline_is_held_against_the_whole_range_and_the_rest_of_the_calendar(
    make_trial: Callable[..., Any], tmp_path: Path, deadline: str, verdict: str
) -> None:
    trial = make_trial(SCRIPT, documents=1, edit=lambda text: text + "reload_check = false\n")
    hour = 3_600_000_000_000
    cost = measured_cost(per_document=Span(*(Fraction(h * hour, 3) for h in (71, 72, 73))))
    source = tmp_path / "campaign.toml"
    source.write_text(HEAD.format(deadline=deadline) + CALENDAR)
    report = report_of(trial, Measured({Chosen("fp32"): cost, Chosen("bf16"): cost}, 9, 900, 1800), source)
    assert report.deadline is not None
    assert report.deadline.verdict == verdict


def test_disk_is_the_bytes_of_a_measured_request_times_all_requests(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured]
) -> None:
    trial = make_trial(SCRIPT, documents=50, development=4)
    measured = pilot(trial, 4)
    assert measured.request_count == 2 * (4 + 1)
    disk = report_of(trial, measured).disk
    assert disk is not None
    assert disk.requests == 3 * (50 + 1) + 2 * 8
    (path,) = [path for path in trial.out.glob("*.jsonl") if ".texts" not in path.name]
    assert disk.record_bytes == Fraction(path.stat().st_size, 10) * disk.requests
    assert disk.free_bytes > 0


def test_records_of_another_plan_say_nothing_about_this_one(
    make_trial: Callable[..., Any], pilot: Callable[..., Measured]
) -> None:
    trial, other = make_trial(SCRIPT, development=2), make_trial(SCRIPT, development=2, name="b", model="model-b")
    pilot(other, 2)
    files = [path for path in other.out.glob("*.jsonl") if ".texts" not in path.name]
    assert measured_in(files, trial.frozen.lock.plan_id) == Measured({}, 0, 0, 0)


def test_the_command_measures_in_real_workers_and_says_the_same_as_json(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(SCRIPT, documents=6, development=3)
    device = ThisMachine().detect("cpu", threads=None).devices[0].device_name
    (trial.folder / "campaign.toml").write_text(HEAD.format(deadline=77) + CALENDAR + offer("o1", device=device))
    command = ["plan", str(trial.protocol), "--device", "cpu"]
    told = CliRunner().invoke(main, [*command, "--pilot", "3", "--out", str(trial.folder / "pilot")])
    assert told.exit_code == 0, told.output
    assert "measured: 3 documents per variant" in told.stdout
    assert "offer o1: 1 x 3 days, 72.00 EUR net, 86.40 with tax" in told.stdout
    assert "the pilot's records: " in told.stderr
    again = CliRunner().invoke(main, [*command, "--out", str(trial.folder / "pilot"), "--json"])
    values = json.loads(again.stdout)
    assert [one["variant"] for one in values["passes"]] == ["fp32", "fp32", "bf16"]
    assert all(one["hours"]["low"] <= one["hours"]["expected"] <= one["hours"]["high"] for one in values["passes"])
    assert values["pilot"] == {"documents_wanted": 0, "documents_measured": 3, "failed": []}
    assert values["offers"][0]["tariffs"][0]["expected"] == {"bought": 1, "net": "72.00", "gross": "86.40"}
    assert values["deadline"]["verdict"] == "fits"
    assert not list(trial.folder.glob("runs*")), "a pilot leaves the folder of the runs alone"


def test_a_pilot_with_a_failed_variant_prints_its_result_and_ends_with_exit_code_5(
    make_trial: Callable[..., Any],
) -> None:
    trial = make_trial({**SCRIPT, "passes": [BROKEN]}, development=2)
    result = CliRunner().invoke(main, ["plan", str(trial.protocol), "--device", "cpu", "--pilot", "2"])
    assert result.exit_code == 5
    assert "bf16: failed (load_failure in load)" in result.stdout
    assert "hours: " in result.stdout


def test_a_plan_lists_the_passes_of_the_run(make_trial: Callable[..., Any]) -> None:
    trial = make_trial(SCRIPT, edit=lambda text: text + "repetitions = 2\nbatches = [2]\n")
    lines = list(plan_lines(report_of(trial, Measured({}, 0, 0, 0), wanted=0)))
    assert [line.split("  ", 2)[-1].strip() for line in lines[1:7]] == [
        "fp32, reference: 4 documents", "fp32, reference repeat 2: 4 documents", "bf16, variant: 4 documents",
        "bf16, repetition 2: 4 documents", "fp32 in batches of 2, series: 4 documents",
        "fp32 in batches of 2, repetition 2: 4 documents",
    ]  # fmt: skip
    assert next(iter(planned(trial.frozen.lock))).label(1) == "fp32/1/1"
