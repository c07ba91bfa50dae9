"""From records and a campaign with charges to tables, page, query and export: one total everywhere."""

from __future__ import annotations

import csv
import dataclasses
import datetime as dt
import io
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec
import pytest

from collector.contract.errors import DossierError
from collector.contract.protocol import Gates
from reporter.assemble import build_dossier
from reporter.dossier import Dossier
from reporter.export import export
from reporter.query import as_csv, as_json, as_lines, query, table_list
from reporter.render import render

Kit = Any
RUN, OTHER_RUN = "a" * 32, "b" * 32
PLAIN = """\
format = 1
question = "Which machine should read our invoices?"
dossier_id = "SD-2026-001"
as_of = 2026-01-31
issued = 2026-01-31
documents_per_corpus = 12
[objective]
prefer = "cheapest"
[[candidate]]
id = "A"
label = "A"
variant = "fp32"
device = "Example CPU 2 cores"
offers = ["o1"]
[[candidate]]
id = "B"
label = "B"
variant = "bf16"
device = "Example CPU 2 cores"
offers = ["o1"]
[[offer]]
id = "o1"
provider = "Example Cloud"
device = "Example CPU 2 cores"
pricing_class = "quote"
currency = "EUR"
price_3_days = "100.00"
tax_percent = "19"
basis = "quoted"
source = "quote 17"
retrieved = 2026-01-05
valid_until = 2026-02-14
"""
CHARGES = """\
[[charge]]
id = "package"
invoice = "17"
issuer = "Example Cloud"
line = "1"
on = 2026-01-05
amount = "100.00"
currency = "EUR"
description = "one package of 3 days"
rental = "machine"
[[charge]]
id = "credit"
invoice = "17"
issuer = "Example Cloud"
line = "2"
on = 2026-01-05
amount = "-0.05"
currency = "EUR"
category = "credit"
description = "for an interruption"
rental = "machine"
[[charge]]
id = "conversion"
invoice = "18"
issuer = "Example Consultants"
line = "1"
on = 2026-01-06
amount = "7.00"
currency = "EUR"
category = "purchase"
description = "conversion of the weights"
candidate = "B"
"""


def rental(runs: list[str]) -> str:
    """An hour from nine on, in which the records begin."""
    listed = ", ".join(f'"{run}"' for run in runs)
    return (
        f'[[rental]]\nid = "machine"\noffer = "o1"\nfrom = 2026-01-02T09:00:00Z\n'
        f"to = 2026-01-02T10:00:00Z\nruns = [{listed}]\n"
    )


@pytest.fixture
def paid(campaign_text: Any) -> Any:
    """Two candidates and one offer; `paid.calendar` holds rental and charges."""
    campaign_text.candidate("A", "fp32", "o1").candidate("B", "bf16", "o1").offer("o1", {3: "100.00"})
    campaign_text.calendar = rental([RUN]) + CHARGES
    return campaign_text


def write_runs(kit: Kit, folder: Path) -> Path:
    """A campaign of two variants; the second was killed once before it was complete."""
    kit(folder, variants=[kit.fp32, dataclasses.replace(kit.bf16, killed_attempts=1)], documents=12, run_id=RUN)
    return folder


@pytest.fixture
def decided(decide: Any) -> Any:
    """`decided(campaign_path)`: the dossier of the plain case's records, written and measured once."""
    return lambda campaign: decide("paid", campaign, write=write_runs)


@pytest.fixture
def runs(tmp_path: Path, campaign_records: Kit) -> Path:
    return write_runs(campaign_records, tmp_path / "runs")


class Made(NamedTuple):
    runs: Path
    campaign: Path
    dossier: Dossier


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, campaign_records: Kit) -> Made:
    """The plain case, made once: two candidates, one rental, three charges."""
    folder = tmp_path_factory.mktemp("paid")
    write_runs(campaign_records, folder / "runs")
    campaign = folder / "campaign.toml"
    campaign.write_text(PLAIN + rental([RUN]) + CHARGES, encoding="utf-8")
    return Made(folder / "runs", campaign, build_dossier([folder / "runs"], campaign, cache_dir=folder / "cache"))


