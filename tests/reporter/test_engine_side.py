"""The engine's side: means from counters of the window, the remainder, others' requests, what a kind does not tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from markupsafe import escape
from served_campaign import MS, LoadScript, ServerScript, write_served

from collector.contract.engine_metrics import Capability
from collector.contract.protocol import ServerKind
from collector.contract.server_kinds import KINDS
from collector.scrapes import parse_metrics
from reporter.assemble import build_dossier
from reporter.book import Book
from reporter.dossier import Figure, Row
from reporter.engine_side_tables import reused_configurations
from reporter.load_series import unranked
from reporter.render import render
from reporter.sections import absent, present

PAGES = Path(__file__).parents[1] / "collector" / "fixtures" / "metrics"
COUNT = 24
TOKENS = 644
"""Of the builder's documents: what its requests generate in all."""


def vllm(count: int = COUNT, /, **more: float) -> dict[str, dict[str, float]]:
    """Pages of vLLM before, during and after `count` requests with these means; `more` replaces numbers after."""
    means = {"queue": 0.002, "prefill": 0.055, "decode": 0.3, "inference": 0.355, "ttft": 0.07, "e2e": 0.37}
    before: dict[str, float] = {"process_start_time_seconds": 1.79e9}
    after = dict(before)
    for capability, metric in KINDS["vllm"].metrics.items():
        if metric.type == "histogram":
            before |= {f"{metric.name}_sum": 7.0, f"{metric.name}_count": 10.0}
            total = 7.0 + means.get(capability, 0.0125) * count
            after |= {f"{metric.name}_sum": total, f"{metric.name}_count": 10.0 + count}
        else:
            before[metric.name] = after[metric.name] = 0.0
    after |= {"vllm:request_success_total": float(count), "vllm:generation_tokens_total": float(TOKENS)}
    after |= {"vllm:prefix_cache_queries_total": 3000.0}
    during = {"vllm:num_requests_running": 3.0, "vllm:num_requests_waiting": 2.0, "vllm:kv_cache_usage_perc": 0.12}
    return {"before": before, "during": during, "after": after | more}


def llamacpp(tokens: int = TOKENS) -> dict[str, dict[str, float]]:
    names = ("prompt_seconds", "tokens_predicted_seconds", "prompt_tokens", "prompt_tokens_cached", "tokens_predicted")
    before = {f"llamacpp:{name}_total": 1.0 for name in names}
    deltas = dict(zip(names, (1.2, 7.2, 2900.0, 0.0, float(tokens)), strict=True))
    return {"before": before, "after": {f"llamacpp:{name}_total": 1.0 + deltas[name] for name in names}}


def histograms(kind: ServerKind, means: dict[Capability, float], **more: float) -> dict[str, dict[str, float]]:
    """Pages of a kind before and after COUNT requests with these means of its histograms."""
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    for capability, mean in means.items():
        total, count = list(KINDS[kind].metrics[capability].record_keys())[:2]
        before |= {total: 1.0, count: 2.0}
        after |= {total: 1.0 + mean * COUNT, count: 2.0 + COUNT}
    return {"before": before, "after": after | more}


PLACE = "~example-cpu-2-cores~b1~c1"


SGLANG: dict[Capability, float] = {"queue": 0.01, "prefill": 0.05, "ttft": 0.07, "e2e": 0.37, "per_token": 0.012}
TGI: dict[Capability, float] = {"queue": 0.01, "inference": 0.35, "e2e": 0.365, "per_token": 0.014}


def real() -> dict[str, dict[str, float]]:
    """Pages that vLLM 0.32 gave around twelve requests at once, whose client saw 1.476 s to the first token."""
    pages = {moment: PAGES / f"vllm-0.32.0-{moment}.txt" for moment in ("before", "during", "after")}
    return {moment: parse_metrics(page.read_text(encoding="utf-8"), "vllm") for moment, page in pages.items()}


