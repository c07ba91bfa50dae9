"""The table of server kinds: complete, consistent with itself, and true of pages that real servers gave."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from collector.contract.engine_metrics import CAPABILITIES, record_key
from collector.contract.protocol import ServerKind
from collector.contract.server_kinds import KINDS, ServerKindFacts
from collector.scrapes import samples

PAGES = Path(__file__).parent / "fixtures" / "metrics"
REAL = {"vllm": "vllm-0.32.0-after.txt", "llamacpp": "llamacpp.txt"}
"""One request at a time and twelve at once were answered before these pages were read."""


def test_every_kind_of_the_protocol_has_one_row() -> None:
    assert set(KINDS) == set(get_args(ServerKind))
    assert all(facts.kind == kind for kind, facts in KINDS.items())


@pytest.mark.parametrize("facts", KINDS.values(), ids=list(KINDS))
def test_metrics_have_a_path_a_known_capability_and_a_sentence_about_clock_or_count(facts: ServerKindFacts) -> None:
    assert bool(facts.metrics) == (facts.metrics_path is not None)
    assert set(facts.metrics) <= set(CAPABILITIES)
    for capability, metric in facts.metrics.items():
        assert metric.boundary, capability
        if metric.unit == "seconds":
            assert " clock: " in metric.boundary, capability
            assert metric.type in ("histogram", "counter")


@pytest.mark.parametrize(("kind", "name"), REAL.items())
def test_every_metric_of_a_kind_that_was_run_stands_on_its_real_page(kind: ServerKind, name: str) -> None:
    page = {sample.name for sample in samples((PAGES / name).read_text(encoding="utf-8"))}
    facts = KINDS[kind]
    wanted = {key.partition("{")[0] for metric in facts.metrics.values() for key in metric.record_keys()}
    assert wanted
    assert wanted <= page
    assert {claim.metric for claim in facts.info_claims} <= page


def test_what_no_kind_tells_is_said_nowhere() -> None:
    assert not any(facts.metric("cold_start") for facts in KINDS.values())
    assert KINDS["llamacpp"].metric("queue") is None
    assert KINDS["llamacpp"].metric("finished") is None
    assert KINDS["tgi"].metric("prefill") is None
    assert KINDS["tgi"].metric("cache_use") is None
    assert not KINDS["transformers"].metrics


def test_the_trap_of_vllm_is_told_its_time_to_first_token_on_a_response_is_prefill() -> None:
    timings = KINDS["vllm"].timings
    assert timings is not None
    assert timings.fields_ms["prefill"] == "time_to_first_token_ms"
    assert "the queue is not in it" in timings.boundaries["prefill"]
    assert set(timings.boundaries) == set(timings.fields_ms)


def test_names_in_records_hold_only_the_labels_that_matter_in_one_order() -> None:
    assert record_key("a_sum", {}) == "a_sum"
    assert record_key("a_bucket", {"stage": "x", "le": "0.1"}) == 'a_bucket{le="0.1",stage="x"}'
    prefill = KINDS["sglang"].metric("prefill")
    assert prefill is not None
    assert list(prefill.record_keys()) == [
        'sglang:per_stage_req_latency_seconds_sum{stage="prefill_forward"}',
        'sglang:per_stage_req_latency_seconds_count{stage="prefill_forward"}',
    ]