def value(dossier: Dossier, figure_id: str) -> Any:
    return dossier.figures[figure_id].value


def pass_seconds(runs: Path) -> dict[str, Fraction]:
    """Variant -> seconds of all its passes, read from the lines themselves."""
    names: dict[str, str] = {}
    seconds: dict[str, Fraction] = {}
    for line in next(runs.glob("*.jsonl")).read_bytes().splitlines():
        record = msgspec.json.decode(line)
        if record["kind"] == "pass_begin":
            names[record["pass_id"]] = record["variant_name"]
        if record["kind"] == "pass_end":
            name = names[record["pass_id"]]
            seconds[name] = seconds.get(name, Fraction(0)) + Fraction(record["pass_ns"], 10**9)
    return seconds


def said(dossier: Dossier) -> list[str]:
    return [s.key for row in dossier.tables["utilisation"].rows for s in row.sentences]


def edited(kit: Kit, runs: Path, edit: Any) -> None:
    path = next(runs.glob("*.jsonl"))
    path.write_bytes(b"".join(line + b"\n" for line in kit.rechain(path.read_bytes().splitlines(), edit)))


def test_without_charges_there_is_no_table_and_no_section(decide: Any, campaign_text: Any) -> None:
    campaign_text.candidate("A", "fp32", "o1").offer("o1", {3: "100.00"})
    dossier = decide("plain", campaign_text.write())
    assert "origin_charges" not in dossier.tables
    assert 'id="allocation"' not in render(dossier, lang="en", medium="screen")


def test_every_attempt_bears_its_time_and_the_rest_of_the_rental_is_idle(made: Made) -> None:
    """Killed attempts, loading and warm-up count; the shares follow an hour of which little was used."""
    dossier = made.dossier
    seconds = pass_seconds(made.runs)
    assert value(dossier, "usage/candidate~B/pass_count") == 2
    for name, variant in (("A", "fp32"), ("B", "bf16")):
        assert value(dossier, f"usage/candidate~{name}/device_hours") == pytest.approx(float(seconds[variant] / 3600))
    share = {row.labels["target"]: row.cells["shared"] for row in dossier.tables["allocation"].rows}
    exact = {"candidate~A": seconds["fp32"] / 3600, "candidate~B": seconds["bf16"] / 3600}
    exact["idle"] = 1 - sum(exact.values())
    for target, part in exact.items():
        assert abs(value(dossier, share[target]) - part * 9_995) < 2
    assert sum(value(dossier, name) for name in share.values()) == 9_995
    assert value(dossier, "allocation/candidate~B~EUR/direct") == 700


def test_g09_in_a_dossier_rented_and_busy_time_stand_side_by_side(made: Made) -> None:
    dossier = made.dossier
    busy = sum(pass_seconds(made.runs).values()) / 3600
    assert value(dossier, "utilisation/machine/rented_hours") == 1.0
    assert value(dossier, "utilisation/machine/busy_hours") == pytest.approx(float(busy))
    assert value(dossier, "utilisation/machine/utilisation_percent") == pytest.approx(float(busy * 100))
    assert value(dossier, "utilisation/machine~EUR/reserved_cost") == 9_995
    assert value(dossier, "utilisation/machine~EUR/used_cost") == round(busy * 9_995)


def test_the_difference_to_the_invoices_is_zero_under_every_convention(made: Made) -> None:
    dossier = made.dossier
    rows = dossier.tables["reconciliation"].rows
    assert [row.labels["method"] for row in rows] == [
        "direct", "even", "proportional_usage~separate", "proportional_usage~even", "proportional_usage~weighted",
        "proportional_direct", "accepted_output", "unallocated",
    ]  # fmt: skip
    for row in rows:
        assert [value(dossier, row.cells[name]) for name in ("invoices", "allocated", "difference")] == [
            10_695, 10_695, 0,
        ]  # fmt: skip
    chosen = [row for row in dossier.tables["convention_orders"].rows if row.labels["is_declared"] == "yes"]
    assert [row.key for row in chosen] == ["proportional_usage~separate"]