def servers() -> list[ServerScript]:
    """One server per case, its name the case's; each answers one request at a time."""
    told = (2 * MS, 40 * MS, 310 * MS)
    loads = (
        LoadScript(scrapes=vllm()), LoadScript(concurrency=4, scrapes=vllm(), first_token_ns=MS),
        LoadScript(rate_per_s=2.0),
    )  # fmt: skip
    reused = LoadScript(scrapes=vllm(**{"vllm:prefix_cache_hits_total": 2700.0}))
    of_vllm = {
        "quiet": loads,
        "shared": (LoadScript(scrapes=vllm(COUNT + 3, **{"vllm:num_preemptions_total": 2.0})),),
        "fewer": (LoadScript(scrapes=vllm(COUNT - 2)),),
        "backwards": (LoadScript(scrapes=vllm(**{"vllm:prompt_tokens_total": -1.0})),),
        "restarted": (LoadScript(scrapes=vllm(process_start_time_seconds=1.79e9 + 60.0)),),
        "unread": (LoadScript(scrapes={"after": vllm()["after"]}),),
        "told": (LoadScript(scrapes=vllm(), engine_ns=told, outcomes={2: "failed"}),),
        "unlike": (LoadScript(scrapes=vllm(), engine_ns=told),),
        "real": (LoadScript(scrapes=real()),),
        "limit": (LoadScript(scrapes=vllm(**{"vllm:prefix_cache_hits_total": 30.0})),),
        "reused": (reused,),
    }
    claimed = {
        "memory_fraction": "0.9", "weight_bytes": "15000000000", "cache_capacity_tokens": "420000", "version": "0.32.0",
    }  # fmt: skip
    return [
        *(ServerScript(name=name, loads=each) for name, each in of_vllm.items()),
        ServerScript(name="warm", loads=(reused,), cache_state="warm"),
        ServerScript(name="llama", kind="llamacpp", loads=(LoadScript(scrapes=llamacpp(TOKENS + 40)),)),
        ServerScript(name="serve", kind="transformers", loads=(LoadScript(),), claims={}),
        ServerScript(name="sgl", kind="sglang", loads=(LoadScript(scrapes=histograms("sglang", SGLANG)),)),
        ServerScript(name="tgi", kind="tgi", loads=(LoadScript(scrapes=histograms("tgi", TGI)),)),
        ServerScript(name="big", loads=(LoadScript(scrapes=vllm()),), claims=claimed, peak_bytes=72 * 2**30),
    ]


class Built:
    """A dossier of all cases, its page, and its cells by table, server and column."""

    def __init__(self, folder: Path, kit: Any) -> None:
        write_served(kit, folder / "runs", servers=servers(), reference_runs=1)
        self.dossier = build_dossier([folder / "runs"], None, cache_dir=folder / "cache")
        own = {name: table for name, table in self.dossier.tables.items() if name.startswith("engine_")}
        memory = {name: table for name, table in self.dossier.tables.items() if name in ("memory", "engine_window")}
        self.memory_html = render(msgspec.structs.replace(self.dossier, tables=memory), lang="en", medium="screen")
        self.own = msgspec.structs.replace(self.dossier, tables=own)
        self.html = render(self.own, lang="en", medium="screen")

    def rows(self, table: str) -> list[Row]:
        return list(self.dossier.tables[table].rows)

    def row(self, table: str, name: str, source: str = "") -> Row:
        wanted = f"{name}{PLACE}{source and '~'}{source}"
        return next(row for row in self.rows(table) if row.key == wanted)

    def side(self, name: str, column: str, source: str = "window") -> Figure:
        return self.dossier.figures[self.row("engine_side", name, source).cells[column]]

    def counted(self, name: str, column: str) -> Figure:
        return self.dossier.figures[self.row("engine_window", name).cells[column]]

    def beside(self, name: str, column: str, measure: str = "ttft") -> Figure:
        return self.dossier.figures[self.row("engine_beside", name, measure).cells[column]]

    def told(self, name: str, source: str = "window") -> list[Any]:
        return [self.side(name, f"{phase}_s", source).value for phase in ("queue", "prefill", "decode")]

    def said(self, name: str, source: str = "window") -> list[str]:
        return [sentence.key for sentence in self.row("engine_side", name, source).sentences]

    def notices(self, name: str) -> list[str]:
        label = self.row("engine_window", name).labels["label"]
        return [notice.key for notice in self.dossier.notices if notice.parameters.get("label") == label]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, campaign_records: Any) -> Built:
    return Built(tmp_path_factory.mktemp("engine-side"), campaign_records)


def test_means_are_the_windows_own_and_the_remainder_is_what_is_left_of_the_clients_path(built: Built) -> None:
    assert built.told("quiet") == pytest.approx([0.002, 0.055, 0.3])
    client = built.side("quiet", "client_e2e_s").value
    assert isinstance(client, float)
    assert built.side("quiet", "remainder_s").value == pytest.approx(client - 0.357)
    assert built.side("quiet", "engine_count").value == COUNT
    assert built.side("quiet", "client_count").value == COUNT
    assert built.said("quiet") == []


