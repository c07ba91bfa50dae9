"""Rising, holding, falling: which requests are steady, and how many were really being processed, from raw rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from served_campaign import LoadScript, Served, ServerScript, write_served

from reporter import figures
from reporter.assemble import dossier_of
from reporter.dossier import Dossier, Row
from reporter.load import Store, open_records

Kit = Any
CPU = "example-cpu-2-cores"
LOADS = (
    LoadScript(),
    LoadScript(concurrency=4, retried={9: 2}, outcomes={3: "failed", 11: "empty", 12: "too_long"}),
    LoadScript(concurrency=10),
    LoadScript(concurrency=20),
    LoadScript(concurrency=40),
    LoadScript(concurrency=64, rate_per_s=5.0, late={7: 90_000_000}),
    LoadScript(concurrency=2, tokens_per_chunk=64),
    LoadScript(concurrency=3, output_tokens=1),
)


class Loaded(NamedTuple):
    """One campaign of six loads, opened, and its raw lines."""

    served: Served
    store: Store
    dossier: Dossier
    lines: list[dict[str, Any]]

    def tries(self, label: str) -> list[dict[str, Any]]:
        """Every try of one pass that was sent while measuring."""
        wanted = self.served.pass_ids[label]
        requests = [line for line in self.lines if line["kind"] == "request" and line["pass_id"] == wanted]
        return [r for r in requests if r["phase"] == "measure" and r.get("sent_ns") is not None]

    def row(self, table: str, key: str) -> Row:
        return next(row for row in self.dossier.tables[table].rows if row.key == key)

    def cells(self, table: str, key: str) -> dict[str, Any]:
        return {name: self.dossier.figures[ref].value for name, ref in self.row(table, key).cells.items()}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Iterator[Loaded]:
    runs = tmp_path_factory.mktemp("windows") / "runs"
    served = write_served(campaign_records, runs, servers=[ServerScript(loads=LOADS)], documents=24, reference_runs=1)
    lines = [msgspec.json.decode(line) for line in served.files.path.read_bytes().splitlines()]
    with open_records([runs], cache_dir=tmp_path_factory.mktemp("cache")) as store:
        yield Loaded(served, store, dossier_of(store, figures.build(store), None), lines)


def steady_time(tries: list[dict[str, Any]], concurrency: int) -> tuple[int, int]:
    """The closed loop's steady time, found by walking through its events one by one."""
    events = sorted([(r["sent_ns"], 1) for r in tries] + [(r["done_ns"], -1) for r in tries])
    under_way, begin = 0, -1
    for at, change in events:
        under_way += change
        if under_way == concurrency and begin < 0:
            begin = at
    last = max(r["sent_ns"] for r in tries)
    return begin, min(r["done_ns"] for r in tries if r["done_ns"] >= last)


@pytest.mark.parametrize(("label", "concurrency"), [("vllm/1/1", 1), ("vllm~c4/1/1", 4), ("vllm~c10/1/1", 10)])
def test_a_request_of_a_closed_loop_is_steady_when_sent_and_ended_while_the_loop_was_full(
    loaded: Loaded, label: str, concurrency: int
) -> None:
    tries = loaded.tries(label)
    begin, end = steady_time(tries, concurrency)
    inside = [r for r in tries if r["is_final"] and r["sent_ns"] >= begin and r["done_ns"] <= end]
    found = loaded.cells("load_series", f"vllm~{CPU}~b1~c{concurrency}~r1")
    assert found["steady_ns"] == end - begin
    assert found["steady_count"] == len(inside)
    assert found["ramp_ns"] + found["steady_ns"] + found["drain_ns"] == found["wall_ns"]
    times = sorted(r["last_token_ns"] - r["intended_ns"] for r in inside if r["request_outcome"] == "completed")
    latency = loaded.cells("load_latency", f"vllm~{CPU}~b1~c{concurrency}~r1~e2e_s~steady")
    assert latency["valued_count"] == len(times)
    assert latency["request_count"] == len(inside)
    for percent in (50, 90, 95):
        assert latency[f"p{percent}_s"] == pytest.approx(times[math.ceil(percent * len(times) / 100) - 1] / 1e9)


