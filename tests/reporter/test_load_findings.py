"""What was found stands before how it was measured; arrivals have charts of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from served_campaign import LoadScript, ServerScript, write_served

from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Row
from reporter.render import render

Kit = Any
RATES = (1.0, 2.0, 4.0)
PHASES = {"engine_ns": (5_000_000, 60_000_000, 250_000_000)}
SERVERS = (
    ServerScript(
        loads=(
            LoadScript(**PHASES), LoadScript(concurrency=4, **PHASES),
            LoadScript(concurrency=8, outcomes={2: "failed"}),
            *(LoadScript(concurrency=64, rate_per_s=rate) for rate in RATES),
        )
    ),
    ServerScript(
        name="llama", kind="llamacpp", first_token_ns=150_000_000, token_gap_ns=20_000_000,
        loads=(
            LoadScript(), LoadScript(concurrency=8), LoadScript(concurrency=64, rate_per_s=1.0),
            LoadScript(concurrency=64, rate_per_s=4.0, outcomes={3: "failed"}),
        ),
    ),
    ServerScript(name="serve", kind="transformers", loads=(LoadScript(concurrency=64, rate_per_s=2.0),)),
)  # fmt: skip


@pytest.fixture(scope="module")
def dossier(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Dossier:
    folder = tmp_path_factory.mktemp("findings")
    served = write_served(campaign_records, folder / "runs", servers=SERVERS, documents=40)
    return build_dossier([served.files.runs], None, cache_dir=folder / "cache")


@pytest.fixture(scope="module")
def sections(dossier: Dossier) -> dict[str, str]:
    html = render(dossier, lang="en", medium="screen").replace("\u00a0", " ")
    return {name: html.partition(f'<section id="{name}"')[2].partition("</section>")[0] for name in SECTIONS}


SECTIONS = ("load", "engine_side")


def sentences(dossier: Dossier, table: str, key: str) -> list[Any]:
    return next((row.sentences for row in dossier.tables[table].rows if row.key == key), [])


def value(dossier: Dossier, parameter: str) -> Any:
    assert parameter.startswith("#"), parameter
    return dossier.figures[parameter[1:]].value


def line(dossier: Dossier, table: str, **wanted: str) -> Row:
    return next(r for r in dossier.tables[table].rows if wanted.items() <= r.labels.items())


def test_each_variant_s_highest_load_stands_against_its_lowest_and_the_largest_gain_comes_first(
    dossier: Dossier,
) -> None:
    found = sentences(dossier, "load_findings", "closed")
    grown = [each for each in found if each.key == "load_grows"]
    assert {each.parameters["label"] for each in grown} == {"vllm", "llama"}
    factors = [value(dossier, each.parameters["factor"]) for each in grown]
    assert factors == sorted(factors, reverse=True)
    vllm = next(each.parameters for each in grown if each.parameters["label"] == "vllm")
    assert (value(dossier, vllm["requests_low"]), value(dossier, vllm["requests_high"])) == (1, 4)
    low, high = (
        next(r for r in dossier.tables["load_closed"].rows if r.key.startswith("vllm~") and f"~c{n}~" in r.key)
        for n in (1, 4)
    )
    rates = [dossier.figures[r.cells["output_tokens_per_s"]].value for r in (low, high)]
    assert value(dossier, vllm["factor"]) == pytest.approx(rates[1] / rates[0])  # type: ignore[operator]
    assert value(dossier, vllm["lost"]) == 0
    assert [each.key for each in found][-1] == "load_fails", "what lost too much gives no factor and no time"
    assert found[-1].parameters["label"] == "vllm · c8"
    assert value(dossier, found[-1].parameters["lost"]) == pytest.approx(2.5)


def test_open_loops_have_sentences_and_charts_of_their_own(dossier: Dossier, sections: dict[str, str]) -> None:
    found = sentences(dossier, "load_findings", "open")
    keys = {each.parameters["label"]: each.key for each in found}
    assert sorted(keys.values()) == ["load_arrivals_fail", "load_arrivals_grow", "load_arrives", "load_arrives"]
    assert keys["llama · 4/s"] == "load_arrivals_fail"
    vllm = next(each.parameters for each in found if each.parameters["label"] == "vllm")
    assert (value(dossier, vllm["rate_low"]), value(dossier, vllm["rate_high"])) == (1.0, 4.0)
    for chart in ("arrivals-ttft-wide", "arrivals-e2e-narrow", "load-ttft-wide"):
        assert f'id="{chart}-title"' in sections["load"]
    closed, opened = sections["load"].split("Open loop: arrivals at a given rate")
    assert "arrivals-" not in closed
    assert "load-ttft" not in opened
    told = opened.partition('id="arrivals-e2e-wide-desc"')[2].partition("</desc>")[0]
    assert told.count("95th percentile") == len(RATES) + 2 + 1, "each pass of an open loop, and no other"


def test_sections_open_with_what_was_found(sections: dict[str, str]) -> None:
    load, engine = (sections[name] for name in SECTIONS)
    assert load.index("times as many") < load.index("The same documents, with more requests")
    assert load.index("4.00 requests/s</span> arriving instead of") > load.index("Open loop: arrivals")
    assert engine.index("go into generating") < engine.index("A request that was sent waits")


def test_an_engine_that_tells_its_phases_says_where_the_time_goes(dossier: Dossier) -> None:
    found = [each for each in sentences(dossier, "engine_findings", "phases") if each.key == "engine_where"]
    assert [each.parameters["label"] for each in found] == ["vllm · 1", "vllm · c4"]
    for each in found:
        assert value(dossier, each.parameters["remainder"]) >= 0, "one below zero is no part of a whole"
    told = {name: value(dossier, found[0].parameters[name]) for name in ("decode", "prefill", "queue")}
    assert told == {"decode": 0.25, "prefill": 0.06, "queue": 0.005}
    parts = sum(value(dossier, found[0].parameters[name]) for name in ("decode", "prefill", "queue", "remainder"))
    assert parts == pytest.approx(value(dossier, found[0].parameters["whole"]))


def test_a_load_without_an_answer_is_said_to_have_failed_and_one_without_a_second_load_no_factor(
    campaign_records: Kit, tmp_path: Path
) -> None:
    lost = ServerScript(
        name="llama", kind="llamacpp",
        loads=(LoadScript(), LoadScript(concurrency=4, outcomes=dict.fromkeys(range(8), "failed"))),
    )  # fmt: skip
    served = write_served(
        campaign_records,
        tmp_path / "runs",
        servers=(ServerScript(loads=(LoadScript(),)), lost),
        documents=8,
        critical=0,
    )
    found = build_dossier([served.files.runs], None, cache_dir=tmp_path / "cache")
    said = sentences(found, "load_findings", "closed")
    assert {each.key for each in said} == {"load_at_one", "load_fails"}
    assert [each.key for each in said if each.parameters["label"].startswith("llama")] == ["load_at_one", "load_fails"]