def test_what_the_server_says_is_claimed_and_only_the_clients_stamps_are_measured(built: Built) -> None:
    assert built.side("quiet", "queue_s").basis == "claimed"
    assert built.side("quiet", "client_e2e_s").basis == "measured"
    remainder = built.side("quiet", "remainder_s")
    assert (remainder.basis, remainder.is_derived, remainder.bases) == ("claimed", True, ["claimed", "measured"])
    assert "means of durations" in (remainder.formula or "")


def test_requests_of_others_are_counted_without_the_warm_up_and_said(built: Built) -> None:
    assert built.counted("quiet", "foreign_requests").value == 0
    assert built.notices("quiet") == []
    assert built.counted("shared", "finished").value == COUNT + 3
    assert built.counted("shared", "own_requests").value == COUNT
    assert built.counted("shared", "foreign_requests").value == 3
    assert built.said("shared") == ["engine_foreign"]
    assert "notice_foreign" in built.notices("shared")


def test_a_server_that_counts_fewer_requests_than_it_answered_is_told_as_such(built: Built) -> None:
    assert built.counted("fewer", "foreign_requests").value == -2
    assert built.said("fewer") == ["engine_fewer"]
    assert built.notices("fewer") == []


@pytest.mark.parametrize("name", ["backwards", "restarted"])
def test_a_server_started_anew_in_between_has_no_means_and_says_why(built: Built, name: str) -> None:
    queue = built.side(name, "queue_s")
    assert (queue.value, queue.missing_reason) == (None, "server_restarted")
    assert built.side(name, "remainder_s").value is None
    assert built.counted(name, "foreign_requests").value is None
    assert built.said(name) == ["engine_restarted"]
    assert built.notices(name) == ["notice_server_restarted"]


def test_pages_that_were_not_read_leave_nulls_with_a_reason_and_never_zeros(built: Built) -> None:
    queue = built.side("unread", "queue_s")
    assert (queue.value, queue.missing_reason) == (None, "not_measured")
    for column in ("preemptions", "running_max", "finished", "reuse_percent"):
        assert (built.counted("unread", column).value, built.counted("unread", column).missing_reason) == (
            None, "not_measured",
        )  # fmt: skip
    assert built.said("unread") == ["engine_no_pages"]


def test_a_kind_that_counts_no_requests_is_divided_by_ours_and_others_show_in_its_tokens(built: Built) -> None:
    assert built.side("llama", "prefill_s").value == pytest.approx(0.05)
    assert built.side("llama", "decode_s").value == pytest.approx(0.3)
    assert built.side("llama", "queue_s").missing_reason == "not_exposed_by_engine"
    assert built.counted("llama", "foreign_requests").missing_reason == "not_exposed_by_engine"
    assert built.counted("llama", "foreign_tokens").value == 40
    assert built.said("llama") == ["engine_foreign_tokens", "engine_no_queue"]
    assert built.notices("llama") == ["notice_foreign_tokens"]


def test_decode_of_sglang_is_what_its_own_clock_measures_after_the_first_token(built: Built) -> None:
    assert built.told("sgl") == pytest.approx([0.01, 0.05, 0.3])
    assert built.side("sgl", "engine_s").value == pytest.approx(0.36)


def test_an_engine_that_tells_prefill_and_decode_together_has_them_as_one_part(built: Built) -> None:
    assert built.side("tgi", "inference_s").value == pytest.approx(0.35)
    assert built.side("tgi", "prefill_s").missing_reason == "not_exposed_by_engine"
    assert built.side("tgi", "engine_s").value == pytest.approx(0.36)
    assert built.side("quiet", "inference_s").missing_reason == "not_applicable"


def test_a_server_that_tells_nothing_has_the_clients_path_alone_and_no_zero_for_the_rest(built: Built) -> None:
    for column in ("queue_s", "prefill_s", "decode_s", "remainder_s", "engine_count"):
        figure = built.side("serve", column)
        assert (figure.value, figure.missing_reason) == (None, "not_exposed_by_engine"), column
    assert built.side("serve", "client_e2e_s").value is not None
    assert built.row("engine_side", "serve", "window").labels["source"] == "none"
    assert "not provided by the engine" in built.html


