"""Given records, expected rows: one test per table that is computed from records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from reporter import figures, load
from reporter.figures import Evidence
from reporter.sql_files import TABLES

Kit = Any
CPU = "example-cpu-2-cores~b1~c1"
FP32, BF16 = f"fp32~{CPU}", f"bf16~{CPU}"


def evidence(runs: Path) -> Evidence:
    with load.open_records([runs]) as store:
        return figures.build(store)


def cells(found: Evidence, table: str, key: str) -> dict[str, Any]:
    row = found.row(table, key)
    assert row is not None, [row.key for row in found.tables[table].rows]
    return {column: found.figures[name].value for column, name in row.cells.items()}


def keys(found: Evidence, table: str) -> list[str]:
    return [row.key for row in found.tables[table].rows]


def labels(found: Evidence, table: str, key: str) -> dict[str, str]:
    row = found.row(table, key)
    assert row is not None
    return row.labels


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    return [line for line in lines if line["kind"] == kind]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Any:
    """Eight documents, three critical. The variant: 0 unparseable, 2 never answered, 6 failed, 7 too long, 3 gained."""
    kit = campaign_records
    runs = tmp_path_factory.mktemp("small") / "runs"
    fp32 = kit.variant(outcomes={3: "wrong"}, changed_in_repeat=frozenset({5}))
    bf16 = kit.variant(
        name="bf16", dtype="bfloat16", outcomes={0: "unparseable", 6: "failed", 7: "too_long"}, missing=frozenset({2}),
        weight_bytes=270_000_000, peak_bytes=900_000_000, killed_attempts=1,
    )  # fmt: skip
    return kit(runs, documents=8, critical=3, variants=(fp32, bf16))


@pytest.fixture(scope="module")
def found(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    with load.open_records([small.runs], cache_dir=tmp_path_factory.mktemp("cache")) as store:
        return figures.build(store)


def test_quality_counts_outcomes_apart_and_a_document_without_an_answer_as_failed(found: Evidence) -> None:
    assert keys(found, "quality") == [FP32, BF16]
    assert cells(found, "quality", BF16) == {
        "document_count": 8, "returned_documents": 7, "accepted_documents": 4, "wrong_documents": 0,
        "unparseable_documents": 1, "truncated_documents": 0, "too_long_documents": 1, "empty_documents": 0,
        "failed_documents": 2, "well_formed_documents": 4, "several_candidates_documents": 0, "normalised_documents": 1,
    }  # fmt: skip
    reference = cells(found, "quality", FP32)
    assert (reference["accepted_documents"], reference["wrong_documents"]) == (7, 1)
    assert reference["several_candidates_documents"] == 1
    assert labels(found, "quality", BF16) == {
        "label": "bf16 · 1", "configuration_key": BF16, "purpose": "variant", "variant": "bf16",
        "device": "Example CPU 2 cores",
    }  # fmt: skip


def test_quality_carries_the_wilson_interval_in_documents(found: Evidence) -> None:
    figure = found.figures[f"quality/{BF16}/accepted_documents"]
    assert figure.n == 8
    assert figure.interval is not None
    # 4 of 8: Wilson 0.2152 to 0.7848
    assert (figure.interval.low, figure.interval.high) == (
        pytest.approx(1.7214, abs=1e-3),
        pytest.approx(6.2786, abs=1e-3),
    )
    assert figure.interval.method == "wilson"


def test_quality_by_group_counts_critical_and_hard_and_length_and_language(found: Evidence) -> None:
    assert cells(found, "quality_by_group", f"{BF16}~subset~critical") == {
        "document_count": 3, "accepted_documents": 1,
    }  # fmt: skip
    assert cells(found, "quality_by_group", f"{FP32}~subset~critical")["accepted_documents"] == 3
    # documents 0 and 6 are short, both not accepted; 5 is long and right
    assert cells(found, "quality_by_group", f"{BF16}~length_class~short") == {
        "document_count": 2, "accepted_documents": 0,
    }  # fmt: skip
    assert cells(found, "quality_by_group", f"{BF16}~length_class~long")["accepted_documents"] == 1
    assert cells(found, "quality_by_group", f"{BF16}~language~vi") == {"document_count": 2, "accepted_documents": 1}
    assert cells(found, "quality_by_group", f"{BF16}~hard~no")["document_count"] == 8
    by_dimension = [row for row in found.tables["quality_by_group"].rows if row.labels["configuration_key"] == BF16]
    assert len(by_dimension) == 3 + 2 + 1 + 1


def test_fields_counts_each_field_over_all_documents(found: Evidence) -> None:
    assert cells(found, "fields", f"{FP32}~category") == {"document_count": 8, "right_documents": 7}
    assert cells(found, "fields", f"{FP32}~date") == {"document_count": 8, "right_documents": 8}
    assert cells(found, "fields", f"{BF16}~date") == {"document_count": 8, "right_documents": 4}


def test_paired_counts_lost_and_gained_by_identifier(found: Evidence) -> None:
    assert keys(found, "paired") == [BF16]
    assert cells(found, "paired", BF16) == {
        "document_count": 8, "both_right": 3, "lost_documents": 4, "gained_documents": 1, "both_not_right": 0,
        "compared_answers": 5, "other_answers": 2,
        "net_documents": -3, "difference_points": -37.5, "cluster_count": 8, "clustered_points": None,
    }  # fmt: skip
    figure = found.figures[f"paired/{BF16}/difference_points"]
    assert (figure.basis, figure.is_derived) == ("measured", True)
    assert figure.interval is not None
    assert figure.interval.low < -37.5 < figure.interval.high


def test_changed_documents_names_each_document_with_its_fields(found: Evidence) -> None:
    assert keys(found, "changed_documents") == [
        f"{BF16}~{name}" for name in ("doc-001", "doc-003", "doc-007", "doc-008", "doc-004")
    ]
    assert labels(found, "changed_documents", f"{BF16}~doc-004") == {
        "label": "bf16 · 1", "configuration_key": BF16, "variant": "bf16", "device": "Example CPU 2 cores",
        "purpose": "variant", "document_id": "doc-004", "direction": "gained",
        "severity": "other", "reference_outcome": "wrong", "outcome": "right",
        "newly_wrong": "", "newly_right": "category", "subsets": "", "language": "vi", "length_class": "usual",
    }  # fmt: skip
    lost = labels(found, "changed_documents", f"{BF16}~doc-003")
    assert (lost["direction"], lost["outcome"], lost["subsets"]) == ("lost", "failed", "critical")


def test_noise_compares_the_repeat_of_the_reference_with_its_first_pass(found: Evidence) -> None:
    assert keys(found, "noise") == [f"{FP32}~ref2"]
    assert cells(found, "noise", f"{FP32}~ref2") == {
        "document_count": 8, "flipped_documents": 1, "different_answers": 1, "flip_percent": 12.5,
        "agreement_percent": 87.5,
    }  # fmt: skip


def test_passes_lists_every_attempt_and_why_it_does_not_count(found: Evidence) -> None:
    assert keys(found, "passes") == [f"{FP32}~r1~a1", f"{FP32}~ref2~a1", f"{BF16}~r1~a1", f"{BF16}~r1~a2"]
    killed, complete = labels(found, "passes", f"{BF16}~r1~a1"), labels(found, "passes", f"{BF16}~r1~a2")
    assert (killed["outcome"], killed["counts_yes_no"], killed["cause"]) == ("failed", "no", "killed")
    assert (complete["outcome"], complete["counts_yes_no"], complete["cause"]) == ("completed", "yes", "")
    assert cells(found, "passes", f"{BF16}~r1~a1")["documents"] == 4
    assert cells(found, "passes", f"{BF16}~r1~a2")["attempt"] == 2


def test_latency_takes_measured_requests_only_and_keeps_failures_in_the_count(found: Evidence, small: Any) -> None:
    row = cells(found, "latency", f"{BF16}~ttft_s~all")
    assert (row["request_count"], row["valued_count"]) == (7, 5)
    judged = records(small.path, "pass_begin")[3]["pass_id"]
    values = sorted(
        line["first_token_ns"] - line["intended_ns"]
        for line in records(small.path, "request")
        if line["pass_id"] == judged and line["phase"] == "measure" and line["request_outcome"] == "completed"
    )
    # 5 values: the smallest that 50 % do not exceed is the third, for 90 % and 95 % the fifth
    assert row["p50_s"] == values[2] / 1e9
    assert row["p90_s"] == row["p95_s"] == values[4] / 1e9
    figure = found.figures[f"latency/{BF16}~ttft_s~all/p50_s"]
    assert (figure.n, figure.interval) == (5, None)
    assert labels(found, "latency", f"{BF16}~ttft_s~all")["loop"] == "closed"


def test_latency_defines_time_per_token_over_the_gaps_and_has_an_interval_from_six_values(
    found: Evidence, small: Any
) -> None:
    judged = records(small.path, "pass_begin")[0]["pass_id"]
    requests = [r for r in records(small.path, "request") if r["pass_id"] == judged and r["phase"] == "measure"]
    values = sorted((r["last_token_ns"] - r["first_token_ns"]) / (r["output_tokens"] - 1) for r in requests)
    figure = found.figures[f"latency/{FP32}~tpot_s~all/p50_s"]
    assert figure.value == values[3] / 1e9
    # 8 values: the median lies between the first and the last with 99.2 %, between the second and seventh with 93 %
    assert figure.interval is not None
    assert (figure.interval.low, figure.interval.high) == (values[0] / 1e9, values[7] / 1e9)
    assert found.figures[f"latency/{FP32}~tpot_s~all/p90_s"].interval is None


def test_latency_has_no_time_per_token_below_two_tokens(tmp_path: Path, campaign_records: Kit) -> None:
    only_empty = campaign_records.variant(outcomes=dict.fromkeys(range(4), "empty"))
    found = evidence(campaign_records(tmp_path / "runs", documents=4, critical=1, variants=(only_empty,)).runs)
    row = cells(found, "latency", f"{FP32}~tpot_s~all")
    assert (row["request_count"], row["valued_count"], row["p50_s"]) == (4, 0, None)
    assert found.figures[f"latency/{FP32}~tpot_s~all/p50_s"].missing_reason == "too_few_samples"
    assert cells(found, "latency", f"{FP32}~e2e_s~all")["valued_count"] == 4


def test_durations_divide_sums_and_count_completed_documents(found: Evidence, small: Any) -> None:
    assert keys(found, "durations") == [f"{FP32}~r1", f"{FP32}~ref2", f"{BF16}~r1"]
    row = cells(found, "durations", f"{BF16}~r1")
    end = records(small.path, "pass_end")[3]
    assert (row["load_ns"], row["warmup_ns"], row["measure_ns"], row["pass_ns"]) == (
        end["phase_ns"]["load"], end["phase_ns"]["warmup"], end["phase_ns"]["measure"], end["pass_ns"],
    )  # fmt: skip
    assert (row["completed_documents"], row["output_tokens"]) == (5, end["output_token_count"])
    assert row["output_tokens_per_s"] == pytest.approx(row["output_tokens"] * 1e9 / row["measure_ns"], rel=1e-12)
    assert row["documents_per_h"] == pytest.approx(5 * 3600e9 / row["measure_ns"], rel=1e-12)


def test_memory_keeps_device_scope_and_phase_apart(tmp_path: Path, campaign_records: Kit) -> None:
    gpu = campaign_records.device(name="Example GPU", kind="cuda")
    found = evidence(campaign_records(tmp_path / "runs", documents=4, critical=1, device=gpu).runs)
    key = "fp32~example-gpu~b1~c1"
    names = [row.key for row in found.tables["memory"].rows if row.labels["configuration_key"] == key]
    assert names == [
        f"{key}~{place}~{phase}"
        for place in ("cpu~host", "cuda:0~allocated", "cuda:0~reserved", "cuda:0~process", "cuda:0~device")
        for phase in ("load", "warmup", "measure")
    ]
    assert cells(found, "memory", f"{key}~cuda:0~allocated~measure") == {
        "start_bytes": 840_000_000, "peak_bytes": 1_400_000_000, "end_bytes": 1_120_000_000,
    }  # fmt: skip
    assert labels(found, "memory", f"{key}~cuda:0~process~measure")["method"] == "sampled"
    assert labels(found, "memory", f"{key}~cpu~host~measure")["method"] == "counter"


def test_a_null_reading_is_a_null_figure_with_the_records_reason(tmp_path: Path, campaign_records: Kit) -> None:
    kit = campaign_records
    written = kit(tmp_path / "runs", documents=4, critical=1)

    def unread(index: int, line: dict[str, Any]) -> dict[str, Any]:
        if line["kind"] == "reading" and (line["phase"], line["statistic"]) == ("measure", "peak"):
            return line | {"value_bytes": None, "missing": {"value_bytes": "not_permitted"}}
        return line

    written.path.write_bytes(b"\n".join(kit.rechain(written.path.read_bytes().splitlines(), unread)) + b"\n")
    figure = evidence(written.runs).figures[f"memory/{FP32}~cpu~host~measure/peak_bytes"]
    assert (figure.value, figure.missing_reason) == (None, "not_permitted")


def test_variants_show_what_was_observed_after_warm_up(found: Evidence) -> None:
    assert keys(found, "variants") == ["fp32~example-cpu-2-cores", "bf16~example-cpu-2-cores"]
    row = labels(found, "variants", "bf16~example-cpu-2-cores")
    assert (row["label"], row["observed_at"], row["compute_dtype"]) == ("bf16", "after_warmup", "bfloat16")
    assert row["origin"] == "stored as 4-bit Q4_1 and dequantized"
    assert row["file_digests"] == "model.safetensors=" + "7" * 64
    assert cells(found, "variants", "bf16~example-cpu-2-cores") == {
        "parameter_count": 135_000_000, "loaded_weight_bytes": 270_000_000, "weight_bytes": 270_000_000,
        "claimed_weight_bytes": 270_000_000, "effective_bits": 16.0, "thread_count": None,
    }  # fmt: skip
    assert found.figures["variants/bf16~example-cpu-2-cores/claimed_weight_bytes"].basis == "claimed"


def test_tensor_groups_sum_bytes_once_per_group(found: Evidence) -> None:
    prefix = "bf16~example-cpu-2-cores"
    assert keys(found, "tensor_groups")[4:] == [
        f"{prefix}~{group}~bfloat16" for group in ("attention", "embedding", "mlp", "norm")
    ]
    assert cells(found, "tensor_groups", f"{prefix}~mlp~bfloat16") == {
        "tensor_bytes": 118_800_000, "element_count": 59_400_000,
    }  # fmt: skip


def test_workload_counts_documents_clusters_and_prompt_tokens_of_the_reference(found: Evidence) -> None:
    assert [key for key in keys(found, "workload") if not key.startswith("length")] == [
        "all~all", "role~validation", "language~en", "language~vi", "subset~critical", "hard~no",
    ]  # fmt: skip
    # prompts by document: 60, 121, 122, 123, 124, 265, 66, 120
    assert cells(found, "workload", "all~all") == {
        "document_count": 8, "cluster_count": 8, "prompt_tokens_p50": 121, "prompt_tokens_max": 265,
    }  # fmt: skip
    assert cells(found, "workload", "length_class~long")["prompt_tokens_max"] == 265
    assert cells(found, "workload", "subset~critical")["document_count"] == 3


def test_runs_environments_devices_and_engines_are_told_as_recorded(found: Evidence, small: Any) -> None:
    assert keys(found, "runs") == [small.run_id]
    run = labels(found, "runs", small.run_id)
    assert (run["stage"], run["is_sealed"], run["head_digest"]) == ("validation", "yes", small.head_digest)
    assert run["file"] == small.path.name
    assert run["ended_at"] == records(small.path, "seal")[0]["written_at"]
    assert cells(found, "runs", small.run_id) == {"record_count": small.path.read_bytes().count(b"\n")}
    (environment,) = found.tables["environments"].rows
    assert environment.labels["packages"] == "numpy=2.3.1; torch=2.13.0"
    assert environment.labels["driver"] == ""
    assert cells(found, "environments", environment.key)["host_memory_bytes"] == 16 * 2**30
    (device,) = found.tables["devices"].rows
    power = found.figures[device.cells["power_limit_mw"]]
    assert (power.value, power.missing_reason) == (None, "unsupported")
    (engine,) = found.tables["engines"].rows
    assert (engine.labels["name"], engine.labels["evidence"], engine.labels["flags"]) == (
        "scripted", "verified", "device=cpu",
    )  # fmt: skip


def test_failures_decisions_and_warnings_are_listed(found: Evidence, small: Any) -> None:
    (failure,) = records(small.path, "failure")
    row = labels(found, "failures", f"{small.run_id}:{failure['seq']}")
    assert (row["scope"], row["cause"], row["label"], row["phase"]) == ("pass", "killed", "bf16 · 1", "measure")
    (decision,) = records(small.path, "decision")
    assert labels(found, "decisions", f"{small.run_id}:{decision['seq']}")["decision"] == "restarted"
    assert cells(found, "warnings", "UserWarning~load") == {"repeat_count": 8}


def test_repetitions_are_counted_apart_so_that_an_unstable_gate_is_seen(tmp_path: Path, campaign_records: Kit) -> None:
    found = evidence(campaign_records(tmp_path / "runs", repetitions=3).runs)
    assert keys(found, "quality_repetitions") == [
        f"{FP32}~r1",
        f"{FP32}~ref2",
        f"{BF16}~r1",
        f"{BF16}~r2",
        f"{BF16}~r3",
    ]
    assert cells(found, "quality_repetitions", f"{FP32}~ref2") == {
        "repetition": 2, "document_count": 24, "accepted_documents": 20,
    }  # fmt: skip
    assert cells(found, "quality", FP32)["accepted_documents"] == 21


def test_c02_two_record_sets_that_differ_on_3_of_200_documents_show_a_flip_rate_of_one_and_a_half_percent(
    tmp_path: Path, campaign_records: Kit
) -> None:
    steady = campaign_records.variant(changed_in_repeat=frozenset({10, 90, 150}))
    found = evidence(campaign_records(tmp_path / "runs", documents=200, variants=(steady,)).runs)
    assert cells(found, "noise", f"{FP32}~ref2") == {
        "document_count": 200, "flipped_documents": 3, "different_answers": 3, "flip_percent": 1.5,
        "agreement_percent": 98.5,
    }  # fmt: skip


def test_c04_repeat_agreement_is_told_for_each_configuration_that_was_repeated(
    tmp_path: Path, campaign_records: Kit
) -> None:
    kit = campaign_records
    levels = [
        kit.variant(
            name="fp32", outcomes={1: "wrong"}, concurrency=level, changed_in_repeat=frozenset(range(4 * level))
        )
        for level in (1, 2, 4)
    ]
    found = evidence(kit(tmp_path / "runs", documents=200, variants=levels, repetitions=2).runs)
    assert keys(found, "noise") == [
        "fp32~example-cpu-2-cores~b1~c1~ref2", "fp32~example-cpu-2-cores~b1~c2~r2",
        "fp32~example-cpu-2-cores~b1~c4~r2",
    ]  # fmt: skip
    assert labels(found, "noise", "fp32~example-cpu-2-cores~b1~c4~r2")["label"] == "fp32 · c4"
    agreement = [cells(found, "noise", key)["agreement_percent"] for key in keys(found, "noise")]
    assert agreement == [98.0, 96.0, 92.0]


def test_c10_a_fifth_of_unparseable_answers_carries_a_warning_and_one_in_twenty_does_not(
    tmp_path: Path, campaign_records: Kit
) -> None:
    kit = campaign_records
    fifth = kit.variant(outcomes=dict.fromkeys(range(20), "unparseable"))
    twentieth = kit.variant(name="bf16", dtype="bfloat16", outcomes=dict.fromkeys(range(5), "unparseable"))
    found = evidence(kit(tmp_path / "runs", documents=100, variants=(fifth, twentieth)).runs)
    assert keys(found, "quality_warnings") == [f"{FP32}~unparseable_share"]
    assert cells(found, "quality_warnings", f"{FP32}~unparseable_share") == {
        "affected_documents": 20, "document_count": 100, "affected_percent": 20.0, "limit_percent": 5,
    }  # fmt: skip
    assert cells(found, "quality", FP32)["wrong_documents"] == 0


def test_c11_truncated_answers_are_an_outcome_of_their_own(tmp_path: Path, campaign_records: Kit) -> None:
    cut = campaign_records.variant(outcomes={1: "truncated", 2: "truncated"})
    found = evidence(campaign_records(tmp_path / "runs", documents=10, variants=(cut,)).runs)
    row = cells(found, "quality", FP32)
    assert (row["truncated_documents"], row["unparseable_documents"], row["accepted_documents"]) == (2, 0, 8)
    assert keys(found, "quality_warnings") == [f"{FP32}~truncated_share"]


def test_a_configuration_that_never_loaded_stays_as_failure_and_has_no_quality(
    tmp_path: Path, campaign_records: Kit
) -> None:
    kit = campaign_records
    huge = kit.variant(name="fp64", dtype="float16", failure="out_of_memory")
    written = kit(tmp_path / "runs", documents=4, critical=1, variants=(kit.fp32, kit.bf16))
    again = kit(
        tmp_path / "runs", documents=4, critical=1, variants=(kit.fp32, huge), start="2026-01-03T09:00:00", seed=3
    )
    lock = written.lock.protocol_id
    assert again.lock.protocol_id == lock
    found = evidence(written.runs)
    assert found.row("quality", f"fp64~{CPU}") is None
    failed = labels(found, "passes", f"fp64~{CPU}~r1~a1")
    assert (failed["outcome"], failed["cause"], failed["device"]) == ("failed", "out_of_memory", "Example CPU 2 cores")
    assert cells(found, "passes", f"fp64~{CPU}~r1~a1")["measure_ns"] is None
    (row,) = found.tables["failures"].rows
    assert (row.labels["label"], row.labels["phase"]) == ("fp64 · 1", "load")


def test_two_devices_put_the_device_into_each_label_and_two_alike_machines_are_told_apart(
    tmp_path: Path, campaign_records: Kit
) -> None:
    kit = campaign_records
    options = {"documents": 4, "critical": 1}
    kit(tmp_path / "a", **options)
    kit(tmp_path / "a", device=kit.device(name="Example GPU", kind="cuda", host="b"), **options)
    found = evidence(tmp_path / "a")
    assert [row.labels["label"] for row in found.tables["quality"].rows] == [
        "Example CPU 2 cores · fp32 · 1", "Example GPU · fp32 · 1",
        "Example CPU 2 cores · bf16 · 1", "Example GPU · bf16 · 1",
    ]  # fmt: skip
    for host in "ab":
        kit(tmp_path / "b", device=kit.device(host=host), **options)
    found = evidence(tmp_path / "b")
    assert len({row.key for row in found.tables["quality"].rows}) == 4
    assert all(row.key.startswith((f"{FP32}~", f"{BF16}~")) for row in found.tables["quality"].rows)
    assert len({row.labels["label"] for row in found.tables["quality"].rows}) == 4


def test_the_reference_is_the_first_reference_pass_of_the_whole_campaign(tmp_path: Path, campaign_records: Kit) -> None:
    kit = campaign_records
    kit(tmp_path / "runs", device=kit.device(name="Example GPU", kind="cuda", host="b"), start="2026-01-05T09:00:00")
    kit(tmp_path / "runs", start="2026-01-04T09:00:00")
    found = evidence(tmp_path / "runs")
    assert found.reference_key == FP32
    assert keys(found, "paired") == [
        "bf16~example-cpu-2-cores~b1~c1",
        "fp32~example-gpu~b1~c1",
        "bf16~example-gpu~b1~c1",
    ]


def test_without_a_complete_reference_nothing_is_paired(tmp_path: Path, campaign_records: Kit) -> None:
    kit = campaign_records
    broken = kit.variant(failure="load_failure")
    found = evidence(kit(tmp_path / "runs", variants=(broken, kit.bf16)).runs)
    assert found.reference_key is None
    assert keys(found, "paired") == keys(found, "changed_documents") == []
    assert keys(found, "quality") == [BF16]


def test_pilot_runs_do_not_count_beside_validation_runs_and_count_alone(tmp_path: Path, campaign_records: Kit) -> None:
    kit = campaign_records
    written = kit(tmp_path / "runs", stage="validation")
    pilot = kit(tmp_path / "pilot", stage="pilot", start="2026-01-01T09:00:00")

    def as_development(index: int, line: dict[str, Any]) -> dict[str, Any]:
        return line | {"role": "development"} if line["kind"] == "document" else line

    pilot.path.write_bytes(b"\n".join(kit.rechain(pilot.path.read_bytes().splitlines(), as_development)) + b"\n")
    alone = evidence(pilot.runs)
    assert alone.stage == "pilot"
    assert cells(alone, "quality", FP32)["document_count"] == 24
    with load.open_records([written.runs, pilot.runs]) as store:
        both = figures.build(store)
    assert both.stage == "validation"
    others = [row for row in both.tables["passes"].rows if row.labels["stage"] == "pilot"]
    assert {row.labels["cause"] for row in others} == {"other_stage"}
    assert (
        cells(both, "durations", f"{FP32}~r1")["measure_ns"]
        == cells(evidence(written.runs), "durations", f"{FP32}~r1")["measure_ns"]
    )


@pytest.mark.parametrize("table", TABLES)
def test_every_row_names_its_source_records(found: Evidence, table: str) -> None:
    for row in found.tables[table].rows:
        for name in row.cells.values():
            figure = found.figures[name]
            assert figure.record_count >= len(figure.sources) > 0
            assert len(figure.sources) == min(figure.record_count, figures.MAX_SOURCES)
            assert len(figure.file_digests) == 1