def test_at_one_request_at_a_time_every_request_is_steady(loaded: Loaded) -> None:
    found = loaded.cells("load_series", f"vllm~{CPU}~b1~c1~r1")
    assert found["steady_count"] == found["request_count"] == 24
    whole = loaded.row("load_latency", f"vllm~{CPU}~b1~c1~r1~e2e_s~whole")
    assert (whole.labels["is_headline"], whole.labels["is_shown"]) == ("no", "no")


@pytest.mark.parametrize(("label", "concurrency"), [("vllm/1/1", 1), ("vllm~c4/1/1", 4), ("vllm~c10/1/1", 10)])
def test_the_three_counts_are_the_batch_what_was_submitted_and_what_overlapped_between_sending_and_last_token(
    loaded: Loaded, label: str, concurrency: int
) -> None:
    tries = loaded.tries(label)
    begin, end = steady_time(tries, concurrency)
    spans = [(r["sent_ns"], r.get("last_token_ns") or r["done_ns"]) for r in tries]
    overlap = sum(max(0, min(last, end) - max(first, begin)) for first, last in spans)
    most = max(sum(first <= at < last for first, last in spans) for at, _ in spans)
    found = loaded.cells("load_series", f"vllm~{CPU}~b1~c{concurrency}~r1")
    assert (found["batch"], found["concurrency"]) == (1, concurrency)
    assert found["processed_mean"] == pytest.approx(overlap / (end - begin))
    assert found["processed_max"] == most <= concurrency
    assert concurrency - 0.2 < found["processed_mean"] <= concurrency


def test_an_open_loop_is_steady_from_its_first_arrival_after_the_ramp_to_its_last(loaded: Loaded) -> None:
    tries = loaded.tries("vllm~r5/1/1")
    wall = max(r["done_ns"] for r in tries) - min(r["sent_ns"] for r in tries)
    mean = sum(r["done_ns"] - r["sent_ns"] for r in tries) / wall
    settled = sorted(r["done_ns"] for r in tries)[math.ceil(mean) - 1]
    begin = min(r["intended_ns"] for r in tries if r["intended_ns"] >= settled)
    end = max(r["intended_ns"] for r in tries)
    found = loaded.cells("load_series", f"vllm~{CPU}~r5~r1")
    assert found["steady_ns"] == end - begin
    assert found["steady_count"] == sum(begin <= r["intended_ns"] <= end for r in tries)
    late = [r for r in tries if begin <= r["intended_ns"] <= end and r["done_ns"] > end]
    assert late, "those still under way when the arrivals end are the slow ones: they must count"


def test_open_loop_latency_counts_from_the_intended_send_and_says_what_of_it_was_the_clients(loaded: Loaded) -> None:
    tries = loaded.tries("vllm~r5/1/1")
    delays = sorted(r["sent_ns"] - r["intended_ns"] for r in tries)
    found = loaded.cells("load_latency", f"vllm~{CPU}~r5~r1~send_delay_s~whole")
    assert found["p50_s"] == pytest.approx(delays[11] / 1e9)
    assert found["p95_s"] == pytest.approx(delays[math.ceil(0.95 * 24) - 1] / 1e9)
    times = sorted(r["first_token_ns"] - r["intended_ns"] for r in tries)
    assert loaded.cells("load_latency", f"vllm~{CPU}~r5~r1~ttft_s~whole")["p50_s"] == pytest.approx(times[11] / 1e9)


def test_too_few_steady_requests_leave_the_whole_run_with_its_label_and_the_reason(loaded: Loaded) -> None:
    rows = [r for r in loaded.dossier.tables["load_latency"].rows if r.key.startswith(f"vllm~{CPU}~b1~c20~r1~e2e_s")]
    few = {r.labels["measured_window"]: r.labels for r in rows}
    steady = loaded.cells("load_series", f"vllm~{CPU}~b1~c20~r1")["steady_count"]
    assert 0 < steady < 6
    assert few["whole"]["is_headline"] == "yes"
    assert few["whole"]["why"] == "too_few_steady"
    assert few["steady"]["is_headline"] == "no"
    flags = {r.labels["flag"] for r in loaded.dossier.tables["load_flags"].rows if "c20" in r.key}
    assert flags == {"too_few_steady"}


