"""Loads in the dossier: named apart, open loops never ranked, goodput with what was lost in its denominator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from served_campaign import LoadScript, Served, ServerScript, write_served

from reporter.assemble import build_dossier
from reporter.choose import choose
from reporter.dossier import Dossier
from reporter.render import render
from reporter.sections import absent

Kit = Any
CPU = "example-cpu-2-cores"
SERVERS = (
    ServerScript(
        loads=(
            LoadScript(), LoadScript(concurrency=4), LoadScript(concurrency=8, outcomes={2: "failed"}),
            LoadScript(concurrency=64, rate_per_s=3.0), LoadScript(concurrency=64, rate_per_s=3.0, arrivals="constant"),
        )
    ),
    ServerScript(name="llama", kind="llamacpp", first_token_ns=40_000_000, token_gap_ns=20_000_000),
)  # fmt: skip
CAMPAIGN = """
format = 1
question = "Which server, at how many requests at a time?"
dossier_id = "SD-2026-001"
as_of = 2026-01-31
issued = 2026-01-31
corpora_wanted = 1
documents_per_corpus = 40
[objective]
prefer = "fastest_corpus"
tie_percent = "0"
max_first_token_s = "0.2"
max_answer_s = "0.65"
time_percentile = 50
[[offer]]
id = "o1"
provider = "Example Cloud"
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
CANDIDATE = """
[[candidate]]
id = "{variant} {concurrency}"
label = "{variant} {concurrency}"
variant = "{variant}"
device = "Example CPU 2 cores"
concurrency = {concurrency}
offers = ["o1"]
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Served:
    return write_served(campaign_records, tmp_path_factory.mktemp("series") / "runs", servers=SERVERS, documents=40)


@pytest.fixture(scope="module")
def dossier(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Dossier:
    folder = tmp_path_factory.mktemp("campaign")
    cells = (("vllm", 1), ("vllm", 4), ("llama", 4))
    candidates = [CANDIDATE.format(variant=variant, concurrency=count) for variant, count in cells]
    (folder / "campaign.toml").write_text(CAMPAIGN + "".join(candidates), encoding="utf-8")
    return build_dossier([served.files.runs], folder / "campaign.toml", cache_dir=folder / "cache")


def keys(dossier: Dossier, table: str) -> list[str]:
    return [row.key for row in dossier.tables[table].rows]


def cells(dossier: Dossier, table: str, key: str) -> dict[str, Any]:
    row = next(row for row in dossier.tables[table].rows if row.key == key)
    return {name: dossier.figures[ref].value for name, ref in row.cells.items()}


def test_configurations_are_told_apart_by_concurrency_rate_arrivals_and_engine(dossier: Dossier) -> None:
    found = {row.labels["configuration_key"]: row.labels["label"] for row in dossier.tables["passes"].rows}
    assert found[f"fp32~{CPU}~b1~c1"] == "fp32 · scripted · 1"
    assert found[f"vllm~{CPU}~b1~c8"] == "vllm · c8", "a variant that is called by its engine names it already"
    assert found[f"llama~{CPU}~b1~c4"] == "llama 4", "a candidate keeps its own name"
    opened = [key for key in found if key.startswith(f"vllm~{CPU}~r3")]
    assert len(opened) == 2, "Poisson and evenly spaced arrivals of one rate are two configurations"
    assert all(len(key.split("~")) == 4 for key in opened)


def test_open_loops_stand_in_their_own_tables_and_in_none_of_quality_latency_or_ranking(dossier: Dossier) -> None:
    assert {row.labels["loop"] for row in dossier.tables["load_open"].rows} == {"poisson", "constant"}
    assert {row.labels["loop"] for row in dossier.tables["load_closed"].rows} == {"closed"}
    for table in ("quality", "latency", "durations", "candidates", "paired", "packages", "requirements", "memory"):
        assert not [key for key in keys(dossier, table) if "~r3" in key], table
    assert {row.labels["loop"] for row in dossier.tables["latency"].rows} == {"closed"}
    assert any("~r3" in key for key in keys(dossier, "passes")), "what was run is listed all the same"


def test_a_concurrency_is_a_candidate_and_is_chosen_by_its_key(dossier: Dossier) -> None:
    choice = msgspec.json.decode(choose(dossier))
    assert choice["chosen"]["configuration_key"] == f"vllm~{CPU}~b1~c4"
    assert (choice["chosen"]["batch"], choice["chosen"]["concurrency"]) == (1, 4)
    assert not [other for other in choice["others"] if "~r3" in (other["configuration_key"] or "")]


def test_goodput_counts_requests_within_every_limit_over_wall_time_with_the_lost_ones_in_the_denominator(
    dossier: Dossier, served: Served
) -> None:
    wanted = served.pass_ids["vllm~c8/1/1"]
    lines = [msgspec.json.decode(line) for line in served.files.path.read_bytes().splitlines()]
    tries = [r for r in lines if r["kind"] == "request" and r["pass_id"] == wanted and r["phase"] == "measure"]
    good = sum(
        r["first_token_ns"] - r["intended_ns"] <= 200_000_000 and r["last_token_ns"] - r["intended_ns"] <= 650_000_000
        for r in tries
        if r["request_outcome"] == "completed"
    )
    wall = max(r["done_ns"] for r in tries) - min(r["intended_ns"] for r in tries)
    found = cells(dossier, "load_closed", f"vllm~{CPU}~b1~c8~r1")
    assert 0 < good < 39
    assert found["good_requests"] == good
    assert found["goodput_per_s"] == pytest.approx(good / (wall / 1e9))
    assert found["good_percent"] == pytest.approx(100 * good / 40)
    assert found["output_tokens_per_s"] == pytest.approx(
        sum(r["output_tokens"] for r in tries if r["request_outcome"] == "completed") / (wall / 1e9)
    )
    assert found["accepted_per_h"] == pytest.approx(39 * 3600 / (wall / 1e9))


def test_times_that_decide_are_those_of_the_steady_time(dossier: Dossier) -> None:
    row = next(
        r for r in dossier.tables["requirements"].rows if r.key.startswith(f"vllm~{CPU}~b1~c4") and "answer" in r.key
    )
    steady = cells(dossier, "load_latency", f"vllm~{CPU}~b1~c4~r1~e2e_s~steady")["p50_s"]
    assert dossier.figures[row.cells["measured"]].value == pytest.approx(steady)


def test_another_engine_is_a_complete_configuration_and_no_single_factor(dossier: Dossier) -> None:
    said = [s for s in dossier.decision.does_not_show if s.key == "limit_engines"]
    assert said
    assert said[0].parameters["left"] == "vllm 1, llama · 1", "each engine once, by its smallest load"
    assert not [s for s in dossier.decision.does_not_show if s.key == "limit_factors"]


def test_the_section_shows_charts_and_a_share_lost_on_every_line(dossier: Dossier) -> None:
    html = render(dossier, lang="en", medium="screen")
    section = html[html.index('<section id="load"') :].partition("</section>")[0]
    for chart in ("load-ttft-wide", "load-e2e-wide", "load-trade-wide", "load-e2e-narrow"):
        assert f'id="{chart}-title"' in section
    assert "2.5 % lost" in section.replace("\u00a0", " ")
    tables = section.split("<table")[1:]
    times = [table for table in tables if "percentile" in table.partition("</thead>")[0] and "Arrivals" not in table]
    assert times
    assert all("lost" in table.partition("</thead>")[0] for table in times if "share of one core" not in table)
    assert "Open loop: arrivals at a given rate" in section


def test_planned_loads_that_never_ran_are_missing_passes(campaign_records: Kit, tmp_path: Path) -> None:
    ran = ServerScript(loads=(LoadScript(), LoadScript(concurrency=2)))
    other = ServerScript(
        name="llama", kind="llamacpp", loads=(LoadScript(), LoadScript(concurrency=64, rate_per_s=2.5))
    )
    served = write_served(campaign_records, tmp_path / "runs", servers=(ran, other), documents=8, critical=0)
    found = build_dossier([served.files.runs], None, cache_dir=tmp_path / "cache")
    rows = {(row.labels["variant"], row.labels.get("load")) for row in found.tables["missing_passes"].rows}
    assert rows == {("llama", "c2"), ("vllm", "r2.5")}


def test_without_a_load_nothing_of_it_is_there(decide: Any) -> None:
    dossier = decide("plain", None)
    assert not [name for name in dossier.tables if name.startswith("load_") and dossier.tables[name].rows]
    assert not [s for s in dossier.notices if s.key == "notice_drift"]
    assert {row.labels["label"] for row in dossier.tables["quality"].rows} == {"fp32 · 1", "bf16 · 1"}


def test_what_a_load_measured_is_not_listed_as_untested(dossier: Dossier, decide: Any) -> None:
    keys_of = [{s.key for s in each.not_tested} for each in (dossier, decide("plain", None))]
    asked = {"untested_server", "untested_open_loop", "untested_concurrency"}
    assert [asked & keys for keys in keys_of] == [set(), asked]
    assert absent(dossier)[-1] == "Series by context length"
    assert absent(decide("plain", None))[-1] == "Series by context length and concurrency"


def test_times_of_a_load_stand_with_what_was_lost_and_not_among_those_in_process(dossier: Dossier) -> None:
    assert {row.labels["configuration_key"] for row in dossier.tables["latency"].rows} == {f"fp32~{CPU}~b1~c1"}
    for table in ("durations", "latency_between"):
        lost = {r.labels["configuration_key"]: r.cells.get("failed_percent") for r in dossier.tables[table].rows}
        assert all(lost.values()), table
        assert dossier.figures[str(lost[f"vllm~{CPU}~b1~c8"])].value == pytest.approx(2.5)
