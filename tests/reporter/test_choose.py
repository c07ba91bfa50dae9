"""choice.json names what was chosen by its keys and why every other was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reporter.assemble import build_dossier
from reporter.choose import choose

Kit = Any


def test_a_choice_names_the_configuration_the_records_and_every_reason(
    tmp_path: Path, campaign_records: Kit, campaign_text: Any
) -> None:
    kit = campaign_records
    bad = kit.variant(name="int4", outcomes=dict.fromkeys(range(6), "wrong"))
    written = kit(tmp_path / "runs", variants=[kit.fp32, kit.bf16, bad])
    text = campaign_text.candidate("a", "fp32", "dear").candidate("b", "bf16", "cheap").candidate("c", "int4", "cheap")
    path = text.offer("dear", {3: "300.00"}).offer("cheap", {3: "100.00"}).write()
    dossier = build_dossier([written.runs], path)
    choice = json.loads(choose(dossier))
    assert choice["protocol_id"] == written.lock.protocol_id
    assert choice["plan_ids"] == [written.lock.plan_id]
    assert choice["records_digest"] == dossier.records_digest
    assert choice["objective_digest"] == dossier.objective_digest is not None
    assert {key: choice["chosen"][key] for key in ("label", "variant", "device", "batch", "configuration_key")} == {
        "label": "b", "variant": "bf16", "device": "Example CPU 2 cores", "batch": 1,
        "configuration_key": "bf16~example-cpu-2-cores~b1~c1",
    }  # fmt: skip
    others = {entry["label"]: entry for entry in choice["others"]}
    assert {label: entry["status"] for label, entry in others.items()} == {"a": "reference", "c": "rejected"}
    reason = others["c"]["reasons"][0]
    assert (reason["key"], reason["values"]) == ("verdict_rejected_lost", {"lost": 3, "allowed": 1})
    assert reason["text"].startswith("rejected")
    assert "3" in reason["text"]
    assert all(each["text"] for entry in [*choice["others"], choice["chosen"]] for each in entry["reasons"])
    assert choice["chosen"]["label"] in choice["reason"]["text"]
    assert "{" not in choice["reason"]["text"]
    assert others["a"]["reasons"][0]["values"] == {"difference": 20_000}
    assert choose(dossier) == choose(build_dossier([written.runs], path))


def test_no_choice_is_written_as_no_choice_with_its_reason(tmp_path: Path, campaign_records: Kit) -> None:
    choice = json.loads(choose(build_dossier([campaign_records(tmp_path / "runs").runs], None)))
    assert choice["chosen"] is None
    assert choice["reason"]["key"] == "recommend_none_without_campaign"
    assert choice["reason"]["values"] == {"qualified": 2, "measured": 2}
    assert [entry["label"] for entry in choice["others"]] == ["bf16 · 1", "fp32 · 1"]
