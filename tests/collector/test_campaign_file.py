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
        ('price_3_days = "540.00"\n', "", 24, "no-price", '"o1" has no price', "price_3_days, price_7_days"),
        ('"540.00"', '"540.001"', 30, "amount", "more decimals than EUR", "at most 2"),
        ('"540.00"', '"540,00"', 30, "wrong-type", "540,00", "exact decimal"),
        ('"540.00"', '"0.00"', 30, "amount", "no price", "leave the line out"),
        ('"540.00"', '"-5.00"', 30, "amount", "no price", "leave the line out"),
        ('currency = "EUR"', 'currency = "EUE"', 30, "amount", "no ISO 4217", "three-letter code"),
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


def test_g17_offers_in_two_currencies_are_refused_at_the_second(tmp_path: Path) -> None:
    head, tail = GOOD.split('id = "o2"')
    path = tmp_path / "campaign.toml"
    path.write_text(head + 'id = "o2"' + tail.replace('"EUR"', '"USD"'), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        read_campaign(path)
    (finding,) = refused.value.findings
    assert (finding.rule, finding.line) == ("mixed-currencies", 42)
    assert "USD" in finding.message
    assert "one currency" in finding.next_step


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(GOOD.replace('"540.00"', '"1.234"').replace('offers = ["o1"]', 'offers = ["x"]'), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        read_campaign(path)
    assert [finding.rule for finding in refused.value.findings] == ["unknown-offer", "amount"]
