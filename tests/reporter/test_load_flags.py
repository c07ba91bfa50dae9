"""What must be known of a load: each doubt is said where its numbers stand, and keeps what it must out of a ranking."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import pytest
from served_campaign import LoadScript, Served, ServerScript, write_served

from collector.contract.protocol import Gates
from reporter.assemble import build_dossier
from reporter.check import check
from reporter.dossier import Dossier, Row, Sentence

Kit = Any
CPU = "example-cpu-2-cores"
MS = 1_000_000
EMPTY = dict.fromkeys(range(23), "empty") | {23: "lost"}
REFUSED = dict.fromkeys(range(0, 40, 3), "failed")
CAMPAIGN = """format = 1
question = "Which?"
dossier_id = "D-1"
as_of = 2026-01-31
issued = 2026-01-31
corpora_wanted = 1
documents_per_corpus = 40
[objective]
prefer = "fastest_corpus"
tie_percent = "0"
[[offer]]
id = "o1"
provider = "P"
device = "Example CPU 2 cores"
pricing_class = "quote"
currency = "EUR"
price_3_days = "540.00"
tax_percent = "19"
basis = "quoted"
source = "quote 17"
retrieved = 2026-01-05
valid_until = 2026-02-14
"""
CANDIDATE = """[[candidate]]
id = "{name}"
label = "{name}"
variant = "{name}"
device = "Example CPU 2 cores"
concurrency = {concurrency}
offers = ["o1"]
"""
PLAIN = LoadScript()
SERVERS = (
    # each load of a server has one thing that must be known of it
    ServerScript(
        name="steady",
        loads=(
            PLAIN, LoadScript(concurrency=2, outcomes=EMPTY),
            LoadScript(concurrency=4, is_limit=True, limit_reasons=("processor", "loop_lag")),
            LoadScript(
                concurrency=64, rate_per_s=4.0, late_ns=30 * MS, is_limit=True, limit_reasons=("late_sends",)
            ),
        ),
    ),
    ServerScript(
        name="thinking",
        loads=(
            LoadScript(tokens_per_chunk=4, output_tokens=40),
            LoadScript(concurrency=2, thinking_tokens=10, outcomes={4: "in_reasoning", 9: "in_reasoning"}),
        ),
    ),
    ServerScript(
        name="counting",
        loads=(
            LoadScript(count_source="none"), LoadScript(concurrency=2, count_source="retokenized"),
            LoadScript(concurrency=4, estimated=frozenset(range(10))), LoadScript(concurrency=8, server_prompt_gap=300),
        ),
    ),
    ServerScript(
        name="prompting",
        loads=(
            LoadScript(cached_share=0.9), LoadScript(concurrency=2, evidence="differs", has_token_hmac=False),
            LoadScript(concurrency=4, evidence="rendered", has_token_hmac=False),
            LoadScript(concurrency=8, evidence="rendered"),
        ),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Served:
    runs = tmp_path_factory.mktemp("flags") / "runs"
    return write_served(campaign_records, runs, servers=SERVERS, documents=40, reference_runs=1)


@pytest.fixture(scope="module")
def dossier(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Dossier:
    return build_dossier([served.files.runs], None, cache_dir=tmp_path_factory.mktemp("cache"))


def ranked(kit: Kit, folder: Path, loads: dict[str, LoadScript], **options: Any) -> Dossier:
    """The dossier of servers with one load each, all of them candidates, the fastest corpus preferred."""
    servers = [ServerScript(name=name, loads=(load,)) for name, load in loads.items()]
    served = write_served(kit, folder / "runs", servers=servers, documents=40, **options)
    candidates = [CANDIDATE.format(name=name, concurrency=load.concurrency) for name, load in loads.items()]
    (folder / "campaign.toml").write_text(CAMPAIGN + "".join(candidates), encoding="utf-8")
    return build_dossier([served.files.runs], folder / "campaign.toml", cache_dir=folder / "cache")


def row(dossier: Dossier, table: str, key: str) -> Row:
    return next(row for row in dossier.tables[table].rows if row.key == key)


def cells(dossier: Dossier, table: str, key: str) -> dict[str, Any]:
    return {name: dossier.figures[ref].value for name, ref in row(dossier, table, key).cells.items()}


def flags(dossier: Dossier, key: str) -> set[str]:
    return {r.labels["flag"] for r in dossier.tables["load_flags"].rows if r.key.startswith(f"{key}~")}


def statuses(dossier: Dossier) -> dict[str, str]:
    return {r.labels["label"]: r.labels["status"] for r in dossier.tables["candidates"].rows}


def series_key(name: str, concurrency: int) -> str:
    return f"{name}~{CPU}~b1~c{concurrency}~r1"


def test_the_records_break_no_rule_and_a_load_without_a_doubt_has_no_flag(served: Served, dossier: Dossier) -> None:
    assert check([served.files.runs]).findings == []
    assert flags(dossier, series_key("steady", 1)) == set()


def test_a03_empty_answers_are_counted_beside_the_failures_and_stand_in_no_time(dossier: Dossier) -> None:
    found = cells(dossier, "load_series", series_key("steady", 2))
    assert (found["empty_requests"], found["failed_requests"], found["completed_requests"]) == (23, 1, 16)
    assert found["failed_percent"] == pytest.approx(60.0)
    times = cells(dossier, "load_latency", f"{series_key('steady', 2)}~ttft_s~whole")
    assert (times["valued_count"], times["request_count"]) == (16, 40), "the one that broke off had a first token"
    assert times["p50_s"] > 0.05, "neither zero nor pulled towards it by what never came"
    assert {"empty", "failing"} <= flags(dossier, series_key("steady", 2))


def test_a03_a_percentile_of_exactly_zero_is_a_finding(served: Served, tmp_path: Path, campaign_records: Kit) -> None:
    wanted = served.pass_ids["steady~c4/1/1"]

    def edit(_: int, line: dict[str, Any]) -> dict[str, Any]:
        is_one = line["kind"] == "request" and line["pass_id"] == wanted and line["phase"] == "measure"
        return (
            line | dict.fromkeys(("headers_ns", "first_chunk_ns", "first_token_ns"), line["sent_ns"])
            if is_one
            else line
        )

    path = tmp_path / served.files.path.name
    lines = campaign_records.rechain(served.files.path.read_bytes().splitlines(), edit)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    (found,) = [finding for finding in check([path]).findings if finding.rule == "zero-latency"]
    assert wanted in found.message
    assert "exactly 0" in found.message


def test_a04_first_token_and_first_answer_token_are_two_rows_under_two_names(dossier: Dossier) -> None:
    key = series_key("thinking", 2)
    first = cells(dossier, "load_latency", f"{key}~ttft_s~steady")
    answer = cells(dossier, "load_latency", f"{key}~ttfat_s~steady")
    assert answer["p50_s"] - first["p50_s"] == pytest.approx(0.13, abs=0.03), "ten tokens of thinking"
    plain = [r.key for r in dossier.tables["load_latency"].rows if r.labels["metric"] == "ttfat_s"]
    assert all(name.startswith(f"thinking~{CPU}~b1~c2") for name in plain), "only where a model thinks"


def test_a05_cut_off_while_thinking_has_a_first_token_and_no_answer_token_and_stays_in_quality(
    dossier: Dossier,
) -> None:
    key = series_key("thinking", 2)
    answer = cells(dossier, "load_latency", f"{key}~ttfat_s~whole")
    assert (answer["valued_count"], answer["request_count"]) == (38, 40)
    assert cells(dossier, "load_latency", f"{key}~ttft_s~whole")["valued_count"] == 40
    assert cells(dossier, "load_series", key)["cut_thinking_requests"] == 2
    quality = cells(dossier, "quality", key.removesuffix("~r1"))
    assert (quality["document_count"], quality["accepted_documents"], quality["truncated_documents"]) == (40, 38, 2)
    assert "cut_thinking" in flags(dossier, key)


def test_a07_several_tokens_in_a_chunk_are_said_and_no_percentile_per_token_comes_from_gaps(dossier: Dossier) -> None:
    key = series_key("thinking", 1)
    assert cells(dossier, "load_series", key)["tokens_per_chunk"] == pytest.approx(4.0)
    assert "chunks" in flags(dossier, key)
    per_token = cells(dossier, "load_latency", f"{key}~tpot_s~steady")
    gaps = cells(dossier, "load_checks", key)
    assert per_token["p50_s"] == pytest.approx(0.0125 * 36 / 39, rel=0.05), "(last - first) / (tokens - 1)"
    assert gaps["gap_time_s"] == pytest.approx(0.05, rel=0.05)


def test_a08_a_mean_gap_that_contradicts_the_output_rate_at_one_request_at_a_time_is_flagged(dossier: Dossier) -> None:
    key = series_key("thinking", 1)
    found = next(r for r in dossier.tables["load_flags"].rows if r.key == f"{key}~decode_differs")
    said = found.sentences[0].parameters
    assert said["speculative"] == "unknown"
    assert dossier.figures[said["factor"][1:]].value == pytest.approx(39 / 9)
    assert "decode_differs" not in flags(dossier, series_key("steady", 1))
    assert "notice_decode_differs" in {s.key for s in dossier.notices}


def test_a10_estimated_tokens_are_labelled_and_never_mixed_with_the_servers(dossier: Dossier) -> None:
    alone, mixed = series_key("counting", 2), series_key("counting", 4)
    assert cells(dossier, "load_series", alone)["estimated_percent"] == 100
    assert cells(dossier, "load_series", alone)["output_tokens_per_s"] > 0
    assert "estimated" in flags(dossier, alone)
    tokens = row(dossier, "load_series", mixed).cells["output_tokens"]
    assert (dossier.figures[tokens].value, dossier.figures[tokens].missing_reason) == (None, "two_counts")
    assert cells(dossier, "load_series", mixed)["estimated_percent"] == pytest.approx(25.0)
    per_token = cells(dossier, "load_latency", f"{mixed}~tpot_s~whole")
    assert (per_token["valued_count"], per_token["request_count"]) == (30, 40), "the server's counts alone"
    assert "two_counts" in flags(dossier, mixed)
    assert cells(dossier, "durations", mixed)["output_tokens_per_s"] is None


def test_a11_another_count_of_prompt_tokens_by_the_server_is_said_with_both_tokenizers(dossier: Dossier) -> None:
    key = series_key("counting", 8)
    found = cells(dossier, "load_checks", key)
    assert (found["told_prompts"], found["unlike_prompts"], found["prompt_gap_tokens"]) == (40, 40, 300)
    flag = next(r for r in dossier.tables["load_flags"].rows if r.key == f"{key}~prompt_count")
    assert flag.sentences[0].parameters["server"] == "counting 0.32.0"
    assert "prompt_count" not in flags(dossier, series_key("steady", 1))


@pytest.fixture(scope="module")
def rivals(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Dossier:
    """Three servers that would be faster than the plain one, each with a reason not to be ranked before it."""
    hits, queries = "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"
    counted = {"before": {hits: 0.0, queries: 0.0}, "after": {hits: 2700.0, queries: 3000.0}}
    loads = {
        "reused": LoadScript(concurrency=4, first_token_ns=20 * MS, cached_share=0.9),
        "counted": LoadScript(concurrency=4, first_token_ns=20 * MS, cached_share=None, scrapes=counted),
        "refusing": LoadScript(concurrency=4, first_token_ns=20 * MS, token_gap_ns=3 * MS, outcomes=REFUSED),
        "plain": LoadScript(concurrency=4),
    }
    gates = Gates(min_accepted_percent="50")
    return ranked(campaign_records, tmp_path_factory.mktemp("rivals"), loads, gates=gates)


def verdict(dossier: Dossier, name: str) -> Sentence:
    return next(r for r in dossier.tables["candidates"].rows if r.labels["label"] == name).sentences[0]


def test_a13_reuse_in_a_cold_pass_is_flagged_and_kept_out_of_the_ranking(rivals: Dossier, dossier: Dossier) -> None:
    assert "cache_reuse" in flags(dossier, series_key("prompting", 1))
    assert statuses(rivals)["plain"] == "recommended"
    assert statuses(rivals)["reused"] == "excluded"
    assert verdict(rivals, "reused").key == "verdict_cache_reuse"


def test_a13_reuse_that_only_the_servers_counters_tell_keeps_out_of_the_ranking_too(rivals: Dossier) -> None:
    assert cells(rivals, "load_series", series_key("counted", 4))["cached_percent"] is None
    assert "cache_reuse" in flags(rivals, series_key("counted", 4))
    assert statuses(rivals)["counted"] == "excluded"
    said = verdict(rivals, "counted")
    assert rivals.figures[said.parameters["cached"][1:]].value == pytest.approx(90.0)


def test_a24_a_server_that_refuses_a_third_and_is_quick_with_the_rest_does_not_win(rivals: Dossier) -> None:
    line = cells(rivals, "load_closed", series_key("refusing", 4))
    assert line["failed_percent"] == pytest.approx(35.0)
    assert line["e2e_p50_s"] < cells(rivals, "load_closed", series_key("plain", 4))["e2e_p50_s"]
    assert statuses(rivals)["plain"] == "recommended"
    assert statuses(rivals)["refusing"] == "excluded"
    assert verdict(rivals, "refusing").key == "verdict_failing"


def test_a27_without_a_count_of_tokens_rates_of_tokens_are_absent_and_rates_of_requests_stand(dossier: Dossier) -> None:
    key = series_key("counting", 1)
    found = row(dossier, "load_series", key)
    for column in ("output_tokens", "output_tokens_per_s", "tokens_per_chunk"):
        figure = dossier.figures[found.cells[column]]
        assert (figure.value, figure.missing_reason) == (None, "not_exposed_by_engine"), column
    assert cells(dossier, "load_series", key)["requests_per_s"] > 0
    assert cells(dossier, "durations", key)["output_tokens"] is None
    assert cells(dossier, "load_latency", f"{key}~tpot_s~steady")["p50_s"] is None
    numbers = [f.value for name, f in dossier.figures.items() if name.startswith("load_") and f.value is not None]
    assert min(value for value in numbers if isinstance(value, int | float)) >= 0
    assert "no_count" in flags(dossier, key)


def test_a30_drift_between_first_and_last_run_of_one_configuration_doubts_the_whole_campaign(
    campaign_records: Kit, tmp_path: Path
) -> None:
    slower = {"drifting": 1.25, "holding": 1.04}
    servers = [
        ServerScript(name=name, loads=(LoadScript(concurrency=2, repetitions=2, speed_by_repetition={2: factor}),))
        for name, factor in slower.items()
    ]
    served = write_served(
        campaign_records, tmp_path / "runs", servers=servers, documents=12, critical=0, has_reference_at_end=True,
    )  # fmt: skip
    found = build_dossier([served.files.runs], None, cache_dir=tmp_path / "cache")
    assert [s.parameters["label"] for s in found.notices if s.key == "notice_drift"] == ["drifting · vllm · c2"]
    drift = {r.labels["configuration_key"]: found.figures[r.cells["drift_percent"]].value
             for r in found.tables["load_drift"].rows}  # fmt: skip
    for name, factor in slower.items():
        assert drift[f"{name}~{CPU}~b1~c2"] == pytest.approx(100 * (factor - 1), abs=1)
    assert drift[f"fp32~{CPU}~b1~c1"] < 10


def test_a_client_that_was_the_limit_and_sends_that_left_late_are_said(dossier: Dossier) -> None:
    limits = [r for r in dossier.tables["load_flags"].rows if r.labels["flag"] == "client_limit"]
    assert {r.labels["configuration_key"] for r in limits} == {f"steady~{CPU}~b1~c4"}
    assert [r.sentences[0].parameters["reason"] for r in limits] == ["@limit_processor", "@limit_loop_lag"]
    late = next(r for r in dossier.tables["load_flags"].rows if r.labels["flag"] == "late_sends")
    assert late.labels["configuration_key"] == f"steady~{CPU}~r4"
    assert {"notice_client_limit", "notice_late_sends"} <= {s.key for s in dossier.notices}


@pytest.mark.parametrize(("concurrency", "flag"), [(2, "prompts_differ"), (4, "prompts_unknown"), (8, "")])
def test_answers_to_prompts_that_are_not_shown_to_be_the_references_are_compared_with_none(
    dossier: Dossier, concurrency: int, flag: str
) -> None:
    key = f"prompting~{CPU}~b1~c{concurrency}"
    paired = {r.key for r in dossier.tables["paired"].rows}
    said = next(r for r in dossier.tables["candidates"].rows if r.labels["configuration_key"] == key).sentences[0]
    assert (key in paired) == (not flag)
    assert (said.key == "verdict_other_prompts") == bool(flag)
    assert {name for name in flags(dossier, key) if name.startswith("prompts")} == ({flag} if flag else set())
    evidence = cells(dossier, "load_prompts", key)
    column = {"prompts_differ": "different_documents", "prompts_unknown": "unknown_documents"}.get(
        flag, "same_documents"
    )
    assert evidence[column] == evidence["document_count"] == 40


def test_other_token_ids_than_the_references_differ_although_the_server_confirms_its_own(
    served: Served, campaign_records: Kit, tmp_path: Path
) -> None:
    wanted = served.pass_ids["steady/1/1"]

    def edit(_: int, line: dict[str, Any]) -> dict[str, Any]:
        is_one = line["kind"] == "request" and line["pass_id"] == wanted and line["document_id"] == "doc-003"
        return line | {"prompt_token_hmac": "c" * 64} if is_one else line

    path = tmp_path / served.files.path.name
    lines = campaign_records.rechain(served.files.path.read_bytes().splitlines(), edit)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    found = build_dossier([path], None, cache_dir=tmp_path / "cache")
    evidence = cells(found, "load_prompts", f"steady~{CPU}~b1~c1")
    assert (evidence["same_documents"], evidence["different_documents"]) == (39, 1)
    assert f"steady~{CPU}~b1~c1" not in {r.key for r in found.tables["paired"].rows}


def test_a29_a_wall_clock_that_was_set_is_said_and_no_duration_comes_from_it(
    campaign_records: Kit, tmp_path: Path
) -> None:
    served = write_served(campaign_records, tmp_path / "a" / "runs", servers=[ServerScript(loads=(PLAIN,))],
                          documents=8, critical=0)  # fmt: skip

    middle = next(
        line for line in map(msgspec.json.decode, served.files.path.read_bytes().splitlines())
        if line["kind"] == "request" and line["pass_id"] == served.pass_ids["vllm/1/1"] and line["phase"] == "measure"
    )["seq"]  # fmt: skip

    def edit(_: int, line: dict[str, Any]) -> dict[str, Any]:
        """Set the clock back by ninety seconds in the middle of a pass."""
        at = dt.datetime.fromisoformat(line["written_at"]) - dt.timedelta(seconds=90 * (line["seq"] >= middle))
        return line | {"written_at": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}

    path = tmp_path / served.files.path.name
    lines = campaign_records.rechain(served.files.path.read_bytes().splitlines(), edit)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    dossiers = [build_dossier([each], None, cache_dir=tmp_path / "cache") for each in (served.files.path, path)]
    assert ["notice_clock_step" in {s.key for s in d.notices} for d in dossiers] == [False, True]
    walls = [cells(d, "load_series", series_key("vllm", 1))["wall_ns"] for d in dossiers]
    assert walls[0] == walls[1]


def test_every_flag_is_a_sentence_of_its_own(dossier: Dossier) -> None:
    assert all(len(r.sentences) == 1 for r in dossier.tables["load_flags"].rows)
    assert len({r.key for r in dossier.tables["load_flags"].rows}) == len(dossier.tables["load_flags"].rows)
    assert msgspec.json.encode(dossier)
