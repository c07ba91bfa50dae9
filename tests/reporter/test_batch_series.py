"""One factor grows: given records of a batch series, the rows, sentences and pages that come of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reporter.assemble import build_dossier
from reporter.check import check
from reporter.dossier import Dossier, Sentence
from reporter.render import render

Kit = Any
Say = Callable[[Dossier, Sentence], str]
CPU = "example-cpu-2-cores"


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Any:
    """The reference alone and repeated, batches of 2 and 4, out of memory at 8, 16 not tried; and a variant beside."""
    kit = campaign_records
    fp32 = kit.fp32

    def batch(size: int, **more: Any) -> Any:
        return dataclasses.replace(fp32, batch=size, changed_in_repeat=frozenset(), **more)

    return kit(
        tmp_path_factory.mktemp("series") / "runs",
        variants=(fp32, kit.bf16),
        batches=[
            batch(2, other_answers=frozenset({1}), peak_bytes=1_600_000_000),
            batch(4, outcomes={**fp32.outcomes, 2: "wrong"}, other_answers=frozenset({1, 6}), check_differs={3: 5}),
            batch(8, failure="out_of_memory", failure_phase="measure"),
        ],
        skipped_batches=[batch(16)],
    )


@pytest.fixture(scope="module")
def dossier(series: Any, tmp_path_factory: pytest.TempPathFactory) -> Dossier:
    return build_dossier([series.runs], None, cache_dir=tmp_path_factory.mktemp("cache"))


def cells(dossier: Dossier, table: str, key: str) -> dict[str, Any]:
    row = next(row for row in dossier.tables[table].rows if row.key == key)
    return {column: dossier.figures[name].value for column, name in row.cells.items()}


def batch_key(size: int, repeat: str = "r1") -> str:
    return f"fp32~{CPU}~b{size}~c1~{repeat}"


def test_the_records_of_the_series_break_no_rule(series: Any) -> None:
    assert check([series.path]).findings == []


def test_a_series_holds_the_reference_its_repeat_and_each_batch_and_no_other_variant(dossier: Dossier) -> None:
    rows = dossier.tables["batches"].rows
    assert [row.labels["purpose"] for row in rows] == ["reference", "reference_repeat", *["series"] * 4]
    assert [dossier.figures[row.cells["batch"]].value for row in rows] == [1, 1, 2, 4, 8, 16]
    assert [row.labels["outcome"] for row in rows] == ["completed"] * 4 + ["failed", "skipped"]
    assert {row.labels["label"].partition(" ")[0] for row in rows} == {"fp32"}


def test_live_rows_and_padding_are_what_the_passes_say(dossier: Dossier, series: Any) -> None:

    lines = [msgspec.json.decode(line) for line in series.path.read_bytes().splitlines()]
    passes = {line["pass_id"]: line for line in lines if line["kind"] == "pass_begin"}
    ends = {passes[line["pass_id"]]["batch"]: line for line in lines if line["kind"] == "pass_end"}
    for size in (2, 4):
        histogram = ends[size]["live_row_histogram"]
        live = sum(int(rows) * steps for rows, steps in histogram.items()) / sum(histogram.values())
        found = cells(dossier, "batches", batch_key(size))
        assert found["live_rows"] == pytest.approx(live)
        assert 1 < found["live_rows"] < size
        requests = [
            line
            for line in lines
            if line["kind"] == "request" and line["phase"] == "measure" and passes[line["pass_id"]]["batch"] == size
        ]
        padding = sum(line["padding_tokens"] for line in requests)
        prompt = sum(line["prompt_tokens"] for line in requests)
        assert found["padding_percent"] == pytest.approx(100 * padding / (padding + prompt))
        assert found["batch_count"] == 24 / size
    alone = cells(dossier, "batches", batch_key(1))
    assert (alone["live_rows"], alone["padding_percent"], alone["batch_count"]) == (None, None, None)


def test_the_speed_ratio_is_derived_from_measured_and_the_repeat_shows_the_noise(dossier: Dossier) -> None:
    alone = cells(dossier, "batches", batch_key(1))
    for key in (batch_key(1, "ref2"), batch_key(2), batch_key(4)):
        found = cells(dossier, "batches", key)
        assert found["speed_ratio"] == alone["seconds_per_document"] / found["seconds_per_document"]
        assert found["documents_per_h"] == pytest.approx(3600 / found["seconds_per_document"])
    figure = dossier.figures[f"batches/{batch_key(4)}/speed_ratio"]
    assert (figure.basis, figure.is_derived, figure.unit) == ("measured", True, "ratio")
    assert "seconds_per_document" in str(figure.formula)
    assert "speed_ratio" not in alone
    assert abs(cells(dossier, "batches", batch_key(1, "ref2"))["speed_ratio"] - 1) < 0.05


def test_c02_answers_that_batching_changes_are_counted_and_each_document_is_named(dossier: Dossier) -> None:
    """A changed text with the same verdict is counted apart from a changed verdict."""
    two, four = cells(dossier, "batches", batch_key(2)), cells(dossier, "batches", batch_key(4))
    assert (two["different_answers"], two["flipped_documents"], two["flip_percent"]) == (1, 0, 0.0)
    assert (four["different_answers"], four["flipped_documents"]) == (3, 1)
    assert four["flip_percent"] == pytest.approx(100 / 24)
    named = [
        (row.labels["batch"], row.labels["document_id"], row.labels["verdict"])
        for row in dossier.tables["batch_changes"].rows
        if row.labels["purpose"] == "series"
    ]
    assert named == [
        ("2", "doc-002", "unchanged"),
        ("4", "doc-003", "changed"),
        ("4", "doc-002", "unchanged"),
        ("4", "doc-007", "unchanged"),
    ]


def test_the_self_check_says_how_many_differ_and_from_which_token_on(dossier: Dossier, said: Say) -> None:
    rows = {row.labels["label"]: row for row in dossier.tables["batch_checks"].rows}
    assert cells(dossier, "batch_checks", rows["fp32 · b2"].key) == {
        "batch": 2, "checked_documents": 8, "differing_documents": 0, "emptied_documents": 0,
    }  # fmt: skip
    assert rows["fp32 · b4"].labels["differing"] == "doc-004 (6)"
    notices = [said(dossier, notice) for notice in dossier.notices]
    assert "fp32 · b4: of 8 documents answered alone and in a batch of 4, 1 differs." in notices


def test_b07_the_peak_of_a_batch_is_the_highest_over_its_phases_and_names_the_phase(dossier: Dossier) -> None:
    row = next(row for row in dossier.tables["batches"].rows if row.key == batch_key(2))
    assert dossier.figures[row.cells["peak_bytes"]].value == 1_600_000_000
    assert row.labels["peak_phase"] == "measure"


def test_a_batch_that_ran_out_of_memory_is_a_row_a_decision_and_a_limit(dossier: Dossier, said: Say) -> None:
    rows = {row.key: row for row in dossier.tables["batches"].rows}
    failed = rows[batch_key(8)]
    assert [said(dossier, sentence) for sentence in failed.sentences] == [
        "out of memory in measuring", "batch reduced to 4",
    ]  # fmt: skip
    figure = dossier.figures[failed.cells["seconds_per_document"]]
    assert (figure.value, figure.missing_reason) == (None, "out_of_memory")
    assert [said(dossier, s) for s in dossier.tables["batches"].rows[-1].sentences] == [
        "not tried: a smaller batch ran out of memory"
    ]
    limits = [said(dossier, sentence) for sentence in dossier.decision.does_not_show]
    assert "A batch of 8 on Example CPU 2 cores: it ran out of memory; 4 is the largest that ran there." in limits
    assert "Batches above 4 and concurrency above 1." in limits


def test_the_largest_batch_that_ran_is_told_for_the_card_that_the_next_one_failed_on(
    tmp_path: Path, campaign_records: Kit, said: Say
) -> None:
    kit = campaign_records

    def series(runs: Path, fits: int, fails: int, **more: Any) -> None:
        sizes = {
            size: dataclasses.replace(kit.fp32, batch=size, changed_in_repeat=frozenset()) for size in (fits, fails)
        }
        failed = dataclasses.replace(sizes[fails], failure="out_of_memory", failure_phase="measure")
        kit(runs, variants=(kit.fp32,), batches=[sizes[fits], failed], **more)

    series(tmp_path / "runs", 8, 16)
    small = kit.device(name="Example GPU 24 GB", kind="cuda", host="b", memory_bytes=24 * 2**30)
    series(tmp_path / "runs", 2, 8, device=small, start="2026-01-03T09:00:00")
    dossier = build_dossier([tmp_path / "runs"], None)
    assert [said(dossier, s) for s in dossier.decision.does_not_show if s.key == "limit_batch_memory"] == [
        "A batch of 16 on Example CPU 2 cores: it ran out of memory; 8 is the largest that ran there.",
        "A batch of 8 on Example GPU 24 GB: it ran out of memory; 2 is the largest that ran there.",
    ]


def test_times_of_a_batch_say_that_the_wait_for_the_batch_is_in_them(dossier: Dossier) -> None:
    loops = {row.labels["configuration_key"]: row.labels["loop"] for row in dossier.tables["latency"].rows}
    assert (loops[f"fp32~{CPU}~b1~c1"], loops[f"fp32~{CPU}~b4~c1"]) == ("closed", "batch")
    assert "batch: waiting for the batch is in it" in render(dossier, lang="en", medium="screen")


def test_without_a_series_there_is_no_such_table_and_no_such_section(decide: Any) -> None:
    dossier = decide("plain", None)
    assert "batches" not in dossier.tables
    assert 'id="batches"' not in render(dossier, lang="en", medium="screen")


def test_each_repetition_of_a_batch_shows_its_number_and_its_own_latency_and_memory_peak(
    tmp_path: Path, campaign_records: Kit
) -> None:
    def batch(peak: int, gap_ms: int) -> Any:
        script = dataclasses.replace(campaign_records.fp32, batch=2, changed_in_repeat=frozenset())
        return dataclasses.replace(script, peak_bytes=peak, token_gap_ns=gap_ms * 1_000_000)

    passes = [batch(1_500_000_000, 20), batch(1_700_000_000, 30), batch(1_600_000_000, 25)]
    campaign_records(tmp_path / "runs", variants=(campaign_records.fp32,), batches=passes, reference_runs=3)
    dossier = build_dossier([tmp_path / "runs"], None, cache_dir=tmp_path / "cache")
    rows = dossier.tables["batches"].rows
    assert [row.labels["repetition"] for row in rows] == ["1", "2", "3"] * 2
    repeated = [cells(dossier, "batches", row.key) for row in rows[3:]]
    assert [found["peak_bytes"] for found in repeated] == [1_500_000_000, 1_700_000_000, 1_600_000_000]
    medians = [
        cells(dossier, "latency_repetitions", row.key)["p50_s"]
        for row in dossier.tables["latency_repetitions"].rows
        if row.labels["metric"] == "e2e_s"
    ]
    assert [cells(dossier, "batches", row.key)["e2e_p50_s"] for row in rows] == medians
    assert len({found["e2e_p50_s"] for found in repeated}) == len({found["ttft_p50_s"] for found in repeated}) == 3
    assert [row.labels["repetition"] for row in dossier.tables["noise"].rows] == ["2", "3", "2", "3"]
    assert [row.labels["repetition"] for row in dossier.tables["durations"].rows] == ["1", "2", "3"] * 2
    page = render(dossier, lang="en", medium="screen")
    assert page.count(">no.</span>") == 4
