"""A campaign file that would make a price or a comparison wrong is refused with its line and the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.contract.campaign_file import read_campaign
from collector.contract.errors import Finding, Refused

GOOD = """\
format = 1
question = "Which machine?"
dossier_id = "SD-2026-001"
as_of = 2026-11-30
issued = 2026-11-30
documents_per_corpus = 200

[objective]
prefer = "cheapest"

[[candidate]]
id = "a"
label = "L40S · int8"
variant = "int8"
device = "NVIDIA L40S"
offers = ["o1"]

[[candidate]]
id = "b"
label = "L4 · int8"
variant = "int8"
device = "NVIDIA L4"

[[offer]]
id = "o1"
provider = "Example Cloud"
device = "NVIDIA L40S"
pricing_class = "quote"
currency = "EUR"
price_3_days = "540.00"
tax_percent = "19"
basis = "quoted"
source = "quote 17"
retrieved = 2026-11-20
valid_until = 2026-12-14

[[offer]]
id = "o2"
provider = "Example Cloud"
device = "NVIDIA L40S"
pricing_class = "quote"
currency = "EUR"
price_7_days = "1092.00"
tax_percent = "19"
basis = "example"
source = "made up"
retrieved = 2026-11-20
valid_until = 2026-12-14

[calendar]
preparation = { hours = "2.5", basis = "assumed", by = "A. N." }
"""


def findings(tmp_path: Path, old: str, new: str) -> list[Finding]:
    assert GOOD.count(old) >= 1
    path = tmp_path / "campaign.toml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        read_campaign(path)
    return refused.value.findings


def test_a_good_file_is_read_and_knows_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(GOOD, encoding="utf-8")
    loaded = read_campaign(path)
    assert [candidate.id for candidate in loaded.campaign.candidates] == ["a", "b"]
    assert loaded.line_of("offer[1].price_7_days") == 43
    assert loaded.path == path


@pytest.mark.parametrize(
    ("old", "new", "line", "rule", "message", "next_step"),
    [
        ('provider = "Example', 'vendor = "x"\nprovider = "Example', 26, "unknown-field", "vendor", "remove it"),
        ('price_3_days = "540.00"', "price_3_days = 540.00", 30, "wrong-type", "540.0", "in quotes"),
        ('id = "b"', 'id = "a"', 19, "duplicate-id", '"a"', "an id of its own"),
        ('label = "L4 · int8"', 'label = "L40S · int8"', 20, "duplicate-label", "L40S", "a label of its own"),
        ('id = "o2"', 'id = "o1"', 38, "duplicate-id", '"o1"', "an id of its own"),
        ('offers = ["o1"]', 'offers = ["o9"]', 16, "unknown-offer", '"o9"', "o1, o2"),
        ('offers = ["o1"]', 'offers = [\n "o1",\n "o9"]', 18, "unknown-offer", '"o9"', "o1, o2"),
        ('device = "NVIDIA L4"', 'device = "NVIDIA L40S"', 18, "duplicate-candidate", "one configuration", "keep one"),
        ('"540.00"', '"540.001"', 30, "amount", "more decimals than EUR", "at most 2"),
        ('"540.00"', '"540,00"', 30, "wrong-type", "540,00", "exact decimal"),
        ('"540.00"', '"0.00"', 30, "amount", "no price", "leave the line out"),
        ('"540.00"', '"-5.00"', 30, "amount", "no price", "leave the line out"),
        ('currency = "EUR"', 'currency = "EUE"', 29, "amount", "no ISO 4217", "three-letter code"),
        ("valid_until = 2026-12-14", "valid_until = 2026-11-19", 35, "dates", "2026-11-19", "correct one"),
        (', by = "A. N."', "", 51, "assumed-by-nobody", "2.5 hours of preparation", 'by = "'),
        ('hours = "2.5"', "hours = 2.5", 51, "wrong-type", "2.5", "in quotes"),
        ('hours = "2.5"', f'hours = "{"9" * 400}"', 51, "wrong-type", "999", "below 10^9"),
        ('"540.00"', f'"{"9" * 5000}"', 30, "wrong-type", "999", "below 10^15"),
        ("= 200\n", f"= {10**24}\n", 6, "wrong-type", "1000000000", "whole number"),
        ("= 200\n", '= 200\ndeadline_h = "0.0"\n', 7, "amount", "0 hours", "leave the line out"),
        ('tax_percent = "19"', 'tax_percent = "190"', 31, "amount", "190 %", "rate in percent"),
        ('currency = "EUR"', 'device_memory_gib = "-48"\ncurrency = "EUR"', 29, "amount", "-48 GiB", "one device"),
        ('offers = ["o1"]', 'offers = ["o1", "o1"]', 16, "duplicate-offer", '"o1" twice', "once"),
        ('provider = "', 'provider = "\\u001b[2J', 26, "control-character", "\\x1b", "one plain line"),
        ('prefer = "cheapest"', 'prefer = "best"', 9, "wrong-type", "best", "cheapest"),
        ("documents_per_corpus = 200\n", "", 1, "missing-field", "documents_per_corpus", "add"),
        ('"540.00"', '"1,44"', 30, "wrong-type", 'an exact decimal, found "1,44"', 'write a decimal point: "1.44"'),
        ('hours = "2.5"', 'hours = "2,5"', 51, "wrong-type", '"2,5"', 'write a decimal point: "2.5"'),
        ('tax_percent = "19"', 'tax_percent = "7,7"', 31, "wrong-type", '"7,7"', 'write a decimal point: "7.7"'),
        ('"540.00"', '"1,440.00"', 30, "wrong-type", '"1,440.00"', "digits and a decimal point alone"),
        ('"540.00"', '"1,440"', 30, "wrong-type", '"1,440"', "digits and a decimal point alone"),
        ('currency = "EUR"', 'currency = "euro"', 29, "wrong-type", "not of the form wanted", "ISO 4217 code"),
        ('"cheapest"', '"cheapest"\ntie_percent = "500"', 10, "range", "500 %", '"100"'),
        ('"cheapest"', '"cheapest"\nmin_headroom_percent = "100"', 10, "range", "100 %", 'below "100"'),
        ('"cheapest"', '"cheapest"\ntime_percentile = 95', 10, "no-time-limit", "percentile 95", "max_answer_s"),
    ],
)  # fmt: skip
def test_each_fault_names_line_value_and_next_step(
    tmp_path: Path, old: str, new: str, line: int, rule: str, message: str, next_step: str
) -> None:
    matching = [finding for finding in findings(tmp_path, old, new) if finding.rule == rule]
    assert matching, findings(tmp_path, old, new)
    assert matching[0].line == line
    assert message in matching[0].message
    assert next_step in matching[0].next_step
    assert matching[0].file == tmp_path / "campaign.toml"


def test_g17_offers_in_two_currencies_are_read_with_or_without_a_rate(tmp_path: Path) -> None:
    head, tail = GOOD.split('id = "o2"')
    path = tmp_path / "campaign.toml"
    path.write_text(head + 'id = "o2"' + tail.replace('"EUR"', '"USD"'), encoding="utf-8")
    assert [offer.currency for offer in read_campaign(path).campaign.offers] == ["EUR", "USD"]
    rate = '[[exchange_rate]]\ncurrency = "USD"\nrate = "0.92"\non = 2026-11-28\nsource = "bank"\n'
    path.write_text(path.read_text(encoding="utf-8") + rate, encoding="utf-8")
    assert read_campaign(path).campaign.exchange_rates[0].rate == "0.92"


def test_g06_an_offer_without_a_price_is_read(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(GOOD.replace('price_3_days = "540.00"\n', "", 1), encoding="utf-8")
    assert read_campaign(path).campaign.offers[0].price_3_days is None


FEE = '\n[[offer.fee]]\nname = "storage"\namount = "0.10"\nper = "gib_month"\nquantity = "100"\n'
LINE = '\n[[offer.line]]\ntext = "L40S"\ndays = 7\nquantity = "7"\nunit_price = "156.00"\namount = "1092.00"\n'
RATE = '\n[[exchange_rate]]\ncurrency = "USD"\nrate = "0.92"\non = 2026-11-28\nsource = "bank"\n'
BUY = (
    '\n[purchase]\nprice = "9000.00"\ncurrency = "EUR"\nlife_months = 36\ndevice = "NVIDIA L4"\n'
    'basis = "quoted"\nsource = "quote 3"\non = 2026-11-28\n'
)
ENERGY = '\n[energy]\nprice_per_kwh = "0.30"\ncurrency = "EUR"\nbasis = "quoted"\nsource = "bill"\n'
STAFF = (
    '\n[[staff]]\nrole = "engineer"\nhours = "10"\nrate_per_hour = "80.00"\ncurrency = "EUR"\n'
    'basis = "assumed"\nby = "A. N."\n'
)
HOURLY = 'billing_step_s = 3600\nminimum_hours = "1"\n'


@pytest.mark.parametrize(
    ("added", "old", "new", "rule", "at", "message", "next_step"),
    [
        (FEE, '"0.10"', '"-0.10"', "amount", "amount", "-0.10", "what is charged"),
        (FEE, 'quantity = "100"\n', "", "quantity", "per =", "how many GiB", "quantity ="),
        (FEE, 'per = "gib_month"', 'per = "day"', "quantity", "quantity", "100 would not be used", "remove quantity"),
        (FEE, 'quantity = "100"', 'quantity = "-1"', "quantity", "quantity", "-1 GiB", "how many GiB"),
        (LINE, "days = 7", "days = 30", "line-without-price", "days = 30", "30 days", "price_30_days"),
        (LINE, '"1092.00"', '"1092.001"', "amount", "1092.001", "1092.001", "at most 2"),
        (RATE, '"USD"', '"EUR"', "own-currency", 'currency = "EUR"', "needs no rate", "remove the rate"),
        (RATE, '"USD"', '"USE"', "amount", '"USE"', "no ISO 4217", "three-letter code"),
        (RATE, '"0.92"', '"0"', "amount", "rate =", "0 is no exchange rate", "how many EUR one USD"),
        (RATE + RATE, "", "", "duplicate-rate", '"USD"', "USD is given twice", "keep one"),
        (BUY, '"NVIDIA L4"', '"NVIDIA A2"', "other-device", "A2", "NVIDIA A2", "NVIDIA L4, NVIDIA L40S"),
        (
            BUY,
            "life_months",
            'residual = "9001"\nlife_months',
            "amount",
            "9001",
            "9001 is more than",
            "end of its life",
        ),
        (BUY, '"9000.00"', '"-9000.00"', "amount", "-9000", "negative", "what is paid"),
        (ENERGY, '"EUR"', '"EUE"', "amount", "EUE", "no ISO 4217", "three-letter"),
        (ENERGY, '"0.30"', '"-0.30"', "amount", "-0.30", "-0.30 EUR", "what is paid"),
        (STAFF, 'by = "A. N."\n', "", "assumed-by-nobody", "[[staff]]", "10 hours of engineer", "by ="),
        (STAFF, '"80.00"', '"-80.00"', "amount", "-80.00", "-80.00", "what is paid"),
    ],
)
def test_each_fault_of_fees_quotes_rates_and_optional_lines_has_a_line(
    tmp_path: Path, added: str, old: str, new: str, rule: str, at: str, message: str, next_step: str
) -> None:
    base, calendar = GOOD.split("[calendar]")
    path = tmp_path / "campaign.toml"
    path.write_text(base + added.replace(old, new, 1) + "\n[calendar]" + calendar, encoding="utf-8")
    with pytest.raises(Refused) as refused:
        read_campaign(path)
    (finding,) = refused.value.findings
    assert finding.rule == rule
    assert finding.line is not None
    assert at in path.read_text(encoding="utf-8").splitlines()[finding.line - 1]
    assert message in finding.message
    assert next_step in finding.next_step


@pytest.mark.parametrize(
    ("more", "rule", "line", "message", "next_step"),
    [
        ("minimum_cards = 4\n", "cards", 30, "at least 4 cards of a node that has 1", "device_count"),
        ("device_count = 8\nminimum_cards = 4\n", "cards", 31, "prices the whole node", 'prices_per = "card"'),
        ("billing_step_s = 3600\n", "step-without-hour", 30, "billing_step_s = 3600 s", "price_hour"),
        ('minimum_hours = "1"\n', "step-without-hour", 30, "minimum_hours = 1 h", "price_hour"),
        ('price_hour = "0"\n', "amount", 30, "0 EUR is no price", "one hour"),
    ],
)
def test_g01_g03_cards_and_hours_that_contradict_the_price_are_refused(
    tmp_path: Path, more: str, rule: str, line: int, message: str, next_step: str
) -> None:
    (finding,) = findings(tmp_path, 'price_3_days = "540.00"\n', more + 'price_3_days = "540.00"\n')
    assert (finding.rule, finding.line) == (rule, line)
    assert message in finding.message
    assert next_step in finding.next_step


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(GOOD.replace('"540.00"', '"1.234"').replace('offers = ["o1"]', 'offers = ["x"]'), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        read_campaign(path)
    assert [finding.rule for finding in refused.value.findings] == ["unknown-offer", "amount"]


def test_a_range_as_wide_as_the_value_itself_is_refused_at_its_line(tmp_path: Path) -> None:
    found = findings(tmp_path, "[calendar]", '[sensitivity]\nby = "A. N."\nvolume_percent = "100"\n\n[calendar]')
    assert [(f.rule, f.line) for f in found] == [("range", 52)]
    assert "100 %" in found[0].message
    assert "below 100" in found[0].next_step


def test_an_objective_at_its_bounds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    wanted = '"cheapest"\ntie_percent = "100"\nmin_headroom_percent = "99.9"\nmax_answer_s = "4"\ntime_percentile = 95'
    path.write_text(GOOD.replace('"cheapest"', wanted), encoding="utf-8")
    objective = read_campaign(path).campaign.objective
    assert (objective.tie_percent, objective.min_headroom_percent, objective.time_percentile) == ("100", "99.9", 95)
