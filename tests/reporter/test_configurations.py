"""A measured configuration is read off the tables of the evidence: median time, widest peak, machine, subsets."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from collector.contract.campaign_file import read_campaign
from collector.contract.errors import Refused
from collector.contract.matching import Machine
from collector.contract.protocol import Gates, SubsetGate
from reporter import figures
from reporter.assemble import build_dossier
from reporter.attachments import attachments
from reporter.book import Book
from reporter.configurations import Configuration, configurations
from reporter.dossier import Figure
from reporter.load import open_records

Kit = Any
GPU = "Example GPU 24 GB"


def measured(runs: Path) -> dict[str, Configuration]:
    with open_records([runs]) as store:
        evidence = figures.build(store)
    found = configurations(Book(evidence.figures, evidence.tables), evidence.lock.trial)
    return {configuration.variant: configuration for configuration in found}


def test_the_corpus_time_is_the_exact_median_over_all_complete_passes(tmp_path: Path, campaign_records: Kit) -> None:
    written = campaign_records(tmp_path / "runs", repetitions=3, reference_runs=2)
    with open_records([written.runs]) as store:
        rows = store.con.execute(
            "select variant_name, phase_ns['measure'] from stg_pass_begin join stg_pass_end using (run_id, pass_id)"
        ).fetchall()
    times = {name: sorted(ns for other, ns in rows if other == name) for name in ("fp32", "bf16")}
    found = measured(written.runs)
    assert found["bf16"].corpus_ns == times["bf16"][1]
    assert found["fp32"].corpus_ns == Fraction(sum(times["fp32"]), 2)
    assert (found["bf16"].repetition_count, found["fp32"].repetition_count) == (3, 2)


def test_the_peak_is_the_widest_scope_of_the_device_and_never_a_sum(tmp_path: Path, campaign_records: Kit) -> None:
    kit = campaign_records
    device = kit.device(name=GPU, kind="cuda", memory_bytes=24 * 2**30)
    peak = measured(kit(tmp_path / "runs", device=device).runs)["bf16"].peak
    assert peak is not None
    assert peak.peak.memory_scope == "device"
    assert peak.peak.peak_bytes == kit.bf16.peak_bytes + 900 * 2**20
    assert peak.capacity_bytes == 24 * 2**30
    assert peak.figure_id.endswith("~cuda:0~device~measure/peak_bytes")


def test_on_a_processor_the_peak_is_the_workers_resident_memory(tmp_path: Path, campaign_records: Kit) -> None:
    found = measured(campaign_records(tmp_path / "runs").runs)["fp32"]
    assert found.peak is not None
    assert (found.peak.peak.memory_scope, found.peak.peak.peak_bytes) == ("host", campaign_records.fp32.peak_bytes)
    assert found.machine == Machine("Example CPU 2 cores", 1, 16 * 2**30, None, used_count=1)


def test_subsets_count_what_the_protocol_expects_and_failures_name_cause_and_phase(
    tmp_path: Path, campaign_records: Kit
) -> None:
    kit = campaign_records
    variants = [kit.fp32, kit.variant(name="bf16", missing=frozenset({0})), kit.variant(name="x", failure="crashed")]
    found = measured(kit(tmp_path / "runs", variants=variants, critical=6).runs)
    assert found["fp32"].subsets == {"critical": (5, 6)}
    assert (found["bf16"].returned_documents, found["bf16"].expected_documents) == (23, 24)
    assert found["bf16"].subsets == {"critical": (5, 6)}
    assert not found["bf16"].is_complete
    assert found["x"].failed == ("crashed", "load")
    assert (found["x"].accepted, found["x"].corpus_ns) == (None, None)


def test_a_subset_rule_that_another_repetition_flips_is_not_stable(
    tmp_path: Path, campaign_records: Kit, said: Any
) -> None:
    kit = campaign_records
    gates = Gates(subsets=[SubsetGate(subset="critical", min_accepted_percent="100")])
    fp32 = kit.variant(name="fp32", changed_in_repeat=frozenset({2}))
    dossier = build_dossier([kit(tmp_path / "runs", variants=[fp32, kit.variant(name="bf16")], gates=gates).runs], None)
    assert [said(dossier, n) for n in dossier.notices if n.key == "notice_not_stable"] == [
        "Not stable: fp32 · 1 passes or fails the rule on critical depending on the repetition."
    ]


def test_a_candidate_is_joined_by_variant_device_batch_and_concurrency(
    tmp_path: Path, campaign_records: Kit, campaign_text: Any
) -> None:
    kit = campaign_records
    runs = kit(tmp_path / "runs", variants=[kit.fp32, kit.variant(name="bf16", batch=8, concurrency=8)]).runs
    path = campaign_text.candidate("B", "bf16").write()
    path.write_text(path.read_text(encoding="utf-8").replace('label = "B"', 'label = "B"\nbatch = 4'), encoding="utf-8")
    assert read_campaign(path).campaign.candidates[0].batch == 4
    statuses = {r.labels["label"]: r.labels["status"] for r in build_dossier([runs], path).tables["candidates"].rows}
    assert statuses == {"bf16 · b8 c8": "not_priced", "fp32 · 1": "reference", "B": "not_measured"}


@pytest.fixture
def two_machines(tmp_path: Path, campaign_records: Kit) -> Path:
    """Two machines whose devices have one name and different memory."""
    for host, gib in (("a", 24), ("b", 48)):
        device = campaign_records.device(name=GPU, kind="cuda", host=host, memory_bytes=gib * 2**30)
        campaign_records(tmp_path / "runs", device=device, documents=4, critical=1)
    return tmp_path / "runs"


def test_each_machine_of_one_device_name_keeps_its_own_memory(two_machines: Path) -> None:
    with open_records([two_machines]) as store:
        evidence = figures.build(store)
        placed = store.con.execute("""
            select configuration_key, device_memory_bytes
            from configurations inner join stg_device using (environment_id)
            where device_kind <> 'cpu'""").fetchall()
    found = configurations(Book(evidence.figures, evidence.tables), evidence.lock.trial)
    assert {c.key: c.machine.memory_bytes for c in found} == dict(placed)
    assert sorted(c.peak.capacity_bytes or 0 for c in found if c.peak) == [24 * 2**30] * 2 + [48 * 2**30] * 2
    assert {c.machine.device_count for c in found} == {1}


def test_a_candidate_that_fits_two_machines_is_refused_until_it_names_one(
    two_machines: Path, campaign_text: Any
) -> None:
    path = campaign_text.candidate("B", "bf16", device=GPU).write()
    with pytest.raises(Refused) as refusal:
        build_dossier([two_machines], path)
    (finding,) = refusal.value.findings
    line = path.read_text(encoding="utf-8").splitlines().index("[[candidate]]") + 1
    assert (finding.rule, finding.file, finding.line) == ("ambiguous-candidate", path, line)
    keys = re.findall(r"bf16~example-gpu-24-gb~b1~c1~[0-9a-f]{6}", finding.message)
    assert len(keys) == 2
    for key in keys:
        text = path.read_text(encoding="utf-8").split("configuration =")[0].rstrip()
        path.write_text(f'{text}\nconfiguration = "{key}"\n', encoding="utf-8")
        rows = build_dossier([two_machines], path).tables["candidates"].rows
        assert [row.key for row in rows if row.labels["label"] == "B"] == [key]


def test_equal_products_of_batch_and_concurrency_have_labels_of_their_own(
    tmp_path: Path, campaign_records: Kit
) -> None:
    kit = campaign_records
    for start, load in (("2026-01-02T09:00:00", {"batch": 4}), ("2026-01-03T09:00:00", {"concurrency": 4})):
        variants = [kit.fp32, kit.variant(name="bf16", dtype="bfloat16", **load)]
        kit(tmp_path / "runs", documents=4, critical=1, variants=variants, start=start)
    labels = [row.labels["label"] for row in build_dossier([tmp_path / "runs"], None).tables["candidates"].rows]
    assert labels == ["bf16 · b4", "bf16 · c4", "fp32 · 1"]


def test_a_configuration_whose_label_a_candidate_took_prints_its_key(
    tmp_path: Path, campaign_records: Kit, campaign_text: Any
) -> None:
    runs = campaign_records(tmp_path / "runs").runs
    dossier = build_dossier([runs], campaign_text.candidate("bf16 · 1", "fp32").write())
    labels = {row.labels["variant"]: row.labels["label"] for row in dossier.tables["quality"].rows}
    assert labels == {"fp32": "bf16 · 1", "bf16": "bf16~example-cpu-2-cores~b1~c1"}


def test_one_id_is_one_figure_for_good() -> None:
    figure = Figure(figure_id="a/b/c", value=1, unit="count", basis="measured")
    book = Book({}, {})
    assert book.add(figure) == book.add(figure) == "a/b/c"
    with pytest.raises(ValueError, match="two figures"):
        book.given("a/b/c", 2, "count", "measured")


def test_each_plan_of_the_runs_has_its_lock_attached(tmp_path: Path, campaign_records: Kit) -> None:
    kit = campaign_records
    kit(tmp_path / "runs")
    kit(tmp_path / "runs", repetitions=2, start="2026-01-03T09:00:00")
    (tmp_path / "locks").mkdir()
    names = sorted(path.name for path in attachments([tmp_path / "runs"], None, tmp_path / "locks"))
    assert sum(name.endswith(".lock.json") for name in names) == 2
    assert len(names) == 4
