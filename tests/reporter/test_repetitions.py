"""Repetitions as the unit: medians of each, ratios between configurations, and nothing mixed across passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Figure

Kit = Any
MS = 1_000_000
CPU = "example-cpu-2-cores"
TIME_UNITS = ("seconds", "hours", "nanoseconds", "tokens_per_second", "documents_per_hour", "ratio")


@pytest.fixture(scope="module")
def repeated(decide: Any) -> Dossier:
    """Three repetitions of both; the second variant answers its documents 1 and 2 wrong in every repeat."""

    def write(kit: Kit, runs: Path) -> object:
        reference = kit.variant(first_token_ns=90 * MS, token_gap_ns=24 * MS)
        variant = kit.variant(
            name="bf16", dtype="bfloat16", first_token_ns=40 * MS, token_gap_ns=12 * MS,
            changed_in_repeat=frozenset({1, 2}),
        )  # fmt: skip
        return kit(runs, documents=6, critical=0, variants=(reference, variant), reference_runs=3, repetitions=3)

    found: Dossier = decide("repeated", None, write=write)
    return found


def figure(found: Dossier, table: str, key: str, column: str) -> Figure:
    cells = next(row.cells for row in found.tables[table].rows if row.key == key)
    return found.figures[cells[column]]


def value(found: Dossier, table: str, key: str, column: str) -> Any:
    return figure(found, table, key, column).value


def test_each_repetition_has_its_own_median_and_the_mean_of_three_has_a_t_interval(repeated: Dossier) -> None:
    key = f"fp32~{CPU}~b1~c1"
    medians = [
        value(repeated, "latency_repetitions", f"{key}{name}~e2e_s", "p50_s") for name in ("~r1", "~ref2", "~ref3")
    ]
    together = figure(repeated, "latency_between", f"{key}~e2e_s", "p50_mean_s")
    mean = sum(medians) / 3
    assert together.value == pytest.approx(mean)
    assert together.n == 3
    assert together.interval is not None
    assert together.interval.method == "t_of_means"
    assert together.interval.low < mean < together.interval.high


def test_the_ratio_of_medians_has_an_interval_and_the_reference_has_no_ratio(repeated: Dossier) -> None:
    found = figure(repeated, "latency_between", f"bf16~{CPU}~b1~c1~tpot_s", "p50_ratio")
    assert isinstance(found.value, float)
    assert found.value == pytest.approx(0.5, abs=0.02)
    assert found.interval is not None
    assert found.interval.method == "welch_of_logs"
    assert found.interval.low < found.value < found.interval.high < 0.55
    own = figure(repeated, "latency_between", f"fp32~{CPU}~b1~c1~tpot_s", "p50_ratio")
    assert (own.value, own.missing_reason) == (None, "not_applicable")


def test_a_ratio_from_fewer_repetitions_has_no_interval(decide: Any) -> None:
    found = decide("plain", None)
    ratio = figure(found, "latency_between", f"bf16~{CPU}~b1~c1~e2e_s", "p50_ratio")
    assert ratio.value is not None
    assert (ratio.n, ratio.interval) == (1, None)


def test_c16_quality_of_every_repetition_is_shown_and_a_first_pass_alone_is_not_taken_for_all(
    repeated: Dossier,
) -> None:
    """A cache may turn answers between passes: where a later pass would flip a rule, the dossier says so."""
    key = f"bf16~{CPU}~b1~c1"
    accepted = [value(repeated, "quality_repetitions", f"{key}~r{n}", "accepted_documents") for n in (1, 2, 3)]
    assert accepted == [6, 4, 4]
    assert value(repeated, "noise", f"{key}~r2", "flipped_documents") == 2
    unstable = [notice for notice in repeated.notices if notice.key == "notice_not_stable"]
    assert [notice.parameters["label"] for notice in unstable] == ["bf16 · 1"]


def test_c16_no_figure_of_time_takes_acceptance_from_another_pass_than_its_times(
    tmp_path: Path, campaign_records: Kit
) -> None:
    """Quality and speed of one figure come from one pass, so from one state of every cache."""
    kit = campaign_records
    runs = tmp_path / "runs"
    variants = (kit.variant(), kit.variant(name="bf16", dtype="bfloat16"))
    kit(runs, documents=6, critical=0, variants=variants, reference_runs=3, repetitions=3)
    found = build_dossier([runs], None)
    records = {}
    for path in runs.glob("*[0-9a-f].jsonl"):
        for line in path.read_bytes().splitlines():
            record = msgspec.json.decode(line)
            records[f"{record['run_id']}:{record['seq']}"] = record
    judged_and_timed = 0
    for name, one in found.figures.items():
        cited = [records[source] for source in one.sources]
        passes = {record["pass_id"] for record in cited if "pass_id" in record}
        kinds = {record["kind"] for record in cited}
        if one.unit in TIME_UNITS and "score" in kinds:
            assert len(passes) == 1, name
        if name.split("/")[0] in ("quality", "durations", "latency", "latency_repetitions", "quality_repetitions"):
            assert len(passes) == 1, name
            judged_and_timed += 1
    assert judged_and_timed > 100
    key = f"bf16~{CPU}~b1~c1"
    of_quality = figure(found, "quality", key, "accepted_documents").sources
    of_times = figure(found, "latency", f"{key}~e2e_s~all", "p50_s").sources
    pass_of = {records[source]["pass_id"] for source in (*of_quality, *of_times) if "pass_id" in records[source]}
    assert len(pass_of) == 1