def test_timings_on_responses_stand_beside_the_windows_means_over_the_same_requests(built: Built) -> None:
    assert built.told("told", "responses") == pytest.approx([0.002, 0.04, 0.31])
    assert built.side("told", "engine_count", "responses").value == COUNT - 1
    client = built.side("told", "client_e2e_s", "responses").value
    assert isinstance(client, float)
    assert built.side("told", "remainder_s", "responses").value == pytest.approx(client - 0.352)
    assert built.told("told") == pytest.approx([0.002, 0.055, 0.3])


def test_the_servers_means_stand_beside_ours_with_clock_and_boundary_of_each(built: Built) -> None:
    measures = [
        r.labels["measure"] for r in built.rows("engine_beside") if r.labels["configuration_key"] == f"told{PLACE}"
    ]
    assert measures == ["ttft", "per_token", "e2e"]
    assert built.beside("quiet", "engine_mean_s").value == pytest.approx(0.07)
    ours = built.beside("quiet", "client_mean_s").value
    assert isinstance(ours, float)
    assert built.beside("quiet", "difference_s").value == pytest.approx(ours - 0.07)
    boundaries = {row.labels["boundary"] for row in built.rows("engine_boundaries")}
    assert {"vllm_ttft", "vllm_told_prefill", "llamacpp_decode", "client_ttft", "client_e2e"} <= boundaries
    assert built.dossier.tables["engine_boundaries"].rows[0].cells == {}
    assert str(escape(KINDS["vllm"].metrics["ttft"].boundary)) in built.html
    assert "from handing the request to the socket to receiving the first piece" in built.html


def test_real_pages_of_vllm_give_the_means_that_its_histograms_hold(built: Built) -> None:
    assert built.side("real", "engine_count").value == 12
    assert built.told("real") == pytest.approx([0.51805, 0.72317, 0.93858], abs=1e-5)
    assert built.beside("real", "engine_mean_s").value == pytest.approx(1.43881, abs=1e-5)
    assert built.counted("real", "running_max").value == 7
    assert built.counted("real", "waiting_max").value == 4
    assert built.said("real") == ["engine_fewer", "engine_negative"]


def test_a13_reuse_that_the_servers_counters_show_in_a_cold_pass_is_flagged_and_not_in_a_warm_one(
    built: Built,
) -> None:
    assert built.counted("limit", "reuse_percent").value == pytest.approx(1.0)
    assert built.notices("limit") == []
    assert built.counted("reused", "reuse_percent").value == pytest.approx(90.0)
    assert built.notices("reused") == ["notice_server_reuse"]
    assert built.counted("warm", "reuse_percent").value == pytest.approx(90.0)
    assert built.notices("warm") == []
    assert reused_configurations(Book(built.dossier.figures, built.dossier.tables)) == {f"reused{PLACE}"}


def test_a13_reuse_that_the_counters_alone_show_keeps_a_cold_pass_out_of_every_ranking_of_times(built: Built) -> None:
    """The answers told of no cached token at all; the larger of both accounts counts."""
    book = Book(built.dossier.figures, built.dossier.tables)
    keys = [row.labels["configuration_key"] for row in built.rows("engine_window")]
    assert {key for key in keys if unranked(book, key) == "cache_reuse"} == reused_configurations(book)
    flagged = {
        row.labels["configuration_key"] for row in built.rows("load_flags") if row.labels["flag"] == "cache_reuse"
    }
    assert flagged == {f"reused{PLACE}"}


def test_an_engine_behind_a_server_stands_with_its_own_name_and_the_version_that_it_claims(built: Built) -> None:
    engines = {row.labels["server"]: row.labels for row in built.rows("engines") if row.labels.get("server")}
    assert engines["big"]["version"] == "0.32.0"
    assert engines["big"]["claims"] == "cache_capacity_tokens=420000; memory_fraction=0.9"
    assert engines["serve"]["name"] == "transformers serve"
    assert not engines["serve"].get("version"), "what a server does not tell is not made up"
    own = [row.labels for row in built.rows("engines") if not row.labels.get("server")]
    assert [labels["name"] for labels in own] == ["scripted"]


def test_a_remark_on_the_means_is_made_once_with_all_that_it_holds_of(built: Built) -> None:
    said = [sentence for row in built.rows("engine_notes") for sentence in row.sentences]
    assert len(said) == len({(one.key, *one.parameters.values()) for one in said})
    silent = next(row for row in built.rows("engine_notes") if row.sentences[0].key == "engine_no_queue")
    assert silent.labels["label"].startswith("llama")