def test_a_loop_that_was_never_full_has_no_steady_time_and_says_so(loaded: Loaded) -> None:
    found = loaded.row("load_series", f"vllm~{CPU}~b1~c40~r1")
    figure = loaded.dossier.figures[found.cells["steady_ns"]]
    assert (figure.value, figure.missing_reason) == (None, "never_steady")
    flags = {r.labels["flag"] for r in loaded.dossier.tables["load_flags"].rows if "c40" in r.key}
    assert flags == {"never_steady"}


def test_intervals_exist_where_there_are_enough_values_and_only_there(loaded: Loaded) -> None:
    row = loaded.row("load_latency", f"vllm~{CPU}~b1~c1~r1~e2e_s~steady")
    held = {name: loaded.dossier.figures[row.cells[name]].interval for name in ("p50_s", "p90_s", "p95_s")}
    assert held["p50_s"] is not None
    assert held["p50_s"].method == "order_statistics"
    assert held["p90_s"] is held["p95_s"] is None
    needs = {r.key: loaded.dossier.figures[r.cells["needed"]].value for r in loaded.dossier.tables["load_needs"].rows}
    assert needs == {"p50": 6, "p90": 36, "p95": 72}


def test_the_reference_in_process_keeps_the_numbers_of_its_own_tables(loaded: Loaded) -> None:
    key = f"fp32~{CPU}~b1~c1"
    before = loaded.cells("latency", f"{key}~e2e_s~all")
    beside = loaded.cells("load_latency", f"{key}~r1~e2e_s~steady")
    assert before["valued_count"] == 24
    assert beside["p50_s"] == before["p50_s"]


def test_tries_that_another_one_follows_are_load_and_no_requests(loaded: Loaded, tmp_path: Path) -> None:
    found = loaded.cells("load_series", f"vllm~{CPU}~b1~c4~r1")
    assert found["retried_tries"] == 2
    assert found["request_count"] == 24
    outcomes = ("completed_requests", "failed_requests", "empty_requests", "too_long_requests")
    assert [found[name] for name in outcomes] == [21, 1, 1, 1]
    assert found["failed_percent"] == pytest.approx(100 * 3 / 24)


@pytest.mark.parametrize("key", [f"fp32~{CPU}~b1~c1~r1", f"vllm~{CPU}~b1~c4~r1"])
def test_a35_the_time_per_further_token_holds_no_prefill_and_both_together_are_the_answer(
    loaded: Loaded, key: str
) -> None:
    rows = loaded.store.con.execute(
        "select ttft_ns, tpot_ns, e2e_ns, output_tokens from load_requests "
        "where pass_key = ? and request_outcome = 'completed'",
        [key],
    ).fetchall()
    assert len(rows) > 20
    for first_ns, further_ns, whole_ns, tokens in rows:
        assert first_ns + further_ns * (tokens - 1) == pytest.approx(whole_ns, rel=1e-6)
    found = loaded.cells("load_latency", f"{key}~tpot_s~whole")
    first = loaded.cells("load_latency", f"{key}~ttft_s~whole")
    assert found["p95_s"] < 0.026, "a prefill of many times as long is in none of them"
    assert first["p50_s"] > 3 * found["p95_s"]


@pytest.mark.parametrize("concurrency", [2, 3])
def test_a09_an_answer_in_one_piece_or_of_one_token_has_no_time_per_further_token(
    loaded: Loaded, concurrency: int
) -> None:
    key = f"vllm~{CPU}~b1~c{concurrency}~r1"
    row = loaded.row("load_latency", f"{key}~tpot_s~whole")
    found = loaded.cells("load_latency", f"{key}~tpot_s~whole")
    assert (found["valued_count"], found["request_count"], found["p50_s"]) == (0, 24, None), "null and never zero"
    assert loaded.dossier.figures[row.cells["p50_s"]].missing_reason == "not_exposed_by_engine"
    assert loaded.cells("load_latency", f"{key}~e2e_s~whole")["valued_count"] == 24
