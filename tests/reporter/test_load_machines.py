"""One campaign on two machines: in process on one, behind a server that was found by its url on the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from served_campaign import LoadScript, ServerScript, write_served

from reporter.assemble import build_dossier
from reporter.check import check

Kit = Any
HERE, AWAY = "example-cpu-2-cores", "example-gpu"


def test_a_served_run_of_another_machine_joins_the_one_in_process(campaign_records: Kit, tmp_path: Path) -> None:
    kit = campaign_records
    runs = tmp_path / "runs"
    write_served(kit, runs, servers=(), documents=24)
    write_served(
        kit, runs, servers=(ServerScript(loads=(LoadScript(), LoadScript(concurrency=4))),), documents=24,
        reference_runs=0, device=kit.device(name="Example GPU", kind="cuda", host="b"), start="2026-01-03T09:00:00",
        seed=2,
    )  # fmt: skip
    assert check([runs]).findings == []
    dossier = build_dossier([runs], None, cache_dir=tmp_path / "cache")
    compared = {row.key: row.labels for row in dossier.tables["comparisons"].rows}
    for key in (f"vllm~{AWAY}~b1~c1", f"vllm~{AWAY}~b1~c4"):
        assert compared[key]["reference_key"] == f"fp32~{HERE}~b1~c1", "the only reference is the other machine's"
        assert compared[key]["factor"] == "several", "machine and engine both differ: nothing explains a difference"
    assert {row.key for row in dossier.tables["paired"].rows} == {f"vllm~{AWAY}~b1~c1", f"vllm~{AWAY}~b1~c4"}
    missing = {(row.labels["variant"], row.labels["device"]) for row in dossier.tables["missing_passes"].rows}
    assert missing == {("fp32", "Example GPU")}, "a plan's reference on the machine where it did not run"
    verdicts = {row.key: row.sentences[0].key for row in dossier.tables["candidates"].rows}
    assert verdicts[f"vllm~{AWAY}~b1~c4"] == "verdict_meets_rules"
    assert {"notice_plans", "notice_missing"} <= {notice.key for notice in dossier.notices}