def test_preemptions_queue_and_cache_at_their_highest_come_from_the_pages_read_in_between(built: Built) -> None:
    wanted = {"preemptions": 2, "running_max": 3, "waiting_max": 2, "scrape_count": 1}
    assert {name: built.counted("shared", name).value for name in wanted} == wanted
    assert built.counted("shared", "cache_use_percent").value == pytest.approx(12.0)
    assert "notice_preemptions" in built.notices("shared")


def test_a_phase_of_which_answers_and_counters_tell_unlike_means_is_remarked_with_both(built: Built) -> None:
    said = [s for s in built.row("engine_side", "unlike", "responses").sentences if s.key == "engine_accounts_differ"]
    assert [s.parameters["phase"] for s in said] == ["@phase_prefill"], "3 % of decode are within what is alike"
    values = [built.dossier.figures[said[0].parameters[name][1:]].value for name in ("answers", "counters")]
    assert values == pytest.approx([0.04, 0.055])
    assert "prefill: of the same requests the server" in built.html


def test_b10_memory_that_an_engine_claims_is_never_told_as_what_the_workload_needs(built: Built) -> None:
    """72 GiB claimed of a card, weights of 15 GB, and at most an eighth of the cache used."""
    big = f"big{PLACE}"
    rows = [row for row in built.rows("memory") if row.labels["configuration_key"] == big]
    assert rows
    assert {row.labels["need"] for row in rows} == {"claimed"}
    assert max(built.dossier.figures[row.cells["peak_bytes"]].value or 0 for row in rows) == 72 * 2**30
    assert all("need" not in row.labels for row in built.rows("memory") if row.labels["variant"] == "fp32")
    told = {name: built.counted("big", name) for name in ("memory_fraction_percent", "weight_bytes")}
    assert {name: figure.value for name, figure in told.items()} == {
        "memory_fraction_percent": 90.0, "weight_bytes": 15_000_000_000,
    }  # fmt: skip
    assert {figure.basis for figure in told.values()} == {"claimed"}
    assert built.counted("big", "cache_use_percent").value == pytest.approx(12.0)
    candidate = next(row for row in built.rows("candidates") if row.labels["configuration_key"] == big)
    assert "peak_bytes" not in candidate.cells
    notice = next(notice for notice in built.dossier.notices if notice.key == "notice_memory_claimed")
    assert "tgi · 1, big · vllm · 1" in notice.parameters["labels"]
    said = [*built.dossier.notices, *built.dossier.not_tested, *built.dossier.decision.reasons]
    peaks = [row.cells["peak_bytes"] for row in rows]
    assert not any(value[1:] in peaks for sentence in said for value in sentence.parameters.values())
    assert "claimed, not needed" in built.memory_html


def test_open_loops_and_every_concurrency_have_rows_of_their_own(built: Built) -> None:
    rows = [row for row in built.rows("engine_side") if row.labels["variant"] == "quiet"]
    assert [row.labels["arrivals"] for row in rows] == ["closed", "closed", "poisson"]
    assert len({row.labels["label"] for row in rows}) == 3


def test_the_chart_names_every_part_in_words(built: Built) -> None:
    start = built.html.index('id="engine-side-wide-desc"')
    described = built.html[start : built.html.index("</", start)].replace("\u00a0", " ")
    assert "queue 0.002 s · prefill 0.055 s · decode 0.300 s · remainder" in described


def test_every_sentence_of_the_section_is_translated_those_of_the_contract_too(built: Built) -> None:
    page = render(built.own, lang="en-XA", medium="paper")
    section = page[page.index("Ŵĥéŕé á ŕéɋúéšť") :]
    english = ("monotonic clock", "claimed", "server's counters", "of others", "the remainder", "not provided")
    assert [words for words in english if words in section] == []


def test_the_section_is_hidden_and_named_nowhere_where_no_pass_has_a_server(
    tmp_path: Path, campaign_records: Any
) -> None:
    campaign_records(tmp_path / "runs", documents=6, critical=2, reference_runs=1)
    dossier = build_dossier([tmp_path / "runs"], None, cache_dir=tmp_path / "cache")
    assert "engine_side" not in dossier.tables
    assert "engine_side" not in [section.anchor for section in present(dossier)]
    assert "Where a request's time goes" not in absent(dossier)
    assert not any(dossier.tables[name].rows for name in ("engine_phases", "engine_counts", "engine_means"))
