"""The dossier's cost tables: bills, quotes, break-even and optional lines as figures, and the page that shows them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import done

from reporter import cli as reporter_cli
from reporter.assemble import build_dossier
from reporter.dossier import Dossier, Row, Sentence
from reporter.render import render

Say = Callable[[Dossier, Sentence], str]
DEVICE = "Example CPU 2 cores"
FEES = """\
price_hour = "0.50"
billing_step_s = 3600
[[offer.fee]]
name = "disk"
amount = "0.10"
per = "gib_month"
quantity = "100"
[[offer.fee]]
name = "set-up"
amount = "2.00"
per = "rental"
"""
QUOTE = """\
[[offer.line]]
text = "machine"
days = 3
quantity = "3"
unit_price = "10.00"
amount = "30.00"
[[offer.line]]
text = "storage"
days = 3
quantity = "1000"
unit_price = "0.00013"
amount = "2.00"
"""
MORE = f"""
[[exchange_rate]]
currency = "USD"
rate = "0.90"
on = 2026-01-30
source = "central bank"

[purchase]
price = "900.00"
currency = "EUR"
residual = "100.00"
life_months = 36
monthly_cost = "12.00"
device = "{DEVICE}"
basis = "quoted"
source = "quote 3"
on = 2026-01-30

[energy]
price_per_kwh = "0.30"
currency = "EUR"
basis = "quoted"
source = "bill of 2025"

