"""Metrics pages become records: real pages whole, odd pages without a fall, numbers that are none left out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract.records import MAX_LINE_BYTES, decode_record, encode_record
from collector.engine_timings import EngineTimings, engine_timings
from collector.scrapes import MAX_METRICS, PROCESS_START, Sample, claims_of_metrics, parse_metrics, samples
from collector.scrapes import scrape_record as record_of

PAGES = Path(__file__).parent / "fixtures" / "metrics"


def page(name: str) -> str:
    return (PAGES / name).read_text(encoding="utf-8")


def test_a_real_page_of_vllm_gives_sums_counts_and_gauges_of_its_kind_alone() -> None:
    after = parse_metrics(page("vllm-0.32.0-after.txt"), "vllm")
    assert after["vllm:request_success_total"] == 16.0  # over its five reasons
    assert after["vllm:request_queue_time_seconds_sum"] == 6.216791714999999
    assert after["vllm:request_queue_time_seconds_count"] == 16.0
    assert after["vllm:e2e_request_latency_seconds_bucket" + '{le="+Inf"}'] == 16.0
    assert after[PROCESS_START] > 1.7e9
    assert not any("_created" in key or "iteration_tokens" in key or key.startswith("python_") for key in after)


def test_while_requests_run_the_gauges_tell_how_many_run_and_wait() -> None:
    scrape = record_of("during", page("vllm-0.32.0-during.txt"), kind="vllm", offset_ns=5)
    assert scrape is not None
    assert scrape.engine_metrics["vllm:num_requests_running"] == 7.0
    assert scrape.engine_metrics["vllm:num_requests_waiting"] == 4.0
    assert 0.0 < scrape.engine_metrics["vllm:kv_cache_usage_perc"] < 0.05
    assert not any("_bucket" in key for key in scrape.engine_metrics)


def test_a_real_page_of_llamacpp_gives_its_counters_of_seconds() -> None:
    metrics = parse_metrics(page("llamacpp.txt"), "llamacpp")
    assert metrics["llamacpp:prompt_seconds_total"] == 0.269064
    assert metrics["llamacpp:prompt_tokens_total"] == 38.0
    assert metrics["llamacpp:prompt_tokens_cached_total"] == 36.0
    assert "llamacpp:predicted_tokens_seconds" not in metrics


def test_the_cache_that_a_server_took_is_a_claim_from_its_metrics() -> None:
    claims = claims_of_metrics(page("vllm-0.32.0-after.txt"), "vllm")
    assert claims["cache_capacity_tokens"] == "23296"
    assert claims["memory_fraction"] == "0.92"
    assert claims_of_metrics(page("llamacpp.txt"), "llamacpp") == {}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("a 1", Sample("a", {}, 1.0)),
        ("a 1\r", Sample("a", {}, 1.0)),
        ("a{} 1", Sample("a", {}, 1.0)),
        ('a{x="y",} 2.5e-3 1395066363000', Sample("a", {"x": "y"}, 0.0025)),
        ('a{ x = "y" , z="1" } +4', Sample("a", {"x": "y", "z": "1"}, 4.0)),
        (r'a{path="C:\\D\n",q="\"},{"} 1', Sample("a", {"path": "C:\\D\n", "q": '"},{'}, 1.0)),
        ('a_bucket{le="+Inf"} 3 # {trace_id="ab"} 0.67 1.5', Sample("a_bucket", {"le": "+Inf"}, 3.0)),
        ('{"a.b",x="y"} 1', Sample("a.b", {"x": "y"}, 1.0)),
        ('a{x="\u2028\x0b"} 1', Sample("a", {"x": "\u2028\x0b"}, 1.0)),
    ],
)
def test_a_line_of_either_format_is_read(line: str, wanted: Sample) -> None:
    assert list(samples(line)) == [wanted]


@pytest.mark.parametrize(
    "line", ["", "# HELP a b", "# EOF", "a", 'a{x="y" 1', "a one", "1 a", "a{x=y} 1", "a 1_000", "a 0x10", 'a{x="y"}']
)
def test_a_line_that_is_no_sample_is_passed_over_and_the_next_is_read(line: str) -> None:
    assert list(samples(f"{line}\nb 2\n")) == [Sample("b", {}, 2.0)]


def test_a_number_that_is_none_never_enters_a_record() -> None:
    text = (
        "vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\nvllm:prompt_tokens_total 5\n"
        'vllm:generation_tokens_total{engine="0"} 7\nvllm:generation_tokens_total{engine="1"} nan\n'
    )
    assert parse_metrics(text, "vllm") == {"vllm:prompt_tokens_total": 5.0}
    assert [s.value for s in samples("a -Inf")] == [-math.inf]


def test_engines_behind_one_page_add_up_and_the_fullest_cache_counts() -> None:
    text = (
        'vllm:num_requests_running{engine="0"} 3\nvllm:num_requests_running{engine="1"} 4\n'
        'vllm:kv_cache_usage_perc{engine="0"} 0.25\nvllm:kv_cache_usage_perc{engine="1"} 0.75\n'
        'vllm:e2e_request_latency_seconds_bucket{engine="0",le="1.0"} 2\n'
        'vllm:e2e_request_latency_seconds_bucket{engine="1",le="1.0"} 5\n'
    )
    assert parse_metrics(text, "vllm") == {
        "vllm:num_requests_running": 7.0,
        "vllm:kv_cache_usage_perc": 0.75,
        'vllm:e2e_request_latency_seconds_bucket{le="1.0"}': 7.0,
    }


def test_of_a_metric_with_stages_only_the_stage_that_is_meant_is_kept_and_every_request_once() -> None:
    name = "sglang:per_stage_req_latency_seconds_sum"
    text = (
        f'{name}{{stage="prefill_forward",tp_rank="0"}} 3.5\n{name}{{stage="prefill_forward",tp_rank="1"}} 3.5\n'
        f'{name}{{stage="chunked_prefill",tp_rank="0"}} 9\nsglang:num_running_reqs{{tp_rank="1"}} 8\n'
    )
    assert parse_metrics(text, "sglang") == {name + '{stage="prefill_forward"}': 3.5}


def test_a_page_of_an_unknown_kind_is_kept_as_it_is_and_never_grows_without_bound() -> None:
    text = "".join(f"m{number} 1\n" for number in range(2000)) + 'h_bucket{le="1"} 2\npython_info 1\n'
    kept = parse_metrics(text)
    assert len(kept) == MAX_METRICS
    assert "m0" in kept


def test_a_scrape_goes_into_a_record_and_out_of_it_unchanged() -> None:
    scrape = record_of("after", page("vllm-0.32.0-after.txt"), kind="vllm", offset_ns=-4, pass_id="0" * 16)
    assert scrape is not None
    assert scrape.offset_ns == 0
    line = encode_record(scrape)
    assert len(line) < MAX_LINE_BYTES / 50
    told = json.loads(line)["engine_metrics"]
    assert told == scrape.engine_metrics
    assert all(math.isfinite(value) for value in told.values())
    assert '"kind":"scrape"' in line.decode()
    with pytest.raises(Exception, match="run_id"):
        decode_record(line)  # the journal fills the envelope


@pytest.mark.parametrize("text", [None, "", "<html>404</html>", "# nothing here\n"])
def test_a_page_that_tells_nothing_makes_no_record(text: str | None) -> None:
    assert record_of("before", text, kind="vllm", offset_ns=0) is None


@given(st.text(alphabet=st.sampled_from('ab{}="\\,# \n\r1.e+-NaN\u2028'), max_size=200))
def test_no_page_whatsoever_makes_the_parser_fall(text: str) -> None:
    assert all(math.isfinite(value) for value in parse_metrics(text).values())


LLAMACPP = {"cache_n": 36, "prompt_n": 1, "prompt_ms": 13.565, "predicted_n": 6, "predicted_ms": 69.14}
VLLM = {"time_to_first_token_ms": 240.45, "generation_time_ms": 379.973, "queue_time_ms": 0.047, "mean_itl_ms": 75.99}


def test_timings_of_a_response_become_nanoseconds_of_the_phase_that_they_really_are() -> None:
    assert engine_timings("llamacpp", LLAMACPP) == EngineTimings(None, 13_565_000, 69_140_000)
    assert engine_timings("vllm", VLLM) == EngineTimings(47_000, 240_450_000, 379_973_000)
    assert engine_timings("vllm", {"choices": [], "metrics": VLLM}).prefill_ns == 240_450_000


@pytest.mark.parametrize("told", [None, [], "x", {}, {"metrics": None}, {"metrics": {"queue_time_ms": None}}])
def test_a_response_without_timings_tells_none(told: object) -> None:
    assert engine_timings("vllm", told) == EngineTimings()


@pytest.mark.parametrize("value", [True, "3", -1.0, math.nan, math.inf, 1e12])
def test_a_duration_that_cannot_be_one_is_none(value: object) -> None:
    assert engine_timings("llamacpp", {"prompt_ms": value, "predicted_ms": 2}) == EngineTimings(None, None, 2_000_000)


def test_a_kind_without_timings_on_its_responses_tells_none() -> None:
    assert engine_timings("tgi", {"timings": LLAMACPP, "prompt_ms": 3}) == EngineTimings()