def test_the_page_says_total_convention_and_that_it_never_changes_the_total(decided: Any, paid: Any) -> None:
    paid.calendar += '[allocation]\nconvention = "even"\nreason = "fairness"\n'
    page = render(decided(paid.write()), lang="en", medium="screen")
    section = page[page.index('<section id="allocation"') :]
    words = re.sub(r"<[^>]+>", "", section[: section.index("</section>")])
    for text in ("106.95", "It never changes the total", "Convention even, version 1", "fairness", "0.00"):
        assert text in " ".join(words.replace("\u00a0", " ").split()), text


def test_a_pass_without_an_end_counts_to_its_last_record(runs: Path, paid: Any, campaign_records: Kit) -> None:
    kit = campaign_records
    last: dict[str, str] = {}
    begun: dict[str, str] = {}
    for line in next(runs.glob("*.jsonl")).read_bytes().splitlines():
        record = msgspec.json.decode(line)
        if record["kind"] == "pass_begin":
            begun[record["pass_id"]] = record["began_at"]
        if record["kind"] in ("reading", "request", "score", "variant"):
            last[record["pass_id"]] = record["written_at"]
    victim = next(iter(begun))
    edited(
        kit, runs,
        lambda _, line: None if line["kind"] == "pass_end" and line["pass_id"] == victim else line,
    )  # fmt: skip
    dossier = build_dossier([runs], paid.write())
    assert "rental_unended" in said(dossier)
    found = query([runs], None, f"select duration_ns, is_ended from pass_times where pass_id = '{victim}'")
    spent = dt.datetime.fromisoformat(last[victim]) - dt.datetime.fromisoformat(begun[victim])
    assert found.rows == [(spent // dt.timedelta(microseconds=1) * 1000, False)]


def test_a_run_names_its_rental_itself_and_one_without_is_listed(
    runs: Path, paid: Any, campaign_records: Kit, tmp_path: Path
) -> None:
    kit = campaign_records
    edited(kit, runs, lambda _, line: line | {"rental_id": "machine"} if line["kind"] == "header" else line)
    kit(runs, variants=[kit.fp32, kit.bf16], run_id=OTHER_RUN, documents=12, start="2026-01-03T09:00:00", seed=2)
    paid.calendar = rental([]) + CHARGES
    dossier = build_dossier([runs], paid.write())
    assert {row.labels["rental"] for row in dossier.tables["usage"].rows} == {"machine", ""}
    assert said(dossier) == []
    unrented = dossier.tables["usage_without_rental"].rows
    assert {row.labels["label"] for row in unrented} == {"A", "B"}
    assert all(row.labels["rental"] == "" for row in unrented)
    busy = value(dossier, "utilisation/machine/busy_hours")
    assert busy < value(dossier, "usage/candidate~A/device_hours") + value(dossier, "usage/candidate~B/device_hours")


def test_a_run_that_the_campaign_names_and_the_records_lack_is_said(decided: Any, paid: Any) -> None:
    paid.calendar = rental([RUN, "c" * 32]) + CHARGES
    assert said(decided(paid.write())) == ["rental_runs"]
    paid.calendar = rental([]) + CHARGES
    assert said(decided(paid.write())) == ["rental_unused"]


def test_charges_in_two_currencies_stay_apart_and_the_rate_is_printed(decided: Any, paid: Any) -> None:
    rate = '[[exchange_rate]]\ncurrency = "USD"\nrate = "0.90"\non = 2026-01-05\nsource = "central bank"\n'
    paid.calendar = rental([RUN]) + rate + CHARGES.replace('"7.00"\ncurrency = "EUR"', '"7.00"\ncurrency = "USD"')
    dossier = decided(paid.write())
    assert [value(dossier, f"origin_charges/{code}/total") for code in ("EUR", "USD")] == [9_995, 700]
    rows = dossier.tables["reconciliation"].rows
    assert {(row.labels["currency"], value(dossier, row.cells["difference"])) for row in rows} == {
        ("EUR", 0),
        ("USD", 0),
    }
    paid_rows = next(row for row in dossier.tables["allocation_statements"].rows if row.key == "paid")
    assert [s.key for s in paid_rows.sentences] == ["allocation_paid", "allocation_paid", "allocation_rate"]
    page = render(dossier, lang="en", medium="screen")
    assert "compared at" in page


def test_a_convention_that_is_not_defined_is_said_and_leaves_the_charges_unallocated(
    tmp_path: Path, campaign_records: Kit, paid: Any
) -> None:
    campaign_records(tmp_path / "runs", gates=Gates(min_accepted_percent="100"), run_id=RUN)
    paid.calendar += '[allocation]\nconvention = "accepted_output"\n'
    dossier = build_dossier([tmp_path / "runs"], paid.write())
    lines = next(row for row in dossier.tables["allocation_statements"].rows if row.key == "lines")
    assert [s.key for s in lines.sentences] == ["allocation_line_unallocated", "allocation_no_accepted_output"]
    assert value(dossier, "allocation/unallocated~EUR/amount") == 9_995
    orders = {row.labels["convention"]: row.labels["changes"] for row in dossier.tables["convention_orders"].rows}
    assert orders["accepted_output"] == ""
    assert "no other convention steps in" in render(dossier, lang="en", medium="paper")


def test_a_measured_configuration_that_is_no_candidate_bears_its_share(decided: Any, campaign_text: Any) -> None:
    campaign_text.candidate("A", "fp32", "o1").offer("o1", {3: "100.00"})
    campaign_text.calendar = rental([RUN]) + CHARGES.replace('candidate = "B"', 'candidate = "A"')
    dossier = decided(campaign_text.write())
    of = {row.labels["of"] for row in dossier.tables["allocation"].rows}
    assert of == {"candidate", "configuration", "line"}
    other = next(row for row in dossier.tables["allocation"].rows if row.labels["of"] == "configuration")
    assert value(dossier, other.cells["amount"]) > 0


def test_all_cards_of_a_rented_node_are_paid_for_and_one_is_used(
    tmp_path: Path, campaign_records: Kit, campaign_text: Any
) -> None:
    kit = campaign_records
    kit(tmp_path / "runs", device=kit.device(name="Example GPU", kind="cuda"), run_id=RUN)
    campaign_text.candidate("A", "fp32", "o1", device="Example GPU")
    campaign_text.candidate("B", "bf16", "o1", device="Example GPU")
    campaign_text.offer("o1", {3: "100.00"}, device="Example GPU", more="device_count = 4\n")
    campaign_text.calendar = rental([RUN]) + CHARGES
    dossier = build_dossier([tmp_path / "runs"], campaign_text.write())
    assert value(dossier, "utilisation/machine/rented_hours") == 4.0
    used = float(sum(pass_seconds(tmp_path / "runs").values()) / 3600)
    assert value(dossier, "utilisation/machine/busy_hours") == pytest.approx(used)


def test_passes_outside_the_rented_time_are_said_and_so_is_more_use_than_was_rented(decided: Any, paid: Any) -> None:
    short = rental([RUN]).replace("T09:00:00Z", "T09:00:05Z").replace("T10:00:00Z", "T09:00:08Z")
    paid.calendar = short + CHARGES
    dossier = decided(paid.write())
    assert {"rental_overrun", "rental_outside"} <= set(said(dossier))
    assert value(dossier, "utilisation/machine/idle_hours") == 0
    assert value(dossier, "utilisation/machine~EUR/used_cost") == 9_995


def test_avoidable_cost_and_shapley_are_tables_of_analysis(made: Made) -> None:
    """Both fit one package of 100.00 together: alone 100, avoidable 0, on the mean half of it."""
    dossier = made.dossier
    for row in dossier.tables["avoidable"].rows:
        figures = {name: value(dossier, figure) for name, figure in row.cells.items()}
        assert figures == {"stand_alone": 10_000, "incremental": 0, "shapley": 5_000}


def test_the_same_total_in_document_query_and_export(made: Made, tmp_path: Path) -> None:
    campaign, dossier = made.campaign, made.dossier
    answer = query([made.runs], campaign, 'select sum("BilledCost"), sum("x_BilledMinorUnits") from allocated_charges')
    assert answer.rows == [(Decimal("106.9500"), 10_695)]
    assert value(dossier, "origin_charges/EUR/total") == 10_695
    paths = export([made.runs], campaign, tmp_path / "focus", to="focus")
    assert [path.name for path in paths] == ["origin_charges.csv", "allocated_charges.csv"]
    for path in paths:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("106.95")
        assert rows[0]["ChargePeriodStart"].endswith("Z")
    by_document = {
        (row.labels["charge"], row.labels["target"]): value(dossier, row.cells["amount"])
        for row in dossier.tables["allocated_charges"].rows
    }
    asked = query(
        [made.runs], campaign,
        """select "x_ChargeId", case when "AllocatedResourceId" is null then "x_BorneBy"
        else "x_BorneBy" || '~' || "AllocatedResourceId" end, "x_BilledMinorUnits" from allocated_charges""",
    )  # fmt: skip
    assert {(charge, target): units for charge, target, units in asked.rows} == by_document


def test_ratios_of_a_charge_sum_to_one_as_focus_asks(made: Made) -> None:
    answer = query([made.runs], made.campaign, 'select "x_ChargeId", "AllocatedMethodDetails" from allocated_charges')
    ratios: dict[str, list[Decimal]] = {}
    exact: dict[str, Fraction] = {}
    for charge, text in answer.rows:
        element = json.loads(text, parse_float=Decimal, parse_int=Decimal)["Elements"][0]
        ratios.setdefault(charge, []).append(element["AllocatedRatio"])
        exact[charge] = exact.get(charge, Fraction(0)) + Fraction(element["x_ExactRatio"])
    assert {sum(parts) for parts in ratios.values()} == {Decimal(1)}
    assert set(exact.values()) == {Fraction(1)}


def test_each_convention_is_a_whole_of_its_own_in_its_table(made: Made) -> None:
    answer = query(
        [made.runs], made.campaign,
        'select "x_Convention", "x_Idle", sum("x_BilledMinorUnits") from allocated_charges_by_convention group by all',
    )  # fmt: skip
    assert len(answer.rows) == 8
    assert {total for *_, total in answer.rows} == {10_695}


def test_a_query_reads_these_records_and_nothing_else(made: Made, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n", encoding="utf-8")
    for sql, message in (
        (f"select * from read_csv('{secret}')", "Permission Error"),
        (f"copy (select 1) to '{tmp_path / 'out.csv'}'", "only one SELECT is answered, not COPY"),
        ("select 1; select 2", "only one SELECT"),
        ("drop table pass_times", "not DROP"),
        ("", "not nothing"),
        ("select * from nowhere", "does not exist"),
        ("selec 1", "not SQL"),
    ):
        with pytest.raises(DossierError) as refused:
            query([made.runs], None, sql)
        assert message in refused.value.message
        assert refused.value.next_step
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("sql", "message", "next_step"),
    [
        ("select cost from allocated_charges", '"cost" not found', "allocated_charges has: x_ChargeId, BilledCost, "),
        ("select worse from changed_documents", '"worse" not found', "changed_documents has: row_key, label, "),
        ("select * from alocated_charges", "alocated_charges does not exist", "did you mean allocated_charges"),
        ("select 1 + 'x'", "", "reporter query RUNS --tables"),
    ],
)
def test_a_wrong_name_in_a_query_is_answered_with_the_names_that_are_there(
    made: Made, sql: str, message: str, next_step: str
) -> None:
    with pytest.raises(DossierError) as refused:
        query([made.runs], made.campaign, sql)
    assert message in refused.value.message
    assert "Candidate bindings" not in refused.value.message
    assert next_step in refused.value.next_step


def test_a_query_without_a_campaign_has_the_charges_tables_empty(made: Made) -> None:
    assert query([made.runs], None, "select count(*) from origin_charges").rows == [(0,)]
    assert query([made.runs], None, "select 4//2 as half, 'x' as text, null as nothing").rows == [(2, "x", None)]


def test_every_listed_table_can_be_asked(made: Made) -> None:
    names = [name for name, *_ in table_list().rows]
    assert len(names) == len(set(names))
    counted = " union all ".join(f"select '{name}', count(*) from {name}" for name in names)
    assert len(query([made.runs], made.campaign, counted).rows) == len(names)


def test_an_answer_prints_as_table_csv_and_json(made: Made) -> None:
    answer = query(
        [made.runs], None, "select 1.50::decimal(9,2) as cost, 'a,b' as name, null as gone, [1, 2] as list, true"
    )
    lines = list(as_lines(answer))
    assert lines[0].split() == ["cost", "name", "gone", "list", answer.columns[4]]
    assert lines[2].split() == ["1.50", "a,b", "-", "[1,2]", "true"]
    assert list(csv.reader(io.StringIO(as_csv(answer))))[1] == ["1.50", "a,b", "", "[1,2]", "true"]
    assert json.loads(as_json(answer))[0] == {
        "cost": "1.50", "name": "a,b", "gone": None, "list": [1, 2], answer.columns[4]: True,
    }  # fmt: skip


def test_g15_exported_numbers_are_the_same_under_any_locale(made: Made) -> None:
    campaign = made.campaign
    sql = "select * from allocated_charges"
    command = [sys.executable, "-m", "reporter.cli", "query", str(made.runs), "--campaign", str(campaign), "--csv", sql]
    printed = {
        subprocess.run(command, env=os.environ | {"LC_ALL": name}, capture_output=True, check=True).stdout
        for name in ("C", "de_DE.UTF-8", "vi_VN.UTF-8")
    }
    assert len(printed) == 1
    assert b",-0.0" in printed.pop()


def test_an_export_holds_every_table_whole_and_no_text_of_a_document(
    tmp_path: Path, campaign_records: Kit, paid: Any
) -> None:
    campaign_records(tmp_path / "runs", has_texts=True, run_id=RUN)
    campaign = paid.write()
    as_csv_files = export([tmp_path / "runs"], campaign, tmp_path / "csv", to="csv")
    as_parquet = export([tmp_path / "runs"], campaign, tmp_path / "parquet", to="parquet")
    assert [path.stem for path in as_csv_files] == [path.stem for path in as_parquet]
    assert {"origin_charges", "quality", "records-request"} <= {path.stem for path in as_parquet}
    for text_file, parquet in zip(as_csv_files, as_parquet, strict=True):
        count = duckdb.sql(f"select count(*) from read_parquet('{parquet}')").fetchall()
        assert count == [(sum(1 for _ in csv.reader(io.StringIO(text_file.read_text(encoding="utf-8")))) - 1,)]
        assert b"answer 1 right" not in text_file.read_bytes()
    assert not list(tmp_path.glob("*/*.part"))


def test_an_export_that_cannot_be_made_says_the_next_step(runs: Path, campaign_text: Any, tmp_path: Path) -> None:
    campaign_text.candidate("A", "fp32", "o1").offer("o1", {3: "100.00"})
    campaign = campaign_text.write()
    with pytest.raises(DossierError, match="none is named"):
        export([runs], None, tmp_path / "out", to="focus")
    with pytest.raises(DossierError, match="has no charge"):
        export([runs], campaign, tmp_path / "out", to="focus")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DossierError, match="cannot be written"):
        export([runs], campaign, tmp_path / "file" / "out", to="csv")


def test_the_order_of_files_changes_no_share(runs: Path, paid: Any, campaign_records: Kit, tmp_path: Path) -> None:
    kit = campaign_records
    kit(
        tmp_path / "more",
        variants=[kit.fp32, kit.bf16],
        run_id=OTHER_RUN,
        documents=12,
        start="2026-01-02T09:30:00",
        seed=2,
    )
    paid.calendar = rental([RUN, OTHER_RUN]) + CHARGES
    campaign = paid.write()
    made = [build_dossier(paths, campaign) for paths in ([runs, tmp_path / "more"], [tmp_path / "more", runs])]
    assert made[0].tables["allocated_charges"] == made[1].tables["allocated_charges"]
    shares = [
        {name: figure.value for name, figure in dossier.figures.items() if name.startswith("allocated_charges/")}
        for dossier in made
    ]
    assert shares[0] == shares[1]