[[staff]]
role = "engineer"
hours = "6"
rate_per_hour = "80.00"
currency = "USD"
basis = "assumed"
by = "A. N."
"""


@pytest.fixture
def rich(campaign_text: Any) -> Any:
    """Offers of every kind for bf16, 80 hours of calendar, and every optional line."""
    names = ("fees", "node", "dollars", "franc", "quote", "old", "none", "hole")
    text = campaign_text.candidate("bf16", "bf16", *names)
    text.offer("fees", {3: "165.00"}, more=FEES).offer("node", {7: "400.00"}, more="device_count = 4\n")
    text.offer("dollars", {3: "30.00"}).offer("franc", {3: "1.00"}).offer("quote", {3: "32.00"}, more=QUOTE)
    text.offer("old", {3: "1.00"}, valid_until="2026-01-20").offer("none", {})
    text.offer("hole", {3: "1.00"}, more='excludes = ["storage", "transfer"]\n')
    for name, currency in (("dollars", "USD"), ("franc", "CHF")):
        index = next(i for i, offer in enumerate(text.offers) if f'id = "{name}"' in offer)
        text.offers[index] = text.offers[index].replace('currency = "EUR"', f'currency = "{currency}"')
    text.calendar = '[calendar]\npreparation = { hours = "80", basis = "assumed", by = "A. N." }\n' + MORE
    return text


_MADE: list[Dossier] = []


@pytest.fixture
def dossier(decide: Any, rich: Any) -> Dossier:
    """The dossier of the rich campaign, made once."""
    if not _MADE:
        _MADE.append(decide("plain", rich.write()))
    return _MADE[0]


def cell(dossier: Dossier, row: Row, column: str) -> Any:
    return dossier.figures[row.cells[column]].value


def table(dossier: Dossier, name: str, *keys: str) -> dict[tuple[str, ...], Row]:
    return {tuple(row.labels[key] for key in keys): row for row in dossier.tables[name].rows}


def test_g01_g03_g04_each_line_of_a_bill_is_a_figure_and_their_sum_is_the_price(dossier: Dossier) -> None:
    lines = table(dossier, "price_lines", "offer", "tariff", "kind")
    told = {
        key: (cell(dossier, row, "quantity"), cell(dossier, row, "unit_price"), cell(dossier, row, "amount"))
        for key, row in lines.items()
        if key[2] != "idle_cards"
    }
    assert told["fees", "3d", "packages"] == (2, "165.00", 33_000)
    assert told["fees", "3d", "gib_month"] == (pytest.approx(14_400 / 730), "0.10", 197)
    assert told["fees", "hour", "hours"] == (81, "0.50", 4_050)  # 80 h and loading, rounded up to whole hours
    packages = table(dossier, "packages", "offer", "tariff")
    for term in ("3d", "7d", "30d", "hour"):
        row = packages["fees", term]
        parts = [amount for key, (*_, amount) in told.items() if key[:2] == ("fees", term)]
        assert cell(dossier, row, "price_net") == sum(parts)
        assert cell(dossier, row, "fees") == sum(parts[1:])
    idle = lines["node", "7d", "idle_cards"]
    assert (cell(dossier, idle, "quantity"), "amount" in idle.cells) == (3, False)


def test_g01_idle_cards_are_told_and_a_price_per_card_is_only_a_manner_of_speaking(dossier: Dossier, said: Say) -> None:
    facts = [said(dossier, s) for s in table(dossier, "offers", "offer")["node",].sentences]
    assert facts == [
        "the node is rented whole: 3 of 4 cards are idle and paid for",
        "divided by its cards, 7 days are 100.0000 EUR per card: a manner of speaking, no card is rented at it",
    ]
    hourly = [said(dossier, s) for s in table(dossier, "offers", "offer")["fees",].sentences]
    assert hourly[0] == (
        "0.50 EUR per hour, billed in steps of 1 h, rounded up, at least 0 h; each amount is rounded once, half away "
        "from zero"
    )


def test_g01_an_hour_of_a_node_of_four_costs_four_and_one_only_as_a_manner_of_speaking(
    decide: Any, campaign_text: Any, said: Say
) -> None:
    text = campaign_text.candidate("bf16", "bf16", "node")
    node = text.offer("node", {}, more='price_hour = "4.00"\nbilling_step_s = 3600\ndevice_count = 4\n')
    dossier = decide("plain", node.write())
    hours = table(dossier, "price_lines", "tariff", "kind")["hour", "hours"]
    assert (cell(dossier, hours, "quantity"), cell(dossier, hours, "amount")) == (1, 400)
    idle = table(dossier, "price_lines", "tariff", "kind")["hour", "idle_cards"]
    assert said(dossier, idle.sentences[0]) == "3 cards idle"
    facts = [said(dossier, sentence) for sentence in dossier.tables["offers"].rows[0].sentences]
    assert (
        "divided by its cards, an hour is 1.0000 EUR per card: a manner of speaking, no card is rented at it" in facts
    )
    notices = [said(dossier, notice) for notice in dossier.notices]
    assert "Offer node rents 4 devices of which 1 works; the price is the whole." in notices
    assert "by the hour" in said(dossier, dossier.decision.recommendation)


def test_g06_g17_offers_that_cannot_win_keep_their_place_and_say_why(dossier: Dossier, said: Say) -> None:
    offers = table(dossier, "offers", "offer")
    assert {name: said(dossier, row.sentences[0]) for (name,), row in offers.items() if row.labels["blocked"]} == {
        "franc": "in CHF, and no exchange rate to EUR is given",
        "quote": "its arithmetic does not hold: storage is printed as 2.00 EUR, computed 0.13 EUR",
        "old": "it holds from 5 January 2026 to 20 January 2026, not on 31 January 2026",
        "none": "price unknown: it names no price, which is not zero",
        "hole": "incomplete: its price leaves out storage, transfer",
    }
    unknown = table(dossier, "packages", "offer")["none",]
    figure = dossier.figures[unknown.cells["price_net"]]
    assert (figure.value, figure.missing_reason) == (None, "price_unknown")
    assert dossier.decision.has_winner
    assert table(dossier, "packages", "offer", "tariff")["old", "3d"].labels["blocked"] == "expired"


def test_a_quote_is_shown_line_by_line_with_what_it_should_be(dossier: Dossier) -> None:
    rows = dossier.tables["quote_lines"].rows
    told = [[cell(dossier, row, c) for c in ("printed", "computed", "difference")] for row in rows]
    assert told == [[3_000, 3_000, 0], [200, 13, 187], [3_200, 3_200, 0]]


def test_g17_a_converted_amount_is_a_second_figure_with_rate_date_and_source(dossier: Dossier) -> None:
    row = table(dossier, "packages", "offer", "tariff")["dollars", "3d"]
    net, converted = (dossier.figures[row.cells[c]] for c in ("price_net", "compared_net"))
    assert (net.value, net.currency) == (6_000, "USD")
    assert (converted.value, converted.currency) == (5_400, "EUR")
    (rate,) = dossier.tables["exchange_rates"].rows
    assert (rate.labels["on"], rate.labels["source"], cell(dossier, rate, "rate")) == (
        "2026-01-30", "central bank", "0.90",
    )  # fmt: skip
    page = re.sub(r"<[^>]+>|\s+", " ", render(dossier, lang="en", medium="screen"))
    assert "1 USD = 0.90 EUR on" in page.replace("\u00a0", " ")


def test_hours_used_and_corpora_that_fit_stand_beside_each_package(dossier: Dossier) -> None:
    row = table(dossier, "packages", "offer", "tariff")["fees", "3d"]
    assert cell(dossier, row, "used_percent") == pytest.approx(55.6, abs=0.1)
    needed, paid = cell(dossier, row, "needed_hours"), cell(dossier, row, "paid_hours")
    processing = next(
        cell(dossier, r, "hours")
        for r in dossier.tables["calendar"].rows
        if (r.labels["candidate"], r.labels["phase"]) == ("bf16", "processing")
    )
    assert cell(dossier, row, "corpora_fit") == int((paid - (needed - processing)) / processing)


def test_break_even_names_the_tariff_of_each_interval_and_where_the_need_lies(dossier: Dossier) -> None:
    rows = dossier.tables["break_even"].rows
    assert [cell(dossier, r, "to_hours") for r in rows[:-1]] == [cell(dossier, r, "over_hours") for r in rows[1:]]
    (at_need,) = [row for row in rows if row.labels["needed_by"]]
    assert (at_need.labels["offer"], at_need.labels["tariff"], at_need.labels["needed_by"]) == ("fees", "hour", "bf16")
    assert cell(dossier, at_need, "over_hours") < 80.1 < cell(dossier, at_need, "to_hours")
    best = table(dossier, "candidates", "label")["bf16",]
    assert cell(dossier, best, "package_price") == cell(
        dossier, table(dossier, "packages", "offer", "tariff")["fees", "hour"], "price_net"
    )


def test_the_chart_of_break_even_is_an_image_whose_title_says_what_it_shows(dossier: Dossier) -> None:
    page = render(dossier, lang="en", medium="screen")
    for width in ("wide", "narrow"):
        (chart,) = re.findall(rf'<svg[^>]*aria-labelledby="break-even-g1-{width}-title".*?</svg>', page, re.DOTALL)
        assert 'role="img"' in chart
        assert "style=" not in chart
    assert "bf16: cheapest is by the hour, fees, up to" in page.replace("\u00a0", " ")


def test_optional_lines_have_their_basis_and_without_joules_energy_has_no_amount(dossier: Dossier, said: Say) -> None:
    rows = table(dossier, "total_view", "line")
    package, energy, staff, total = (rows[name,] for name in ("rental", "energy", "staff", "total"))
    assert cell(dossier, energy, "compared") is None
    assert said(dossier, energy.sentences[0]) == "no energy was measured"
    assert (cell(dossier, staff, "amount"), cell(dossier, staff, "compared")) == (48_000, 43_200)
    assert said(dossier, staff.sentences[0]) == "6 h at 80.00 USD, stated by A. N."
    assert cell(dossier, total, "compared") == cell(dossier, package, "compared") + 43_200
    assert said(dossier, total.sentences[0]) == "without 1 line that has no amount"
    assert dossier.figures[staff.cells["compared"]].basis == "assumed"
    (owned,) = dossier.tables["purchase"].rows
    assert cell(dossier, owned, "monthly") == pytest.approx(800 / 36 + 12)
    assert cell(dossier, owned, "for_months") == 3_422
    assert cell(dossier, owned, "break_even_months") == 3


def test_energy_comes_from_the_counters_of_the_measured_phase(
    tmp_path: Path, campaign_records: Any, rich: Any, said: Say
) -> None:
    written = campaign_records(tmp_path / "runs")

    def counted(_: int, line: dict[str, Any]) -> dict[str, Any]:
        if (line["kind"], line.get("phase"), line.get("statistic")) != ("reading", "measure", "start"):
            return line
        kept = {key: line[key] for key in ("run_id", "seq", "prev", "written_at", "pass_id", "phase")}
        return {
            "kind": "telemetry", **kept, "device_id": "cuda:0", "missing": {}, "window_ns": 10**9,
            "energy_mj": 7_200_000_000,
        }  # fmt: skip

    lines = campaign_records.rechain(written.path.read_bytes().splitlines(), counted)
    written.path.write_bytes(b"".join(line + b"\n" for line in lines))
    dossier = build_dossier([written.runs], rich.write())
    energy = table(dossier, "total_view", "line")["energy",]
    assert cell(dossier, energy, "compared") == 60  # 2 kWh for the 24 wanted documents, all of them measured
    assert said(dossier, energy.sentences[0]) == "measured joules of processing, at 0.30 EUR per kWh (bill of 2025)"
    assert dossier.figures[energy.cells["compared"]].record_count > 0


def test_optional_lines_never_change_price_or_order(decide: Any, rich: Any, dossier: Dossier) -> None:
    rich.calendar = rich.calendar.split("[purchase]")[0]
    without = decide("plain", rich.write())
    assert "total_view" not in without.tables
    assert dossier.tables["packages"] == without.tables["packages"]
    assert dossier.decision.recommendation == without.decision.recommendation


def test_the_section_reads_from_prices_to_break_even_and_optional_lines(dossier: Dossier) -> None:
    page = render(dossier, lang="en", medium="screen")
    section = page[page.index('id="packages"') :]
    wanted = [
        "Packages: what they cost", "Packages: hours paid, needed and idle", "Offers that cannot win",
        "Bills line by line", "Written quotes, multiplied and added again", "Break-even: which tariff is the cheapest",
        "The package and optional lines beside it", "Owning the machine instead", "Calendar of a campaign",
    ]  # fmt: skip
    places = [section.index(text) for text in wanted]
    assert places == sorted(places)


def test_g15_pages_and_data_are_the_same_under_any_locale(tmp_path: Path, campaign_records: Any, rich: Any) -> None:
    runs, campaign = campaign_records(tmp_path / "runs").runs, rich.write()
    written: dict[str, dict[str, bytes]] = {}
    for name in ("here", "de_DE.UTF-8", "vi_VN.UTF-8"):
        out = tmp_path / name / "dossier.html"
        out.parent.mkdir()
        arguments = ["html", str(runs), "--campaign", str(campaign), "-o", str(out)]
        if name == "here":
            done(reporter_cli.main, *arguments)
        else:
            environment = os.environ | {"LC_ALL": name, "LANG": name, "XDG_CACHE_HOME": str(tmp_path / "cache")}
            command = [sys.executable, "-m", "reporter.cli", *arguments]
            subprocess.run(command, check=True, capture_output=True, env=environment)
        data = out.parent / "dossier_files" / "dossier.json"
        written[name] = {"html": out.read_bytes(), "json": data.read_bytes()}
    assert written["here"] == written["de_DE.UTF-8"] == written["vi_VN.UTF-8"]
    amounts = re.findall(r"([\d.,]+)\u00a0EUR", written["vi_VN.UTF-8"]["html"].decode())
    assert amounts
    assert all(re.fullmatch(r"[\d,]+\.\d{2,4}", amount) for amount in amounts)
